// SPDX-License-Identifier: BSL-1.0
// Fuzzes trace units with scripts of events.
//
//   byte 0       bit 0: 0 a random program, whose trace must agree with the reference model
//                       1 any events in any order: the trace must be packets from end to end
//                bit 1  saves and loads the unit at random times, which must change nothing
//                bits 7:2 for any events: the options, and whether some stores fail
//   the rest     choices, each in as few bytes as possible; after the end the first choice

#include <string>
#include <vector>

#include <ptspec/engine/model_kind.hpp>
#include <ptspec/engine/unit_image.hpp>
#include <ptspec/trace/reader.hpp>

#include <support/any_events.hpp>

#include <fuzz/check.hpp>

namespace {

using fuzz::require;
using namespace ptspec;
namespace programs = test::programs;

constexpr size_t max_events = 2000;

/// A memory and a fabric that record the stream of bytes. Every `failing`-th store fails.
struct recorder {
    using ignores_pmis = recorder;

    unsigned failing = 0;  ///< 0: no store fails
    unsigned stores = 0;
    uint64_t stored = 0;
    std::vector<uint8_t> stream{};

    auto load(uint64_t) const noexcept -> port_value { return {}; }
    auto store(uint64_t, byte_view bytes) noexcept -> size_t {
        ++stores;
        size_t const count = failing != 0 && stores % failing == 0 ? bytes.size() / 2
                                                                   : bytes.size();
        stored += count;
        stream.insert(stream.end(), bytes.begin(), bytes.begin() + count);
        return count;
    }
    auto send(byte_view bytes) noexcept -> size_t { return store(0, bytes); }
};

/// Requires packets from end to end; if bytes were lost, the last packet may be incomplete.
void require_packets(std::vector<uint8_t> const& stream, bool is_cut) {
    trace::reader from{byte_view{stream}, {.sync = false}};
    for (auto it = from.next(); it; it = from.next()) {
        bool const at_end = is_cut && (it.error == packet::error::truncated ||
                                       it.what == trace::item_type::lost);
        require(it.what == trace::item_type::packet || at_end, "a trace consists of packets");
    }
}

void run_anything(test::dice& from, size_t events, bool moves, unsigned options) {
    auto how = programs::kind_of_run(from.roll(programs::kind_count)).options;
    if ((options & 1) != 0) { how.tnt_capacity = 47; }
    if ((options & 2) != 0) { how.pads = static_cast<trace::pad_policy>(from.roll(4)); }
    how.defers_tips = (options & 4) != 0;
    how.has_tsx = (options & 8) != 0;
    how.psb_after_pge = (options & 8) != 0;
    how.swintr_events = (options & 8) != 0;
    if ((options & 16) != 0) {
        how.drained_at_once = 5;
        how.overflow_ends_at = 64;
    }
    engine::trace_unit<384> unit{cpu::preset::P_FUT, {}, 0x40'0000, how};
    programs::any_events events_of{unit, from};
    recorder memory{.failing = (options & 32) != 0 ? 7U : 0U};
    uint64_t lost = 0;
    for (size_t i = 0; i < events; ++i) {
        (void)events_of.step(memory);
        if (moves && from.chance(5)) {
            auto const image = engine::store(unit);
            auto const loaded = engine::load<384>(unit.state().caps, image.view(), how);
            require(static_cast<bool>(loaded), "a saved unit can be loaded");
            require(engine::store(loaded.unit).view() == image.view(), "and is unchanged");
            unit = loaded.unit;
        }
        require(unit.total().stored == memory.stored, "each byte is stored once");
        if (unit.total().lost != lost) {
            lost = unit.total().lost;
            require_packets(memory.stream, true);
            memory.stream.clear();
        }
    }
    require_packets(memory.stream, !unit.buffered().empty());
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::input input{data, size};
    unsigned const head = input.byte();
    size_t const events = size < max_events ? size : max_events;
    test::dice from{[&](uint64_t sides) { return input.below(sides); }};
    if ((head & 1) != 0) {
        run_anything(from, events, (head & 2) != 0, head >> 2);
        return 0;
    }
    auto const with = programs::random_setting(from);
    auto const& of = programs::kind_of_run(from.roll(programs::kind_count));
    programs::program one{with, programs::random_options(from, with, of), from};
    one.run(static_cast<unsigned>(events), (head & 2) != 0);
    auto const difference = one.difference();
    require(difference.empty(), difference.c_str());
    return 0;
}
