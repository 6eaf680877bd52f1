// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/sink.hpp>

/// Calls and returns, from the edges of a walk.
namespace ptspec::flow {

/// What opened a frame.
enum class frame_kind : uint8_t {
    call,         ///< a near or far CALL
    system_call,  ///< SYSCALL, SYSENTER, INT n
    event,        ///< an interrupt, exception or VM exit
};

/// A function, system call or handler that has not returned.
struct frame {
    uint64_t from = 0;   ///< the address of the CALL; of an event, the interrupted instruction
    uint64_t to = 0;     ///< where it began
    uint64_t after = 0;  ///< where it returns to
    /// The start of the function that executes in this frame, after tail calls. 0: unknown, always
    /// without `knows_functions`.
    uint64_t function = 0;
    frame_kind kind = frame_kind::call;
    /// Packets were lost since the call: the frame may have returned, and other frames may be open.
    bool is_unsure = false;
};

/// A call, and the depth inside of it.
struct call {
    flow::frame frame{};
    /// The number of open frames, minus the number of frames that were open at the start and have
    /// returned.
    int64_t depth = 0;
    trace::time when{};
};

/// A return, and the depth after it.
struct call_return {
    uint64_t from = 0;  ///< the address of the RET or IRET; 0 if it was not traced
    uint64_t to = 0;
    int64_t depth = 0;
    /// The number of frames that were left: more than one after longjmp or an exception; 0 for a
    /// frame that was open at the start, or that the storage has dropped.
    uint32_t frames = 0;
    trace::time when{};
};

template <class Sink>
concept takes_calls = requires(Sink& sink, call const& one, call_return const& other) {
    sink.call(one);
    sink.returned(other);
};

namespace detail {

struct function_of_name {
    int function_of;
    template <class Type>
    static auto find() -> decltype(&Type::function_of);
};

}  // namespace detail

/// `function_of(ip)` is the start of the function that contains an address, or 0.
template <class Sink>
concept knows_functions = requires(Sink& sink, uint64_t ip) {
    { sink.function_of(ip) } -> same_as<uint64_t>;
};

/// A sink of a walker that reports calls and returns to another one: `call(call)` and
/// `returned(call_return)`.
///
/// It follows the code, not the processor: PSBs and lost packets do not clear it. Lost packets only
/// set `is_unsure` in its frames. A RET to an address to which no open frame returns is a jump, as
/// in a coroutine or a retpoline. A tail call is a jump, too. A CALL of the next instruction is not
/// a call. Where tracing begins again at the address after a CALL, code that is filtered out has
/// returned. If tracing ends at a system call or fault, and begins at another instruction than the
/// next one, a signal handler executes: a frame of kind `event`.
///
/// If the sink `knows_functions`, a RET or indirect jump into the middle of a function with an open
/// frame returns from the frames above it: an exception or longjmp.
///
/// Shape:  frames in storage of the caller. When it is full the oldest frame is dropped, and the
///         depth stays correct.
template <takes_calls Sink>
class call_stack {
public:
    static_assert(sizeof(detail::sink_members<Sink>) != 0);
    static_assert(knows_functions<Sink> || !has_member<Sink, detail::function_of_name>,
                  "the function_of of a sink is `auto function_of(uint64_t) -> uint64_t`");

    template <size_t Count>
    constexpr call_stack(flow::frame (&storage)[Count], Sink& sink) noexcept
        : call_stack{storage, Count, sink} {}
    /// `max_count` is 1 or more.
    constexpr call_stack(flow::frame* storage, size_t max_count, Sink& sink) noexcept
        : frames_{storage}, max_count_{max_count}, sink_{sink} {}

    [[nodiscard]] constexpr auto depth() const noexcept -> int64_t { return depth_; }
    /// The number of frames that are known.
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return size_; }
    /// Frame `i`, counted from the newest.
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> flow::frame const& {
        return frames_[(next_ + max_count_ - 1 - i) % max_count_];
    }

    constexpr void edge(flow::edge const& one) {
        if constexpr (takes_edges<Sink>) { sink_.edge(one); }
        follow(one);
    }
    /// Tracing begins. The IP shows the returns and calls while it was off.
    constexpr void start(uint64_t ip, uint32_t space) {
        bool const has_stopped = has_stopped_ && space == stop_space_;
        has_stopped_ = false;
        bool const resumes = has_stopped && ip == stop_ip_;
        if (!resumes && !leave_to(ip, 0, true) && has_stopped) {
            push({.from = stop_ip_, .to = ip, .after = stop_ip_}, frame_kind::event);
        }
        if constexpr (takes_starts<Sink>) { sink_.start(ip, space); }
    }
    constexpr void stop(uint64_t ip, uint32_t space) {
        has_stopped_ = true;
        stop_ip_ = ip;
        stop_space_ = space;
        if constexpr (takes_stops<Sink>) { sink_.stop(ip, space); }
    }
    constexpr void gap(flow::gap const& one) {
        has_stopped_ = false;
        for (size_t i = 0; i < size_; ++i) { at(i).is_unsure = true; }
        if constexpr (takes_gaps<Sink>) { sink_.gap(one); }
    }
    constexpr void time(trace::time const& when) {
        when_ = when;
        if constexpr (takes_times<Sink>) { sink_.time(when); }
    }
    // Other reports go to the sink.
    using ignores_instructions = choose_t<takes_instructions<Sink>, void, call_stack>;
    using ignores_blocks = choose_t<takes_blocks<Sink>, void, call_stack>;
    using ignores_events = choose_t<takes_events<Sink>, void, call_stack>;
    constexpr void instruction(executed const& one) { sink_.instruction(one); }
    constexpr void block(executed_block const& one) { sink_.block(one); }
    constexpr void event(trace::event const& one) { sink_.event(one); }

private:
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
            case far_return:
                if (!leave_to(one.to, one.from, false)) { enter_middle(one); }
                return;
            case indirect_jump:
            case absolute_jump: return enter_middle(one);
            case sysret:
            case sysexit: return leave_kernel(one, frame_kind::system_call);
            case iret:
            case uiret:
            case eret:
            case vm_entry:
            case rsm: return leave_kernel(one, frame_kind::event);
            default: return;
        }
    }
    [[nodiscard]] constexpr auto at(size_t i) noexcept -> flow::frame& {
        return frames_[(next_ + max_count_ - 1 - i) % max_count_];
    }
    constexpr void push(flow::edge const& one, frame_kind kind) {
        frames_[next_] = {one.from, one.to, one.after, 0, kind, false};
        next_ = (next_ + 1) % max_count_;
        size_ += size_ < max_count_ ? 1 : 0;
        ++depth_;
        sink_.call(call{(*this)[0], depth_, when_});
    }
    /// Leaves the frame that returns to `ip`, and those in it. Returns false if there is none: the
    /// RET is a jump. Without any frame it returns from one that was open at the start.
    constexpr auto leave_to(uint64_t ip, uint64_t from, bool is_start) -> bool {
        for (size_t i = 0; i < size_; ++i) {
            if (at(i).after == ip) {
                leave(i + 1, from, ip);
                return true;
            }
        }
        if (size_ != 0 || is_start) { return false; }
        leave(0, from, ip);
        return true;
    }
    /// Takes a jump: one to the start of a function is a tail call; one into an open function
    /// returns from the frames above it.
    constexpr void enter_middle([[maybe_unused]] flow::edge const& one) {
        if constexpr (knows_functions<Sink>) {
            if (size_ == 0) { return; }
            uint64_t const function = sink_.function_of(one.to);
            if (function == one.to) { at(0).function = function; }
            if (function == one.to || function == 0) { return; }
            for (size_t i = 0; i < size_; ++i) {
                if (at(i).function == 0) { at(i).function = sink_.function_of(at(i).to); }
                if (at(i).function == function) {
                    if (i != 0) { leave(i, one.from, one.to); }
                    return;
                }
            }
        }
    }
    /// Leaves the newest frame that returns to `one.to` or has this kind; otherwise the newest
    /// other frame of the kernel, because a handler may return to another address.
    constexpr void leave_kernel(flow::edge const& one, frame_kind kind) {
        size_t other = size_;
        for (size_t i = 0; i < size_; ++i) {
            if (at(i).kind == frame_kind::call) { continue; }
            if (at(i).after == one.to || at(i).kind == kind) {
                return leave(i + 1, one.from, one.to);
            }
            if (other == size_) { other = i; }
        }
        if (other != size_) { return leave(other + 1, one.from, one.to); }
        if (size_ == 0) { leave(0, one.from, one.to); }
    }
    constexpr void leave(size_t frames, uint64_t from, uint64_t target) {
        next_ = (next_ + max_count_ - frames) % max_count_;
        size_ -= frames;
        depth_ -= frames == 0 ? 1 : static_cast<int64_t>(frames);
        sink_.returned(call_return{from, target, depth_, static_cast<uint32_t>(frames), when_});
    }

    flow::frame* frames_;
    size_t max_count_;
    Sink& sink_;
    size_t next_ = 0;
    size_t size_ = 0;
    int64_t depth_ = 0;
    trace::time when_{};
    bool has_stopped_ = false;
    uint32_t stop_space_ = 0;
    uint64_t stop_ip_ = 0;
};

}  // namespace ptspec::flow
