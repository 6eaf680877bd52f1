// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/raw_bits.hpp>

/// Where printed text goes, and numbers as text.
///
/// Whatever prints hands its text on piece by piece, so that nothing has to be allocated: to a
/// lambda that writes to a screen, to borrowed characters, to a constant.
namespace ptspec::print {

/// Anything that can be called with one piece of text after the other.
template <class Sink>
concept text_sink = callable<Sink&, text>;

/// One piece, as `text` and nothing else, so that a sink may take any argument.
template <text_sink Sink>
constexpr void put(text piece, Sink&& sink) {
    sink(piece);
}

/// Borrowed characters, filled from the front. What does not fit is cut off.
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

    /// The text so far. No zero stands behind it.
    [[nodiscard]] constexpr auto written() const noexcept -> text { return {first_, size_}; }
    /// True when something did not fit.
    [[nodiscard]] constexpr auto was_cut() const noexcept -> bool { return cut_; }

private:
    char* first_;
    size_t room_;
    size_t size_ = 0;
    bool cut_ = false;
};

/// Owned text of up to `Room` characters. What does not fit is cut off.
template <size_t Room>
struct fixed_text {
    char characters[Room] = {};
    size_t length = 0;
    bool was_cut = false;

    constexpr void operator()(text piece) noexcept {
        text_buffer rest{characters + length, Room - length};
        rest(piece);
        length += rest.written().size();
        was_cut = was_cut || rest.was_cut();
    }

    /// The text, which lives as long as this object.
    [[nodiscard]] constexpr auto written() const noexcept -> text { return {characters, length}; }

    friend constexpr auto operator==(fixed_text const& one, text two) noexcept -> bool {
        return one.written() == two && !one.was_cut;
    }
};

/// What `prints(sink)` prints, as a value:
/// `written<80>([](auto& out) { print::word(start, out); })`.
template <size_t Room, class Prints>
[[nodiscard]] constexpr auto written(Prints&& prints) -> fixed_text<Room> {
    fixed_text<Room> out;
    prints(out);
    return out;
}

/// A number in hexadecimal: upper case, at least `digits` digits of 16 at the most.
template <text_sink Sink>
constexpr void hex(uint64_t number, Sink&& sink, unsigned digits = 1) {
    char letters[16] = {};
    unsigned count = 0;
    while (count < digits || number != 0) {
        ++count;
        letters[16 - count] = "0123456789ABCDEF"[number & 15];
        number >>= 4;
    }
    sink(text{letters + 16 - count, count});
}

template <text_sink Sink>
constexpr void hex(wide_bits number, Sink&& sink) {
    if (number.high != 0) { hex(number.high, sink); }
    hex(number.low, sink, number.high != 0 ? 16 : 1);
}

/// A number in decimal.
template <text_sink Sink>
constexpr void decimal(uint64_t number, Sink&& sink) {
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
