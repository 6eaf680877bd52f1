// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/byte_layout.hpp>
#include <ptspec/base/word.hpp>

/// The head of a perf.data file, and the attributes of its events.
///
/// Each structure is declared once, with the members that it has in Linux, in their order and with
/// their names.
namespace ptspec::file::perf_data {

/// `perf_event_attr.sample_type`: the members of a SAMPLE, and of the trailer of other records.
///
/// Shape:  64 bits.
/// Source: Linux, include/uapi/linux/perf_event.h, `perf_event_sample_format`.
struct sample_type : bit_word<sample_type, uint64_t> {
    struct IP : flag<0> {};
    struct TID : flag<1> {};
    struct TIME : flag<2> {};
    struct ADDR : flag<3> {};
    struct READ : flag<4> {};
    struct CALLCHAIN : flag<5> {};
    struct ID : flag<6> {};
    struct CPU : flag<7> {};
    struct PERIOD : flag<8> {};
    struct STREAM_ID : flag<9> {};
    struct RAW : flag<10> {};
    struct BRANCH_STACK : flag<11> {};
    struct REGS_USER : flag<12> {};
    struct STACK_USER : flag<13> {};
    struct WEIGHT : flag<14> {};
    struct DATA_SRC : flag<15> {};
    struct IDENTIFIER : flag<16> {};
    struct TRANSACTION : flag<17> {};
    struct REGS_INTR : flag<18> {};
    struct PHYS_ADDR : flag<19> {};
    struct AUX : flag<20> {};
    struct CGROUP : flag<21> {};
    struct DATA_PAGE_SIZE : flag<22> {};
    struct CODE_PAGE_SIZE : flag<23> {};
    struct WEIGHT_STRUCT : flag<24> {};

    // clang-format off
    struct layout : bit_layout<64,
        IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCH_STACK,
        REGS_USER, STACK_USER, WEIGHT, DATA_SRC, IDENTIFIER, TRANSACTION, REGS_INTR, PHYS_ADDR,
        AUX, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE, WEIGHT_STRUCT, reserved<63, 25>> {};
    // clang-format on
};

/// `perf_event_attr.read_format`: what the counter values of a SAMPLE consist of.
///
/// Shape:  64 bits.
/// Source: Linux, include/uapi/linux/perf_event.h, `perf_event_read_format`.
struct read_format : bit_word<read_format, uint64_t> {
    struct TOTAL_TIME_ENABLED : flag<0> {};
    struct TOTAL_TIME_RUNNING : flag<1> {};
    struct ID : flag<2> {};
    struct GROUP : flag<3> {};
    struct LOST : flag<4> {};

    // clang-format off
    struct layout : bit_layout<64,
        TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING, ID, GROUP, LOST, reserved<63, 5>> {};
    // clang-format on
};

/// The bit-fields of `perf_event_attr`, as one word.
///
/// Shape:  64 bits, at byte 40 of the structure.
/// Source: Linux, include/uapi/linux/perf_event.h.
struct attr_flags : bit_word<attr_flags, uint64_t> {
    struct disabled : flag<0> {};
    struct inherit : flag<1> {};
    struct pinned : flag<2> {};
    struct exclusive : flag<3> {};
    struct exclude_user : flag<4> {};
    struct exclude_kernel : flag<5> {};
    struct exclude_hv : flag<6> {};
    struct exclude_idle : flag<7> {};
    struct mmap : flag<8> {};
    struct comm : flag<9> {};
    struct freq : flag<10> {};
    struct inherit_stat : flag<11> {};
    struct enable_on_exec : flag<12> {};
    struct task : flag<13> {};  ///< the file has FORK and EXIT records
    struct watermark : flag<14> {};
    struct precise_ip : field<16, 15> {};
    struct mmap_data : flag<17> {};
    struct sample_id_all : flag<18> {};  ///< records of the kernel have a trailer
    struct exclude_host : flag<19> {};
    struct exclude_guest : flag<20> {};
    struct exclude_callchain_kernel : flag<21> {};
    struct exclude_callchain_user : flag<22> {};
    struct mmap2 : flag<23> {};
    struct comm_exec : flag<24> {};
    struct use_clockid : flag<25> {};
    struct context_switch : flag<26> {};
    struct write_backward : flag<27> {};
    struct namespaces : flag<28> {};
    struct ksymbol : flag<29> {};
    struct bpf_event : flag<30> {};
    struct aux_output : flag<31> {};
    struct cgroup : flag<32> {};
    struct text_poke : flag<33> {};
    struct build_id : flag<34> {};
    struct inherit_thread : flag<35> {};
    struct remove_on_exec : flag<36> {};
    struct sigtrap : flag<37> {};

    // clang-format off
    struct layout : bit_layout<64,
        disabled, inherit, pinned, exclusive, exclude_user, exclude_kernel, exclude_hv,
        exclude_idle, mmap, comm, freq, inherit_stat, enable_on_exec, task, watermark, precise_ip,
        mmap_data, sample_id_all, exclude_host, exclude_guest, exclude_callchain_kernel,
        exclude_callchain_user, mmap2, comm_exec, use_clockid, context_switch, write_backward,
        namespaces, ksymbol, bpf_event, aux_output, cgroup, text_poke, build_id, inherit_thread,
        remove_on_exec, sigtrap, reserved<63, 38>> {};
    // clang-format on
};

/// Features that a file can have: bits of `adds_features`, and `feat_id` of HEADER_FEATURE.
///
/// Source: Linux, tools/perf/util/header.h.
enum class feature_id : uint8_t {
    build_id = 2,
    cpuid = 9,
    pmu_mappings = 16,
    auxtrace = 18,
    dir_format = 24,
    bpf_prog_info = 25,
    compressed = 27,
};

/// `perf_file_section`.
struct section {
    le64 offset{};  ///< in the file
    le64 size{};
};

/// `perf_file_header`, at byte 0 of the file.
///
/// Source: Linux, tools/perf/util/header.h.
struct file_header {
    static constexpr uint64_t magic_value = 0x3245'4C49'4652'4550;  ///< "PERFILE2"
    /// "2ELIFREP", by a processor with the other byte order.
    static constexpr uint64_t swapped_magic_value = 0x5045'5246'494C'4532;
    static constexpr uint64_t old_magic_value = 0x454C'4946'4652'4550;  ///< "PERFFILE"
    static constexpr size_t pipe_size = 16;         ///< pipe layout: magic and size only
    static constexpr size_t featureless_size = 72;  ///< old files: without adds_features

    le64 magic{};
    le64 size{};
    le64 attr_size{};  ///< of a `perf_event_attr` and the section of its ids
    section attrs{};
    section data{};
    section event_types{};
    le64 adds_features[4]{};
};
static_assert(file_header::pipe_size == offsetof(file_header, attr_size));
static_assert(file_header::featureless_size == offsetof(file_header, adds_features));

/// `perf_event_attr` of version 9: what was recorded. A file may have a shorter one, of `size`
/// bytes.
///
/// Source: Linux, include/uapi/linux/perf_event.h.
struct perf_event_attr {
    static constexpr uint32_t first_size = 64;  ///< PERF_ATTR_SIZE_VER0; `size` 0 means the same
    static constexpr uint32_t size_of_writer = 128;  ///< PERF_ATTR_SIZE_VER7

    le32 type{};
    le32 size{};
    le64 config{};
    le64 sample_period{};
    little_endian<perf_data::sample_type> sample_type{};
    little_endian<perf_data::read_format> read_format{};
    little_endian<attr_flags> flags{};
    le32 wakeup{};  ///< `wakeup_events` or `wakeup_watermark`
    le32 bp_type{};
    le64 config1{};
    le64 config2{};
    le64 branch_sample_type{};
    le64 sample_regs_user{};
    le32 sample_stack_user{};
    le32 clockid{};
    le64 sample_regs_intr{};
    le32 aux_watermark{};
    le16 sample_max_stack{};
    le16 reserved_2{};
    le32 aux_sample_size{};
    le32 aux_action{};  ///< aux_start_paused, aux_pause, aux_resume
    le64 sig_data{};
    le64 config3{};
    le64 config4{};
};
static_assert(perf_event_attr::first_size == offsetof(perf_event_attr, config2));
static_assert(perf_event_attr::size_of_writer == offsetof(perf_event_attr, config3));

}  // namespace ptspec::file::perf_data
