// SPDX-License-Identifier: BSL-1.0
/// Files

#include <ptspec/file/byte_layout.hpp>
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

namespace loaded_structure_of_the_machine {
/// A member in the byte order and with the alignment of the machine is not the one in the file.
// expect: a member of a structure is little_endian or a byte
struct in_the_file {
#ifndef SHOULD_FAIL
    ptspec::file::le32 size{};
#else
    uint32_t size{};
#endif
};

auto size_of(ptspec::byte_view bytes) -> uint32_t {
    return ptspec::file::load<in_the_file>(bytes).size;
}
}  // namespace loaded_structure_of_the_machine

namespace stored_structure_of_the_machine {
/// The same for a structure that is written.
// expect: a member of a structure is little_endian or a byte
struct in_the_file {
#ifndef SHOULD_FAIL
    ptspec::file::le16 size{};
#else
    uint16_t size{};
#endif
};

auto first_byte(uint16_t size) { return ptspec::file::to_bytes(in_the_file{size})[0]; }
}  // namespace stored_structure_of_the_machine
