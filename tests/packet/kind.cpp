// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/kind.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::packet;

TEST_CASE("the kinds are numbered in the order of the catalogue (PKT-007)") {
    constexpr kind order[] = {kind::pad,       kind::tnt_short, kind::tnt_long,  kind::tip,
                              kind::tip_pge,   kind::tip_pgd,   kind::fup,       kind::pip,
                              kind::mode_exec, kind::mode_tsx,  kind::tracestop, kind::cbr,
                              kind::tsc,       kind::mtc,       kind::tma,       kind::cyc,
                              kind::vmcs,      kind::ovf,       kind::psb,       kind::psbend,
                              kind::mnt,       kind::ptw,       kind::exstop,    kind::mwait,
                              kind::pwre,      kind::pwrx,      kind::bbp,       kind::bip,
                              kind::bep,       kind::cfe,       kind::evd,       kind::trig};
    static_assert(sizeof order / sizeof order[0] == kinds);
    CHECK_TWICE([&](auto value) {
        for (unsigned i = 0; i < kinds; ++i) {
            if (underlying(value(order[i])) != i) { return false; }
        }
        return true;
    });
}

TEST_CASE("the block context is the item size: 0, 4 or 8 (PKT-006, PKT-203)") {
    static_assert(underlying(block::none) == 0 && underlying(block::items_of_4) == 4 &&
                  underlying(block::items_of_8) == 8);
}

TEST_CASE("there are four errors, in the order of their checks but for truncated (PKT-004)") {
    static_assert(underlying(error::none) == 0 && underlying(error::truncated) == 1 &&
                  underlying(error::bad_opcode) == 2 && underlying(error::reserved) == 3 &&
                  underlying(error::bad_packet) == 4);
}

TEST_CASE("the facts of a packet are those of the least special one unless said otherwise") {
    constexpr facts about{.id = kind::mtc, .name = "MTC"};
    static_assert(about.binds_to_ip == binding::no && !about.in_psb_plus &&
                  about.cyc_eligible == answer::no && !about.keeps_block);
}
