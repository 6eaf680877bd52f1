// SPDX-License-Identifier: BSL-1.0
/// Files

#include <ptspec/file/byte_layout.hpp>
#include <ptspec/file/perf_data/input.hpp>
#include <ptspec/file/winipt.hpp>

#include <vector>

using namespace ptspec::file;

namespace perf_data_of_temporary {
/// The file is gone before its first record is read.
// expect: the bytes of this temporary are gone before they are read: give it a name
auto read_file() -> std::vector<unsigned char>;

auto first() {
#ifndef SHOULD_FAIL
    auto const bytes = read_file();
    auto const file = ptspec::file::perf_data::open(bytes);
#else
    auto const file = ptspec::file::perf_data::open(read_file());
#endif
    return file.result;
}
}  // namespace perf_data_of_temporary

namespace winipt_of_temporary {
/// The file is gone before its first trace is read.
// expect: the bytes of this temporary are gone before they are read: give it a name
auto read_file() -> std::vector<unsigned char>;

auto first() {
#ifndef SHOULD_FAIL
    auto const bytes = read_file();
    ptspec::file::winipt::reader from{bytes};
#else
    ptspec::file::winipt::reader from{read_file()};
#endif
    return from.next();
}
}  // namespace winipt_of_temporary

namespace file_members_leave_a_gap {
/// Bytes 12 to 15 of the record belong to no member.
// expect: these two members overlap or leave a gap
struct pid : member<8, uint32_t> {};
#ifndef SHOULD_FAIL
struct time : member<12, uint64_t> {};
#else
struct time : member<16, uint64_t> {};
#endif
struct layout : byte_layout<gap<0, 7>, pid, time> {};
}  // namespace file_members_leave_a_gap

namespace file_members_overlap {
/// Bytes 10 and 11 belong to two members.
// expect: these two members overlap or leave a gap
struct pid : member<8, uint32_t> {};
#ifndef SHOULD_FAIL
struct time : member<12, uint64_t> {};
#else
struct time : member<10, uint64_t> {};
#endif
struct layout : byte_layout<gap<0, 7>, pid, time> {};
}  // namespace file_members_overlap
