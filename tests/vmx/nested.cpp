// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/nested.hpp>

#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/ports.hpp>

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
    return vmx::with_guest_pt(preset::ice_lake_u, {.enable_ept = true},
                              guest_output::guest_physical);
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
        bool const refused = again.broken == rule::REG_130 && guest.msrs.ctl.raw == 0x2109;
        guest_pt other = a_guest();
        vmcs.guest_ctl = {value(uint64_t{1} << 63)};
        other.msrs.ctl = {0x2108};
        auto const late = enter_nested(other, vmcs);
        bool const reserved = late.broken == rule::REG_131 &&
                              late.where == vmx::step::guest_state_checks &&
                              other.msrs.ctl.raw == 0 && !other.starts &&
                              again.where == vmx::step::control_checks;
        // MTCFreq = 1: an encoding that CPUID does not list.
        vmcs.guest_ctl = {0x6109};
        bool const encoding = enter_nested(other, vmcs).broken == rule::REG_131;
        vmcs = {{.secondary = {1U << 24}}, {}};
        bool const without_ept = enter_nested(other, vmcs).broken == rule::REG_129;
        other.caps.vmx_misc = {};
        vmcs = {whole(), {}};
        bool const hidden = enter_nested(other, vmcs).broken == rule::REG_132;
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
        nested_vmcs vmcs{whole(), {value(uint64_t{0x2109})}};
        bool const entered = enter_nested(guest, vmcs) && guest.starts;
        vmcs.guest_ctl = {};
        bool const cleared = entered && leave_nested(guest, vmcs) && vmcs.guest_ctl.raw == 0x2109 &&
                             guest.msrs.ctl.raw == 0 && guest.msrs.status.raw == 0 && !guest.starts;
        // L2 does not run any more.
        vmcs.guest_ctl = {};
        bool const again = leave_nested(guest, vmcs) || vmcs.guest_ctl.raw != 0;
        auto const leave = [&](uint64_t ctl) {
            guest.msrs.ctl = {};
            nested_vmcs other{};
            bool const inside = static_cast<bool>(enter_nested(guest, other));
            guest.msrs.ctl = {ctl};
            return inside && leave_nested(guest, other) && guest.msrs.ctl.raw == ctl
                       ? other.guest_ctl.raw
                       : ~uint64_t{0};
        };
        bool const stays = leave(0x250D) == 0x250D;
        // The field exists with either control, also without guest-physical output.
        using output = reg::vmcs_secondary_proc_ctls::PTUsesGuestPhysAddr;
        auto const allowed = reg::vmcs_secondary_proc_ctls{}.with(output{true}).raw;
        guest.caps.vmx_procbased_ctls2.raw &= ~(uint64_t{allowed} << 32);
        bool const saved = leave(0x2109) == 0x2109;
        guest.caps = preset::skylake_x;  // has no such field
        return cleared && !again && stays && saved && leave(0x2108) == 0;
    });
}

TEST_CASE("L0 owes a PIP for each transition that L1 does not conceal (GEN-271,272,278)") {
    CHECK_TWICE([](auto value) {
        auto const owes = [&](uint64_t ctl, uint32_t exit, uint32_t entry) {
            guest_pt guest = a_guest();
            guest.msrs.ctl = {value(ctl)};
            nested_vmcs vmcs{{.vm_exit = {exit}, .vm_entry = {entry}}, {}};
            bool const at_entry = enter_nested(guest, vmcs).owes_pip;
            return 2 * at_entry + owes_pip_at_exit(guest);
        };
        return owes(0x2105, 0, 0) == 3 && owes(0x2105, 1U << 24, 0) == 2 &&
               owes(0x2105, 0, 1U << 17) == 1 && owes(0x2104, 0, 0) == 0 && owes(0x2109, 0, 0) == 0;
    });
}

TEST_CASE("NR of the PIP that L0 owes is 0 where L1 conceals VMX from L2 (REG-122, GEN-278)") {
    CHECK_TWICE([](auto value) {
        auto const nr = [&](uint32_t secondary) {
            guest_pt guest = a_guest();
            guest.msrs.ctl = {0x2105};
            auto const entered = enter_nested(guest, {{.secondary = {value(secondary)}}, {}});
            return 2 * entered.owes_pip + entered.pip_nr;
        };
        return nr(0) == 3 && nr(1U << 19) == 2;
    });
}

TEST_CASE("L2 runs with the controls of L0, and is as visible as both want (REG-122..124)") {
    CHECK_TWICE([](auto value) {
        auto const merged = [&](controls const& own, uint32_t nested) {
            guest_pt guest = a_guest();
            guest.level = vmx::guest_level::l2;
            guest.nested = {.secondary = {value(nested)}};
            return merged_controls(own, guest);
        };
        auto const seen = merged(whole(), 0);
        auto const concealed = merged(whole(), 1U << 19 | 1U << 24);
        bool const traced_by_l1 = seen.secondary.raw == 0 && seen.vm_exit.raw == 3U << 24 &&
                                  seen.vm_entry.raw == 3U << 17 && seen.enable_ept &&
                                  concealed.secondary.raw == (1U << 24 | 1U << 19);
        // An L0 that traces all: it needs the PIPs of its transitions, and NR in them. On a
        // processor without the controls none may be 1.
        bool const traced_by_l0 = merged({}, 1U << 19 | 1U << 24) == controls{} &&
                                  merged({}, 0) == controls{};
        return traced_by_l1 && traced_by_l0 && merged_controls(whole(), a_guest()) == whole();
    });
    CHECK_TWICE([](auto value) {  // L2 of every guest can be entered on every processor
        for (auto const& of : preset::all) {
            auto const output = of.value.vmx() == cpu::vmx_support::whole
                                    ? guest_output::guest_physical
                                    : guest_output::shadow;
            auto const own = vmx::with_guest_pt(of.value, {.enable_ept = true}, output);
            for (uint32_t const nested : {0U, 1U << 19, 1U << 24, 1U << 19 | 1U << 24}) {
                guest_pt guest{.caps = of.value, .output = output};
                guest.level = vmx::guest_level::l2;
                guest.nested = {.secondary = {value(nested)}};
                auto const set = merged_controls(own, guest);
                if (broken_rule(of.value, set, {}) != rule::none) { return false; }
                if (guest_output_of(set) != guest.current_output()) { return false; }
            }
        }
        return true;
    });
}

TEST_CASE("output of L2 that is not guest-physical for L1 needs shadow tables (PRG-180,184)") {
    CHECK_TWICE([](auto value) {
        auto const of = [&](guest_output own, uint32_t nested) {
            guest_pt guest{.output = value(own), .level = vmx::guest_level::l2};
            guest.nested = {.secondary = {nested}};
            return guest.current_output();
        };
        return of(guest_output::guest_physical, 1U << 24) == guest_output::guest_physical &&
               of(guest_output::shadow, 1U << 24) == guest_output::shadow &&
               of(guest_output::guest_physical, 0) == guest_output::shadow;
    });
    CHECK_TWICE([](auto value) {  // of a trace that goes on, too: it needs a shadow then
        guest_pt guest = a_guest();
        guest.msrs.ctl = {value(uint64_t{0x2109})};
        nested_vmcs vmcs{};
        bool const entered = enter_nested(guest, vmcs) &&
                             guest.current_output() == guest_output::shadow && guest.needs_shadow();
        guest.shadow = vmx::shadow_use::placed;
        return entered && leave_nested(guest, vmcs) &&
               guest.current_output() == guest_output::guest_physical && guest.trace_en() &&
               !guest.needs_shadow() && enter_nested(guest, vmcs) && guest.needs_shadow();
    });
}

TEST_CASE("L2 stays entered across migration; a reset and an SMI of L1 leave it (REG-090..094, "
          "REG-100,101, "
          "PRG-180)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        (void)on_wrmsr(guest, 0x560, 0x5000);
        (void)on_wrmsr(guest, 0x570, value(uint64_t{0x2105}));
        nested_vmcs vmcs{{.secondary = {1U << 19}, .vm_exit = {1U << 24}, .enable_ept = true}, {}};
        bool right = static_cast<bool>(enter_nested(guest, vmcs));
        guest_pt moved = a_guest();
        right = right && load(moved, store(guest)) && moved.level == vmx::guest_level::l2 &&
                moved.nested == vmcs.set && moved.current_output() == guest_output::shadow &&
                moved.needs_shadow();
        auto const after = [&](auto const& event) {
            guest_pt one = moved;
            event(one);
            return one;
        };
        auto const cold = after([](guest_pt& one) { cold_reset(one); });
        auto const warm = after([](guest_pt& one) { warm_reset(one); });
        auto const in_smm = after([](guest_pt& one) { smi(one); });
        guest_pt smm_moved = a_guest();
        right = right && cold.current_output() == guest_output::guest_physical &&
                cold.level == vmx::guest_level::l1 && warm.level == vmx::guest_level::l1 &&
                warm.nested == controls{} &&
                in_smm.current_output() == guest_output::guest_physical &&
                load(smm_moved, store(in_smm)) && smm_moved.level == vmx::guest_level::smm_of_l2 &&
                !leave_nested(smm_moved, vmcs);
        return right && rsm(smm_moved) && smm_moved.level == vmx::guest_level::l2 &&
               smm_moved.needs_shadow() && leave_nested(smm_moved, vmcs) &&
               smm_moved.level == vmx::guest_level::l1;
    });
    CHECK_TWICE([](auto value) {  // an image is not trusted
        using access::error;
        guest_pt guest = a_guest();
        guest.msrs.in_smm = true;
        guest.level = vmx::guest_level::smm_of_l2;
        guest.nested = whole();
        auto const good = store(guest);
        constexpr size_t flags = access::image_size;
        auto const why = [&](size_t at, uint8_t byte) {
            auto image = good;
            image.bytes[at] = value(byte);
            guest_pt other = a_guest();
            auto const got = load(other, image);
            return got.error == access::error::refused && got.broken != rule::REG_135 &&
                           got.broken != rule::REG_129
                       ? access::error::none
                       : got.error;
        };
        return load(guest, good) && why(flags, 8) == access::error::refused &&  // without EPT
               why(flags, 16) == access::error::unknown_flags &&                // L1 has no VMCS
               why(flags, 4 | 8 | 16) == access::error::unknown_flags &&
               why(flags, 4 | 16) == access::error::unknown_flags &&  // in SMM
               why(flags, 8 | 16 | 32) == access::error::unknown_flags &&
               why(flags + 20, 1) == access::error::unknown_flags &&
               why(flags + 18, 0) == access::error::refused;
    });
}

TEST_CASE(
    "a CTL field that L1 could not write is refused, as by the processor (REG-028, REG-131)") {
    CHECK_TWICE([](auto value) {
        constexpr uint64_t fields[] = {0x2105 | 15U << 14, 0x2105 | 1U << 14, 0x2105 | 15U << 19,
                                       uint64_t{3} << 32,  uint64_t{1} << 63, 0x2141};
        bool right = true;
        for (uint64_t const field : fields) {
            guest_pt guest = a_guest();
            vmxon(guest);
            guest.msrs.ctl = {0x2104};
            auto const entered = enter_nested(guest, {whole(), {value(field)}});
            vmx::vmcs_fields const same{whole(), {field}};
            auto const processor = vm_entry(guest.caps, same, {.in_vmx_operation = true});
            guest_pt moved = a_guest();
            right = right && entered.broken == rule::REG_131 &&
                    entered.where == vmx::step::guest_state_checks &&
                    guest.level == vmx::guest_level::l1 && guest.msrs.ctl.raw == 0 &&
                    guest.msrs.status.raw == 0 && processor.violated.broken == rule::REG_131 &&
                    load(moved, store(guest));
        }
        return right;
    });
}

TEST_CASE("the VM entries of a virtual processor, of the rules and of the model take the same CTL "
          "(REG-028, REG-131)") {
    std::mt19937_64 random{5};
    auto const& caps = preset::ice_lake_u;
    unsigned taken = 0;
    for (unsigned i = 0; i < 5000; ++i) {
        std::uint64_t const most = random();
        std::uint64_t const field = most & random() & (i % 2 == 0 ? 0x33'0F7B'EF8F : ~0ULL);
        guest_pt guest = a_guest();
        auto const entered = enter_nested(guest, {whole(), {field}});
        auto const by_rules = vmx::vm_entry(caps, {whole(), {field}}, {.in_vmx_operation = true});
        simulate::memory_model<4096> memory{0, {}};
        engine::trace_unit<> unit{caps};
        (void)unit.on(engine::action::vm_entry{.to = 0x1000, .loads = {true, {field}}}, memory);
        bool const by_model = unit.msrs().ctl.raw == field;
        CAPTURE(field);
        REQUIRE(static_cast<bool>(entered) == static_cast<bool>(by_rules));
        REQUIRE(static_cast<bool>(entered) == (field == 0 || by_model));
        taken += static_cast<bool>(entered);
    }
    CHECK(taken > 100);
    CHECK(taken < 4900);
}

TEST_CASE("MSR lists of L1 act on its virtual processor (PRG-165, PRG-166, REG-010)") {
    CHECK_TWICE([](auto value) {
        using vmx::msr_list_entry;
        guest_pt guest{.caps = preset::skylake_x};  // without the controls
        msr_list_entry const lists[] = {{0x560, 0, 0x7000},
                                        {0xC000'0080, 0, 0x500},
                                        {0x570, 0, value(uint64_t{0x2109})},
                                        {0x570, 0, value(uint64_t{0x2108})},
                                        {0x570, 1, 0}};
        unsigned others = 0;
        auto const other = [&](msr_list_entry const& entry) {
            others += entry.index == 0xC000'0080 && entry.value == 0x500;
            return rule::none;
        };
        nested_vmcs vmcs{};
        bool right = enter_nested(guest, vmcs) &&
                     load_msrs(guest, {lists, 3}, vmx::step::entry_load, other).broken ==
                         rule::none &&
                     others == 1 && guest.msrs.ctl.raw == 0x2109 && guest.starts &&
                     guest.msrs.output.base.raw == 0x7000;
        msr_list_entry stored[] = {{0x570, 0, 0}, {0x10, 0, 0}, {0x560, 0, 0}};
        auto const store = [&](size_t position, uint64_t to) { stored[position].value = to; };
        auto const store_other = [&](size_t position, msr_list_entry const& entry) {
            others += position == 1 && entry.index == 0x10;
            return rule::none;
        };
        right = right && store_msrs(guest, {stored, 3}, store, store_other).broken == rule::none &&
                others == 2 && stored[0].value == 0x2109 && stored[2].value == 0x7000;
        right = right && leave_nested(guest, vmcs) &&
                load_msrs(guest, {lists + 3, 1}, vmx::step::exit_load, other).broken ==
                    rule::none &&
                !guest.trace_en();
        // The first entry that faults ends the list; the entries before it are written.
        msr_list_entry const bad[] = {{0x560, 0, 0x9000}, {0x572, 0, 0x10}, {0x560, 0, 0}};
        auto const failed = load_msrs(guest, {bad, 3}, vmx::step::entry_load, other);
        right = right && failed == vmx::violation{rule::REG_074, vmx::step::entry_load, 1, 0x572} &&
                guest.msrs.output.base.raw == 0x9000;
        auto const reserved = load_msrs(guest, {lists + 4, 1}, vmx::step::exit_load, other);
        auto const missing = store_msrs(
            guest, {&lists[1], 1}, store,
            [](size_t, msr_list_entry const&) { return rule::REG_001; });
        return right && reserved.broken == rule::PRG_165 && missing.broken == rule::REG_001 &&
               missing.where == vmx::step::exit_store;
    });
}

TEST_CASE("the trace of L1 that goes on in L2 without guest-physical output stays in the guest's "
          "memory, also after a move (PRG-180, PRG-184, REG-128)") {
    std::uint64_t const steps = test::number_from("PTSPEC_NESTED", test::usual_count / 10) / 4;
    constexpr std::uint64_t in_a_run = 500;
    std::uint64_t traced = 0;
    std::uint64_t changes = 0;
    for (std::uint64_t run = 0; run < steps / in_a_run; ++run) {
        auto const output = run % 2 == 0 ? guest_output::guest_physical : guest_output::shadow;
        auto const both = std::make_unique<test::pair_of_guests>(output, std::mt19937_64{run + 1},
                                                                 false, test::usual_host());
        nested_vmcs vmcs{{.vm_exit = {1U << 24}, .vm_entry = {1U << 17}}, {}};
        std::uint64_t step = 0;
        for (; step < in_a_run && both->difference.empty(); ++step) {
            bool const changes_level = both->roll(8) == 0;
            changes += changes_level;
            changes_level ? both->change_level(vmcs) : both->step();
        }
        both->finish();
        CAPTURE(run);
        CAPTURE(step);
        REQUIRE(both->difference == "");
        traced += both->steps_traced;
    }
    CHECK(traced > steps / 20);
    CHECK(changes > steps / 10);
}

// ------------------------------------------------------------------------------------ three levels

namespace {

/// A guest hypervisor with a guest of its own. Both it and the hypervisor below use the library.
class guest_hypervisor {
public:
    guest_hypervisor(guest_output output, std::uint64_t seed)
        : l1_{output, std::mt19937_64{seed}, false, caps_of_l1()} {
        l2_.caps = test::guest_caps();
        l2_.msrs.output.base = expected_.output.base = {0x1000};
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
    static auto caps_of_l1() -> cpu::capabilities { return test::usual_host(); }

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
        auto const entry = vmx::enter(l2_, vmcs_.set, host_, l1_);
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
        vmx::with_guest_pt(caps_of_l1(), {.enable_ept = true}, guest_output::guest_physical), {}};
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
