// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/armed.hpp>

#include <support/suite_sweep.hpp>

namespace {

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using suite::defect;
using suite::outcome;

constexpr auto const& caps = cpu::preset::skylake_x;

/// Calls `use` with an armed model; the result of the check.
constexpr auto with_model(auto use, defect wrong = defect::none) -> suite::finding {
    uint8_t bytes[8 * 4096] = {};
    suite::model_target model{caps, engine::options_of(caps), bytes, 8, wrong};
    suite::armed on{model, caps, suite::rule_of("REG-001")};
    use(on);
    bool const is_restored = on.restore();
    auto found = on.result();
    if (!is_restored) { found.detail = "not restored"; }
    return found;
}

/// A model that refuses a write: of 572H with a value other than `allowed`, or of 570H with
/// TraceEn = 0 after it was 1.
struct refusing : suite::model_target {
    using model_target::model_target;

    uint64_t allowed = 0;
    bool keeps_tracing = false;
    unsigned writes_while_tracing = 0;

    constexpr auto write(uint32_t index, uint64_t value) noexcept -> suite::msr_result {
        bool const is_on = (model_target::read(0x570).value & 1) != 0;
        if (index == 0x572 && value != allowed) { return {.vector = 13}; }
        if (is_on && keeps_tracing) {
            ++writes_while_tracing;
            return {.is_done = true};
        }
        return model_target::write(index, value);
    }
};

}  // namespace

TEST_CASE("a WRMSR that could lead output elsewhere is not made, and skips the check") {
    CHECK_TWICE([](auto value) {
        auto const outside = with_model([&](auto& on) {
            on.clear();
            (void)on.set_output(value(uint64_t{0}), 31, 0);
            (void)on.write(ctl::address, 0x2009);
        });
        auto const fabric = with_model([&](auto& on) {
            (void)on.set_usual_output();
            (void)on.write(ctl::address, value(uint64_t{0x2049}));
        });
        auto const other = with_model([&](auto& on) { (void)on.write(value(0x1D9U), 0); });
        auto const while_on = with_model([&](auto& on) {
            (void)on.set_usual_output();
            (void)on.write(ctl::address, on.usual_ctl().with(ctl::TraceEn{true}).raw);
            on.refuses(rule::REG_004, 0x560, value(uint64_t{0x1000}));
        });
        return outside.detail == text{"unsafe"} && fabric.detail == text{"unsafe"} &&
               other.detail == text{"unsafe"} && while_on.detail == text{"unsafe"};
    });
}

TEST_CASE("a check without an access is an error, never holds") {
    CHECK_TWICE([](auto value) {
        auto const nothing = with_model([](auto&) {});
        auto const something = with_model([&](auto& on) { (void)on.read(value(0x570U)); });
        return nothing.what == outcome::error && nothing.detail == text{"vacuous"} &&
               something.what == outcome::holds;
    });
}

TEST_CASE("the first broken rule counts, and an observation does not hide it") {
    CHECK_TWICE([](auto value) {
        auto const found = with_model([&](auto& on) {
            (void)on.read(0x570);
            on.observe("choice", value(1U));
            on.require(value(false), rule::REG_021, "first", 1, 2);
            on.require(value(false), rule::REG_040, "second");
        });
        return found.what == outcome::broken && found.which == rule::REG_021 &&
               found.expected == 1 && found.seen == 2;
    });
}

TEST_CASE("a WRMSR must fault, with #GP, and must change nothing") {
    CHECK_TWICE([](auto value) {
        auto const refused = [&](defect wrong) {
            return with_model(
                [&](auto& on) { on.refuses(rule::REG_044, 0x570, value(uint64_t{1} << 18)); },
                wrong);
        };
        return refused(defect::none).what == outcome::holds &&
               refused(defect::accepts_all).which == rule::REG_044;
    });
}

TEST_CASE("after a check each MSR has the value that it had, and TraceEn is 0") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[8 * 4096] = {};
        suite::model_target model{caps, engine::options_of(caps), bytes, 8};
        (void)model.write(0x560, value(uint64_t{0x5000}));
        (void)model.write(0x572, 0x7000);
        (void)model.write(0x571, 0x20);
        (void)model.write(0x570, 0xC);
        {
            suite::armed on{model, caps, rule::REG_001};
            (void)on.set(0x572, 0x9000);
            (void)on.set_usual_output();
            (void)on.set(0x570, on.usual_ctl().with(ctl::TraceEn{true}).raw);
            if (!on.restore()) { return false; }
        }
        return model.read(0x560).value == 0x5000 && model.read(0x572).value == 0x7000 &&
               (model.read(0x571).value & 0x30) == 0x20 && model.read(0x570).value == 0xC;
    });
}

TEST_CASE("an MSR that cannot be restored is an error of the run") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[8 * 4096] = {};
        refusing target{caps, engine::options_of(caps), bytes, 8};
        target.allowed = value(uint64_t{0x7000});
        suite::armed on{target, caps, rule::REG_001};
        (void)on.set(0x572, 0x7000);
        return !on.restore();
    });
}

TEST_CASE("while TraceEn stays 1 no other MSR is restored") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[8 * 4096] = {};
        refusing target{caps, engine::options_of(caps), bytes, 8};
        suite::armed on{target, caps, rule::REG_001};
        (void)on.set_usual_output();
        (void)on.set(0x570, on.usual_ctl().with(ctl::TraceEn{true}).raw);
        target.keeps_tracing = value(true);
        // Both are WRMSRs of IA32_RTIT_CTL: the value before, then 0.
        return !on.restore() && target.writes_while_tracing == 2;
    });
}
