// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <stdint.h>

namespace ptspec::cpu {

/// Which kind of address packets and IA32_RTIT_ADDRn hold.
///
/// Source: REG-079, REG-166.
enum class ip_payload : uint8_t {
    effective,  ///< offsets from the CS base, also called RIP or EIP
    linear,     ///< linear addresses, LIP
};

}  // namespace ptspec::cpu
