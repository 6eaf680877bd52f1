// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/guest_pt.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
using access::ia32_rtit_ctl;
using access::ia32_rtit_status;
using vmx::exit_action;
using vmx::guest_access;
using vmx::guest_pt;

namespace {

constexpr auto a_guest(cpu::capabilities const& caps = preset::ice_lake_u) -> guest_pt {
    guest_pt guest;
    guest.caps = caps;
    return guest;
}
constexpr auto gp(rule why) -> vmx::exit_answer { return {exit_action::inject_gp, why}; }

}  // namespace

TEST_CASE("an intercepted write obeys the capabilities that the guest sees (PRG-173)") {
    CHECK_TWICE([](auto value) {
        auto caps = preset::ice_lake_u;
        caps.leaf_14_1_eax = caps.leaf_14_1_eax.with(reg::cpuid_14h_1_eax::RANGECNT{1});
        caps.leaf_14_0_ebx = caps.leaf_14_0_ebx.with(reg::cpuid_14h_0_ebx::MTC{false});
        guest_pt guest = a_guest(caps);
        auto const write = [&](uint32_t index, uint64_t to) {
            return on_wrmsr(guest, index, value(to));
        };
        return write(0x570, 0x2205) == gp(rule::REG_030) && guest.msrs.ctl.raw == 0 &&
               write(0x582, 0) == gp(rule::REG_014) && write(0x580, 0x1234) &&
               guest.msrs.addr[0].a.raw == 0x1234 && write(0x560, 0x1040) == gp(rule::REG_070) &&
               write(0x561, 0) && guest.msrs.output.mask_ptrs.raw == 0x7F;
    });
}

TEST_CASE("writes of other MSRs fault while the guest's TraceEn is 1, and CTL keeps its other bits "
          "(PRG-173, REG-004, REG-021)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        bool const on = on_wrmsr(guest, 0x570, value(uint64_t{0x2109})) ==
                        vmx::exit_answer{.trace_en_changed = true};
        bool const refused = on_wrmsr(guest, 0x571, 0) == gp(rule::REG_004) &&
                             on_wrmsr(guest, 0x570, 0x2509) == gp(rule::REG_021) &&
                             guest.msrs.ctl.raw == 0x2109 && guest.starts;
        bool const off = on_wrmsr(guest, 0x570, value(uint64_t{0x2108})) ==
                             vmx::exit_answer{.trace_en_changed = true} &&
                         !guest.starts;
        return on && refused && off && on_wrmsr(guest, 0x571, value(uint64_t{0x10})) &&
               guest.msrs.status.get<ia32_rtit_status::Error>();
    });
}

TEST_CASE("what enabling does is left to the processor (PRG-173, OUT-086)") {
    CHECK_TWICE([](auto value) {
        // PendPSB and PendToPAPMI, and a TraceStop range around the next instruction.
        guest_pt guest = a_guest(preset::P_ATM);
        (void)on_wrmsr(guest, 0x571, value(uint64_t{0xC0}));
        (void)on_wrmsr(guest, 0x581, 0xFFFF);
        bool const done = static_cast<bool>(
            on_wrmsr(guest, 0x570, value(uint64_t{0x0100'0002'0000'2109}), {.ip = 0x1000}));
        // Only TriggerEn, which software cannot write, is as after the write.
        return done && guest.msrs.status.raw == 0xC4 && guest.starts && !guest.pmi_pending &&
               guest.msrs.perf_global_status.raw == 0;
    });
}

TEST_CASE(
    "an intercepted read returns the guest's value, and faults for an MSR that the guest does "
    "not have (PRG-172)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x572, value(uint64_t{0x5000}));
        return on_rdmsr(guest, 0x572).value == 0x5000 && on_rdmsr(guest, 0x561).value == 0x7F &&
               on_rdmsr(guest, 0x584) == gp(rule::REG_014) &&
               on_rdmsr(guest, 0x570, 3) == gp(rule::REG_002) &&
               on_rdmsr(a_guest(preset::P_NONE), 0x570) == gp(rule::REG_001) &&
               !on_rdmsr(guest, 0x572).trace_en_changed &&
               on_rdmsr(guest, 0x38E).what == exit_action::not_pt &&
               on_wrmsr(guest, 0x38E, 0).what == exit_action::not_pt;
    });
}

TEST_CASE("with shadow tables the output MSRs are always intercepted (PRG-184)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        guest.output = value(vmx::guest_output::shadow);
        (void)on_wrmsr(guest, 0x570, 0x2109);
        auto const how = [&](uint32_t index) { return access_of_guest(guest, index); };
        bool const shadowed = how(0x560) == guest_access::intercept &&
                              how(0x561) == guest_access::intercept &&
                              how(0x571) == guest_access::pass_through;
        guest.output = value(vmx::guest_output::guest_physical);
        return shadowed && how(0x560) == guest_access::pass_through &&
               how(0x561) == guest_access::pass_through;
    });
}

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

TEST_CASE("without Intel PT in VMX operation VMXON clears TraceEn, and CTL cannot be written until "
          "VMXOFF (REG-110, REG-121, PRG-160, PRG-173)") {
    CHECK_TWICE([](auto value) {
        auto caps = preset::ice_lake_u;
        caps.vmx_misc = {};
        guest_pt guest = a_guest(caps);
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        vmxon(guest);
        bool const cleared = guest.msrs.ctl.raw == 0x2108 && !guest.starts &&
                             on_wrmsr(guest, 0x570, 0x2109) == gp(rule::REG_121);
        guest_pt moved = a_guest(caps);
        bool const loads = static_cast<bool>(load(moved, store(guest)));
        vmxoff(guest);
        return cleared && loads && on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
    });
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();  // may trace in VMX operation
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        vmxon(guest);
        return guest.msrs.ctl.raw == 0x2109 && guest.starts;
    });
}

TEST_CASE("the guest resets and sets Trace_ToPA_PMI by 390H and 391H (PRG-177, REG-203, REG-204)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        auto const write = [&](uint32_t index, uint64_t to) {
            return on_global_status_write(guest, value(index), value(to));
        };
        constexpr uint64_t bit = uint64_t{1} << 55;
        bool right = write(0x391, ~bit) && guest.msrs.perf_global_status.raw == 0;
        right = right && write(0x391, ~uint64_t{0}) && guest.msrs.perf_global_status.raw == bit &&
                !guest.pmi_pending;
        right = right && write(0x390, ~bit) && guest.msrs.perf_global_status.raw == bit;
        right = right && write(0x390, bit) && guest.msrs.perf_global_status.raw == 0;
        right = right && write(0x38E, bit).what == exit_action::not_pt;
        // Without ToPA output the bit does not exist.
        guest.caps.leaf_14_0_ecx = guest.caps.leaf_14_0_ecx.with(
            reg::cpuid_14h_0_ecx::TOPAOUT{false});
        return right && write(0x391, bit) == gp(rule::REG_204) &&
               write(0x390, bit) == gp(rule::REG_204) && write(0x391, ~bit) &&
               guest.msrs.perf_global_status.raw == 0;
    });
}

TEST_CASE("XSAVES and XRSTORS of a guest save, clear and load its MSRs (REG-142..145)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x560, 0x3000);
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        auto const image = on_xsaves(guest);
        bool const saved = image.get<access::xsave_pt_state::IA32_RTIT_CTL>().raw == 0x2109 &&
                           !guest.trace_en() && !guest.starts;
        (void)on_wrmsr(guest, 0x560, 0x4000);
        bool const loaded = on_xrstors(guest, value(image)) ==
                                vmx::exit_answer{.trace_en_changed = true} &&
                            guest.msrs.ctl.raw == 0x2109 && guest.starts &&
                            guest.msrs.output.base.raw == 0x3000;
        auto illegal = image;
        illegal.quadwords[0] = value(uint64_t{0x8000'0000'0000'0000});
        bool const refused = on_xrstors(guest, image) == gp(rule::REG_143) &&
                             on_wrmsr(guest, 0x570, 0) &&
                             on_xrstors(guest, illegal) == gp(rule::REG_144) &&
                             guest.msrs.ctl.raw == 0;
        illegal.quadwords[0] = 0x2108;
        return saved && loaded && refused && on_xrstors(guest, illegal) && !guest.starts;
    });
}

TEST_CASE("an SMI clears the guest's TraceEn, and RSM restores it (REG-100..102)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        smi(guest);
        bool const in_smm = !guest.trace_en() && guest.msrs.in_smm && !guest.starts;
        guest_pt enabled = guest;
        (void)on_wrmsr(enabled, 0x570, value(uint64_t{0x2109}));
        auto const shutdown = rsm(enabled);
        auto const back = rsm(guest);
        bool const told = back.trace_en_changed && !shutdown.trace_en_changed;
        return told && in_smm && shutdown.outcome == access::rsm_outcome::shutdown &&
               shutdown.broken == rule::REG_102 && enabled.msrs.in_smm && back &&
               guest.trace_en() && guest.starts && !guest.msrs.in_smm &&
               rsm(guest).outcome == access::rsm_outcome::undefined_opcode;
    });
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x571, value(uint64_t{0x10}));
        smi(guest);
        return rsm(guest) && !guest.trace_en() && !guest.starts && guest.msrs.status.raw == 0x10;
    });
}

TEST_CASE("RSM does not give a guest a CTL that it could not write (REG-025, REG-108)") {
    CHECK_TWICE([](auto value) {
        auto caps = preset::ice_lake_u;
        caps.leaf_14_0_ecx.raw &= ~4U;  // no single-range output
        guest_pt guest = a_guest(caps);
        bool right = static_cast<bool>(on_wrmsr(guest, 0x570, 0x2105));
        smi(guest);
        right = right && on_wrmsr(guest, 0x570, value(uint64_t{0}));
        auto const shutdown = rsm(guest);
        guest_pt moved = a_guest(caps);
        return right && shutdown.outcome == access::rsm_outcome::shutdown &&
               shutdown.broken == rule::REG_025 && !shutdown.trace_en_changed &&
               guest.msrs.in_smm && !guest.trace_en() && load(moved, store(guest));
    });
}

TEST_CASE("an SMI in SMM stays pending, and an enable that waits for VM entry stays (REG-100)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        smi(guest);
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        smi(guest);
        return guest.trace_en() && guest.starts && guest.msrs.in_smm;
    });
}

TEST_CASE("a reset of the guest clears what waits for it (REG-090..093)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x580, 0x5000);
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        guest.pmi_pending = true;
        warm_reset(guest);
        bool const warm = guest.msrs.ctl.raw == 0x2108 && !guest.starts && !take_pmi(guest) &&
                          guest.msrs.addr[0].a.raw == 0x5000;
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2109}));
        guest.pmi_pending = true;
        cold_reset(guest);
        return warm && guest.msrs == access::msr_state{} && !guest.starts && !guest.pmi_pending;
    });
}

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

TEST_CASE("an interrupt is injected once (PRG-177)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        guest.pmi_pending = value(true);
        return take_pmi(guest) && !take_pmi(guest);
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
