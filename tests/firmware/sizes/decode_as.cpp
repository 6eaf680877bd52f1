// SPDX-License-Identifier: BSL-1.0
// at most: 900 bytes by g++
// at most: 1000 bytes by clang++
// A decoder of one packet does not contain the table of all packets.

#include <ptspec/packet/decode.hpp>

using namespace ptspec;

void read(byte_view in, packet::decode_options how, packet::decoded_as<packet::tip>& to) noexcept {
    to = packet::decode_as<packet::tip>(in, how);
}
