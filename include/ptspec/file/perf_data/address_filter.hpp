// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>

/// Reads address filters, which perf stores as text.
namespace ptspec::file::perf_data {

/// What is traced by an address filter. Linux gives filter `n` of an event to ADDRn_CFG.
///
/// Units:  `address` is linear, or a byte of `file`; `size` is in bytes.
struct address_filter {
    bool is_found = false;
    bool is_stop = false;  ///< an address in the range stops tracing
    uint64_t address = 0;
    uint64_t size = 0;
    byte_view file{};  ///< the path; empty: the addresses are linear, as those of the kernel

    constexpr explicit operator bool() const noexcept { return is_found; }
};

/// Reads the filters of an event, one by one: `filter 0x1000/0x200@/bin/true,stop 0x10/8@/bin/ls`.
///
/// Errors: after text of another form there are no more filters, and `is_bad()`.
/// Source: Linux, kernel/events/core.c, `perf_event_parse_addr_filter`.
class address_filter_reader {
public:
    constexpr explicit address_filter_reader(byte_view filters) noexcept : rest_{filters} {}

    /// The next filter, or none.
    [[nodiscard]] constexpr auto next() noexcept -> address_filter {
        auto const action = take_word();
        if (action.empty() && rest_.empty()) { return {}; }
        address_filter made;
        made.is_stop = is(action, "stop");
        made.is_found = made.is_stop || is(action, "filter");
        auto range = take_word();
        made.is_found = made.is_found && take_number(range, made.address) &&
                        take_letter(range, '/') && take_number(range, made.size) && made.size != 0;
        if (made.is_found && !range.empty()) {
            made.is_found = take_letter(range, '@') && !range.empty();
            made.file = range;
        }
        if (made.is_found) { return made; }
        is_bad_ = true;
        rest_ = {};
        return {};
    }
    [[nodiscard]] constexpr auto is_bad() const noexcept -> bool { return is_bad_; }

private:
    static constexpr auto is(byte_view word, text name) noexcept -> bool {
        if (word.size() != name.size()) { return false; }
        for (size_t i = 0; i < word.size(); ++i) {
            if (word[i] != static_cast<uint8_t>(name.data()[i])) { return false; }
        }
        return true;
    }
    /// Takes the bytes up to the next separator, and the separators before and after them.
    constexpr auto take_word() noexcept -> byte_view {
        auto const separates = [&](size_t at) {
            return rest_[at] == ' ' || rest_[at] == ',' || rest_[at] == '\n';
        };
        size_t begin = 0;
        while (begin < rest_.size() && separates(begin)) { ++begin; }
        size_t end = begin;
        while (end < rest_.size() && !separates(end)) { ++end; }
        auto const word = rest_.first(end).from(begin);
        while (end < rest_.size() && separates(end)) { ++end; }
        rest_ = rest_.from(end);
        return word;
    }
    static constexpr auto take_letter(byte_view& from, char letter) noexcept -> bool {
        if (from.empty() || from[0] != static_cast<uint8_t>(letter)) { return false; }
        from = from.from(1);
        return true;
    }
    /// The value of a digit; 16 for another letter.
    static constexpr auto digit(uint8_t letter) noexcept -> unsigned {
        return letter >= '0' && letter <= '9'   ? letter - unsigned{'0'}
               : letter >= 'a' && letter <= 'f' ? letter - unsigned{'a'} + 10
               : letter >= 'A' && letter <= 'F' ? letter - unsigned{'A'} + 10
                                                : 16;
    }
    /// Takes a number of 64 bits, in decimal, or in hexadecimal after `0x`.
    static constexpr auto take_number(byte_view& from, uint64_t& to) noexcept -> bool {
        bool const is_hex = from.size() > 2 && from[0] == '0' && (from[1] == 'x' || from[1] == 'X');
        unsigned const base = is_hex ? 16 : 10;
        if (is_hex) { from = from.from(2); }
        size_t count = 0;
        for (to = 0; !from.empty() && digit(from[0]) < base; ++count, from = from.from(1)) {
            uint64_t const value = digit(from[0]);
            if (to > (~uint64_t{0} - value) / base) { return false; }
            to = to * base + value;
        }
        return count != 0;
    }

    byte_view rest_;
    bool is_bad_ = false;
};

}  // namespace ptspec::file::perf_data
