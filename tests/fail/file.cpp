// SPDX-License-Identifier: BSL-1.0
/// Files

#include <ptspec/file/perf_data/input.hpp>
#include <ptspec/file/winipt.hpp>

#include <vector>

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
