// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/reader.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

// The code bytes that a recorded process executed, in the order in which they were first executed.
namespace pt_record {

/// A moment in the execution of a thread: the number of TNTs before it, the branches of the next
/// TNT that were executed before it, and the size of the trace.
struct moment {
    std::size_t tnts = 0;
    unsigned branches = 0;
    std::uint64_t offset = 0;

    auto operator<=>(moment const&) const = default;
};

/// The same as in a journal: the size of the trace, and the branches that no packet contains yet.
struct moment_of_record {
    std::uint64_t offset = 0;
    unsigned branches = 0;
};

/// A record of a journal.
///
/// Shape: u64 address, u32 size, u32 thread, u64 moment, then the bytes, padded to a multiple of 8;
///        little-endian. The moment has the offset in bits 55:0 and the branches in bits 63:56.
///        A record without bytes only says when its thread had reached this place of the journal.
struct code_record {
    std::uint64_t address = 0;
    std::uint32_t thread = 0;
    moment_of_record when{};
    std::vector<std::uint8_t> bytes{};
};

inline constexpr std::size_t record_header = 24;

inline auto padded(std::uint64_t size) -> std::uint64_t { return (size + 7) & ~std::uint64_t{7}; }

/// The records of a journal. `left` is the size of an incomplete record at its end.
struct journal {
    std::vector<code_record> all{};
    std::size_t left = 0;
};

inline auto read_journal(ptspec::byte_view in) -> journal {
    journal made;
    std::size_t at = 0;
    auto const number = [&](std::size_t from, unsigned count) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < count; ++i) { value |= std::uint64_t{in[from + i]} << 8 * i; }
        return value;
    };
    while (in.size() - at >= record_header) {
        auto const size = number(at + 8, 4);
        if (padded(size) > in.size() - at - record_header) { break; }
        auto const when = number(at + 16, 8);
        auto const first = in.begin() + static_cast<std::ptrdiff_t>(at + record_header);
        made.all.push_back(
            {.address = number(at, 8),
             .thread = static_cast<std::uint32_t>(number(at + 12, 4)),
             .when = {when & ~(std::uint64_t{0xFF} << 56), static_cast<unsigned>(when >> 56)},
             .bytes = {first, first + static_cast<std::ptrdiff_t>(size)}});
        at += record_header + padded(size);
    }
    made.left = in.size() - at;
    return made;
}

/// The TNTs of a trace: they relate the moments of a journal to those of a walk.
class trace_moments {
public:
    explicit trace_moments(ptspec::byte_view trace) {
        ptspec::trace::reader from{trace};
        for (auto item = from.next(); item; item = from.next()) {
            if (item.what != ptspec::trace::item_type::packet) { continue; }
            ptspec::packet::visit(
                [&](auto const& one) {
                    if constexpr (requires { one.taken().count; }) {
                        tnts_.push_back({item.offset, one.taken().count});
                    }
                },
                item.packet);
        }
    }

    /// When a record was made. A trace may have CYCs and PADs between the end of the trace at that
    /// moment and the TNT that contains its branches.
    [[nodiscard]] auto when(moment_of_record const& of) const -> moment {
        auto const next = std::lower_bound(
            tnts_.begin(), tnts_.end(), of.offset,
            [](tnt const& one, std::uint64_t offset) { return one.offset < offset; });
        return {static_cast<std::size_t>(next - tnts_.begin()), of.branches, of.offset};
    }

    struct tnt {
        std::uint64_t offset;
        unsigned branches;
    };
    [[nodiscard]] auto tnts() const -> std::vector<tnt> const& { return tnts_; }

private:
    std::vector<tnt> tnts_{};
};

/// The code of a process, by page. A page whose bytes changed has all its versions.
class code_pages {
public:
    static constexpr unsigned page_bits = 12;
    static constexpr std::size_t page_bytes = std::size_t{1} << page_bits;
    /// The limit on pages, as a journal may be malicious. Code in further pages is absent.
    static constexpr std::size_t max_pages = std::size_t{1} << 18;

    /// A part of a record.
    struct piece {
        std::size_t record;  ///< the number of the record
        std::size_t at;      ///< in the page
        std::uint8_t const* bytes;
        std::size_t size;
    };
    struct page {
        /// The first value of each byte.
        std::array<std::uint8_t, page_bytes> bytes{};
        /// The number of known bytes from each byte on, within the page; 255 also for more.
        std::array<std::uint8_t, page_bytes> known{};
        bool has_versions = false;
        std::vector<piece> versions{};  ///< in the order of the records
    };

    explicit code_pages(std::vector<code_record> all) : records_{std::move(all)} {
        for (auto const& record : records_) {
            for_each_piece(record, [&](std::uint64_t number, piece const& one) {
                if (pages_.size() < max_pages) { add_first(pages_[number], one); }
            });
        }
        for (auto const& record : records_) {
            std::uint32_t changes = 0;
            for_each_piece(record, [&](std::uint64_t number, piece const& one) {
                auto const in = pages_.find(number);
                if (in == pages_.end() || !in->second.has_versions) { return; }
                in->second.versions.push_back(one);
                changes = 1;
            });
            changes_.push_back(changes_.back() + changes);
        }
        for (auto& [number, in] : pages_) {
            has_versions_ = has_versions_ || in.has_versions;
            unsigned run = 0;
            for (std::size_t i = page_bytes; i-- != 0;) {
                run = in.known[i] == 0 ? 0 : std::min(run + 1, 255U);
                in.known[i] = static_cast<std::uint8_t>(run);
            }
        }
    }

    [[nodiscard]] auto all_records() const -> std::vector<code_record> const& { return records_; }
    [[nodiscard]] auto has_versions() const -> bool { return has_versions_; }
    /// How many of the first `count` records are in pages with versions.
    [[nodiscard]] auto changes_before(std::size_t count) const -> std::uint32_t {
        return changes_[count];
    }
    [[nodiscard]] auto find(std::uint64_t number) const -> page const* {
        auto const found = pages_.find(number);
        return found == pages_.end() ? nullptr : &found->second;
    }

private:
    std::vector<code_record> records_;
    std::unordered_map<std::uint64_t, page> pages_{};
    std::vector<std::uint32_t> changes_{0};
    bool has_versions_ = false;

    template <class Visit>
    void for_each_piece(code_record const& record, Visit const& visit) {
        auto const number = static_cast<std::size_t>(&record - records_.data());
        for (std::size_t done = 0; done < record.bytes.size();) {
            auto const at = record.address + done;
            auto const in_page = static_cast<std::size_t>(at & (page_bytes - 1));
            auto const size = std::min(page_bytes - in_page, record.bytes.size() - done);
            visit(at >> page_bits, piece{number, in_page, record.bytes.data() + done, size});
            done += size;
        }
    }
    static void add_first(page& in, piece const& one) {
        for (std::size_t i = 0; i < one.size; ++i) {
            auto& byte = in.bytes[one.at + i];
            auto& known = in.known[one.at + i];
            if (known != 0 && byte != one.bytes[i]) { in.has_versions = true; }
            if (known == 0) { byte = one.bytes[i]; }
            known = 1;
        }
    }
};

/// The code of a process as one of its threads executes it, at a moment that only advances.
///
/// A page has the bytes of all records before the first record of this thread that is later than
/// the moment. A byte that none of them contains has the value of the first record that does.
class code_of_thread {
public:
    /// `when` turns a moment of the journal into one of the trace.
    template <class When>
    code_of_thread(code_pages const& of, std::uint32_t thread, When const& when) : of_{of} {
        if (!of.has_versions()) { return; }
        auto const& all = of.all_records();
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].thread == thread) { own_.push_back({i, when(all[i].when)}); }
        }
    }

    /// Advances to a moment, which matters only if some page has versions. Returns how many records
    /// before it may have changed bytes.
    auto advance(moment now) -> std::uint32_t {
        while (next_own_ < own_.size() && own_[next_own_].when <= now) { ++next_own_; }
        limit_ = next_own_ < own_.size() ? own_[next_own_].record : of_.all_records().size();
        return of_.changes_before(limit_);
    }
    /// Reads up to `most` bytes.
    auto read(std::uint64_t ip, std::uint8_t* to, std::size_t most) -> std::size_t {
        std::size_t count = 0;
        while (count < most) {
            auto const at = ip + count;
            auto const& from = view_of(at >> code_pages::page_bits);
            if (from.of == nullptr) { break; }
            auto const in_page = static_cast<std::size_t>(at & (code_pages::page_bytes - 1));
            auto const size = std::min<std::size_t>(from.of->known[in_page], most - count);
            if (size == 0) { break; }
            std::memcpy(to + count, from.bytes + in_page, size);
            count += size;
        }
        return count;
    }

private:
    /// The bytes of a page that has versions, with the first `next` of them applied.
    struct version {
        std::array<std::uint8_t, code_pages::page_bytes> bytes;
        std::size_t next = 0;
    };
    struct view {
        std::uint64_t number = ~std::uint64_t{0};
        code_pages::page const* of = nullptr;
        std::uint8_t const* bytes = nullptr;
        version* changing = nullptr;
    };

    struct own_record {
        std::size_t record;
        moment when;
    };
    code_pages const& of_;
    std::vector<own_record> own_{};
    std::size_t next_own_ = 0;
    std::size_t limit_ = ~std::size_t{0};
    std::array<view, 1024> recent_{};
    std::unordered_map<std::uint64_t, std::unique_ptr<version>> versions_{};

    /// Returns a page as it is at the present moment.
    auto view_of(std::uint64_t number) -> view const& {
        auto& found = recent_[number % recent_.size()];
        if (found.number != number) { found = made_view(number); }
        if (found.changing != nullptr) { update(*found.changing, found.of->versions); }
        return found;
    }
    auto made_view(std::uint64_t number) -> view {
        auto const* const of = of_.find(number);
        if (of == nullptr) { return {number}; }
        if (!of->has_versions) { return {number, of, of->bytes.data()}; }
        auto& changing = versions_[number];
        if (changing == nullptr) { changing = std::make_unique<version>(version{of->bytes}); }
        return {number, of, changing->bytes.data(), changing.get()};
    }
    void update(version& now, std::vector<code_pages::piece> const& all) const {
        for (; now.next < all.size() && all[now.next].record < limit_; ++now.next) {
            auto const& one = all[now.next];
            std::memcpy(now.bytes.data() + one.at, one.bytes, one.size);
        }
    }
};

}  // namespace pt_record
