// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/restricted.hpp>

namespace ptspec::engine {

/// What happens when output reaches restricted memory.
///
/// Source: OUT-111.
enum class restricted_access : uint8_t {
    drop,   ///< bytes are lost; output continues after the restricted memory
    error,  ///< an operational error when the output pointer reaches it
};

/// Output behavior that the manual leaves to the processor or the platform.
struct output_options {
    topa::restricted_memory restricted{};
    restricted_access when_restricted = restricted_access::drop;
    /// For tables of a single region: the distance of the interrupt from the end of the region, in
    /// bytes. At least one byte is stored before it. Source: OUT-101, OUT-104 (UNCONFIRMED figure).
    uint32_t pmi_lead_bytes = 512;
};

}  // namespace ptspec::engine
