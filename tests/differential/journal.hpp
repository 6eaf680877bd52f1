// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <tools/common/recorded/journal.hpp>

// The journals of recorded processes, also written by tests.
namespace differential::recording {

using pt_record::code_of_thread;
using pt_record::code_pages;
using pt_record::code_record;
using pt_record::moment;
using pt_record::moment_of_record;

inline void append(std::vector<std::uint8_t>& to, code_record const& record) {
    auto const number = [&](std::uint64_t value, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            to.push_back(static_cast<std::uint8_t>(value >> 8 * i));
        }
    };
    number(record.address, 8);
    number(record.bytes.size(), 4);
    number(record.thread, 4);
    number(record.when.offset | std::uint64_t{record.when.branches} << 56, 8);
    to.insert(to.end(), record.bytes.begin(), record.bytes.end());
    to.resize(to.size() + (pt_record::padded(record.bytes.size()) - record.bytes.size()));
}

}  // namespace differential::recording
