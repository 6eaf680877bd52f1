// SPDX-License-Identifier: BSL-1.0
// Which orders of accesses the rules allow: the sequences of the catalogue, checked by the rules.
#include <ptspec/access/effect.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using access::msr_state;
namespace preset = cpu::preset;

namespace {

struct written {
    uint32_t index;
    uint64_t value;
};

/// A processor that executes writes in order.
struct processor {
    cpu::capabilities of = preset::P_FUT;
    msr_state now{};
    rule refused = rule::none;  ///< the rule of the first write that faulted
    uint32_t at = 0;            ///< its MSR

    constexpr void write(uint32_t index, uint64_t value) {
        auto const done = access::effect_of_write(of, now, index, value);
        if (!done && refused == rule::none) {
            refused = done.verdict.broken;
            at = index;
        }
        now = done.state;
    }
    [[nodiscard]] constexpr auto read(uint32_t index) const -> uint64_t {
        return access::read(of, now, index).value;
    }
};

constexpr uint64_t on = 0x1'0000'2185;  // ADDR0_CFG 1, BranchEn, ToPA, CR3Filter, OS, TraceEn

/// The MSRs other than CTL that a trace needs, STATUS first.
constexpr written configuration[] = {{0x571, 0},      {0x560, 0x10000}, {0x561, 0x7F},
                                     {0x572, 0x5000}, {0x580, 0x1000},  {0x581, 0x1FFF}};
constexpr unsigned count = sizeof(configuration) / sizeof(configuration[0]);

/// A processor that is configured, then enabled by the last write.
constexpr auto enabled() -> processor {
    processor one;
    for (auto const& [index, value] : configuration) { one.write(index, value); }
    one.write(0x570, on);
    return one;
}

}  // namespace

TEST_CASE("enable: all other MSRs first, CTL with TraceEn last (REG-190)") {
    CHECK_TWICE([](auto value) {
        auto one = enabled();
        return one.refused == rule::none && one.read(value(0x570U)) == on &&
               one.read(0x560) == 0x10000 && one.read(0x572) == 0x5000 &&
               one.read(0x581) == 0x1FFF && (one.read(0x571) & 4) != 0;  // TriggerEn
    });
}

TEST_CASE("enable: with CTL earlier the next write faults (REG-190, REG-004)") {
    CHECK_TWICE([](auto value) {
        for (unsigned place = value(0U); place < count; ++place) {
            processor one;
            for (unsigned i = 0; i < count; ++i) {
                if (i == place) { one.write(0x570, on); }
                one.write(configuration[i].index, configuration[i].value);
            }
            if (one.refused != rule::REG_004 || one.at != configuration[place].index) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("enable: an omitted write leaves the old value, and no access faults (REG-190)") {
    CHECK_TWICE([](auto value) {
        processor one;
        one.write(0x571, value(uint64_t{0x20}));  // Stopped, from the previous trace
        one.write(0x570, on);
        auto fresh = enabled();
        return one.refused == rule::none && (one.read(0x571) & 4) == 0 && one.read(0x560) == 0 &&
               (fresh.read(0x571) & 4) != 0;
    });
}

TEST_CASE("disable: TraceEn 0 first, then STATUS is read and cleared (REG-191)") {
    CHECK_TWICE([](auto value) {
        auto one = enabled();
        one.now.status = {value(uint64_t{0x13})};  // an operational error occurred
        auto early = one;
        early.write(0x571, 3);
        one.write(0x570, on & ~uint64_t{1});
        bool const seen = (one.read(0x571) & 0x10) != 0;
        one.write(0x560, 0x20000);
        one.write(0x571, one.read(0x571) & ~uint64_t{0x10});
        one.write(0x570, on);
        return early.refused == rule::REG_004 && early.at == 0x571 && seen &&
               one.refused == rule::none && (one.read(0x571) & 0x14) == 4;
    });
}

TEST_CASE("disable may clear the rest of CTL in the same write (REG-191, REG-022)") {
    CHECK_TWICE([](auto value) {
        auto one = enabled();
        one.write(0x570, value(uint64_t{0}));
        return one.refused == rule::none && one.read(0x570) == 0;
    });
}

TEST_CASE("collect: after the write that clears TraceEn the output MSRs do not change (REG-192)") {
    CHECK_TWICE([](auto value) {
        auto one = enabled();
        one.now.output.mask_ptrs = {
            value(uint64_t{0x123'0000'00FF})};  // the current output position
        one.write(0x570, on & ~uint64_t{1});
        uint64_t const base = one.read(0x560);
        uint64_t const pointers = one.read(0x561);
        return one.refused == rule::none && base == 0x10000 && pointers == 0x123'0000'00FF &&
               (one.read(0x571) & 4) == 0;
    });
}

namespace {

constexpr uint32_t others[] = {0x571, 0x560, 0x561, 0x572, 0x580, 0x581,
                               0x582, 0x583, 0x584, 0x585, 0x586, 0x587};
constexpr unsigned other_count = sizeof(others) / sizeof(others[0]);

/// A context saved with RDMSR and WRMSR: CTL first, then TraceEn 0, then the rest.
struct manual_context {
    uint64_t ctl = 0;
    uint64_t rest[other_count] = {};

    constexpr void save(processor& from) {
        ctl = from.read(0x570);
        from.write(0x570, ctl & ~uint64_t{1});
        for (unsigned i = 0; i < other_count; ++i) { rest[i] = from.read(others[i]); }
    }
    /// Writes everything but CTL, in rotated order from `first`, then CTL.
    constexpr void restore(processor& to, unsigned first) const {
        for (unsigned i = 0; i < other_count; ++i) {
            unsigned const which = (first + i) % other_count;
            to.write(others[which], rest[which]);
        }
        to.write(0x570, ctl);
    }
};

}  // namespace

TEST_CASE("manual save: CTL, then TraceEn 0, then the rest, like XSAVES (REG-193)") {
    CHECK_TWICE([](auto value) {
        auto one = enabled();
        one.now.status = {value(uint64_t{0x77'0000'0007})};
        auto const saved = access::xsaves(one.of, one.now);
        manual_context context;
        context.save(one);
        return one.refused == rule::none && context.ctl == on &&
               context.rest[0] == 0x77'0000'0003 && saved.image.quadwords[0] == context.ctl &&
               saved.image.quadwords[3] == context.rest[0] &&
               saved.image.quadwords[1] == context.rest[1] &&
               saved.image.quadwords[6] == context.rest[5] && saved.state == one.now;
    });
}

TEST_CASE(
    "manual save: STATUS read before TraceEn is cleared differs from the final one (REG-193)") {
    CHECK_TWICE([](auto value) {
        auto one = enabled();
        uint64_t const early = one.read(value(0x571U));
        manual_context context;
        context.save(one);
        return early != context.rest[0];
    });
}

TEST_CASE("manual restore: all other MSRs in any order, CTL last (REG-194)") {
    CHECK_TWICE([](auto value) {
        auto one = enabled();
        auto const before = one.now;
        manual_context context;
        context.save(one);
        for (unsigned first = value(0U); first < other_count; ++first) {
            processor next;  // holds another context
            next.now.output.base = {0x9000};
            next.now.cr3_match = {0x9000};
            context.restore(next, first);
            if (next.refused != rule::none || !(next.now == before)) { return false; }
        }
        return true;
    });
}

TEST_CASE("manual restore: with CTL first the rest faults (REG-194, REG-004)") {
    CHECK_TWICE([](auto value) {
        auto one = enabled();
        manual_context context;
        context.save(one);
        one.write(0x570, context.ctl);
        one.write(value(0x571U), context.rest[0]);
        return one.refused == rule::REG_004 && one.at == 0x571;
    });
}

TEST_CASE("while another agent has set TraceEn, only CTL can be written (REG-196)") {
    CHECK_TWICE([](auto value) {
        auto const found = enabled();
        if ((found.read(value(0x570U)) & 1) == 0) { return false; }
        for (unsigned i = 0; i < other_count; ++i) {
            auto one = found;
            one.write(others[i], 0);
            if (one.refused != rule::REG_004) { return false; }
        }
        auto taken_over = found;
        taken_over.write(0x570, 0x2109);
        auto released = found;
        released.write(0x570, on & ~uint64_t{1});
        return taken_over.refused == rule::REG_021 && released.refused == rule::none;
    });
}

TEST_CASE("the ToPA table can be replaced only with TraceEn 0 (REG-197)") {
    CHECK_TWICE([](auto value) {
        auto one = enabled();
        auto early = one;
        early.write(value(0x560U), 0x20000);
        one.write(0x570, on & ~uint64_t{1});
        one.write(value(0x560U), 0x20000);
        one.write(0x561, 0x7F);
        one.write(0x570, on);
        return early.refused == rule::REG_004 && early.read(0x560) == 0x10000 &&
               one.refused == rule::none && one.read(0x560) == 0x20000;
    });
}
