// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/detail/run_recorder.hpp>
#include <ptspec/trace/branch_packets.hpp>
#include <ptspec/base/attribute.hpp>

namespace ptspec::flow::detail {

/// Where a walk is, in the registers of a loop.
struct run_position {
    uint64_t ip = 0;
    uint64_t branches = 1;   ///< that are left, as in `packet::marked_branches`
    uint64_t first_tnt = 0;  ///< the offset of the first of their TNTs
    bool is_on = false;
    bool has_stopped = false;  ///< there may be a gap, or code is missing: the walk knows
};

/// Runs that were counted, and whose effect on the return stack waits. Most runs are followed by a
/// TIP.PGD, which clears the stack, or end before a RET needs it.
struct run_log {
    static constexpr unsigned max_count = 64;

    run const* runs[max_count];
    unsigned count = 0;
    bool clears = false;  ///< the return stack is cleared before these runs
};

/// True if the compressed RETs of a run take these return addresses.
template <class Returns, class Options>
constexpr auto takes_returns(run const& one, Returns const& returns, Options const& options,
                             code_width width) noexcept -> bool {
    if (one.takes == 0) { return true; }
    if (returns.size_after(one.depth) < one.takes) { return false; }
    for (unsigned i = 0; i < one.takes; ++i) {
        uint64_t const entry = returns[returns.size() - 1 - i];
        if (options.ips.popped(entry, width) != one.address(i)) { return false; }
    }
    return true;
}
/// Changes the return stack as a run does.
template <class Returns, class Options>
constexpr void apply_returns(run const& one, Returns& returns, Options const& options,
                             code_width width) noexcept {
    if ((one.effects & run::has_returns) == 0) { return; }
    returns.replace(one.takes, one.pushes, one.depth,
                    [&](unsigned i) { return one.address(one.takes + i); });
    if (options.on_ret_mismatch == trace::ret_mismatch::pop) {
        returns.drop(one.pops ? 1 : 0);
    } else if (one.pops) {
        (void)returns.pop(one.key.to, trace::popped_bits(width), options.on_ret_mismatch);
    }
}

/// The end of a run, by the packet that follows its branches.
constexpr auto end_of(packet::kind what) noexcept -> run_end {
    return what == packet::kind::tip       ? run_end::tip
           : what == packet::kind::tip_pge ? run_end::tip_pge
           : what == packet::kind::tip_pgd ? run_end::tip_pgd_out
                                           : run_end::none;
}

/// Reads the packets of runs: PAD, TNT, TIP, TIP.PGE, TIP.PGD, CYC and MTC, and TSC while tracing
/// is on. Any other packet ends the loop. `walk` is a `code_walk` without a gap.
///
/// flatten: without it the variables are in memory, and coverage with a full table takes 10 % more
/// instructions (g++ 12).
template <class Packets, class Walk, class Binds, class Sink>
PTSPEC_ATTRIBUTE(flatten)
constexpr auto read_runs(Walk& walk, Binds& binds, Sink& sink, uint8_t const* const bytes,
                         size_t room, uint64_t offset, uint64_t last_ip) -> trace::skipped_packets {
    using packet::kind;
    constexpr uint64_t off = packet::marked_branches::off;
    auto& runs = *sink.runs();
    uint64_t place = walk.place_in(runs);
    run_position const start = walk.position();
    uint64_t from = start.ip;
    uint64_t branches = start.is_on ? start.branches : off;
    uint8_t const* at = bytes;
    uint8_t const* const end = bytes + (room < run_table::max_bytes ? room : run_table::max_bytes);
    uint8_t const* first_tnt = nullptr;
    run* previous = nullptr;  // the run that ends at `at`, if it is in the table
    bool has_ended = false;   // tracing, which the binder does not know yet
    uint64_t ended_at = 0;
    bool has_stopped = false;  // the walk has a gap, or lacks code
    run_log waiting;

    auto const offset_of = [&](uint8_t const* byte) {
        return offset + static_cast<size_t>(byte - bytes);
    };
    auto const here = [&]() -> run_position {
        return {from, branches != off ? branches : 1,
                first_tnt == nullptr ? start.first_tnt : offset_of(first_tnt), branches != off};
    };
    auto const wide_at = [](uint8_t const* byte) -> wide_bits {
        return {load_le64(byte), load_le64(byte + 8)};
    };
    auto const repeat = [&](run& known) {
        detail::repeat(known, runs, sink);
        waiting.runs[waiting.count] = &known;
        waiting.count += known.effects & run::has_returns;
        if (waiting.count == run_log::max_count) [[unlikely]] { walk.apply_returns(waiting); }
    };
    auto const clear_returns = [&]() {
        waiting.count = 0;
        waiting.clears = true;
    };
    // True if a run was executed, whose compressed RETs may take return addresses of before.
    auto const is_right = [&](run const& known) -> bool {
        if ((known.effects & run::has_takes) == 0) [[likely]] { return true; }
        walk.apply_returns(waiting);
        return walk.takes_returns(known);
    };
    auto const find = [&](run_key const& key) -> run* {
        run* const known = runs.find(key);
        return known == nullptr || is_right(*known) ? known : runs.find(key, is_right);
    };
    // The runs that followed the one before another time.
    auto const follow = [&]() {
        run const* last_target = nullptr;
        run const* last_end = nullptr;
        while (at < end) {
            run_successor const* const next = runs.find_after(*previous, wide_at(at));
            run* const known = next != nullptr ? runs.find(*next) : nullptr;
            if (known == nullptr || !is_right(*known)) { break; }
            at += next->size;
            repeat(*known);
            previous = known;
            last_target = (known->effects & run::has_target) != 0 ? known : last_target;
            if ((known->effects & run::clears) != 0) {
                clear_returns();
                if ((known->effects & run::ends) != 0) { last_end = known; }
            }
        }
        from = previous->next;
        branches = (previous->effects & run::ends) != 0 ? off : 1;
        if (last_target != nullptr) { last_ip = last_target->next; }
        if (last_end != nullptr) {
            has_ended = true;
            ended_at = last_end->next;
        }
    };

    for (;;) {
        if (previous != nullptr) { follow(); }
        uint8_t const* const begin = at;
        auto const got = trace::read_branches<Packets>(bytes, at, end, branches, first_tnt,
                                                       last_ip);
        bool const starts = got.what == kind::tip_pge;
        if (got.what == kind::pad || (starts && !has_ended && !binds.start_tracing())) { break; }
        auto const how = end_of(got.what);
        run* before = got.has_times ? nullptr : previous;
        uint16_t const before_id = before != nullptr ? before->id : uint16_t{0};
        run_key key{starts ? 0 : from, got.ip, starts ? 1 : branches, place | underlying(how)};
        run* known = find(key);
        bool is_cut = false;  // into short runs
        while (known == nullptr ? key.is_long() : known->is_part) {
            if (known == nullptr) {
                is_cut = true;
                known = find(key.start());
                if (known == nullptr) { break; }
            }
            repeat(*known);
            key = key.after(known->taken, known->next);
            from = key.from;
            branches = key.branches;
            known = is_cut && key.is_long() ? nullptr : find(key);
            before = nullptr;
        }
        if (known != nullptr) {
            repeat(*known);
            from = known->next;
        } else {
            if (starts) {
                walk.start_run(key, sink);
                from = key.to;
            } else {
                auto const after = walk.walk_run(here(), how, got.ip, offset_of(at), waiting, sink);
                has_stopped = after.has_stopped;
                if (has_stopped) { break; }
                from = after.ip;
            }
            known = runs.find(key);
            if (known != nullptr && !known->is_plain()) { known = nullptr; }
            // The source of the code may have changed it.
            uint64_t const before_walk = place;
            place = walk.place_in(runs);
            if (place != before_walk) { known = nullptr; }
        }
        at += got.length;
        auto const size = static_cast<size_t>(at - begin);
        bool const is_near = before != nullptr && size <= run_successor::max_size;
        // The run before may have been replaced. Its IP is LastIP only if a packet has it.
        if (is_near && known != nullptr && before->id == before_id &&
            (how == run_end::none || (before->effects & run::has_target) != 0)) {
            runs.add_after(*before, *known, wide_at(begin), size);
        }
        previous = known;
        branches = how == run_end::tip_pgd_out ? off : 1;
        if (how != run_end::none) { last_ip = got.ip; }
        if (starts || branches == off) { clear_returns(); }
        if (branches == off) {
            has_ended = true;
            ended_at = got.ip;
        }
    }
    if (!has_stopped) {
        walk.apply_returns(waiting);
        walk.set_position(here());
    }
    if (has_ended) {
        (void)binds.end_tracing({true, ended_at});
        if (branches != off) { (void)binds.start_tracing(); }
    }
    auto const size = static_cast<size_t>(at - bytes);
    if constexpr (!repeats_runs<Sink>) { runs.add_bytes(size, sink); }
    return {size, last_ip};
}

}  // namespace ptspec::flow::detail

#undef PTSPEC_ATTRIBUTE
