// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/model_options.hpp>

#include <support/check_twice.hpp>

#include <initializer_list>

using namespace ptspec;
using engine::model_options;

namespace {

/// Converts to any type.
struct anything {
    template <class Type>
    constexpr operator Type() const;
};

template <size_t... Index>
constexpr auto takes(index_list<Index...>) -> bool {
    return requires { model_options{(static_cast<void>(Index), anything{})...}; };
}
/// The number of members of `model_options`.
template <size_t Count = 64>
constexpr auto member_count() -> size_t {
    if constexpr (takes(make_index_list<Count>{})) {
        return Count;
    } else {
        return member_count<Count - 1>();
    }
}

}  // namespace

TEST_CASE("every member except policy and output is an option") {
    constexpr auto count = [] {
        model_options const how;
        size_t options = 0;
        engine::for_each_option(how, [&](auto&&...) { ++options; });
        return options;
    }();
    static_assert(count + 2 == member_count());
}

TEST_CASE("a flag may be false or true, and enumerators start at 0") {
    model_options const how;
    engine::for_each_option(how, [](text name, auto const& member, uint64_t least, uint64_t most) {
        CAPTURE(name.data());
        if constexpr (same_as<bare_t<decltype(member)>, bool>) {
            CHECK((least == 0 && most == 1));
        } else if constexpr (enumeration<bare_t<decltype(member)>>) {
            CHECK(least == 0);
        }
    });
}

TEST_CASE("set_option() sets the named option and no other") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        model_options const fresh;
        /// True if the named option has the number and all others have their defaults.
        auto const only_one_is = [&](model_options const& how, text name, uint64_t number) {
            bool as_wanted = true;
            engine::for_each_option(how, [&](text other, auto const& member, auto...) {
                engine::for_each_option(fresh, [&](text same, auto const& begun, auto...) {
                    if (!(same == other)) { return; }
                    auto const wanted = other == name ? number : static_cast<uint64_t>(begun);
                    as_wanted = as_wanted && static_cast<uint64_t>(member) == wanted;
                });
            });
            return as_wanted;
        };
        engine::for_each_option(fresh, [&](text name, auto const& begun, auto least, auto most) {
            for (uint64_t const wanted : {least, most}) {
                model_options how;
                good = good && engine::set_option(how, name, value(wanted)) &&
                       only_one_is(how, name, wanted);
            }
            model_options how;
            bool const too_much = most + 1 != 0 && engine::set_option(how, name, value(most + 1));
            good = good && !too_much && only_one_is(how, name, static_cast<uint64_t>(begun));
        });
        model_options how;
        return good && !engine::set_option(how, "cycle_counter_bits", value(uint64_t{0})) &&
               !engine::set_option(how, "pad", value(uint64_t{1})) &&
               engine::set_option(how, "psb_after_overflow", value(uint64_t{1})) &&
               how.psb_after_overflow == engine::psb_after_ovf::always;
    });
}

// The rules tagged [MODEL] give the defaults.
TEST_CASE("the defaults are those of the catalogue") {
    constexpr model_options how;
    static_assert(how.tnt_capacity == 6);                                              // GEN-120
    static_assert(!how.defers_tips);                                                   // GEN-145
    static_assert(how.pads == trace::pad_policy::none);                                // GEN-008
    static_assert(!how.psb_on_every_enable);                                           // GEN-162
    static_assert(how.psb_counts_itself);                                              // GEN-165
    static_assert(how.vmcs_needs_context);                                             // GEN-170
    static_assert(!how.psb_after_pge);                                                 // GEN-180
    static_assert(!how.mov_cr3_stops_at_next);                                         // GEN-087
    static_assert(how.ips == trace::ip_choice::as_processors);                         // GEN-229
    static_assert(how.trace_stop_in_overflow == engine::stop_in_overflow::after_ovf);  // GEN-230
    static_assert(how.pip_for_same_cr3);                                               // GEN-240
    static_assert(!how.vmcs_before_pip);                                               // GEN-245
    static_assert(!how.swintr_events);                                                 // GEN-301
    static_assert(!how.iret_at_all_returns);                                           // GEN-301
    static_assert(how.psb_after_overflow == engine::psb_after_ovf::where_needed);
    static_assert(how.on_ret_mismatch == trace::ret_mismatch::pop);  // GEN-133, GEN-134
    static_assert(!how.psb_before_ovf_fup);                          // GEN-228
    static_assert(!how.has_tsx);                                     // GEN-170
    static_assert(how.cycle_counter_bits == 32);                     // GEN-217
    static_assert(how.overflow_ends_at == 0);                        // GEN-227
    static_assert(!how.msrs_lag);                                    // REG-011
    CHECK(how.drained_at_once == ~size_t{0});
}
