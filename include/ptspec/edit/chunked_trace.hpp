// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/edit/detail/tsc_changer.hpp>
#include <ptspec/edit/trace_memory.hpp>
#include <ptspec/packet/psb.hpp>
#include <ptspec/trace/reader.hpp>

/// A trace in memory that is read and changed chunk by chunk, as from a ring.
///
/// It is changed from the first PSB of the first chunk on, and its packets may continue in the next
/// chunk: `chunked_trace` keeps what is needed between two calls. Without it each chunk counts as a
/// trace of its own, and what precedes its first PSB stays as it is: `skipped`.
namespace ptspec::edit {

namespace detail {

/// Reads a trace that comes in chunks. The reader gets copies of the bytes: a packet may be
/// overwritten, and a later search for a PSB still finds the original bytes.
template <class Packets>
class chunk_reader {
public:
    /// Where the next chunk begins, in bytes from the start of the trace.
    [[nodiscard]] constexpr auto begin() const noexcept -> uint64_t { return begin_; }

    /// Calls `each(item)` for the items of a chunk that begins at `begin()`: the end of the chunk
    /// before it, less the bytes that were kept back. If it has fewer bytes than were kept back,
    /// the trace was interrupted, and is read from its next PSB on.
    template <class Each>
    constexpr void read(trace_bytes& chunk, bool is_last, Each&& each) {
        byte_array<room_bytes> room{};
        skipped_ = 0;
        if (chunk.size() < kept_back_) { restart(); }
        while (true) {
            trace::item item = reader_.next();
            item.offset += base_;
            switch (item.what) {
                case trace::item_type::end: return;
                case trace::item_type::need_input:
                    if (given_ < chunk.end()) {
                        feed(chunk, room);
                        continue;
                    }
                    if (!is_last) { return end_chunk(chunk, item.offset); }
                    reader_.finish();
                    continue;
                case trace::item_type::lost: skip_to(item.offset); continue;
                case trace::item_type::damage: search_from(item); break;
                default: end_search(item.offset); break;
            }
            each(item);
        }
    }

    /// The number of bytes of the last chunk that are in no packet: before a PSB, after damage, and
    /// of an incomplete packet at the end of the trace.
    [[nodiscard]] constexpr auto skipped() const noexcept -> uint64_t { return skipped_; }
    /// Bytes at the end of the last chunk that are kept back: a packet, or a PSB, that continues.
    [[nodiscard]] constexpr auto kept_back() const noexcept -> size_t { return kept_back_; }

private:
    static constexpr size_t room_bytes = 256;

    constexpr void feed(trace_bytes& chunk, byte_array<room_bytes>& room) noexcept {
        uint64_t const left = chunk.end() - given_;
        auto const count = static_cast<size_t>(left < room_bytes ? left : room_bytes);
        chunk.read(given_, room.data(), count);
        given_ += count;
        (void)reader_.feed(borrowed_bytes{room.data(), count});
    }
    constexpr void restart() noexcept {
        reader_ = trace::reader<trace::no_hook, Packets>{};
        base_ = given_ = searched_ = begin_;
        kept_back_ = 0;
        is_searching_ = true;
    }
    constexpr void end_chunk(trace_bytes& chunk, uint64_t end) noexcept {
        if (is_searching_) { end = begin_of_psb(chunk); }
        uint64_t const left = chunk.end() - end;
        kept_back_ = static_cast<size_t>(left);
        begin_ = end;
        if (is_searching_) { skip_to(begin_); }
    }
    /// The offset of the last bytes of a chunk that may begin a PSB; the chunk's end if there are
    /// none. A whole PSB counts: the search does not find it before it has the bytes after it.
    static constexpr auto begin_of_psb(trace_bytes& chunk) noexcept -> uint64_t {
        auto const psb = to_le(packet::psb{}.raw);
        uint64_t const size = chunk.size() < psb.size() ? chunk.size() : psb.size();
        byte_array<packet::psb::head_bytes> last{};
        chunk.read(chunk.end() - size, last.data(), static_cast<size_t>(size));
        for (auto left = static_cast<size_t>(size); left != 0; --left) {
            byte_view const suffix{last.data() + (size - left), left};
            if (suffix == byte_view{psb.data(), left}) { return chunk.end() - left; }
        }
        return chunk.end();
    }
    constexpr void skip_to(uint64_t offset) noexcept {
        if (offset <= searched_) { return; }
        skipped_ += offset - searched_;
        searched_ = offset;
    }
    constexpr void search_from(trace::item const& damage) noexcept {
        is_searching_ = true;
        searched_ = damage.offset;
        if (damage.error == packet::error::truncated) {
            skipped_ += static_cast<uint64_t>(damage.skipped);
        }
    }
    constexpr void end_search(uint64_t offset) noexcept {
        if (is_searching_) { skip_to(offset); }
        is_searching_ = false;
    }

    trace::reader<trace::no_hook, Packets> reader_{};
    uint64_t base_ = 0;  ///< the offset of the reader's first byte
    uint64_t begin_ = 0;
    uint64_t given_ = 0;     ///< the end of the bytes that the reader has
    uint64_t searched_ = 0;  ///< up to here bytes are counted as skipped, while searching
    uint64_t skipped_ = 0;
    size_t kept_back_ = 0;
    bool is_searching_ = true;
};

/// Calls `each(item)` for the items of a trace that comes as one chunk.
template <class Packets, class Each>
constexpr void for_each_item(trace_bytes& whole, Each&& each) {
    chunk_reader<Packets> reader;
    reader.read(whole, true, each);
}

}  // namespace detail

/// What a rewriting of `Packet` (pip, vmcs or tsc) keeps between the chunks of a trace. A value;
/// one for each function and trace, so that several functions can change the same chunks.
///
/// Each chunk begins where the one before ended, less the bytes that were kept back. After an
/// interruption of the trace, as when a ring was overwritten, begin with a new value.
template <packet::packet_type Packet, class Packets = packet::all>
struct chunked_trace {
    detail::chunk_reader<Packets> reader{};
    detail::tsc_changer tsc{};
};

}  // namespace ptspec::edit
