// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/records.hpp>
#include <ptspec/print/rows.hpp>

#include <support/check_twice.hpp>

#include <cstddef>
#include <cstdint>

using namespace ptspec;
using namespace ptspec::file::perf_data;

namespace {

/// A field of a word: its name in perf_event.h, and its bits there.
struct bits_in_c {
    text name;
    unsigned lsb;
    unsigned width = 1;
};

/// True if these are all fields of the word, in this order.
template <class Word, std::size_t Count>
constexpr auto has_fields(bits_in_c const (&wanted)[Count]) -> bool {
    std::size_t fields = 0;
    for (auto const& facts : print::row_list_of<Word>()) {
        auto const& row = facts.row;
        if (row.kind != row_kind::field) { continue; }
        if (fields == Count) { return false; }
        auto const& one = wanted[fields++];
        bool const same = row.name == one.name && row.lsb == one.lsb &&
                          row.msb == one.lsb + one.width - 1;
        if (!same) { return false; }
    }
    return fields == Count;
}

template <class Member>
constexpr auto is_at(std::size_t offset, std::size_t size) -> bool {
    return Member::first == offset && Member::end == offset + size;
}

}  // namespace

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

TEST_CASE("the types of records are those of Linux and perf") {
    static_assert(underlying(record_type::comm) == 3 && underlying(record_type::exit) == 4 &&
                  underlying(record_type::fork) == 7 && underlying(record_type::mmap2) == 10);
    static_assert(underlying(record_type::finished_round) == 68 &&
                  underlying(record_type::auxtrace_info) == 70 &&
                  underlying(record_type::auxtrace) == 71);
    static_assert(misc_user == 2 && misc_comm_exec == 0x2000 && misc_mmap_data == 0x2000 &&
                  misc_switch_out == 0x2000 && misc_switch_out_preempt == 0x4000 &&
                  misc_mmap_build_id == 0x4000);
    static_assert(
        underlying(record_type::mmap) == 1 && underlying(record_type::lost) == 2 &&
        underlying(record_type::throttle) == 5 && underlying(record_type::unthrottle) == 6 &&
        underlying(record_type::read) == 8 && underlying(record_type::sample) == 9 &&
        underlying(record_type::aux) == 11 && underlying(record_type::itrace_start) == 12 &&
        underlying(record_type::lost_samples) == 13 &&
        underlying(record_type::context_switch) == 14 &&
        underlying(record_type::switch_cpu_wide) == 15 &&
        underlying(record_type::namespaces) == 16 && underlying(record_type::ksymbol) == 17 &&
        underlying(record_type::bpf_event) == 18 && underlying(record_type::cgroup) == 19 &&
        underlying(record_type::text_poke) == 20 &&
        underlying(record_type::aux_output_hw_id) == 21);
    static_assert(
        first_type_of_perf == 64 && underlying(record_type::header_attr) == 64 &&
        underlying(record_type::header_event_type) == 65 &&
        underlying(record_type::header_tracing_data) == 66 &&
        underlying(record_type::header_build_id) == 67 && underlying(record_type::id_index) == 69 &&
        underlying(record_type::auxtrace_error) == 72 && underlying(record_type::time_conv) == 79 &&
        underlying(record_type::header_feature) == 80 &&
        underlying(record_type::compressed) == 81 && underlying(record_type::finished_init) == 82 &&
        underlying(record_type::compressed2) == 83 && underlying(record_type::bpf_metadata) == 84 &&
        underlying(record_type::schedstat_cpu) == 85 &&
        underlying(record_type::schedstat_domain) == 86);
    static_assert(
        underlying(feature_id::cpuid) == 9 && underlying(feature_id::pmu_mappings) == 16 &&
        underlying(feature_id::auxtrace) == 18 && underlying(feature_id::dir_format) == 24 &&
        underlying(feature_id::compressed) == 27);
}

TEST_CASE("the bits of mappings are those of mmap(2), and no processor is -1") {
    CHECK(prot_read == 0x1);
    CHECK(prot_write == 0x2);
    CHECK(prot_exec == 0x4);
    CHECK(map_private == 0x02);
    CHECK(no_cpu == 0xFFFF'FFFF);
}

TEST_CASE("the bits of aux_flags are those of PERF_AUX_FLAG") {
    static constexpr bits_in_c wanted[] = {{"TRUNCATED", 0},
                                           {"OVERWRITE", 1},
                                           {"PARTIAL", 2},
                                           {"COLLISION", 3},
                                           {"PMU_FORMAT_TYPE", 8, 8}};
    static_assert(has_fields<aux_flags>(wanted));
    CHECK_TWICE(
        [](auto value) { return aux_flags{}.with(aux_flags::PARTIAL{value(true)}).raw == 4; });
}

TEST_CASE("the structures have the sizes of those in C") {
    static_assert(layout::file_header::bytes::size == 104);
    static_assert(layout::file_attr::bytes::size == 128 + 16);
    static_assert(layout::record_header::bytes::size == 8);
    static_assert(layout::comm::bytes::size == 16);
    static_assert(layout::task::bytes::size == 32);
    static_assert(layout::mmap2::bytes::size == 72);
    static_assert(layout::auxtrace_info::bytes::size == 16 + 17 * 8);
    static_assert(layout::auxtrace::bytes::size == 48);
    static_assert(layout::sample_id::bytes::size == 16);
    static_assert(layout::timed_sample_id::bytes::size == 24);
    static_assert(layout::attr::bytes::size == 144 && layout::attr::first_size == 64);
    static_assert(layout::section::bytes::size == 16);
    static_assert(layout::mmap::bytes::size == 40);
    static_assert(layout::mmap2_build_id::bytes::size == 72);
    static_assert(layout::lost::bytes::size == 24 && layout::lost_samples::bytes::size == 16);
    static_assert(layout::throttle::bytes::size == 32);
    static_assert(layout::aux::bytes::size == 32);
    static_assert(layout::itrace_start::bytes::size == 16);
    static_assert(layout::switch_cpu_wide::bytes::size == 16);
    static_assert(layout::header_tracing_data::bytes::size == 12);
    static_assert(layout::header_feature::bytes::size == 16);
    static_assert(layout::id_index::bytes::size == 16);
    static_assert(layout::id_index_entry::bytes::size == 32);
    static_assert(layout::time_conv::bytes::size == 56 && layout::time_conv::old_size == 32);
    static_assert(layout::auxtrace_error::bytes::size == 120 &&
                  layout::auxtrace_error::old_size == 40);
    static_assert(layout::compressed2::bytes::size == 16);
}

TEST_CASE("members are at the offsets that they have in C") {
    using header = layout::file_header;
    static_assert(is_at<header::attr_size>(16, 8) && is_at<header::attrs_offset>(24, 8) &&
                  is_at<header::data_offset>(40, 8) && is_at<header::adds_features>(72, 32));
    using attr = layout::file_attr;
    static_assert(is_at<attr::config>(8, 8) && is_at<attr::sample_type>(24, 8) &&
                  is_at<attr::flags>(40, 8) && is_at<attr::ids_offset>(128, 8));
    using mmap2 = layout::mmap2;
    static_assert(is_at<mmap2::pgoff>(32, 8) && is_at<mmap2::dev_major>(40, 4) &&
                  is_at<mmap2::ino_generation>(56, 8) && is_at<mmap2::flags>(68, 4));
    using info = layout::auxtrace_info;  // the quadwords begin at byte 16
    static_assert(is_at<info::PMU_TYPE>(16, 8) && is_at<info::TSC_BIT>(16 + 5 * 8, 8) &&
                  is_at<info::PER_CPU_MMAPS>(16 + 9 * 8, 8) &&
                  is_at<info::CYC_BIT>(16 + 14 * 8, 8) &&
                  is_at<info::MAX_NONTURBO_RATIO>(16 + 15 * 8, 8));
    using auxtrace = layout::auxtrace;
    static_assert(is_at<auxtrace::reference>(24, 8) && is_at<auxtrace::cpu>(40, 4));
    using all = layout::attr;
    static_assert(is_at<all::type>(0, 4) && is_at<all::size>(4, 4) && is_at<all::flags>(40, 8) &&
                  is_at<all::wakeup>(48, 4) && is_at<all::config1>(56, 8) &&
                  is_at<all::branch_sample_type>(72, 8) && is_at<all::clockid>(92, 4) &&
                  is_at<all::aux_watermark>(104, 4) && is_at<all::sample_max_stack>(108, 2) &&
                  is_at<all::aux_action>(116, 4) && is_at<all::config4>(136, 8));
    using build_id = layout::mmap2_build_id;
    static_assert(is_at<build_id::build_id_size>(40, 1) && is_at<build_id::build_id>(44, 20) &&
                  is_at<build_id::prot>(64, 4));
    using error = layout::auxtrace_error;
    static_assert(is_at<error::fmt>(28, 4) && is_at<error::ip>(32, 8) &&
                  is_at<error::time>(40, 8) && is_at<error::msg>(48, 64) &&
                  is_at<error::vcpu>(116, 4));
    using conv = layout::time_conv;
    static_assert(is_at<conv::time_zero>(24, 8) && is_at<conv::time_mask>(40, 8) &&
                  is_at<conv::cap_user_time_short>(49, 1));
}
