// SPDX-License-Identifier: BSL-1.0
#pragma once

// Rows of the form of tests/spec/notation.md, section 4: a setup and an operation in words.

#include "machine.hpp"

#include <common/pc_notation.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/driver/drain.hpp>
#include <ptspec/driver/enable.hpp>
#include <ptspec/driver/topa_pmi.hpp>
#include <ptspec/driver/triage.hpp>

#include <algorithm>
#include <optional>

namespace msr_plan {

using pc_notation::cap_a;
using pc_notation::split;
using pc_notation::starts_with;
using pc_notation::without_comments;

/// What a setup says.
struct setup {
    cpu::capabilities caps = cap_a();
    access::msr_state msrs{};
    bool in_vmx = false;
    bool is_range = false;
    bool wrapped = false;
    std::vector<topa::region> regions{};
    bool has_end = true;  // END after the regions
    bool starts_with_end = false;
    std::optional<std::uint64_t> tsc{}, ctc{}, fc{};
    std::vector<std::uint32_t> stated{0x570, 0x38E};  // MSRs whose value the row states

    setup() { msrs.output_base = {table_address}; }

    auto region(std::size_t n) -> topa::region& {
        if (n > 510) { throw tool::failure{"a table has at most 511 regions"}; }
        while (regions.size() <= n) {
            regions.push_back(
                {region_address + 0x1'0000 * regions.size(), topa::region_size::size_64K});
        }
        return regions[n];
    }
};

/// The number after R.
inline auto region_number(std::string_view text) -> std::size_t {
    if (text.size() < 2 || text[0] != 'R') {
        throw tool::failure{tool::quoted(text) + " is not a region"};
    }
    return static_cast<std::size_t>(number_of(text.substr(1), 10));
}

/// `name=v` of a register, a capability or a bit. False: none of these.
inline auto assign(setup& to, std::string const& name, std::string const& value) -> bool {
    auto& msrs = to.msrs;
    auto const bit_of = [&](auto& word, std::string_view prefix) {
        if (!starts_with(name, prefix) || name.back() != ']') { return false; }
        auto const bit = number_of(
            std::string_view{name}.substr(prefix.size(), name.size() - prefix.size() - 1), 10);
        if (bit >= 64) { throw tool::failure{"a word has 64 bits"}; }
        auto const mask = std::uint64_t{1} << bit;
        using raw = bare_t<decltype(word.raw)>;
        word.raw = static_cast<raw>(number_of(value) != 0 ? word.raw | mask : word.raw & ~mask);
        return true;
    };
    if (name == "TraceEn") {
        msrs.ctl = {number_of(value) != 0 ? 0x250D : 0x250C};
        return true;
    }
    if (bit_of(to.caps.leaf_14_0_ebx, "EBX[") || bit_of(to.caps.leaf_14_0_ecx, "ECX[") ||
        bit_of(to.caps.vmx_misc, "485[") || bit_of(msrs.ctl, "CTL[") ||
        bit_of(to.caps.leaf_07_0_ebx, "CPUID.07H.0:EBX[") || starts_with(name, "XSS[")) {
        return true;
    }
    if (name == "ECX") {
        to.caps.leaf_14_0_ecx = {static_cast<std::uint32_t>(number_of(value))};
        return true;
    }
    if (name == "EBX") {
        to.caps.leaf_14_0_ebx = {static_cast<std::uint32_t>(number_of(value))};
        return true;
    }
    if (name == "TSC") {
        to.tsc = number_of(value);
        return true;
    }
    if (name == "TMA CTC") {  // TMA CTC=3456 FC=28
        auto const fields = split(value, " FC=");
        if (fields.size() != 2) { return false; }
        to.ctc = number_of(fields[0]);
        to.fc = number_of(fields[1]);
        return true;
    }
    if (name == "MTCFreq") {
        msrs.ctl = msrs.ctl.with(reg::ia32_rtit_ctl::MTCFreq{wrapped{number_of(value)}});
        return true;
    }
    if (name.size() != 3 || name.find_first_not_of("0123456789ABCDEF") != std::string::npos) {
        return false;
    }
    auto const index = static_cast<std::uint32_t>(number_of(name));
    if (!access::is_pt_msr(index)) { return false; }
    access::set_raw(msrs, index, number_of(value));
    to.stated.push_back(index);
    return true;
}

/// Reads one item of a setup.
inline void read_setup_item(setup& to, std::string const& item) {
    std::size_t const equals = item.find('=');
    auto const words = split(item, " ");
    if (starts_with(item, "table at ")) {
        to.msrs.output_base = {number_of(item.substr(9))};
    } else if (item == "three 64 KB regions R0..R2 + END") {
        (void)to.region(2);
    } else if (item == "table of PC-12") {
        (void)to.region(2);
    } else if (item == "after PC-14") {
        to.region(1).stop = true;
        to.msrs.ctl = {0x250D};
        to.msrs.status = {0x20};
        to.msrs.output_mask_ptrs = {0x0001'0000'0000'00FF};
    } else if (item == "TraceStop hit") {
        to.msrs.ctl = {0x250D};
        to.msrs.status = {0x20};
        to.stated.push_back(0x571);
    } else if (item == "tracing") {
        to.msrs.ctl = {0x250D};
    } else if (item == "context out then in") {  // its PacketByteCnt is 300H
        to.msrs.ctl = {0x250D};
        to.msrs.status = {std::uint64_t{0x300} << 32};
        to.stated.push_back(0x571);
    } else if (item == "in VMX operation") {
        to.in_vmx = true;
    } else if (item == "known wrapped") {
        to.wrapped = true;
    } else if (item == "entry 0 = END") {
        to.starts_with_end = true;
    } else if (starts_with(item, "single range base ")) {
        to.is_range = true;
        to.msrs.output_base = {number_of(item.substr(18))};
        to.msrs.output_mask_ptrs = {0xFFFF};
    } else if (starts_with(item, "mask ")) {
        to.msrs.output_mask_ptrs = {number_of(item.substr(5)) | 0x7F};
    } else if (words.size() == 5 && words[1] == "KB" && words[2] == "region" &&
               words[3] == "at") {  // 64 KB region at 20000000
        to.is_range = true;
        auto const made = single_range::build(
            {.base = number_of(words[4]), .bytes = number_of(words[0], 10) * 1024});
        if (!made) { throw tool::failure{tool::quoted(item) + " is no range"}; }
        to.msrs.output_base = made.base;
        to.msrs.output_mask_ptrs = made.pointers;
    } else if (words.size() == 6 && words[1] == "base" && words[3] == "size") {
        auto& region = to.region(region_number(words[0]));  // R1 base 10001000 size 64 KB
        region.base = number_of(words[2]);
        region.size = region_size_of(number_of(words[4], 10) * 1024);
    } else if (item == "R0,R1 64 KB") {
        (void)to.region(1);
    } else if (words.size() == 3 && words[1] == "has") {  // R0 has INT
        auto& region = to.region(region_number(words[0]));
        region.interrupt = words[2].find("INT") != std::string::npos;
        region.stop = words[2].find("STOP") != std::string::npos;
    } else if (words.size() == 2 && (words[1] == "STOP" || words[1] == "INT")) {  // R1 STOP
        auto& region = to.region(region_number(words[0]));
        (words[1] == "STOP" ? region.stop : region.interrupt) = true;
    } else if (equals == std::string::npos ||
               !assign(to, item.substr(0, equals), item.substr(equals + 1))) {
        throw tool::failure{"setup: " + tool::quoted(item) + " is not understood"};
    }
}

inline auto setup_of(std::string_view cell) -> setup {
    setup made;
    for (auto const& part : split(without_comments(cell), ";")) {
        for (auto const& item : split(part, ", ")) { read_setup_item(made, item); }
    }
    return made;
}

// ------------------------------------------------------------------------------------ results

inline auto join(std::vector<std::string> const& items) -> std::string {
    std::string line;
    for (auto const& one : items) { line += (line.empty() ? "" : "; ") + one; }
    return line;
}

inline auto interval(std::uint64_t from, std::uint64_t count) -> std::string {
    return "[" + hex(from) + "," + hex(from + count) + ")";
}

/// The registers and flags that a row may claim.
inline auto claims_of(access::msr_state const& now) -> std::vector<std::string> {
    using status = reg::ia32_rtit_status;
    return {"Error=" + hex(now.status.get<status::Error>()),
            "Stopped=" + hex(now.status.get<status::Stopped>()),
            "TriggerEn=" + hex(now.status.get<status::TriggerEn>()),
            "TraceEn=" + hex(now.ctl.get<reg::ia32_rtit_ctl::TraceEn>()),
            "560=" + word(now.output_base.raw),
            "561=" + word(now.output_mask_ptrs.raw),
            "570=" + word(now.ctl.raw),
            "571=" + word(now.status.raw)};
}

/// Runs one row. The list of regions and the tables are in this object, which does not move.
class row {
public:
    row(setup from, std::string_view operation) : from_{std::move(from)} {
        for (auto const& part : split(without_comments(operation), ";")) {
            operation_.push_back(part);
        }
        if (operation_.empty()) { throw tool::failure{"an empty operation"}; }
        place_tables();
    }

    /// What the column `expected` holds. For a state, all claims that are known.
    auto run() -> std::string {
        if (is_probe()) { return probe(); }
        std::string const& first = operation_.front();
        std::string const name = first.substr(0, first.find(','));
        if (name == "XSAVES RFBM[8]=1") { return xsaves(); }
        if (name == "warm reset") { return warm_reset(); }
        if (starts_with(name, "fill")) { return fill(name); }
        if (name.size() > 12 && name.substr(name.size() - 12) == "h more bytes") {
            return more_bytes(number_of(name.substr(0, name.size() - 12)));
        }
        if (name == "read out") { return read_out(from_.msrs); }
        if (starts_with(name, "next MTC payload ")) { return mtc(number_of(name.substr(17))); }
        bool const is_state = name == "enable" || (starts_with(name, "enable") && from_.is_range &&
                                                   !is_aligned_range());
        return is_state ? enable_on_model() : log(name);
    }

private:
    [[nodiscard]] auto is_aligned_range() const -> bool {
        return single_range::broken_rule(from_.msrs.output_base, from_.msrs.output_mask_ptrs) ==
               rule::none;
    }
    void place_tables() {
        std::uint64_t const base = from_.msrs.output_base.raw;
        if (from_.is_range) { return; }
        if (from_.starts_with_end) {
            memory_.put(base, topa::link_to(base).raw);
            return;
        }
        std::size_t const count = from_.regions.empty() ? 1 : from_.regions.size();
        for (std::size_t i = 0; i < count; ++i) {
            auto const one = from_.region(i);
            memory_.put(base + 8 * i, one.base | std::uint64_t{underlying(one.size)} << 6 |
                                          (one.stop ? 0x10U : 0U) | (one.interrupt ? 4U : 0U));
        }
        memory_.put(base + 8 * count, topa::link_to(base).raw);
    }

    // -------------------------------------------------------------------------------- probes

    [[nodiscard]] auto is_probe() const -> bool {
        for (auto const& item : operation_) {
            bool const is_access = starts_with(item, "WRMSR(") || starts_with(item, "RDMSR(") ||
                                   item == "XRSTORS RFBM[8]=1";
            if (!is_access) { return false; }
        }
        return true;
    }
    /// The processor with the state of the setup.
    auto make_model() -> model {
        auto state = from_.msrs;
        state.in_vmx_operation = from_.in_vmx;
        if (state.ctl.get<reg::ia32_rtit_ctl::TraceEn>() &&
            !state.status.get<reg::ia32_rtit_status::Stopped>()) {
            state.status = {state.status.raw | 7};
        }
        return model{from_.caps, memory_, tap_, state, {}, 0x1000, as_manual};
    }
    auto probe() -> std::string {
        auto cpu = make_model();
        std::vector<std::string> results;
        for (auto const& item : operation_) {
            if (item == "XRSTORS RFBM[8]=1") {
                results.push_back(cpu.xrstors({}).took_effect() ? "ok" : "#GP");
                continue;
            }
            std::size_t const close = item.find(')');
            if (close == std::string::npos) { throw tool::failure{item + ": without )"}; }
            std::string const inside = item.substr(6, close - 6);
            std::size_t const comma = inside.find(',');
            auto const index = number_of(inside.substr(0, comma));
            if (index > 0xFFFF'FFFF) { throw tool::failure{"an MSR index has 32 bits"}; }
            auto const at = static_cast<std::uint32_t>(index);
            if (starts_with(item, "RDMSR(")) {
                auto const got = cpu.read(at);
                results.push_back(got ? word(got.value) : "#GP");
            } else if (comma == std::string::npos) {
                throw tool::failure{item + ": a WRMSR needs a value"};
            } else {
                bool const done = cpu.write(at, number_of(inside.substr(comma + 1)));
                results.push_back(done ? "ok" : "#GP");
            }
        }
        return join(results);
    }

    // -------------------------------------------------------------------------------- logs

    static auto is_write(driver::logged_access const& one) -> bool {
        return one.what == driver::logged_access::kind::write;
    }
    [[nodiscard]] auto plan() const -> driver::msr_plan {
        auto made = driver::plan_of(from_.msrs);
        made.status = {};
        if (!from_.is_range) { made.output.mask_ptrs = {0x7F}; }
        made.ctl = {from_.is_range ? 0x240D : 0x250D};
        for (auto const& item : operation_) {
            std::size_t const at = item.find("config ");
            if (at != std::string::npos) { made.ctl = {number_of(item.substr(at + 7))}; }
        }
        return made;
    }

    auto log(std::string const& name) -> std::string {
        auto state = from_.msrs;
        bool const starts = starts_with(name, "enable");
        bool const is_known = state.ctl.raw != 0 || starts;
        if (!is_known) { state.ctl = {from_.is_range ? 0x240D : 0x250D}; }
        for (auto const& item : operation_) {
            std::size_t const at = item.find(" reads ");
            if (at == std::string::npos) { continue; }
            auto const index = static_cast<std::uint32_t>(number_of(item.substr(0, at)));
            access::set_raw(state, index, number_of(item.substr(at + 7)));
            from_.stated.push_back(index);
        }
        if (name == "PMI handler") { state.perf_global_status = {std::uint64_t{1} << 55}; }
        plain_msrs port{from_.caps, state};
        driver::recording_port<plain_msrs, 128> to{port};
        std::vector<std::string> results;
        if (starts) {
            (void)driver::enable(to, plan());
        } else if (name == "disable" || name == "disable and locate end") {
            auto const stopped = driver::disable(to);
            from_.stated.push_back(0x560);
            if (name != "disable") { results.push_back("pos=" + hex(position(stopped.output))); }
        } else if (name == "flush") {
            (void)driver::flush(to, state.ctl);
        } else if (name == "resume from the start") {
            (void)driver::restart(to, plan());
        } else if (name == "PMI handler") {
            (void)driver::on_topa_pmi(
                to,
                [&](driver::stopped_trace const&) {
                    to.note("drain");
                    return driver::pmi_decision{};
                },
                [&] { to.note("unmask LVT"); });
        } else if (name == "manual switch") {
            auto const saved = driver::save(to);
            to.note("switch");
            (void)driver::restore(to, saved.state);
        } else if (name == "recover") {
            (void)driver::write(to, reg::ia32_rtit_status{});  // faults: TraceEn is still 1
            (void)driver::recover(to, state.ctl);
        } else if (name == "append regions to table") {
            (void)driver::while_disabled(to, state.ctl, [&] { to.note("edit table"); });
        } else {
            throw tool::failure{"operation: " + tool::quoted(name) + " is not understood"};
        }
        std::vector<std::string> items;
        for (auto one : to) {
            bool const is_stated = std::find(from_.stated.begin(), from_.stated.end(), one.index) !=
                                   from_.stated.end();
            items.push_back(name == "manual switch" && !is_stated && is_write(one)
                                ? "WRMSR(" + hex(one.index) + ",..)"
                                : item_of(one, is_stated));
        }
        items.insert(items.end(), results.begin(), results.end());
        return join(items);
    }

    // -------------------------------------------------------------------------------- states

    [[nodiscard]] auto ring() -> driver::ring {
        auto const& list = from_.regions;
        page_ = {table_address, entries_};
        auto const how = !list.empty() && list.back().stop ? driver::buffer_recipe::stop_on_full
                                                           : driver::buffer_recipe::circular;
        page_.base = from_.msrs.output_base.raw;
        return driver::build_ring(how, list.data(), list.size(), &page_, 1, {{52}, true}).ring;
    }
    auto position(driver::output_buffer const& at) -> std::uint64_t {
        if (from_.is_range) { return at.mask_ptrs.raw >> 32; }
        (void)from_.region(0);
        auto const found = driver::offset_of(ring(), at);
        if (!found) { throw tool::failure{"the position is in no region"}; }
        return found.offset;
    }
    auto read_out(access::msr_state const& now) -> std::string {
        driver::output_buffer const at{now.output_base, now.output_mask_ptrs};
        if (from_.is_range) {
            auto const part = driver::snapshot_of_single_range(at, from_.wrapped);
            std::string const newer = interval(part.second_base, part.second_bytes);
            return "data=" + (part.first_bytes != 0
                                  ? interval(part.first_base, part.first_bytes) + "," + newer
                                  : newer);
        }
        auto const in = ring();
        auto const part = driver::snapshot(in, at, from_.wrapped);
        if (!part) { throw tool::failure{"the position is in no region"}; }
        std::uint64_t const first = in.bytes - part.part.from;
        return "data=" + (part.part.count <= first ? interval(part.part.from, part.part.count)
                                                   : interval(part.part.from, first) + "," +
                                                         interval(0, part.part.count - first));
    }
    auto enable_on_model() -> std::string {
        model cpu{from_.caps, memory_, tap_, {}, 0x1000, as_manual};
        driver::recording_port<model, 64> to{cpu};
        (void)driver::enable(to, plan());
        std::vector<std::string> items;
        for (auto const& one : to) { items.push_back(one.faulted ? "#GP" : "ok"); }
        auto const claims = claims_of(cpu.msrs());
        items.insert(items.end(), claims.begin(), claims.end());
        return join(items);
    }
    /// Writes bytes of trace through the output engine.
    auto write_bytes(std::uint64_t count) -> access::msr_state {
        auto now = from_.msrs;
        now.ctl = {from_.is_range ? 0x240D : 0x250D};
        now.status = {now.status.raw | 7};
        engine::output out;
        if (out.start(from_.caps, now, memory_)) { throw tool::failure{"memory"}; }
        byte_array<4096> const pads{};
        while (count != 0) {
            std::size_t const some = count < 4096 ? static_cast<std::size_t>(count) : 4096;
            (void)out.write(now, memory_, byte_view{pads}.first(some));
            count -= some;
        }
        out.sync(now);
        return now;
    }
    auto fill(std::string const& what) -> std::string {
        std::uint64_t bytes = 0;
        (void)from_.region(0);
        if (what == "fill both" || what == "fill") {
            for (auto const& one : from_.regions) { bytes += topa::bytes_in(one.size); }
        } else if (starts_with(what, "fill R")) {
            std::size_t const last = region_number(what.substr(5));
            for (std::size_t i = 0; i <= last; ++i) {
                bytes += topa::bytes_in(from_.region(i).size);
            }
        } else {
            throw tool::failure{"operation: " + tool::quoted(what) + " is not understood"};
        }
        auto const now = write_bytes(bytes);
        auto items = claims_of(now);
        if (!now.status.get<reg::ia32_rtit_status::Error>()) { items.push_back(read_out(now)); }
        return join(items);
    }
    auto more_bytes(std::uint64_t count) -> std::string {
        if (count > low_bits(32)) { throw tool::failure{"more than 2^32 bytes"}; }
        auto const before = from_.msrs.output_mask_ptrs.raw >> 32;
        auto const now = write_bytes(count);
        auto items = claims_of(now);
        if (from_.is_range) {
            std::uint64_t const base = now.output_base.raw;
            std::uint64_t const size = single_range::mask_of(now.output_mask_ptrs) + 1;
            std::uint64_t const first = size - before < count ? size - before : count;
            std::uint64_t const rest = count - first < size ? count - first : size;
            items.push_back("data=" + interval(base + before, first) +
                            (rest != 0 ? "," + interval(base, rest) : ""));
        }
        return join(items);
    }
    auto xsaves() -> std::string {
        auto cpu = make_model();
        auto const saved = cpu.xsaves();
        if (!saved.took_effect()) { return "#GP"; }
        std::vector<std::string> items;
        for (unsigned i = 0; i < 16; ++i) {
            items.push_back("image+" + hex(8 * i) + "=" + word(saved.image.quadwords[i]));
        }
        auto const claims = claims_of(cpu.msrs());
        items.insert(items.end(), claims.begin(), claims.end());
        return join(items);
    }
    auto warm_reset() -> std::string {
        std::string line;
        for (bool const keeps : {true, false}) {
            auto caps = from_.caps;
            caps.leaf_14_0_ebx = {keeps ? caps.leaf_14_0_ebx.raw | 4U
                                        : caps.leaf_14_0_ebx.raw & ~4U};
            auto const after = access::warm_reset(caps, from_.msrs);
            line += keeps ? "EBX[2]=1: " : " / EBX[2]=0: ";
            std::string claims;
            for (auto const& one : claims_of(after)) {
                claims += (claims.empty() ? "" : ", ") + one;
            }
            line += claims;
        }
        return line;
    }
    /// The time of an MTC. Source: PRG-137.
    auto mtc(std::uint64_t payload) -> std::string {
        if (!from_.tsc || !from_.ctc || !from_.fc || payload > 0xFF) {
            throw tool::failure{
                "the time of an MTC needs TSC, TMA CTC, FC and a payload of 8 bits"};
        }
        auto const shift = static_cast<unsigned>(from_.msrs.ctl.get<reg::ia32_rtit_ctl::MTCFreq>());
        unsigned const bits = shift + 8 < 16 ? shift + 8 : 16;
        std::uint64_t const d = ((payload << shift) - *from_.ctc) & low_bits(bits);
        std::uint64_t const numerator = from_.caps.leaf_15_ebx.raw;
        std::uint64_t const time = *from_.tsc - *from_.fc +
                                   d * numerator / from_.caps.leaf_15_eax.raw;
        return join({"d=" + hex(d), "time=" + hex(time)});
    }

    setup from_;
    std::vector<std::string> operation_;
    sparse_memory memory_{};
    driver::no_tap tap_{};
    topa::entry entries_[512]{};
    driver::table_page page_{};
};

}  // namespace msr_plan
