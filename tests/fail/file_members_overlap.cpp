// SPDX-License-Identifier: BSL-1.0
// expect: these two members overlap or leave a gap
#include <ptspec/file/byte_layout.hpp>

using namespace ptspec::file;

struct pid : member<8, uint32_t> {};
#ifndef SHOULD_FAIL
struct time : member<12, uint64_t> {};
#else
struct time : member<10, uint64_t> {};
#endif
struct layout : byte_layout<gap<0, 7>, pid, time> {};
