// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/byte_layout.hpp>

/// Reads traces of the Intel PT driver of Windows (ipt.sys).
namespace ptspec::file::winipt {

/// The structures, as in the interface of the driver.
///
/// Source: drivers.md, 4.4; the interface as published by the project WinIPT.
namespace layout {

/// IPT_TRACE_DATA, at byte 0.
struct trace_data {
    static constexpr uint16_t version_value = 1;

    le16 TraceVersion{};
    le16 ValidTrace{};
    le32 TraceSize{};  ///< of the bytes after it
};

/// IPT_TRACE_HEADER. TraceSize bytes of trace follow it, and directly after them the next one.
struct trace_header {
    le64 ThreadId{};
    le32 TimingSettings{};
    le32 MtcFrequency{};
    le32 FrequencyToTscRatio{};
    le32 RingBufferOffset{};
    le32 TraceSize{};
};

}  // namespace layout

/// The timing packets of a trace.
enum class timing : uint32_t {
    none = 0,
    mtc = 1,  ///< TSCEn and MTCEn
    cyc = 2,  ///< TSCEn, MTCEn and CYCEn
};

enum class error : uint8_t {
    none,
    truncated,        ///< a structure or a trace ends after the end of the file
    unknown_version,  ///< TraceVersion is not 1: the layout may be another one
    not_valid,        ///< ValidTrace is 0: the driver has no trace
    bad_ring_offset,  ///< the ring begins after the end of the trace
    trailing_bytes,   ///< less than a header follows the last trace
};

/// The error as one sentence.
[[nodiscard]] constexpr auto describe(error reason) noexcept -> text {
    switch (reason) {
        case error::none: return "nothing is wrong";
        case error::truncated: return "the file ends too early";
        case error::unknown_version: return "the version of the trace is unknown";
        case error::not_valid: return "the file says that it has no valid trace";
        case error::bad_ring_offset: return "the ring begins after the end of its trace";
        case error::trailing_bytes: return "bytes follow the last trace";
    }
    return "unknown error";
}

/// What is wrong, and at which byte of the file the wrong structure begins.
struct [[nodiscard]] read_status {
    winipt::error error = winipt::error::none;
    uint64_t offset = 0;

    constexpr explicit operator bool() const noexcept { return error == error::none; }
    friend constexpr auto operator==(read_status const&, read_status const&) -> bool = default;
};

/// The trace of a thread: a ring. The driver does not say whether the ring is full: if it is not,
/// `older` has no PSB, or is empty.
///
/// Units:  `mtc_frequency` is the encoding in MTCFreq. `tsc_ratio` is that of the TSC to the
///         crystal clock.
struct thread_trace {
    uint64_t offset = 0;     ///< of the header in the file
    uint64_t thread_id = 0;  ///< of a processor, if a processor was traced
    timing timing_settings = timing::none;
    uint32_t mtc_frequency = 0;
    uint32_t tsc_ratio = 0;
    uint32_t ring_offset = 0;  ///< where the next byte would be stored
    byte_view ring{};          ///< as stored

    bool exists = false;
    constexpr explicit operator bool() const noexcept { return exists; }

    /// The first part of the trace: the ring from its oldest byte to the end of the memory.
    [[nodiscard]] constexpr auto older() const noexcept -> byte_view {
        return ring.from(ring_offset);
    }
    /// The second part.
    [[nodiscard]] constexpr auto newer() const noexcept -> byte_view {
        return ring.first(ring_offset);
    }
};

/// Reads the traces of a file, one by one. It borrows the bytes.
///
/// Errors: after an error there are no more traces.
class reader {
public:
    constexpr explicit reader(borrowed_bytes whole) noexcept : file_{whole.view()} {
        using layout::trace_data;
        byte_view const file = file_;
        auto const data = load<trace_data>(file);
        uint64_t const rest = file.size() - file.first(sizeof data).size();
        result_ = file.size() < sizeof data ? read_status{error::truncated, 0}
                  : data.TraceVersion != trace_data::version_value
                      ? read_status{error::unknown_version, offsetof(trace_data, TraceVersion)}
                  : data.ValidTrace == 0
                      ? read_status{error::not_valid, offsetof(trace_data, ValidTrace)}
                      : read_status{};
        if (!result_) { return; }
        uint64_t const size = data.TraceSize;
        at_ = sizeof data;
        is_cut_ = size > rest;
        end_ = is_cut_ ? file.size() : at_ + static_cast<size_t>(size);
    }

    /// The next trace, or none: at the end, or after an error.
    ///
    /// Errors: truncated; bad_ring_offset; trailing_bytes, unless they are 0.
    [[nodiscard]] constexpr auto next() noexcept -> thread_trace {
        if (!result_) { return {}; }
        auto const rest = file_.first(end_).from(at_);
        if (rest.size() < sizeof(layout::trace_header)) { return finish(rest); }
        auto const header = load<layout::trace_header>(rest);
        thread_trace made;
        made.exists = true;
        made.offset = at_;
        made.thread_id = header.ThreadId;
        made.timing_settings = static_cast<timing>(uint32_t{header.TimingSettings});
        made.mtc_frequency = header.MtcFrequency;
        made.tsc_ratio = header.FrequencyToTscRatio;
        made.ring_offset = header.RingBufferOffset;
        size_t const size = header.TraceSize;
        if (size > rest.size() - sizeof header) { return fail(error::truncated); }
        if (made.ring_offset > size) { return fail(error::bad_ring_offset); }
        made.ring = rest.from(sizeof header).first(size);
        at_ += sizeof header + size;
        return made;
    }

    /// The error that ended reading; `none` before an error, and at a normal end.
    [[nodiscard]] constexpr auto result() const noexcept -> read_status { return result_; }
    /// Where the next trace begins, in bytes from the start of the file.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t { return at_; }

private:
    constexpr auto fail(error error) noexcept -> thread_trace {
        result_ = {error, at_};
        return {};
    }
    constexpr auto finish(byte_view rest) noexcept -> thread_trace {
        if (is_cut_) { return fail(error::truncated); }
        for (uint8_t const byte : rest) {
            if (byte != 0) { return fail(error::trailing_bytes); }
        }
        return {};
    }

    byte_view file_;
    size_t at_ = 0;
    size_t end_ = 0;
    bool is_cut_ = false;
    read_status result_{};
};

/// A reader at the first trace of a file.
[[nodiscard]] constexpr auto traces(borrowed_bytes file) noexcept -> reader { return reader{file}; }

}  // namespace ptspec::file::winipt
