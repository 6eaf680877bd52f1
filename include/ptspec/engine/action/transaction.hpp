// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

/// Transactions of TSX.
namespace ptspec::engine::action {

/// XBEGIN, or an XACQUIRE that starts a transaction. Source: GEN-250, GEN-253.
struct transaction_begin {
    uint64_t at = 0;
    uint64_t next = 0;
};
/// XEND or XRELEASE. Source: GEN-251, GEN-253.
struct transaction_end {
    uint64_t at = 0;
    uint64_t next = 0;
};
/// Source: GEN-252.
struct transaction_abort {
    uint64_t at = 0;
    uint64_t to = 0;  ///< the fallback address, or the XACQUIRE
};

}  // namespace ptspec::engine::action
