// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/kinds.hpp>
#include <ptspec/suite/model_target.hpp>

/// The traces by which the kind of a processor is found: as a target makes them, and as a model
/// with other options does.
namespace ptspec::suite::detail {

/// How a snippet is traced.
enum class traced_with : uint8_t {
    usual,
    no_context,      ///< OS = 0: ContextEn is 0
    no_retc,         ///< DisRETC = 1
    values,          ///< PTWRITE with FUP
    filter,          ///< a filter range from mark 0 to mark 4
    stop_at_cr3,     ///< a TraceStop range that is the MOV CR3 before mark 0
    stop_after_cr3,  ///< a TraceStop range that is mark 0
    cycles,          ///< CYCs
    time,            ///< TSC, MTCs and CYCs
};

/// What shows options. In this order each depends on few options that are not known yet.
enum class shown_by : uint8_t {
    enabling,
    conditionals,
    indirect_jumps,
    returns,
    mov_cr3,
    enabling_again,
    all_packets,  ///< these and those before, PADs included
    psbs,
    cycles,
    all,
};

/// A trace: one run of a snippet or several after each other.
struct kind_trace {
    shown_by shows;
    snippet const* code;
    traced_with how = traced_with::usual;
    uint8_t runs = 1;
    uint8_t psb_freq = 0;
    bool sets_count = false;  ///< PacketByteCnt is set before each run; else it is kept

    /// The packets of enabling have fewer bytes.
    static constexpr unsigned bytes_of_enable = 128;

    /// True if it shows where PSBs come.
    [[nodiscard]] constexpr auto has_psbs() const noexcept -> bool { return runs > 2; }
    /// PacketByteCnt before a run if it is set. A PSB without steps is due some bytes after the
    /// beginning, or was due before: then it comes at once if a step has begun since.
    [[nodiscard]] static constexpr auto count_before(unsigned run) noexcept -> uint64_t {
        constexpr unsigned due_before[] = {490, 528,  440, 560,  390, 640,  340, 820,
                                           280, 1120, 210, 1520, 120, 2320, 0,   3520};
        return 1528 + due_before[run % 16] + 7 * uint64_t{run} % 64;
    }
};

inline constexpr kind_trace kind_traces[] = {
    {shown_by::enabling, &snippets::nothing},
    {shown_by::conditionals, &snippets::many_conditionals},
    {shown_by::indirect_jumps, &snippets::branches},
    {shown_by::indirect_jumps, &snippets::indirect},
    {shown_by::indirect_jumps, &snippets::areas},
    {shown_by::returns, &snippets::calls},
    {shown_by::returns, &snippets::mismatched_returns},
    {shown_by::returns, &snippets::calls_of_next},
    {shown_by::returns, &snippets::nested_calls},
    {shown_by::returns, &snippets::far_return},
    {shown_by::returns, &snippets::interrupt_return},
    {shown_by::mov_cr3, &snippets::paging},
    {shown_by::mov_cr3, &snippets::paging, traced_with::stop_at_cr3},
    {shown_by::mov_cr3, &snippets::paging, traced_with::stop_after_cr3},
    {.shows = shown_by::enabling_again, .code = &snippets::branches, .runs = 2},
    {shown_by::all_packets, &snippets::nothing, traced_with::no_context},
    {shown_by::all_packets, &snippets::areas, traced_with::filter},
    {shown_by::all_packets, &snippets::calls, traced_with::no_retc},
    {shown_by::all_packets, &snippets::ptwrites, traced_with::values},
    {shown_by::all_packets, &snippets::transaction},
    {shown_by::all_packets, &snippets::aborted_transaction},
    {.shows = shown_by::psbs, .code = &snippets::long_run, .runs = 48},
    {.shows = shown_by::psbs, .code = &snippets::long_run, .runs = 24, .psb_freq = 1},
    {.shows = shown_by::psbs, .code = &snippets::long_run, .runs = 64, .sets_count = true},
    {shown_by::psbs, &snippets::nothing, traced_with::no_context, 128, 0, true},
    {shown_by::cycles, &snippets::quiet_run, traced_with::cycles},
    {shown_by::all, &snippets::long_run, traced_with::time},
};
inline constexpr unsigned kind_trace_count = sizeof kind_traces / sizeof kind_traces[0];

[[nodiscard]] constexpr auto count_of_runs() noexcept -> unsigned {
    unsigned count = 0;
    for (auto const& one : kind_traces) { count += one.runs; }
    return count;
}

/// IA32_RTIT_CTL for a trace.
[[nodiscard]] constexpr auto ctl_of(kind_trace const& one, ia32_rtit_ctl usual) noexcept
    -> ia32_rtit_ctl {
    using ctl = ia32_rtit_ctl;
    using reg::addr_cfg;
    auto const with = usual.with(ctl::PSBFreq{wrapped{unsigned{one.psb_freq}}});
    switch (one.how) {
        case traced_with::usual: break;
        case traced_with::no_context: return with.with(ctl::OS{false});
        case traced_with::no_retc: return with.with(ctl::DisRETC{true});
        case traced_with::values: return with.with(ctl::PTWEn{true}, ctl::FUPonPTW{true});
        case traced_with::filter: return with.with(ctl::ADDR0_CFG{addr_cfg::filter});
        case traced_with::stop_at_cr3:
        case traced_with::stop_after_cr3: return with.with(ctl::ADDR0_CFG{addr_cfg::trace_stop});
        case traced_with::cycles: return with.with(ctl::CYCEn{true});
        case traced_with::time:
            return with.with(ctl::TSCEn{true}, ctl::MTCEn{true}, ctl::CYCEn{true});
    }
    return with;
}
/// The range of a trace, as offsets from the snippet.
[[nodiscard]] constexpr auto range_of(kind_trace const& one) noexcept -> stretch {
    constexpr unsigned mov_cr3_bytes = 3;
    uint64_t const first = one.code->marks[0];
    switch (one.how) {
        case traced_with::filter: return {first, one.code->marks[4]};
        case traced_with::stop_at_cr3: return {first - mov_cr3_bytes, first - 1};
        default: return {first, first};
    }
}
[[nodiscard]] constexpr auto has_range(kind_trace const& one) noexcept -> bool {
    return one.how == traced_with::filter || one.how == traced_with::stop_at_cr3 ||
           one.how == traced_with::stop_after_cr3;
}

/// A number for the bytes of a trace (FNV-1a). PADs are left out, and the core:bus ratios of CBRs,
/// if wanted.
[[nodiscard]] constexpr auto digest(byte_view bytes, bool with_pads, bool any_ratio) noexcept
    -> uint64_t {
    uint64_t sum = 0xCBF2'9CE4'8422'2325;
    auto const add = [&](uint8_t byte) { sum = (sum ^ byte) * 0x100'0000'01B3; };
    if (with_pads && !any_ratio) {
        for (uint8_t const byte : bytes) { add(byte); }
        return sum;
    }
    constexpr unsigned ratio_at = 2;
    trace::reader reader{bytes, {.sync = false}};
    for (auto one = reader.next(); one; one = reader.next()) {
        bool const is_packet = one.what == trace::item_type::packet;
        if (is_packet && one.packet.kind() == packet::kind::pad && !with_pads) { continue; }
        bool const is_cbr = is_packet && one.packet.kind() == packet::kind::cbr && any_ratio;
        uint64_t const begin = one.offset;
        for (unsigned i = 0; i < one.length; ++i) {
            add(is_cbr && i == ratio_at ? uint8_t{0} : bytes[static_cast<size_t>(begin) + i]);
        }
    }
    return sum;
}

/// A PSB+ in a trace of many runs.
///
/// Units:  bytes from the beginning of its run.
struct psb_place {
    uint16_t begin = 0;         ///< of the PSB, or of PADs before it
    uint16_t end = 0;           ///< of its PSBEND
    uint16_t not_due = 0;       ///< it was not due up to here: the last TIP but one ended
    bool is_of_enable = false;  ///< near the beginning of the run
};

/// What is compared: packets without PADs, all bytes, or all bytes and PacketByteCnt.
enum class compared_by : uint8_t { packets, bytes, counts };

/// The traces of a target.
class target_traces {
public:
    struct run {
        uint64_t bytes = 0;         ///< the digest
        uint64_t without_pads = 0;  ///< the digest without PADs
        unsigned size = 0;
        unsigned count = 0;  ///< PacketByteCnt after it
        unsigned first_psb = 0;
        unsigned psb_count = 0;  ///< 0 in a trace of few runs
    };
    struct made {
        bool is_made = false;
        unsigned first_run = 0;
        uint64_t address = 0;  ///< of the snippet
        uint64_t tsc = 0;      ///< before the first run
        uint64_t last_ip = 0;  ///< before the first run
    };

    /// Traces the snippets on a target.
    template <target T>
    constexpr target_traces(T& it, cpu::capabilities const& caps) noexcept : caps_{caps} {
        armed<T> on{it, caps, rule_of("GEN-009")};
        auto const lacking = missing(needs::tracing(), caps, it.abilities(), it.memory().pages);
        if (lacking.size() != 0) {
            problem_ = {.what = outcome::skipped, .detail = lacking};
            return;
        }
        any_ratio_ = !on.can(ability::model_time);
        usual_ = on.usual_ctl();
        cr3_ = on.cr3();
        if (on.trace(snippets::nothing, usual_).has_run) {
            run first;
            read(on.bytes().view(), kind_traces[0], first);
        }
        for (unsigned i = 0; i < kind_trace_count && !has_problem(on); ++i) { make(on, i); }
        if (!has_problem(on)) { ask_for_lag(on); }
        if (has_problem(on)) { problem_ = on.result(); }
        if (on.is_disturbed()) { problem_ = {.what = outcome::unsteady, .detail = "disturbed"}; }
        if (!on.restore() && problem_.what == outcome::holds) {
            problem_ = {.what = outcome::error, .detail = "the target refuses to restore an MSR"};
        }
    }

    /// `holds`, or why traces are missing that the target should have made.
    [[nodiscard]] constexpr auto problem() const noexcept -> finding const& { return problem_; }
    [[nodiscard]] constexpr auto caps() const noexcept -> cpu::capabilities const& { return caps_; }
    [[nodiscard]] constexpr auto operator[](unsigned number) const noexcept -> made const& {
        return all_[number];
    }
    [[nodiscard]] constexpr auto count() const noexcept -> unsigned {
        unsigned count = 0;
        for (auto const& one : all_) { count += one.is_made; }
        return count;
    }
    [[nodiscard]] constexpr auto run_of(made const& trace, unsigned number) const noexcept
        -> run const& {
        return runs_[trace.first_run + number];
    }
    [[nodiscard]] constexpr auto psb(unsigned number) const noexcept -> psb_place const& {
        return psbs_[number];
    }
    /// A common divisor of the sizes of runs that cleared TraceEn.
    [[nodiscard]] constexpr auto divisor_of_sizes() const noexcept -> uint64_t { return divisor_; }
    /// True if `lags` says whether the output MSRs lag.
    [[nodiscard]] constexpr auto lag_is_known() const noexcept -> bool { return lag_is_known_; }
    [[nodiscard]] constexpr auto lags() const noexcept -> bool { return lags_; }

    /// The number of runs of a trace in which the model has the bytes of the target, before the
    /// first one in which it has others.
    [[nodiscard]] constexpr auto agreeing_runs(unsigned number, engine::model_options const& row,
                                               compared_by what) const noexcept -> unsigned {
        bool const with_pads = what != compared_by::packets;
        auto const& asked = kind_traces[number];
        auto const& seen = all_[number];
        auto options = row;
        if (!with_pads) {
            options.pads = trace::pad_policy::none;
            options.end_alignment = 0;
        }
        uint8_t pages[model_pages * given_memory::page_bytes] = {};
        model_target model{
            caps_,
            options,
            pages,
            model_pages,
            defect::none,
            {.code = seen.address, .cr3 = cr3_, .tsc = seen.tsc, .last_ip = seen.last_ip}};
        auto const with = ctl_of(asked, usual_);
        uint64_t count = 0;
        for (unsigned i = 0; i < asked.runs; ++i) {
            if (asked.sets_count) { count = set_count(asked, i); }
            auto const bytes = run_of_model(model, asked, with, pages, count);
            auto const& want = runs_[seen.first_run + i];
            bool const is_equal = with_pads ? bytes.size() == want.size &&
                                                  digest(bytes, true, any_ratio_) == want.bytes
                                            : digest(bytes, false, any_ratio_) == want.without_pads;
            bool const counts = what != compared_by::counts ||
                                status{count}.get<status::PacketByteCnt>() == want.count;
            if (!is_equal || !counts) { return i; }
        }
        return asked.runs;
    }

private:
    using ctl = ia32_rtit_ctl;
    using status = ia32_rtit_status;
    static constexpr uint32_t model_pages = 2;
    static constexpr unsigned max_psbs = 512;
    static constexpr uint32_t range_a = reg::ia32_rtit_addr::address(0, access::range_end::a);
    static constexpr uint32_t range_b = reg::ia32_rtit_addr::address(0, access::range_end::b);

    template <target T>
    [[nodiscard]] static constexpr auto has_problem(armed<T> const& on) noexcept -> bool {
        return on.is_broken() || on.result().what == outcome::skipped ||
               on.result().what == outcome::error;
    }
    /// True if the processor and the target can make a trace.
    template <target T>
    [[nodiscard]] constexpr auto is_possible(armed<T>& on, kind_trace const& one,
                                             ctl with) const noexcept -> bool {
        bool const is_timed = one.how == traced_with::cycles || one.how == traced_with::time;
        auto const lacking = missing(needs{.code = one.code}, caps_, {}, 0);
        return access::is_legal(caps_, with) && lacking.size() == 0 &&
               (!has_range(one) || caps_.address_ranges() != 0) &&
               (!one.sets_count || features::cyc.is_met(caps_)) &&
               (!is_timed || on.can(ability::model_time));
    }
    template <target T>
    constexpr void make(armed<T>& on, unsigned number) noexcept {
        auto const& asked = kind_traces[number];
        auto const with = ctl_of(asked, usual_);
        if (!is_possible(on, asked, with)) { return; }
        auto& one = all_[number];
        one.address = on.address_of(*asked.code);
        one.last_ip = last_ip_;
        one.first_run = run_count_;
        auto const range = range_of(asked);
        if (has_range(asked) && !(on.set(range_a, one.address + range.first) &&
                                  on.set(range_b, one.address + range.end))) {
            return;
        }
        for (unsigned i = 0; i < asked.runs; ++i) {
            auto const keeps = on.state().status;
            uint64_t const before = asked.sets_count ? set_count(asked, i) : i != 0 ? keeps.raw : 0;
            if (!on.set_usual_output() || !on.set(status::address, before)) { return; }
            auto const got = on.run_and_read(*asked.code, with);
            if (!got.has_run) { return; }
            if (i == 0) { one.tsc = got.code.tsc_before; }
            keep(on.bytes().view(), asked, got.status);
        }
        one.is_made = true;
    }
    [[nodiscard]] static constexpr auto set_count(kind_trace const& asked, unsigned run) noexcept
        -> uint64_t {
        return status{}.with(status::PacketByteCnt{wrapped{asked.count_before(run)}}).raw;
    }
    constexpr void keep(byte_view bytes, kind_trace const& asked, status after) noexcept {
        auto& last = runs_[run_count_++];
        last = {.bytes = digest(bytes, true, any_ratio_),
                .without_pads = digest(bytes, false, any_ratio_),
                .size = static_cast<unsigned>(bytes.size()),
                .count = static_cast<unsigned>(after.get<status::PacketByteCnt>()),
                .first_psb = psb_count_};
        read(bytes, asked, last);
        if (after.get<status::Stopped>()) { return; }
        for (uint64_t rest = bytes.size(); rest != 0;) {
            uint64_t const next = divisor_ % rest;
            divisor_ = rest;
            rest = next;
        }
    }
    /// Reads the last IP of a run, and where its PSB+ are.
    constexpr void read(byte_view bytes, kind_trace const& asked, run& to) noexcept {
        unsigned const of_enable = asked.how == traced_with::no_context
                                       ? 1
                                       : kind_trace::bytes_of_enable;
        uint16_t last_end = 0;
        uint16_t tip_end = 0;
        uint16_t not_due = 0;
        trace::reader reader{bytes, {.sync = false}};
        for (auto one = reader.next(); one; one = reader.next()) {
            auto const kind = one.packet.kind();
            if (one.what != trace::item_type::packet || kind == packet::kind::pad) { continue; }
            packet::visit<packet::all>(
                [&](auto const& it) { last_ip_ = packet::last_ip_after(it, last_ip_); },
                one.packet);
            auto const end = static_cast<uint16_t>(one.offset + one.length);
            if (kind == packet::kind::tip) {
                not_due = tip_end;
                tip_end = end;
            } else if (kind == packet::kind::psb && asked.has_psbs() && psb_count_ < max_psbs) {
                psbs_[psb_count_++] = {last_end, end, not_due, last_end < of_enable};
                ++to.psb_count;
            } else if (kind == packet::kind::psbend && to.psb_count != 0) {
                psbs_[psb_count_ - 1].end = end;
            }
            last_end = end;
        }
    }
    /// Whether OutputOffset moves while TraceEn is 1.
    template <target T>
    constexpr void ask_for_lag(armed<T>& on) noexcept {
        constexpr unsigned max_reads = 64;
        if (!on.set_usual_output()) { return; }
        auto const before = on.read(ia32_rtit_output_mask_ptrs::address);
        if (!before.is_done || !on.set(ctl::address, usual_.with(ctl::TraceEn{true}).raw)) {
            return;
        }
        lags_ = true;
        for (unsigned i = 0; i < max_reads && lags_; ++i) {
            lags_ = on.read(ia32_rtit_output_mask_ptrs::address).value == before.value;
        }
        lag_is_known_ = on.set(ctl::address, usual_.raw);
    }

    /// The bytes of a run of a model. `count` is PacketByteCnt, which the run keeps.
    [[nodiscard]] constexpr auto run_of_model(
        model_target& model, kind_trace const& asked, ctl with,
        uint8_t const (&pages)[model_pages * given_memory::page_bytes],
        uint64_t& count) const noexcept -> byte_view {
        using pointers = ia32_rtit_output_mask_ptrs;
        auto const given = model.memory();
        bool const is_table = with.get<ctl::ToPA>();
        if (is_table) {
            store_le64(given.bytes,
                       topa::entry{}.with(topa::entry::Base{wrapped{given.page(1)}}).raw);
            store_le64(given.bytes + 8, topa::link_to({given.page(0)}).raw);
        }
        (void)model.write(ia32_rtit_output_base::address, given.page(is_table ? 0 : 1));
        (void)model.write(pointers::address,
                          is_table ? pointers::forced_1_mask() : given_memory::page_bytes - 1);
        (void)model.write(status::address, count);
        if (has_range(asked)) {
            auto const range = range_of(asked);
            uint64_t const base = model.address_of(*asked.code);
            (void)model.write(range_a, base + range.first);
            (void)model.write(range_b, base + range.end);
        }
        (void)model.execute(*asked.code, with.with(ctl::TraceEn{true}).raw, with.raw);
        count = model.read(status::address).value;
        auto const last = pointers{model.read(pointers::address).value};
        uint64_t const size = last.get<pointers::OutputOffset>();
        return byte_view{pages + given_memory::page_bytes, given_memory::page_bytes}.first(
            static_cast<size_t>(size));
    }

    cpu::capabilities const& caps_;
    ctl usual_{};
    uint64_t cr3_ = 0;
    bool any_ratio_ = false;
    bool lag_is_known_ = false;
    bool lags_ = false;
    finding problem_{};
    uint64_t divisor_ = 0;
    uint64_t last_ip_ = 0;
    made all_[kind_trace_count] = {};
    run runs_[count_of_runs()] = {};
    unsigned run_count_ = 0;
    psb_place psbs_[max_psbs] = {};
    unsigned psb_count_ = 0;
};

}  // namespace ptspec::suite::detail
