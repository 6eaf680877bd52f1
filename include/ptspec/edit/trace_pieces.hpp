// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/host_memory.hpp>
#include <ptspec/packet/encode.hpp>
#include <ptspec/trace/reader.hpp>

/// A trace in memory that is read and changed in place.
namespace ptspec::edit {

/// A trace in memory that can be written: in one piece, or in several, as the two of a ring that
/// wrapped or the regions of a table. Borrowed; the pieces must not overlap.
class trace_pieces {
public:
    constexpr trace_pieces(byte_window const* first, size_t count) noexcept
        : first_{first}, count_{count} {}
    template <size_t Count>
    constexpr trace_pieces(byte_window const (&pieces)[Count]) noexcept
        : trace_pieces{pieces, Count} {}

    [[nodiscard]] constexpr auto begin() const noexcept -> byte_window const* { return first_; }
    [[nodiscard]] constexpr auto end() const noexcept -> byte_window const* {
        return first_ + count_;
    }
    [[nodiscard]] constexpr auto operator[](size_t i) const noexcept -> byte_window const& {
        return first_[i];
    }

private:
    byte_window const* first_;
    size_t count_;
};

namespace detail {

using namespace ptspec::detail;

/// Reads and writes the bytes of pieces by their offsets in the trace. The first byte of the pieces
/// may have any offset.
class piece_bytes {
    /// The piece of the last access, and the offset of its first byte in the pieces.
    struct place {
        size_t piece = 0;
        uint64_t begin = 0;
    };

    /// Calls `each(bytes, count)` for the parts of a range of the pieces.
    template <class Each>
    constexpr void visit(place& here, uint64_t from, uint64_t count, Each const& each) noexcept {
        while (count != 0) {
            while (from < here.begin) { here.begin -= of_[--here.piece].size; }
            while (from - here.begin >= of_[here.piece].size) {
                here.begin += of_[here.piece++].size;
            }
            uint64_t const at = from - here.begin;
            uint64_t const left = of_[here.piece].size - at;
            auto const bytes = static_cast<size_t>(left < count ? left : count);
            each(of_[here.piece].first + at, bytes);
            from += bytes;
            count -= bytes;
        }
    }

public:
    constexpr explicit piece_bytes(trace_pieces of, uint64_t begin = 0) noexcept
        : of_{of}, begin_{begin} {
        for (auto const& piece : of) { size_ += piece.size; }
    }
    [[nodiscard]] constexpr auto size() const noexcept -> uint64_t { return size_; }
    [[nodiscard]] constexpr auto end() const noexcept -> uint64_t { return begin_ + size_; }

    constexpr void read(uint64_t from, uint8_t* to, size_t count) noexcept {
        visit(read_, from - begin_, count, [&](uint8_t const* part, size_t bytes) {
            copy_bytes(to, part, bytes);
            to += bytes;
        });
    }
    /// Bytes before the pieces are not written.
    constexpr void write(uint64_t to, byte_view bytes) noexcept {
        if (to < begin_) {
            uint64_t const missing = begin_ - to;
            bytes = bytes.from(static_cast<size_t>(missing));
            to = begin_;
        }
        uint8_t const* from = bytes.data();
        visit(written_, to - begin_, bytes.size(), [&](uint8_t* part, size_t count) {
            copy_bytes(part, from, count);
            from += count;
        });
    }
    /// Writes PADs from one offset to another.
    constexpr void pad(uint64_t from, uint64_t to) noexcept {
        visit(written_, from - begin_, to - from, [](uint8_t* part, size_t count) {
            for (size_t i = 0; i < count; ++i) {
                part[i] = static_cast<uint8_t>(packet::pad{}.raw);
            }
        });
    }

private:
    trace_pieces of_;
    uint64_t begin_ = 0;
    uint64_t size_ = 0;
    place read_{};
    place written_{};
};

/// Reads a trace that comes in parts. The reader gets copies of the bytes: a packet may be
/// overwritten, and a later search for a PSB still finds the original bytes.
template <class Packets>
class part_reader {
public:
    /// Where the next part begins, in bytes from the start of the trace.
    [[nodiscard]] constexpr auto begin() const noexcept -> uint64_t { return begin_; }

    /// Calls `each(item)` for the items of a part that begins at `begin()`: at the end of the part
    /// before it, less the bytes that were kept back. If it has fewer bytes than these the trace
    /// was interrupted, and is read from its next PSB on.
    template <class Each>
    constexpr void read(piece_bytes& part, bool is_last, Each&& each) {
        byte_array<room_bytes> room{};
        skipped_ = 0;
        if (part.size() < kept_back_) { restart(); }
        while (true) {
            trace::item got = from_.next();
            got.offset += base_;
            switch (got.what) {
                case trace::item_type::end: return;
                case trace::item_type::need_input:
                    if (given_ < part.end()) {
                        feed(part, room);
                        continue;
                    }
                    if (!is_last) { return end_part(part, got.offset); }
                    from_.finish();
                    continue;
                case trace::item_type::lost: skip_to(got.offset); continue;
                case trace::item_type::damage: search_from(got); break;
                default: end_search(got.offset); break;
            }
            each(got);
        }
    }

    /// Of the last part: bytes without packets, before a PSB or after damage, and an incomplete
    /// packet at the end of the trace.
    [[nodiscard]] constexpr auto skipped() const noexcept -> uint64_t { return skipped_; }
    /// Bytes at the end of the last part that are kept back: a packet, or a PSB, that continues.
    [[nodiscard]] constexpr auto kept_back() const noexcept -> size_t { return kept_back_; }

private:
    static constexpr size_t room_bytes = 256;

    constexpr void feed(piece_bytes& part, byte_array<room_bytes>& room) noexcept {
        uint64_t const left = part.end() - given_;
        auto const count = static_cast<size_t>(left < room_bytes ? left : room_bytes);
        part.read(given_, room.data(), count);
        given_ += count;
        (void)from_.feed(borrowed_bytes{room.data(), count});
    }
    constexpr void restart() noexcept {
        from_ = trace::reader<trace::no_hook, Packets>{};
        base_ = given_ = searched_ = begin_;
        kept_back_ = 0;
        is_searching_ = true;
    }
    constexpr void end_part(piece_bytes& part, uint64_t at) noexcept {
        if (is_searching_) { at = begin_of_psb(part); }
        uint64_t const left = part.end() - at;
        kept_back_ = static_cast<size_t>(left);
        begin_ = at;
        if (is_searching_) { skip_to(begin_); }
    }
    /// Where the last bytes of a part may begin a PSB, or its end. A whole PSB counts: the search
    /// does not find it before it has the bytes after it.
    static constexpr auto begin_of_psb(piece_bytes& part) noexcept -> uint64_t {
        auto const psb = packet::encode(packet::psb{});
        uint64_t const size = part.size() < psb.size() ? part.size() : psb.size();
        byte_array<packet::psb::head_bytes> last{};
        part.read(part.end() - size, last.data(), static_cast<size_t>(size));
        for (auto left = static_cast<size_t>(size); left != 0; --left) {
            byte_view const suffix{last.data() + (size - left), left};
            if (suffix == byte_view{psb}.first(left)) { return part.end() - left; }
        }
        return part.end();
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

    trace::reader<trace::no_hook, Packets> from_{};
    uint64_t base_ = 0;  ///< the offset of the reader's first byte
    uint64_t begin_ = 0;
    uint64_t given_ = 0;     ///< the end of the bytes that the reader has
    uint64_t searched_ = 0;  ///< up to here bytes are counted as skipped, while searching
    uint64_t skipped_ = 0;
    size_t kept_back_ = 0;
    bool is_searching_ = true;
};

/// Calls `each(item)` for the items of a whole trace.
template <class Packets, class Each>
constexpr void for_each_item(piece_bytes& in, Each&& each) {
    part_reader<Packets> from;
    from.read(in, true, each);
}

}  // namespace detail

}  // namespace ptspec::edit
