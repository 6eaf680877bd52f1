// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ptspec/base/bytes.hpp>
#include <ptspec/packet/kind.hpp>

#include <support/reference_decoder.hpp>

/// The reference decoder of the tests, with the library's names of packets and errors, and a
/// bytewise search for PSBs.
namespace naive {

using ptspec::byte_view;
using ptspec::packet::error;
using ptspec::packet::kind;

struct outcome {
    error why;
    kind which;       ///< when `why` is `none`
    unsigned length;  ///< when `why` is `none`
    unsigned need;    ///< when truncated
};

inline auto failed(error why) -> outcome { return {why, kind::none, 0, 0}; }
inline auto truncated(unsigned need) -> outcome { return {error::truncated, kind::none, 0, need}; }

inline auto reference_result(byte_view in, unsigned item_bytes, bool strict, uint64_t last_ip = 0) {
    return reference::decode(in.data(), in.size(), item_bytes, strict, last_ip);
}

inline auto decode(byte_view in, unsigned item_bytes, bool strict) -> outcome {
    auto const got = reference_result(in, item_bytes, strict);
    if (got.error == "truncated") { return truncated(got.need); }
    if (got.error == "bad_opcode") { return failed(error::bad_opcode); }
    if (got.error == "reserved") { return failed(error::reserved); }
    if (got.error == "bad_packet") { return failed(error::bad_packet); }
    return {error::none, static_cast<kind>(got.packet), got.length, 0};
}

/// The item size after a packet, given the one before it (PKT-205). `in` begins with the packet.
inline auto item_size_after(byte_view in, unsigned before) -> unsigned {
    return reference::item_size_after(reference_result(in, before, false), before);
}

/// The last IP after a packet, given the one before it (PKT-051, PKT-060). `in` begins with it.
inline auto last_ip_after(byte_view in, unsigned item_bytes, uint64_t before) -> uint64_t {
    return reference::last_ip_after(reference_result(in, item_bytes, false, before), before);
}

/// True when `pairs` pairs 02 82 begin at `at`.
inline auto pattern_at(byte_view in, size_t at, unsigned pairs) -> bool {
    if (at > in.size() || in.size() - at < size_t{2} * pairs) { return false; }
    for (unsigned i = 0; i < 2 * pairs; ++i) {
        if (in[at + i] != (i % 2 == 0 ? 0x02 : 0x82)) { return false; }
    }
    return true;
}

/// A PSB is eight pairs without a ninth pair after them (PKT-251).
inline auto psb_at(byte_view in, size_t at) -> bool {
    return pattern_at(in, at, 8) && !pattern_at(in, at + 16, 1);
}

/// The offsets of all PSBs.
inline auto psbs(byte_view in) -> std::vector<size_t> {
    std::vector<size_t> found;
    for (size_t at = 0; at < in.size(); ++at) {
        if (psb_at(in, at)) { found.push_back(at); }
    }
    return found;
}

}  // namespace naive
