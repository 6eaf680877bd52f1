// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/output/regions.hpp>

/// Where every byte of trace goes, and what stops it from going there.
namespace ptspec::engine {

/// The output of a logical processor: single range, ToPA or fabric. A value; whoever has one also
/// has the MSRs, which it changes as the processor does, and the memory port through which it
/// stores.
///
/// The position is settled at once, as if nothing were buffered: with the byte that fills a region,
/// the next entry has been read, and status and interrupts are there. The two output MSRs are
/// brought up to date by `sync`, by `stop` and by what ends output.
///
/// The port for memory may also be a `fabric_port`, to which a fabric's bytes then go, and a
/// `pmi_port`, in which every interrupt is then raised as it comes.
///
/// A failing port loses and repeats nothing. `write` says how many bytes it took; the next `write`,
/// with the others, or `resume`, does again what failed.
///
/// Shape:  n bytes written at once do what they do one by one.
/// Errors: an operational error sets STATUS.Error, and `why` tells its rule: OUT-022..024,
///         OUT-060..068, OUT-071, OUT-091, OUT-111. ToPA STOP sets STATUS.Stopped: OUT-080.
/// Source: SDM vol. 3, "Trace Output"; OUT-001, OUT-002, OUT-005..008, OUT-020..030, OUT-050..058,
///         OUT-060..071, OUT-080..088, OUT-091, OUT-100..104, OUT-110..117, OUT-120, OUT-121,
///         OUT-131, OUT-133, OUT-151..153, PRG-080..090, PRG-095, PRG-096, PRG-180.
class output : public output_regions {
public:
    constexpr output() noexcept = default;
    /// Output that has ended by a rule.
    constexpr explicit output(rule why) noexcept { why_ = why; }

    /// TraceEn has risen, by whatever set it in `now`. Without TriggerEn nothing is checked, and
    /// every byte is lost.
    template <memory_port Memory>
    constexpr auto start(cpu::capabilities const& of, access::msr_state& now, Memory& memory,
                         output_options const& how = {}) noexcept -> port_fault {
        using ctl = access::ia32_rtit_ctl;
        *this = {};
        how_ = how;
        of_ = topa::limits::of(of);
        asks_ = !of_.many_entries || !how.restricted.is_empty();
        keeps_pmi_ = of.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::INJECTPSBPMI>() &&
                     now.ctl.get<ctl::InjectPsbPmiOnEnable>();
        if (!now.status.get<access::ia32_rtit_status::TriggerEn>()) { return {}; }
        scheme_ = now.ctl.get<ctl::FabricEn>() ? cpu::output_scheme::fabric
                  : now.ctl.get<ctl::ToPA>()   ? cpu::output_scheme::topa
                                               : cpu::output_scheme::single_range;
        at_ = topa::position_in(now.output_base, now.output_mask_ptrs);
        phase_ = scheme_ == cpu::output_scheme::topa ? phase::at_entry : phase::running;
        if (phase_ == phase::at_entry) { return settle(now, memory); }
        if (scheme_ == cpu::output_scheme::single_range) { begin_single_range(now, memory); }
        return {};
    }

    /// Trace goes out: a few bytes that fill nothing, in memory that stands in the program's address
    /// space. False where `write` has to store them.
    [[nodiscard]] constexpr auto put_few(byte_view bytes) noexcept -> bool {
        if (bytes.size() >= run_.room || !are_few_in_place(bytes.size())) { return false; }
        put_in_place(bytes);
        return true;
    }
    /// Trace goes out.
    template <memory_port Memory>
    [[gnu::always_inline]]  // so that it costs only what the caller looks at
    constexpr auto
    write(access::msr_state& now, Memory& memory, byte_view bytes) noexcept -> write_result {
        size_t const count = bytes.size();
        write_result done;
        if (count < run_.room) {
            if (!are_few_in_place(count)) [[unlikely]] {
                return write_with_care(now, memory, bytes);
            }
            done.count_stored(store_address(), count);
            put_in_place(bytes);
            return done;
        }
        if (fills_ && count - run_.room < size_) {
            run const full = run_;
            // The next place is found first, so that a processor can copy meanwhile.
            if (move_on(memory, full)) {
                auto const front = static_cast<size_t>(full.room);
                copy_bytes(full.in_place(), bytes.data(), front);
                if (count != front) { put_in_place(bytes.from(front)); }
                uint64_t const end = count == front ? full.end : store_address();
                done.count_stored(full.end - front, end - 1, count);
                return done;
            }
        }
        return write_with_care(now, memory, bytes);
    }

    /// Does again what a port did not let happen. Nothing where nothing failed.
    template <memory_port Memory>
    constexpr auto resume(access::msr_state& now, Memory& memory) noexcept -> port_fault {
        return phase_ == phase::at_entry ? settle(now, memory) : port_fault{};
    }

private:
    /// True of bytes for `put_in_place`, where there is room for more.
    [[nodiscard]] constexpr auto are_few_in_place(size_t count) const noexcept -> bool {
        // As if new: two branches that are foreseen, not one number made of two comparisons.
        return hide_from_optimizer(run_.end_in_place) != nullptr && count - 1 < few_bytes;
    }
    /// `write_on`, of which the result is copied: where that is not called it is nowhere but in
    /// registers.
    template <memory_port Memory>
    [[gnu::always_inline]]  // so that it is not copied twice
    constexpr auto
    write_with_care(access::msr_state& now, Memory& memory, byte_view bytes) noexcept
        -> write_result {
        write_result const done = write_on(now, memory, bytes);
        return write_result{done};
    }

    /// Goes from run to run.
    template <memory_port Memory>
    [[gnu::noinline]]  // so that it is not in the way of bytes for one run
    constexpr auto
    write_on(access::msr_state& now, Memory& memory, byte_view bytes) noexcept -> write_result {
        write_result done;
        while (done.taken < bytes.size() && !done.why_not_all) {
            byte_view const rest = bytes.from(done.taken);
            if (rest.size() < run_.room && run_.end_in_place != nullptr) {
                done.count_stored(store_address(), rest.size());
                put_in_place(rest);
            } else if (!fill(memory, rest, done)) {
                step(now, memory, rest, done);
            }
        }
        return done;
    }

    /// Fills as many regions as there are bytes for. False where it cannot fill the first.
    template <memory_port Memory>
    [[gnu::noinline]]  // so that it has all registers for itself
    constexpr auto
    fill(Memory& memory, byte_view bytes, write_result& done) noexcept -> bool {
        if (!fills_) { return false; }
        uint64_t const first = store_address();
        uint64_t end = first;
        uint8_t const* from = bytes.data();
        size_t left = bytes.size();
        while (left >= run_.room) {
            run const full = run_;
            if (!move_on(memory, full)) { break; }
            auto const room = static_cast<size_t>(full.room);
            left -= room;
            end = full.end;
            copy_bytes(full.in_place(), from, room);
            from += room;
        }
        if (left == bytes.size()) { return false; }
        done.count_stored(first, end - 1, bytes.size() - left);
        return true;
    }

    /// Does with bytes, at least one, whatever comes first.
    template <memory_port Memory>
    [[gnu::noinline]]  // so that it is not in the way of bytes that only have to be copied
    constexpr void
    step(access::msr_state& now, Memory& memory, byte_view bytes, write_result& done) noexcept {
        catch_up();
        if (phase_ == phase::at_entry) {
            done.why_not_all = settle(now, memory);
        } else if (phase_ == phase::off) {
            done.lost += bytes.size();
            done.taken += bytes.size();
        } else if (scheme_ == cpu::output_scheme::fabric) {
            send(memory, bytes, done);
        } else {
            size_t const most = bytes.size() < run_.room ? bytes.size()
                                                         : static_cast<size_t>(run_.room);
            put(memory, bytes.first(most), done);
            if (run_.room == 0) { turn(now, memory, done); }
        }
    }

    /// The run is at its end: decides what comes next.
    template <memory_port Memory>
    constexpr void turn(access::msr_state& now, Memory& memory, write_result& done) noexcept {
        using topa::entry;
        uint64_t const reached = run_.end - base_;
        at_.offset = static_cast<uint32_t>(reached);
        bool const rings = of_.many_entries ? run_.region.get<entry::INT>() && reached == size_
                                            : reached == pmi_at_;
        if (reached < size_) {
            if (rings) { raise(now, memory, done); }
            return begin_run(now, memory, reached);
        }
        if (scheme_ == cpu::output_scheme::single_range) { return begin_run(now, memory, 0); }
        if (run_.region.get<entry::STOP>()) {
            end(now, rule::OUT_080);
            now.status = now.status.with(access::ia32_rtit_status::Stopped{true});
        }
        if (rings) { raise(now, memory, done); }
        if (phase_ == phase::off) { return; }
        at_ = topa::next_entry(at_);
        phase_ = phase::at_entry;
        done.why_not_all = take_next(now, memory);
    }
};

}  // namespace ptspec::engine
