// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/address.hpp>
#include <ptspec/base/bytes.hpp>
#include <ptspec/base/named_member.hpp>
#include <ptspec/trace/binding.hpp>
#include <ptspec/trace/time.hpp>

/// Where the bytes of traced code come from.
namespace ptspec::flow {

/// Code in memory: `code(address, space)` returns the bytes from a linear address on, at least to
/// the end of its page of 4 KB, or none if they are absent.
///
/// `space` is the number of an address space: the same number and address always have the same
/// bytes. After a change of code, for example by another CR3, mmap or a JIT compiler, the caller
/// uses another number or calls `block_cache::invalidate`. The number comes from `source.space_of`,
/// or from `walker::set_space` if the source has no such function.
template <class Source>
concept code_source = requires(Source& source, uint64_t address, uint32_t space) {
    { source.code(address, space) } -> same_as<byte_view>;
};

/// How far a walk is in the trace.
struct walk_state {
    trace::execution_state state{};  ///< CR3, NR, VMCS and code size, as far as they are known
    bool has_lost_packets = false;   ///< since the last PIP: `state` may be that of before
    /// The time of the packet, if the space changes `at_packets` or `at_branches`.
    trace::time when{};
    uint64_t offset = 0;    ///< of the packet, in bytes from the start of the trace
    unsigned branches = 0;  ///< the number of branches of this TNT that were walked

    /// True if a PSB+ says nothing new of the address space.
    template <class Report>
    [[nodiscard]] constexpr auto agrees_with(Report const& read) const noexcept -> bool {
        auto after = state;
        if (read.has(packet::kind::pip)) { after.take(read.pip); }
        if (read.has(packet::kind::vmcs)) { after.take(read.vmcs); }
        return after == state && !has_lost_packets;
    }
};

/// Where the number of the address space may change: where a PIP applies, also at each packet, or
/// also at each branch. The walker calls `space_of` there.
enum class space_changes : uint8_t { at_paging, at_packets, at_branches };

namespace detail {

struct space_of_name {
    int space_of;
    template <class Type>
    static auto find() -> decltype(&Type::space_of);
};
struct changes_name {
    int changes;
    template <class Type>
    static auto find() -> decltype(&Type::changes);
};
struct needs_time_at_name {
    int needs_time_at;
    template <class Type>
    static auto find() -> decltype(&Type::needs_time_at);
};

}  // namespace detail

/// `space_of(walked)` is the number of the address space of the code that follows, and `changes`
/// says where it may change.
template <class Source>
concept has_spaces = code_source<Source> && requires(Source& source, walk_state const& walked) {
    { source.space_of(walked) } -> same_as<uint32_t>;
    requires same_as<bare_t<decltype(Source::changes)>, space_changes>;
};
/// `needs_time_at(address, space)` is true if the source lacks the bytes only because the time is
/// not known: the gap is `gap_reason::no_time` instead of `missing_code`.
template <class Source>
concept knows_why_absent = code_source<Source> &&
                           requires(Source& source, uint64_t address, uint32_t space) {
                               { source.needs_time_at(address, space) } -> same_as<bool>;
                           };
/// `Source::changes`, or `at_paging` for a source that does not have spaces.
template <class Source>
inline constexpr space_changes changes_of = space_changes::at_paging;
template <has_spaces Source>
inline constexpr space_changes changes_of<Source> = Source::changes;

namespace detail {

/// Stops the build for a source with one of the two members of `has_spaces`, or wrong ones, or with
/// a wrong member of `knows_why_absent`.
template <class Source>
struct source_members {
    static_assert(has_spaces<Source> ||
                      !(has_member<Source, space_of_name> || has_member<Source, changes_name>),
                  "a source of code in several address spaces has `auto "
                  "space_of(ptspec::flow::walk_state const&) -> uint32_t` and `static constexpr "
                  "auto changes = ptspec::flow::space_changes::at_paging`, or another of these");
    static_assert(knows_why_absent<Source> || !has_member<Source, needs_time_at_name>,
                  "the needs_time_at of a source is `auto needs_time_at(uint64_t, uint32_t) -> "
                  "bool`");
};

}  // namespace detail

/// Bytes at a linear address.
struct code_span {
    borrowed_bytes bytes;
    uint64_t address = 0;

    [[nodiscard]] constexpr auto code(uint64_t at, uint32_t /*space*/) const noexcept -> byte_view {
        auto const all = bytes.view();
        uint64_t const offset = at - address;
        return offset < all.size() ? all.from(static_cast<size_t>(offset)) : byte_view{};
    }
};

/// Several spans of one address space, in any order. Where spans overlap, the first in the list
/// that has an address has its code.
///
/// The search takes logarithmic time if the spans are sorted by address and do not overlap, linear
/// time otherwise. The constructor finds out.
class code_spans {
public:
    constexpr code_spans() noexcept = default;
    constexpr code_spans(code_span const* first, size_t count) noexcept
        : first_{first}, count_{count} {
        for (size_t i = 1; i < count; ++i) {
            uint64_t const before = first[i - 1].address;
            uint64_t const here = first[i].address;
            if (here < before || here - before < first[i - 1].bytes.view().size()) {
                is_sorted_ = false;
            }
        }
    }

    [[nodiscard]] constexpr auto code(uint64_t at, uint32_t space) const noexcept -> byte_view {
        if (!is_sorted_) [[unlikely]] { return code_of_any(at, space); }
        size_t low = 0;
        size_t high = count_;
        while (low < high) {
            size_t const middle = low + (high - low) / 2;
            if (first_[middle].address <= at) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low == 0 ? byte_view{} : first_[low - 1].code(at, space);
    }

private:
    [[nodiscard]] constexpr auto code_of_any(uint64_t at, uint32_t space) const noexcept
        -> byte_view {
        for (size_t i = 0; i < count_; ++i) {
            byte_view const found = first_[i].code(at, space);
            if (!found.empty()) { return found; }
        }
        return {};
    }

    code_span const* first_ = nullptr;
    size_t count_ = 0;
    bool is_sorted_ = true;
};

inline constexpr size_t code_page_size = 4096;

/// Pages of 4 KB of one address space, in any order: `addresses[i]` is the address of page `i` of
/// `bytes`. Of pages with the same address the first is used.
///
/// The search takes logarithmic time if the addresses are sorted and multiples of 4096, linear time
/// otherwise. The constructor finds out.
class code_pages {
public:
    constexpr code_pages() noexcept = default;
    constexpr code_pages(uint64_t const* addresses, size_t count, uint8_t const* bytes) noexcept
        : addresses_{addresses}, count_{count}, bytes_{bytes} {
        for (size_t i = 0; i < count; ++i) {
            bool const is_next = i == 0 || addresses[i - 1] <= addresses[i];
            if (!is_next || addresses[i] % code_page_size != 0) { is_sorted_ = false; }
        }
    }

    [[nodiscard]] constexpr auto code(uint64_t at, uint32_t /*space*/) const noexcept -> byte_view {
        size_t const page = is_sorted_ ? find_sorted(at) : find_any(at);
        if (page == count_) { return {}; }
        uint64_t const in_page = at - addresses_[page];
        if (in_page >= code_page_size) { return {}; }
        auto const offset = static_cast<size_t>(in_page);
        return {bytes_ + page * code_page_size + offset, code_page_size - offset};
    }

private:
    /// The first page at or after that of an address.
    [[nodiscard]] constexpr auto find_sorted(uint64_t at) const noexcept -> size_t {
        uint64_t const page = align_down(at, code_page_size);
        size_t low = 0;
        size_t high = count_;
        while (low < high) {
            size_t const middle = low + (high - low) / 2;
            if (addresses_[middle] < page) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }
    [[nodiscard]] constexpr auto find_any(uint64_t at) const noexcept -> size_t {
        size_t page = 0;
        while (page < count_ && at - addresses_[page] >= code_page_size) { ++page; }
        return page;
    }

    uint64_t const* addresses_ = nullptr;
    size_t count_ = 0;
    uint8_t const* bytes_ = nullptr;
    bool is_sorted_ = true;
};

/// Calls a function for the bytes: `read(address, space)`.
template <callable<uint64_t, uint32_t> Read>
struct code_callback {
    Read read;

    [[nodiscard]] constexpr auto code(uint64_t at, uint32_t space) -> byte_view {
        return read(at, space);
    }
};
template <class Read>
code_callback(Read) -> code_callback<Read>;

}  // namespace ptspec::flow
