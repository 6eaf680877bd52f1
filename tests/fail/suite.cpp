// SPDX-License-Identifier: BSL-1.0
/// The suite of checks

#include <ptspec/suite/proof.hpp>
#include <ptspec/suite/snippet.hpp>

using namespace ptspec;

namespace check_without_access {
/// A check that asks its target nothing is vacuous.
// expect: the check makes no access, or does not hold on the model
struct ctl_is_readable {
    static constexpr text name = "ctl-is-readable";
    static constexpr suite::rule_list rules{"REG-015"};
    static constexpr suite::needs need{};

    template <suite::target T>
    static constexpr auto run(suite::armed<T>& on) noexcept -> suite::finding {
#ifndef SHOULD_FAIL
        on.require(on.read(0x570).is_done, suite::rule_of("REG-015"), "RDMSR of IA32_RTIT_CTL");
#endif
        return on.result();
    }
};
static_assert(suite::proof_of<ctl_is_readable>::is_given);
}  // namespace check_without_access

namespace check_without_teeth {
/// A check that no target can break says nothing.
// expect: no model with a defect breaks the check
struct base_is_stored {
    static constexpr text name = "base-is-stored";
    static constexpr suite::rule_list rules{"REG-080"};
    static constexpr suite::needs need{};

    template <suite::target T>
    static constexpr auto run(suite::armed<T>& on) noexcept -> suite::finding {
#ifndef SHOULD_FAIL
        on.accepts(suite::rule_of("REG-080"), 0x560, 0x1000);
#else
        (void)on.read(0x560);
#endif
        return on.result();
    }
};
static_assert(suite::proof_of<base_is_stored>::is_given);
}  // namespace check_without_teeth

namespace misspelt_rule {
/// The id of a rule is spelled as in the catalogue.
// expect: not_the_id_of_a_rule
#ifndef SHOULD_FAIL
constexpr suite::rule_list rules{"REG-015"};
#else
constexpr suite::rule_list rules{"REG_015"};
#endif
}  // namespace misspelt_rule

namespace two_features {
/// A check needs one feature: `missing` names what a processor lacks.
// expect: a_check_needs_one_feature_at_most
constexpr suite::needs need = suite::needs::tracing()
                                  .with(suite::features::mtc)
#ifdef SHOULD_FAIL
                                  .with(suite::features::ranges)
#endif
    ;
}  // namespace two_features
