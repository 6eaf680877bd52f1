// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "csv.hpp"
#include "traced.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The scenario rows of the catalogue: the combinations of conditions in which a row applies, and
// whether packets match the row. notation.md, section 5, is the grammar; anything else is an error.
namespace ptspec::test::scenarios {

namespace action = engine::action;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;

// ------------------------------------------------------------------------------ combinations

/// One combination of conditions. Conditions that a scene does not vary keep these defaults.
struct combination {
    bool c0 = true;     ///< ContextEn before
    bool c1 = true;     ///< ContextEn after
    bool f0 = true;     ///< FilterEn before
    bool f1 = true;     ///< FilterEn after
    bool stop = false;  ///< the IP that TraceStop checks is in a TraceStop range
    bool os = true;
    bool branch = true;
    bool tsc = false;
    bool mtc = false;
    bool tsx = false;
    bool vmx = false;
    bool guest = false;
    bool conceal = false;
    bool mode_changed = false;
    bool mode_unknown = false;  ///< no MODE.Exec since the last PSB
    bool cr3_changed = false;
    bool pending = false;  ///< the TNT buffer holds branches
    bool counted = false;  ///< PacketByteCnt is not 0
    bool variant = false;  ///< selects another operation of the same scene
    bool ptwen = true;
    bool with_fup = false;  ///< FUPonPTW
    bool off = false;       ///< TraceEn is 0 before

    [[nodiscard]] auto pkt0() const -> bool { return !off && c0 && f0 && branch; }
    [[nodiscard]] auto pkt1() const -> bool { return c1 && f1 && branch; }
};

using flag = bool combination::*;

/// Addresses relative to the ranges, which are always the same: a filter range from 1000H to 1FFFH,
/// a TraceStop range from 4000H to 4FFFH.
inline constexpr std::uint64_t clip = 0x1010;
inline constexpr std::uint64_t nlip = 0x1013;
inline constexpr std::uint64_t cr3_now = 0x1000;
inline constexpr std::uint64_t cr3_new = 0x7000;
inline auto target(combination const& in) -> std::uint64_t {
    return in.f1 ? 0x1100 : in.stop ? 0x4100 : 0x3000;
}

/// The privilege levels, and the value of User, that give ContextEn the values of a combination.
struct levels {
    bool user;
    std::uint8_t before;
    std::uint8_t after;
};
inline auto levels_of(combination const& in) -> levels {
    auto const at = [&](bool traced) { return static_cast<std::uint8_t>(traced == in.os ? 0 : 3); };
    if (in.c0 && in.c1) { return {true, at(true), at(true)}; }
    return {!in.os, at(in.c0), at(in.c1)};
}

/// How a scene is set up and executed.
struct scene {
    /// Changes the initial state for a combination.
    std::function<void(trace_script::start&, combination const&)> sets = [](auto&, auto const&) {};
    std::function<void(traced&, combination const&)> does;
    std::vector<flag> varies;
    /// True when a combination is possible.
    std::function<bool(combination const&)> occurs = [](combination const&) { return true; };
    /// The value of CLIP or NLIP.
    std::function<std::uint64_t(combination const&)> from = [](combination const&) { return clip; };
    bool by_cr3 = false;           ///< CR3Filter at CPL 0 determines ContextEn, not the privilege
                                   ///< level
    bool fills = false;            ///< five branches are pending: one more fills the TNT
    bool only_tail = false;        ///< the row lists only the last packets
    bool remembers_call = false;   ///< a call to the return target was traced
    bool levels_as_if_c1 = false;  ///< c1 is 0 in the row, but the target could be traced
    bool leaves_guest = false;     ///< a PSB+ reports host state
    bool enters_guest = false;     ///< a PSB+ reports guest state
    /// Operations before the one of the row. Their packets are ignored.
    std::function<void(traced&, combination const&)> prepares = [](traced&, combination const&) {};
    bool keeps_tnt_empty = false;  ///< `pending` has another meaning
    bool is_asynchronous = false;
    bool is_abort = false;
    std::set<std::string> drops{};  ///< packets that the row omits
    /// Sets conditions that hold in every combination.
    std::function<void(combination&)> fixed = [](combination&) {};
    std::function<void(combination&)> fixed_more = [](combination&) {};
    bool starts_off = false;  ///< TraceEn is 0 before
};

inline auto running_before(combination const& in, scene const& s) -> trace_script::start {
    auto made = traced::started("ADDR0=[1000,1FFF] filter, ADDR1=[4000,4FFF] stop, IP=1010");
    auto const cpl = levels_of(in);
    made.code.cpl = s.by_cr3 ? 0 : cpl.before;
    made.code.cr3 = cr3_now;
    made.code.vmx_non_root = in.guest;
    made.msrs.in_vmx_operation = in.vmx || in.guest;
    made.hidden = {in.conceal, in.conceal, in.conceal};
    made.how.has_tsx = in.tsx;
    using field = ctl;
    made.msrs.ctl = made.msrs.ctl.with(field::OS{in.os}, field::User{s.by_cr3 || cpl.user},
                                       field::BranchEn{in.branch}, field::TSCEn{in.tsc},
                                       field::MTCEn{in.mtc}, field::TraceEn{!s.starts_off});
    if (s.by_cr3) {
        // CR3_MATCH is the CR3 of the side that is traced. If both are, there is no filter.
        bool const filters = !(in.c0 && in.c1);
        made.msrs.ctl = made.msrs.ctl.with(field::CR3Filter{filters});
        made.msrs.cr3_match = {in.c0 ? cr3_now : in.c1 ? cr3_new : std::uint64_t{0x9000}};
    }
    made.msrs.status = status{}.with(
        status::TriggerEn{!s.starts_off}, status::ContextEn{!s.starts_off && in.c0},
        status::FilterEn{in.f0},
        status::PacketByteCnt{wrapped{in.counted || !s.starts_off ? 5U : 0U}});
    return made;
}
inline auto running_after(traced const& on, combination const& in, scene const& s)
    -> engine::execution_context {
    auto code = on.state().code;
    if (!s.by_cr3) { code.cpl = levels_of(in).after; }
    if (in.cr3_changed) { code.cr3 = cr3_new; }
    if (in.mode_changed) { code.width = engine::code_width::bits_32; }
    return code;
}

// ------------------------------------------------------------------------------------ rows

/// Splits at a separator outside parentheses, and trims the parts.
inline auto split(std::string const& all, char separator) -> std::vector<std::string> {
    std::vector<std::string> parts;
    std::string part;
    int depth = 0;
    auto const done = [&] {
        auto const begin = part.find_first_not_of(' ');
        auto const end = part.find_last_not_of(' ');
        parts.push_back(begin == std::string::npos ? "" : part.substr(begin, end - begin + 1));
        part.clear();
    };
    for (char const letter : all) {
        depth += letter == '(' ? 1 : letter == ')' ? -1 : 0;
        if (letter == separator && depth == 0) {
            done();
        } else {
            part += letter;
        }
    }
    done();
    return parts;
}

[[noreturn]] inline void not_read(std::string const& what) {
    throw std::runtime_error{"not in the notation: " + what};
}

struct row {
    std::string id;
    std::string scenario;
    std::map<std::string, std::string> conditions;
    std::map<std::string, std::string> optional;
    std::vector<std::string> packets;
    bool cannot_happen = false;
};

inline auto read_row(test::csv_row const& cells) -> row {
    row made{cells["id"], cells["scenario"], {}, {}, {}, false};
    static std::set<std::string> const keys{"pkt0",
                                            "pkt1",
                                            "ctx1",
                                            "ctx",
                                            "filter",
                                            "packeten",
                                            "triggeren",
                                            "branchen",
                                            "eventen",
                                            "pwrevten",
                                            "ptwen",
                                            "OS",
                                            "ADDRn_CFG",
                                            "IA32_VMX_MISC[14]",
                                            "IA32_PEBS_ENABLE[62:61]",
                                            "deferred_tip",
                                            "conceal",
                                            "conceal_vm_exits",
                                            "conceal_vm_entries",
                                            "cond",
                                            "NR",
                                            "IP",
                                            "preceded_by",
                                            "followed_by",
                                            "knob",
                                            "fix",
                                            "printed",
                                            "note"};
    if (!cells["preconditions"].empty()) {
        for (auto const& item : split(cells["preconditions"], ';')) {
            auto const sign = item.find('=');
            if (sign == std::string::npos) { not_read(item); }
            auto const key = item.substr(0, sign);
            auto const value = item.substr(sign + 1);
            if (key.substr(0, 4) == "opt:") {
                made.optional[key.substr(4)] = value;
            } else if (keys.count(key) != 0) {
                made.conditions[key] = value;
            } else {
                not_read(item);
            }
        }
    }
    auto const& packets = cells["packets_in_order"];
    made.cannot_happen = packets == "NA";
    if (packets != "none" && packets != "NA") { made.packets = split(packets, ';'); }
    return made;
}

inline auto all_rows() -> std::vector<row> const& {
    static auto const rows = [] {
        std::vector<row> made;
        for (auto const& cells : test::read_csv("tests/spec/scenarios.csv").rows) {
            made.push_back(read_row(cells));
        }
        return made;
    }();
    return rows;
}
inline auto row_of(std::string const& id) -> row const& {
    for (auto const& one : all_rows()) {
        if (one.id == id) { return one; }
    }
    not_read("@" + id);
}

// ----------------------------------------------------------------------- values and arguments

/// The value of a condition in a combination.
inline auto is_true(std::string const& name, combination const& in) -> bool {
    if (name.empty()) { not_read("an empty condition"); }
    if (name[0] == '!') { return !is_true(name.substr(1), in); }
    static std::map<std::string, std::function<bool(combination const&)>> const meanings{
        {"OS", [](auto const& is) { return is.os; }},
        {"TSCEn", [](auto const& is) { return is.tsc; }},
        {"MTCEn", [](auto const& is) { return is.mtc; }},
        {"FUPonPTW", [](auto const& is) { return is.with_fup; }},
        {"ptwen", [](auto const& is) { return is.ptwen; }},
        {"triggeren", [](auto const&) { return true; }},
        {"branchen", [](auto const& is) { return is.branch; }},
        {"ctx", [](auto const& is) { return is.c0; }},
        {"ctx1", [](auto const& is) { return is.c1; }},
        {"filter", [](auto const& is) { return is.f0; }},
        {"mode_changed", [](auto const& is) { return is.mode_changed; }},
        {"mode_stale", [](auto const& is) { return is.mode_changed || is.mode_unknown; }},
        {"cr3_changed", [](auto const& is) { return is.cr3_changed; }},
        {"target_in_stop", [](auto const& is) { return is.stop; }},
        {"executed_in_stop", [](auto const& is) { return is.stop; }},
        {"tnt_pending", [](auto const& is) { return is.pending; }},
        {"tsx_part", [](auto const& is) { return is.tsx; }},
        {"vmcs_visible",
         [](auto const& is) { return (is.vmx || is.guest) && !(is.guest && is.conceal); }},
        {"conceal_vm_exits", [](auto const& is) { return is.conceal; }},
        {"conceal_vm_entries", [](auto const& is) { return is.conceal; }},
        {"on_return", [](auto const&) { return true; }},
        {"not_dropped", [](auto const&) { return true; }},
    };
    auto const found = meanings.find(name);
    if (found == meanings.end()) { not_read(name); }
    return found->second(in);
}
inline auto holds(std::string const& condition, combination const& in) -> bool {
    for (auto const& any : split(condition, '|')) {
        bool all = true;
        for (auto const& one : split(any, '&')) { all = all && is_true(one, in); }
        if (all) { return true; }
    }
    return false;
}

inline auto hex(std::uint64_t number) -> std::string {
    auto const out = print::written<20>([&](auto& to) { print::hex(number, to); });
    return {out.characters, out.length};
}

/// The value of an address in a row, for a combination of a scene.
inline auto value_of(std::string const& what, combination const& in, scene const& s)
    -> std::string {
    static std::set<std::string> const sources{"CLIP",     "NLIP", "guest IP", "SMRAM.IP",
                                               "event IP", "src",  "IP",       "current IP"};
    static std::set<std::string> const targets{"BLIP",    "host IP", "AEP",      "reset IP",
                                               "SIPI IP", "STM IP",  "resume IP"};
    static std::set<std::string> const spaces{"NewCR3", "HostCR3", "GuestCR3"};
    static std::set<std::string> const any{
        "X",   "Y",    "v",  "q",  "r",   "m",   "value",         "base",        "LCC",
        "DCC", "type", "id", "SZ", "cr2", "new", "STM VMCS base", "working VMCS"};
    bool const is_guests = s.enters_guest && (what == "guest IP" || what == "IP");
    if (sources.count(what) != 0) { return hex(is_guests ? target(in) : s.from(in)); }
    if (what == "RangeBase") { return "1000"; }
    if (what == "RangeLimit+1") { return "2000"; }
    if (targets.count(what) != 0) { return hex(target(in)); }
    if (spaces.count(what) != 0) { return hex(cr3_new); }
    if (what == "FUPonPTW") { return in.with_fup ? "1" : "0"; }
    return any.count(what) != 0 ? "?" : what;
}

/// True when two arguments are equal. `IP=0` and `INTR:E` are compared part by part.
inline auto is_argument(std::string const& wanted, std::string const& got, combination const& in,
                        scene const& s) -> bool {
    for (char const sign : {'=', ':'}) {
        auto const here = wanted.find(sign);
        if (here == std::string::npos) { continue; }
        auto const there = got.find(sign);
        auto const name = wanted.substr(0, here);
        return there != std::string::npos && (name == "id" || name == got.substr(0, there)) &&
               is_argument(wanted.substr(here + 1), got.substr(there + 1), in, s);
    }
    auto const value = value_of(wanted, in, s);
    return value == "?" || value == got;
}

struct packet_text {
    std::string name;
    bool has_arguments = false;
    std::vector<std::string> arguments;
};
inline auto parts_of(std::string const& packet) -> packet_text {
    auto const open = packet.find('(');
    if (open == std::string::npos) { return {packet, false, {}}; }
    auto const inside = packet.substr(open + 1, packet.size() - open - 2);
    return {packet.substr(0, open), true,
            inside.empty() ? std::vector<std::string>{} : split(inside, ',')};
}

/// The TNT bits that are pending before an operation.
inline auto held(combination const& in, scene const& s) -> std::string {
    return s.fills ? "10110" : in.pending ? "10" : "";
}

/// True when a packet matches an item.
inline auto is_item(std::string const& item, std::string const& packet,
                    std::map<std::string, std::string> const& optional, combination const& in,
                    scene const& s) -> bool {
    auto wanted = parts_of(item);
    auto const got = parts_of(packet);
    if (wanted.name != got.name) { return false; }
    if (!wanted.has_arguments) { return true; }
    if (wanted.name == "TNT" && wanted.arguments[0] == "pending") {
        return packet == "TNT(" + held(in, s) + ")";
    }
    if (wanted.name == "TNT" && wanted.arguments[0] == "full") {
        return packet.size() == std::string{"TNT(111111)"}.size();
    }
    if (wanted.name == "PIP" && wanted.arguments.size() == 1) {
        bool const visible = optional.count("NR") != 0 && in.guest && !in.conceal;
        wanted.arguments.push_back(visible ? "NR=1" : "NR=0");
    }
    if (wanted.name == "EVD" && wanted.arguments[0] == "PFA:cr2") { wanted.arguments[0] = "PFA:v"; }
    bool const is_shorter = wanted.name == "MWAIT" && wanted.arguments.size() == 1;
    if (wanted.arguments.size() != got.arguments.size() && !is_shorter) { return false; }
    for (std::size_t i = 0; i < wanted.arguments.size(); ++i) {
        if (!is_argument(wanted.arguments[i], got.arguments[i], in, s)) { return false; }
    }
    return true;
}

inline auto applies(row const& of, combination const& in) -> bool;

/// One expansion of a row: its items, and the conditions of items with `?`.
struct expansion {
    std::vector<std::string> items;
    std::map<std::string, std::string> optional;
};

/// All expansions of a row, including the rows that it references.
inline auto expansions(row const& of, combination const& in) -> std::vector<expansion>;

/// The expansions of the reference `@NAME`: a row, or the rows of a group that apply.
inline auto referenced(std::string const& name, combination const& in) -> std::vector<expansion> {
    if (name.back() != '*') {
        // PacketByteCnt selects the row.
        bool const counted = name == "S50-2a" || name == "S50-2d";
        bool const fresh = name == "S50-2b" || name == "S50-2e";
        if ((counted && !in.counted) || (fresh && in.counted)) { return {}; }
        return expansions(row_of(name), in);
    }
    std::vector<expansion> all;
    auto const group = name.substr(0, name.size() - 1);
    for (auto const& one : all_rows()) {
        bool const belongs = one.id.substr(0, group.size()) == group && !one.cannot_happen &&
                             one.packets.size() < 9;
        if (!belongs || !applies(one, in) || one.id == "S50-2e-printed") { continue; }
        for (auto const& each : expansions(one, in)) { all.push_back(each); }
    }
    return all;
}
inline auto expansions(row const& of, combination const& in) -> std::vector<expansion> {
    std::vector<expansion> all{{{}, of.optional}};
    if (of.conditions.count("NR") != 0) { all[0].optional["NR"] = "OS"; }
    for (auto const& item : of.packets) {
        std::vector<expansion> more;
        for (auto const& choice : split(item, '|')) {
            std::vector<expansion> tails{{{choice}, {}}};
            if (choice[0] == '@') {
                bool const may_miss = choice.back() == '?';
                tails = referenced(choice.substr(1, choice.size() - (may_miss ? 2 : 1)), in);
                if (may_miss) { tails.push_back({}); }
            }
            for (auto const& head : all) {
                for (auto const& tail : tails) {
                    auto both = head;
                    both.items.insert(both.items.end(), tail.items.begin(), tail.items.end());
                    both.optional.insert(tail.optional.begin(), tail.optional.end());
                    more.push_back(both);
                }
            }
        }
        all = more;
    }
    return all;
}

/// True when packets match the items from index `item` on. An item with `?` must be present when
/// its condition holds; without a condition it is optional.
inline auto match(std::vector<std::string> const& items, std::size_t item,
                  std::vector<std::string> const& packets, std::size_t packet,
                  std::map<std::string, std::string> const& optional, combination const& in,
                  scene const& s) -> bool {
    if (item == items.size()) { return packet == packets.size(); }
    auto text = items[item];
    bool const may_miss = text.back() == '?';
    if (may_miss) { text.pop_back(); }
    bool const is_group = text == "PSB+";
    bool const repeats = text.back() == '+' && !is_group;
    if (repeats) { text.pop_back(); }
    auto const rest = [&](std::size_t from, std::size_t to) {
        return match(items, from, packets, to, optional, in, s);
    };
    bool must = !may_miss;
    bool must_not = false;
    if (may_miss) {
        auto const found = optional.find(parts_of(text).name);
        if (found != optional.end() && found->second != "unconfirmed") {
            must = holds(found->second, in);
            must_not = !must;
        }
    }
    if (!must && rest(item + 1, packet)) { return true; }
    if (is_group && !must_not) {
        if (packet == packets.size() || packets[packet] != "PSB") { return false; }
        auto const end = std::find(packets.begin(), packets.end(), "PSBEND");
        return end != packets.end() &&
               rest(item + 1, static_cast<std::size_t>(end - packets.begin()) + 1);
    }
    if (must_not || packet == packets.size() || !is_item(text, packets[packet], optional, in, s)) {
        return false;
    }
    return rest(item + 1, packet + 1) || (repeats && rest(item, packet + 1));
}

/// True when a row applies to a combination.
inline auto applies(row const& of, combination const& in) -> bool {
    for (auto const& [key, value] : of.conditions) {
        if (value == "*") { continue; }
        bool const one = value == "1";
        bool met = true;
        if (key == "pkt0" || key == "packeten") {
            met = in.pkt0() == one;
        } else if (key == "pkt1") {
            met = in.pkt1() == one;
        } else if (key == "ctx1") {
            met = in.c1 == one;
        } else if (key == "ctx") {
            met = in.c0 == one;
        } else if (key == "filter") {
            met = in.f0 == one;
        } else if (key == "branchen") {
            met = in.branch == one;
        } else if (key == "OS") {
            met = in.os == one;
        } else if (key == "ptwen") {
            met = in.ptwen == one;
        } else if (key == "conceal" || key == "conceal_vm_exits" || key == "conceal_vm_entries") {
            met = in.conceal == one;
        } else if (key == "cond") {
            met = holds(value, in);
        }
        if (!met) { return false; }
    }
    return true;
}

/// True when packets match an expansion of a row.
inline auto fit(std::vector<std::string> const& packets, row const& of, combination const& in,
                scene const& s) -> bool {
    // Conditions whose meaning depends on the scene.
    auto const meaning = [&](std::string const& condition) -> std::string {
        constexpr auto always = "ctx|!ctx";
        constexpr auto never = "ctx&!ctx";
        if (condition == "asynchronous") { return s.is_asynchronous ? always : never; }
        if (condition == "abort") { return s.is_abort ? always : never; }
        if (condition == "vmcs_changed") { return never; }
        if (condition == "psb_due") { return "tnt_pending"; }
        return condition == "packeten" ? "ctx&filter&branchen" : condition;
    };
    for (auto each : expansions(of, in)) {
        for (auto& [name, condition] : each.optional) { condition = meaning(condition); }
        std::size_t const tail = s.only_tail && packets.size() > each.items.size()
                                     ? packets.size() - each.items.size()
                                     : 0;
        if (match(each.items, 0, packets, tail, each.optional, in, s)) { return true; }
    }
    return false;
}

}  // namespace ptspec::test::scenarios
