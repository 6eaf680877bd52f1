// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/head.hpp>

#include <support/check_twice.hpp>
#include <support/structure_in_c.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using test::bits_in_c;
using test::has_fields;
using test::is_at;

TEST_CASE("the bits of sample_type are those of perf_event_sample_format") {
    static constexpr bits_in_c wanted[] = {{"IP", 0},
                                           {"TID", 1},
                                           {"TIME", 2},
                                           {"ADDR", 3},
                                           {"READ", 4},
                                           {"CALLCHAIN", 5},
                                           {"ID", 6},
                                           {"CPU", 7},
                                           {"PERIOD", 8},
                                           {"STREAM_ID", 9},
                                           {"RAW", 10},
                                           {"BRANCH_STACK", 11},
                                           {"REGS_USER", 12},
                                           {"STACK_USER", 13},
                                           {"WEIGHT", 14},
                                           {"DATA_SRC", 15},
                                           {"IDENTIFIER", 16},
                                           {"TRANSACTION", 17},
                                           {"REGS_INTR", 18},
                                           {"PHYS_ADDR", 19},
                                           {"AUX", 20},
                                           {"CGROUP", 21},
                                           {"DATA_PAGE_SIZE", 22},
                                           {"CODE_PAGE_SIZE", 23},
                                           {"WEIGHT_STRUCT", 24}};
    static_assert(has_fields<sample_type>(wanted));
    CHECK_TWICE([](auto value) {
        return sample_type{}.with(sample_type::TID{value(true)}).raw == 2 &&
               sample_type{}.with(sample_type::IDENTIFIER{value(true)}).raw == 0x1'0000;
    });
}

TEST_CASE("the bits of read_format are those of perf_event_read_format") {
    static constexpr bits_in_c wanted[] = {
        {"TOTAL_TIME_ENABLED", 0}, {"TOTAL_TIME_RUNNING", 1}, {"ID", 2}, {"GROUP", 3}, {"LOST", 4}};
    static_assert(has_fields<read_format>(wanted));
    CHECK_TWICE(
        [](auto value) { return read_format{}.with(read_format::GROUP{value(true)}).raw == 8; });
}

TEST_CASE("the bits of attr_flags are the bit-fields of perf_event_attr") {
    static constexpr bits_in_c wanted[] = {{"disabled", 0},
                                           {"inherit", 1},
                                           {"pinned", 2},
                                           {"exclusive", 3},
                                           {"exclude_user", 4},
                                           {"exclude_kernel", 5},
                                           {"exclude_hv", 6},
                                           {"exclude_idle", 7},
                                           {"mmap", 8},
                                           {"comm", 9},
                                           {"freq", 10},
                                           {"inherit_stat", 11},
                                           {"enable_on_exec", 12},
                                           {"task", 13},
                                           {"watermark", 14},
                                           {"precise_ip", 15, 2},
                                           {"mmap_data", 17},
                                           {"sample_id_all", 18},
                                           {"exclude_host", 19},
                                           {"exclude_guest", 20},
                                           {"exclude_callchain_kernel", 21},
                                           {"exclude_callchain_user", 22},
                                           {"mmap2", 23},
                                           {"comm_exec", 24},
                                           {"use_clockid", 25},
                                           {"context_switch", 26},
                                           {"write_backward", 27},
                                           {"namespaces", 28},
                                           {"ksymbol", 29},
                                           {"bpf_event", 30},
                                           {"aux_output", 31},
                                           {"cgroup", 32},
                                           {"text_poke", 33},
                                           {"build_id", 34},
                                           {"inherit_thread", 35},
                                           {"remove_on_exec", 36},
                                           {"sigtrap", 37}};
    static_assert(has_fields<attr_flags>(wanted));
    CHECK_TWICE([](auto value) {
        return attr_flags{}.with(attr_flags::mmap2{value(true)}).raw == 0x80'0000 &&
               attr_flags{}.with(attr_flags::sample_id_all{value(true)}).raw == 0x4'0000;
    });
}

TEST_CASE("the structures of the head have the sizes of those in C") {
    static_assert(sizeof(file_header) == 104 && sizeof(section) == 16);
    static_assert(sizeof(perf_event_attr) == 144 && perf_event_attr::first_size == 64 &&
                  perf_event_attr::size_of_writer == 128);
}

TEST_CASE("the members of the file's structures are at the offsets that they have in C") {
    using header = file_header;
    static_assert(is_at(&section::offset, 0, 8) && is_at(&section::size, 8, 8));
    static_assert(is_at(&header::magic, 0, 8) && is_at(&header::size, 8, 8) &&
                  is_at(&header::attr_size, 16, 8) && is_at(&header::attrs, 24, 16) &&
                  is_at(&header::data, 40, 16) && is_at(&header::event_types, 56, 16) &&
                  is_at(&header::adds_features, 72, 32));
    using attr = perf_event_attr;
    static_assert(is_at(&attr::type, 0, 4) && is_at(&attr::size, 4, 4) &&
                  is_at(&attr::config, 8, 8) && is_at(&attr::sample_period, 16, 8) &&
                  is_at(&attr::sample_type, 24, 8) && is_at(&attr::read_format, 32, 8) &&
                  is_at(&attr::flags, 40, 8) && is_at(&attr::wakeup, 48, 4) &&
                  is_at(&attr::bp_type, 52, 4) && is_at(&attr::config1, 56, 8) &&
                  is_at(&attr::config2, 64, 8) && is_at(&attr::branch_sample_type, 72, 8) &&
                  is_at(&attr::sample_regs_user, 80, 8) && is_at(&attr::sample_stack_user, 88, 4) &&
                  is_at(&attr::clockid, 92, 4) && is_at(&attr::sample_regs_intr, 96, 8) &&
                  is_at(&attr::aux_watermark, 104, 4) && is_at(&attr::sample_max_stack, 108, 2) &&
                  is_at(&attr::reserved_2, 110, 2) && is_at(&attr::aux_sample_size, 112, 4) &&
                  is_at(&attr::aux_action, 116, 4) && is_at(&attr::sig_data, 120, 8) &&
                  is_at(&attr::config3, 128, 8) && is_at(&attr::config4, 136, 8));
}
