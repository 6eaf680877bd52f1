// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/run.hpp>

#include <ptspec/suite/checks.hpp>

#include <support/suite_sweep.hpp>

namespace {

using namespace ptspec;
using suite::outcome;

constexpr auto const& caps = cpu::preset::skylake_x;

/// A check whose result a number decides: it reads CTL, and calls `after` with the armed target.
template <auto After>
struct made_check {
    static constexpr text name = "made";
    static constexpr suite::rule_list rules{"REG-023"};
    static constexpr suite::needs need{};

    template <suite::target T>
    static constexpr auto run(suite::armed<T>& on) noexcept -> suite::finding {
        auto const got = on.read(0x572);
        After(on, got.value);
        return on.result();
    }
};
using holding = made_check<[](auto&, uint64_t) {}>;
/// Its WRMSR is not restored by the target below, so that each run sees another value.
using differing = made_check<[](auto& on, uint64_t) {
    on.require(on.query(0, 0).eax != 0x16, rule::REG_021, "every second run");
}>;

/// A model whose CPUID leaf 0 is 16H at each second query.
struct unsteady_target {
    suite::model_target& model;
    unsigned queries = 0;

    constexpr auto read(uint32_t index) noexcept { return model.read(index); }
    constexpr auto write(uint32_t index, uint64_t value) noexcept {
        return model.write(index, value);
    }
    constexpr auto query(uint32_t leaf, uint32_t subleaf) noexcept -> cpuid_registers {
        auto got = model.query(leaf, subleaf);
        if (leaf == 0 && ++queries % 2 == 0) { got.eax = 0x16; }
        return got;
    }
    constexpr auto memory() const noexcept { return model.memory(); }
    constexpr auto abilities() const noexcept { return model.abilities(); }
    constexpr auto address_of(suite::snippet const& code) const noexcept {
        return model.address_of(code);
    }
    constexpr auto execute(suite::snippet const& code, uint64_t on, uint64_t off) noexcept {
        return model.execute(code, on, off);
    }
    constexpr auto cr3() const noexcept { return model.cr3(); }
    constexpr auto pmi() noexcept { return model.pmi(); }
    constexpr auto xsaves(reg::xsave_pt_state& image) noexcept { return model.xsaves(image); }
    constexpr auto xrstors(reg::xsave_pt_state const& image) noexcept {
        return model.xrstors(image);
    }
    constexpr auto reset(suite::reset_kind kind) noexcept { return model.reset(kind); }
    constexpr void note(text name, access::msr_state const&) noexcept {
        if (name.size() != 0) { ++notes; }
    }
    unsigned notes = 0;
};
static_assert(suite::target<unsteady_target>);

}  // namespace

TEST_CASE("runs that differ are unsteady, whichever comes first") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[4096] = {};
        suite::model_target model{caps, engine::options_of(caps), bytes, 1};
        unsteady_target target{model};
        auto const both = suite::run_check<differing>(target, caps, {.runs = value(4U)});
        target.queries = 1;
        auto const other = suite::run_check<differing>(target, caps, {.runs = value(4U)});
        auto const steady = suite::run_check<holding>(target, caps, {.runs = value(4U)});
        return both.what == outcome::unsteady && both.which == rule::REG_021 &&
               other.what == outcome::unsteady && steady.what == outcome::holds &&
               target.notes == 2 + 2 + 4;
    });
}

TEST_CASE("a target that traces already is left alone") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[8 * 4096] = {};
        suite::model_target model{caps, engine::options_of(caps), bytes, 8};
        (void)model.write(0x560, suite::model_target::given_address);
        (void)model.write(0x561, 0xFFF);
        (void)model.write(0x570, value(uint64_t{0x2005}));
        auto const found = suite::run_check<holding>(model, caps, {.runs = 1});
        return suite::is_in_use(model) && found.what == outcome::skipped &&
               model.read(0x570).value == 0x2005;
    });
}

TEST_CASE("the policy for absent MSRs is asked, and what depends on it is skipped") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[4096] = {};
        suite::model_target model{caps, engine::options_of(caps), bytes, 1};
        uint8_t more[4096] = {};
        suite::model_target wrong{caps, engine::options_of(caps), more, 1,
                                  value(suite::defect::accepts_all)};
        return suite::policy_of(model) == suite::absence_policy::faults &&
               suite::policy_of(wrong) == suite::absence_policy::ignores;
    });
}

TEST_CASE("the capabilities of a target are those of its CPUID") {
    for (auto const& one : cpu::preset::all) {
        test::modelled model{one.value, {}};
        CHECK(suite::capabilities_of(model.target) == one.value);
    }
}

namespace {

/// A model on which WRMSR of IA32_RTIT_CTL faults while TraceEn is 1.
struct sticky_target {
    suite::model_target& model;

    [[nodiscard]] auto is_on() -> bool { return (model.read(0x570).value & 1) != 0; }
    auto read(uint32_t index) { return model.read(index); }
    auto write(uint32_t index, uint64_t value) -> suite::msr_result {
        if (index == 0x570 && is_on()) { return {.vector = 13}; }
        return model.write(index, value);
    }
    auto query(uint32_t leaf, uint32_t subleaf) { return model.query(leaf, subleaf); }
    auto memory() { return model.memory(); }
    auto abilities() { return suite::ability_set{}.with(suite::ability::enable); }
    auto address_of(suite::snippet const& code) { return model.address_of(code); }
    auto execute(suite::snippet const& code, uint64_t on, uint64_t off) {
        return model.execute(code, on, off);
    }
    auto cr3() { return model.cr3(); }
    auto pmi() { return model.pmi(); }
    auto xsaves(reg::xsave_pt_state& image) { return model.xsaves(image); }
    auto xrstors(reg::xsave_pt_state const& image) { return model.xrstors(image); }
    auto reset(suite::reset_kind kind) { return model.reset(kind); }
    void note(text, access::msr_state const&) {}
};

}  // namespace

TEST_CASE("a TraceEn that cannot be cleared is a broken rule, however often a check runs") {
    for (unsigned const runs : {1U, 2U, 16U}) {
        unsigned broken = 0;
        unsigned errors = 0;
        suite::for_each_check([&]<class Check>(text) {
            std::vector<uint8_t> bytes(16 * suite::given_memory::page_bytes);
            suite::model_target model{caps, engine::options_of(caps), bytes.data(), 16};
            sticky_target target{model};
            auto const found = suite::run_check<Check>(target, caps, {.runs = runs});
            broken += found.is_broken();
            errors += found.what == outcome::error;
            if (target.is_on()) {
                CAPTURE(text{Check::name}.data());
                CHECK((found.is_broken() || found.what == outcome::error));
            }
        });
        CHECK(broken + errors >= 5);
    }
}
