// SPDX-License-Identifier: BSL-1.0

// Snapshots and AUX area samples of a known trace, which overlap in any way: no byte is there
// twice, and what two neighbours surely have in common continues.

#include <ptspec/file/perf_data/streams.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using test::bytes;
using test::join;
using test::perf_pipe;
using test::perf_record;
using test::u32;
using test::u64;

namespace {

using trace::psb_bytes;

enum class tscs : std::uint8_t { rise, of_guest, none };

/// A trace, and where its PSBs begin.
struct made_trace {
    std::vector<std::uint8_t> bytes{};
    std::vector<std::size_t> psbs{};

    template <class More>
    void add(More const& more) {
        bytes.insert(bytes.end(), more.data(), more.data() + more.size());
    }
    /// The first PSB from `begin` on that ends up to `end`; `end` if there is none.
    [[nodiscard]] auto psb_in(std::size_t begin, std::size_t end) const -> std::size_t {
        auto const found = std::lower_bound(psbs.begin(), psbs.end(), begin);
        return found == psbs.end() || *found + psb_bytes > end ? end : *found;
    }
};

struct source {
    std::mt19937 random{7};

    auto below(std::size_t most) -> std::size_t { return random() % most; }
    auto is_one_of(std::size_t count) -> bool { return below(count) == 0; }

    auto make_trace(tscs how) -> made_trace {
        made_trace made;
        std::uint64_t tsc = random();
        for (std::size_t count = 3 + below(25); count != 0; --count) {
            made.psbs.push_back(made.bytes.size());
            made.add(test::psb);
            tsc = how == tscs::of_guest && is_one_of(2) ? random() : tsc + 1 + below(5000);
            if (how != tscs::none) { made.add(join(test::bytes(0x19), test::number<7>(tsc))); }
            made.add(test::bytes(0x02, 0x23));
            for (std::size_t packets = 1 + below(40); packets != 0; --packets) {
                switch (below(3)) {
                    case 0: made.add(test::bytes(0x59, random() & 0x7F)); break;
                    case 1: made.add(test::bytes(0x2D, random() & 0xFF, random() & 0x7F)); break;
                    default: made.add(test::bytes(random() & 0x7E ? 0x06 : 0)); break;
                }
            }
        }
        made.bytes.push_back(0x06);
        return made;
    }
};

/// A part of the trace as perf stored it.
struct window {
    std::size_t begin = 0;
    std::size_t end = 0;
};

auto make_file(made_trace const& of, std::vector<window> const& windows, bool as_samples)
    -> std::vector<std::uint8_t> {
    std::vector<std::uint8_t> file;
    auto const add = [&](auto const& more) {
        file.insert(file.end(), more.data(), more.data() + more.size());
    };
    constexpr std::uint64_t type = 1 << 2 | 1 << 7 | 1 << 20;  // TIME, CPU and AUX
    add(perf_pipe(perf_record(64, 0, test::perf_attr{.sample_type = type}.bytes()),
                  perf_record(70, 0,
                              join(u32(1), u32(0), u64(8), u64(0), u64(0), u64(0), u64(0), u64(0),
                                   u64(0), u64(0), u64(as_samples ? 0 : 1), u64(0)))));
    unsigned time = 1;
    for (auto const& one : windows) {
        std::vector<std::uint8_t> trace(of.bytes.begin() + static_cast<std::ptrdiff_t>(one.begin),
                                        of.bytes.begin() + static_cast<std::ptrdiff_t>(one.end));
        trace.resize((trace.size() + 7) / 8 * 8);
        if (as_samples) {
            add(join(u32(9), test::u16(2), test::u16(32 + trace.size()), u64(++time), u32(3),
                     u32(0), u64(trace.size())));
        } else {
            add(perf_record(
                71, 0, join(u64(trace.size()), u64(0), u64(0), u32(0), u32(7), u32(3), u32(0))));
        }
        add(trace);
    }
    return file;
}

/// What is wrong with the pieces of a stream, or nothing.
auto fault_of(stream const of, made_trace const& whole, std::vector<window> const& windows)
    -> char const* {
    if (of.size() != windows.size()) { return "a piece a window"; }
    std::size_t end = 0;    // of the bytes so far
    std::size_t zeros = 0;  // after them: PADs of perf, or of the trace
    bool has_gap = false;
    bool is_first = true;
    window last{};  // the last window with new bytes
    for (std::size_t i = 0; i < of.size(); ++i) {
        auto const& one = of[i];
        auto const& from = windows[i];
        has_gap = has_gap || one.has_gap_before;
        if (one.trace.empty()) { continue; }
        std::size_t const begin = from.begin + static_cast<std::size_t>(one.trace.begin() -
                                                                        one.recorded.begin());
        std::size_t size = one.trace.size();
        for (; size != 0 && begin + size > from.end; --size) {
            if (one.trace[size - 1] != 0) { return "after a window are PADs"; }
        }
        auto const is_zero = [&](std::size_t at) { return whole.bytes[at] == 0; };
        while (zeros != 0 && end < begin && is_zero(end)) {
            --zeros;
            ++end;
        }
        if (is_first) {
            if (has_gap || begin != from.begin) { return "all of the first window"; }
            is_first = false;
        } else if (!has_gap) {
            if (begin != end) { return "without a gap it continues"; }
        } else {
            // Of a PSB that was cut, at most 3 bytes are there twice.
            if (begin + 3 < end) { return "a byte is there twice"; }
            if (begin != whole.psb_in(std::max(from.begin, std::min(begin, end)), from.end)) {
                return "begins at the first new PSB";
            }
            // A PSB, and 7 bytes more, are in both.
            std::size_t const common_begin = std::max(last.begin, from.begin);
            std::size_t const common_end = std::min(last.end, from.end);
            std::size_t const psb = whole.psb_in(common_begin, common_end);
            if (common_begin < common_end && psb != common_end &&
                common_end - common_begin >= psb_bytes + 7) {
                return "an overlap is not found";
            }
        }
        has_gap = false;
        end = begin + size;
        zeros = one.trace.size() - size;
        last = from;
    }
    return nullptr;
}

/// Counts the wrong ones of many streams.
auto count_faults(tscs how, bool as_samples, bool is_wild) -> unsigned {
    source from;
    unsigned wrong = 0;
    std::vector<piece> slots;
    for (unsigned round = 0; round < 1500; ++round) {
        auto const trace = from.make_trace(how);
        std::vector<window> windows;
        std::size_t const ring = 20 + from.below(trace.bytes.size());
        for (std::size_t end = 0; end != trace.bytes.size() && windows.size() < 12;) {
            end = std::min(trace.bytes.size(), end + from.below(ring * 3 / 2 + 1));
            // A ring has a fixed size; others are of any size, also without new bytes.
            std::size_t const size = is_wild ? from.below(end + 1) : std::min(end, ring);
            windows.push_back({end - size, end});
        }
        auto const file = make_file(trace, windows, as_samples);
        auto const in = open(file);
        slots.resize(count_pieces(in));
        auto const got = streams_of(in, slots.data(), slots.size());
        if (!got || got.size() != 1) {
            wrong += 1;
            continue;
        }
        auto const* const fault = fault_of(*got.begin(), trace, windows);
        if (fault != nullptr && wrong == 0) { MESSAGE(std::string{fault} << ", round " << round); }
        wrong += fault != nullptr ? 1 : 0;
    }
    return wrong;
}

}  // namespace

TEST_CASE("snapshots of a ring: no byte is there twice, overlaps continue") {
    for (auto const how : {tscs::rise, tscs::of_guest, tscs::none}) {
        CHECK(count_faults(how, false, false) == 0);
    }
}

TEST_CASE("snapshots that begin anywhere") {
    for (auto const how : {tscs::rise, tscs::of_guest, tscs::none}) {
        CHECK(count_faults(how, false, true) == 0);
    }
}

TEST_CASE("AUX area samples overlap as snapshots do") {
    for (auto const how : {tscs::rise, tscs::of_guest, tscs::none}) {
        CHECK(count_faults(how, true, false) == 0);
        CHECK(count_faults(how, true, true) == 0);
    }
}

TEST_CASE("a large snapshot and many small ones that have nothing new take linear time") {
    source from;
    made_trace large;
    for (unsigned i = 0; i < 100'000; ++i) {
        large.add(join(test::psb, test::bytes(0x19), test::number<7>(i), test::bytes(2, 0x23)));
    }
    std::vector<window> windows{{0, large.bytes.size()}};
    for (std::size_t i = 0; i < 60'000; ++i) {
        std::size_t const begin = large.bytes.size() - 26 * (1 + from.below(50'000));
        windows.push_back({begin, begin + 26});
    }
    auto const file = make_file(large, windows, false);
    std::vector<piece> slots(count_pieces(open(file)));
    auto const got = streams_of(open(file), slots.data(), slots.size());
    CHECK(got.piece_count == windows.size());
    CHECK(slots[0].trace.size() == slots[0].recorded.size());
    CHECK(slots[1].trace.empty());
}
