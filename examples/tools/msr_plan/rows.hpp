// SPDX-License-Identifier: BSL-1.0
#pragma once

// Rows of the form of tests/spec/notation.md, section 4: what a setup says is executed step by step
// on the MSRs and the output of a processor. No packets are generated: `fill` and `write` store
// bytes.

#include "machine.hpp"
#include "../common/msr_script/session.hpp"
#include "../common/pc_notation.hpp"

#include <ptspec/access/pmi.hpp>
#include <ptspec/access/resets.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/driver/switch_context.hpp>
#include <ptspec/driver/detect.hpp>
#include <ptspec/driver/drain.hpp>
#include <ptspec/driver/enable.hpp>
#include <ptspec/driver/guards.hpp>
#include <ptspec/driver/pause.hpp>
#include <ptspec/driver/reset.hpp>
#include <ptspec/driver/topa_pmi.hpp>
#include <ptspec/driver/triage.hpp>

#include <algorithm>
#include <array>
#include <memory>

namespace msr_plan {

using pc_notation::refusal;
using pc_notation::setup;
using pc_notation::words;

inline auto join(std::vector<std::string> const& items, char const* with = "; ") -> std::string {
    std::string line;
    for (auto const& one : items) { line += (line.empty() ? "" : with) + one; }
    return line;
}
inline auto interval(std::uint64_t from, std::uint64_t count) -> std::string {
    return "[" + hex(from) + "," + hex(from + count) + ")";
}

/// The MSRs and the output of a processor, as a port. An access that faults changes nothing.
class row_processor {
public:
    explicit row_processor(msr_script::session& on) : on_{on} {}

    auto read(std::uint32_t index) noexcept -> port_value {
        auto const& caps = on_.of;
        switch (index) {
            case reg::msr_platform_info::address: return {true, caps.platform_info.raw};
            case reg::ia32_perf_capabilities::address: return {true, caps.perf_capabilities.raw};
            case reg::ia32_vmx_misc::address: return {true, caps.vmx_misc.raw};
            case reg::ia32_vmx_procbased_ctls2::address:
                return {true, caps.vmx_procbased_ctls2.raw};
            case reg::ia32_vmx_exit_ctls::address: return {true, caps.vmx_exit_ctls.raw};
            case reg::ia32_vmx_entry_ctls::address: return {true, caps.vmx_entry_ctls.raw};
            default: break;
        }
        auto const got = access::read(caps, on_.now, index);
        return {static_cast<bool>(got), got.value};
    }
    auto write(std::uint32_t index, std::uint64_t value) noexcept -> bool {
        auto const done = access::effect_of_write(on_.of, on_.now, index, value);
        if (done) { on_.apply(done); }
        return static_cast<bool>(done);
    }
    void fence() noexcept {}

private:
    msr_script::session& on_;
};

/// Runs one row.
class row {
public:
    row(setup from, std::string_view operation)
        : from_{std::move(from)}, steps_{pc_notation::items_of(operation)} {
        if (steps_.empty()) { throw refusal{"an empty operation"}; }
        is_log_ = std::any_of(steps_.begin(), steps_.end(), [](std::string const& step) {
            return procedure_of(words{step}) != nullptr;
        });
        on_.of = from_.caps;
        on_.now = from_.msrs;
        for (auto const& one : from_.memory) { (void)on_.memory.put(one.address, one.value); }
        using status = reg::ia32_rtit_status;
        bool const has_ended = on_.now.status.get<status::Stopped>() ||
                               on_.now.status.get<status::Error>();
        if (!on_.now.ctl.get<reg::ia32_rtit_ctl::TraceEn>() || has_ended) { return; }
        on_.now.status = on_.now.status.with(status::TriggerEn{true});
        (void)on_.output.start(on_.of, on_.now, on_.memory, on_.how);
        on_.output.write_back(on_.now);
    }

    /// What the column `expected` holds: the results of the steps, in order.
    auto run() -> std::string {
        for (auto const& step : steps_) {
            try {
                execute(step);
            } catch (refusal const& why) {
                throw refusal{"operation: " + tool::quoted(step) + ": " + why.what()};
            }
        }
        return join(results_, from_.condition.empty() ? "; " : ", ");
    }

private:
    using log_port = simulate::recording_port<row_processor, 128>;
    using procedure = void (*)(row&, words&, log_port&);
    using event = void (*)(row&, words&);

    void say(std::string const& result) { results_.push_back(result); }

    void execute(std::string const& step) {
        words in{step};
        if (step.compare(0, 6, "WRMSR(") == 0 || step.compare(0, 6, "RDMSR(") == 0) {
            return access_msr(step);
        }
        if (auto const run = procedure_of(in)) {
            (void)in.next("a step");
            row_processor port{on_};
            log_port to{port};
            run(*this, in, to);
            in.end();
            for (auto const& one : to) { say(item_of(one, true)); }
            return;
        }
        struct named {
            std::string_view name;
            event run;
        };
        constexpr named all[] = {
            {"XSAVES", [](row& r, words& w) { r.xsaves(w); }},
            {"XRSTORS", [](row& r, words& w) { r.xrstors(w); }},
            {"VMXON", [](row& r, words&) { r.become(access::vmxon(r.on_.of, r.on_.now)); }},
            {"VMXOFF", [](row& r, words&) { r.become(access::vmxoff(r.on_.now)); }},
            {"SMI", [](row& r, words&) { r.become(access::smi(r.on_.now)); }},
            {"RSM", [](row& r, words&) { r.rsm(); }},
            {"INIT", [](row& r, words&) { r.become(access::init(r.on_.of, r.on_.now)); }},
            {"SENTER", [](row& r, words&) { r.become(access::measured_launch(r.on_.now)); }},
            {"ACM", [](row& r, words& w) { r.acm(w); }},
            {"warm",
             [](row& r, words& w) {
                 w.expect("reset");
                 r.become(access::warm_reset(r.on_.of, r.on_.now));
             }},
            {"cold",
             [](row& r, words& w) {
                 w.expect("reset");
                 r.become(access::cold_reset());
             }},
            {"PMI",
             [](row& r, words&) { r.become(access::deliver_pmi(r.on_.of, r.on_.now).state); }},
            {"branch", [](row& r, words& w) { r.branch(w); }},
            {"fill", [](row& r, words& w) { r.fill(w); }},
            {"write", [](row& r, words& w) { r.write_bytes(r.number_of_bytes(w)); }},
            {"locate",
             [](row& r, words& w) {
                 w.expect("end");
                 r.say("pos=" + hex(r.position()));
             }},
            {"read",
             [](row& r, words& w) {
                 w.expect("out");
                 r.read_out();
             }},
            {"next", [](row& r, words& w) { r.next_mtc(w); }},
            {"state", [](row& r, words&) { r.claim_all(); }},
        };
        auto const first = in.next("a step");
        for (auto const& one : all) {
            if (one.name != first) { continue; }
            one.run(*this, in);
            return in.end();
        }
        in.end();
        auto const value = value_of(first);
        if (!value) { throw refusal{tool::quoted(first) + " is not understood"}; }
        say(std::string{first} + "=" + *value);
    }

    // -------------------------------------------------------------------------------- accesses

    void access_msr(std::string const& step) {
        if (step.back() != ')') { throw refusal{"an access ends with )"}; }
        std::string const inside = step.substr(6, step.size() - 7);
        std::size_t const comma = inside.find(',');
        auto const index = pc_notation::number_in(inside.substr(0, comma), "an MSR index");
        if (index > 0xFFFF'FFFF) { throw refusal{"an MSR index has 32 bits"}; }
        row_processor port{on_};
        log_port to{port};
        auto const at = static_cast<std::uint32_t>(index);
        if (step[0] == 'R') {
            if (comma != std::string::npos) { throw refusal{"RDMSR has no value"}; }
            auto const got = to.read(at);
            if (!is_log_) { return say(got ? word(got.value) : "#GP"); }
        } else {
            if (comma == std::string::npos) { throw refusal{"a WRMSR needs a value"}; }
            auto const value = pc_notation::number_in(inside.substr(comma + 1), "a value");
            bool const done = to.write(at, value);
            if (!is_log_) { return say(done ? "ok" : "#GP"); }
        }
        for (auto const& one : to) { say(item_of(one, true)); }
    }
    void become(access::msr_state const& next) {
        on_.set_state(next);
        say("ok");
    }
    void rsm() {
        auto const got = access::rsm(on_.of, on_.now);
        if (got.outcome == access::rsm_outcome::resumed) { on_.apply(got.effect); }
        say(got.outcome == access::rsm_outcome::resumed    ? "ok"
            : got.outcome == access::rsm_outcome::shutdown ? "shutdown"
                                                           : "#UD");
    }
    /// An authenticated code module. TraceEn after it is that of before.
    void acm(words& in) {
        bool const begins = pc_notation::expect_one_of(in, "begin or end", {"end", "begin"}) == 1;
        if (!begins) { return become(access::acm_exit(on_.of, on_.now, trace_en_before_acm_)); }
        trace_en_before_acm_ = on_.now.ctl.get<reg::ia32_rtit_ctl::TraceEn>();
        become(access::acm_entry(on_.now));
    }
    void branch(words& in) {
        in.expect("to");
        access::processor_context code;
        code.ip = in.number("an IP");
        on_.set_state(access::after_branch(on_.of, on_.now, code));
        for (char const* const name : {"FilterEn", "Stopped"}) {
            say(std::string{name} + "=" + *value_of(name));
        }
    }

    /// `RFBM[8]=1`, `XSTATE_BV[8]=0`. Returns `otherwise` if it is not there.
    static auto bit_8(words& in, std::string_view name, bool otherwise) -> bool {
        if (!in.accept(name)) { return otherwise; }
        in.expect("[");
        in.expect("8");
        in.expect("]");
        in.expect("=");
        return pc_notation::expect_one_of(in, "a bit: 0 or 1", {"0", "1"}) == 1;
    }
    /// `XSAVES RFBM[8]=1`, and `faults` for one that faults midway.
    void xsaves(words& in) {
        if (!bit_8(in, "RFBM", true)) { return say("ok"); }
        if (in.accept("faults")) { return say("#PF"); }  // TraceEn is put back: PRG-111
        auto const saved = access::xsaves(on_.of, on_.now);
        on_.set_state(saved.state);
        for (unsigned i = 0; i < 16; ++i) {
            say("image+" + hex(8 * i) + "=" + word(saved.image.quadwords[i]));
        }
    }
    /// `XRSTORS RFBM[8]=1 XSTATE_BV[8]=1 {570=250D, 561=7F}`: quadwords that are not listed are 0,
    /// and MASK_PTRS is 7F.
    void xrstors(words& in) {
        if (!bit_8(in, "RFBM", true)) { return say("ok"); }
        access::xrstors_result done;
        if (!bit_8(in, "XSTATE_BV", true)) {
            done = access::xrstors_init(on_.now);
        } else {
            setup image;
            if (!in.at_end()) {
                std::string list;
                while (!in.at_end()) { list += in.next("a quadword"); }
                if (list.front() != '{' || list.back() != '}') {
                    throw refusal{tool::quoted(list) + " is not {NAME=v, ..}"};
                }
                list = list.substr(1, list.size() - 2);
                for (auto const& one : pc_notation::split(list, ",")) {
                    pc_notation::read_item(image, one);
                }
            }
            auto made = reg::xsave_pt_state{};
            for (auto const& msr : access::pt_msrs) {
                if (msr.is_saved) {
                    made.quadwords[msr.quadword] = access::value_of(image.msrs, msr.index);
                }
            }
            done = access::xrstors(on_.of, on_.now, made);
        }
        if (done) { on_.apply(done.effect); }
        say(done ? "ok" : "#GP");
    }

    // -------------------------------------------------------------------------------- procedures

    /// The plan of the setup. `ctl` follows the name of the procedure, else it is the setup's, else
    /// the base configuration.
    [[nodiscard]] auto plan(words& in) const -> access::msr_state {
        auto made = on_.now;
        made.status = {};
        made.ctl = from_.msrs.ctl.raw != 0 ? from_.msrs.ctl : from_.base_ctl();
        if (!in.at_end()) { made.ctl = {in.number("IA32_RTIT_CTL")}; }
        made.ctl = made.ctl.with(reg::ia32_rtit_ctl::TraceEn{true});
        return made;
    }
    /// The same at the start of the output.
    [[nodiscard]] auto plan_from_start(words& in) const -> access::msr_state {
        auto made = plan(in);
        made.output.base = from_.msrs.output.base;
        made.output.mask_ptrs = {from_.is_range ? from_.msrs.output.mask_ptrs.raw & low_bits(32)
                                                : 0x7F};
        return made;
    }
    static auto procedure_of(words in) -> procedure {
        struct named {
            std::string_view name;
            procedure run;
        };
        constexpr named all[] = {
            {"detect",
             [](row& r, words&, log_port& to) {
                 simulate::capabilities_cpuid cpuid{r.on_.of};
                 (void)driver::detect(cpuid, to);
             }},
            {"enable", [](row& r, words& w, log_port& to) { (void)driver::enable(to, r.plan(w)); }},
            {"check_enabled",
             [](row& r, words& w, log_port& to) { (void)driver::check_enabled(to, r.plan(w)); }},
            {"disable", [](row&, words&, log_port& to) { (void)driver::disable(to); }},
            {"flush", [](row& r, words&, log_port& to) { (void)driver::flush(to, r.on_.now.ctl); }},
            {"pause", [](row& r, words&, log_port& to) { (void)driver::pause(to, r.on_.now.ctl); }},
            {"resume",
             [](row& r, words&, log_port& to) { (void)driver::resume(to, r.on_.now.ctl); }},
            {"save", [](row&, words&, log_port& to) { (void)driver::save(to); }},
            {"restore",
             [](row& r, words& w, log_port& to) {
                 auto saved = r.plan(w);
                 saved.status = r.on_.now.status;
                 (void)driver::restore(to, saved);
             }},
            {"switch",
             [](row&, words&, log_port& to) {
                 auto const saved = driver::save(to);
                 to.note("switch");
                 (void)driver::restore(to, saved.state);
             }},
            {"restart", [](row& r, words& w,
                           log_port& to) { (void)driver::restart(to, r.plan_from_start(w)); }},
            {"recover",
             [](row& r, words&, log_port& to) { (void)driver::recover(to, r.on_.now.ctl); }},
            {"pmi",
             [](row&, words&, log_port& to) {
                 (void)driver::on_topa_pmi(
                     to,
                     [&](driver::stopped_trace const&) {
                         to.note("drain");
                         return driver::pmi_decision{};
                     },
                     [&] { to.note("unmask LVT"); });
             }},
            {"while_disabled",
             [](row& r, words&, log_port& to) {
                 (void)driver::while_disabled(to, r.on_.now.ctl, [&] { to.note("edit table"); });
             }},
            {"check_lbr",
             [](row& r, words&, log_port& to) { (void)driver::check_lbr(to, r.on_.of); }},
            {"read_uncovered",
             [](row& r, words&, log_port& to) {
                 auto plan = r.on_.now;
                 (void)driver::read_uncovered(to, plan);
             }},
            {"write_uncovered",
             [](row& r, words&, log_port& to) { (void)driver::write_uncovered(to, r.from_.msrs); }},
            {"after_cold_reset",
             [](row& r, words&, log_port& to) {
                 (void)driver::after_cold_reset(to, r.ring(), r.on_.memory);
             }},
            {"after_warm_reset",
             [](row& r, words&, log_port& to) { (void)driver::after_warm_reset(to, r.on_.of); }},
        };
        auto const first = in.next("a step");
        for (auto const& one : all) {
            if (one.name == first) { return one.run; }
        }
        return nullptr;
    }

    // -------------------------------------------------------------------------------- output

    /// `fill R1`, `fill R0..R2`, `fill all`: regions of the setup, from the position on.
    void fill(words& in) {
        if (from_.regions.empty()) { throw refusal{"fill needs regions"}; }
        std::uint64_t bytes = 0;
        auto const which = in.next("regions, or all");
        if (which == "all") {
            for (auto const& one : from_.regions) { bytes += topa::bytes_in(one.size); }
        } else {
            for (auto const n : pc_notation::regions_in(which)) {
                if (n >= from_.regions.size()) {
                    throw refusal{"there is no R" + std::to_string(n)};
                }
                bytes += topa::bytes_in(from_.regions[n].size);
            }
        }
        write_bytes(bytes);
    }
    /// `write 20h bytes` in hexadecimal, or `write 64 KB`.
    [[nodiscard]] auto number_of_bytes(words& in) const -> std::uint64_t {
        words peek = in;
        std::string_view const digits = peek.next("a number of bytes");
        if (digits.back() != 'h') { return pc_notation::bytes_in(in); }
        (void)in.next("");
        in.expect("bytes");
        return pc_notation::number_in(digits.substr(0, digits.size() - 1), "a size");
    }
    void write_bytes(std::uint64_t count) {
        constexpr std::uint64_t most = std::uint64_t{1} << 32;
        if (count > most) { throw refusal{"at most 4 GB are written at once"}; }
        if (!on_.now.ctl.get<reg::ia32_rtit_ctl::TraceEn>()) {
            throw refusal{"TraceEn is 0, and nothing is traced: the setup needs `tracing`"};
        }
        engine::write_result total;
        std::vector<std::string> runs;
        auto pads = std::make_unique<byte_array<0x1'0000>>();
        stored_runs memory{on_.memory};
        while (count != 0) {
            auto const some = static_cast<std::size_t>(std::min<std::uint64_t>(count, 0x1'0000));
            auto const done = on_.output.write(on_.now, memory, byte_view{*pads}.first(some));
            total += done;
            count -= some;
        }
        on_.output.write_back(on_.now);
        for (auto const& one : memory.runs) { runs.push_back(interval(one.first, one.second)); }
        say("stored=" + hex(total.stored));
        say("lost=" + hex(total.lost));
        say("PMI=" + hex(total.pmis));
        say("data=" + (runs.empty() ? "none" : join(runs, ",")));
    }
    /// Counts stores of trace in runs of addresses, in the order in which they were stored.
    struct stored_runs {
        using ignores_pmis = stored_runs;

        msr_script::physical_memory& memory;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> runs{};

        auto load(std::uint64_t address) const -> port_value { return memory.load(address); }
        auto send(byte_view bytes) -> std::size_t { return memory.send(bytes); }
        auto store(std::uint64_t address, byte_view bytes) -> std::size_t {
            if (!runs.empty() && runs.back().first + runs.back().second == address) {
                runs.back().second += bytes.size();
            } else if (!bytes.empty()) {
                runs.emplace_back(address, bytes.size());
            }
            return memory.store(address, bytes);
        }
    };

    /// The regions as the ring of a driver.
    [[nodiscard]] auto ring() -> driver::ring {
        bool const is_plain = from_.tables.size() * pc_notation::entries_per_table >=
                                  from_.regions.size() &&
                              from_.edits.empty() && !from_.has_tables;
        if (!is_plain) { throw refusal{"a position needs regions without a table of their own"}; }
        auto const& list = from_.regions;
        ring_regions_.clear();
        for (auto const& one : list) { ring_regions_.push_back({one.base, one.size}); }
        ring_entries_.assign(from_.tables.size(), std::vector<topa::entry>(512));
        ring_pages_.clear();
        for (auto const& [n, one] : from_.tables) {
            ring_pages_.push_back({one.address, ring_entries_[n].data()});
        }
        auto const how = list.back().stop ? driver::buffer_recipe::stop_on_full
                                          : driver::buffer_recipe::circular;
        auto const made = driver::build_ring(how, ring_regions_.data(), ring_regions_.size(),
                                             ring_pages_.data(), ring_pages_.size(), {{52}, true});
        if (!made) {
            throw refusal{"the regions are no ring: " + string_of(describe(made.broken))};
        }
        return made.ring;
    }
    [[nodiscard]] auto position() -> std::uint64_t {
        driver::output_registers const at = on_.now.output;
        if (from_.is_range) { return at.mask_ptrs.raw >> 32; }
        auto const found = driver::offset_of(ring(), at);
        if (!found) { throw refusal{"the position is in no region"}; }
        return found.offset;
    }
    void read_out() {
        driver::output_registers const at = on_.now.output;
        if (from_.is_range) {
            auto const part = driver::snapshot_of_single_range(at, from_.wrapped);
            std::string const newer = interval(part.second_base.value, part.second_bytes);
            return say("data=" +
                       (part.first_bytes != 0
                            ? interval(part.first_base.value, part.first_bytes) + "," + newer
                            : newer));
        }
        auto const in = ring();
        auto const part = driver::snapshot(in, driver::stopped_at(on_.now), from_.wrapped);
        if (!part) { throw refusal{"the position is in no region"}; }
        std::uint64_t const first = in.bytes - part.part.from;
        say("data=" + (part.part.count <= first ? interval(part.part.from, part.part.count)
                                                : interval(part.part.from, first) + "," +
                                                      interval(0, part.part.count - first)));
    }

    // -------------------------------------------------------------------------------- time, claims

    /// The time of an MTC. Source: PRG-137.
    void next_mtc(words& in) {
        in.expect("MTC");
        in.expect("payload");
        auto const payload = in.number("the payload of an MTC");
        if (!from_.tsc || !from_.ctc || !from_.fc || payload > 0xFF) {
            throw refusal{"the time of an MTC needs TSC, TMA CTC, FC and a payload of 8 bits"};
        }
        auto const shift = static_cast<unsigned>(on_.now.ctl.get<reg::ia32_rtit_ctl::MTCFreq>());
        unsigned const bits = shift + 8 < 16 ? shift + 8 : 16;
        std::uint64_t const d = ((payload << shift) - *from_.ctc) & low_bits(bits);
        std::uint64_t const time = *from_.tsc - *from_.fc +
                                   d * from_.caps.leaf_15_ebx.raw / from_.caps.leaf_15_eax.raw;
        say("d=" + hex(d));
        say("time=" + hex(time));
    }

    template <class Word>
    static auto field_of(Word now, std::string_view name) -> std::optional<std::uint64_t> {
        auto const* const field = print::row_list_of<Word>().field({name.data(), name.size()});
        if (field == nullptr) { return std::nullopt; }
        return now.raw >> field->row.lsb & low_bits(field->row.msb - field->row.lsb + 1);
    }
    /// A register, or a field of IA32_RTIT_CTL or IA32_RTIT_STATUS, by its name.
    [[nodiscard]] auto value_of(std::string_view name) const -> std::optional<std::string> {
        if (auto const value = field_of(on_.now.ctl, name)) { return hex(*value); }
        if (auto const value = field_of(on_.now.status, name)) { return hex(*value); }
        if (name == "VMX") { return on_.now.in_vmx_operation ? "1" : "0"; }
        if (name == "SMM") { return on_.now.in_smm ? "1" : "0"; }
        auto const index = pc_notation::index_of(name);
        if (!access::is_covered_msr(index)) { return std::nullopt; }
        return word(access::value_of(on_.now, index));
    }
    void claim_all() {
        for (char const* const name :
             {"Error", "Stopped", "TriggerEn", "TraceEn", "560", "561", "570", "571", "572", "580",
              "581", "582", "583", "38E", "VMX", "SMM"}) {
            say(std::string{name} + "=" + *value_of(name));
        }
    }

    setup from_;
    std::vector<std::string> steps_;
    bool is_log_ = false;  ///< accesses print as those of a procedure
    bool trace_en_before_acm_ = false;
    msr_script::session on_{};
    std::vector<std::string> results_{};
    std::vector<topa::region> ring_regions_{};
    std::vector<std::vector<topa::entry>> ring_entries_{};
    std::vector<driver::table_page> ring_pages_{};
};

/// Runs a row: once for each alternative of its setup.
inline auto run_row(std::string_view setup_cell, std::string_view operation) -> std::string {
    std::vector<std::string> lines;
    for (auto const& one : pc_notation::setups_of(setup_cell)) {
        auto const made = std::make_unique<row>(one, operation);
        auto const condition = one.condition.empty() ? "" : one.condition + ": ";
        lines.push_back(condition + made->run());
    }
    return join(lines, " / ");
}

}  // namespace msr_plan
