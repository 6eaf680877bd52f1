// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/sink.hpp>

/// Functions, frames and stacks, and what is reported of them.
namespace ptspec::flow {

/// Addresses from `begin` up to `end`, which is not in them, that belong to one function.
struct function {
    /// Where the function begins. It is not `begin` in a part that lies elsewhere. Without a symbol
    /// any number that no other function has; 0: functions are not known at all.
    uint64_t entry = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    bool has_symbol = true;  ///< false: it may be several functions

    [[nodiscard]] constexpr auto contains(uint64_t ip) const noexcept -> bool {
        return ip - begin < end - begin;
    }
};

/// What opened a frame.
enum class frame_kind : uint8_t {
    call,         ///< a near or far CALL
    system_call,  ///< SYSCALL, SYSENTER, INT n
    event,        ///< an interrupt, exception, VM exit or signal
    tail_call,    ///< a jump out of the function whose frame it replaced
    unseen,       ///< no traced branch: it was open at the start of its stack, or called in a gap
    stopped,      ///< no code of the trace: tracing has ended, and begins again at `after`
};

/// A function, system call or handler that has not returned.
struct frame {
    uint64_t from = 0;      ///< the address of the CALL or jump; of an event, the interrupted IP
    uint64_t to = 0;        ///< where it began
    uint64_t after = 0;     ///< where it returns to
    uint64_t replaced = 0;  ///< of a tail call, where the function began that jumped
    /// The function that executes in this frame, and the part that executed last. Without entry:
    /// unknown, always without `knows_functions`.
    flow::function function{};
    frame_kind kind = frame_kind::call;
    stop_reason why = stop_reason::unknown;  ///< of `stopped`
    /// Packets were lost since the call: the frame may have returned, and other frames may be open.
    bool is_unsure = false;
    /// Its code continued here from another stack, and has not switched again: a RET leaves it.
    bool is_resumed = false;
    uint32_t caller = 0;  ///< links of the stack: indices of the storage
    uint32_t callee = 0;
};

/// Frames that call each other. A thread has several stacks if it switches between fibers,
/// coroutines or goroutines.
struct stack {
    static constexpr uint32_t none = ~uint32_t{0};

    uint32_t newest = none;  ///< indices of the storage of frames
    uint32_t oldest = none;
    uint32_t size = 0;     ///< known frames
    uint32_t dropped = 0;  ///< older frames, which are open and not stored
    uint32_t number = 0;
    bool is_used = false;
    bool has_root = false;
    flow::frame root{};    ///< the function that was open at the start, if functions are known
    int64_t depth = 0;     ///< open frames minus those of before that have returned
    uint64_t name = 0;     ///< of `stack_choice::by_ptwrite`: the payload
    uint64_t left_at = 0;  ///< the number of the switch that left it
    /// Not 0: it may be the one that executes, since all returns after the last switch fit it, too.
    /// It would have this number of frames now. `next` is the newest of them.
    uint32_t kept = 0;
    uint32_t next = none;
};

/// What code does with the stack pointer.
enum class stack_use : uint8_t {
    unknown,
    keeps,     ///< it pushes, pops, and reserves bytes
    switches,  ///< it loads another stack pointer, as swapcontext and longjmp do
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
    uint64_t from = 0;  ///< the address of the RET, IRET or jump; 0 if it was not traced
    uint64_t to = 0;
    int64_t depth = 0;
    /// The number of reported frames that were left: more than one after longjmp or an exception; 0
    /// for a frame that was open at the start and was not reported.
    uint32_t frames = 0;
    bool is_tail_call = false;  ///< the frame that replaces this one is reported next
    trace::time when{};
};

/// A thread continues on another stack. Its next reports are about frames of that stack.
struct stack_switch {
    uint64_t from = 0;  ///< the address of the branch; 0 if it was not traced
    uint64_t to = 0;
    /// Numbers below the number of stacks that are stored, plus 1. A number is used again for a new
    /// stack; the frames of the one before it are then lost.
    uint32_t left = 0;
    uint32_t entered = 0;
    bool is_new = false;  ///< no frame of it is known
    int64_t depth = 0;
    trace::time when{};
};

namespace detail {

struct function_at_name {
    int function_at;
    template <class Type>
    static auto find() -> decltype(&Type::function_at);
};
struct switched_name {
    int switched;
    template <class Type>
    static auto find() -> decltype(&Type::switched);
};
struct stack_use_at_name {
    int stack_use_at;
    template <class Type>
    static auto find() -> decltype(&Type::stack_use_at);
};

}  // namespace detail

template <class Sink>
concept takes_calls = requires(Sink& sink, call const& one, call_return const& other) {
    sink.call(one);
    sink.returned(other);
};
/// `function_at(ip)` is the function that contains an address. Its addresses may reach to any
/// others of the same function.
template <class Sink>
concept knows_functions = requires(Sink& sink, uint64_t ip) {
    { sink.function_at(ip) } -> same_as<flow::function>;
};
template <class Sink>
concept takes_switches = requires(Sink& sink, stack_switch const& one) { sink.switched(one); };
/// `stack_use_at(ip)`: what the function with a RET or jump at this address does before it. A
/// branch to what is no return begins a new stack if it `switches`, also if it is a jump; it is a
/// jump if it `keeps` the stack, also if it is a RET.
template <class Sink>
concept knows_stack_use = requires(Sink& sink, uint64_t ip) {
    { sink.stack_use_at(ip) } -> same_as<stack_use>;
};

namespace detail {

/// Stops the build for a member that has the name of a report and cannot be called with it.
template <class Sink>
struct call_members {
    static_assert(knows_functions<Sink> || !has_member<Sink, function_at_name>,
                  "the function_at of a sink is `auto function_at(uint64_t) -> "
                  "ptspec::flow::function`");
    static_assert(takes_switches<Sink> || !has_member<Sink, switched_name>,
                  "the switched of a sink is `void switched(ptspec::flow::stack_switch const&)`");
    static_assert(knows_stack_use<Sink> || !has_member<Sink, stack_use_at_name>,
                  "the stack_use_at of a sink is `auto stack_use_at(uint64_t) -> "
                  "ptspec::flow::stack_use`");
};

}  // namespace detail

}  // namespace ptspec::flow
