// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/events.hpp>

/// Queries for a decoder that walks code: the outcome of the next conditional branch, and the
/// target of the next indirect branch.
namespace ptspec::trace {

/// Why a query has no answer.
enum class no_answer : uint8_t {
    none,        ///< the query has an answer
    event,       ///< an event comes first: `pending()`
    branch,      ///< the trace has the target of an indirect branch next
    need_input,  ///< the chunk is consumed: call `feed()` with the next, or `finish()`
    end,         ///< the end of the trace
};

/// The outcome of a conditional branch or compressed return.
struct [[nodiscard]] branch_answer {
    no_answer what = no_answer::none;
    bool taken = false;

    constexpr explicit operator bool() const noexcept { return what == no_answer::none; }
};

/// The target of an indirect branch, an uncompressed return or a far transfer.
struct [[nodiscard]] target_answer {
    no_answer what = no_answer::none;
    bool has_ip = false;
    uint64_t ip = 0;

    constexpr explicit operator bool() const noexcept { return what == no_answer::none; }
};

/// Supplies branch outcomes, targets and events to a decoder that walks a memory image.
///
/// The decoder calls `take_branch()` at a conditional branch and `take_target()` at an indirect
/// one. If the result is `no_answer::event`, `pending()` returns an event, which applies at its IP,
/// or at the current instruction if it has none. The decoder applies it and calls `pop()`.
///
/// Branches at unknown IPs are skipped: after damage up to `event_type::resumed`, and without a PSB
/// up to the first TIP or TIP.PGE.
///
/// A processor may send a TNT before the TIPs of indirect branches that precede some of its
/// branches. Therefore `take_target()` takes the TIP after the TNT even while outcomes of that TNT
/// are unused.
///
/// Shape:  a value of about 5 KB.
/// Source: PKT-275, PKT-277, GEN-145.
template <event_clock Clock = no_clock, opcode_hook Hook = no_hook>
class flow_query {
public:
    constexpr explicit flow_query(event_reader<Clock, Hook> const& from) noexcept : reader_{from} {}

    [[nodiscard]] constexpr auto feed(borrowed_bytes chunk) noexcept -> bool {
        if (has_next_ && next_.what == event_type::need_input) { has_next_ = false; }
        return reader_.feed(chunk);
    }
    constexpr void finish() noexcept {
        if (has_next_ && next_.what == event_type::need_input) { has_next_ = false; }
        reader_.finish();
    }
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t { return reader_.offset(); }

    /// Takes the outcome of the next conditional branch.
    constexpr auto take_branch() noexcept -> branch_answer {
        if (left_.count == 0) {
            fetch();
            if (next_.what != event_type::branches) { return {reason()}; }
            left_ = next_.branches();
            when_ = next_.when;
            has_next_ = false;
        }
        --left_.count;
        return {no_answer::none, (left_.bits >> left_.count & 1) != 0};
    }
    /// Takes the target of the next indirect branch.
    constexpr auto take_target() noexcept -> target_answer {
        fetch();
        if (next_.what != event_type::indirect_branch) { return {reason()}; }
        has_next_ = false;
        when_ = next_.when;
        return {no_answer::none, next_.has_to, next_.to};
    }
    /// The next event, if it is not a branch and no branch outcomes are unused; otherwise nullptr.
    [[nodiscard]] constexpr auto pending() noexcept -> event const* {
        if (left_.count != 0) { return nullptr; }
        fetch();
        return reason() == no_answer::event ? &next_ : nullptr;
    }
    /// Removes the pending event.
    constexpr void pop() noexcept {
        if (left_.count != 0 || reason() != no_answer::event) { return; }
        when_ = next_.when;
        has_next_ = false;
    }
    /// The number of unused branch outcomes of the last TNT. At a compound event or a PSB it must
    /// be 0; otherwise trace and image do not match.
    [[nodiscard]] constexpr auto branches_left() const noexcept -> unsigned { return left_.count; }
    /// The time of the last answer or event.
    [[nodiscard]] constexpr auto when() const noexcept -> time const& { return when_; }
    /// The state of the processor after the last event that was read, which may be pending.
    [[nodiscard]] constexpr auto state() const noexcept -> execution_state {
        return reader_.state();
    }

private:
    constexpr void fetch() noexcept {
        if (has_next_) { return; }
        do {
            next_ = reader_.next();
        } while (next_.what == event_type::branches && next_.enabled == tracing::unknown);
        has_next_ = true;
    }
    [[nodiscard]] constexpr auto reason() const noexcept -> no_answer {
        switch (next_.what) {
            case event_type::branches:
            case event_type::indirect_branch: return no_answer::branch;
            case event_type::need_input: return no_answer::need_input;
            case event_type::end: return no_answer::end;
            default: return no_answer::event;
        }
    }

    event_reader<Clock, Hook> reader_;
    event next_{};
    bool has_next_ = false;
    packet::branches left_{};
    time when_{};
};

}  // namespace ptspec::trace
