// SPDX-License-Identifier: BSL-1.0
// Reads random streams with ptspec and with libipt 2.0.5, packet by packet, and compares offset,
// length, kind, every field and every error; also rebuilt IPs, PSB searches, and the bytes that
// both write. A known difference (tests/spec/packets.md, section 19) must be exactly as listed, and
// is counted under its rule.
//
//   libipt [--packets N] [--seed S]     at least N packets, errors included (ten million)

#include <intel-pt.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include <ptspec/packet/encode.hpp>
#include <ptspec/trace/psb_search.hpp>

#include <differential/comparison.hpp>
#include <differential/streams.hpp>

namespace {

using namespace differential;
using streams::chance;

uint64_t encoded = 0;
uint64_t searches = 0;
uint64_t rebuilt_ips = 0;

/// Reads some packets again from a buffer that ends inside or directly after them.
auto compare_ends(chance& random, buffer& in, std::vector<start> const& starts) -> uint64_t {
    uint64_t const samples = starts.size() / 8;
    for (uint64_t i = 0; i < samples; ++i) {
        auto const [at, items] = starts[random.below(starts.size())];
        size_t const left = in.size() - at;
        size_t const size = at + random.below(left < 17 ? left + 1 : 17);
        byte_view const view{in.data(), size};
        packet::decode_options const how{items, true};
        auto const ours = packet::decode(view.from(at), how);
        decoder theirs{in, size};
        theirs.go_to(at);
        pt_packet packet;
        std::memset(&packet, 0, sizeof packet);
        int const status = theirs.next(packet);
        compare(view, at, how, ours, status, packet);
        if (!ours) { ++errors_of_kind[underlying(ours.error)]; }
    }
    return samples;
}

/// True when two adjacent bytes of the pattern 02 82 are at `at` or in the eight bytes after it.
auto is_near_a_run(byte_view in, size_t at) -> bool {
    for (size_t i = at == 0 ? 1 : at; i < in.size() && i <= at + 8; ++i) {
        if ((in[i - 1] ^ in[i]) == 0x80 && (in[i] & 0x7F) == 0x02) { return true; }
    }
    return false;
}

/// Compares searches for a PSB from random offsets, forward and backward.
///
/// libipt also finds a PSB that begins up to 15 bytes before the offset (PKT-250). It takes the
/// offset to which it was set for a PSB and searches after it: 16 bytes before the buffer
/// compensate. Backward it begins up to seven bytes after the offset: offsets in or directly before
/// a run are skipped.
void compare_searches(chance& random, buffer& in) {
    constexpr size_t front = trace::psb_bytes;
    constexpr size_t look_back = trace::psb_bytes - 1;
    buffer padded(front, 0xEE);
    padded.insert(padded.end(), in.begin(), in.end());
    byte_view const view{in};
    for (unsigned i = 0; i < 24; ++i) {
        size_t const at = random.below(in.size() + 1);
        decoder forward{padded, padded.size()};
        forward.go_to(at);
        size_t const found = forward.search(pt_pkt_sync_forward);
        size_t const next = trace::find_psb(view, at < look_back ? 0 : at - look_back);
        if (next != (found == trace::npos ? found : found - front)) {
            fail(view, at, "the next PSB differs");
        }
        ++searches;
        if (is_near_a_run(view, at)) { continue; }
        decoder backward{in, in.size()};
        backward.go_to(at);
        if (trace::find_psb_before(view, at) != backward.search(pt_pkt_sync_backward)) {
            fail(view, at, "the previous PSB differs");
        }
        ++searches;
    }
}

// -------------------------------------------------------------------------------- libipt encodes

/// A packet of libipt and the same packet of ptspec, without set reserved bits.
template <class Packet>
struct twin {
    pt_packet theirs{};
    Packet ours{};
};

/// Writes a packet with libipt's encoder, and compares the bytes with those of ptspec.
template <class Packet>
auto put_twin(pt_encoder* encoder, uint8_t const* written, twin<Packet> const& both) -> bool {
    uint64_t before = 0;
    (void)pt_enc_get_offset(encoder, &before);
    int const status = pt_enc_next(encoder, &both.theirs);
    if (status == -pte_eos) { return false; }
    auto const ours = packet::encode(both.ours);
    byte_view const theirs{written + before, status < 0 ? 0 : static_cast<size_t>(status)};
    bool same = ours && byte_view{ours} == theirs;
    if constexpr (same_as<Packet, packet::pwre>) {
        if (both.ours.template get<packet::pwre::HW>() && ours && theirs.size() == ours.size()) {
            // libipt writes HW to bit 2.3.
            same = theirs[2] == 0x08 && ours.bytes[2] == 0x80 && theirs[3] == ours.bytes[3];
            count(pwre_hw);
        }
    }
    if (!same) { fail(theirs, 0, ours ? "libipt writes other bytes" : "ptspec refuses to write"); }
    ++encoded;
    return true;
}

template <class Packet>
auto ip_twin(chance& random, pt_packet_type type) -> twin<Packet> {
    constexpr packet::ip_bytes forms[] = {packet::ip_bytes::suppressed, packet::ip_bytes::update_16,
                                          packet::ip_bytes::update_32,  packet::ip_bytes::sign_48,
                                          packet::ip_bytes::update_48,  packet::ip_bytes::full};
    constexpr unsigned sizes[] = {0, 2, 4, 6, 6, 8};
    auto const form = random.below(6);
    twin<Packet> both;
    both.theirs.type = type;
    both.theirs.payload.ip.ipc = static_cast<pt_ip_compression>(underlying(forms[form]));
    both.theirs.payload.ip.ip = random.bits() & low_bits(8 * sizes[form]);
    both.ours = Packet::of(forms[form], both.theirs.payload.ip.ip);
    return both;
}

template <class Packet>
auto plain_twin(pt_packet_type type) -> twin<Packet> {
    twin<Packet> both;
    both.theirs.type = type;
    return both;
}

struct libipt_writer {
    pt_encoder* encoder;
    uint8_t const* written;

    template <class Packet>
    [[nodiscard]] auto put(twin<Packet> const& both) const -> bool {
        return put_twin(encoder, written, both);
    }
};

/// Write one packet with random fields. They return false when there is no room for it.
constexpr bool (*puts_by_libipt[])(libipt_writer to, chance& random, uint64_t bits) = {
    [](libipt_writer to, chance&, uint64_t) { return to.put(plain_twin<packet::pad>(ppt_pad)); },
    [](libipt_writer to, chance&, uint64_t) { return to.put(plain_twin<packet::psb>(ppt_psb)); },
    [](libipt_writer to, chance&, uint64_t) {
        return to.put(plain_twin<packet::psbend>(ppt_psbend));
    },
    [](libipt_writer to, chance&, uint64_t) { return to.put(plain_twin<packet::ovf>(ppt_ovf)); },
    [](libipt_writer to, chance&, uint64_t) {
        return to.put(plain_twin<packet::tracestop>(ppt_stop));
    },
    [](libipt_writer to, chance& random, uint64_t) {
        return to.put(ip_twin<packet::tip>(random, ppt_tip));
    },
    [](libipt_writer to, chance& random, uint64_t) {
        return to.put(ip_twin<packet::tip_pge>(random, ppt_tip_pge));
    },
    [](libipt_writer to, chance& random, uint64_t) {
        return to.put(ip_twin<packet::tip_pgd>(random, ppt_tip_pgd));
    },
    [](libipt_writer to, chance& random, uint64_t) {
        return to.put(ip_twin<packet::fup>(random, ppt_fup));
    },
    [](libipt_writer to, chance& random, uint64_t bits) {
        auto both = plain_twin<packet::tnt_short>(ppt_tnt_8);
        auto const size = static_cast<unsigned>(1 + random.below(6));
        both.theirs.payload.tnt = {static_cast<uint8_t>(size), bits & low_bits(size)};
        both.ours = packet::tnt_short::of({size, bits});
        return to.put(both);
    },
    [](libipt_writer to, chance& random, uint64_t bits) {
        auto both = plain_twin<packet::tnt_long>(ppt_tnt_64);
        auto const size = static_cast<unsigned>(1 + random.below(47));
        both.theirs.payload.tnt = {static_cast<uint8_t>(size), bits & low_bits(size)};
        both.ours = packet::tnt_long::of({size, bits});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        using packet::mode_exec;
        auto both = plain_twin<mode_exec>(ppt_mode);
        bool const l = bits % 3 == 1;
        bool const d = bits % 3 == 2;
        both.theirs.payload.mode.leaf = pt_mol_exec;
        both.theirs.payload.mode.bits.exec = {l ? 1U : 0U, d ? 1U : 0U};
        both.ours = mode_exec{}.with(mode_exec::CS_L{l}, mode_exec::CS_D{d});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        using packet::mode_tsx;
        auto both = plain_twin<mode_tsx>(ppt_mode);
        bool const in = bits % 3 == 1;
        bool const abort = bits % 3 == 2;
        both.theirs.payload.mode.leaf = pt_mol_tsx;
        both.theirs.payload.mode.bits.tsx = {in ? 1U : 0U, abort ? 1U : 0U};
        both.ours = mode_tsx{}.with(mode_tsx::InTX{in}, mode_tsx::TXAbort{abort});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        auto both = plain_twin<packet::pip>(ppt_pip);
        both.theirs.payload.pip = {bits & 0x000F'FFFF'FFFF'FFE0, static_cast<uint32_t>(bits & 1)};
        both.ours = packet::pip{}.with(packet::pip::CR3{wrapped{both.theirs.payload.pip.cr3}},
                                       packet::pip::NR{(bits & 1) != 0});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        auto both = plain_twin<packet::vmcs>(ppt_vmcs);
        both.theirs.payload.vmcs.base = bits & 0x000F'FFFF'FFFF'F000;
        both.ours = packet::vmcs{}.with(packet::vmcs::base{wrapped{both.theirs.payload.vmcs.base}});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        auto both = plain_twin<packet::cbr>(ppt_cbr);
        both.theirs.payload.cbr.ratio = static_cast<uint8_t>(bits);
        both.ours = packet::cbr{}.with(packet::cbr::CoreBusRatio{wrapped{bits & 0xFF}});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        auto both = plain_twin<packet::tsc>(ppt_tsc);
        both.theirs.payload.tsc.tsc = bits & low_bits(56);
        both.ours = packet::tsc{}.with(packet::tsc::TSC{wrapped{bits & low_bits(56)}});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        using packet::tma;
        auto both = plain_twin<tma>(ppt_tma);
        both.theirs.payload.tma = {static_cast<uint16_t>(bits),
                                   static_cast<uint16_t>(bits >> 16 & 0x1FF)};
        both.ours = tma{}.with(tma::CTC{wrapped{bits & 0xFFFF}},
                               tma::FC{wrapped{bits >> 16 & 0x1FF}});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        auto both = plain_twin<packet::mtc>(ppt_mtc);
        both.theirs.payload.mtc.ctc = static_cast<uint8_t>(bits);
        both.ours = packet::mtc{}.with(packet::mtc::CTC{wrapped{bits & 0xFF}});
        return to.put(both);
    },
    [](libipt_writer to, chance& random, uint64_t) {
        auto both = plain_twin<packet::cyc>(ppt_cyc);
        both.theirs.payload.cyc.value = random.number();
        both.ours = packet::cyc::of(both.theirs.payload.cyc.value);
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        auto both = plain_twin<packet::mnt>(ppt_mnt);
        both.theirs.payload.mnt.payload = bits;
        both.ours = packet::mnt{}.with(packet::mnt::payload{wrapped{bits}});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        using packet::exstop;
        auto both = plain_twin<exstop>(ppt_exstop);
        both.theirs.payload.exstop.ip = bits & 1;
        both.ours = exstop{}.with(exstop::IP{(bits & 1) != 0});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        using packet::mwait;
        auto both = plain_twin<mwait>(ppt_mwait);
        both.theirs.payload.mwait = {static_cast<uint32_t>(bits & 0xFF),
                                     static_cast<uint32_t>(bits >> 8 & 3)};
        both.ours = mwait{}.with(mwait::hints{wrapped{bits & 0xFF}},
                                 mwait::ext{wrapped{bits >> 8 & 3}});
        return to.put(both);
    },
    [](libipt_writer to, chance&, uint64_t bits) {
        using packet::pwrx;
        using packet::pwre;
        if ((bits >> 32 & 1) != 0) {
            auto both = plain_twin<pwre>(ppt_pwre);
            both.theirs.payload.pwre = {static_cast<uint8_t>(bits & 15),
                                        static_cast<uint8_t>(bits >> 4 & 15),
                                        static_cast<uint32_t>(bits >> 8 & 1)};
            both.ours = pwre{}.with(pwre::state{wrapped{bits & 15}},
                                    pwre::substate{wrapped{bits >> 4 & 15}},
                                    pwre::HW{(bits >> 8 & 1) != 0});
            return to.put(both);
        }
        auto both = plain_twin<pwrx>(ppt_pwrx);
        both.theirs.payload.pwrx = {
            static_cast<uint8_t>(bits & 15), static_cast<uint8_t>(bits >> 4 & 15),
            static_cast<uint32_t>(bits >> 8 & 1), static_cast<uint32_t>(bits >> 10 & 1),
            static_cast<uint32_t>(bits >> 11 & 1)};
        both.ours = pwrx{}.with(pwrx::last{wrapped{bits & 15}},
                                pwrx::deepest{wrapped{bits >> 4 & 15}},
                                pwrx::reason{wrapped{bits >> 8 & 13}});
        return to.put(both);
    },
    [](libipt_writer to, chance& random, uint64_t bits) {
        using packet::ptw;
        auto both = plain_twin<ptw>(ppt_ptw);
        auto const size = static_cast<uint8_t>(bits & 1);
        uint64_t const payload = random.bits() & low_bits(size == 0 ? 32 : 64);
        both.theirs.payload.ptw = {payload, size, static_cast<uint32_t>(bits >> 1 & 1)};
        both.ours = ptw{}
                        .with(ptw::PayloadBytes{wrapped{size}}, ptw::IP{(bits >> 1 & 1) != 0})
                        .with_payload(payload);
        return to.put(both);
    },
};

/// Writes one packet with libipt's encoder. Returns false when there is no room for it.
auto put_by_libipt(pt_encoder* encoder, uint8_t const* written, chance& random) -> bool {
    uint64_t const bits = random.bits();
    auto const which = random.below(std::size(puts_by_libipt));
    return puts_by_libipt[which]({encoder, written}, random, bits);
}

/// Compares the IPs that libipt rebuilds for the FUP of a PSB+ and the TIPs after it.
auto compare_ips(chance& random) -> uint64_t {
    buffer in;
    streams::put_psb(in);
    auto const fup = ip_twin<packet::fup>(random, ppt_fup).ours;
    auto const put_encoded = [&](auto const& packet) {
        auto const bytes = packet::encode(packet);
        in.insert(in.end(), bytes.data(), bytes.data() + bytes.size());
    };
    put_encoded(fup.has_ip() ? fup : packet::fup::of(packet::ip_bytes::sign_48, random.bits()));
    put_encoded(packet::psbend{});
    size_t const first_tip = in.size();
    for (unsigned i = 0; i < 64; ++i) { put_encoded(ip_twin<packet::tip>(random, ppt_tip).ours); }

    auto const config = configuration(in, in.size());
    pt_query_decoder* const theirs = pt_qry_alloc_decoder(&config);
    if (theirs == nullptr) { std::abort(); }
    uint64_t ip = 0;
    int status = pt_qry_sync_forward(theirs, &ip);
    byte_view const view{in};
    uint64_t last_ip = packet::decode_as<packet::fup>(view.from(16)).packet.ip(0);
    if (status < 0 || ip != last_ip) { fail(view, 16, "the IP of a FUP differs"); }
    uint64_t compared = 1;
    for (size_t at = first_tip; at < in.size(); ++compared) {
        auto const tip = packet::decode_as<packet::tip>(view.from(at));
        last_ip = tip.packet.ip(last_ip);
        status = pt_qry_indirect_branch(theirs, &ip);
        bool const suppressed = (status & pts_ip_suppressed) != 0;
        if (status < 0 || suppressed == tip.packet.has_ip() || (!suppressed && ip != last_ip)) {
            fail(view, at, "the IP of a TIP differs");
        }
        at += tip.length;
    }
    pt_qry_free_decoder(theirs);
    return compared;
}

void fill_by_libipt(buffer& out, chance& random, size_t size) {
    out.assign(size, 0);
    auto const config = configuration(out, size);
    pt_encoder* const encoder = pt_alloc_encoder(&config);
    if (encoder == nullptr) { std::abort(); }
    while (put_by_libipt(encoder, out.data(), random)) {}
    uint64_t end = 0;
    (void)pt_enc_get_offset(encoder, &end);
    pt_free_encoder(encoder);
    out.resize(static_cast<size_t>(end));
}

/// Makes a buffer; the five sorts alternate.
void make(buffer& out, chance& random, uint64_t turn) {
    size_t const size = 256 + random.below(12000);
    out.clear();
    switch (turn % 5) {
        case 0: return fill_with_packets(out, random, size);
        case 1: return fill_by_libipt(out, random, size);
        case 2: fill_with_packets(out, random, size); return mutate(out, random);
        case 3: fill_by_libipt(out, random, size); return mutate(out, random);
        default: return fill_with_noise(out, random, size);
    }
}

// -------------------------------------------------------------------------------- the report

/// Prints the report. Returns false if a listed difference, a packet kind or an error never
/// occurred.
auto report() -> bool {
    bool complete = print_kinds(is_known_to_libipt);
    constexpr char const* names[] = {"", "truncated", "bad_opcode", "reserved", "bad_packet"};
    for (unsigned i = 1; i < 5; ++i) {
        std::printf("%-10s %12" PRIu64 "\n", names[i], errors_of_kind[i]);
        complete = complete && errors_of_kind[i] != 0;
    }
    complete = print_differences() == known_differences && complete;
    if (!complete) { std::printf("\nsomething above was never met\n"); }
    return complete;
}

auto number_behind(char const* name, int count, char** arguments, uint64_t otherwise) -> uint64_t {
    for (int i = 1; i + 1 < count; i += 2) {
        if (std::string_view{arguments[i]} == name) {
            return std::strtoull(arguments[i + 1], nullptr, 0);
        }
    }
    return otherwise;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    for (int i = 1; i < count; i += 2) {
        std::string_view const name{arguments[i]};
        if ((name != "--packets" && name != "--seed") || i + 1 == count) {
            std::fprintf(stderr, "usage: libipt [--packets N] [--seed S]\n");
            return 2;
        }
    }
    uint64_t const wanted = number_behind("--packets", count, arguments, 10'000'000);
    uint64_t const seed = number_behind("--seed", count, arguments, 1);
    auto const version = pt_library_version();
    std::printf("libipt %u.%u.%u, seed %" PRIu64 "\n", unsigned{version.major},
                unsigned{version.minor}, unsigned{version.build}, seed);
    std::fflush(stdout);
    if (version.major != 2 || version.minor != 0) {
        std::printf("the known differences are those of libipt 2.0\n");
        return 1;
    }

    auto const start = std::chrono::steady_clock::now();
    chance random{seed};
    buffer bytes;
    uint64_t compared = 0;
    uint64_t size = 0;
    uint64_t turn = 0;
    for (; compared < wanted; ++turn) {
        make(bytes, random, turn);
        auto const starts = compare_all(bytes);
        compared += starts.size() + compare_ends(random, bytes, starts);
        compare_searches(random, bytes);
        rebuilt_ips += compare_ips(random);
        size += bytes.size();
    }
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
    std::printf("%" PRIu64 " packets in %" PRIu64 " streams of %" PRIu64 " bytes, %" PRIu64
                " searches for a PSB, %" PRIu64 " IPs rebuilt, %" PRIu64
                " packets encoded, %.1f s\n",
                compared, turn, size, searches, rebuilt_ips, encoded, took.count());
    return report() ? 0 : 1;
}
