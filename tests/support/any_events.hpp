// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <support/program_runs.hpp>
#include <support/random_moments.hpp>

#include <ptspec/engine/trace_unit.hpp>

#include <cstddef>
#include <cstdint>

// Random events and accesses in any order with any operands. They need not be consistent.
namespace ptspec::test::programs {

/// Feeds a trace unit with random events and accesses.
template <std::size_t Depth = 1024>
class any_events {
public:
    any_events(engine::trace_unit<Depth>& unit, dice& from) : unit_{unit}, dice_{from} {}

    /// Executes one event or access. Returns false when an access faults or a port fails.
    template <class Memory>
    auto step(Memory& memory) -> bool {
        auto const on = [&](auto const& e) { return !unit_.on(e, memory, takes()).happened; };
        auto const here = unit_.ip();
        switch (dice_.roll(54)) {
            case 0: return write_msr(memory);
            case 1: return on(action::direct_jump{address()});
            case 2: return on(action::direct_call{here + 5, address()});
            case 3: return on(action::indirect_jump{address()});
            case 4: return on(action::indirect_call{here + 2, address()});
            case 5:
            case 6: return on(action::near_return{back()});
            case 7: return on(action::sequential{here + dice_.roll(64)});
            case 8:
                return on(action::far_transfer{
                    here, address(), code(), static_cast<engine::action::far_kind>(dice_.roll(6))});
            case 9: return on(action::software_interrupt{here, address(), code(), byte()});
            case 10: return on(action::interrupt{here, address(), code(), byte()});
            case 11: return on(action::exception{here, address(), code(), 14, any()});
            case 12: return on(action::exception{here, address(), code(), byte()});
            case 13: return on(action::user_interrupt{here, address(), byte()});
            case 14: return on(action::init{here, address(), code(), dice_.chance(50)});
            case 15: return on(action::sipi{address(), code(), byte()});
            case 16: return on(action::mov_cr3{here, here + 3, 0x1000 * dice_.roll(3)});
            case 17: return on(action::interrupt_flag{here + 1, dice_.chance(50)});
            case 18: return on(action::transaction_begin{here, here + 3});
            case 19: return on(action::transaction_end{here, here + 3});
            case 20: return on(action::transaction_abort{here, address()});
            case 21: return on(action::enclave_transfer{here, address(), code()});
            case 22:
                return on(action::vm_exit{here, address(), code(), load(), any(), byte(),
                                          dice_.chance(50), byte(), dice_.chance(20),
                                          0x1000 * dice_.roll(9)});
            case 23:
                return on(action::vm_entry{here, address(), code(), load(), dice_.chance(20),
                                           0x1000 * dice_.roll(9)});
            case 24: return on(action::vm_entry_failure{address(), code(), dice_.chance(50)});
            case 25: return on(action::vmptrld{here + 4, 0x1000 * dice_.roll(9)});
            case 26: return on(action::vmclear{here + 4});
            case 27: return on(action::vmxon{here, here + 4});
            case 28: return on(action::vmxoff{here + 3});
            case 29: return on(action::smi{here, address(), code()});
            case 30: return on(action::rsm{address(), code()});
            case 31: return dice_.chance(90) || on(action::measured_launch{});
            case 32: return on(action::acm_begin{});
            case 33: return on(action::acm_end{here + 2});
            case 34: return on(action::ptwrite{here, here + 4, any(), dice_.chance(50)});
            case 35:
                return on(action::mwait{here,
                                        here + 3,
                                        byte(),
                                        static_cast<std::uint8_t>(dice_.roll(4)),
                                        {nibble(), nibble()},
                                        dice_.chance(30),
                                        dice_.chance(30)});
            case 36: return on(action::halt{here, here + 1, dice_.chance(30)});
            case 37: return on(action::wake{nibble(), nibble(), reason()});
            case 38: return on(action::duty_cycle{here, nibble()});
            case 39: return on(action::clock_stop{here});
            case 40: return on(action::clock_resume{});
            case 41: return record(memory);
            case 42:
                art_ += dice_.roll(dice_.chance(20) ? 2000 : 8);
                return on(action::elapsed{dice_.roll(100), art_, 3 * art_ + dice_.roll(3)});
            case 43: return on(action::cycles{dice_.roll(dice_.chance(10) ? any() | 1 : 300)});
            case 44: return on(action::ratio{byte()});
            case 45: return on(action::cycle_guard{});
            case 46: return on(action::psb_due{});
            case 47:
                return dice_.chance(50) ? on(action::overflow{})
                                        : on(action::overflow_end{address()});
            case 48: unit_.conceal({flag(), flag(), flag()}); return true;
            case 49: return switch_context(memory);
            case 50: return reset(memory);
            case 51: return on(action::return_stack_lost{});
            default: return on(action::conditional{address(), flag()});
        }
    }

private:
    auto any() -> std::uint64_t { return dice_.roll(~std::uint64_t{0}) >> dice_.roll(64); }
    auto byte() -> std::uint8_t { return static_cast<std::uint8_t>(dice_.roll(256)); }
    auto nibble() -> std::uint8_t { return static_cast<std::uint8_t>(dice_.roll(16)); }
    auto flag() -> bool { return dice_.chance(50); }
    auto address() -> std::uint64_t {
        return dice_.chance(90) ? 0x40'0000 + dice_.roll(0x3000) : any();
    }
    auto back() -> std::uint64_t {
        auto const& calls = unit_.state().calls;
        return calls.size() != 0 && dice_.chance(80) ? calls[calls.size() - 1] : address();
    }
    auto code() -> engine::execution_context {
        engine::execution_context made;
        made.cr3 = 0x1000 * dice_.roll(3);
        made.cpl = dice_.chance(60) ? 0 : 3;
        made.width = static_cast<engine::code_width>(dice_.roll(3));
        made.cs_base = made.width == engine::code_width::bits_64 ? 0 : dice_.roll(2) << 16;
        made.real_mode = dice_.chance(5);
        made.virtual_8086 = dice_.chance(5);
        made.pae = flag();
        made.IF = flag();
        made.inside = dice_.chance(90) ? engine::enclave::none
                                       : static_cast<engine::enclave>(dice_.roll(3));
        made.vmx_non_root = dice_.chance(20);
        return made;
    }
    auto takes() -> action::time_within {
        return moments_.draw([this](std::uint64_t sides) { return dice_.roll(sides); }, false);
    }
    auto reason() -> action::wake_reason {
        constexpr action::wake_reason all[] = {
            action::wake_reason::other, action::wake_reason::interrupt, action::wake_reason::store,
            action::wake_reason::hardware};
        return all[dice_.roll(4)];
    }
    auto ctl_word() -> std::uint64_t {
        // Random: CYCEn, PwrEvtEn, FUPonPTW, CR3Filter, MTCEn, TSCEn, DisRETC, PTWEn, EventEn,
        // DisTNT, InjectPsbPmiOnEnable. Usually 1: OS, User, BranchEn. Always 1: TraceEn.
        constexpr std::uint64_t choices = 0x0180'0000'8000'1EB2;
        std::uint64_t word = (dice_.roll(~std::uint64_t{0}) & choices) | (flag() ? 0 : 0x200D);
        word |= 1 | dice_.roll(4) << 2 | (dice_.chance(90) ? 0x2000U : 0U);
        word |= dice_.roll(2) << 24 | (dice_.chance(30) ? dice_.roll(3) << 32 : 0);
        return word | (dice_.chance(20) ? dice_.roll(3) << 36 : 0);
    }
    auto load() -> action::ctl_load {
        return {dice_.chance(20), {dice_.chance(50) ? ctl_word() : 0}};
    }
    static auto is_done(engine::access_result const& access) -> bool {
        return access.what == engine::access_outcome::done;
    }
    template <class Memory>
    auto write_msr(Memory& memory) -> bool {
        using ctl = reg::ia32_rtit_ctl;
        bool const is_on = unit_.msrs().ctl.template get<ctl::TraceEn>();
        auto const here = unit_.ip();
        if (dice_.chance(80)) {
            auto const word = is_on ? unit_.msrs().ctl.raw & ~std::uint64_t{1} : ctl_word();
            return is_done(
                unit_.wrmsr({.index = ctl::address, .value = word, .at = here, .next = here + 2},
                            memory, takes()));
        }
        auto const index = static_cast<std::uint32_t>(0x570 + dice_.roll(0x18));
        auto const value = index == 0x571   ? dice_.roll(8) << 4
                           : index == 0x572 ? 0x1000 * dice_.roll(3)
                                            : address();
        return is_done(
            unit_.wrmsr({.index = index, .value = value, .at = here, .next = here + 2}, memory));
    }
    template <class Memory>
    auto record(Memory& memory) -> bool {
        action::pebs_item items[40];
        for (auto& one : items) { one = {static_cast<std::uint8_t>(dice_.roll(32)), any()}; }
        action::pebs_group groups[3];
        for (auto& one : groups) {
            one = {static_cast<std::uint8_t>(dice_.roll(32)), flag(), items,
                   static_cast<std::size_t>(dice_.roll(dice_.chance(20) ? 40 : 4))};
        }
        return !unit_
                    .on(action::pebs_record{address(), groups,
                                            static_cast<std::size_t>(dice_.roll(4))},
                        memory)
                    .happened;
    }
    template <class Memory>
    auto switch_context(Memory& memory) -> bool {
        auto const here = unit_.ip();
        if (!has_saved_) {
            if (dice_.chance(20)) { return is_done(unit_.xsaves_that_faults(here, memory)); }
            auto const done = unit_.xsaves(here, here + 4, memory, takes());
            has_saved_ = done.took_effect();
            saved_ = done.image;
            return has_saved_;
        }
        has_saved_ = false;
        if (dice_.chance(20)) { return is_done(unit_.xrstors_init(here + 4, memory)); }
        return is_done(unit_.xrstors(saved_, here, here + 4, memory, takes()));
    }
    template <class Memory>
    auto reset(Memory& memory) -> bool {
        if (dice_.chance(80)) {
            return !unit_.drain(memory, static_cast<std::size_t>(byte())).happened;
        }
        if (dice_.chance(80)) {
            unit_.warm_reset(code(), address());
        } else {
            unit_.cold_reset(code(), address());
        }
        return true;
    }

    engine::trace_unit<Depth>& unit_;
    dice& dice_;
    access::xsave_pt_state saved_{};
    bool has_saved_ = false;
    std::uint64_t art_ = 0;
    random_moments moments_{};
};

}  // namespace ptspec::test::programs
