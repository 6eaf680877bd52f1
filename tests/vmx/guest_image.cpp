// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/guest_image.hpp>

#include <ptspec/vmx/guest_events.hpp>
#include <ptspec/vmx/msr_exits.hpp>

#include <support/a_guest.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
using test::a_guest;
using vmx::guest_pt;

TEST_CASE("MSRs that a VMM restores one by one are not an enable of the guest "
          "(REG-056, REG-063..066, PRG-173)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest(preset::P_ATM);
        (void)on_wrmsr(guest, 0x560, 0x3000);
        (void)on_wrmsr(guest, 0x571, value(uint64_t{0xC0}));
        (void)on_wrmsr(guest, 0x570, uint64_t{0x0100'0000'0000'2109});
        guest.starts = false;  // VM entry
        // In any order, by index.
        access::msr_state got;
        constexpr uint32_t indices[] = {0x570, 0x571, 0x560, 0x561, 0x572, 0x580, 0x581};
        for (uint32_t const index : indices) {
            access::set_raw(got, index, on_rdmsr(guest, index).value & ~uint64_t{4});
        }
        guest_pt other = a_guest(preset::P_ATM);
        bool right = restore(other, got) && other.msrs == guest.msrs && !other.starts;
        vmxon(other);
        right = right && restore(other, got) && other.msrs.in_vmx_operation;
        access::set_raw(got, 0x572, value(uint64_t{0x10}));
        auto const before = other.msrs;
        auto const refused = restore(other, got);
        return right && refused.error == access::error::refused &&
               refused.broken == rule::REG_074 && refused.msr == 0x572 && other.msrs == before;
    });
}

TEST_CASE("a guest moves as an image, which is not trusted (REG-056, PRG-173)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x560, 0x3000);
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        guest.pmi_pending = true;
        auto image = store(guest);
        guest_pt other = a_guest();
        bool const moved = load(other, image) && other.msrs == guest.msrs && other.starts &&
                           other.shadow == vmx::shadow_use::needed && other.pmi_pending;
        guest.pmi_pending = false;
        bool const flags = image.size() == 176 && image.bytes[152] == 3 &&
                           store(guest).bytes[152] == 2;
        guest.starts = false;
        guest_pt running = a_guest();
        running.output = vmx::guest_output::shadow;
        bool const runs = load(running, store(guest)) && running.trace_en() && !running.starts &&
                          running.needs_shadow() && !running.pmi_pending;
        return moved && flags && runs;
    });
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        guest.level = vmx::guest_level::l2;
        guest.nested = {{value(0x1111'2222U)}, {0x3333'4444U}, {0x5555'6666U}, true};
        auto const image = store(guest);
        guest_pt other = a_guest();
        bool const moved = load(other, image) && other.level == guest.level &&
                           other.nested.secondary.raw == 0x1111'2222 &&
                           other.nested.vm_exit.raw == 0x3333'4444 &&
                           other.nested.vm_entry.raw == 0x5555'6666 && other.nested.enable_ept;
        return moved && load_le64(image.bytes + 160) == 0x3333'4444'1111'2222 &&
               load_le64(image.bytes + 168) == 0x5555'6666;
    });
    CHECK_TWICE([](auto value) {
        using access::error;
        guest_pt guest = a_guest();
        auto image = store(guest);
        auto const why = [&](byte_view bytes) {
            guest_pt other = a_guest();
            auto const got = load(other, bytes).error;
            bool const unchanged = other.msrs == access::msr_state{};
            return unchanged ? got : access::error::none;
        };
        byte_view const all{image.data(), image.size()};
        bool right = why(all.first(100)) == access::error::truncated &&
                     why(all.first(access::image_size)) == access::error::truncated &&
                     load(guest, image) && !guest.needs_shadow();
        byte_array<vmx::guest_image_size + 1> longer;
        for (size_t i = 0; i < image.size(); ++i) { longer.bytes[i] = image.bytes[i]; }
        right = right && why(longer) == access::error::wrong_size;
        image.bytes[access::image_size] = value(uint8_t{32});
        right = right && why(image) == access::error::unknown_flags;
        // Controls of L2 are for a guest in L2; bit 32 of the VM-entry controls is no control.
        image.bytes[access::image_size] = 0;
        image.bytes[access::image_size + 8] = value(uint8_t{1});
        right = right && why(image) == access::error::unknown_flags;
        image.bytes[access::image_size + 8] = 0;
        image.bytes[access::image_size] = 4;
        image.bytes[access::image_size + 20] = value(uint8_t{1});
        right = right && why(image) == access::error::unknown_flags;
        image.bytes[access::image_size + 20] = 0;
        right = right && why(image) == access::error::none;
        image.bytes[access::image_size] = 2;  // TraceEn has not risen
        right = right && why(image) == access::error::unknown_flags;
        image.bytes[access::image_size] = 1;
        image.bytes[0] ^= 1U;
        return right && why(image) == access::error::not_an_image;
    });
}
