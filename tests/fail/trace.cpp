// SPDX-License-Identifier: BSL-1.0
/// Reading and writing traces

#include <ptspec/packet/decode.hpp>
#include <ptspec/packet/encode.hpp>
#include <ptspec/trace/events.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/trace/split.hpp>
#include <ptspec/trace/time.hpp>
#include <ptspec/trace/write/writer.hpp>

#include <array>
#include <string>
#include <vector>

#if defined(__clang__)
#pragma clang diagnostic error "-Wdangling"
#endif

namespace reader_of_temporary {
/// The file is gone before the first packet is read.
// expect: the bytes of this temporary are gone before they are read: give it a name
// also clang
auto read_file() -> std::vector<unsigned char>;

auto first_packet() {
#ifndef SHOULD_FAIL
    auto const bytes = read_file();
    ptspec::trace::reader from{bytes};
#else
    ptspec::trace::reader from{read_file()};
#endif
    return from.next();
}
}  // namespace reader_of_temporary

namespace reader_of_temporary_array {
/// An array of bytes is trivially copyable like a view, but it owns its bytes.
// expect: the bytes of this temporary are gone before they are read: give it a name
auto first_packet(ptspec::packet::cbr which) {
#ifndef SHOULD_FAIL
    auto const bytes = ptspec::packet::encode(which);
    ptspec::trace::reader from{bytes};
#else
    ptspec::trace::reader from{ptspec::packet::encode(which)};
#endif
    return from.next();
}
}  // namespace reader_of_temporary_array

namespace reader_fed_a_temporary {
/// The piece is gone before the reader has read it.
// expect: the bytes of this temporary are gone before they are read: give it a name
auto next_piece() -> std::array<unsigned char, 4096>;

auto read_on(ptspec::trace::reader<>& from) {
#ifndef SHOULD_FAIL
    auto const piece = next_piece();
    bool const taken = from.feed(piece);
#else
    bool const taken = from.feed(next_piece());
#endif
    return taken ? from.next() : ptspec::trace::item{};
}
}  // namespace reader_fed_a_temporary

namespace split_of_temporary {
/// The string is gone before its pieces are read.
// expect: the bytes of this temporary are gone before they are read: give it a name
auto read_file() -> std::string;

auto count_pieces() {
    std::size_t count = 0;
#ifndef SHOULD_FAIL
    auto const bytes = read_file();
    for (ptspec::byte_view const piece : ptspec::trace::split{bytes, 4}) { count += piece.size(); }
#else
    for (ptspec::byte_view const piece : ptspec::trace::split{read_file(), 4}) {
        count += piece.size();
    }
#endif
    return count;
}
}  // namespace split_of_temporary

namespace view_of_a_temporary {
/// The view is of bytes that are gone.
// expect: will be destroyed at the end of the full-expression
// one error
// only clang
// a warning
auto read_file() -> std::vector<unsigned char>;

#ifndef SHOULD_FAIL
auto first_packet() { return ptspec::packet::decode(read_file()); }
#else
auto first_packet() {
    ptspec::byte_view const bytes = read_file();
    return ptspec::packet::decode(bytes);
}
#endif
}  // namespace view_of_a_temporary

namespace reader_of_no_bytes {
/// The elements of a trace are bytes.
// expect: borrowed bytes have data() and size(), and elements of one byte
auto first_packet(std::vector<unsigned char> const& bytes, std::vector<unsigned> const& words) {
#ifndef SHOULD_FAIL
    ptspec::trace::reader from{bytes};
    (void)words;
#else
    ptspec::trace::reader from{words};
    (void)bytes;
#endif
    return from.next();
}
}  // namespace reader_of_no_bytes

namespace reader_in_range_for {
/// A reader is no range: its packets are valid until the next one.
// expect: a reader is no range: while (auto const& one = reader.next()) { .. }
// one error
auto last_offset(ptspec::byte_view bytes) {
    ptspec::trace::reader reader{bytes};
    uint64_t offset = 0;
#ifndef SHOULD_FAIL
    while (auto const& one = reader.next()) {
#else
    for (auto const& one : reader) {
#endif
        offset = one.offset;
    }
    return offset;
}
}  // namespace reader_in_range_for

namespace event_reader_in_range_for {
/// A reader of events is no range: its events are valid until the next one.
// expect: a reader is no range: while (auto const& one = reader.next()) { .. }
// one error
auto last_ip(ptspec::byte_view bytes) {
    ptspec::trace::event_reader reader{bytes};
    uint64_t ip = 0;
#ifndef SHOULD_FAIL
    while (auto const& one = reader.next()) {
#else
    for (auto const& one : reader) {
#endif
        ip = one.ip;
    }
    return ip;
}
}  // namespace event_reader_in_range_for

namespace event_reader_quirks_before_clock {
/// The quirks of a processor come after the clock.
// expect: deleted
// expect: clock, quirks
// one error
// at most 12 lines
auto reader_of(ptspec::byte_view bytes, ptspec::cpu::quirk_set quirks) {
#ifndef SHOULD_FAIL
    return ptspec::trace::event_reader{bytes, ptspec::trace::no_clock{}, quirks};
#else
    return ptspec::trace::event_reader{bytes, quirks};
#endif
}
}  // namespace event_reader_quirks_before_clock

namespace visitor_of_nothing {
/// A visitor that no packet can be passed to would silently receive nothing.
// expect: the visitor does not take what for_each<...> names: it is called with (packet const&
auto read(ptspec::byte_view bytes) {
#ifndef SHOULD_FAIL
    auto const visitor = [](ptspec::packet::tip const&, ptspec::trace::packet_place) {};
#else
    auto const visitor = [](ptspec::packet::tip const&) {};
#endif
    return ptspec::trace::reader{bytes}.for_each<ptspec::packet::tip>(visitor);
}
}  // namespace visitor_of_nothing

namespace visitor_of_some_packets {
/// A visitor that drops packets or damage says which it takes.
// expect: this visitor does not take all packets and items: for_each<packet::tip, trace::item>
// also clang
auto read(ptspec::byte_view bytes) {
    auto const visitor = [](ptspec::packet::tip const&, ptspec::trace::packet_place) {};
#ifndef SHOULD_FAIL
    return ptspec::trace::reader{bytes}.for_each<ptspec::packet::tip>(visitor);
#else
    return ptspec::trace::reader{bytes}.for_each(visitor);
#endif
}
}  // namespace visitor_of_some_packets

namespace visitor_without_items {
/// A visitor that takes all packets would not see damage, or where decoding resumes.
// expect: this visitor does not take all packets and items: for_each<packet::tip, trace::item>
auto read(ptspec::byte_view bytes) {
    auto const visitor = [](auto const&, ptspec::trace::packet_place) {};
#ifndef SHOULD_FAIL
    return ptspec::trace::reader{bytes}.for_each<ptspec::packet::all>(visitor);
#else
    return ptspec::trace::reader{bytes}.for_each(visitor);
#endif
}
}  // namespace visitor_without_items

namespace visitor_with_wrong_overload {
/// The second argument is `trace::packet_place`: the TNTs would be lost.
// expect: the visitor does not take what for_each<...> names: it is called with (packet const&
struct visitor {
    unsigned count = 0;
    void operator()(ptspec::packet::tip const&, ptspec::trace::packet_place) { ++count; }
#ifndef SHOULD_FAIL
    void operator()(ptspec::packet::tnt_short const&, ptspec::trace::packet_place) { ++count; }
#else
    void operator()(ptspec::packet::tnt_short const&, int) { ++count; }
#endif
};

auto read(ptspec::byte_view bytes, visitor& seen) {
    using namespace ptspec::packet;
    return ptspec::trace::reader{bytes}.for_each<tip, tnt_short>(seen);
}
}  // namespace visitor_with_wrong_overload

namespace visitor_of_unnamed_packets {
/// The visitor takes more than is named.
// expect: the visitor takes a packet or item that for_each<...> does not name
auto read(ptspec::byte_view bytes) {
    auto const visitor = [](auto const&, ptspec::trace::packet_place) {};
#ifndef SHOULD_FAIL
    return ptspec::trace::reader{bytes}.for_each<ptspec::packet::all>(visitor);
#else
    return ptspec::trace::reader{bytes}.for_each<ptspec::packet::tip>(visitor);
#endif
}
}  // namespace visitor_of_unnamed_packets

namespace visitor_with_wrong_pads {
/// A run of PADs has a number and a place.
// expect: the pads of a visitor are `void pads(unsigned count, ptspec::trace::packet_place)`
struct visitor {
    unsigned count = 0;
    void operator()(auto const&, ptspec::trace::packet_place) { ++count; }
    void operator()(ptspec::trace::item const&) {}
#ifndef SHOULD_FAIL
    void pads(unsigned pads, ptspec::trace::packet_place) { count += pads; }
#else
    void pads(ptspec::trace::packet_place) { ++count; }
#endif
};

auto read(ptspec::byte_view bytes, visitor& seen) {
    return ptspec::trace::reader{bytes}.for_each(seen);
}
}  // namespace visitor_with_wrong_pads

namespace visitor_with_wrong_skip {
/// A visitor that skips packets returns how many bytes, and LastIP.
// expect: the skip of a visitor is `auto skip(uint8_t const* bytes, size_t room, uint64_t offset
struct visitor {
    void operator()(auto const&, ptspec::trace::packet_place) {}
    void operator()(ptspec::trace::item const&) {}
#ifndef SHOULD_FAIL
    auto skip(uint8_t const*, size_t, uint64_t, uint64_t) -> ptspec::trace::skipped_packets {
        return {};
    }
#else
    auto skip(uint8_t const*, size_t, uint64_t) -> size_t { return 0; }
#endif
};

auto read(ptspec::byte_view bytes, visitor& seen) {
    return ptspec::trace::reader{bytes}.for_each(seen);
}
}  // namespace visitor_with_wrong_skip

namespace writer_into_wrong_wide_sink {
/// Without a result, the writer would not know whether the sink had room.
// expect: the second append of a sink is `auto append(ptspec::wide_bits, size_t) -> bool`
struct sink {
    auto append(ptspec::byte_view) -> bool { return true; }
#ifndef SHOULD_FAIL
    auto append(ptspec::wide_bits, size_t) -> bool { return true; }
#else
    void append(ptspec::wide_bits, size_t) {}
#endif
};

auto write(sink& to) {
    ptspec::trace::writer writer{to};
    return writer.branch(true);
}
}  // namespace writer_into_wrong_wide_sink

namespace writer_into_no_sink {
/// A vector is no sink; a `byte_buffer` is one.
// expect: a sink has append(byte_view) -> bool, as ptspec::byte_buffer has
// one error
// at most 20 lines
auto write(std::vector<unsigned char>& to) {
#ifndef SHOULD_FAIL
    ptspec::byte_buffer out{to.data(), to.size()};
    ptspec::trace::writer writer{out};
#else
    ptspec::trace::writer writer{to};
#endif
    return writer.branch(true);
}
}  // namespace writer_into_no_sink

namespace core_frequency_in_a_row {
/// Cycles and TSC ticks, swapped: they have names.
// expect: core_frequency
// expect: clock_counts
auto frequency(uint64_t cycles, uint64_t ticks, uint64_t of_tsc) -> uint64_t {
#ifndef SHOULD_FAIL
    return ptspec::trace::core_frequency({.cycles = cycles, .tsc_ticks = ticks}, of_tsc);
#else
    return ptspec::trace::core_frequency(ticks, cycles, of_tsc);
#endif
}
}  // namespace core_frequency_in_a_row
