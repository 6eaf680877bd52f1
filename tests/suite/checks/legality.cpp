// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/checks/legality.hpp>

#include <ptspec/suite/snippets.hpp>

#include <support/suite_sweep.hpp>

using namespace ptspec;

TEST_CASE("suite/checks/legality: each check holds on all models, and has teeth") {
    ptspec::test::sweep(ptspec::suite::checks::legality_checks{});
}

TEST_CASE("suite/checks/legality: each check holds after a trace, which leaves bits of STATUS") {
    auto const& caps = cpu::preset::arrow_lake_p;
    auto const run = [&]<class... Checks>(type_list<Checks...>) {
        auto const one = [&]<class Check>() {
            test::modelled model{caps, engine::options_of(caps)};
            auto& it = model.target;
            REQUIRE(it.write(0x560, it.memory().base.value).is_done);
            REQUIRE(it.write(0x561, 0x7F).is_done);
            REQUIRE(it.execute(suite::snippets::branches, 0x2109, 0x2108).disabled.is_done);
            REQUIRE((it.read(0x571).value & 7) != 0);
            auto const found = suite::run_once<Check>(it, suite::capabilities_of(it));
            INFO(std::string{text{Check::name}.data()});
            CHECK(found.what != suite::outcome::broken);
        };
        (..., one.template operator()<Checks>());
    };
    run(suite::checks::legality_checks{});
}
