// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/read_result.hpp>
#include <ptspec/file/perf_data/records.hpp>

/// A stream, which is the trace of a processor or a thread in a perf.data file, and its pieces.
namespace ptspec::file::perf_data {

/// `tid` of a trace that belongs to a processor or to several threads.
inline constexpr uint32_t no_tid = 0xFFFF'FFFF;

/// A piece of a stream: the bytes of an AUXTRACE record or of an AUX area sample, up to the next
/// mark.
///
/// A mark is a piece that begins where an AUX record says that trace is missing or that tracing was
/// off; `flags` has the flags of that record. TRUNCATED, COLLISION: bytes are missing before the
/// mark. PARTIAL: tracing was off for a while in the `aux_size` bytes from the mark on, which may
/// reach into the next pieces; no byte is missing. A mark may have no bytes.
///
/// Units:  `offset` counts bytes of the stream, `reference` TSC ticks: about the time when the
///         piece was stored. `time` is in nanoseconds.
struct piece {
    byte_view trace{};    ///< the new bytes; may be empty
    uint64_t offset = 0;  ///< as in the AUXTRACE record; 0 in a sample
    uint64_t reference = 0;
    uint64_t time = 0;            ///< of a sample
    uint64_t file_offset = 0;     ///< of the record in the file
    uint32_t idx = 0;             ///< of the stream
    uint32_t tid = no_tid;        ///< FFFFFFFFH in a stream of a processor
    uint32_t cpu = no_cpu;        ///< FFFFFFFFH in a stream of a thread
    bool is_sample = false;       ///< an AUX area sample
    bool has_gap_before = false;  ///< trace is missing before it: a decoder starts at its first PSB
    byte_view recorded{};         ///< all bytes of the record
    aux_flags flags{};            ///< not 0 only in a mark
    uint64_t aux_size = 0;        ///< the bytes that the AUX record is about
};

namespace detail {

inline constexpr aux_flags lossy_flags = aux_flags{}.with(aux_flags::TRUNCATED{true},
                                                          aux_flags::COLLISION{true});

/// True for a mark: no AUXTRACE record or sample begins the piece, but an AUX record.
constexpr auto is_mark(piece const& one) noexcept -> bool { return one.flags.raw != 0; }
constexpr auto is_lossy(piece const& one) noexcept -> bool {
    return (one.flags.raw & lossy_flags.raw) != 0;
}
/// True if both belong to one stream.
constexpr auto share_stream(piece const& one, piece const& two) noexcept -> bool {
    return one.idx == two.idx && one.is_sample == two.is_sample &&
           (!one.is_sample || (one.cpu == no_cpu) == (two.cpu == no_cpu));
}

}  // namespace detail

/// The pieces of one stream, in order. A piece without `has_gap_before` continues the piece before
/// it.
struct stream {
    piece const* first = nullptr;
    size_t count = 0;

    [[nodiscard]] constexpr auto begin() const noexcept -> piece const* { return first; }
    [[nodiscard]] constexpr auto end() const noexcept -> piece const* { return first + count; }
    [[nodiscard]] constexpr auto size() const noexcept -> size_t { return count; }
    /// The piece at `i`, which must be below `size()`.
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> piece const& {
        return first[i];
    }
    /// The number of the stream in perf. A stream of samples has the number of its processor or
    /// thread.
    [[nodiscard]] constexpr auto idx() const noexcept -> uint32_t { return first->idx; }
    /// The thread of all pieces; FFFFFFFFH if they belong to several threads.
    [[nodiscard]] constexpr auto tid() const noexcept -> uint32_t {
        for (auto const& one : *this) {
            if (one.tid != first->tid) { return no_tid; }
        }
        return first->tid;
    }
    [[nodiscard]] constexpr auto cpu() const noexcept -> uint32_t { return first->cpu; }
};

/// Goes through sorted pieces, stream by stream.
class stream_iterator {
public:
    constexpr stream_iterator(piece const* at, piece const* end) noexcept : end_{end} { find(at); }

    [[nodiscard]] constexpr auto operator*() const noexcept -> stream { return stream_; }
    constexpr auto operator++() noexcept -> stream_iterator& {
        find(stream_.end());
        return *this;
    }
    friend constexpr auto operator==(stream_iterator const& one,
                                     stream_iterator const& two) noexcept -> bool {
        return one.stream_.first == two.stream_.first;
    }

private:
    constexpr void find(piece const* at) noexcept {
        stream_ = {at, 0};
        while (at != end_ && detail::share_stream(*at, *stream_.first)) {
            ++at;
            ++stream_.count;
        }
    }

    piece const* end_;
    stream stream_{};
};

/// The streams of a file, in the order of their idx. The streams of samples are last. The list
/// borrows the caller's slots.
struct [[nodiscard]] stream_list {
    read_status result{};
    size_t needed = 0;            ///< the number of slots for all pieces
    size_t unplaced = 0;          ///< AUX records with flags that belong to no stream
    skipped_bytes skipped{};      ///< of damaged records
    bool is_snapshot = false;     ///< SNAPSHOT_MODE of AUXTRACE_INFO
    bool has_compressed = false;  ///< records are compressed: names, mappings, AUX records
    piece const* first = nullptr;
    size_t piece_count = 0;

    constexpr explicit operator bool() const noexcept { return bool{result}; }
    [[nodiscard]] constexpr auto begin() const noexcept -> stream_iterator {
        return {first, first + piece_count};
    }
    [[nodiscard]] constexpr auto end() const noexcept -> stream_iterator {
        return {first + piece_count, first + piece_count};
    }
    /// The number of streams.
    [[nodiscard]] constexpr auto size() const noexcept -> size_t {
        size_t found = 0;
        for (auto at = begin(); !(at == end()); ++at) { ++found; }
        return found;
    }
};

}  // namespace ptspec::file::perf_data
