// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>

/// Finds the supported value nearest to a wanted one.
namespace ptspec::config {

using cpu::capabilities;
using cpu::cyc_threshold;
using cpu::mtc_period;
using cpu::output_scheme;
using cpu::psb_period;

/// The nearest value, if any.
template <class Value>
struct nearest_of {
    bool has_value = false;
    Value value{};

    constexpr explicit operator bool() const noexcept { return has_value; }
    friend constexpr auto operator==(nearest_of const&, nearest_of const&) -> bool = default;
};

namespace detail {

constexpr auto distance(unsigned one, unsigned two) noexcept -> unsigned {
    return one < two ? two - one : one - two;
}

template <class Encoding>
constexpr auto nearest_encoding(capabilities const& caps, Encoding wanted) noexcept
    -> nearest_of<Encoding> {
    nearest_of<Encoding> best;
    for (unsigned encoding = 0; encoding <= Encoding::last_encoding; ++encoding) {
        auto const one = Encoding::encoded(wrapped{encoding});
        bool const nearer = !best.has_value ||
                            distance(encoding, wanted.encoding()) <
                                distance(best.value.encoding(), wanted.encoding());
        if (nearer && caps.supports(one)) { best = {true, one}; }
    }
    return best;
}

}  // namespace detail

/// The nearest encoding that the processor enumerates; the smaller one of two that are equally
/// near. None where the processor lacks MTC, CYC or PSBFreq.
///
/// Units:  distances are differences of encodings, so powers of two. The nearest CYC threshold can
///         be 0, no threshold.
/// Source: REG-028, REG-029, REG-048.
[[nodiscard]] constexpr auto nearest(capabilities const& caps, mtc_period wanted) noexcept
    -> nearest_of<mtc_period> {
    return detail::nearest_encoding(caps, wanted);
}
[[nodiscard]] constexpr auto nearest(capabilities const& caps, cyc_threshold wanted) noexcept
    -> nearest_of<cyc_threshold> {
    return detail::nearest_encoding(caps, wanted);
}
[[nodiscard]] constexpr auto nearest(capabilities const& caps, psb_period wanted) noexcept
    -> nearest_of<psb_period> {
    return detail::nearest_encoding(caps, wanted);
}

/// The wanted output scheme, else the first supported one of ToPA, single range, trace transport.
///
/// Source: REG-024..026, PRG-003.
[[nodiscard]] constexpr auto nearest(capabilities const& caps, output_scheme wanted) noexcept
    -> nearest_of<output_scheme> {
    output_scheme const order[] = {wanted, output_scheme::topa, output_scheme::single_range,
                                   output_scheme::fabric};
    for (output_scheme const one : order) {
        if (caps.supports(one)) { return {true, one}; }
    }
    return {};
}

}  // namespace ptspec::config
