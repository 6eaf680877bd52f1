// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/write/writer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

/// Generated traces for benchmarks. The writer makes them from a fixed seed. They contain only
/// valid packets, and a PSB+ about every 4 KB.
namespace ptspec::bench {

using buffer = std::vector<uint8_t>;

/// A sink that grows.
struct growing {
    buffer bytes{};

    auto append(byte_view more) -> bool {
        bytes.insert(bytes.end(), more.data(), more.data() + more.size());
        return true;
    }
};

class maker {
public:
    explicit maker(size_t size, trace::writer_options how = {}) : size_{size}, to_{out_, how} {
        out_.bytes.reserve(size + 256);
    }

    /// A random number below `count`, the same sequence in every run.
    auto below(uint64_t count) -> uint64_t { return random_() % count; }
    auto bits() -> uint64_t { return random_(); }
    /// The next target of an indirect branch: near, in the same module, or in another module.
    auto target() -> uint64_t {
        uint64_t const how = below(8);
        ip_ = how < 4   ? (ip_ & ~uint64_t{0xFFFF}) | below(0x1'0000)
              : how < 7 ? (ip_ & ~uint64_t{0xFFFF'FFFF}) | below(0x1'0000'0000)
                        : 0x7F00'0000'0000 + below(0x100'0000'0000);
        return ip_;
    }

    template <class Packet>
    void put(Packet const& which) {
        check(to_.put(which));
    }
    template <class Packet>
    void ip() {
        check(to_.template put_ip<Packet>(target()));
    }
    void tnt(unsigned count) { put(packet::tnt_short::of({count, bits() & low_bits(count)})); }
    /// A CYC of typical size: most counts are below 32, few need three bytes.
    void cyc() {
        uint64_t const how = below(16);
        put(packet::cyc::of(how < 10 ? below(32) : how < 15 ? below(4096) : below(0x8'0000)));
    }

    void ptw() {
        put(packet::ptw{}
                .with(packet::ptw::PayloadBytes{constant<1>}, packet::ptw::IP{true})
                .with_payload(bits()));
    }
    /// A packet with random field values.
    template <class Packet>
    void any() {
        put(Packet{bits() & low_bits(8 * Packet::head_bytes)});
    }

    /// Calls `next` until the trace has its size, with a PSB+ about every 4 KB.
    template <class Next>
    auto make(Next const& next) -> buffer {
        while (out_.bytes.size() < size_) {
            size_t const until = out_.bytes.size() + 4096;
            trace::psb_status status;
            status.tsc = packet::tsc{bits() & ~uint64_t{0xFF}};
            status.cbr = packet::cbr{};
            status.fup = target();
            check(to_.put(status));
            while (out_.bytes.size() < until) { next(); }
        }
        check(to_.flush());
        return std::move(out_.bytes);
    }

private:
    static void check(rule broken) {
        if (broken != rule::none) {
            std::fprintf(stderr, "refused: %u\n", static_cast<unsigned>(broken));
            std::abort();
        }
    }

    size_t size_;
    growing out_{};
    trace::writer<growing> to_;
    std::mt19937_64 random_{1};
    uint64_t ip_ = 0x40'1000;
};

/// Of 100 packets 43 are CYC, 41 TNT, 11 TIP, the others MTC. Three of four packets have a CYC
/// directly before them: PKT-113, GEN-214.
inline auto cyc_stream(size_t size) -> buffer {
    maker to{size};
    return to.make([&] {
        if (to.below(57) < 43) { to.cyc(); }
        uint64_t const which = to.below(57);
        if (which < 41) {
            to.tnt(which < 27 ? 6 : 1 + static_cast<unsigned>(to.below(6)));
        } else if (which < 52) {
            to.ip<packet::tip>();
        } else {
            to.any<packet::mtc>();
        }
    });
}

/// TNT and TIP, equally likely, in random order.
inline auto user_stream(size_t size) -> buffer {
    maker to{size};
    return to.make([&] {
        if (to.below(2) == 0) {
            to.ip<packet::tip>();
        } else {
            to.tnt(to.below(2) == 0 ? 6 : 1 + static_cast<unsigned>(to.below(6)));
        }
    });
}

/// Only TNT.
inline auto tnt_stream(size_t size) -> buffer {
    maker to{size};
    return to.make([&] { to.tnt(6); });
}

/// PTWs with their FUPs, between a few TNTs.
inline auto ptw_stream(size_t size) -> buffer {
    maker to{size};
    return to.make([&] {
        to.ptw();
        to.ip<packet::fup>();
        for (uint64_t i = to.below(3); i != 0; --i) { to.tnt(6); }
    });
}

/// Every packet that libipt 2.0.5 knows, all equally likely.
inline auto all_stream(size_t size) -> buffer {
    using namespace packet;
    maker to{size};
    return to.make([&] {
        switch (to.below(24)) {
            case 0: return to.put(pad{});
            case 1: return to.tnt(6);
            case 2: return to.put(tnt_long::of({47, to.bits() & low_bits(47)}));
            case 3: return to.ip<packet::tip>();
            case 4: return to.ip<tip_pge>();
            case 5: return to.ip<tip_pgd>();
            case 6: return to.ip<fup>();
            case 7: return to.any<pip>();
            case 8: return to.put(mode_exec{});
            case 9: return to.put(mode_tsx{});
            case 10: return to.put(tracestop{});
            case 11: return to.any<cbr>();
            case 12: return to.any<tsc>();
            case 13: return to.any<mtc>();
            case 14: return to.any<tma>();
            case 15: return to.cyc();
            case 16: return to.any<vmcs>();
            case 17: return to.put(ovf{});
            case 18: return to.put(mnt{}.with(mnt::payload{wrapped{to.bits()}}));
            case 19: return to.ptw();
            case 20: return to.put(exstop{});
            case 21: return to.put(mwait{});
            case 22: return to.any<pwre>();
            default: return to.any<pwrx>();
        }
    });
}

inline auto read_file(char const* path) -> buffer {
    std::ifstream in{path, std::ios::binary};
    buffer all{std::istreambuf_iterator<char>{in}, {}};
    if (all.empty()) {
        std::fprintf(stderr, "%s: nothing in it\n", path);
        std::exit(2);
    }
    return all;
}

inline auto repeat(buffer const& one, size_t size) -> buffer {
    buffer all;
    all.reserve(size + one.size());
    while (all.size() < size) { all.insert(all.end(), one.begin(), one.end()); }
    return all;
}

/// The stream called `name`, of `size` bytes or a little more. `real` is a file, or null.
inline auto make_stream(std::string_view name, size_t size, char const* real) -> buffer {
    if (name == "cyc") { return cyc_stream(size); }
    if (name == "all") { return all_stream(size); }
    if (name == "tnt") { return tnt_stream(size); }
    if (name == "ptw") { return ptw_stream(size); }
    if (name == "real" && real != nullptr) { return repeat(read_file(real), size); }
    return user_stream(size);
}

}  // namespace ptspec::bench
