// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <ptspec/trace/detail/event_visitor.hpp>
#include <ptspec/trace/no_clock.hpp>
#include <ptspec/trace/reader.hpp>

using namespace ptspec;
using test::bytes;

namespace {

/// Counts calls.
struct calls {
    static constexpr bool skips_packets = true;
    static constexpr bool takes_psb_plus = false;

    unsigned tnts = 0;
    unsigned tips = 0;
    unsigned skips = 0;

    template <class Packet>
    constexpr auto add_tnt(Packet const&, trace::packet_place, trace::no_clock&) -> bool {
        ++tnts;
        return true;
    }
    constexpr auto add_tip(packet::tip const&, trace::packet_place, trace::no_clock&) -> bool {
        ++tips;
        return true;
    }
    constexpr auto add_tip_pgd(packet::tip_pgd const&, trace::packet_place, trace::no_clock&)
        -> bool {
        return true;
    }
    constexpr auto add_tip_pge(packet::tip_pge const&, trace::packet_place, trace::no_clock&)
        -> bool {
        return true;
    }
    template <class Binds>
    constexpr auto skip(std::uint8_t const*, std::size_t, std::uint64_t, std::uint64_t, Binds&)
        -> trace::skipped_packets {
        ++skips;
        return {};
    }
};

/// Reads packets after which PADs follow.
template <std::size_t Size>
constexpr auto read(byte_array<Size> const& packets, bool nothing_pending = true) -> calls {
    std::uint8_t all[Size + 32] = {};
    for (std::size_t i = 0; i < Size; ++i) { all[i] = packets.bytes[i]; }
    using state_type = trace::detail::event_state<trace::no_clock, 16>;
    state_type state{{}, {}, true};
    trace::detail::event_visitor<state_type, calls> visitor{{}, &state, true, nothing_pending};
    (void)trace::reader{borrowed_bytes{all, sizeof all}, trace::reader_options{.sync = false}}
        .for_each(visitor);
    return visitor.out;
}

}  // namespace

TEST_CASE("packets may be skipped first, and after packets other than PAD, TNT and CYC") {
    CHECK_TWICE([](auto value) {
        auto const branches = read(value(bytes(0x0E, 0x2D, 0x22, 0x11, 0x0E)));
        auto const cyc = read(value(bytes(0x2D, 0x22, 0x11, 0x2B, 0x0E)));
        auto const mtc = read(value(bytes(0x2D, 0x22, 0x11, 0x59, 0x01, 0x0E)));
        auto const tsc = read(value(bytes(0x2D, 0x22, 0x11, 0x19, 1, 0, 0, 0, 0, 0, 0, 0x0E)));
        auto const pending = read(value(bytes(0x2D, 0x22, 0x11)), false);
        return branches.tnts == 2 && branches.tips == 1 && branches.skips == 2 && cyc.skips == 2 &&
               mtc.skips == 3 && tsc.skips == 3 && pending.tips == 1 && pending.skips == 0;
    });
}
