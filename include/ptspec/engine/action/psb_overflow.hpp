// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/time.hpp>

/// PSB+ and overflow on request, independent of the byte count and the buffer.
namespace ptspec::engine::action {

/// A PSB+ is due. Source: GEN-164.
struct psb_due {};
/// An overflow begins: packets are lost from now on. Source: GEN-225.
struct overflow {};
/// The overflow ends: packets are generated again. Source: GEN-227.
struct overflow_end {
    uint64_t next = 0;
};

}  // namespace ptspec::engine::action
