// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/action/vmx_smm.hpp>

#include <support/are_zero.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::are_zero;
namespace action = engine::action;

TEST_CASE("the members of a default-constructed event are 0") {
    CHECK_TWICE([](auto value) {
        bool good = value(true);
        {
            auto const [has_value, ctl] = action::ctl_load{};
            good = good && are_zero(has_value, ctl.raw);
        }
        {
            auto const [from, to, after, loads, qualification, reason, is_vectored, vector, to_stm,
                        vmcs] = action::vm_exit{};
            good = good && are_zero(from, to, after, loads.has_value, loads.value.raw,
                                    qualification, reason, is_vectored, vector, to_stm, vmcs);
        }
        {
            auto const [at, to, after, loads, from_stm, vmcs] = action::vm_entry{};
            good = good &&
                   are_zero(at, to, after, loads.has_value, loads.value.raw, from_stm, vmcs);
        }
        {
            auto const [to, after, loaded_host_state] = action::vm_entry_failure{};
            good = good && are_zero(to, after, loaded_host_state);
        }
        {
            auto const [next, vmcs] = action::vmptrld{};
            good = good && are_zero(next, vmcs, action::vmclear{}.next, action::vmxoff{}.next);
        }
        {
            auto const [at, next] = action::vmxon{};
            good = good && are_zero(at, next);
        }
        {
            auto const [next, to, after] = action::smi{};
            good = good && are_zero(next, to, after, action::acm_end{}.next);
        }
        {
            auto const [to, after] = action::rsm{};
            good = good && are_zero(to, after);
        }
        return good;
    });
}
