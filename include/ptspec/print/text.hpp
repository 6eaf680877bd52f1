// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/raw_bits.hpp>

/// Text output, and numbers as text.
///
/// A printer passes its text to a sink piece by piece, so it allocates nothing. A sink may be a
/// lambda that writes to a screen, a borrowed buffer, or a constant.
namespace ptspec::print {

/// A callable that takes the pieces of a text in order.
template <class Sink>
concept text_sink = callable<Sink&, text>;

namespace detail {

/// A sink that drops text, for use after an error: no second error follows.
struct dropping_sink {
    constexpr void operator()(text) const noexcept {}
};
inline constexpr dropping_sink drop{};

/// Returns the sink. For other types the build stops, and the message says what a sink is. Every
/// printer calls this first.
template <class Sink>
constexpr auto checked_sink([[maybe_unused]] Sink& sink) noexcept -> auto& {
    constexpr bool is_sink = text_sink<Sink>;
    static_assert(is_sink, "a sink is called with each piece: [](ptspec::text piece) {..}");
    if constexpr (is_sink) {
        return sink;
    } else {
        return drop;
    }
}

}  // namespace detail

/// Passes one piece as `text`, so that a sink with a generic parameter also works.
template <class Sink>
constexpr void put(text piece, Sink&& out) {
    detail::checked_sink(out)(piece);
}

/// A borrowed character buffer, filled from the front. Text that does not fit is truncated.
class text_buffer {
public:
    constexpr text_buffer(char* first, size_t room) noexcept : first_{first}, room_{room} {}
    template <size_t Count>
    constexpr text_buffer(char (&array)[Count]) noexcept : first_{array}, room_{Count} {}

    constexpr void operator()(text piece) noexcept {
        for (char const letter : piece) {
            if (size_ == room_) {
                cut_ = true;
                break;
            }
            first_[size_++] = letter;
        }
    }

    /// The text written so far, without a terminating zero.
    [[nodiscard]] constexpr auto written() const noexcept -> text { return {first_, size_}; }
    /// True if text was truncated.
    [[nodiscard]] constexpr auto is_truncated() const noexcept -> bool { return cut_; }

private:
    char* first_;
    size_t room_;
    size_t size_ = 0;
    bool cut_ = false;
};

/// An owned text of up to `Room` characters. Text that does not fit is truncated.
template <size_t Room>
struct fixed_text {
    char characters[Room] = {};
    size_t length = 0;
    bool is_truncated = false;

    constexpr void operator()(text piece) noexcept {
        text_buffer rest{characters + length, Room - length};
        rest(piece);
        length += rest.written().size();
        is_truncated = is_truncated || rest.is_truncated();
    }

    /// The text, valid as long as this object.
    [[nodiscard]] constexpr auto written() const noexcept -> text { return {characters, length}; }

    friend constexpr auto operator==(fixed_text const& one, text two) noexcept -> bool {
        return one.written() == two && !one.is_truncated;
    }
};

/// Returns the output of `prints(sink)` as a value: `written<80>([](auto& out) { print::word(start,
/// out); })`.
template <size_t Room, class Prints>
[[nodiscard]] constexpr auto written(Prints&& prints) -> fixed_text<Room> {
    fixed_text<Room> out;
    prints(out);
    return out;
}

/// Prints a number in upper-case hexadecimal with at least `digits` digits. `digits` is at most 16.
template <class Sink>
constexpr void hex(uint64_t number, Sink&& out, unsigned digits = 1) {
    auto& sink = detail::checked_sink(out);
    char letters[16] = {};
    unsigned count = 0;
    while (count < digits || number != 0) {
        ++count;
        letters[16 - count] = "0123456789ABCDEF"[number & 15];
        number >>= 4;
    }
    sink(text{letters + 16 - count, count});
}

template <class Sink>
constexpr void hex(wide_bits number, Sink&& out) {
    auto& sink = detail::checked_sink(out);
    if (number.high != 0) { hex(number.high, sink); }
    hex(number.low, sink, number.high != 0 ? 16 : 1);
}

/// Prints a number in decimal.
template <class Sink>
constexpr void decimal(uint64_t number, Sink&& out) {
    auto& sink = detail::checked_sink(out);
    char letters[20] = {};
    unsigned count = 0;
    do {
        ++count;
        letters[20 - count] = static_cast<char>('0' + number % 10);
        number /= 10;
    } while (number != 0);
    sink(text{letters + 20 - count, count});
}

}  // namespace ptspec::print
