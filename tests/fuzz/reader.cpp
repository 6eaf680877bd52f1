// SPDX-License-Identifier: BSL-1.0
// Fuzzes reading: a trace as a whole and in chunks, with `next`, `for_each` and `scan`, from
// copies, and after sync_first, sync_next and sync_previous, against a reference reader that
// follows the rule catalogue.
//
//   byte 0       bit 0 sync, bit 1 strict, bits 3:2 the hook, bits 7:4 the number of chunk sizes
//   byte 1       the number of items before a copy, the stop of a visitor, or a move
//   8 bytes      the results of the hook, 4 bits for each of 16 classes of opcodes
//   a byte each  the sizes of the chunks; the last chunk is the rest
//   the rest     the trace

#include <memory>
#include <vector>

#include <ptspec/trace/reader.hpp>

#include <fuzz/check.hpp>
#include <fuzz/naive.hpp>

namespace {

using fuzz::require;
using namespace ptspec;
using packet::error;
using packet::kind;
using trace::item_type;

// ------------------------------------------------------------------------------------ the input

/// A hook with arbitrary results. They depend on the opcode, and in mode 2 on the byte after it.
struct hook {
    unsigned mode = 0;
    uint64_t answers = 0;

    auto operator()(byte_view bytes) const -> unsigned {
        require(!bytes.empty() && bytes.size() <= 16, "a hook sees 1 to 16 bytes");
        require(naive::decode(bytes, 0, false).why == error::bad_opcode,
                "a hook sees unknown opcodes");
        unsigned const opcode = bytes[0] != 0x02   ? bytes[0]
                                : bytes[1] != 0xC3 ? bytes[1] * 3U
                                                   : bytes[2] * 7U;
        unsigned const answer = (answers >> (opcode % 16 * 4)) & 15;
        switch (mode) {
            case 1: return answer;
            case 2: return answer % 4 == 0 ? 0 : bytes.size() < 3 ? 3 : 3 + bytes[2] % 14U;
            case 3: return answer + 3;  // 17 and 18 are invalid
            default: return 0;
        }
    }
};

struct setting {
    trace::reader_options how;
    ::hook hook;
    unsigned moment;
    std::vector<size_t> sizes;
    byte_view bytes;
};

auto setting_of(fuzz::input from) -> setting {
    setting all;
    unsigned const choice = from.byte();
    all.how = {.sync = (choice & 1) != 0, .strict = (choice & 2) != 0};
    all.moment = from.byte();
    all.hook = {(choice >> 2) & 3, from.number()};
    for (unsigned i = 0; i < choice >> 4; ++i) { all.sizes.push_back(from.byte()); }
    all.bytes = from.rest().first(4096);
    return all;
}

// ------------------------------------------------------------------------------------ steps

/// An item in a form that can be compared.
struct step {
    item_type what = item_type::end;
    error why = error::none;
    unsigned length = 0;
    unsigned need = 0;
    uint64_t offset = 0;
    uint64_t ip = 0;
    int64_t skipped = 0;
    kind which = kind::none;
    wide_bits bits{};

    friend auto operator==(step const&, step const&) -> bool = default;
};
using steps = std::vector<step>;

auto step_of(trace::item const& from) -> step {
    require(from.what == item_type::damage || from.broken == rule::none,
            "only damage breaks a rule");
    require(from.what != item_type::damage || from.broken != rule::none, "damage breaks a rule");
    if (from.what == item_type::packet) {
        require(from.length == from.packet.length(), "an item has the length of its packet");
    } else {
        require(from.packet == packet::any_packet{}, "an item of another type has no packet");
    }
    return {from.what, from.error,   from.length,        from.need,        from.offset,
            from.ip,   from.skipped, from.packet.kind(), from.packet.raw()};
}

/// The bits of a packet, read from the trace.
auto bits_at(byte_view bytes, size_t at, unsigned length) -> wide_bits {
    return load_le_wide(bytes.from(at).first(length));
}

/// The expected steps of a trace according to PKT-250..256, from the PSB at `at` if `at_psb` is
/// set.
struct expectation {
    steps all;
    std::vector<unsigned> items;  // after each step
};

auto expect(setting const& what, bool at_psb = false, size_t at = 0) -> expectation {
    expectation out;
    auto const bytes = what.bytes;
    auto const psbs = naive::psbs(bytes);
    unsigned items = 0;
    uint64_t ip = 0;
    auto const add = [&](step one) {
        one.ip = ip;
        out.all.push_back(one);
        out.items.push_back(items);
    };
    bool searching = what.how.sync && !at_psb;
    item_type found = item_type::synced;
    size_t search_from = 0;
    size_t lost_at = 0;
    while (true) {
        if (searching) {
            size_t psb = bytes.size();
            for (size_t const one : psbs) {
                if (one >= search_from && one < psb) { psb = one; }
            }
            if (psb == bytes.size()) {
                if (bytes.size() == lost_at) { break; }
                add({.what = item_type::lost,
                     .offset = bytes.size(),
                     .skipped = static_cast<int64_t>(bytes.size() - lost_at)});
                break;
            }
            if (found != item_type::synced || psb != 0) {
                add({.what = found,
                     .offset = psb,
                     .skipped = static_cast<int64_t>(psb) - static_cast<int64_t>(lost_at)});
            }
            searching = false;
            at = psb;
            items = 0;
            ip = 0;
        }
        auto const here = bytes.from(at);
        if (here.empty()) { break; }
        auto got = naive::decode(here, items, what.how.strict);
        if (got.why == error::bad_opcode) {
            unsigned const known = what.hook(here.first(16));
            if (known != 0 && known <= 16) {
                if (known <= here.size()) {
                    add({.what = item_type::unknown, .length = known, .offset = at});
                    at += known;
                    continue;
                }
                got = naive::truncated(known);
            }
        }
        if (got.why == error::none) {
            ip = naive::last_ip_after(here, items, ip);
            items = naive::item_size_after(here, items);
            add({.what = item_type::packet,
                 .length = got.length,
                 .offset = at,
                 .which = got.which,
                 .bits = bits_at(bytes, at, got.length)});
            at += got.length;
        } else if (got.why == error::truncated) {
            add({.what = item_type::damage,
                 .why = got.why,
                 .need = got.need - static_cast<unsigned>(here.size()),
                 .offset = at,
                 .skipped = static_cast<int64_t>(here.size())});
            break;
        } else {
            add({.what = item_type::damage, .why = got.why, .offset = at});
            searching = true;
            found = item_type::resynced;
            search_from = at < 15 ? 0 : at - 15;
            lost_at = at;
        }
    }
    items = out.items.empty() ? 0 : out.items.back();
    add({.what = item_type::end, .offset = bytes.size()});
    return out;
}

/// Checks that each byte belongs to one step, except those of a PSB that begins before the damage.
void account(steps const& all, size_t size) {
    require(all.size() <= 2 * size + 16, "the number of items is limited by the bytes");
    uint64_t place = 0;
    for (step const& one : all) {
        switch (one.what) {
            case item_type::packet:
            case item_type::unknown:
                require(one.length >= 1 && one.offset == place, "packets are contiguous");
                place += one.length;
                break;
            case item_type::synced:
                require(place == 0 && one.skipped == static_cast<int64_t>(one.offset),
                        "the bytes before the first PSB are skipped");
                place = one.offset;
                break;
            case item_type::resynced:
                require(one.offset + 15 >= place && one.offset + 16 > place,
                        "reading resumes after the damage");
                require(one.skipped == static_cast<int64_t>(one.offset - place),
                        "skipped bytes are counted from the damage");
                place = one.offset;
                break;
            case item_type::damage:
                require(one.offset == place, "damage is at the next packet's offset");
                if (one.why == error::truncated) {
                    place += static_cast<uint64_t>(one.skipped);
                    require(place == size, "only the last packet can be truncated");
                }
                break;
            case item_type::lost:
                require(place + static_cast<uint64_t>(one.skipped) == size, "the rest is lost");
                place = size;
                break;
            case item_type::need_input:
                require(false, "a reader of a whole trace needs no input");
                break;
            case item_type::end:
                require(place == size && &one == &all.back(), "end is the last item");
                break;
        }
    }
}

// ------------------------------------------------------------------------------------ reading

/// Feeds a reader with the trace, as a whole or in chunks. Copies are independent.
class feeder {
public:
    feeder(setting const& what, bool in_pieces)
        : bytes_{what.bytes},
          sizes_{in_pieces ? what.sizes : std::vector<size_t>{}},
          in_pieces_{in_pieces} {
        if (!in_pieces) {
            piece_ = std::make_shared<fuzz::copy>(bytes_);
            given_ = bytes_.size();
        }
    }

    [[nodiscard]] auto reader(setting const& what) const -> trace::reader<hook> {
        return in_pieces_ ? trace::reader<hook>{what.how, what.hook}
                          : trace::reader<hook>{*piece_, what.how, what.hook};
    }
    /// The current chunk and its offset. A reader that needs input has released it.
    [[nodiscard]] auto piece() const -> byte_view { return piece_ ? *piece_ : byte_view{}; }
    [[nodiscard]] auto begin() const -> uint64_t { return given_ - piece().size(); }

    /// Gives the next chunk to a reader that needs input. Returns its size, or `nothing_left`.
    template <class Reader>
    auto give(Reader& reader) -> size_t {
        if (next_ > sizes_.size()) {
            reader.finish();
            require(!reader.feed(bytes_), "feed fails after finish");
            piece_.reset();
            return nothing_left;
        }
        auto const rest = bytes_.from(static_cast<size_t>(given_));
        auto const piece = next_ < sizes_.size() ? rest.first(sizes_[next_]) : rest;
        ++next_;
        given_ += piece.size();
        piece_ = std::make_shared<fuzz::copy>(piece);
        require(reader.feed(*piece_), "a reader that needs input accepts a chunk");
        require(piece_->size() == 0 || !reader.feed(*piece_), "it accepts one chunk");
        return piece_->size();
    }
    static constexpr size_t nothing_left = ~size_t{0};

private:
    byte_view bytes_;
    std::vector<size_t> sizes_;
    bool in_pieces_;
    size_t next_ = 0;
    uint64_t given_ = 0;
    std::shared_ptr<fuzz::copy> piece_;
};

/// A reader and its feeder.
struct reading {
    feeder from;
    trace::reader<hook> reader;
    bool searching;  // for a PSB; offset() is the position of the search

    reading(setting const& what, bool in_pieces)
        : from{what, in_pieces}, reader{from.reader(what)}, searching{what.how.sync} {}

    /// The next item other than `need_input`.
    auto next() -> trace::item {
        size_t missing = 0;
        uint64_t asked_at = 0;
        while (true) {
            uint64_t const offset = reader.offset();
            auto const got = reader.next();
            require(searching || got.offset == offset,
                    "outside of a search offset() is the start of the next packet");
            if (got.what != item_type::need_input) {
                require(missing == 0, "a reader needs input until it has `need` bytes");
                searching = got.what == item_type::damage && got.error != error::truncated;
                return got;
            }
            require(got.need >= 1 && got.need <= 16, "a reader needs 1 to 16 bytes");
            require(missing == 0 || (got.need >= missing && got.offset == asked_at),
                    "it still needs the missing bytes");
            size_t const given = from.give(reader);
            missing = given < got.need ? got.need - given : 0;
            asked_at = got.offset;
            if (given == feeder::nothing_left) { missing = 0; }
        }
    }

    auto rest() -> steps {
        steps all;
        do { all.push_back(step_of(next())); } while (all.back().what != item_type::end);
        return all;
    }
};

/// A visitor that accepts all packets and items.
struct collector {
    steps& all;
    unsigned stop_after = ~0U;

    template <packet::packet_type Packet>
    auto operator()(Packet const& packet, trace::packet_place where) -> bool {
        all.push_back({.what = item_type::packet,
                       .length = where.length,
                       .offset = where.offset,
                       .ip = where.ip,
                       .which = Packet::about.id,
                       .bits = packet::any_packet{packet, where.length}.raw()});
        return stop_after == ~0U || --stop_after != 0;
    }
    void operator()(trace::item const& other) const {
        if (other.what != item_type::need_input) { all.push_back(step_of(other)); }
    }
};

/// A visitor that accepts two packet types only.
struct chooser {
    steps& all;
    void operator()(packet::tip const& packet, trace::packet_place where) const {
        collector{all}(packet, where);
    }
    void operator()(packet::tnt_short const& packet, trace::packet_place where) const {
        collector{all}(packet, where);
    }
};

template <class... Taken, class Visitor>
void visit_all(reading one, Visitor visitor) {
    while (true) {
        auto const ended = one.reader.template for_each<Taken...>(visitor);
        if (ended == item_type::end) { return; }
        if (ended == item_type::need_input) { (void)one.from.give(one.reader); }
    }
}

auto visited(reading const& one) -> steps {
    steps all;
    visit_all(one, collector{all});
    return all;
}

auto sum_of(steps const& all) -> trace::packet_counts {
    trace::packet_counts sum;
    for (step const& one : all) {
        if (one.what == item_type::packet) {
            sum.packets[underlying(one.which)] += 1;
            sum.bytes[underlying(one.which)] += one.length;
        }
        if (one.what == item_type::unknown) {
            sum.unknown += 1;
            sum.unknown_bytes += one.length;
        }
        sum.errors += one.what == item_type::damage ? 1U : 0U;
        sum.resyncs += one.what == item_type::resynced ? 1U : 0U;
    }
    return sum;
}

void check_bulk(setting const& what, bool in_pieces, steps const& expected) {
    reading const fresh{what, in_pieces};
    require(visited(fresh) == expected, "for_each visits the items of next");

    // A visitor that stops, then `next` for the rest.
    reading stopped = fresh;
    steps all;
    item_type ended = item_type::need_input;
    while (ended == item_type::need_input) {
        ended = stopped.reader.for_each(collector{all, what.moment + 1U});
        if (ended == item_type::need_input) { (void)stopped.from.give(stopped.reader); }
    }
    if (ended == item_type::packet) {
        for (step const& one : stopped.rest()) { all.push_back(one); }
    }
    require(all == expected, "next continues where for_each stopped");

    steps chosen;
    visit_all<packet::tip, packet::tnt_short>(fresh, chooser{chosen});
    steps wanted;
    for (step const& one : expected) {
        if (one.what == item_type::packet &&
            (one.which == kind::tip || one.which == kind::tnt_short)) {
            wanted.push_back(one);
        }
    }
    require(chosen == wanted, "a visitor gets the packets that it accepts");

    reading scanned = fresh;
    trace::packet_counts sum;
    size_t boundaries = 0;
    bool more = true;
    while (more) {
        sum = scanned.reader.scan(sum, [&](kind which, uint64_t offset, unsigned length) {
            while (boundaries < expected.size() && expected[boundaries].what != item_type::packet) {
                ++boundaries;
            }
            require(boundaries < expected.size() && expected[boundaries].which == which &&
                        expected[boundaries].offset == offset &&
                        expected[boundaries].length == length,
                    "scan reports the packet boundaries");
            ++boundaries;
        });
        more = in_pieces && scanned.from.give(scanned.reader) != feeder::nothing_left;
    }
    if (in_pieces) { sum = scanned.reader.scan(sum); }
    require(sum == sum_of(expected), "scan counts the items of next");
}

// ------------------------------------------------------------------------------------ moving

/// Moves to a PSB of the current chunk, if there is one, and reads the rest.
void check_move(setting const& what, reading moved, steps const& rest, unsigned way) {
    auto const psbs = naive::psbs(moved.from.piece());
    auto const place = static_cast<int64_t>(moved.reader.offset()) -
                       static_cast<int64_t>(moved.from.begin());
    int64_t wanted = -1;
    for (size_t const psb : psbs) {
        auto const at = static_cast<int64_t>(psb);
        if (way == 0 && wanted < 0) { wanted = at; }
        if (way == 1 && wanted < 0 && (at > place || (at == place && moved.searching))) {
            wanted = at;
        }
        if (way == 2 && at < place) { wanted = at; }
    }
    bool const found = way == 0   ? moved.reader.sync_first()
                       : way == 1 ? moved.reader.sync_next()
                                  : moved.reader.sync_previous();
    require(found == (wanted >= 0), "a move finds a PSB if there is one");
    if (!found) {
        require(moved.rest() == rest, "a move that finds nothing changes nothing");
        return;
    }
    uint64_t const psb = moved.from.begin() + static_cast<uint64_t>(wanted);
    moved.searching = false;
    require(moved.reader.offset() == psb, "a move sets the offset of the requested PSB");
    require(moved.rest() == expect(what, true, static_cast<size_t>(psb)).all,
            "reading continues at the PSB as at any other");
}

void check(setting const& what, bool in_pieces) {
    auto const expected = expect(what);
    reading one{what, in_pieces};
    unsigned const moment = what.moment % 64;
    for (size_t i = 0; i < expected.all.size(); ++i) {
        if (i == moment) {
            steps const rest{expected.all.begin() + static_cast<std::ptrdiff_t>(i),
                             expected.all.end()};
            require(reading{one}.rest() == rest, "a copy continues as the original does");
            require(visited(one) == rest, "for_each continues where next stopped");
            for (unsigned way = 0; way < 3; ++way) { check_move(what, one, rest, way); }
        }
        auto const got = one.next();
        require(step_of(got) == expected.all[i], "reading matches the reference reader");
        require(got.what != item_type::packet ||
                    (one.reader.last_ip() == got.ip &&
                     underlying(one.reader.block()) == expected.items[i]),
                "the reader's state is that after the packet");
    }
    require(one.next().what == item_type::end, "end is repeated");
    check_bulk(what, in_pieces, expected.all);
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    setting const what = setting_of({data, size});
    account(expect(what).all, what.bytes.size());
    check(what, false);
    check(what, true);
    return 0;
}
