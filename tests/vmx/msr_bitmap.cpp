// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/msr_bitmap.hpp>

#include <ptspec/vmx/guest_events.hpp>
#include <ptspec/vmx/msr_exits.hpp>

#include <support/a_guest.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::a_guest;
using vmx::guest_access;
using vmx::guest_pt;

TEST_CASE("the MSR bitmap passes through what is live in the processor (PRG-172, PRG-184)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        vmx::msr_bitmap bitmap;
        for (auto& byte : bitmap.bytes) { byte = value(uint8_t{0xA5}); }
        vmx::msr_bitmap const before = bitmap;
        // From the layout of the manual: bit 0 of byte ACH is that of MSR 560H.
        auto const exits = [&](uint32_t index) {
            unsigned const read = bitmap.bytes[index >> 3] >> (index & 7) & 1U;
            unsigned const write = bitmap.bytes[0x800 + (index >> 3)] >> (index & 7) & 1U;
            return read == write ? read : 2;
        };
        update_msr_bitmap(guest, bitmap);
        bool right = true;
        for (uint32_t index = 0x560; index < 0x588; ++index) { right = right && exits(index) == 1; }
        for (unsigned at = 0; at < 4096; ++at) {
            bool const is_pt = at % 0x800 >= 0xAC && at % 0x800 <= 0xB0;
            right = right && (is_pt || bitmap.bytes[at] == before.bytes[at]);
        }
        (void)on_wrmsr(guest, 0x570, 0x2109);
        update_msr_bitmap(guest, bitmap);
        right = right && exits(0x570) == 1 && exits(0x571) == 0 && exits(0x560) == 0 &&
                exits(0x561) == 0 && exits(0x572) == 0 && exits(0x580) == 0 && exits(0x583) == 0 &&
                exits(0x584) == 1 && exits(0x587) == 1;
        guest.output = vmx::guest_output::shadow;
        update_msr_bitmap(guest, bitmap);
        right = right && exits(0x560) == 1 && exits(0x561) == 1 && exits(0x571) == 0;
        // TraceEn falls without a write of CTL.
        smi(guest);
        update_msr_bitmap(guest, bitmap);
        return right && exits(0x571) == 1 && exits(0x580) == 1;
    });
    CHECK_TWICE([](auto value) {  // while L2 runs an access exits if either intercepts it
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        guest.level = vmx::guest_level::l2;
        guest.nested.secondary = {1U << 24};
        vmx::msr_bitmap of_l1;
        of_l1.bytes[0xAE] = value(uint8_t{0b10});           // reads of 571H
        of_l1.bytes[0x800 + 0xB0] = value(uint8_t{0b100});  // writes of 582H
        vmx::msr_bitmap merged;
        for (auto& byte : merged.bytes) { byte = value(uint8_t{0xA5}); }
        vmx::msr_bitmap const before = merged;
        update_msr_bitmap(guest, of_l1, merged);
        auto const bit = [&](size_t at, uint32_t index) {
            return (merged.bytes[at + index / 8] >> index % 8 & 1U) != 0;
        };
        bool right = true;
        for (uint32_t index = 0x560; index < 0x588; ++index) {
            bool const usual = access_of_guest(guest, index) != guest_access::pass_through;
            right = right && bit(0, index) == (usual || index == 0x571) &&
                    bit(0x800, index) == (usual || index == 0x582);
        }
        for (unsigned at = 0; at < 4096; ++at) {
            bool const is_pt = at % 0x800 >= 0xAC && at % 0x800 <= 0xB0;
            right = right && (is_pt || merged.bytes[at] == before.bytes[at]);
        }
        // A bitmap that has the bits of L1 loses none of them.
        auto const all = [&] {
            for (auto& byte : merged.bytes) { byte = 0xFF; }
            update_msr_bitmap(guest, merged);
            for (auto const byte : merged.bytes) {
                if (byte != 0xFF) { return false; }
            }
            return true;
        };
        bool const kept = all();
        guest.level = vmx::guest_level::l1;
        return right && kept && !all();
    });
}
