// SPDX-License-Identifier: BSL-1.0

// Lists a trace like pt_dump --strict, but reads it in pieces of a given size. Each piece is in its
// own buffer, which is overwritten as soon as the reader has consumed it.
//
//   list_in_pieces next|for_each SIZE sync|no-sync FILE      SIZE 0: the whole trace at once

#include "tools/common/listing.hpp"

#include <ptspec/ptspec.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec;

/// Collects a line for each item of a reader.
struct lines {
    std::string text{};
    listing::totals totals{};

    void add(trace::item const& item) {
        if (item.what == trace::item_type::need_input) { return; }
        totals.count(item);
        listing::append_line(text, item, totals);
    }

    template <packet::packet_type Packet>
    void operator()(Packet const& packet, trace::packet_place where) {
        add(trace::item_of({packet, where.length}, where));
    }
    void operator()(trace::item const& item) { add(item); }
};

void read(trace::reader<>& reader, lines& out, bool visit) {
    if (visit) {
        (void)reader.for_each(out);
        return;
    }
    trace::item item;
    do {
        item = reader.next();
        out.add(item);
    } while (item);
}

}  // namespace

auto main(int count, char** arguments) -> int {
    if (count != 5) { return 2; }
    bool const visit = std::string_view{arguments[1]} == "for_each";
    auto const size = static_cast<std::size_t>(std::strtoul(arguments[2], nullptr, 10));
    trace::reader_options const how{.sync = std::string_view{arguments[3]} == "sync",
                                    .strict = true};
    std::ifstream file{arguments[4], std::ios::binary};
    std::vector<char> const chars{std::istreambuf_iterator<char>{file}, {}};
    std::vector<std::uint8_t> const bytes{chars.begin(), chars.end()};

    lines out;
    if (size == 0) {
        trace::reader reader{byte_view{bytes}, how};
        read(reader, out, visit);
    } else {
        trace::reader reader{how};
        for (std::size_t at = 0; at < bytes.size(); at += size) {
            auto const begin = bytes.data() + at;
            std::vector<std::uint8_t> piece(begin, begin + std::min(size, bytes.size() - at));
            if (!reader.feed(byte_view{piece})) { return 2; }
            read(reader, out, visit);
            std::fill(piece.begin(), piece.end(), std::uint8_t{0xA5});
        }
        reader.finish();
        read(reader, out, visit);
    }
    return std::fwrite(out.text.data(), 1, out.text.size(), stdout) == out.text.size() ? 0 : 2;
}
