// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/proof.hpp>

#include <support/suite_sweep.hpp>

namespace {

using namespace ptspec;

struct toothless {
    static constexpr text name = "toothless";
    static constexpr suite::rule_list rules{"REG-021"};
    static constexpr suite::needs need{};

    template <suite::target T>
    static constexpr auto run(suite::armed<T>& on) noexcept -> suite::finding {
        (void)on.read(0x570);
        return on.result();
    }
};
struct vacuous : toothless {
    template <suite::target T>
    static constexpr auto run(suite::armed<T>& on) noexcept -> suite::finding {
        return on.result();
    }
};
struct wrong : toothless {
    template <suite::target T>
    static constexpr auto run(suite::armed<T>& on) noexcept -> suite::finding {
        (void)on.read(0x570);
        on.require(false, rule::REG_021, "always");
        return on.result();
    }
};

}  // namespace

TEST_CASE("a check without teeth, a vacuous one and a wrong one are not proven") {
    CHECK_TWICE([](auto value) {
        return value(true) && suite::holds_on_model<toothless>() &&
               !suite::has_teeth<toothless>() && !suite::holds_on_model<vacuous>() &&
               !suite::has_teeth<vacuous>() && !suite::holds_on_model<wrong>() &&
               suite::has_teeth<wrong>();
    });
}
