// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/ports.hpp>
#include <ptspec/reg/apic.hpp>
#include <ptspec/reg/smrr.hpp>

/// Restricted memory, into which trace must not be stored.
namespace ptspec::topa {

/// The addresses from `first` to `last`, both inclusive. Empty when `last` is lower.
struct phys_range {
    phys_addr first{};
    phys_addr last{};
};

/// A run of addresses that are all restricted, or all unrestricted.
struct address_run {
    bool restricted = false;
    phys_addr last{};  ///< the last address of the run
};

/// The SMRR range of a processor, and other ranges that its platform protects in the same way.
///
/// Source: SDM vol. 3, "Restricted Memory Access"; OUT-110, OUT-114, OUT-116.
struct restricted_memory {
    reg::ia32_smrr_physbase smrr_physbase{};
    reg::ia32_smrr_physmask smrr_physmask{};
    phys_range const* extra = nullptr;  ///< borrowed
    size_t extra_count = 0;

    /// True when nothing is restricted.
    [[nodiscard]] constexpr auto is_empty() const noexcept -> bool {
        return extra_count == 0 && !smrr_physmask.get<reg::ia32_smrr_physmask::Valid>();
    }

    /// Whether `address` is restricted, and the last address up to which the answer is known to be
    /// the same.
    ///
    /// Source: OUT-110, OUT-116, OUT-144.
    [[nodiscard]] constexpr auto run_from(phys_addr address) const noexcept -> address_run {
        address_run found{false, ~uint64_t{0}};
        if (is_empty()) { return found; }
        auto const limit_to = [&](phys_addr last) {
            if (last < found.last) { found.last = last; }
        };
        constexpr uint64_t below_4G = low_bits(32);
        if (smrr_physmask.get<reg::ia32_smrr_physmask::Valid>() && address <= below_4G) {
            // Bits below the lowest bit of the mask are not compared.
            uint64_t const mask = smrr_physmask.get<reg::ia32_smrr_physmask::PhysMask>();
            uint64_t const base = smrr_physbase.get<reg::ia32_smrr_physbase::PhysBase>();
            found.restricted = ((address.value ^ base) & mask) == 0;
            limit_to(address.value | (mask == 0 ? below_4G : (mask & (0 - mask)) - 1));
        }
        for (size_t i = 0; i < extra_count; ++i) {
            auto const& one = extra[i];
            if (one.last < one.first || one.last < address) { continue; }
            if (address < one.first) {
                limit_to(one.first.value - 1);
            } else {
                found.restricted = true;
                limit_to(one.last);
            }
        }
        return found;
    }

    /// True when one of `bytes` bytes from `address` is restricted. `bytes` is not 0.
    [[nodiscard]] constexpr auto touches(phys_addr address, uint64_t bytes) const noexcept -> bool {
        if (is_empty()) { return false; }
        for (;;) {
            auto const here = run_from(address);
            if (here.restricted) { return true; }
            uint64_t const left = here.last - address;
            if (left >= bytes - 1) { return false; }
            bytes -= left + 1;
            address = here.last + 1;
        }
    }
};

/// Memory as software outside SMM sees it: reads of restricted bytes return ones, and bytes stored
/// into them are dropped. Restricted memory itself is not accessed. A `memory_port`.
///
/// Source: SDM vol. 3, "Restricted Memory Access"; OUT-111, PRG-095.
template <memory_port Memory>
class memory_outside_smm {
public:
    /// Both are borrowed.
    constexpr memory_outside_smm(Memory& memory, restricted_memory const& restricted) noexcept
        : memory_{memory}, restricted_{restricted} {}

    [[nodiscard]] constexpr auto load(uint64_t address) const noexcept -> port_value {
        uint64_t ones = 0;
        for (unsigned i = 0; i < 8; ++i) {
            if (restricted_.run_from(address + i).restricted) { ones |= uint64_t{0xFF} << 8 * i; }
        }
        if (~ones == 0) { return {true, ones}; }
        port_value got = memory_.load(address);
        got.value |= ones;
        return got;
    }
    constexpr auto store(uint64_t address, byte_view bytes) const noexcept -> size_t {
        size_t done = 0;
        while (done < bytes.size()) {
            byte_view rest = bytes.from(done);
            auto const here = restricted_.run_from(address + done);
            uint64_t const left = here.last - phys_addr{address + done};
            if (left < rest.size()) { rest = rest.first(static_cast<size_t>(left) + 1); }
            size_t const stored = here.restricted ? rest.size()
                                                  : memory_.store(address + done, rest);
            done += stored;
            if (stored < rest.size()) { break; }
        }
        return done;
    }

private:
    Memory& memory_;
    restricted_memory const& restricted_;
};

/// True when one of `bytes` bytes from `address` is in the page of the local APIC. `bytes` is not
/// 0. The processor signals no error for such output; its effect is undefined.
///
/// Source: SDM vol. 3, "Restricted Memory Access"; OUT-113.
[[nodiscard]] constexpr auto touches(reg::ia32_apic_base apic, phys_addr address,
                                     uint64_t bytes) noexcept -> bool {
    if (!apic.get<reg::ia32_apic_base::EN>()) { return false; }
    phys_addr const page = apic.get<reg::ia32_apic_base::ApicBase>();
    return address > page ? address - page < 4096 : page - address < bytes;
}

}  // namespace ptspec::topa
