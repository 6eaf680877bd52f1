// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/records.hpp>

#include <support/check_twice.hpp>
#include <support/structure_in_c.hpp>

#include <cstddef>
#include <cstdint>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using ptspec::file::le64;
using test::bits_in_c;
using test::has_fields;
using test::is_at;

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
        underlying(feature_id::bpf_prog_info) == 25 && underlying(feature_id::compressed) == 27);
    static_assert(misc_kernel == 1 && underlying(ksym_type::unknown) == 0 &&
                  underlying(ksym_type::bpf) == 1 && underlying(ksym_type::ool) == 2 &&
                  underlying(bpf_event_type::unknown) == 0 &&
                  underlying(bpf_event_type::prog_load) == 1 &&
                  underlying(bpf_event_type::prog_unload) == 2);
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

TEST_CASE("the bit of ksymbol_flags is PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER") {
    static constexpr bits_in_c wanted[] = {{"UNREGISTER", 0}};
    static_assert(has_fields<ksymbol_flags>(wanted));
    CHECK_TWICE([](auto value) {
        ksymbol_record const removed{.flags = ksymbol_flags{value(std::uint16_t{1})}};
        ksymbol_record const added{.flags = ksymbol_flags{value(std::uint16_t{0xFFFE})}};
        return removed.is_unregistered() && !added.is_unregistered();
    });
}

TEST_CASE("the records have the sizes of those in C") {
    static_assert(sizeof(record_header) == 8);
    static_assert(sizeof(comm_record) == 16);
    static_assert(sizeof(fork_record) == 32 && sizeof(exit_record) == 32);
    static_assert(sizeof(mmap2_record) == 72);
    static_assert(sizeof(mapped_inode) == 24 && sizeof(mapped_build_id) == 24);
    static_assert(sizeof(lost_record) == 24 && sizeof(lost_samples_record) == 16);
    static_assert(sizeof(throttle_record) == 32);
    static_assert(sizeof(aux_record) == 32);
    static_assert(sizeof(itrace_start_record) == 16);
    static_assert(sizeof(switch_record) == 16);
    static_assert(sizeof(ksymbol_record) == 24 && sizeof(bpf_event_record) == 24 &&
                  sizeof(text_poke_record) == 20);
    static_assert(sizeof(tracing_data_record) == 12);
    static_assert(sizeof(build_id_record) == 36);
    static_assert(sizeof(feature_record) == 16);
    static_assert(sizeof(id_index_record) == 16 && sizeof(id_index_entry) == 32);
    static_assert(sizeof(time_conv_record) == 56);
    static_assert(sizeof(auxtrace_error_record) == 120);
    static_assert(sizeof(compressed_record) == 16);
    static_assert(sizeof(auxtrace_info_record) == 16 + 18 * 8);
    static_assert(sizeof(auxtrace_record) == 48);
}

TEST_CASE("the members of the kernel's records are at the offsets that they have in C") {
    static_assert(is_at(&record_header::type, 0, 4) && is_at(&record_header::misc, 4, 2) &&
                  is_at(&record_header::size, 6, 2));
    using comm = comm_record;
    static_assert(is_at(&comm::header, 0, 8) && is_at(&comm::pid, 8, 4) &&
                  is_at(&comm::tid, 12, 4));
    using task = fork_record;
    static_assert(is_at(&task::header, 0, 8) && is_at(&task::pid, 8, 4) &&
                  is_at(&task::ppid, 12, 4) && is_at(&task::tid, 16, 4) &&
                  is_at(&task::ptid, 20, 4) && is_at(&task::time, 24, 8));
    using map = mmap2_record;
    static_assert(is_at(&map::header, 0, 8) && is_at(&map::pid, 8, 4) && is_at(&map::tid, 12, 4) &&
                  is_at(&map::addr, 16, 8) && is_at(&map::len, 24, 8) &&
                  is_at(&map::pgoff, 32, 8) && is_at(&map::inode, 40, 24) &&
                  is_at(&map::prot, 64, 4) && is_at(&map::flags, 68, 4));
    static_assert(is_at(&mapped_inode::dev_major, 0, 4) && is_at(&mapped_inode::dev_minor, 4, 4) &&
                  is_at(&mapped_inode::ino, 8, 8) && is_at(&mapped_inode::ino_generation, 16, 8));
    static_assert(is_at(&mapped_build_id::size, 0, 1) &&
                  is_at(&mapped_build_id::reserved_1, 1, 3) &&
                  is_at(&mapped_build_id::bytes, 4, 20));
    static_assert(is_at(&lost_record::header, 0, 8) && is_at(&lost_record::id, 8, 8) &&
                  is_at(&lost_record::lost, 16, 8));
    static_assert(is_at(&lost_samples_record::header, 0, 8) &&
                  is_at(&lost_samples_record::lost, 8, 8));
    using throttle = throttle_record;
    static_assert(is_at(&throttle::header, 0, 8) && is_at(&throttle::time, 8, 8) &&
                  is_at(&throttle::id, 16, 8) && is_at(&throttle::stream_id, 24, 8));
    static_assert(is_at(&aux_record::header, 0, 8) && is_at(&aux_record::aux_offset, 8, 8) &&
                  is_at(&aux_record::aux_size, 16, 8) && is_at(&aux_record::flags, 24, 8));
    static_assert(is_at(&itrace_start_record::header, 0, 8) &&
                  is_at(&itrace_start_record::pid, 8, 4) &&
                  is_at(&itrace_start_record::tid, 12, 4));
    static_assert(is_at(&switch_record::header, 0, 8) &&
                  is_at(&switch_record::next_prev_pid, 8, 4) &&
                  is_at(&switch_record::next_prev_tid, 12, 4));
    using symbol = ksymbol_record;
    static_assert(is_at(&symbol::header, 0, 8) && is_at(&symbol::addr, 8, 8) &&
                  is_at(&symbol::len, 16, 4) && is_at(&symbol::ksym_type, 20, 2) &&
                  is_at(&symbol::flags, 22, 2));
    using bpf = bpf_event_record;
    static_assert(is_at(&bpf::header, 0, 8) && is_at(&bpf::type, 8, 2) &&
                  is_at(&bpf::flags, 10, 2) && is_at(&bpf::id, 12, 4) && is_at(&bpf::tag, 16, 8));
    using poke = text_poke_record;
    static_assert(is_at(&poke::header, 0, 8) && is_at(&poke::addr, 8, 8) &&
                  is_at(&poke::old_len, 16, 2) && is_at(&poke::new_len, 18, 2));
}

TEST_CASE("the members of perf's records are at the offsets that they have in C") {
    static_assert(is_at(&tracing_data_record::header, 0, 8) &&
                  is_at(&tracing_data_record::size, 8, 4));
    static_assert(is_at(&build_id_record::header, 0, 8) && is_at(&build_id_record::pid, 8, 4) &&
                  is_at(&build_id_record::stored, 12, 24));
    static_assert(is_at(&build_id::bytes, 0, 20) && is_at(&build_id::count, 20, 1) &&
                  is_at(&build_id::reserved_1, 21, 3));
    static_assert(is_at(&feature_record::header, 0, 8) && is_at(&feature_record::feat_id, 8, 8));
    static_assert(is_at(&id_index_record::header, 0, 8) && is_at(&id_index_record::nr, 8, 8));
    using entry = id_index_entry;
    static_assert(is_at(&entry::id, 0, 8) && is_at(&entry::idx, 8, 8) &&
                  is_at(&entry::cpu, 16, 8) && is_at(&entry::tid, 24, 8));
    using conv = time_conv_record;
    static_assert(is_at(&conv::header, 0, 8) && is_at(&conv::time_shift, 8, 8) &&
                  is_at(&conv::time_mult, 16, 8) && is_at(&conv::time_zero, 24, 8) &&
                  is_at(&conv::time_cycles, 32, 8) && is_at(&conv::time_mask, 40, 8) &&
                  is_at(&conv::cap_user_time_zero, 48, 1) &&
                  is_at(&conv::cap_user_time_short, 49, 1) && is_at(&conv::reserved_1, 50, 6));
    using error = auxtrace_error_record;
    static_assert(is_at(&error::header, 0, 8) && is_at(&error::type, 8, 4) &&
                  is_at(&error::code, 12, 4) && is_at(&error::cpu, 16, 4) &&
                  is_at(&error::pid, 20, 4) && is_at(&error::tid, 24, 4) &&
                  is_at(&error::fmt, 28, 4) && is_at(&error::ip, 32, 8) &&
                  is_at(&error::time, 40, 8) && is_at(&error::msg, 48, 64) &&
                  is_at(&error::machine_pid, 112, 4) && is_at(&error::vcpu, 116, 4));
    static_assert(is_at(&compressed_record::header, 0, 8) &&
                  is_at(&compressed_record::data_size, 8, 8));
    using auxtrace = auxtrace_record;
    static_assert(is_at(&auxtrace::header, 0, 8) && is_at(&auxtrace::size, 8, 8) &&
                  is_at(&auxtrace::offset, 16, 8) && is_at(&auxtrace::reference, 24, 8) &&
                  is_at(&auxtrace::idx, 32, 4) && is_at(&auxtrace::tid, 36, 4) &&
                  is_at(&auxtrace::cpu, 40, 4) && is_at(&auxtrace::reserved_1, 44, 4));
}

TEST_CASE("the quadwords of AUXTRACE_INFO are in the order of perf") {
    using info = auxtrace_info_record;
    static_assert(is_at(&info::header, 0, 8) && is_at(&info::type, 8, 4) &&
                  is_at(&info::reserved_1, 12, 4));
    static constexpr le64 info::* wanted[] = {&info::PMU_TYPE,
                                              &info::TIME_SHIFT,
                                              &info::TIME_MULT,
                                              &info::TIME_ZERO,
                                              &info::CAP_USER_TIME_ZERO,
                                              &info::TSC_BIT,
                                              &info::NORETCOMP_BIT,
                                              &info::HAVE_SCHED_SWITCH,
                                              &info::SNAPSHOT_MODE,
                                              &info::PER_CPU_MMAPS,
                                              &info::MTC_BIT,
                                              &info::MTC_FREQ_BITS,
                                              &info::TSC_CTC_N,
                                              &info::TSC_CTC_D,
                                              &info::CYC_BIT,
                                              &info::MAX_NONTURBO_RATIO,
                                              &info::FILTER_STR_LEN,
                                              &info::CAP_EVENT_TRACE};
    CHECK_TWICE([](auto value) {
        bool right = true;
        for (std::size_t i = value(std::size_t{0}); i < 18; ++i) {
            right = right && is_at(wanted[i], 16 + 8 * i, 8);
        }
        return right;
    });
}

TEST_CASE("a build id has at most 20 bytes, and a MMAP has none") {
    CHECK_TWICE([](auto value) {
        build_id const two{.bytes = {1, 2}, .count = value(std::uint8_t{2})};
        build_id const many{.bytes = {1, 2}, .count = value(std::uint8_t{21})};
        mmap2_record of;
        of.header.misc = misc_mmap_build_id;
        bool const has = of.has_build_id();
        of.header.type = record_type::mmap;
        return two.size() == 2 && many.size() == 20 && has && !of.has_build_id() &&
               of.id().size() == 0;
    });
}
