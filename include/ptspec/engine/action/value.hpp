// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

/// Values that software or PEBS puts into the trace.
namespace ptspec::engine::action {

/// PTWRITE whose operand is readable. Source: GEN-300.
struct ptwrite {
    uint64_t at = 0;
    uint64_t next = 0;
    uint64_t value = 0;
    bool is_64_bit = false;
};

/// An item of a PEBS record. Source: GEN-320.
struct pebs_item {
    uint8_t id = 0;
    uint64_t value = 0;
};
struct pebs_group {
    uint8_t type = 0;
    bool items_of_4 = false;
    pebs_item const* items = nullptr;
    size_t count = 0;
};
/// A PEBS record that is output to the trace. Source: GEN-320..322.
struct pebs_record {
    uint64_t ip = 0;
    pebs_group const* groups = nullptr;
    size_t count = 0;
};

}  // namespace ptspec::engine::action
