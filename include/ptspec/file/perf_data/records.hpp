// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/byte_layout.hpp>
#include <ptspec/base/word.hpp>

/// perf.data, the file of Linux perf: its header, its attributes, and the records that a trace of
/// Intel PT needs.
namespace ptspec::file::perf_data {

// ------------------------------------------------------------------------------------ constants

/// `perf_event_header.type`. From 64 on the types belong to perf, below to the kernel.
///
/// Source: Linux, include/uapi/linux/perf_event.h; tools/lib/perf/include/perf/event.h.
enum class record_type : uint32_t {
    mmap = 1,
    lost = 2,
    comm = 3,
    exit = 4,
    throttle = 5,
    unthrottle = 6,
    fork = 7,
    read = 8,
    sample = 9,
    mmap2 = 10,
    aux = 11,
    itrace_start = 12,
    lost_samples = 13,
    context_switch = 14,  ///< SWITCH
    switch_cpu_wide = 15,
    namespaces = 16,
    ksymbol = 17,
    bpf_event = 18,
    cgroup = 19,
    text_poke = 20,
    aux_output_hw_id = 21,
    header_attr = 64,
    header_event_type = 65,
    header_tracing_data = 66,
    header_build_id = 67,
    finished_round = 68,
    id_index = 69,
    auxtrace_info = 70,
    auxtrace = 71,
    auxtrace_error = 72,
    time_conv = 79,
    header_feature = 80,
    compressed = 81,
    finished_init = 82,
    compressed2 = 83,
    bpf_metadata = 84,
    schedstat_cpu = 85,
    schedstat_domain = 86,
};

/// The first type of a record that perf writes itself. Records below it are of the kernel, or made
/// in the same form.
inline constexpr uint32_t first_type_of_perf = 64;

/// Bits of `perf_event_header.misc`.
inline constexpr uint16_t misc_cpumode = 7;                   ///< PERF_RECORD_MISC_CPUMODE_MASK
inline constexpr uint16_t misc_user = 2;                      ///< PERF_RECORD_MISC_USER
inline constexpr uint16_t misc_guest_kernel = 4;              ///< PERF_RECORD_MISC_GUEST_KERNEL
inline constexpr uint16_t misc_guest_user = 5;                ///< PERF_RECORD_MISC_GUEST_USER
inline constexpr uint16_t misc_fork_exec = 1 << 13;           ///< PERF_RECORD_MISC_FORK_EXEC
inline constexpr uint16_t misc_comm_exec = 1 << 13;           ///< PERF_RECORD_MISC_COMM_EXEC
inline constexpr uint16_t misc_mmap_data = 1 << 13;           ///< PERF_RECORD_MISC_MMAP_DATA
inline constexpr uint16_t misc_switch_out = 1 << 13;          ///< PERF_RECORD_MISC_SWITCH_OUT
inline constexpr uint16_t misc_switch_out_preempt = 1 << 14;  ///< ..._MISC_SWITCH_OUT_PREEMPT
inline constexpr uint16_t misc_mmap_build_id = 1 << 14;       ///< PERF_RECORD_MISC_MMAP_BUILD_ID
inline constexpr uint16_t misc_build_id_size = 1 << 15;       ///< PERF_RECORD_MISC_BUILD_ID_SIZE

/// Bits of `prot` of a MMAP2 record, and of its `flags`: those of mmap(2) on Linux.
inline constexpr uint32_t prot_read = 1;
inline constexpr uint32_t prot_write = 2;
inline constexpr uint32_t prot_exec = 4;
inline constexpr uint32_t map_private = 2;

/// `perf_record_auxtrace_info.type` of Intel PT.
inline constexpr uint32_t auxtrace_intel_pt = 1;
/// `cpu` of a trace that belongs to a thread, not to a processor.
inline constexpr uint32_t no_cpu = 0xFFFF'FFFF;

/// PATH_MAX and TASK_COMM_LEN of Linux. The terminating NUL counts.
inline constexpr size_t path_max = 4096;
inline constexpr size_t task_comm_len = 16;

/// `perf_event_attr.sample_type`: what a sample holds, and the end of each record.
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
    struct sample_id_all : flag<18> {};  ///< records of the kernel end as `sample_type` says
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

/// `flags` of a AUX record.
///
/// Shape:  64 bits.
/// Source: Linux, include/uapi/linux/perf_event.h, `PERF_AUX_FLAG_TRUNCATED`.
struct aux_flags : bit_word<aux_flags, uint64_t> {
    struct TRUNCATED : flag<0> {};  ///< the buffer was full: trace is missing after these bytes
    struct OVERWRITE : flag<1> {};  ///< the bytes are a snapshot of a ring
    struct PARTIAL : flag<2> {};    ///< the record has gaps: tracing was off for a while
    struct COLLISION : flag<3> {};
    struct PMU_FORMAT_TYPE : field<15, 8> {};

    // clang-format off
    struct layout : bit_layout<64,
        TRUNCATED, OVERWRITE, PARTIAL, COLLISION, reserved<7, 4>, PMU_FORMAT_TYPE,
        reserved<63, 16>> {};
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
    compressed = 27,
};

// ------------------------------------------------------------------------------------ layouts

/// The members of the file's structures, spelled as in Linux.
///
/// Source: Linux, include/uapi/linux/perf_event.h; tools/perf/util/header.h and intel-pt.h;
///         tools/lib/perf/include/perf/event.h.
namespace layout {

/// `perf_file_header`, at byte 0 of the file. A section is an offset in the file and a size.
struct file_header {
    static constexpr uint64_t magic_value = 0x3245'4C49'4652'4550;  ///< "PERFILE2"
    /// "2ELIFREP", by a processor with the other byte order.
    static constexpr uint64_t swapped_magic_value = 0x5045'5246'494C'4532;
    static constexpr uint64_t old_magic_value = 0x454C'4946'4652'4550;  ///< "PERFFILE"
    static constexpr size_t pipe_size = 16;         ///< pipe layout: magic and header_size only
    static constexpr size_t featureless_size = 72;  ///< old files: without adds_features

    struct magic : member<0, uint64_t> {};
    struct header_size : member<8, uint64_t> {};
    struct attr_size : member<16, uint64_t> {};  ///< of one `file_attr`
    struct attrs_offset : member<24, uint64_t> {};
    struct attrs_size : member<32, uint64_t> {};
    struct data_offset : member<40, uint64_t> {};
    struct data_size : member<48, uint64_t> {};
    struct event_types : gap<56, 71> {};
    struct adds_features : gap<72, 103> {};
    struct bytes : byte_layout<magic, header_size, attr_size, attrs_offset, attrs_size, data_offset,
                               data_size, event_types, adds_features> {};
};

/// `perf_event_attr` of version 9. A file may have a shorter one, of `size` bytes.
struct attr {
    static constexpr uint32_t first_size = 64;  ///< PERF_ATTR_SIZE_VER0; `size` 0 means the same

    struct type : member<0, uint32_t> {};
    struct size : member<4, uint32_t> {};
    struct config : member<8, uint64_t> {};
    struct sample_period : member<16, uint64_t> {};
    struct sample_type : member<24, uint64_t> {};
    struct read_format : member<32, uint64_t> {};
    struct flags : member<40, uint64_t> {};
    struct wakeup : member<48, uint32_t> {};  ///< `wakeup_events` or `wakeup_watermark`
    struct bp_type : member<52, uint32_t> {};
    struct config1 : member<56, uint64_t> {};
    struct config2 : member<64, uint64_t> {};
    struct branch_sample_type : member<72, uint64_t> {};
    struct sample_regs_user : member<80, uint64_t> {};
    struct sample_stack_user : member<88, uint32_t> {};
    struct clockid : member<92, uint32_t> {};
    struct sample_regs_intr : member<96, uint64_t> {};
    struct aux_watermark : member<104, uint32_t> {};
    struct sample_max_stack : member<108, uint16_t> {};
    struct reserved_2 : member<110, uint16_t> {};
    struct aux_sample_size : member<112, uint32_t> {};
    struct aux_action : member<116, uint32_t> {};  ///< aux_start_paused, aux_pause, aux_resume
    struct sig_data : member<120, uint64_t> {};
    struct config3 : member<128, uint64_t> {};
    struct config4 : member<136, uint64_t> {};
    struct bytes
        : byte_layout<type, size, config, sample_period, sample_type, read_format, flags, wakeup,
                      bp_type, config1, config2, branch_sample_type, sample_regs_user,
                      sample_stack_user, clockid, sample_regs_intr, aux_watermark, sample_max_stack,
                      reserved_2, aux_sample_size, aux_action, sig_data, config3, config4> {};
};

/// `perf_file_section`: an offset in the file, and a size.
struct section {
    struct offset : member<0, uint64_t> {};
    struct size : member<8, uint64_t> {};
    struct bytes : byte_layout<offset, size> {};
};

/// `perf_file_attr`: a `perf_event_attr` of version 7, and the section of its ids.
struct file_attr {
    static constexpr uint32_t size_value = 128;

    struct type : member<0, uint32_t> {};
    struct size : member<4, uint32_t> {};
    struct config : member<8, uint64_t> {};
    struct sample_period : member<16, uint64_t> {};
    struct sample_type : member<24, uint64_t> {};
    struct read_format : member<32, uint64_t> {};
    struct flags : member<40, uint64_t> {};
    struct others : gap<48, 127> {};
    struct ids_offset : member<128, uint64_t> {};
    struct ids_size : member<136, uint64_t> {};
    struct bytes : byte_layout<type, size, config, sample_period, sample_type, read_format, flags,
                               others, ids_offset, ids_size> {};
};

/// `perf_event_header`, the beginning of every record.
struct record_header {
    struct type : member<0, uint32_t> {};
    struct misc : member<4, uint16_t> {};
    struct size : member<6, uint16_t> {};  ///< of the record, without the trace after an AUXTRACE
    struct bytes : byte_layout<type, misc, size> {};
};
using header = gap<0, 7>;  ///< where a record has its `record_header`

/// PERF_RECORD_COMM. The name follows, with its NUL, padded to 8 bytes.
struct comm {
    struct pid : member<8, uint32_t> {};
    struct tid : member<12, uint32_t> {};
    struct bytes : byte_layout<header, pid, tid> {};
};

/// PERF_RECORD_FORK and PERF_RECORD_EXIT.
struct task {
    struct pid : member<8, uint32_t> {};
    struct ppid : member<12, uint32_t> {};
    struct tid : member<16, uint32_t> {};
    struct ptid : member<20, uint32_t> {};
    struct time : member<24, uint64_t> {};
    struct bytes : byte_layout<header, pid, ppid, tid, ptid, time> {};
};

/// PERF_RECORD_MMAP2. The file name follows, with its NUL, padded to 8 bytes.
struct mmap2 {
    struct pid : member<8, uint32_t> {};
    struct tid : member<12, uint32_t> {};
    struct addr : member<16, uint64_t> {};
    struct len : member<24, uint64_t> {};
    struct pgoff : member<32, uint64_t> {};
    struct dev_major : member<40, uint32_t> {};  ///< `maj` in Linux
    struct dev_minor : member<44, uint32_t> {};  ///< `min` in Linux
    struct ino : member<48, uint64_t> {};
    struct ino_generation : member<56, uint64_t> {};
    struct prot : member<64, uint32_t> {};
    struct flags : member<68, uint32_t> {};
    struct bytes : byte_layout<header, pid, tid, addr, len, pgoff, dev_major, dev_minor, ino,
                               ino_generation, prot, flags> {};
};

/// PERF_RECORD_MMAP. The file name follows.
struct mmap {
    struct pid : member<8, uint32_t> {};
    struct tid : member<12, uint32_t> {};
    struct addr : member<16, uint64_t> {};
    struct len : member<24, uint64_t> {};
    struct pgoff : member<32, uint64_t> {};
    struct bytes : byte_layout<header, pid, tid, addr, len, pgoff> {};
};

/// PERF_RECORD_MMAP2 with a build id in place of device and inode, as `misc_mmap_build_id` says.
struct mmap2_build_id {
    static constexpr size_t longest = 20;

    struct until_size : gap<0, 39> {};
    struct build_id_size : member<40, uint8_t> {};
    struct reserved_1 : gap<41, 43> {};
    struct build_id : gap<44, 63> {};
    struct prot : member<64, uint32_t> {};
    struct flags : member<68, uint32_t> {};
    struct bytes : byte_layout<until_size, build_id_size, reserved_1, build_id, prot, flags> {};
};

/// PERF_RECORD_LOST.
struct lost {
    struct id : member<8, uint64_t> {};
    struct count : member<16, uint64_t> {};  ///< `lost` in Linux
    struct bytes : byte_layout<header, id, count> {};
};

/// PERF_RECORD_LOST_SAMPLES.
struct lost_samples {
    struct count : member<8, uint64_t> {};
    struct bytes : byte_layout<header, count> {};
};

/// PERF_RECORD_THROTTLE and PERF_RECORD_UNTHROTTLE.
struct throttle {
    struct time : member<8, uint64_t> {};
    struct id : member<16, uint64_t> {};
    struct stream_id : member<24, uint64_t> {};
    struct bytes : byte_layout<header, time, id, stream_id> {};
};

/// PERF_RECORD_AUX.
struct aux {
    struct aux_offset : member<8, uint64_t> {};
    struct aux_size : member<16, uint64_t> {};
    struct flags : member<24, uint64_t> {};
    struct bytes : byte_layout<header, aux_offset, aux_size, flags> {};
};

/// PERF_RECORD_ITRACE_START.
struct itrace_start {
    struct pid : member<8, uint32_t> {};
    struct tid : member<12, uint32_t> {};
    struct bytes : byte_layout<header, pid, tid> {};
};

/// PERF_RECORD_SWITCH_CPU_WIDE. PERF_RECORD_SWITCH is only a header.
struct switch_cpu_wide {
    struct next_prev_pid : member<8, uint32_t> {};
    struct next_prev_tid : member<12, uint32_t> {};
    struct bytes : byte_layout<header, next_prev_pid, next_prev_tid> {};
};

/// PERF_RECORD_HEADER_ATTR. A `perf_event_attr` follows, then the ids up to the end.
struct header_attr {
    static constexpr size_t attr_offset = 8;
};

/// PERF_RECORD_HEADER_TRACING_DATA. `data_size` bytes follow the record.
struct header_tracing_data {
    struct data_size : member<8, uint32_t> {};
    struct bytes : byte_layout<header, data_size> {};
};

/// PERF_RECORD_HEADER_BUILD_ID, and an entry of the feature BUILD_ID. The file name follows.
struct header_build_id {
    static constexpr size_t longest = 20;

    struct pid : member<8, uint32_t> {};
    struct build_id : gap<12, 31> {};
    struct build_id_size : member<32, uint8_t> {};  ///< if `misc_build_id_size` is set; else 20
    struct reserved_1 : gap<33, 35> {};
    struct bytes : byte_layout<header, pid, build_id, build_id_size, reserved_1> {};
};

/// PERF_RECORD_HEADER_FEATURE. The data of the feature follow.
struct header_feature {
    struct feat_id : member<8, uint64_t> {};
    struct bytes : byte_layout<header, feat_id> {};
};

/// PERF_RECORD_ID_INDEX. `nr` entries follow.
struct id_index {
    struct nr : member<8, uint64_t> {};
    struct bytes : byte_layout<header, nr> {};
};
struct id_index_entry {
    struct id : member<0, uint64_t> {};
    struct idx : member<8, uint64_t> {};
    struct cpu : member<16, uint64_t> {};
    struct tid : member<24, uint64_t> {};
    struct bytes : byte_layout<id, idx, cpu, tid> {};
};

/// PERF_RECORD_TIME_CONV. Old files end after `time_zero`.
struct time_conv {
    struct time_shift : member<8, uint64_t> {};
    struct time_mult : member<16, uint64_t> {};
    struct time_zero : member<24, uint64_t> {};
    struct time_cycles : member<32, uint64_t> {};
    struct time_mask : member<40, uint64_t> {};
    struct cap_user_time_zero : member<48, uint8_t> {};
    struct cap_user_time_short : member<49, uint8_t> {};
    struct reserved_1 : gap<50, 55> {};
    struct bytes : byte_layout<header, time_shift, time_mult, time_zero, time_cycles, time_mask,
                               cap_user_time_zero, cap_user_time_short, reserved_1> {};
    static constexpr size_t old_size = time_zero::end;
};

/// PERF_RECORD_AUXTRACE_ERROR. Old files have no `time`, and no members after the message.
struct auxtrace_error {
    struct type : member<8, uint32_t> {};
    struct code : member<12, uint32_t> {};
    struct cpu : member<16, uint32_t> {};
    struct pid : member<20, uint32_t> {};
    struct tid : member<24, uint32_t> {};
    struct fmt : member<28, uint32_t> {};  ///< 0: the message is in place of `time`
    struct ip : member<32, uint64_t> {};
    struct time : member<40, uint64_t> {};
    struct msg : gap<48, 111> {};
    struct machine_pid : member<112, uint32_t> {};
    struct vcpu : member<116, uint32_t> {};
    struct bytes
        : byte_layout<header, type, code, cpu, pid, tid, fmt, ip, time, msg, machine_pid, vcpu> {};
    static constexpr size_t old_size = ip::end;
    static constexpr size_t longest = 64;  ///< MAX_AUXTRACE_ERROR_MSG
};

/// PERF_RECORD_COMPRESSED2. Zstandard data follow, padded to 8 bytes. In PERF_RECORD_COMPRESSED
/// they follow the header.
struct compressed2 {
    struct data_size : member<8, uint64_t> {};
    struct bytes : byte_layout<header, data_size> {};
};

/// PERF_RECORD_AUXTRACE_INFO of Intel PT. If FILTER_STR_LEN is not 0, the filter follows it, with
/// its NUL, padded to 8 bytes. CAP_EVENT_TRACE, a quadword, is the last.
struct auxtrace_info {
    struct type : member<8, uint32_t> {};
    struct reserved_1 : member<12, uint32_t> {};
    struct PMU_TYPE : member<16, uint64_t> {};
    struct TIME_SHIFT : member<24, uint64_t> {};
    struct TIME_MULT : member<32, uint64_t> {};
    struct TIME_ZERO : member<40, uint64_t> {};
    struct CAP_USER_TIME_ZERO : member<48, uint64_t> {};
    struct TSC_BIT : member<56, uint64_t> {};
    struct NORETCOMP_BIT : member<64, uint64_t> {};
    struct HAVE_SCHED_SWITCH : member<72, uint64_t> {};
    struct SNAPSHOT_MODE : member<80, uint64_t> {};
    struct PER_CPU_MMAPS : member<88, uint64_t> {};
    struct MTC_BIT : member<96, uint64_t> {};
    struct MTC_FREQ_BITS : member<104, uint64_t> {};
    struct TSC_CTC_N : member<112, uint64_t> {};
    struct TSC_CTC_D : member<120, uint64_t> {};
    struct CYC_BIT : member<128, uint64_t> {};
    struct MAX_NONTURBO_RATIO : member<136, uint64_t> {};
    struct FILTER_STR_LEN : member<144, uint64_t> {};  ///< without the NUL
    struct bytes : byte_layout<header, type, reserved_1, PMU_TYPE, TIME_SHIFT, TIME_MULT, TIME_ZERO,
                               CAP_USER_TIME_ZERO, TSC_BIT, NORETCOMP_BIT, HAVE_SCHED_SWITCH,
                               SNAPSHOT_MODE, PER_CPU_MMAPS, MTC_BIT, MTC_FREQ_BITS, TSC_CTC_N,
                               TSC_CTC_D, CYC_BIT, MAX_NONTURBO_RATIO, FILTER_STR_LEN> {};
};

/// PERF_RECORD_AUXTRACE. `trace_size` bytes of trace follow the record.
struct auxtrace {
    struct trace_size : member<8, uint64_t> {};
    struct offset : member<16, uint64_t> {};
    struct reference : member<24, uint64_t> {};
    struct idx : member<32, uint32_t> {};
    struct tid : member<36, uint32_t> {};
    struct cpu : member<40, uint32_t> {};
    struct reserved_1 : member<44, uint32_t> {};
    struct bytes : byte_layout<header, trace_size, offset, reference, idx, tid, cpu, reserved_1> {};
};

/// The end of a record of the kernel, where `sample_type` has TID and IDENTIFIER.
struct sample_id {
    struct pid : member<0, uint32_t> {};
    struct tid : member<4, uint32_t> {};
    struct id : member<8, uint64_t> {};
    struct bytes : byte_layout<pid, tid, id> {};
};
/// The same, where `sample_type` has TIME also.
struct timed_sample_id {
    struct pid : member<0, uint32_t> {};
    struct tid : member<4, uint32_t> {};
    struct time : member<8, uint64_t> {};
    struct id : member<16, uint64_t> {};
    struct bytes : byte_layout<pid, tid, time, id> {};
};

}  // namespace layout

// ------------------------------------------------------------------------------------ values

struct thread_id {
    uint32_t pid = 0;
    uint32_t tid = 0;

    friend constexpr auto operator==(thread_id const&, thread_id const&) -> bool = default;
};

/// PERF_RECORD_COMM: the name of a thread.
///
/// Units:  `time` is in nanoseconds; only timed files have it.
struct comm_record {
    thread_id thread{};
    text name{};
    bool exec = false;  ///< execve gave the name
    uint64_t time = 0;
};

/// PERF_RECORD_FORK: a new thread, or a new process.
struct fork_record {
    thread_id thread{};
    thread_id parent{};
    uint64_t time = 0;
};

/// PERF_RECORD_EXIT: the end of a thread.
struct exit_record {
    thread_id thread{};
    thread_id parent{};
    uint64_t time = 0;
};

/// PERF_RECORD_MMAP2: code of user space that is mapped from a file.
///
/// Units:  `len` and `pgoff` are in bytes. perf reads the code from the ELF file `filename`, where
///         `addr` is at `pgoff`.
struct mmap2_record {
    thread_id thread{};
    uint64_t addr = 0;
    uint64_t len = 0;
    uint64_t pgoff = 0;
    uint32_t dev_major = 0;
    uint32_t dev_minor = 0;
    uint64_t ino = 0;
    uint64_t ino_generation = 0;
    uint32_t prot = prot_read | prot_exec;
    uint32_t flags = map_private;
    text filename{};
    uint64_t time = 0;
    bool has_build_id = false;  ///< in place of device and inode: see `with_build_id`
};
/// The record with a build id of up to 20 bytes in place of device and inode. Others are cut.
[[nodiscard]] constexpr auto with_build_id(mmap2_record of, byte_view id) noexcept -> mmap2_record {
    uint8_t bytes[layout::mmap2_build_id::longest] = {};
    auto const kept = id.first(sizeof bytes);
    copy_bytes(bytes, kept.data(), kept.size());
    of.dev_major = static_cast<uint32_t>(kept.size());
    of.dev_minor = static_cast<uint32_t>(load_le64(bytes) & low_bits(32));
    of.ino = load_le64(bytes + 4);
    of.ino_generation = load_le64(bytes + 12);
    of.has_build_id = true;
    return of;
}

/// PERF_RECORD_AUXTRACE: a piece of a trace.
///
/// Units:  `size` and `offset` are in bytes, `reference` in TSC ticks. TSC packets have 56 bits of
///         the TSC; perf takes the others from `reference`. In a timed file it must not be 0: it is
///         the TSC of the first TSC packet of the piece, where the program knows no better time.
struct auxtrace_record {
    uint64_t size = 0;
    uint64_t offset = 0;     ///< of the piece in its trace
    uint64_t reference = 0;  ///< about the time when it was stored; 0 only in a file without times
    uint32_t idx = 0;        ///< of the trace: 0, 1, ... Pieces of one trace have the same tid
    uint32_t tid = 0;
    uint32_t cpu = no_cpu;
};

}  // namespace ptspec::file::perf_data
