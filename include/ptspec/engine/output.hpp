// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/output_regions.hpp>

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
    /// TraceEn has risen, by whatever set it in `now`. Without TriggerEn nothing is checked, and
    /// every byte is lost.
    template <memory_port Memory>
    constexpr auto start(cpu::capabilities const& of, access::msr_state& now, Memory& memory,
                         output_options const& how = {}) noexcept -> port_fault {
        using ctl = access::ia32_rtit_ctl;
        *this = {};
        how_ = how;
        of_ = {of.max_phys_addr(), of.has_topa_of_many_entries()};
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

    /// Trace goes out.
    template <memory_port Memory>
    [[gnu::always_inline]]  // so that it costs only what the caller looks at
    constexpr auto
    write(access::msr_state& now, Memory& memory, byte_view bytes) noexcept -> written {
        size_t const count = bytes.size();
        written done;
        if (count < run_.room) {
            bool const in_place = run_.end_in_place != nullptr;
            if (count - 1 >= few_bytes || !in_place) { return write_on(now, memory, bytes); }
            done.count_stored(store_address(), count);
            put_in_place(bytes);
            return done;
        }
        if (!can_fill() || count - run_.room >= size_) { return write_on(now, memory, bytes); }
        if (count != run_.room) { return fill_and_begin(now, memory, bytes); }
        done.count_stored(store_address(), count);
        done.why_not_all = fill(now, memory, bytes.data());
        return done;
    }

    /// Does again what a port did not let happen. Nothing where nothing failed.
    template <memory_port Memory>
    constexpr auto resume(access::msr_state& now, Memory& memory) noexcept -> port_fault {
        return phase_ == phase::at_entry ? settle(now, memory) : port_fault{};
    }

private:
    /// Goes from run to run.
    template <memory_port Memory>
    [[gnu::noinline]]  // so that it is not in the way of bytes for one run
    constexpr auto
    write_on(access::msr_state& now, Memory& memory, byte_view bytes) noexcept -> written {
        written done;
        while (done.taken < bytes.size() && !done.why_not_all) {
            byte_view const rest = bytes.from(done.taken);
            if (rest.size() >= run_.room && can_fill()) {
                fill_all(now, memory, rest, done);
            } else if (rest.size() < run_.room && run_.end_in_place != nullptr) {
                done.count_stored(store_address(), rest.size());
                put_in_place(rest);
            } else {
                step(now, memory, rest, done);
            }
        }
        return done;
    }

    /// Fills as many regions as there are bytes for, at least one. Regions in a row in the program's
    /// memory are one copy. The run is a local, which the bytes that are copied cannot change: so a
    /// compiler keeps it in registers.
    template <memory_port Memory>
    [[gnu::noinline]]  // so that it has all of them
    constexpr void
    fill_all(access::msr_state& now, Memory& memory, byte_view bytes, written& done) noexcept {
        uint8_t const* from = bytes.data();
        uint64_t const first = store_address();
        uint64_t last = first;
        size_t left = bytes.size();
        run here = run_;
        uint8_t* to = here.in_place();
        size_t count = 0;  // of bytes to be copied there
        while (left >= here.room && is_next_apart(here)) {
            topa::entry const next{load_le64(here.next_entry)};
            size_t const room = static_cast<size_t>(here.room);
            last = here.end - 1;
            left -= room;
            if (!move_on(here, memory, next)) {
                copy_bytes(to, from, count);
                run_ = here;
                done.why_not_all = fill_last(now, memory, from + count, next);
                return done.count_stored(first, last, bytes.size() - left);
            }
            count += room;
            if (here.in_place() != to + count) {
                copy_bytes(to, from, count);
                from += count;
                to = here.in_place();
                count = 0;
            }
        }
        copy_bytes(to, from, count);
        run_ = here;
        done.count_stored(first, last, bytes.size() - left);
    }

    /// Does with bytes, at least one, whatever comes first.
    template <memory_port Memory>
    [[gnu::noinline]]  // so that it is not in the way of bytes that only have to be copied
    constexpr void
    step(access::msr_state& now, Memory& memory, byte_view bytes, written& done) noexcept {
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

    /// Fills the rest of the region. The next place is found first, so that a processor can copy
    /// meanwhile.
    template <memory_port Memory>
    [[gnu::noinline]]  // so that it is not in the way of few bytes
    constexpr auto
    fill(access::msr_state& now, Memory& memory, uint8_t const* from) noexcept -> port_fault {
        run const full = run_;
        topa::entry const next{load_le64(full.next_entry)};
        if (!move_on(run_, memory, next)) { return fill_last(now, memory, from, next); }
        copy_bytes(full.in_place(), from, static_cast<size_t>(full.room));
        return {};
    }

    /// Fills the rest of the region, and begins the next with the other bytes: less than it has.
    template <memory_port Memory>
    [[gnu::noinline]]  // as `fill`
    constexpr auto
    fill_and_begin(access::msr_state& now, Memory& memory, byte_view bytes) noexcept -> written {
        written done;
        run const full = run_;
        uint64_t const first = store_address();
        topa::entry const next{load_le64(full.next_entry)};
        auto const front = static_cast<size_t>(full.room);
        if (!move_on(run_, memory, next)) {
            done.count_stored(first, front);
            done.why_not_all = fill_last(now, memory, bytes.data(), next);
            if (!done.why_not_all) { done += write_on(now, memory, bytes.from(front)); }
            return done;
        }
        uint8_t* const to = run_.in_place();
        size_t const left = bytes.size() - front;
        run_.room -= left;
        done.count_stored(first, store_address() - 1, bytes.size());
        if (to == full.in_place() + front) {
            copy_bytes(full.in_place(), bytes.data(), bytes.size());
        } else {
            copy_bytes(full.in_place(), bytes.data(), front);
            copy_bytes(to, bytes.data() + front, left);
        }
        return done;
    }

    /// Fills the rest of the region, and begins the next as one of which nothing is known yet.
    template <memory_port Memory>
    [[gnu::noinline]]  // so that it is not in the way of `fill`
    constexpr auto
    fill_last(access::msr_state& now, Memory& memory, uint8_t const* from,
              topa::entry next) noexcept -> port_fault {
        copy_bytes(run_.in_place(), from, static_cast<size_t>(run_.room));
        run_.room = 0;
        catch_up();
        at_ = topa::behind(at_);
        run_.next_entry += sizeof(topa::entry);
        caught_up_ = run_.next_entry;
        rule const broken = topa::broken_rule(next, {at_.table, at_.index}, of_);
        if (broken != rule::none) {
            fail(now, broken);
        } else if (next.get<topa::entry::END>()) {
            at_ = topa::through(next);
            phase_ = phase::at_entry;
            return settle(now, memory);
        } else {
            begin_region(now, memory, next);
        }
        return {};
    }

    /// The run is at its end: decides what comes next.
    template <memory_port Memory>
    constexpr void turn(access::msr_state& now, Memory& memory, written& done) noexcept {
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
        at_ = topa::behind(at_);
        phase_ = phase::at_entry;
        done.why_not_all = settle(now, memory);
    }
};

}  // namespace ptspec::engine
