// SPDX-License-Identifier: BSL-1.0
// XSAVES and XRSTORS of the state of Intel PT.
#include <ptspec/access/xsave.hpp>

#include <tests/proofs/statements/words.hpp>

using namespace ptspec;
using access::msr_state;
using cpu::capabilities;

namespace {

// The order of the quadwords in memory of a state is that of XSAVE_PT_STATE in registers.csv.
auto state_of(uint64_t const (&from)[9]) -> msr_state {
    return {.ctl = {from[0]},
            .status = {from[3]},
            .output = {{from[1]}, {from[2]}},
            .cr3_match = {from[4]},
            .addr = {{{from[5]}, {from[6]}}, {{from[7]}, {from[8]}}, {}, {}}};
}

void store(msr_state const& now, uint64_t (&to)[9]) {
    uint64_t const values[] = {now.ctl.raw,       now.output.base.raw, now.output.mask_ptrs.raw,
                               now.status.raw,    now.cr3_match.raw,   now.addr[0].a.raw,
                               now.addr[0].b.raw, now.addr[1].a.raw,   now.addr[1].b.raw};
    for (unsigned i = 0; i < 9; ++i) { to[i] = values[i]; }
}

auto image_of(uint64_t const (&from)[16]) -> reg::xsave_pt_state {
    reg::xsave_pt_state made;
    for (unsigned i = 0; i < 16; ++i) { made.quadwords[i] = from[i]; }
    return made;
}

}  // namespace

extern "C" {

/// Replaces the state by the new one.
void xsaves(WORDS, uint64_t (&state)[9], uint64_t (&image)[16]) {
    capabilities const caps CAPS;
    auto const done = access::xsaves(caps, state_of(state));
    store(done.state, state);
    for (unsigned i = 0; i < 16; ++i) { image[i] = done.image.quadwords[i]; }
}
bool is_initial(uint64_t const (&image)[16]) { return access::is_initial(image_of(image)); }

/// XRSTORS up to the write of IA32_RTIT_CTL: the rule of the verdict, and the MSR and the rule of
/// the refused quadword.
uint64_t xrstors_except_ctl(WORDS, uint64_t (&state)[9], uint64_t const (&image)[16]) {
    capabilities const caps CAPS;
    auto const done = access::xrstors_except_ctl(caps, state_of(state), image_of(image));
    store(done.effect.state, state);
    return static_cast<uint64_t>(done.effect.verdict.broken) |
           static_cast<uint64_t>(done.violated.broken) << 16 |
           uint64_t{done.violated.msr.value} << 32;
}
/// XRSTORS where XSTATE_BV[8] is 0: the rule of the verdict.
uint32_t xrstors_init(uint64_t (&state)[9]) {
    auto const done = access::xrstors_init(state_of(state));
    store(done.effect.state, state);
    return static_cast<uint32_t>(done.effect.verdict.broken);
}
/// The rule by which XRSTORS refuses the header.
uint32_t check_header(uint64_t xstate_bv, uint64_t xcomp_bv, uint64_t xss) {
    return static_cast<uint32_t>(access::check_header({xstate_bv}, {xcomp_bv}, {xss}).broken);
}

}  // extern "C"
