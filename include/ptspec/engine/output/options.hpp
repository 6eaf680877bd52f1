// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/topa/restricted.hpp>

namespace ptspec::engine {

/// What happens to trace that would go into restricted memory.
///
/// Source: OUT-111.
enum class restricted_access : uint8_t {
    drop,   ///< the bytes are lost, and output goes on behind that memory
    error,  ///< an operational error when the pointer comes there
};

/// What a processor, or its platform, decides about output and the manual does not.
struct output_options {
    topa::restricted_memory restricted{};
    restricted_access when_restricted = restricted_access::drop;
    /// Where a table holds a single region: how many bytes before the region is full its interrupt
    /// comes. At least one byte is stored first. Source: OUT-101, OUT-104 (UNCONFIRMED figure).
    uint32_t pmi_lead_bytes = 512;
};

}  // namespace ptspec::engine
