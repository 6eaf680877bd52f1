// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/detail/frames.hpp>

/// Calls and returns, from the edges and blocks of a walk.
namespace ptspec::flow {

/// How a thread with several stacks shows which one executes.
enum class stack_choice : uint8_t {
    by_returns,  ///< by the addresses to which it returns
    by_ptwrite,  ///< by the payload of PTWRITE: the number of the stack that executes from there
};

/// A sink of a walker that reports calls and returns to another one: `call(call)`,
/// `returned(call_return)` and, of threads with several stacks, `switched(stack_switch)`.
///
/// It follows the code, not the processor: PSBs and lost packets do not clear it. Lost packets only
/// set `is_unsure` in its frames. A CALL of the next instruction is not a call. Where tracing
/// begins again at the address after a CALL, code that is filtered out has returned. If tracing
/// ends at a system call or fault, a frame of kind `stopped` lasts until it begins again; if it
/// then begins at another instruction than the next one, a signal handler executes: a frame of kind
/// `event`.
///
/// If the sink `knows_functions`, the newest frame is always that of the function that contains the
/// IP. A branch, or straight code, from one function into another is a tail call: its frame
/// replaces the other. A RET or indirect jump into the middle of a function with an open frame
/// returns from the frames above it: an exception or longjmp. The function that executes at the
/// start, or after a gap, has a frame of kind `unseen`.
///
/// A RET to an address to which the newest frame does not return is searched in the other stacks
/// that are stored, then in all frames. A RET to the begin of a function, or to what no frame
/// called, begins a new stack, unless `stack_use_at` says that it is a jump. Without storage for
/// stacks it is a jump, as in a retpoline, whose inner CALL is no frame of the target.
///
/// A trace has no stack pointer. Where several stacks continue at the same address, the one that
/// was left first is entered; as soon as it does not return to where the thread does, it is left
/// for one that does. Up to there the callers may be those of another stack. What other threads
/// called on a stack is not known.
///
/// Shape:  frames and stacks in storage of the caller. When it is full, the stack that was left
///         first, but not the one of the start, or the oldest frame is dropped. The depth stays
///         correct.
template <takes_calls Sink>
class call_stack {
public:
    static_assert(sizeof(detail::sink_members<Sink>) != 0);
    static_assert(sizeof(detail::call_members<Sink>) != 0);

    template <size_t Count>
    constexpr call_stack(flow::frame (&storage)[Count], Sink& sink) noexcept
        : call_stack{storage, Count, sink} {}
    /// `max_count` is 1 or more.
    constexpr call_stack(flow::frame* storage, size_t max_count, Sink& sink) noexcept
        : frames_{storage, max_count, nullptr, 0}, sink_{sink} {}
    template <size_t Count, size_t StackCount>
        requires takes_switches<Sink>
    constexpr call_stack(flow::frame (&storage)[Count], flow::stack (&stacks)[StackCount],
                         Sink& sink, stack_choice choice = stack_choice::by_returns) noexcept
        : call_stack{storage, Count, stacks, StackCount, sink, choice} {}
    /// `stacks` has room for all but the stack that executes.
    constexpr call_stack(flow::frame* storage, size_t max_count, flow::stack* stacks,
                         size_t max_stacks, Sink& sink,
                         stack_choice choice = stack_choice::by_returns) noexcept
        requires takes_switches<Sink>
        : frames_{storage, max_count, stacks, max_stacks}, sink_{sink}, choice_{choice} {}

    /// Of the stack that executes.
    [[nodiscard]] constexpr auto depth() const noexcept -> int64_t {
        return frames_.now.depth + (has_stopped_ ? 1 : 0);
    }
    /// The number of frames that are known, without a root of kind `unseen`.
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return frames_.now.size; }
    /// The number of stacks that were dropped, because the storage was full.
    [[nodiscard]] constexpr auto dropped_stacks() const noexcept -> uint64_t {
        return frames_.dropped_stacks();
    }
    /// Frame `i`, counted from the newest.
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> flow::frame const& {
        return frames_.at(i);
    }

    constexpr void edge(flow::edge const& one) {
        if constexpr (takes_edges<Sink>) { sink_.edge(one); }
        follow(one);
    }
    constexpr void block(executed_block const& one) {
        execute(one.ip);
        if constexpr (takes_blocks<Sink>) { sink_.block(one); }
    }
    /// The instruction at `ip` executes, after the branches before it. For callers without blocks;
    /// needed only where the function changes.
    constexpr void execute([[maybe_unused]] uint64_t ip) {
        if constexpr (knows_functions<Sink>) {
            if (!here_.contains(ip)) [[unlikely]] { enter_function(ip); }
        }
    }
    /// Tracing begins. The IP shows the returns and calls while it was off.
    constexpr void start(uint64_t ip, uint32_t space) {
        resume(ip, space);
        if constexpr (takes_starts<Sink>) { sink_.start(ip, space); }
    }
    constexpr void stop(flow::stop const& one) {
        leave_stop(one.ip);
        has_stopped_ = true;
        stop_ = one;
        flow::frame const off{
            .from = one.ip, .after = one.ip, .kind = frame_kind::stopped, .why = one.why};
        sink_.call(call{off, depth(), when_});
        if constexpr (takes_stops<Sink>) { sink_.stop(one); }
    }
    constexpr void gap(flow::gap const& one) {
        leave_stop(0);
        frames_.make_unsure();
        is_unseen_ = true;
        here_ = {};
        if constexpr (takes_gaps<Sink>) { sink_.gap(one); }
    }
    constexpr void time(trace::time const& when) {
        when_ = when;
        if constexpr (takes_times<Sink>) { sink_.time(when); }
    }
    constexpr void event(trace::event const& one) {
        if (one.what == trace::event_type::ptwrite) {
            select(one.packet.as<packet::ptw>().payload(), one.ip);
        }
        if constexpr (takes_events<Sink>) { sink_.event(one); }
    }
    /// A PTWRITE at `ip` has written a number. With `by_ptwrite` it is that of the stack that
    /// executes from there.
    constexpr void select([[maybe_unused]] uint64_t number, [[maybe_unused]] uint64_t ip) {
        if constexpr (takes_switches<Sink>) {
            if (choice_ != stack_choice::by_ptwrite) { return; }
            if (!has_chosen_) {
                has_chosen_ = true;
                frames_.now.name = number;
            }
            if (!frames_.has_stacks() || frames_.now.name == number) { return; }
            frames_.forget_candidates();
            auto const place = frames_.find_named(number);
            auto const left = frames_.now.number;
            bool const is_new = place == flow::stack::none;
            is_new ? frames_.enter_new(number) : frames_.enter(place);
            report_switch(ip, ip, left, is_new);
        }
    }
    // Other reports go to the sink.
    using ignores_instructions = choose_t<takes_instructions<Sink>, void, call_stack>;
    using ignores_blocks = choose_t<takes_blocks<Sink> || knows_functions<Sink>, void, call_stack>;
    using ignores_events = choose_t<takes_events<Sink> || takes_switches<Sink>, void, call_stack>;
    constexpr void instruction(executed const& one) { sink_.instruction(one); }

private:
    using frames = detail::frames<Sink>;

    constexpr void follow(flow::edge const& one) {
        using enum instruction_class;
        if (one.is_asynchronous) { return push(one, frame_kind::event); }
        switch (one.kind) {
            case direct_call:
            case indirect_call:
                if (!is_pushing_call(one.kind, one.to, one.after)) { return; }
                return push(one, frame_kind::call);
            case far_call: return push(one, frame_kind::call);
            case syscall:
            case sysenter: return push(one, frame_kind::system_call);
            case near_return:
            case far_return: return return_to(one);
            case indirect_jump:
            case absolute_jump: return jump_to(one);
            case sysret:
            case sysexit: return leave_kernel(one, frame_kind::system_call);
            case iret:
            case uiret:
            case eret:
            case vm_entry:
            case rsm: return leave_kernel(one, frame_kind::event);
            default: from_ = one.from; return;
        }
    }

    // ------------------------------------------------------------------------------ frames

    constexpr void push(flow::edge const& one, frame_kind kind) {
        push(flow::frame{.from = one.from, .to = one.to, .after = one.after, .kind = kind});
    }
    constexpr void push(flow::frame const& one) {
        frames_.push(one);
        ++frames_.now.depth;
        here_ = one.function;
        is_unseen_ = false;
        sink_.call(call{one, depth(), when_});
    }
    /// Leaves the newest frames.
    constexpr void leave(uint32_t count, uint64_t from, uint64_t to) {
        for (uint32_t i = 0; i < count; ++i) { frames_.pop(); }
        if (frames_.has_left_doubt()) [[unlikely]] { frames_.forget_candidates(); }
        report_return(count, from, to);
    }
    constexpr void report_return(uint32_t count, uint64_t from, uint64_t to) {
        auto& now = frames_.now;
        now.depth -= count;
        here_ = now.size != 0 ? frames_.newest().function : now.root.function;
        from_ = from;
        sink_.returned(call_return{from, to, now.depth, count, false, when_});
    }
    /// Leaves the frame that no stored one called: a frame that was dropped, or the root.
    constexpr void leave_root(uint64_t from, uint64_t to) {
        auto& now = frames_.now;
        here_ = {};
        from_ = from;
        --now.depth;
        uint32_t const count = now.dropped != 0 || now.has_root ? 1 : 0;
        if (now.dropped != 0) {
            --now.dropped;
            now.root.function = {};
        } else {
            now.has_root = false;
        }
        sink_.returned(call_return{from, to, now.depth, count, false, when_});
    }
    /// Leaves the frames above the newest that returns to `ip`. False if there is none.
    constexpr auto leave_to(uint64_t ip, uint64_t from) -> bool {
        auto const count = frames_.find(frames_.now,
                                        [&](flow::frame const& one) { return one.after == ip; });
        if (count != 0) { leave(count, from, ip); }
        return count != 0;
    }

    // ------------------------------------------------------------------------------ branches

    constexpr void return_to(flow::edge const& one) {
        auto& now = frames_.now;
        if (now.size != 0 && frames_.newest().after == one.to) [[likely]] {
            if (frames_.has_others()) [[unlikely]] { return return_among_stacks(one); }
            return leave(1, one.from, one.to);
        }
        if (leave_candidate(one) || leave_other(one, 1) || leave_to(one.to, one.from) ||
            leave_other(one, frames::all)) {
            return;
        }
        if constexpr (knows_functions<Sink>) {
            auto const function = sink_.function_at(one.to);
            if (function.entry != 0) { return return_into(one, function); }
        }
        if (now.size == 0) { leave_root(one.from, one.to); }
    }
    /// A branch to where the newest frame returns, and maybe those of other stacks.
    constexpr void return_among_stacks(flow::edge const& one) {
        bool const switches = !frames_.newest().is_resumed &&
                              use_of_stack(one) == stack_use::switches;
        if (switches && leave_other(one, 1)) { return; }
        if (frames_.is_in_doubt()) { frames_.narrow(one.to); }
        leave(1, one.from, one.to);
    }
    /// A RET to an address to which no frame returns, in a function that is known.
    constexpr void return_into(flow::edge const& one, flow::function const& target)
        requires knows_functions<Sink>
    {
        auto& now = frames_.now;
        from_ = one.from;
        bool const is_begin = target.entry == one.to;
        if (now.size != 0) {
            auto const& newest = frames_.newest();
            // A retpoline: a CALL into the middle of a function, whose return address is replaced.
            bool const is_inner = newest.kind == frame_kind::call && !newest.is_unsure &&
                                  sink_.function_at(newest.to).entry != newest.to;
            if (is_inner) { return leave(1, one.from, one.to); }
            // A signal handler returns to code that ends it.
            if (newest.kind == frame_kind::event) { return; }
        }
        if (target.entry == function_of_newest().entry && jump_in_function(target, one)) { return; }
        if (!is_begin && leave_to_function(target, one)) { return; }
        if (now.size != 0 && frames_.newest().kind == frame_kind::unseen) {
            leave(1, one.from, one.to);
            is_unseen_ = true;
            here_ = {};
            return;
        }
        if (now.size != 0 && frames_.newest().is_unsure) {
            is_unseen_ = true;
            return;
        }
        if (now.size == 0 && !is_begin) { return leave_root(one.from, one.to); }
        auto const use = use_of_stack(one);
        if (use == stack_use::keeps) { return; }
        bool const may_continue = use == stack_use::switches && !is_begin;
        if (may_continue && enter_function_of_other(target, one, frames::all)) { return; }
        begin_stack(one);
    }
    constexpr void jump_to([[maybe_unused]] flow::edge const& one) {
        from_ = one.from;
        if constexpr (knows_functions<Sink>) {
            if (here_.contains(one.to) && !frames_.has_others()) { return; }
            auto const target = sink_.function_at(one.to);
            if (target.entry == 0) { return; }
            if (target.entry == function_of_newest().entry) {
                (void)jump_in_function(target, one);
                return;
            }
            if (target.entry != one.to) {
                auto& now = frames_.now;
                if (now.size != 0 && frames_.newest().after == one.to) {
                    return return_among_stacks(one);
                }
                if (leave_other(one, 1) || leave_to(one.to, one.from) ||
                    leave_other(one, frames::all) || leave_to_function(target, one)) {
                    return;
                }
            }
            if (use_of_stack(one) != stack_use::switches) { return; }
            if (target.entry != one.to && enter_function_of_other(target, one, frames::all)) {
                return;
            }
            begin_stack(one);
        }
    }
    /// Code that switches stacks may continue in the same function. False if it does not switch.
    constexpr auto jump_in_function(flow::function const& target, flow::edge const& one) -> bool
        requires knows_functions<Sink>
    {
        bool const switches = frames_.has_others() && target.entry != one.to &&
                              use_of_stack(one) == stack_use::switches;
        if (!switches || !enter_function_of_other(target, one, 1)) { return false; }
        if (frames_.now.size != 0) { frames_.newest().is_resumed = true; }
        return true;
    }
    /// Leaves the frames above the newest of a function, if it is not itself the newest.
    constexpr auto leave_to_function(flow::function const& target, flow::edge const& one) -> bool {
        if (!target.has_symbol) { return false; }
        auto& now = frames_.now;
        auto const count = frames_.find_function(now, target.entry);
        if (count == 0) { return false; }
        uint32_t const above = count - 1;
        if (above != 0) { leave(above, one.from, one.to); }
        return true;
    }
    /// What the code that branches does with the stack pointer. It may have jumped to the branch: a
    /// thunk.
    [[nodiscard]] constexpr auto use_of_stack([[maybe_unused]] flow::edge const& one) -> stack_use {
        if constexpr (knows_stack_use<Sink>) {
            auto const use = sink_.stack_use_at(one.from);
            uint32_t const count = frames_.now.size < 2 ? frames_.now.size : 2;
            for (uint32_t i = 0; i < count && use == stack_use::keeps; ++i) {
                auto const& frame = frames_.at(i);
                bool const is_jump = frame.kind == frame_kind::tail_call && frame.from != 0;
                if (is_jump && sink_.stack_use_at(frame.from) == stack_use::switches) {
                    return stack_use::switches;
                }
            }
            return use;
        }
        return stack_use::unknown;
    }
    /// Continues on another stack, with a frame that returns to the target below fewer than `limit`
    /// others.
    constexpr auto leave_other([[maybe_unused]] flow::edge const& one,
                               [[maybe_unused]] uint32_t limit) -> bool {
        if constexpr (takes_switches<Sink>) {
            if (choice_ == stack_choice::by_ptwrite) { return false; }
            uint32_t count = 0;
            auto const find = [&](flow::stack const& in, uint32_t most) {
                return frames_.find(
                    in, [&](flow::frame const& of) { return of.after == one.to; }, most);
            };
            auto const place = frames_.find_other(find, limit, count);
            if (place == flow::stack::none) { return false; }
            auto const& now = frames_.now;
            bool const is_sure = now.size == 0 || !frames_.newest().is_unsure;
            if (is_sure && use_of_stack(one) == stack_use::keeps) {
                correct_stack(one, place, count - 1);
                return true;
            }
            frames_.mark_candidates(place, find, count, true);
            auto const left = now.number;
            frames_.enter(place);
            report_switch(one.from, one.to, left, false);
            leave(count, one.from, one.to);
            frames_.doubt_from_here();
            return true;
        }
        return false;
    }
    /// Continues on another stack, in its newest frame of a function, below fewer than `limit`
    /// others.
    constexpr auto enter_function_of_other([[maybe_unused]] flow::function const& target,
                                           [[maybe_unused]] flow::edge const& one,
                                           [[maybe_unused]] uint32_t limit) -> bool {
        if constexpr (takes_switches<Sink>) {
            if (choice_ == stack_choice::by_ptwrite || !target.has_symbol) { return false; }
            uint32_t count = 0;
            auto const find = [&](flow::stack const& in, uint32_t most) {
                return frames_.find_function(in, target.entry, most);
            };
            auto const place = frames_.find_other(find, limit, count);
            if (place == flow::stack::none) { return false; }
            frames_.mark_candidates(place, find, count, false);
            auto const left = frames_.now.number;
            frames_.enter(place);
            report_switch(one.from, one.to, left, false);
            if (count != 1) { leave(count - 1, one.from, one.to); }
            frames_.doubt_from_here();
            return true;
        }
        return false;
    }
    /// A RET to an address to which another stack would return, if that one executed since the last
    /// switch: it does.
    constexpr auto leave_candidate([[maybe_unused]] flow::edge const& one) -> bool {
        if constexpr (takes_switches<Sink>) {
            if (!frames_.is_in_doubt()) { return false; }
            auto const place = frames_.find_candidate(one.to);
            if (place == flow::stack::none) { return false; }
            correct_stack(one, place, frames_.above_next(place));
            return true;
        }
        return false;
    }
    /// It was not this stack that was entered, but that at `place`, which returns from the frame
    /// below `count` others. These belong to this one.
    constexpr void correct_stack(flow::edge const& one, uint32_t place, uint32_t count)
        requires takes_switches<Sink>
    {
        auto& now = frames_.now;
        frames_.choose(place, one.to);
        frames_.take_frames(place, count, [&](flow::frame const& of) {
            ++now.depth;
            sink_.call(call{of, now.depth, when_});
        });
        auto const left = now.number;
        frames_.enter(place);
        report_switch(one.from, one.to, left, false);
        frames_.pop();
        report_return(count + 1, one.from, one.to);
        frames_.doubt_from_here();
    }
    constexpr void begin_stack([[maybe_unused]] flow::edge const& one) {
        if constexpr (takes_switches<Sink>) {
            if (!frames_.has_stacks() || choice_ == stack_choice::by_ptwrite) { return; }
            frames_.forget_candidates();
            auto const left = frames_.now.number;
            frames_.enter_new(0);
            report_switch(one.from, one.to, left, true);
        }
    }
    constexpr void report_switch(uint64_t from, uint64_t to, uint32_t left, bool is_new)
        requires takes_switches<Sink>
    {
        auto const& now = frames_.now;
        here_ = now.size != 0 ? frames_.newest().function : now.root.function;
        sink_.switched(stack_switch{from, to, left, now.number, is_new, now.depth, when_});
    }

    // ------------------------------------------------------------------------------ functions

    [[nodiscard]] constexpr auto function_of_newest() noexcept -> flow::function& {
        return frames_.now.size != 0 ? frames_.newest().function : frames_.now.root.function;
    }
    /// An instruction outside of `here_` executes.
    constexpr void enter_function(uint64_t ip)
        requires knows_functions<Sink>
    {
        auto& now = frames_.now;
        here_ = sink_.function_at(ip);
        bool const has_frame = now.size != 0 || now.dropped != 0 || now.has_root;
        if (!has_frame) { return open_root(ip, frame_kind::unseen, 0); }
        auto& of_newest = function_of_newest();
        bool const is_first = of_newest.end == 0;  // it was called, or is that of a dropped frame
        if (is_first || of_newest.entry == here_.entry) {
            of_newest = here_;
            is_unseen_ = false;
            return;
        }
        is_unseen_ ? enter_unseen(ip) : replace(ip);
        is_unseen_ = false;
    }
    constexpr void open_root(uint64_t ip, frame_kind kind, uint64_t replaced) {
        auto& now = frames_.now;
        now.has_root = true;
        now.root = {.from = kind == frame_kind::tail_call ? from_ : 0,
                    .to = ip,
                    .replaced = replaced,
                    .function = here_,
                    .kind = kind};
        is_unseen_ = false;
        sink_.call(call{now.root, now.depth, when_});
    }
    /// A tail call, or the next function in memory.
    constexpr void replace(uint64_t ip) {
        auto& now = frames_.now;
        auto const replaced = function_of_newest().entry;
        sink_.returned(call_return{from_, ip, now.depth - (now.size != 0 ? 1 : 0), 1, true, when_});
        if (now.size == 0) {
            if (now.dropped != 0) { now.dropped -= 1; }
            return open_root(ip, frame_kind::tail_call, replaced);
        }
        auto& newest = frames_.newest();
        newest.from = from_;
        newest.to = ip;
        newest.replaced = replaced;
        newest.function = here_;
        newest.kind = newest.kind == frame_kind::event ? frame_kind::event : frame_kind::tail_call;
        sink_.call(call{newest, now.depth, when_});
    }
    /// Tracing began in a function, and it is not known who called it.
    constexpr void enter_unseen(uint64_t ip) {
        auto& now = frames_.now;
        auto const function = here_;
        if (leave_to_function(function, {.to = ip})) {
            function_of_newest() = function;
            here_ = function;
            return;
        }
        if (now.size == 0) {
            sink_.returned(call_return{0, ip, now.depth, 1, false, when_});
            if (now.dropped != 0) { now.dropped -= 1; }
            here_ = function;
            return open_root(ip, frame_kind::unseen, 0);
        }
        auto const known = frames_.find(
            now, [](flow::frame const& one) { return one.kind == frame_kind::unseen; });
        if (known != 0) { leave(known, 0, ip); }
        push(flow::frame{.to = ip, .function = function, .kind = frame_kind::unseen});
    }

    // ------------------------------------------------------------------------------ kernel

    /// Leaves the newest frame of the kernel that returns to `one.to`, or the newest of this kind,
    /// or any: a handler may return to another address. At the begin of a function it calls a
    /// signal handler.
    constexpr void leave_kernel(flow::edge const& one, frame_kind kind) {
        auto const is_kernel = [](flow::frame const& of) {
            return of.kind == frame_kind::event || of.kind == frame_kind::system_call;
        };
        auto const& now = frames_.now;
        auto const back = frames_.find(
            now, [&](flow::frame const& of) { return is_kernel(of) && of.after == one.to; });
        if (back != 0) { return leave(back, one.from, one.to); }
        auto count = frames_.find(now, [&](flow::frame const& of) { return of.kind == kind; });
        if (count == 0) { count = frames_.find(now, is_kernel); }
        if (count == 0) {
            if (now.size == 0) { leave_root(one.from, one.to); }
            return;
        }
        [[maybe_unused]] auto const after = frames_.at(count - 1).after;
        leave(count, one.from, one.to);
        if constexpr (knows_functions<Sink>) {
            if (sink_.function_at(one.to).entry != one.to) { return; }
            push(flow::frame{
                .from = after, .to = one.to, .after = after, .kind = frame_kind::event});
        }
    }
    constexpr void leave_stop(uint64_t ip) {
        if (!has_stopped_) { return; }
        has_stopped_ = false;
        sink_.returned(call_return{stop_.ip, ip, depth(), 1, false, when_});
    }
    constexpr void resume(uint64_t ip, uint32_t space) {
        bool const has_stopped = has_stopped_;
        leave_stop(ip);
        bool const is_same = has_stopped && space == stop_.space;
        if (is_same && is_next(ip)) { return; }
        if (leave_to(ip, 0)) { return; }
        if (is_same && !stop_.may_move) {
            if (return_to_interrupted(ip)) { return; }
            return push(flow::frame{
                .from = stop_.ip, .to = ip, .after = stop_.ip, .kind = frame_kind::event});
        }
        is_unseen_ = true;
        here_ = {};
    }
    /// Tracing begins within an interrupted function: a signal handler has changed where it
    /// continues. A handler itself begins at its first instruction.
    constexpr auto return_to_interrupted([[maybe_unused]] uint64_t ip) -> bool {
        if constexpr (knows_functions<Sink>) {
            auto const function = sink_.function_at(ip);
            return function.entry != 0 && function.entry != ip &&
                   leave_to_function(function, {.to = ip});
        }
        return false;
    }
    /// Tracing began at the instruction at which it had ended, or at one near it: the kernel
    /// repeats a system call, or mends what a fault broke.
    [[nodiscard]] constexpr auto is_next(uint64_t ip) const noexcept -> bool {
        constexpr uint64_t syscall_size = 2;
        return ip == stop_.ip || ip + syscall_size == stop_.ip ||
               (here_.contains(ip) && here_.entry != ip && here_.entry != 0);
    }

    frames frames_;
    Sink& sink_;
    stack_choice choice_ = stack_choice::by_returns;
    flow::function here_{};   ///< of the newest frame; empty: not known yet
    uint64_t from_ = 0;       ///< the last branch
    bool is_unseen_ = false;  ///< packets are missing since the last instruction
    bool has_chosen_ = false;
    trace::time when_{};
    bool has_stopped_ = false;
    flow::stop stop_{};
};

}  // namespace ptspec::flow
