// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <stdint.h>

namespace ptspec::cpu {

/// The code size, by CS.L, CS.D and IA32_EFER.LMA.
///
/// Source: GEN-235.
enum class code_width : uint8_t { bits_16, bits_32, bits_64 };

}  // namespace ptspec::cpu
