// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/head.hpp>

/// The records of a perf.data file that a trace of Intel PT needs.
///
/// Each structure is declared once, with the members that it has in Linux, in their order and with
/// their names. `read_as` and `writer` copy it whole. Only the members of `sample_record` depend on
/// the event.
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
inline constexpr uint16_t misc_kernel = 1;                    ///< PERF_RECORD_MISC_KERNEL
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

/// `flags` of a KSYMBOL record.
///
/// Shape:  16 bits.
/// Source: Linux, include/uapi/linux/perf_event.h, `PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`.
struct ksymbol_flags : bit_word<ksymbol_flags, uint16_t> {
    struct UNREGISTER : flag<0> {};
    struct layout : bit_layout<16, UNREGISTER, reserved<15, 1>> {};
};

/// Source: Linux, include/uapi/linux/perf_event.h, `perf_record_ksymbol_type`.
enum class ksym_type : uint16_t {
    unknown = 0,
    bpf = 1,
    ool = 2,  ///< out of line: of kprobes and ftrace, whose code TEXT_POKE records have
};

/// `type` of a BPF_EVENT record.
///
/// Source: Linux, include/uapi/linux/perf_event.h, `perf_bpf_event_type`.
enum class bpf_event_type : uint16_t {
    unknown = 0,
    prog_load = 1,
    prog_unload = 2,
};

// ------------------------------------------------------------------------------------ records
// Source: Linux, include/uapi/linux/perf_event.h; tools/lib/perf/include/perf/event.h.

/// `perf_event_header`, the beginning of every record.
struct record_header {
    little_endian<record_type> type{};
    le16 misc{};
    le16 size{};  ///< of the record, without the trace after an AUXTRACE

    [[nodiscard]] constexpr auto has(uint16_t misc_bit) const noexcept -> bool {
        return (misc & misc_bit) != 0;
    }
};

namespace detail {

/// The record type in the `header` of a structure: the type that the writer writes.
template <class Record>
inline constexpr record_type type_of = Record{}.header.type;

}  // namespace detail

/// A record type, and the size of the members that each record of this type has.
struct record_form {
    record_type type;
    size_t size;
};
/// The record types that a structure is for.
template <class Record>
inline constexpr record_form forms_of[1] = {{detail::type_of<Record>, sizeof(Record)}};

struct thread_id {
    uint32_t pid = 0;
    uint32_t tid = 0;

    friend constexpr auto operator==(thread_id const&, thread_id const&) -> bool = default;
};

/// The thread that a record names.
template <class Record>
[[nodiscard]] constexpr auto thread_of(Record const& record) noexcept -> thread_id {
    return {record.pid, record.tid};
}

/// PERF_RECORD_COMM, the name of a thread, which follows with its NUL, padded to 8 bytes.
struct comm_record {
    record_header header{record_type::comm};
    le32 pid{};
    le32 tid{};

    /// True if execve gave the name.
    [[nodiscard]] constexpr auto is_exec() const noexcept -> bool {
        return header.has(misc_comm_exec);
    }
};

/// PERF_RECORD_FORK and PERF_RECORD_EXIT: a new thread or process, and the end of a thread.
///
/// Units:  `time` is in nanoseconds.
template <record_type Type>
struct task_record {
    record_header header{Type};
    le32 pid{};
    le32 ppid{};
    le32 tid{};
    le32 ptid{};
    le64 time{};

    [[nodiscard]] constexpr auto parent() const noexcept -> thread_id { return {ppid, ptid}; }
};
using fork_record = task_record<record_type::fork>;
using exit_record = task_record<record_type::exit>;

/// A build id, as PERF_RECORD_HEADER_BUILD_ID has it.
struct build_id {
    uint8_t bytes[20]{};
    uint8_t count = 0;  ///< `size` in perf
    uint8_t reserved_1[3]{};

    [[nodiscard]] constexpr auto data() const noexcept -> uint8_t const* { return bytes; }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t {
        return count < sizeof bytes ? count : sizeof bytes;
    }
};

/// The file of a mapping.
struct mapped_inode {
    le32 dev_major{};  ///< `maj` in Linux
    le32 dev_minor{};  ///< `min` in Linux
    le64 ino{};
    le64 ino_generation{};
};
/// The bytes of `mapped_inode` if `misc_mmap_build_id` is set.
struct mapped_build_id {
    uint8_t size = 0;
    uint8_t reserved_1[3]{};
    uint8_t bytes[20]{};
};

/// PERF_RECORD_MMAP2, a mapping of a file, and PERF_RECORD_MMAP, which has the members before
/// `inode`. The file name follows, with its NUL, padded to 8 bytes.
///
/// Units:  `len` and `pgoff` are in bytes. perf reads the code from the ELF file, where `addr` is
///         at `pgoff`.
struct mmap2_record {
    record_header header{record_type::mmap2, misc_user};
    le32 pid{};  ///< FFFFFFFFH: the kernel
    le32 tid{};
    le64 addr{};
    le64 len{};
    le64 pgoff{};
    mapped_inode inode{};  ///< valid unless `has_build_id()`
    le32 prot = prot_read | prot_exec;
    le32 flags = map_private;

    /// True for MMAP2: the members from `inode` on are valid.
    [[nodiscard]] constexpr auto is_mmap2() const noexcept -> bool {
        return header.type == record_type::mmap2;
    }
    /// True for a MMAP of memory that is not executable.
    [[nodiscard]] constexpr auto is_data() const noexcept -> bool {
        return header.has(misc_mmap_data);
    }
    [[nodiscard]] constexpr auto has_build_id() const noexcept -> bool {
        return is_mmap2() && header.has(misc_mmap_build_id);
    }
    /// The build id of the file; empty if the record has none.
    [[nodiscard]] constexpr auto id() const noexcept -> build_id {
        build_id made;
        if (!has_build_id()) { return made; }
        auto const stored = __builtin_bit_cast(mapped_build_id, inode);
        copy_bytes(made.bytes, stored.bytes, sizeof made.bytes);
        made.count = stored.size;
        return made;
    }
};
template <>
inline constexpr record_form forms_of<mmap2_record>[] = {
    {record_type::mmap, offsetof(mmap2_record, inode)}, {record_type::mmap2, sizeof(mmap2_record)}};
/// The record with a build id in place of device and inode. A build id is cut after 20 bytes.
[[nodiscard]] constexpr auto with_build_id(mmap2_record mapping, byte_view id) noexcept
    -> mmap2_record {
    mapped_build_id made;
    auto const kept = id.first(sizeof made.bytes);
    made.size = static_cast<uint8_t>(kept.size());
    copy_bytes(made.bytes, kept.data(), kept.size());
    mapping.inode = __builtin_bit_cast(mapped_inode, made);
    mapping.header.misc = static_cast<uint16_t>(mapping.header.misc | misc_mmap_build_id);
    return mapping;
}

/// PERF_RECORD_LOST, the number of records of an event that were lost.
struct lost_record {
    record_header header{record_type::lost};
    le64 id{};
    le64 lost{};
};

/// PERF_RECORD_LOST_SAMPLES.
struct lost_samples_record {
    record_header header{record_type::lost_samples};
    le64 lost{};
};

/// PERF_RECORD_THROTTLE and PERF_RECORD_UNTHROTTLE.
struct throttle_record {
    record_header header{record_type::throttle};
    le64 time{};
    le64 id{};
    le64 stream_id{};
};
template <>
inline constexpr record_form forms_of<throttle_record>[] = {
    {record_type::throttle, sizeof(throttle_record)},
    {record_type::unthrottle, sizeof(throttle_record)}};

/// PERF_RECORD_AUX, new bytes in a buffer of traces.
///
/// Units:  `aux_offset` and `aux_size` are in bytes.
struct aux_record {
    record_header header{record_type::aux};
    le64 aux_offset{};
    le64 aux_size{};
    little_endian<aux_flags> flags{};
};

/// PERF_RECORD_ITRACE_START, the thread whose trace begins.
struct itrace_start_record {
    record_header header{record_type::itrace_start};
    le32 pid{};
    le32 tid{};
};

/// PERF_RECORD_SWITCH_CPU_WIDE, and PERF_RECORD_SWITCH, which is only a header. The end of the
/// record, `record::id`, has the thread that runs or ran.
struct switch_record {
    record_header header{record_type::switch_cpu_wide};
    le32 next_prev_pid{};
    le32 next_prev_tid{};

    [[nodiscard]] constexpr auto is_out() const noexcept -> bool {
        return header.has(misc_switch_out);
    }
    /// True for a thread that is switched out, and still runnable.
    [[nodiscard]] constexpr auto is_preempted() const noexcept -> bool {
        return is_out() && header.has(misc_switch_out_preempt);
    }
    /// True for SWITCH_CPU_WIDE.
    [[nodiscard]] constexpr auto has_other() const noexcept -> bool {
        return header.type == record_type::switch_cpu_wide;
    }
    /// The thread that runs next, or ran before.
    [[nodiscard]] constexpr auto other() const noexcept -> thread_id {
        return {next_prev_pid, next_prev_tid};
    }
};
template <>
inline constexpr record_form forms_of<switch_record>[] = {
    {record_type::context_switch, sizeof(record_header)},
    {record_type::switch_cpu_wide, sizeof(switch_record)}};

/// PERF_RECORD_KSYMBOL, code that the kernel adds or removes: a BPF program, or code out of line.
/// Its name follows, with its NUL, padded to 8 bytes.
///
/// Units:  `len` is in bytes.
struct ksymbol_record {
    record_header header{record_type::ksymbol, misc_kernel};
    le64 addr{};
    le32 len{};
    little_endian<perf_data::ksym_type> ksym_type{};
    little_endian<ksymbol_flags> flags{};

    /// True if the code exists up to this time; else it exists from it on.
    [[nodiscard]] constexpr auto is_unregistered() const noexcept -> bool {
        return flags.get<ksymbol_flags::UNREGISTER>();
    }
};

/// PERF_RECORD_BPF_EVENT: a BPF program is loaded or unloaded. KSYMBOL records of its functions
/// precede it.
struct bpf_event_record {
    record_header header{record_type::bpf_event, misc_kernel};
    little_endian<bpf_event_type> type{};
    le16 flags{};
    le32 id{};         ///< of the program
    uint8_t tag[8]{};  ///< a hash of its instructions
};

/// PERF_RECORD_TEXT_POKE: code of the kernel changes. `old_len` bytes of the old code follow, then
/// `new_len` bytes of the new. If `old_len` is 0, code is added; if `new_len` is 0, it is removed.
struct text_poke_record {
    record_header header{record_type::text_poke, misc_kernel};
    le64 addr{};
    le16 old_len{};
    le16 new_len{};
};

/// PERF_RECORD_SAMPLE, the members of fixed size that are not in `record::id`. Each is valid only
/// if its bit in `record::event` is set. The members of variable size follow.
struct sample_record {
    record_header header{record_type::sample};
    le64 ip{};
    le64 addr{};
    le64 period{};
};
template <>
inline constexpr record_form forms_of<sample_record>[] = {
    {record_type::sample, sizeof(record_header)}};

/// PERF_RECORD_HEADER_TRACING_DATA. `size` bytes follow the record.
struct tracing_data_record {
    record_header header{record_type::header_tracing_data};
    le32 size{};
};

/// PERF_RECORD_HEADER_BUILD_ID, and an entry of the feature BUILD_ID. The file name follows.
struct build_id_record {
    record_header header{record_type::header_build_id};
    le32 pid{};  ///< FFFFFFFFH: of the kernel
    build_id stored{};

    [[nodiscard]] constexpr auto id() const noexcept -> build_id {
        auto made = stored;
        if (!header.has(misc_build_id_size)) { made.count = sizeof made.bytes; }
        return made;
    }
};

/// PERF_RECORD_HEADER_FEATURE. The data of the feature follow.
struct feature_record {
    record_header header{record_type::header_feature};
    le64 feat_id{};  ///< `feature_id`
};

/// PERF_RECORD_ID_INDEX, the traces that events belong to. `nr` entries follow; in newer files more
/// bytes follow these.
struct id_index_record {
    record_header header{record_type::id_index};
    le64 nr{};
};
struct id_index_entry {
    le64 id{};
    le64 idx{};
    le64 cpu{};
    le64 tid{};
};

/// PERF_RECORD_TIME_CONV, the conversion of the TSC to times. Old files end after `time_zero`.
struct time_conv_record {
    record_header header{record_type::time_conv};
    le64 time_shift{};
    le64 time_mult{};
    le64 time_zero{};
    le64 time_cycles{};
    le64 time_mask{};
    uint8_t cap_user_time_zero = 0;
    uint8_t cap_user_time_short = 0;
    uint8_t reserved_1[6]{};

    /// True if the members after `time_zero` are valid.
    [[nodiscard]] constexpr auto has_cycles() const noexcept -> bool {
        return header.size >= offsetof(time_conv_record, reserved_1);
    }
};
template <>
inline constexpr record_form forms_of<time_conv_record>[] = {
    {record_type::time_conv, offsetof(time_conv_record, time_cycles)}};

/// PERF_RECORD_AUXTRACE_ERROR, an error of a decoder. In format 0, the message is in the place
/// of `time`. Only format 2 has the last two members.
struct auxtrace_error_record {
    record_header header{record_type::auxtrace_error};
    le32 type{};
    le32 code{};
    le32 cpu{};
    le32 pid{};
    le32 tid{};
    le32 fmt{};
    le64 ip{};
    le64 time{};
    uint8_t msg[64]{};
    le32 machine_pid{};
    le32 vcpu{};
};
template <>
inline constexpr record_form forms_of<auxtrace_error_record>[] = {
    {record_type::auxtrace_error, offsetof(auxtrace_error_record, time)}};

/// PERF_RECORD_COMPRESSED2, and PERF_RECORD_COMPRESSED, which is only a header. Zstandard data
/// follow. The data of COMPRESSED2 are padded to 8 bytes.
struct compressed_record {
    record_header header{record_type::compressed2};
    le64 data_size{};
};
template <>
inline constexpr record_form forms_of<compressed_record>[] = {
    {record_type::compressed, sizeof(record_header)},
    {record_type::compressed2, sizeof(compressed_record)}};

/// PERF_RECORD_AUXTRACE_INFO of Intel PT. For another kind of trace, only `type` is known. Members
/// after the end of a short record are 0. If FILTER_STR_LEN is not 0, the filter precedes
/// CAP_EVENT_TRACE, with its NUL, padded to 8 bytes.
///
/// Shape:  TSC_BIT and the members like it are masks of the event's `config`.
/// Source: Linux, tools/perf/util/intel-pt.h.
struct auxtrace_info_record {
    record_header header{record_type::auxtrace_info};
    le32 type{};  ///< `auxtrace_intel_pt`, or of another kind of trace
    le32 reserved_1{};
    le64 PMU_TYPE{};
    le64 TIME_SHIFT{};
    le64 TIME_MULT{};
    le64 TIME_ZERO{};
    le64 CAP_USER_TIME_ZERO{};
    le64 TSC_BIT{};
    le64 NORETCOMP_BIT{};
    le64 HAVE_SCHED_SWITCH{};
    le64 SNAPSHOT_MODE{};
    le64 PER_CPU_MMAPS{};
    le64 MTC_BIT{};
    le64 MTC_FREQ_BITS{};
    le64 TSC_CTC_N{};
    le64 TSC_CTC_D{};
    le64 CYC_BIT{};
    le64 MAX_NONTURBO_RATIO{};
    le64 FILTER_STR_LEN{};  ///< without the NUL
    le64 CAP_EVENT_TRACE{};

    /// The number of quadwords after `reserved_1` in the record.
    [[nodiscard]] constexpr auto words() const noexcept -> unsigned {
        constexpr unsigned before = offsetof(auxtrace_info_record, PMU_TYPE);
        return header.size < before ? 0 : (header.size - before) / 8;
    }
};
template <>
inline constexpr record_form forms_of<auxtrace_info_record>[] = {
    {record_type::auxtrace_info, offsetof(auxtrace_info_record, PMU_TYPE)}};

/// PERF_RECORD_AUXTRACE, a piece of a trace. `size` bytes of trace follow the record.
///
/// Units:  `size` and `offset` are in bytes, `reference` in TSC ticks. TSC packets have 56 bits of
///         the TSC; perf takes the upper bits from `reference`. In a timed file `reference` must
///         not be 0. A program that knows no better time uses the first TSC packet of the piece.
struct auxtrace_record {
    record_header header{record_type::auxtrace};
    le64 size{};
    le64 offset{};     ///< of the piece in its trace
    le64 reference{};  ///< about the time when it was stored; 0 only in a file without times
    le32 idx{};        ///< of the trace: 0, 1, ... Pieces of one trace have the same tid
    le32 tid{};
    le32 cpu = no_cpu;
    le32 reserved_1{};
};

}  // namespace ptspec::file::perf_data
