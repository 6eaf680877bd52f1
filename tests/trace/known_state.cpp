// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/known_state.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using packet::cfe;
using packet::mode_exec;
using packet::mode_tsx;
using packet::pip;
using trace::known_state;

namespace {

constexpr auto mode64 = mode_exec{}.with(mode_exec::CS_L{true});
constexpr auto mode32 = mode_exec{}.with(mode_exec::CS_D{true});
constexpr auto in_tx = mode_tsx{}.with(mode_tsx::InTX{true});
constexpr auto cr3_of(uint64_t value, bool nr = false) -> pip {
    return pip{}.with(pip::CR3{wrapped{value}}, pip::NR{nr});
}

}  // namespace

TEST_CASE("the first value of each kind agrees, another contradicts (GEN-344)") {
    CHECK_TWICE([](auto value) {
        known_state known;
        bool const first = known.take(value(mode64), true) && known.take(value(mode_tsx{}), true) &&
                           known.take(cr3_of(value(uint64_t{0x1000})), true);
        bool const same = known.take(mode64, true) && known.take(mode_tsx{}, true) &&
                          known.take(cr3_of(0x1000), true);
        bool const other = known.take(mode32, true) || known.take(in_tx, true) ||
                           known.take(cr3_of(0x2000), true);
        // The last value is the one that holds.
        bool const last = known.take(mode32, true) && known.take(in_tx, true) &&
                          known.take(cr3_of(0x2000), true);
        return first && same && !other && last;
    });
}

TEST_CASE("RFLAGS.IF and TXAbort are not compared (GEN-344)") {
    CHECK_TWICE([](auto value) {
        known_state known;
        return known.take(value(mode64), true) &&
               known.take(mode64.with(mode_exec::IF{true}), true) &&
               known.take(value(mode_tsx{}), true) &&
               known.take(mode_tsx{}.with(mode_tsx::TXAbort{true}), true);
    });
}

TEST_CASE("nothing is known after PacketEn was 0; what precedes TIP.PGE still holds (GEN-344)") {
    auto const contradictions = [](auto const& between) {
        known_state known;
        (void)known.take(mode64, true);
        (void)known.take(in_tx, true);
        (void)known.take(cr3_of(0x1000), true);
        between(known);
        return unsigned{!known.take(mode32, true)} + !known.take(mode_tsx{}, true) +
               !known.take(cr3_of(0x2000), true);
    };
    CHECK(contradictions([](known_state&) {}) == 3);
    CHECK(contradictions([](known_state& one) { one.forget(); }) == 0);
    CHECK(contradictions([](known_state& one) { one.enable(true, false); }) == 3);
    CHECK(contradictions([](known_state& one) { one.enable(false, true); }) == 1);
    CHECK(contradictions([](known_state& one) { one.enable(false, false); }) == 0);
    // A value of the time while PacketEn is 0.
    CHECK(contradictions([](known_state& one) { (void)one.take(in_tx, false); }) == 2);
}

TEST_CASE("CR3 may change with SMI, RSM, and VM exits and entries (GEN-242,278,344)") {
    using packet::cfe_type;
    auto const agrees = [](auto const& between) {
        known_state known;
        (void)known.take(mode64, true);
        (void)known.take(cr3_of(0x1000), true);
        between(known);
        bool const pip_agrees = known.take(cr3_of(0x2000), true);
        CHECK(!known.take(mode32, true));
        return pip_agrees;
    };
    constexpr cfe_type transitions[] = {cfe_type::SMI, cfe_type::RSM, cfe_type::VMENTRY,
                                        cfe_type::VMEXIT, cfe_type::VMEXIT_INTR};
    for (auto const type : transitions) {
        CHECK(agrees([&](known_state& one) { one.take(cfe{}.with(cfe::type{type})); }));
    }
    CHECK(!agrees([](known_state& one) { one.take(cfe{}.with(cfe::type{cfe_type::INTR})); }));
    CHECK(agrees([](known_state& one) { one.forget_cr3(); }));
    // NR differs: a VM transition without a PIP.
    known_state known;
    CHECK(known.take(cr3_of(0x1000, true), true));
    CHECK(known.take(cr3_of(0x2000), true));
    CHECK(!known.take(cr3_of(0x1000), true));
}

TEST_CASE("two states are equal if the same values are known, and are equal") {
    CHECK_TWICE([](auto value) {
        known_state one;
        known_state two;
        (void)one.take(value(mode64), true);
        (void)two.take(value(mode32), true);
        bool const other_value = one == two;
        (void)two.take(mode64, true);
        bool const same = one == two;
        (void)one.take(cr3_of(0x1000), true);
        bool const more = one == two;
        (void)two.take(cr3_of(0x1000, true), true);
        bool const other_nr = one == two;
        (void)one.take(in_tx, true);
        (void)two.take(cr3_of(0x1000), true);
        (void)two.take(mode_tsx{}, true);
        bool const other_tx = one == two;
        one.forget();
        two.forget();
        return !other_value && same && !more && !other_nr && !other_tx && one == two;
    });
}
