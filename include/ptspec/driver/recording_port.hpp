// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/msr_sequence.hpp>

/// Ports for tests of drivers: one records the accesses to another, one lets an access fault.
namespace ptspec::driver {

/// An access in the log of a `recording_port`.
struct logged_access {
    enum class kind : uint8_t { read, write, fence, note };
    kind what = kind::read;
    bool faulted = false;
    uint32_t index = 0;  ///< of the MSR
    uint64_t value = 0;  ///< that was read or written
    text action{};       ///< of a note: a step without an MSR access

    friend constexpr auto operator==(logged_access const&, logged_access const&) -> bool = default;
};

/// Passes accesses on to another port and records the first `Room` of them.
///
/// Shape:  a value; `count` may exceed `Room`, and `log` has the first `Room` accesses.
/// Source: tests/spec/notation.md, section 4.
template <msr_port Msrs, size_t Room = 64>
class recording_port {
public:
    constexpr explicit recording_port(Msrs& to) noexcept : to_{to} {}

    constexpr auto read(uint32_t index) noexcept -> port_value {
        port_value const got = to_.read(index);
        add({logged_access::kind::read, !got.done, index, got.value, {}});
        return got;
    }
    constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        bool const done = to_.write(index, value);
        add({logged_access::kind::write, !done, index, value, {}});
        return done;
    }
    constexpr void fence() noexcept {
        if constexpr (fenced_msr_port<Msrs>) { to_.fence(); }
        add({.what = logged_access::kind::fence});
    }
    /// Records a step without an MSR access, such as "drain".
    constexpr void note(text action) noexcept {
        add({.what = logged_access::kind::note, .action = action});
    }

    /// The number of accesses and notes.
    [[nodiscard]] constexpr auto count() const noexcept -> size_t { return count_; }
    [[nodiscard]] constexpr auto begin() const noexcept -> logged_access const* { return log_; }
    [[nodiscard]] constexpr auto end() const noexcept -> logged_access const* {
        return log_ + (count_ < Room ? count_ : Room);
    }
    constexpr void clear() noexcept { count_ = 0; }

private:
    constexpr void add(logged_access one) noexcept {
        if (count_ < Room) { log_[count_] = one; }
        ++count_;
    }

    Msrs& to_;
    logged_access log_[Room] = {};
    size_t count_ = 0;
};

/// Passes accesses on to another port, except those that fault: the one with a number, from 0, and
/// with `persistent` all that access the same MSR after it.
template <msr_port Msrs>
class faulting_port {
public:
    constexpr faulting_port(Msrs& to, unsigned number, bool persistent = false) noexcept
        : to_{to}, number_{number}, persistent_{persistent} {}

    constexpr auto read(uint32_t index) noexcept -> port_value {
        return faults(index, false) ? port_value{} : to_.read(index);
    }
    constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        return !faults(index, true) && to_.write(index, value);
    }
    constexpr void fence() noexcept {
        if constexpr (fenced_msr_port<Msrs>) { to_.fence(); }
    }

    /// The access that faulted.
    [[nodiscard]] constexpr auto fault() const noexcept -> failed_access { return fault_; }
    /// The number of accesses, with those that faulted.
    [[nodiscard]] constexpr auto count() const noexcept -> unsigned { return count_; }

private:
    constexpr auto faults(uint32_t index, bool is_write) noexcept -> bool {
        unsigned const now = count_++;
        if (now == number_) {
            fault_ = {true, is_write, index, 0, now};
            return true;
        }
        return persistent_ && fault_ && fault_.index == index && fault_.is_write == is_write;
    }

    Msrs& to_;
    unsigned number_ = 0;
    bool persistent_ = false;
    unsigned count_ = 0;
    failed_access fault_{};
};

}  // namespace ptspec::driver
