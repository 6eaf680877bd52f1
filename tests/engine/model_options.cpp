// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/model_options.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using engine::model_options;

// The rules tagged [MODEL] say what holds where nothing is asked for.
TEST_CASE("what is left open is as the catalogue has it") {
    constexpr model_options how;
    static_assert(!how.long_tnt);                               // GEN-120
    static_assert(!how.defers_tips);                            // GEN-145
    static_assert(!how.pads);                                   // GEN-008
    static_assert(!how.psb_on_every_enable);                    // GEN-162
    static_assert(how.psb_counts_itself);                       // GEN-165
    static_assert(how.vmcs_needs_context);                      // GEN-170
    static_assert(!how.psb_behind_pge);                         // GEN-180
    static_assert(!how.mov_cr3_stops_at_next);                  // GEN-087
    static_assert(how.ips == trace::ip_choice::as_processors);  // GEN-229
    static_assert(how.trace_stop_in_overflow ==
                  engine::stop_in_overflow::told_afterwards);  // GEN-230
    static_assert(how.pip_for_same_cr3);                       // GEN-240
    static_assert(!how.vmcs_before_pip);                       // GEN-245
    static_assert(!how.swintr_events);                         // GEN-301
    static_assert(how.psb_behind_overflow == engine::psb_behind_ovf::where_needed);
    static_assert(how.on_ret_mismatch == engine::ret_mismatch::pops_top);  // GEN-133, GEN-134
    static_assert(!how.psb_before_ovf_fup);                                // GEN-228
    static_assert(!how.has_tsx);                                           // GEN-170
    static_assert(how.cycle_counter_bits == 32);                           // GEN-217
    static_assert(how.overflow_ends_at == 0);                              // GEN-227
    static_assert(!how.msrs_lag);                                          // REG-011
    CHECK(how.drained_at_once == ~size_t{0});
}
