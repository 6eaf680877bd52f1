// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/bpf_programs.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>
#include <support/structure_in_c.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using test::bits_in_c;
using test::bytes;
using test::has_fields;
using test::is_at;
using test::join;
using test::letters;
using test::u32;
using test::u64;

namespace {

constexpr uint64_t first_address = 0xFFFF'FFFF'C000'1000;
constexpr uint64_t second_address = 0xFFFF'FFFF'C000'2000;

/// The members of a `bpf_prog_info` of Linux 6.1, which has 232 bytes, with two functions.
constexpr auto info_of(uint32_t id, uint32_t code_size, uint64_t sizes_offset) {
    return join(u32(5), u32(id), letters("TAGofBPF"), u32(code_size), u32(0), u64(0), u64(0),
                u64(77), u32(0), u32(0), u64(0), letters("name of program"), bytes(0), u32(0),
                u32(1), u64(0), u64(0), u32(2), u32(2), u64(8), u64(sizes_offset), u32(0), u32(0),
                u64(0), u32(0), u32(0), u64(0), u64(0), u32(0), u32(0), u32(0), u32(0), u64(0),
                u64(0), u64(0), u64(0), u32(0), u32(0), u32(0), u32(0));
}
/// The machine code at 0, the addresses at 8, the sizes at 24.
constexpr auto data = join(letters("onetwo"), bytes(0, 0), u64(first_address), u64(second_address),
                           u32(3), u32(3));
constexpr uint64_t all_arrays = 1 | 1 << 3 | 1 << 4;

template <class Info>
constexpr auto entry_of(Info const& info, uint64_t arrays = all_arrays) {
    return join(u32(sizeof(Info)), u32(sizeof data), u64(arrays), info, data);
}
/// The header, and at 104 the table of the section of the feature with this data, at 120.
template <class Data>
constexpr auto file_of(Data const& of) {
    return join(letters("PERFILE2"), u64(104), u64(80), u64(104), u64(0), u64(104), u64(0), u64(0),
                u64(0), u64(1U << 25), u64(0), u64(0), u64(0), u64(120), u64(sizeof(Data)), of);
}
template <class File>
constexpr auto first_of(File const& file) -> bpf_program {
    return bpf_programs(open(file)).next();
}

}  // namespace

TEST_CASE("the members of bpf_prog_info are at the offsets that they have in C") {
    using info = bpf_prog_info;
    static_assert(is_at(&info::type, 0, 4) && is_at(&info::id, 4, 4) && is_at(&info::tag, 8, 8) &&
                  is_at(&info::jited_prog_len, 16, 4) && is_at(&info::xlated_prog_len, 20, 4) &&
                  is_at(&info::jited_prog_insns, 24, 8) && is_at(&info::xlated_prog_insns, 32, 8) &&
                  is_at(&info::load_time, 40, 8) && is_at(&info::created_by_uid, 48, 4) &&
                  is_at(&info::nr_map_ids, 52, 4) && is_at(&info::map_ids, 56, 8) &&
                  is_at(&info::name, 64, 16) && is_at(&info::ifindex, 80, 4) &&
                  is_at(&info::gpl_compatible, 84, 4) && is_at(&info::netns_dev, 88, 8) &&
                  is_at(&info::netns_ino, 96, 8));
    static_assert(is_at(&info::nr_jited_ksyms, 104, 4) &&
                  is_at(&info::nr_jited_func_lens, 108, 4) && is_at(&info::jited_ksyms, 112, 8) &&
                  is_at(&info::jited_func_lens, 120, 8) && is_at(&info::btf_id, 128, 4) &&
                  is_at(&info::func_info_rec_size, 132, 4) && is_at(&info::func_info, 136, 8) &&
                  is_at(&info::nr_func_info, 144, 4) && is_at(&info::nr_line_info, 148, 4) &&
                  is_at(&info::line_info, 152, 8) && is_at(&info::jited_line_info, 160, 8) &&
                  is_at(&info::nr_jited_line_info, 168, 4) &&
                  is_at(&info::line_info_rec_size, 172, 4) &&
                  is_at(&info::jited_line_info_rec_size, 176, 4) &&
                  is_at(&info::nr_prog_tags, 180, 4) && is_at(&info::prog_tags, 184, 8));
    using entry = bpf_info_entry;
    static_assert(is_at(&entry::info_len, 0, 4) && is_at(&entry::data_len, 4, 4) &&
                  is_at(&entry::arrays, 8, 8));
    static_assert(sizeof(info) == 192 && sizeof(entry) == 16 && sizeof info_of(0, 0, 0) == 232);
}

TEST_CASE("the arrays of an entry are those of perf") {
    static constexpr bits_in_c wanted[] = {
        {"JITED_INSNS", 0}, {"XLATED_INSNS", 1},    {"MAP_IDS", 2},
        {"JITED_KSYMS", 3}, {"JITED_FUNC_LENS", 4}, {"FUNC_INFO", 5},
        {"LINE_INFO", 6},   {"JITED_LINE_INFO", 7}, {"PROG_TAGS", 8}};
    static_assert(has_fields<bpf_info_arrays>(wanted));
}

TEST_CASE("Programs, with the functions of each") {
    CHECK_TWICE([](auto value) {
        auto const one = entry_of(info_of(value(11U), 6, 24));
        auto const two = entry_of(info_of(value(12U), 6, 24));
        auto const file = file_of(join(u32(2), one, two));
        auto all = bpf_programs(open(file));
        auto const first = all.next();
        bool const is_between = all.offset() == 124 + sizeof one;
        auto const second = all.next();
        auto functions = functions_of(first);
        auto const a = functions.next();
        auto const b = functions.next();
        return first && first.id == 11 && first.name[0] == 'n' && is_between && second &&
               second.id == 12 && !all.next() && all.result() && a.address == first_address &&
               a.size == 3 && a.code == letters("one") && b.address == second_address &&
               b.code == letters("two") && functions.next().address == 0;
    });
}

TEST_CASE("The structure of an older perf is shorter, of a newer longer") {
    CHECK_TWICE([](auto value) {
        auto const whole = info_of(value(11U), 6, 24);
        byte_array<208> old{};
        for (size_t i = 0; i < old.size(); ++i) { old.bytes[i] = whole[i]; }
        auto const shorter = file_of(join(u32(1), entry_of(old)));
        auto const longer = file_of(join(u32(1), entry_of(join(whole, u64(1), u64(2)))));
        byte_array<120> first_part{};
        for (size_t i = 0; i < first_part.size(); ++i) { first_part.bytes[i] = whole[i]; }
        auto const shortest = file_of(join(u32(1), entry_of(first_part)));
        auto const cut = first_of(shortest);
        return functions_of(first_of(shorter)).next().code == letters("one") &&
               functions_of(first_of(longer)).next().code == letters("one") && cut &&
               cut.id == 11 && cut.code() == letters("onetwo") && cut.sizes().size() == 8;
    });
}

TEST_CASE("An array that is absent, or not in the data, is empty") {
    CHECK_TWICE([](auto value) {
        auto const arrays = [&](uint64_t bits) {
            return file_of(join(u32(1), entry_of(info_of(value(1U), 6, 24), bits)));
        };
        auto const without_code = arrays(1 << 3 | 1 << 4);
        auto const without_addresses = arrays(1 | 1 << 4);
        auto const without_sizes = arrays(1 | 1 << 3);
        auto const far = file_of(join(u32(1), entry_of(info_of(1, 6, 25))));
        auto const beyond = file_of(join(u32(1), entry_of(info_of(1, 6, ~uint64_t{0}))));
        auto const long_code = file_of(join(u32(1), entry_of(info_of(1, 33, 24))));
        auto const short_code = file_of(join(u32(1), entry_of(info_of(1, 5, 24))));
        auto const one = functions_of(first_of(without_code)).next();
        auto halves = functions_of(first_of(short_code));
        auto const first = halves.next();
        auto const second = halves.next();
        return one.address == first_address && one.size == 3 && one.code.empty() &&
               functions_of(first_of(without_addresses)).next().address == 0 &&
               functions_of(first_of(without_sizes)).next().address == 0 &&
               first_of(far).sizes().empty() && first_of(beyond).sizes().empty() &&
               first_of(long_code).code().empty() && first.code == letters("one") &&
               second.size == 3 && second.code.empty();
    });
}

TEST_CASE("A file without programs has none, and no error") {
    CHECK_TWICE([](auto value) {
        auto const file = join(letters("PERFILE2"), u64(104), u64(80), u64(104), u64(0), u64(104),
                               u64(0), u64(0), u64(0), u64(value(0U)), u64(0), u64(0), u64(0));
        auto all = bpf_programs(open(file));
        auto const empty = file_of(u32(value(0U)));
        auto none = bpf_programs(open(empty));
        return !all.next() && all.result() && !none.next() && none.result();
    });
}

TEST_CASE("A damaged feature ends with an error, after the entries before it") {
    CHECK_TWICE([](auto value) {
        auto const one = entry_of(info_of(value(1U), 6, 24));
        auto const missing = file_of(join(u32(2), one));
        auto all = bpf_programs(open(missing));
        bool const has_first = bool{all.next()};
        auto const second = all.next();
        auto const huge = file_of(join(u32(1), u32(~0U), u32(~0U), u64(0), u64(0)));
        auto none = bpf_programs(open(huge));
        auto const small = file_of(bytes(1, 0));
        auto never = bpf_programs(open(small));
        return has_first && !second && !all.next() &&
               all.result() == read_status{read_error::truncated, 124 + sizeof one} &&
               !none.next() && none.result() == read_status{read_error::truncated, 124} &&
               !never.next() && never.result() == read_status{read_error::truncated, 120};
    });
}
