// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver/msr_sequence.hpp>

// For tests of drivers: a port with a fault.
namespace ptspec::test {

/// Passes accesses on to another port, except those that fault: the access with this number,
/// counted from 0, and with `persistent` all later accesses to the same MSR.
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
    constexpr void fence() noexcept
        requires driver::fenced_msr_port<Msrs>
    {
        to_.fence();
    }

    /// The access that faulted.
    [[nodiscard]] constexpr auto fault() const noexcept -> driver::msr_fault { return fault_; }
    /// The number of accesses, with those that faulted.
    [[nodiscard]] constexpr auto count() const noexcept -> unsigned { return count_; }

private:
    constexpr auto faults(uint32_t index, bool is_write) noexcept -> bool {
        unsigned const now = count_++;
        if (now == number_) {
            fault_ = {true, is_write, index, 0, now};
            return true;
        }
        return persistent_ && fault_.happened && fault_.index == index &&
               fault_.is_write == is_write;
    }

    Msrs& to_;
    unsigned number_ = 0;
    bool persistent_ = false;
    unsigned count_ = 0;
    driver::msr_fault fault_{};
};

}  // namespace ptspec::test
