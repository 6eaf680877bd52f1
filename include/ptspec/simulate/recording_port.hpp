// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/msr_sequence.hpp>
#include <ptspec/print/text.hpp>

/// For tests of drivers: the accesses to a port, recorded.
namespace ptspec::simulate {

/// An access in the log of a `recording_port`.
struct logged_access {
    enum class kind : uint8_t { read, write, fence, note };
    kind what = kind::read;
    bool faulted = false;
    msr_index index{};   ///< of the MSR
    uint64_t value = 0;  ///< that was read or written
    text action{};       ///< of a note: a step without an MSR access

    friend constexpr auto operator==(logged_access const&, logged_access const&) -> bool = default;
};

/// Prints an access in the notation of the catalogue: `RDMSR(571)->0`, `WRMSR(570,250D)`,
/// `WRMSR(560,0)->#GP`, `[SFENCE]`, `[drain]`. All numbers are hexadecimal; values of more than 32
/// bits have 16 digits.
///
/// Source: tests/spec/notation.md, section 4.
template <print::text_sink Sink>
constexpr void print_access(logged_access const& one, Sink&& sink) {
    using kind = logged_access::kind;
    if (one.what == kind::fence || one.what == kind::note) {
        sink("[");
        sink(one.what == kind::fence ? text{"SFENCE"} : one.action);
        sink("]");
        return;
    }
    auto const value = [&] { print::hex(one.value, sink, one.value >> 32 != 0 ? 16 : 1); };
    bool const is_write = one.what == kind::write;
    sink(is_write ? text{"WRMSR("} : text{"RDMSR("});
    print::hex(one.index.value, sink);
    if (is_write) {
        sink(",");
        value();
    }
    sink(")");
    if (one.faulted) {
        sink("->#GP");
    } else if (!is_write) {
        sink("->");
        value();
    }
}

/// Passes accesses on to another port and records the first `Room` of them.
///
/// Shape:  a value; `count` may exceed `Room`, and `log` has the first `Room` accesses.
/// Source: tests/spec/notation.md, section 4.
template <msr_port Msrs, size_t Room = 64>
class recording_port {
public:
    constexpr explicit recording_port(Msrs& port) noexcept : port_{port} {}

    constexpr auto read(uint32_t index) noexcept -> port_value {
        port_value const got = port_.read(index);
        add({logged_access::kind::read, !got.has_value, index, got.value, {}});
        return got;
    }
    constexpr auto write(uint32_t index, uint64_t value) noexcept -> bool {
        bool const done = port_.write(index, value);
        add({logged_access::kind::write, !done, index, value, {}});
        return done;
    }
    constexpr void fence() noexcept
        requires driver::fenced_msr_port<Msrs>
    {
        port_.fence();
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

    Msrs& port_;
    logged_access log_[Room] = {};
    size_t count_ = 0;
};

}  // namespace ptspec::simulate
