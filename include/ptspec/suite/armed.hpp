// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/check.hpp>
#include <ptspec/access/effect.hpp>
#include <ptspec/cpu/enumerated_quirks.hpp>
#include <ptspec/engine/model_options.hpp>
#include <ptspec/suite/needs.hpp>
#include <ptspec/suite/safety.hpp>
#include <ptspec/suite/seen.hpp>

/// The only way from a check to a target.
namespace ptspec::suite {

using access::ia32_rtit_ctl;
using access::ia32_rtit_output_base;
using access::ia32_rtit_output_mask_ptrs;
using access::ia32_rtit_status;

/// The MSRs after a snippet has run.
struct traced {
    bool has_run = false;  ///< false: a WRMSR faulted, or the snippet was not executed
    snippet_run code{};
    ia32_rtit_status status{};  ///< after TraceEn became 0
    ia32_rtit_output_base base{};
    ia32_rtit_output_mask_ptrs pointers{};

    [[nodiscard]] constexpr auto index() const noexcept -> uint64_t {
        return pointers.template get<ia32_rtit_output_mask_ptrs::MaskOrTableOffset>();
    }
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t {
        return pointers.template get<ia32_rtit_output_mask_ptrs::OutputOffset>();
    }
};

/// A stretch of given memory, `[first, end)`, as an offset from its beginning.
struct stretch {
    uint64_t first = 0;
    uint64_t end = 0;
};

/// The bytes of a trace.
struct trace_bytes {
    static constexpr unsigned max_count = 4096;

    uint8_t bytes[max_count] = {};
    unsigned count = 0;

    [[nodiscard]] constexpr auto view() const noexcept -> byte_view { return {bytes, count}; }
};

/// A target while a check runs. Before it lets TraceEn become 1 it decides whether all output stays
/// in the given pages, whatever a wrong target makes of the values. If it may not, the access is
/// not made, and the check is skipped. It collects what the check finds, and restores the MSRs.
///
/// Source: PRG-096, PRG-260, OUT-113.
template <target T>
class armed {
    using ctl = ia32_rtit_ctl;
    using status = ia32_rtit_status;

public:
    /// The pages by their use. Pages 0 and 1 are the range, and page 0 is also a table. The range
    /// is written from page 1 on, so that the table stays. The regions are aligned to 16 KB.
    static constexpr uint32_t table_page = 0;
    static constexpr uint32_t second_table = 2;
    static constexpr uint32_t first_region = 4;
    static constexpr uint32_t usual_pages = 8;

    /// MaskOrTableOffset of a range of two pages.
    static constexpr uint64_t range_mask = 63;

    constexpr armed(T& it, cpu::capabilities const& caps, rule primary, bool is_dangerous = false,
                    engine::model_options const* kind = nullptr) noexcept
        : it_{it},
          memory_{it.memory()},
          caps_{caps},
          primary_{primary},
          may_be_dangerous_{is_dangerous},
          kind_{kind} {
        save();
    }

    [[nodiscard]] constexpr auto caps() const noexcept -> cpu::capabilities const& { return caps_; }
    /// The state of the MSRs as far as the rules say it.
    [[nodiscard]] constexpr auto state() const noexcept -> access::msr_state const& {
        return state_;
    }
    /// The state that the check found, which `restore` restores.
    [[nodiscard]] constexpr auto before() const noexcept -> access::msr_state const& {
        return before_;
    }
    /// The kind of processor to which the target is held; null: none.
    [[nodiscard]] constexpr auto kind() const noexcept -> engine::model_options const* {
        return kind_;
    }
    [[nodiscard]] constexpr auto can(ability one) noexcept -> bool {
        return it_.abilities().has(one);
    }
    [[nodiscard]] constexpr auto query(uint32_t leaf, uint32_t subleaf) noexcept
        -> cpuid_registers {
        ++accesses_;
        return it_.query(leaf, subleaf);
    }
    [[nodiscard]] constexpr auto address_of(snippet const& code) noexcept -> uint64_t {
        return it_.address_of(code);
    }
    [[nodiscard]] constexpr auto cr3() noexcept -> uint64_t { return it_.cr3(); }
    [[nodiscard]] constexpr auto pmi() noexcept -> bool { return it_.pmi(); }

    // -------------------------------------------------------------------------- what was found

    /// If `holds` is false the finding is that the rule is broken. Only the first one is kept.
    constexpr void require(bool holds, rule which, text detail, uint64_t expected = 0,
                           uint64_t seen = 0, msr_index msr = {}, uint64_t wrote = 0) noexcept {
        if (!holds && found_.what != outcome::broken) {
            found_ = {outcome::broken, which, msr, wrote, expected, seen, detail};
        }
    }
    /// Reports what the target chooses.
    constexpr void observe(text name, uint64_t value) noexcept {
        if (found_.what == outcome::holds) {
            found_ = {.what = outcome::observed, .seen = value, .detail = name};
        }
    }
    /// Reports that the check could not be made.
    constexpr void skip(text why) noexcept {
        if (!is_broken()) { found_ = {.what = outcome::skipped, .detail = why}; }
    }
    [[nodiscard]] constexpr auto is_broken() const noexcept -> bool { return found_.is_broken(); }
    /// The finding of the check.
    [[nodiscard]] constexpr auto result() const noexcept -> finding {
        if (is_unsafe_) { return {.what = outcome::skipped, .detail = "unsafe"}; }
        if (found_.what == outcome::holds && accesses_ == 0) {
            return {.what = outcome::error, .detail = "vacuous"};
        }
        return found_;
    }
    [[nodiscard]] constexpr auto is_disturbed() const noexcept -> bool { return is_disturbed_; }

    // -------------------------------------------------------------------------- MSRs

    [[nodiscard]] constexpr auto read(msr_index index) noexcept -> msr_result {
        if (!may_access(index)) { return not_asked(); }
        ++accesses_;
        return it_.read(index.value);
    }
    [[nodiscard]] constexpr auto write(msr_index index, uint64_t value) noexcept -> msr_result {
        if (!may_access(index) || !is_safe(index, value)) { return not_asked(); }
        ++accesses_;
        auto const done = it_.write(index.value, value);
        if (done.is_done) { record(index, value); }
        return done;
    }
    /// Writes a value that the check needs. False, and skipped, if the target refuses it.
    [[nodiscard]] constexpr auto set(msr_index index, uint64_t value) noexcept -> bool {
        auto const done = write(index, value);
        if (done.is_asked) {
            require(done.is_done, primary_, "WRMSR of a legal value", 0, done.vector, index, value);
        }
        return done.is_done;
    }

    /// XSAVES of component 8, which clears TraceEn.
    [[nodiscard]] constexpr auto xsaves(reg::xsave_pt_state& image) noexcept -> msr_result {
        ++accesses_;
        auto const done = it_.xsaves(image);
        if (done.is_done) { state_.ctl = state_.ctl.with(ctl::TraceEn{false}); }
        return done;
    }
    /// XRSTORS of component 8. If the image sets TraceEn it is judged as a WRMSR is.
    [[nodiscard]] constexpr auto xrstors(reg::xsave_pt_state const& image) noexcept -> msr_result {
        using area = reg::xsave_pt_state;
        ctl const word = image.template get<area::IA32_RTIT_CTL>();
        if (word.get<ctl::TraceEn>()) {
            bool const is_inside = !word.get<ctl::FabricEn>() &&
                                   output_stays_inside(
                                       memory_, image.template get<area::IA32_RTIT_OUTPUT_BASE>(),
                                       image.template get<area::IA32_RTIT_OUTPUT_MASK_PTRS>());
            is_unsafe_ |= !is_inside;
            if (!is_inside) { return not_asked(); }
        }
        ++accesses_;
        auto const done = it_.xrstors(image);
        if (done.is_done) {
            for (access::pt_msr const& msr : access::pt_msrs) {
                if (msr.is_saved) { record(msr.index, image.quadwords[msr.quadword]); }
            }
        }
        return done;
    }
    /// Resets the processor. False if the target did not.
    [[nodiscard]] constexpr auto reset(reset_kind kind) noexcept -> bool {
        ++accesses_;
        bool const done = it_.reset(kind);
        if (done) { state_.ctl = state_.ctl.with(ctl::TraceEn{false}); }
        return done;
    }

    // -------------------------------------------------------------------------- expectations

    /// Requires that WRMSR of a value raises #GP and changes nothing.
    constexpr void refuses(rule which, msr_index index, uint64_t value) noexcept {
        auto const old = read(index);
        auto const done = write(index, value);
        if (!done.is_asked) { return; }
        require(!done.is_done, which, "WRMSR must raise #GP", 1, 0, index, value);
        // `restore` restores the MSRs that exist by CPUID.
        if (done.is_done && old.is_done && !access::exists(caps_, index)) {
            (void)it_.write(index.value, old.value);
        }
        require(done.is_done || done.vector == msr_result::general_protection, which,
                "vector of the fault", msr_result::general_protection, done.vector, index, value);
        if (!old.is_done || is_live(index)) { return; }
        auto const now = read(index);
        require(done.is_done || (now.is_done && now.value == old.value), rule_of("REG-009"),
                "a WRMSR that faults changes nothing", old.value, now.value, index, value);
    }
    /// Requires that WRMSR of a value raises no fault, and that RDMSR returns `read_back`.
    constexpr void accepts(rule which, msr_index index, uint64_t value,
                           uint64_t read_back) noexcept {
        auto const done = write(index, value);
        if (!done.is_asked) { return; }
        require(done.is_done, which, "WRMSR must not fault", 0, done.vector, index, value);
        if (!done.is_done || is_live(index)) { return; }
        auto const now = read(index);
        require(now.is_done && now.value == read_back, which, "RDMSR after WRMSR", read_back,
                now.value, index, value);
    }
    constexpr void accepts(rule which, msr_index index, uint64_t value) noexcept {
        accepts(which, index, value, value);
    }
    /// Requires what the rules say of a WRMSR in the current state: what RDMSR returns afterwards,
    /// or #GP by `which`. A value that another rule refuses is not written.
    constexpr void writes_as_ruled(rule which, msr_index index, uint64_t value) noexcept {
        auto const effect = access::effect_of_write(caps_, state_, index, value);
        if (effect) {
            accepts(which, index, value, access::value_of(effect.state, index));
        } else if (effect.verdict.broken == which) {
            refuses(which, index, value);
        }
    }

    // -------------------------------------------------------------------------- memory

    [[nodiscard]] constexpr auto page(uint32_t number) const noexcept -> uint64_t {
        return memory_.page(number);
    }
    [[nodiscard]] constexpr auto has_pages(uint32_t count) const noexcept -> bool {
        return memory_.pages >= count;
    }
    constexpr void set_entry(uint32_t table, uint32_t index, topa::entry entry) noexcept {
        if (touched_count_ < max_touched) {
            touched_[touched_count_++] = table * 512 + index;
        } else {
            is_armed_ = false;
        }
        store_le64(memory_.bytes + table * given_memory::page_bytes + 8 * uint64_t{index},
                   entry.raw);
    }
    /// Fills a page with a table that is safe at every index: regions, and END to itself. Without
    /// MENTRY entry 1 is an END entry, too.
    constexpr void arm_table(uint32_t table) noexcept {
        for (uint32_t i = 0; i < 512; ++i) { set_entry(table, i, armed_entry(table, i)); }
    }
    /// True if the entries of a part of a table are as `arm_table` has made them. The part is in
    /// bytes from the beginning of the table.
    [[nodiscard]] constexpr auto is_armed(uint32_t table, stretch part) const noexcept -> bool {
        uint8_t const* const bytes = memory_.bytes + table * given_memory::page_bytes;
        for (uint64_t i = part.first; i < part.end; i += 8) {
            auto const index = static_cast<uint32_t>(i / 8);
            if (load_le64(bytes + i) != armed_entry(table, index).raw) { return false; }
        }
        return true;
    }
    [[nodiscard]] constexpr auto region(
        uint32_t number, topa::region_size size = topa::region_size::size_4K) const noexcept
        -> topa::entry {
        return topa::entry{}.with(topa::entry::Size{size},
                                  topa::entry::Base{wrapped{page(number)}});
    }
    [[nodiscard]] constexpr auto link(uint32_t table) const noexcept -> topa::entry {
        return topa::link_to({page(table)});
    }
    /// Clears the range and the regions, and arms the tables. A constant expression arms only
    /// entries that the check has set, unless output went over the tables, and clears only pages
    /// in which it finds bytes: all of it costs 50 times as many steps.
    constexpr void clear(bool tables_were_written = false) noexcept {
        if (__builtin_is_constant_evaluated() && is_armed_ && !tables_were_written) {
            for (unsigned i = 0; i < touched_count_; ++i) {
                auto const at = touched_[i];
                set_entry(at / 512, at % 512, armed_entry(at / 512, at % 512));
            }
        } else {
            arm_table(table_page);
            arm_table(second_table);
        }
        is_armed_ = true;
        touched_count_ = 0;
        for (uint32_t number = 0; number < memory_.pages; ++number) {
            if (number == table_page || number == second_table) { continue; }
            uint64_t const first = number * given_memory::page_bytes;
            stretch const part{first, first + given_memory::page_bytes};
            if (__builtin_is_constant_evaluated() && is_clear(part)) { continue; }
            for (uint64_t i = part.first; i < part.end; ++i) { memory_.bytes[i] = 0; }
        }
    }
    /// Copies the bytes of stretches, in their order.
    template <size_t Count>
    constexpr void collect(stretch const (&parts)[Count], trace_bytes& to) noexcept {
        to.count = 0;
        for (stretch const& part : parts) {
            for (uint64_t i = part.first; i < part.end && i < memory_.size(); ++i) {
                if (to.count == trace_bytes::max_count) { return skip(too_long); }
                to.bytes[to.count++] = memory_.bytes[i];
            }
        }
    }
    /// True if all bytes of a stretch are 0. A constant expression looks at each eighth: no trace
    /// of the checks has only zeros there.
    [[nodiscard]] constexpr auto is_clear(stretch part) const noexcept -> bool {
        uint64_t step = 1;
        if (__builtin_is_constant_evaluated()) { step = 8; }
        for (uint64_t i = part.first; i < part.end && i < memory_.size(); i += step) {
            if (memory_.bytes[i] != 0) { return false; }
        }
        return true;
    }

    // -------------------------------------------------------------------------- tracing

    /// The output scheme that a trace uses where the check does not matter: a single range if the
    /// processor has it.
    [[nodiscard]] constexpr auto uses_topa() const noexcept -> bool {
        return !caps_.supports(cpu::output_scheme::single_range);
    }
    /// IA32_RTIT_CTL for it, without TraceEn: OS, BranchEn, and the output scheme.
    [[nodiscard]] constexpr auto usual_ctl() const noexcept -> ctl {
        return ctl{}.with(ctl::OS{true}, ctl::BranchEn{true}, ctl::ToPA{uses_topa()});
    }
    /// Sets the output MSRs to the first page, and STATUS to 0.
    [[nodiscard]] constexpr auto set_usual_output() noexcept -> bool {
        clear();
        return set(status::address, 0) &&
               (uses_topa() ? set_output(page(table_page), 0, 0)
                            : set_output(page(table_page), range_mask, given_memory::page_bytes));
    }
    /// Sets the output MSRs: `mask_or_index` is MaskOrTableOffset.
    [[nodiscard]] constexpr auto set_output(uint64_t base, uint64_t mask_or_index,
                                            uint64_t offset) noexcept -> bool {
        using pointers = ia32_rtit_output_mask_ptrs;
        auto const position = pointers{pointers::forced_1_mask()}.with(
            pointers::MaskOrTableOffset{wrapped{mask_or_index}},
            pointers::OutputOffset{wrapped{offset}});
        return set(ia32_rtit_output_base::address, base) &&
               set(ia32_rtit_output_mask_ptrs::address, position.raw);
    }
    /// Runs a snippet with the output MSRs as they are.
    [[nodiscard]] constexpr auto run(snippet const& code, ctl with) noexcept -> traced {
        auto const on = with.with(ctl::TraceEn{true});
        auto const off = with.with(ctl::TraceEn{false});
        traced got;
        if (!is_safe(ctl::address, on.raw)) { return got; }
        ++accesses_;
        got.code = it_.execute(code, on.raw, off.raw);
        is_disturbed_ |= got.code.is_disturbed;
        state_.ctl = off;
        if (!got.code.enabled.is_done) {
            if (got.code.enabled.is_asked) {
                require(false, primary_, "WRMSR that sets TraceEn", 0, got.code.enabled.vector,
                        ctl::address, on.raw);
            }
            return got;
        }
        if (!got.code.disabled.is_done) {
            if (got.code.disabled.is_asked) {
                require(false, rule_of("REG-022"), "WRMSR that clears TraceEn", 0,
                        got.code.disabled.vector, ctl::address, off.raw);
            } else if (!is_broken()) {
                found_ = {.what = outcome::error, .detail = "a fault in the snippet"};
            }
            return got;
        }
        auto const word = [&](msr_index index) {
            auto const value = it_.read(index.value);
            require(value.is_done, rule_of("REG-011"), "RDMSR after TraceEn became 0", 0,
                    value.vector, index);
            return value.value;
        };
        got.status = status{word(status::address)};
        got.base = ia32_rtit_output_base{word(ia32_rtit_output_base::address)};
        got.pointers = ia32_rtit_output_mask_ptrs{word(ia32_rtit_output_mask_ptrs::address)};
        state_.status = got.status;
        state_.output = {got.base, got.pointers};
        got.has_run = !is_broken();
        return got;
    }
    /// Runs a snippet with the usual output, and reads its trace: at most a page.
    [[nodiscard]] constexpr auto trace(snippet const& code, ctl with) noexcept -> traced {
        if (!set_usual_output()) { return {}; }
        return run_and_read(code, with);
    }
    /// The same with the output MSRs as `set_usual_output` and the check have set them.
    [[nodiscard]] constexpr auto run_and_read(snippet const& code, ctl with) noexcept -> traced {
        auto const got = run(code, with);
        if (!got.has_run) { return got; }
        uint64_t const from = uses_topa() ? 0 : given_memory::page_bytes;
        uint64_t const first = uses_topa() ? first_region * given_memory::page_bytes : from;
        require(!got.status.template get<status::Error>(), primary_, "STATUS.Error", 0, 1,
                status::address);
        require(got.offset() - from <= given_memory::page_bytes, primary_, "OutputOffset",
                from + 4096, got.offset(), ia32_rtit_output_mask_ptrs::address);
        if (is_broken()) { return got; }
        stretch const part[] = {{first, first + got.offset() - from}};
        collect(part, bytes_);
        read_bytes(with);
        return got;
    }
    /// Reads `bytes`, which the check has collected.
    constexpr void read_bytes(ctl with) noexcept {
        trace::check_options rules;
        rules.mtc_freq = static_cast<uint8_t>(with.template get<ctl::MTCFreq>());
        rules.quirks = cpu::quirks_of(caps_);
        seen_ = read_trace(bytes_.view(), rules);
        require(seen_.broken == rule::none, seen_.broken, "a packet of the trace", 0,
                seen_.broken_at);
        if (seen_.is_too_long) { skip(too_long); }
    }
    [[nodiscard]] constexpr auto seen() const noexcept -> seen_trace const& { return seen_; }
    [[nodiscard]] constexpr auto bytes() noexcept -> trace_bytes& { return bytes_; }

    /// Requires exactly these packets.
    constexpr void expect(rule which, snippet const& code, wanted const* all,
                          size_t count) noexcept {
        require(bytes_.count != 0, which, "bytes of trace", 1, 0);
        auto const found = compare(seen_, it_.address_of(code), it_.cr3(), all, count,
                                   uncompressed_);
        // A TIP.PGD without its target, or with one that it must not have.
        bool const is_of_pgd = found.expected.kind == packet::kind::tip_pgd &&
                               found.seen.kind == packet::kind::tip_pgd &&
                               found.expected.has_ip != found.seen.has_ip;
        require(found.is_equal, is_of_pgd ? rule::GEN_101 : which, name_of_packet(found),
                found.expected.value, found.seen.value);
    }
    template <size_t Count>
    constexpr void expect(rule which, snippet const& code, wanted const (&all)[Count]) noexcept {
        expect(which, code, all, Count);
    }
    /// Requires that there are no packets but PSB+ and timing packets.
    constexpr void expect_nothing(rule which, snippet const& code) noexcept {
        expect(which, code, nullptr, 0);
    }
    /// Requires these packets between the TIP.PGE of the WRMSR that enables, and the FUP and
    /// TIP.PGD of the one that disables.
    ///
    /// Source: GEN-100, GEN-106, GEN-180, GEN-183.
    template <size_t Count>
    constexpr void expect_body(rule which, snippet const& code,
                               wanted const (&all)[Count]) noexcept {
        wanted whole[Count + 3] = {};
        for (size_t i = 0; i < Count; ++i) { whole[i + 1] = all[i]; }
        expect_between(which, code, whole, Count);
    }
    constexpr void expect_empty_body(rule which, snippet const& code) noexcept {
        wanted whole[3] = {};
        expect_between(which, code, whole, 0);
    }
    [[nodiscard]] constexpr auto uncompressed() const noexcept -> unsigned { return uncompressed_; }

    // -------------------------------------------------------------------------- the end

    /// Clears TraceEn, and writes back each MSR that the check may have changed. False if the
    /// target refuses a write; while TraceEn stays 1 nothing else is written.
    [[nodiscard]] constexpr auto restore() noexcept -> bool {
        auto const stopped = it_.write(ctl::address, before_.ctl.with(ctl::TraceEn{false}).raw);
        if (!stopped.is_done || is_tracing()) {
            if (is_tracing()) { (void)it_.write(ctl::address, 0); }
            return !is_known_[0];
        }
        bool is_restored = true;
        unsigned number = 0;
        for (access::pt_msr const& msr : access::pt_msrs) {
            if (!is_known_[number++] || msr.index == ctl::address) { continue; }
            is_restored &= it_.write(msr.index.value, access::value_of(before_, msr.index)).is_done;
        }
        bool const is_new = has_global_status() && !had_topa_pmi_ && has_topa_pmi();
        if (is_new) {
            is_restored &= it_.write(reg::ia32_perf_global_status_reset::address, topa_pmi).is_done;
        }
        return is_restored;
    }

private:
    static constexpr unsigned max_touched = 16;
    static constexpr text too_long = "the trace is longer than the check can read";
    static constexpr uint64_t topa_pmi =
        ptspec::detail::field_mask<reg::ia32_perf_global_status::Trace_ToPA_PMI>;

    constexpr void save() noexcept {
        unsigned number = 0;
        for (access::pt_msr const& msr : access::pt_msrs) {
            bool& is_known = is_known_[number++];
            if (!access::exists(caps_, msr.index)) { continue; }
            auto const value = it_.read(msr.index.value);
            is_known = value.is_done;
            if (value.is_done) { access::set_raw(before_, msr.index, value.value); }
        }
        had_topa_pmi_ = has_global_status() && has_topa_pmi();
        state_ = before_;
    }
    [[nodiscard]] constexpr auto has_global_status() noexcept -> bool {
        return caps_.has_pt() && it_.abilities().has(ability::global_status);
    }
    [[nodiscard]] constexpr auto has_topa_pmi() noexcept -> bool {
        auto const value = it_.read(reg::ia32_perf_global_status::address);
        return value.is_done && (value.value & topa_pmi) != 0;
    }
    /// TraceEn as the target has it.
    [[nodiscard]] constexpr auto is_tracing() noexcept -> bool {
        auto const value = it_.read(ctl::address);
        return value.is_done && ctl{value.value}.template get<ctl::TraceEn>();
    }
    /// `whole` has room for three packets more than the body, which begins with the second.
    constexpr void expect_between(rule which, snippet const& code, wanted* whole,
                                  size_t body) noexcept {
        whole[0] = expected::pge_to(snippet::body_at);
        whole[body + 1] = expected::fup_at(code.disable_at);
        whole[body + 2] = expected::pgd();
        expect(which, code, whole, body + 3);
    }
    static constexpr auto not_asked() noexcept -> msr_result { return {.is_asked = false}; }

    [[nodiscard]] constexpr auto armed_entry(uint32_t table, uint32_t index) const noexcept
        -> topa::entry {
        bool const is_end = index == 511 || (index == 1 && !caps_.has_topa_of_many_entries());
        return is_end ? link(table) : region(first_region);
    }
    /// The MSRs that a check may access.
    [[nodiscard]] constexpr auto may_access(msr_index index) noexcept -> bool {
        bool const is_global = index == reg::ia32_perf_global_status::address ||
                               index == reg::ia32_perf_global_status_reset::address ||
                               index == reg::ia32_perf_global_status_set::address;
        bool const may = access::is_pt_msr(index) ||
                         (is_global && it_.abilities().has(ability::global_status));
        is_unsafe_ |= !may;
        return may;
    }
    /// True if the processor changes the MSR while TraceEn is 1.
    [[nodiscard]] constexpr auto is_live(msr_index index) const noexcept -> bool {
        return state_.ctl.template get<ctl::TraceEn>() &&
               (index == status::address || index == ia32_rtit_output_base::address ||
                index == ia32_rtit_output_mask_ptrs::address);
    }
    /// True if a write cannot lead output out of the given pages.
    [[nodiscard]] constexpr auto is_safe(msr_index index, uint64_t value) noexcept -> bool {
        bool const is_output = index == ia32_rtit_output_base::address ||
                               index == ia32_rtit_output_mask_ptrs::address;
        // A wrong target may trace although it should not.
        bool const is_on = state_.ctl.template get<ctl::TraceEn>() || (is_output && is_tracing());
        auto output = state_.output;
        bool enables = false;
        if (index == ctl::address) {
            ctl const word{value};
            enables = word.get<ctl::TraceEn>();
            if (enables && (word.get<ctl::FabricEn>() || !it_.abilities().has(ability::enable))) {
                is_unsafe_ = true;
                return false;
            }
            if (enables && !is_on && caps_.has_output_msrs()) {
                // The target may hold other values than were written.
                output.base = {it_.read(ia32_rtit_output_base::address).value};
                output.mask_ptrs = {it_.read(ia32_rtit_output_mask_ptrs::address).value};
            }
        } else if (is_on && index == ia32_rtit_output_base::address) {
            enables = true;
            output.base = {value};
        } else if (is_on && index == ia32_rtit_output_mask_ptrs::address) {
            enables = true;
            output.mask_ptrs = {value};
        }
        if (!enables || !caps_.has_output_msrs()) { return true; }
        bool const is_inside = may_be_dangerous_ ||
                               output_stays_inside(memory_, output.base, output.mask_ptrs);
        is_unsafe_ |= !is_inside;
        return is_inside;
    }
    constexpr void record(msr_index index, uint64_t value) noexcept {
        state_ = access::apply(caps_, state_, index, value, {}).state;
    }
    [[nodiscard]] static constexpr auto name_of_packet(trace_difference const& found) noexcept
        -> text {
        auto const kind = found.expected.kind != packet::kind::none ? found.expected.kind
                                                                    : found.seen.kind;
        return packet::name_of(kind);
    }

    T& it_;
    given_memory memory_;
    cpu::capabilities const& caps_;
    rule primary_;
    bool may_be_dangerous_;
    engine::model_options const* kind_;
    bool is_unsafe_ = false;
    bool is_disturbed_ = false;
    bool is_armed_ = false;  ///< all entries but those of `touched_` are as `arm_table` makes them
    uint32_t touched_[max_touched] = {};  ///< entries that the check has set since `clear`
    unsigned touched_count_ = 0;
    bool had_topa_pmi_ = false;
    bool is_known_[access::pt_msrs.size()] = {};  ///< MSRs of `before_` that were read
    access::msr_state before_{};
    access::msr_state state_{};
    finding found_{};
    unsigned accesses_ = 0;
    unsigned uncompressed_ = 0;
    trace_bytes bytes_{};
    seen_trace seen_{};
};

/// Something that reads and writes MSRs as a target does, as `msr_port` and `cpuid_port`.
template <class From>
struct port_of {
    From& it;

    [[nodiscard]] constexpr auto query(uint32_t leaf, uint32_t subleaf) noexcept
        -> cpuid_registers {
        return it.query(leaf, subleaf);
    }
    [[nodiscard]] constexpr auto read(uint32_t index) noexcept -> port_value {
        auto const got = it.read(index);
        return {got.is_done, got.value};
    }
    [[nodiscard]] constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        return it.write(index, value).is_done;
    }
    constexpr void fence() const noexcept {}
};

}  // namespace ptspec::suite
