// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/nested.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>
#include <support/hostile_guest.hpp>
#include <support/how_many.hpp>

#include <memory>
#include <random>

using namespace ptspec;
namespace preset = ptspec::cpu::preset;
using access::ia32_rtit_ctl;
using vmx::controls;
using vmx::guest_output;
using vmx::guest_pt;
using vmx::nested_vmcs;

namespace {

constexpr auto a_guest() -> guest_pt {
    guest_pt guest;
    guest.caps = preset::ice_lake_u;
    return guest;
}
constexpr auto whole() -> controls {
    return vmx::with_guest_pt(preset::ice_lake_u, {.enable_ept = true});
}

}  // namespace

TEST_CASE("a nested VM entry loads CTL, and is refused by the rules of VM entry "
          "(REG-129..132, PRG-162)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        nested_vmcs vmcs{whole(), {value(uint64_t{0x2109})}};
        auto const entered = enter_nested(guest, vmcs);
        bool const loaded = entered && entered.trace_en_changed && guest.starts &&
                            guest.msrs.ctl.raw == 0x2109;
        // The processor of L1 traces now.
        auto const again = enter_nested(guest, vmcs);
        bool const refused = again.why == rule::REG_130 && guest.msrs.ctl.raw == 0x2109;
        guest_pt other = a_guest();
        vmcs.guest_ctl = {value(uint64_t{1} << 63)};
        other.msrs.ctl = {0x2108};
        auto const late = enter_nested(other, vmcs);
        bool const reserved = late.why == rule::REG_131 &&
                              late.where == vmx::step::guest_state_checks &&
                              other.msrs.ctl.raw == 0 && !other.starts &&
                              again.where == vmx::step::control_checks;
        // VM entry checks reserved bits only, not encodings: MTCFreq = 1.
        vmcs.guest_ctl = {0x6109};
        bool const encoding = static_cast<bool>(enter_nested(other, vmcs));
        other.msrs.ctl = {};
        vmcs = {{.secondary = {1U << 24}}, {}};
        bool const without_ept = enter_nested(other, vmcs).why == rule::REG_129;
        other.caps.vmx_misc = {};
        vmcs = {whole(), {}};
        bool const hidden = enter_nested(other, vmcs).why == rule::REG_132;
        return loaded && refused && reserved && encoding && without_ept && hidden;
    });
    CHECK_TWICE([](auto value) {  // without the control CTL stays
        guest_pt guest = a_guest();
        guest.msrs.ctl = {value(uint64_t{0x2109})};
        nested_vmcs vmcs{{}, {0x250D}};
        auto const entered = enter_nested(guest, vmcs);
        return entered && !entered.trace_en_changed && guest.msrs.ctl.raw == 0x2109 &&
               !guest.starts;
    });
}

TEST_CASE("a nested VM exit saves CTL and clears it (REG-126,127)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        nested_vmcs vmcs{whole(), {}};
        guest.msrs.ctl = {value(uint64_t{0x2109})};
        guest.starts = true;
        leave_nested(guest, vmcs);
        bool const cleared = vmcs.guest_ctl.raw == 0x2109 && guest.msrs.ctl.raw == 0 &&
                             !guest.starts;
        guest.msrs.ctl = {0x250D};
        vmcs.set.vm_exit = {};
        leave_nested(guest, vmcs);
        bool const stays = guest.msrs.ctl.raw == 0x250D && vmcs.guest_ctl.raw == 0x250D;
        guest.msrs.ctl = {0x2109};
        // The field exists with either control, also without guest-physical output.
        using output = reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr;
        auto const allowed = reg::vmcs_secondary_proc_ctls{}.with(output{true}).raw;
        guest.caps.vmx_procbased_ctls2.raw &= ~(uint64_t{allowed} << 32);
        leave_nested(guest, vmcs);
        bool const saved = vmcs.guest_ctl.raw == 0x2109;
        guest.caps = preset::skylake_x;  // has no such field
        guest.msrs.ctl = {0x2108};
        leave_nested(guest, vmcs);
        return cleared && stays && saved && vmcs.guest_ctl.raw == 0x2109;
    });
}

TEST_CASE("L0 owes a PIP for each transition that L1 does not conceal (GEN-271,272,278)") {
    CHECK_TWICE([](auto value) {
        auto const owes = [&](uint64_t ctl, uint32_t exit, uint32_t entry) {
            guest_pt guest = a_guest();
            guest.msrs.ctl = {value(ctl)};
            nested_vmcs vmcs{{.vm_exit = {exit}, .vm_entry = {entry}}, {}};
            bool const at_entry = enter_nested(guest, vmcs).owes_pip;
            return 2 * at_entry + owes_pip_at_exit(guest, vmcs);
        };
        return owes(0x2105, 0, 0) == 3 && owes(0x2105, 1U << 24, 0) == 2 &&
               owes(0x2105, 0, 1U << 17) == 1 && owes(0x2104, 0, 0) == 0 && owes(0x2109, 0, 0) == 0;
    });
}

TEST_CASE("L2 runs with the controls of L0, and is as visible as L1 wants (REG-122..124)") {
    CHECK_TWICE([](auto value) {
        auto const merged = [&](uint32_t nested) {
            return merged_controls(whole(), {.secondary = {value(nested)}});
        };
        auto const seen = merged(0);
        auto const concealed = merged(1U << 19 | 1U << 24);
        return seen.secondary.raw == 0 && seen.vm_exit.raw == 3U << 24 &&
               seen.vm_entry.raw == 3U << 17 && seen.enable_ept &&
               concealed.secondary.raw == (1U << 24 | 1U << 19) &&
               vmx::merged_controls({}, {.secondary = {value(1U << 24)}}).secondary.raw == 0;
    });
}

TEST_CASE("output of L2 that is not guest-physical for L1 needs shadow tables (PRG-180,184)") {
    CHECK_TWICE([](auto value) {
        auto const of = [&](guest_output own, uint32_t nested) {
            return output_of_nested(value(own), {.secondary = {nested}});
        };
        return of(guest_output::guest_physical, 1U << 24) == guest_output::guest_physical &&
               of(guest_output::shadow, 1U << 24) == guest_output::shadow &&
               of(guest_output::guest_physical, 0) == guest_output::shadow;
    });
    CHECK_TWICE([](auto value) {  // of a trace that goes on, too: it needs a shadow then
        guest_pt guest = a_guest();
        guest.msrs.ctl = {value(uint64_t{0x2109})};
        nested_vmcs vmcs{};
        bool const entered = enter_nested(guest, vmcs) && guest.output == guest_output::shadow &&
                             guest.needs_shadow();
        guest.shadow = vmx::shadow_use::placed;
        leave_nested(guest, vmcs);
        return entered && guest.output == guest_output::guest_physical && guest.trace_en() &&
               !guest.needs_shadow();
    });
}

// ------------------------------------------------------------------------------------ three levels

namespace {

/// A guest hypervisor with a guest of its own. Both it and the hypervisor below use the library.
class guest_hypervisor {
public:
    guest_hypervisor(guest_output output, std::uint64_t seed)
        : l1_{output, std::mt19937_64{seed}, false, caps_of_l1()} {
        l2_.caps = test::guest_caps();
        l2_.msrs.output_base = expected_.output_base = {0x1000};
    }

    void step() {
        switch (l1_.roll(10)) {
            case 0:
            case 1: return own_access();
            case 2: return in_l2_ ? leave() : enter();
            case 3: l1_.exit_and_enter(); return;
            case 4:
            case 5:
            case 6: return in_l2_ ? write_of_l2() : enter();
            case 7: return in_l2_ ? read_of_l2() : enter();
            default: return l1_.execute();
        }
    }
    void finish() {
        if (in_l2_) { leave(); }
        l1_.finish();
    }
    [[nodiscard]] auto difference() const -> std::string const& { return l1_.difference; }
    [[nodiscard]] auto steps_traced() const -> std::uint64_t { return l1_.steps_traced; }
    std::uint64_t entries = 0;

private:
    static auto caps_of_l1() -> cpu::capabilities {
        return cpu::preset::find("ElkhartLake")->value;
    }

    /// The hypervisor reads or writes its own MSRs.
    void own_access() {
        if (in_l2_) { return l1_.execute(); }
        std::uint32_t const index = l1_.any_msr();
        if (l1_.roll(2) == 0) {
            (void)l1_.read(index);
        } else {
            (void)l1_.write(index, l1_.any_value(index));
        }
    }
    void enter() {
        auto const entry = vmx::enter(l2_, host_, l1_);
        if (!entry) { return l1_.differ("the hypervisor cannot prepare VM entry"); }
        vmcs_.guest_ctl = entry.ctl;
        if (!l1_.enter_nested(vmcs_)) { return l1_.differ("VM entry of the hypervisor failed"); }
        in_l2_ = true;
        ++entries;
    }
    void leave() {
        l1_.leave_nested(vmcs_);
        in_l2_ = false;
        if (!vmx::leave(l2_, host_, l1_)) { l1_.differ("the hypervisor cannot go on"); }
    }

    void write_of_l2() {
        std::uint32_t const index = l1_.any_msr();
        std::uint64_t const value = l1_.any_value(index);
        bool const allowed = static_cast<bool>(
            access::check_write(l2_.caps, expected_, index, value));
        switch (access_of_guest(l2_, index)) {
            case vmx::guest_access::pass_through:
                if (l1_.write(index, value) || allowed) { l1_.differ("a write of L2"); }
                return;
            case vmx::guest_access::intercept:
                leave();
                if (static_cast<bool>(on_wrmsr(l2_, index, value)) != allowed) {
                    l1_.differ("a #GP of L2");
                }
                if (allowed) { access::set_raw(expected_, index, value); }
                return enter();
            default:
                if (allowed) { l1_.differ("an MSR that L2 has"); }
        }
    }
    void read_of_l2() {
        std::uint32_t const index = l1_.any_msr();
        std::uint64_t got = 0;
        switch (access_of_guest(l2_, index)) {
            case vmx::guest_access::pass_through: got = l1_.read(index).value; break;
            case vmx::guest_access::intercept:
                leave();
                got = on_rdmsr(l2_, index).value;
                enter();
                break;
            default: return;
        }
        // Output changes the position and the status.
        bool const changes = index == 0x560 || index == 0x561 || index == 0x571;
        if (!changes && got != access::value_of(expected_, index)) { l1_.differ("a read of L2"); }
    }

    test::pair_of_guests l1_;
    vmx::host_pt host_{};
    guest_pt l2_{};
    access::msr_state expected_{};  ///< what L2 wrote
    nested_vmcs vmcs_{
        vmx::with_guest_pt(caps_of_l1(),
                           {.vm_exit = {1U << 24}, .vm_entry = {1U << 17}, .enable_ept = true}),
        {}};
    bool in_l2_ = false;
};

}  // namespace

TEST_CASE("a guest hypervisor runs a guest with Intel PT, as on a processor of its own "
          "(PRG-170..173, REG-125..130)") {
    std::uint64_t const steps = test::number_from("PTSPEC_NESTED", test::usual_count / 10);
    constexpr std::uint64_t in_a_run = 500;
    std::uint64_t traced = 0;
    std::uint64_t entries = 0;
    for (std::uint64_t run = 0; run < steps / in_a_run; ++run) {
        auto const output = run % 2 == 0 ? guest_output::guest_physical : guest_output::shadow;
        auto const levels = std::make_unique<guest_hypervisor>(output, run + 1);
        std::uint64_t step = 0;
        for (; step < in_a_run && levels->difference().empty(); ++step) { levels->step(); }
        levels->finish();
        CAPTURE(run);
        CAPTURE(step);
        REQUIRE(levels->difference() == "");
        traced += levels->steps_traced();
        entries += levels->entries;
    }
    CHECK(traced > steps / 100);
    CHECK(entries > steps / 10);
    MESSAGE(steps << " steps, " << traced << " with traced code, " << entries << " VM entries");
}
