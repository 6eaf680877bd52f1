// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/chunked_trace.hpp>

#include <ptspec/edit/rebase_tsc.hpp>
#include <ptspec/edit/replace_addresses.hpp>

#include <support/facts.hpp>
#include <support/made_trace.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

using namespace ptspec;
using namespace std::string_view_literals;
using test::made_trace;

namespace {

/// Kinds and offsets of the items of a trace.
struct seen {
    std::vector<std::uint64_t> items;

    void add(trace::item const& got) {
        items.push_back(got.offset << 16 | static_cast<std::uint64_t>(got.packet.kind()) << 4 |
                        static_cast<std::uint64_t>(got.what));
    }
};

constexpr auto packets =
    "t pip0:1000 psb tsc:1 cbr pip0:71000 m64 fup6:401000 end t tip2:1103 x:c9 t t psb tsc:7 end "
    "ptw:5 fup6:401000 t x:0000 cfe:81 vmcs:5000 x:025d"sv;

}  // namespace

TEST_CASE("a reader of chunks finds the items of the whole, and counts the bytes of none "
          "(PKT-250..255)") {
    test::made_trace const made{packets};
    seen whole;
    trace::reader from{made.view()};
    std::uint64_t skipped = 0;
    for (auto it = from.next(); it; it = from.next()) {
        if (it.what == trace::item_type::lost) { continue; }
        if (it.skipped > 0) { skipped += static_cast<std::uint64_t>(it.skipped); }
        whole.add(it);
    }
    std::mt19937_64 random{3};
    for (unsigned run = 0; run < 2000; ++run) {
        edit::detail::chunk_reader<packet::all> reader;
        seen got;
        std::uint64_t sum = 0;
        std::vector<std::uint8_t> bytes(made.bytes, made.bytes + made.size);
        for (std::size_t begin = 0, end = 0; end != made.size;) {
            end = std::min(made.size, end + random() % (1 + random() % 60));
            byte_window const window[] = {{bytes.data() + begin, end - begin}};
            edit::detail::trace_bytes chunk{window, reader.begin()};
            REQUIRE(reader.begin() == begin);
            reader.read(chunk, end == made.size, [&](trace::item const& one) { got.add(one); });
            sum += reader.skipped();
            begin = end - reader.kept_back();
        }
        CAPTURE(run);
        REQUIRE(got.items == whole.items);
        REQUIRE(sum == skipped);
    }
}

namespace {

/// Shadow paging: the tables of the guest's CR3 are at CR3 + 70000H in the host, for three of them.
constexpr auto cr3_of_guest(std::uint64_t real) -> edit::guest_address {
    std::uint64_t const guest = real - 0x7'0000;
    return {guest == 0x1000 || guest == 0x2000 || guest == 0xF'FFFF'FFF0'1020, guest};
}

using bytes_t = std::vector<std::uint8_t>;

/// What a rewriting did to the chunks of a trace.
struct totals {
    std::uint64_t count = 0;
    std::uint64_t removed = 0;
    std::uint64_t skipped = 0;
    std::size_t kept_back = 0;  ///< of the last chunk
};

/// Calls `rewrite(windows)` for chunks of a trace that end at these offsets. A chunk begins with
/// what was kept back, as in a ring whose tail does not move past it. Between two calls the bytes
/// that were not kept back are taken away: they must be final.
template <class Rewrite>
auto in_chunks(bytes_t& trace, std::vector<std::size_t> const& ends, Rewrite const& rewrite)
    -> totals {
    totals sum;
    bytes_t taken;
    std::size_t begin = 0;
    for (std::size_t const end : ends) {
        std::size_t const middle = begin + (end - begin) / 2;
        byte_window const windows[] = {{trace.data() + begin, middle - begin},
                                       {trace.data() + middle, end - middle}};
        auto const got = rewrite(windows);
        sum.count += got.count;
        if constexpr (requires { got.removed; }) { sum.removed += got.removed; }
        sum.skipped += got.skipped;
        sum.kept_back = got.kept_back;
        auto const at = [&](std::size_t offset) {
            return trace.begin() + static_cast<std::ptrdiff_t>(offset);
        };
        taken.insert(taken.end(), at(begin), at(end - got.kept_back));
        std::fill(at(begin), at(end - got.kept_back), std::uint8_t{0xC9});
        begin = end - got.kept_back;
    }
    taken.insert(taken.end(), trace.begin() + static_cast<std::ptrdiff_t>(begin), trace.end());
    trace = taken;
    return sum;
}

auto bytes_of(std::string_view text) -> bytes_t {
    made_trace const made{text};
    return {made.bytes, made.bytes + made.size};
}

/// Any chunks of a trace.
auto any_ends(std::size_t size, std::size_t longest, std::mt19937_64& random)
    -> std::vector<std::size_t> {
    std::vector<std::size_t> ends;
    for (std::size_t end = 0; end < size;) {
        end = std::min(size, end + random() % (longest + 1));
        ends.push_back(end);
    }
    return ends;
}

}  // namespace

TEST_CASE(
    "a trace that comes in chunks is changed as in one, wherever it is cut (PRG-175, PKT-080)") {
    constexpr auto text =
        "psb tsc:1000 tma:3 cbr pip0:71000 vmcs:7000 m64 fup6:401000 end t pip0:72000 tip6:401100 "
        "ptw:1 fup2:1103 tsc:1001 x:0000000000 pip1:9000 psb tsc:2000 pip0:71000 end t "
        "pip0:72000"sv;
    auto const whole = bytes_of(text);
    auto wanted = whole;
    trace::tsc_change const change{.offset = 0x234};
    {
        byte_window const all[] = {{wanted.data(), wanted.size()}};
        CHECK(edit::replace_cr3(all, cr3_of_guest).count == 4);
        CHECK(edit::replace_vmcs(all, [](std::uint64_t real) {
                  return edit::guest_address{true, real + 0x1000};
              }).count == 1);
        CHECK(edit::rebase_tsc(all, change).count == 3);
    }
    for (std::size_t one = 16; one <= whole.size(); ++one) {
        for (std::size_t const two : {one, one + 1, one + 9, whole.size()}) {
            auto trace = whole;
            std::vector<std::size_t> const ends = {one, std::min(two, whole.size()), whole.size()};
            edit::chunked_trace<packet::pip> cr3;
            edit::chunked_trace<packet::vmcs> vmcs;
            edit::chunked_trace<packet::tsc> tsc;
            auto const sum = in_chunks(trace, ends, [&](edit::trace_memory chunk) {
                auto const addresses = replace_vmcs(vmcs, chunk, [](std::uint64_t real) {
                    return edit::guest_address{true, real + 0x1000};
                });
                auto const times = rebase_tsc(tsc, chunk, change);
                auto got = replace_cr3(cr3, chunk, cr3_of_guest);
                if (got.kept_back != addresses.kept_back || got.kept_back != times.kept_back) {
                    got.skipped = 1;
                }
                return got;
            });
            CAPTURE(one);
            CAPTURE(two);
            REQUIRE(trace == wanted);
            REQUIRE(sum.count == 4);
            REQUIRE(sum.removed == 1);
            REQUIRE(sum.skipped == 0);
        }
    }
}

TEST_CASE("a chunk of a trace as a trace of its own: what is not changed is counted (PKT-255)") {
    auto whole = bytes_of("psb pip0:71000 end t pip0:72000 t pip0:72000");
    byte_window const later[] = {{whole.data() + 26, whole.size() - 26}};
    auto const before = whole;
    auto const got = edit::replace_cr3(later, cr3_of_guest);
    CHECK(!got);
    CHECK(got.skipped == whole.size() - 26);
    CHECK(got.count == 0);
    CHECK(whole == before);
    // In chunks no packet is left at the end, and none is cut.
    edit::chunked_trace<packet::pip> chunks;
    byte_window const first[] = {{whole.data(), 30}};
    auto const of_first = replace_cr3(chunks, first, cr3_of_guest);
    CHECK(of_first);
    CHECK(of_first.count == 1);
    CHECK(of_first.kept_back == 3);
    // A chunk without all that was kept back: the trace was interrupted.
    byte_window const wrong[] = {{whole.data() + 30, 2}};
    auto const interrupted = replace_cr3(chunks, wrong, cr3_of_guest);
    CHECK(!interrupted);
    CHECK(interrupted.skipped == 2);
    // From its next PSB on it is changed.
    auto next = bytes_of("t psb pip0:71000 end");
    byte_window const again[] = {{next.data(), next.size()}};
    auto const resumed = replace_cr3(chunks, again, cr3_of_guest);
    CHECK(resumed.count == 1);
    CHECK(resumed.skipped == 1);
    CHECK(next == bytes_of("t psb pip0:1000 end"));
}

TEST_CASE("a TMA that cannot be changed changes nothing of its chunk (PKT-303, PKT-340)") {
    auto trace = bytes_of("psb tsc:1000 end tsc:1001 tma:3 tsc:1001 tma:cd");
    auto const before = trace;
    edit::chunked_trace<packet::tsc> chunks;
    trace::tsc_change const how{std::uint64_t{5} << 47, 0, 0};
    byte_window const one[] = {{trace.data(), 26}};
    byte_window const two[] = {{trace.data() + 26, trace.size() - 26}};
    CHECK(rebase_tsc(chunks, one, {}));
    auto const failed = rebase_tsc(chunks, two, how);
    CHECK(failed.broken == rule::PKT_340);
    CHECK(failed.offset == 26 + 8 + 7 + 8);
    CHECK(trace == before);
    auto const done = rebase_tsc(chunks, two, {.offset = 1});
    CHECK(done);
    CHECK(done.count == 2);
    CHECK(trace == bytes_of("psb tsc:1000 end tsc:1002 tma:3 tsc:1002 tma:cd"));
}

TEST_CASE(
    "recorded traces in chunks of any size lose every address of the host (PRG-175, PKT-082)") {
    std::mt19937_64 random{1};
    auto const other = [](std::uint64_t real) {
        return edit::guest_address{(real >> 12 & 3) != 0, real ^ 0x1234'5000};
    };
    for (auto const* name : {"google-m7-cpu0.pt", "xdc-foo.pt", "xdc-icelake.pt"}) {
        auto const found = test::recorded_trace(name);
        if (!found) { continue; }
        auto const& whole = *found;
        auto wanted = whole;
        byte_window const all[] = {{wanted.data(), wanted.size()}};
        auto const expected = edit::replace_cr3(all, other);
        CHECK(expected.count + expected.removed > 0);
        for (std::size_t const longest : {40U, 500U, 4096U, 100'000U}) {
            auto trace = whole;
            edit::chunked_trace<packet::pip> chunks;
            auto const sum = in_chunks(
                trace, any_ends(whole.size(), longest, random),
                [&](edit::trace_memory chunk) { return replace_cr3(chunks, chunk, other); });
            CAPTURE(name);
            CAPTURE(longest);
            CHECK(sum.count == expected.count);
            CHECK(sum.removed == expected.removed);
            CHECK(sum.skipped + sum.kept_back == expected.skipped);
            CHECK((trace == wanted));
        }
    }
}
