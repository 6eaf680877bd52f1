// SPDX-License-Identifier: BSL-1.0
// Random mixtures of OVF, PSB+, FUP and other packets, without errata and with those about OVFs,
// against a reference that sees all packets of a stream at once. Environment: PTSPEC_OVERFLOWS, the
// number of streams; PTSPEC_OVERFLOWS_FIRST, the first seed.
#include <ptspec/trace/events.hpp>

#include <doctest/doctest.h>
#include <support/chunks.hpp>
#include <support/how_many.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace ptspec;
using trace::event_type;

namespace {

/// A packet, or a whole PSB+.
enum class token : uint8_t { ovf, psb_on, psb_off, fup, tip, pge, pgd, tnt, pip, stop, mtc, pad };
constexpr unsigned tokens = 12;

struct symbol {
    token what;
    uint64_t ip;  ///< of PSB+, FUP, TIP and TIP.PGE
};
using symbols = std::vector<symbol>;
using lines = std::vector<std::string>;

auto hex(uint64_t value) -> std::string {
    char room[20];
    (void)std::snprintf(room, sizeof room, "%llx", static_cast<unsigned long long>(value));
    return room;
}
auto at(char const* name, uint64_t ip) -> std::string { return name + ("@" + hex(ip)); }

// ------------------------------------------------------------------------------- the generator

auto random_symbols(std::mt19937_64& random) -> symbols {
    // Most are the packets of an overflow; some streams have few others.
    std::vector<unsigned> weights(tokens);
    for (auto& one : weights) { one = static_cast<unsigned>(random() % 5); }
    weights[0] += 3;
    weights[1] += 2;
    weights[3] += 2;
    std::discrete_distribution<unsigned> pick(weights.begin(), weights.end());
    symbols made{{token::psb_on, 0x1000}};
    auto const count = 4 + random() % (random() % 4 == 0 ? 100 : 20);
    while (made.size() < count) {
        made.push_back({static_cast<token>(pick(random)), 0x1000 + random() % 0x7000});
    }
    return made;
}

auto bytes_of(symbols const& all) -> std::vector<uint8_t> {
    std::vector<uint8_t> bytes;
    auto const add = [&](std::initializer_list<unsigned> some) {
        for (unsigned const one : some) { bytes.push_back(static_cast<uint8_t>(one)); }
    };
    auto const add_ip = [&](unsigned opcode, uint64_t ip) {  // 48 bits, sign-extended
        add({opcode | 3 << 5});
        for (unsigned i = 0; i < 6; ++i) { add({static_cast<unsigned>(ip >> 8 * i & 0xFF)}); }
    };
    auto const add_psb = [&] {
        for (unsigned i = 0; i < 8; ++i) { add({0x02, 0x82}); }
    };
    for (auto const& one : all) {
        switch (one.what) {
            case token::ovf: add({0x02, 0xF3}); break;
            case token::psb_on:
                add_psb();
                add({0x99, 0x01});
                add_ip(0x1D, one.ip);
                add({0x02, 0x23});
                break;
            case token::psb_off:
                add_psb();
                add({0x02, 0x23});
                break;
            case token::fup: add_ip(0x1D, one.ip); break;
            case token::tip: add_ip(0x0D, one.ip); break;
            case token::pge: add_ip(0x11, one.ip); break;
            case token::pgd: add({0x01}); break;
            case token::tnt: add({0x06}); break;
            case token::pip: add({0x02, 0x43, 0x00, 0xA0, 0, 0, 0, 0}); break;
            case token::stop: add({0x02, 0x83}); break;
            case token::mtc: add({0x59, 0x01}); break;
            case token::pad: add({0x00}); break;
        }
    }
    return bytes;
}

// ------------------------------------------------------------------------------- the reference

/// What the packets after an OVF say about it. Source: PKT-152, PKT-153, GEN-227, GEN-228, GEN-343
/// and the errata SKD010, APL11 and APL12.
struct reference {
    symbols const& all;
    cpu::quirk_set quirks;

    bool skd010 = quirks.has(cpu::quirk::skd010);
    bool apl11 = quirks.has(cpu::quirk::apl11);
    bool apl12 = quirks.has(cpu::quirk::apl12);

    /// What is known before all packets are seen one by one.
    struct psb_resume {
        bool is_damage;
    };
    std::map<size_t, psb_resume> at_psb{};  ///< PSB+s at whose IP tracing resumed
    enum class role : uint8_t { resumes, spurious };
    std::map<size_t, role> fups{};     ///< FUPs of OVFs
    std::map<size_t, bool> missing{};  ///< packets before which a FUP is missing: GEN-227
    std::map<size_t, bool> told{};     ///< those for which the PSB+ has the damage

    static auto is_timing(token one) -> bool { return one == token::mtc || one == token::pad; }
    static auto is_branch(token one) -> bool {
        return one == token::tnt || one == token::tip || one == token::pgd;
    }
    auto next(size_t from, auto const& holds) const -> size_t {
        while (from < all.size() && !holds(all[from].what)) { ++from; }
        return from;
    }
    auto what(size_t i) const -> std::optional<token> {
        return i < all.size() ? std::optional{all[i].what} : std::nullopt;
    }

    /// APL12: TIP.PGE, TraceStop or a PSB+ without FUP before TNT, TIP and TIP.PGD.
    auto is_spurious(size_t fup) const -> bool {
        size_t const i = next(fup + 1, [](token one) {
            return is_branch(one) || one == token::pge || one == token::stop ||
                   one == token::psb_off;
        });
        return apl12 && what(i) && !is_branch(*what(i));
    }
    /// Decides about the OVF at `ovf`.
    void decide(size_t ovf) {
        std::optional<size_t> psb;  // the first PSB+ with FUP
        bool only_timing = true;    // and PSB+s since the OVF
        bool opens_event = false;
        for (size_t i = ovf + 1; i < all.size(); ++i) {
            token const one = all[i].what;
            if (is_timing(one)) { continue; }
            if (one == token::psb_on) {
                if (!psb && only_timing) { psb = i; }
                continue;
            }
            if (one == token::pip) {
                if (!psb) { return; }  // PKT-153: tracing is off
                only_timing = false;
                continue;
            }
            if (one == token::fup && only_timing) {
                size_t const end = next(i + 1,
                                        [](token t) { return !is_timing(t) && t != token::pip; });
                bool const is_event = psb && skd010 &&
                                      (what(end) == token::tip || what(end) == token::pgd);
                if (is_event) {
                    at_psb[*psb] = {false};
                } else {
                    fups[i] = is_spurious(i) ? role::spurious : role::resumes;
                }
                return;
            }
            if (one == token::fup) {
                opens_event = true;
                continue;
            }
            if (one == token::tnt && opens_event) {  // PKT-077
                at_psb[*psb] = {false};
                return;
            }
            if (is_branch(one)) {
                bool const replaces_fup = only_timing && one == token::pgd && apl11 && !skd010;
                if (replaces_fup) { return; }
                missing[i] = !skd010;
                if (psb) {
                    at_psb[*psb] = {!skd010};
                    told[i] = !skd010;
                    missing[i] = false;
                }
                return;
            }
            return;  // OVF, TIP.PGE, TraceStop, PSB+ without FUP
        }
    }

    enum class flow : uint8_t { unknown, off, entering, on };
    flow now = flow::unknown;
    bool lost = true;         ///< branches are at unknown IPs
    bool overflow = false;    ///< nothing but timing packets and PSB+s since an OVF
    bool by_psb = false;      ///< and then a PSB+ with FUP, and perhaps PIPs
    bool believed = false;    ///< APL12: a FUP that a later packet may refute
    bool must_enter = false;  ///< a PSB+ with FUP came while tracing was off: GEN-176
    bool stopped = false;     ///< the last packet is a TraceStop: GEN-020
    lines out{};
    bool in_event = false;  ///< an asynchronous event is not complete
    bool is_aside = false;  ///< a PSB+ came after its packets: GEN-290
    uint64_t event_ip = 0;
    lines event{};  ///< its lines that were not returned

    void flush_event() {
        out.insert(out.end(), event.begin(), event.end());
        event.clear();
        is_aside = false;
    }
    void begin_event(uint64_t ip) {
        in_event = true;
        event_ip = ip;
        event = {at("async", ip)};
    }
    void end_event(char const* name, std::string const& to) {
        if (event.empty() || !event[0].starts_with("async")) {
            event.insert(event.begin(), name + to);
        } else {
            event[0] = at(name, event_ip) + to;
        }
        for (size_t i = 1; i < event.size(); ++i) {
            if (!to.empty()) { event[i] += "@" + to.substr(1); }
        }
        flush_event();
        in_event = false;
    }
    /// Its events wait for the end of an INIT, if they fit.
    void set_event_aside() {
        if (!in_event || is_aside) { return; }
        if (event.size() <= 2) {
            is_aside = true;
        } else {
            flush_event();
        }
    }
    /// A packet violates one rule at most: the first of these.
    auto break_event() -> char const* {
        char const* const broken = in_event ? "PKT077" : nullptr;
        flush_event();
        in_event = false;
        return broken;
    }
    auto break_entry() -> char const* {
        char const* const broken = must_enter ? "GEN176" : nullptr;
        must_enter = false;
        return broken;
    }
    auto break_stop() -> char const* {
        char const* const broken = stopped ? "GEN020" : nullptr;
        stopped = false;
        return broken;
    }
    void report(std::initializer_list<char const*> broken) {
        for (char const* const one : broken) {
            if (one != nullptr) { return out.push_back(std::string{"damage!"} + one); }
        }
    }
    void set(flow value) {
        now = value;
        must_enter = false;
    }
    void confirm() {
        if (now == flow::entering) { set(flow::on); }
        overflow = by_psb = believed = false;
    }
    void refute() {
        if (by_psb || believed) { set(flow::off); }
        by_psb = believed = false;
    }

    void take(size_t i) {
        auto const [one, ip] = all[i];
        bool const is_missing = missing.contains(i);
        char const* const no_fup = is_missing && missing[i] ? "GEN227" : nullptr;
        bool const is_off = now == flow::off;
        switch (one) {
            case token::mtc:
            case token::pad: return;
            case token::ovf:
                flush_event();
                in_event = by_psb = stopped = false;
                overflow = true;
                set(flow::unknown);
                out.push_back("overflow");
                return;
            case token::psb_on: {
                // In 64-bit code it is not in an INIT: GEN-290. The FUP may be that of the OVF.
                bool const breaks = in_event && !by_psb;
                if (breaks) { report({break_event()}); }
                set_event_aside();
                stopped = false;
                out.push_back(at("psb", ip));
                if (at_psb.contains(i)) {
                    if (at_psb[i].is_damage) { report({"GEN227"}); }
                    out.push_back(at("resumed", ip));
                }
                lost = lost && now == flow::on && !breaks;
                if (overflow) {
                    by_psb = true;
                    set(flow::entering);
                } else if (now != flow::on) {
                    bool const was_off = is_off || must_enter;
                    set(flow::entering);
                    must_enter = was_off;
                }
                return;
            }
            case token::psb_off: {
                set_event_aside();
                out.push_back("psb");
                lost = overflow = by_psb = believed = stopped = false;
                set(flow::off);
                return;
            }
            case token::pip:
                is_aside = false;
                report({break_stop()});
                (in_event ? event : out).push_back("paging");
                if (overflow && !by_psb) { set(flow::off); }
                overflow = false;
                return;
            case token::stop: {
                refute();
                auto const* const broken = break_event();
                bool const was_on = now == flow::on || now == flow::entering;
                report({broken, break_entry(), break_stop(), was_on ? "GEN090" : nullptr});
                out.push_back("stop");
                overflow = lost = false;
                set(flow::off);
                stopped = true;
                return;
            }
            case token::fup: {
                if (fups.contains(i)) {
                    overflow = by_psb = lost = false;
                    believed = believed || apl12;
                    set(apl12 ? flow::entering : flow::on);
                    if (fups[i] == role::resumes) { out.push_back(at("resumed", ip)); }
                    return;
                }
                auto const* const broken = break_event();
                report({broken, break_entry(), break_stop(), is_off ? "GEN342" : nullptr});
                if (is_off) { set(flow::on); }
                if (!believed && !by_psb) { confirm(); }
                return begin_event(ip);
            }
            case token::tnt: {
                bool const breaks = in_event;
                auto const* const broken = break_event();
                bool const knows_ip = by_psb || !is_missing;
                report({broken, break_entry(), told[i] ? nullptr : no_fup, break_stop(),
                        is_off ? "GEN105" : nullptr});
                confirm();
                if (is_off || breaks || !knows_ip) {
                    set(flow::unknown);
                    lost = true;
                }
                out.push_back(lost ? "branches?" : "branches");
                return;
            }
            case token::tip: {
                bool const is_known = !lost && !is_off && now != flow::unknown;
                if (in_event) {
                    report({break_entry()});
                    end_event("async", ">" + hex(ip));
                } else {
                    report({break_entry(), told[i] ? nullptr : no_fup, break_stop(),
                            is_off ? "GEN105" : nullptr});
                    out.push_back(is_known ? "indirect>" + hex(ip) : at("resumed", ip));
                }
                confirm();
                set(flow::on);
                lost = false;
                return;
            }
            case token::pge: {
                refute();
                auto const* const broken = break_event();
                report({broken, break_stop(), now == flow::on ? "GEN100" : nullptr});
                out.push_back(at("enabled", ip));
                overflow = lost = false;
                set(flow::on);
                return;
            }
            case token::pgd:
                if (in_event) {
                    report({break_entry()});
                    end_event("async_disabled", "");
                } else {
                    report({break_entry(), told[i] ? nullptr : no_fup, break_stop(),
                            is_off ? "GEN101" : nullptr});
                    out.push_back("disabled");
                }
                confirm();
                set(flow::off);
                lost = false;
                return;
        }
    }

    auto events() -> lines {
        for (size_t i = 0; i < all.size(); ++i) {
            if (all[i].what == token::ovf) { decide(i); }
        }
        for (size_t i = 0; i < all.size(); ++i) { take(i); }
        flush_event();
        return out;
    }
};

// ------------------------------------------------------------------------------- the readers

auto text_of(trace::event const& e) -> std::string {
    auto const name = [&]() -> std::string {
        switch (e.what) {
            case event_type::branches:
                return e.enabled == trace::tracing::unknown ? "branches?" : "branches";
            case event_type::indirect_branch: return "indirect";
            case event_type::enabled: return "enabled";
            case event_type::disabled: return "disabled";
            case event_type::async_branch: return "async";
            case event_type::async_disabled: return "async_disabled";
            case event_type::paging: return "paging";
            case event_type::overflow: return "overflow";
            case event_type::resumed: return "resumed";
            case event_type::trace_stop: return "stop";
            case event_type::psb: return "psb";
            case event_type::damage: {
                rule_id const id{e.broken};
                std::string text = "damage!";
                for (char const* one = id.letters; *one != 0; ++one) {
                    if (*one != '-') { text += *one; }
                }
                return text;
            }
            default: return "other";
        }
    }();
    return name + (e.has_ip ? "@" + hex(e.ip) : "") + (e.has_to ? ">" + hex(e.to) : "");
}

/// The events of bytes that come in chunks of `size` bytes.
auto events_of(std::vector<uint8_t> const& bytes, size_t size, cpu::quirk_set quirks) -> lines {
    trace::event_reader<> from{{}, quirks};
    lines found;
    test::chunks rest{byte_view{bytes}};
    while (true) {
        auto const& e = from.next();
        if (e.what == event_type::end) { return found; }
        if (e.what == event_type::need_input) {
            if (!rest.feed(from, size)) { return {"feed"}; }
        } else if (e.what != event_type::exec_mode) {
            found.push_back(text_of(e));
        }
    }
}

auto joined(lines const& all) -> std::string {
    std::string text;
    for (auto const& one : all) { text += one + " "; }
    return text;
}
/// The events in their order; if they do not fit in the room for held events, `resumed` and the
/// damage that precedes it may come later: they are the last here.
auto in_order(lines const& all, bool fits) -> lines {
    lines found;
    for (bool const takes_late : {false, true}) {
        for (auto const& one : all) {
            bool const is_late = one.starts_with("resumed") || one == "damage!GEN227";
            if ((is_late && !fits) == takes_late) { found.push_back(one); }
        }
    }
    return found;
}
auto joined(symbols const& all) -> std::string {
    constexpr char const* names[tokens] = {"OVF", "PSB+", "PSB", "FUP",  "TIP", "PGE",
                                           "PGD", "TNT",  "PIP", "STOP", "MTC", "PAD"};
    std::string text;
    for (auto const& one : all) {
        text += std::string{names[underlying(one.what)]} + "(" + hex(one.ip) + ") ";
    }
    return text;
}

}  // namespace

TEST_CASE("where tracing resumes after an OVF, in any mixture of packets and in chunks of any size "
          "(PKT-152,153, GEN-227,228,343)") {
    using cpu::quirk;
    cpu::quirk_set const processors[] = {
        {},
        cpu::quirks(quirk::skd010),
        cpu::quirks(quirk::apl12),
        cpu::quirks(quirk::apl11),
        cpu::quirks(quirk::apl12, quirk::apl11),
        cpu::quirks(quirk::bdm70, quirk::skd007, quirk::skd022, quirk::skd010, quirk::skl014),
    };
    uint64_t const first = test::number_from("PTSPEC_OVERFLOWS_FIRST", 1);
    uint64_t const count = test::number_from("PTSPEC_OVERFLOWS", 20'000);
    uint64_t resumed_at_psb = 0;
    uint64_t spurious = 0;
    for (uint64_t seed = first; seed < first + count; ++seed) {
        std::mt19937_64 random{seed};
        symbols const all = random_symbols(random);
        auto const quirks = processors[random() % std::size(processors)];
        auto const bytes = bytes_of(all);
        reference model{all, quirks};
        lines const expected = model.events();
        resumed_at_psb += model.at_psb.size();
        for (auto const& [place, role] : model.fups) {
            spurious += role == reference::role::spurious;
        }
        INFO("seed " << seed << ", quirks " << quirks.bits << ": " << joined(all));
        bool const fits = expected.size() <= 26;
        auto const whole = events_of(bytes, bytes.size(), quirks);
        REQUIRE(joined(in_order(whole, fits)) == joined(in_order(expected, fits)));
        for (size_t const size : {size_t{1}, 1 + size_t{random() % 40}}) {
            INFO("chunks of " << size);
            REQUIRE(joined(events_of(bytes, size, quirks)) == joined(whole));
        }
    }
    // The rare cases are not rare.
    CHECK(resumed_at_psb > count / 10);
    CHECK(spurious > count / 20);
}
