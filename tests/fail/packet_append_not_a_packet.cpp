// SPDX-License-Identifier: BSL-1.0
// expect: packet_type
#include <ptspec/packet/encode.hpp>

using namespace ptspec::packet;

#ifndef SHOULD_FAIL
auto write(ptspec::byte_buffer& out) -> bool { return append(out, mtc{}) == ptspec::rule::none; }
#else
auto write(ptspec::byte_buffer& out) -> bool { return append(out, 0x59) == ptspec::rule::none; }
#endif
