// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/event/events.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
namespace event = engine::event;

TEST_CASE("the reasons of a wake are what PWRX tells") {  // GEN-313
    CHECK_TWICE([](auto value) {
        using event::wake_reason;
        return underlying(value(wake_reason::interrupt)) == 1 &&
               underlying(value(wake_reason::store)) == 4 &&
               underlying(value(wake_reason::hardware)) == 8 &&
               underlying(value(wake_reason::other)) == 0;
    });
}

namespace {

template <class... Values>
constexpr auto are_zero(Values const&... values) -> bool {
    return ((values == Values{}) && ...);
}

}  // namespace

TEST_CASE("of what code does nothing is said") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [at, next, cr3] = event::mov_cr3{};
            good = good && are_zero(at, next, cr3);
        }
        {
            auto const [next, IF] = event::interrupt_flag{};
            good = good && are_zero(next, IF);
        }
        {
            auto const [at, next] = event::transaction_begin{};
            good = good && are_zero(at, next);
        }
        {
            auto const [at, next] = event::transaction_end{};
            good = good && are_zero(at, next);
        }
        {
            auto const [at, to] = event::transaction_abort{};
            good = good && are_zero(at, to);
        }
        {
            auto const [from, to, after] = event::enclave_transfer{};
            good = good && are_zero(from, to, after);
        }
        {
            auto const [at, next, number, is_64_bit] = event::ptwrite{};
            good = good && are_zero(at, next, number, is_64_bit);
        }
        return good;
    });
}
TEST_CASE("of a transition nothing is said") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [is_there, ctl] = event::ctl_load{};
            good = good && are_zero(is_there, ctl.raw);
        }
        {
            auto const [from, to, after, loads, qualification, reason, is_vectored, vector, to_stm,
                        vmcs] = event::vm_exit{};
            good = good && are_zero(from, to, after, loads.is_there, loads.value.raw, qualification,
                                    reason, is_vectored, vector, to_stm, vmcs);
        }
        {
            auto const [at, to, after, loads, from_stm, vmcs] = event::vm_entry{};
            good = good && are_zero(at, to, after, loads.is_there, loads.value.raw, from_stm, vmcs);
        }
        {
            auto const [to, after, loaded_host_state] = event::vm_entry_failure{};
            good = good && are_zero(to, after, loaded_host_state);
        }
        {
            auto const [next, vmcs] = event::vmptrld{};
            good = good && are_zero(next, vmcs, event::vmclear{}.next, event::vmxoff{}.next);
        }
        {
            auto const [at, next] = event::vmxon{};
            good = good && are_zero(at, next);
        }
        {
            auto const [next, to, after] = event::smi{};
            good = good && are_zero(next, to, after, event::acm_end{}.next);
        }
        {
            auto const [to, after] = event::rsm{};
            good = good && are_zero(to, after);
        }
        return good;
    });
}
TEST_CASE("of power, time and records nothing is said") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [at, next, hints, ext, thread, is_io, is_pending] = event::mwait{};
            good = good &&
                   are_zero(at, next, hints, ext, thread.state, thread.substate, is_io, is_pending);
        }
        {
            auto const [from, next, is_shutdown] = event::halt{};
            good = good && are_zero(from, next, is_shutdown);
        }
        {
            auto const [last, deepest, reason] = event::wake{};
            good = good && are_zero(last, deepest) && reason == event::wake_reason::other;
        }
        {
            auto const [next, state] = event::duty_cycle{};
            good = good && are_zero(next, event::clock_stop{}.next) && state == 6;  // GEN-315
        }
        {
            auto const [id, number] = event::pebs_item{};
            good = good && are_zero(id, number);
        }
        {
            auto const [type, items_of_4, items, count] = event::pebs_group{};
            good = good && are_zero(type, items_of_4, items, count);
        }
        {
            auto const [ip, groups, count] = event::pebs_record{};
            good = good && are_zero(ip, groups, count);
        }
        {
            auto const [passed, art, tsc] = event::time{};
            good = good && are_zero(passed, art, tsc, event::cycles{}.passed,
                                    event::ratio{}.core_to_bus, event::overflow_end{}.next);
        }
        return good;
    });
}
