// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

/// Why a perf.data file could not be read, and where.
namespace ptspec::file::perf_data {

enum class read_error : uint8_t {
    none,
    not_perf_data,      ///< the first bytes are of another format
    big_endian,         ///< "2ELIFREP": recorded by a processor with the other byte order
    old_format,         ///< "PERFFILE": written by perf before 2011
    truncated,          ///< a section or a record ends after the end of the file
    bad_header,         ///< a size in the header is impossible
    unfinished,         ///< the size of the data is 0: perf did not end the file
    directory,          ///< one file of a directory: the records are in the others
    bad_record_size,    ///< the size of a record is less than that of its header
    record_too_short,   ///< the record has fewer bytes than its type needs
    other_record_type,  ///< the record has another type
    unknown_id,         ///< no event has the id of this record, so its trailer cannot be read
    too_many_ids,       ///< the search for the ids of records takes too many steps
    no_feature,         ///< the file does not have this feature
    no_auxtrace_info,   ///< the file has no AUXTRACE_INFO: it has no traces
    not_intel_pt,       ///< the traces are of another kind
    no_intel_pt_event,  ///< no event has the PMU that AUXTRACE_INFO names
    too_few_slots,      ///< more pieces than slots: `needed` has their number
    bad_auxtrace_info,  ///< AUXTRACE_INFO is too short, or its filter is longer than the record
    bad_record_type,    ///< no record has this type
};

/// The error as one sentence.
[[nodiscard]] constexpr auto describe(read_error error) noexcept -> text {
    switch (error) {
        case read_error::none: return "nothing is wrong";
        case read_error::not_perf_data: return "this is no perf.data file";
        case read_error::big_endian: return "the file has big-endian byte order";
        case read_error::old_format: return "perf wrote the file before 2011, in an older format";
        case read_error::truncated: return "the file ends too early";
        case read_error::bad_header: return "a size in the header is impossible";
        case read_error::unfinished: return "the recording was not finished";
        case read_error::directory: return "the records are in other files of the directory";
        case read_error::bad_record_size: return "a record is shorter than its header";
        case read_error::record_too_short: return "a record is too short for its type";
        case read_error::other_record_type: return "the record has another type";
        case read_error::unknown_id: return "no event has the id of the record";
        case read_error::too_many_ids: return "the file has too many ids";
        case read_error::no_feature: return "the file does not have this feature";
        case read_error::no_auxtrace_info: return "the file has no AUXTRACE_INFO record";
        case read_error::not_intel_pt: return "the traces are not of Intel PT";
        case read_error::no_intel_pt_event: return "no event is of the PMU intel_pt";
        case read_error::too_few_slots: return "there are more pieces than slots";
        case read_error::bad_auxtrace_info: return "the AUXTRACE_INFO record is malformed";
        case read_error::bad_record_type: return "no record has this type";
    }
    return "unknown error";
}

/// What is wrong, and where.
///
/// Units:  `offset` is where the wrong structure begins, in bytes from the start of the file, or
///         the end of the file if the structure begins after it.
struct [[nodiscard]] read_status {
    read_error error = read_error::none;
    uint64_t offset = 0;

    constexpr explicit operator bool() const noexcept { return error == read_error::none; }
    friend constexpr auto operator==(read_status const&, read_status const&) -> bool = default;
};

/// Bytes of damaged records, which a reader skipped.
struct skipped_bytes {
    uint64_t bytes = 0;
    uint64_t offset = 0;  ///< of the first of them, in the file
    bool to_end = false;  ///< no record follows the last of them

    constexpr explicit operator bool() const noexcept { return bytes != 0; }
};

}  // namespace ptspec::file::perf_data
