// SPDX-License-Identifier: BSL-1.0
// at most: 600 bytes by g++
// at most: 750 bytes by clang++
// A decoder of one packet whose length is fixed.

#include <ptspec/packet/decode.hpp>

using namespace ptspec;

void read(byte_view in, packet::decode_options how, packet::decoded_as<packet::cbr>& to) noexcept {
    to = packet::decode_as<packet::cbr>(in, how);
}
