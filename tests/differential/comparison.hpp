// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <intel-pt.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <ptspec/packet/encode.hpp>
#include <ptspec/trace/psb_search.hpp>

#include <differential/streams.hpp>

// Compares how ptspec and libipt 2.0.5 read the same bytes, packet by packet: offset, length, kind,
// every field and every error. A known difference (tests/spec/packets.md, section 19) must be
// exactly as listed, and is counted under its rule.
namespace differential {

using namespace ptspec;
using packet::error;
using packet::kind;
using streams::buffer;

// -------------------------------------------------------------------------------- what is known

/// A known difference between libipt 2.0.5 and the catalogue.
struct known_difference {
    char const* rule;
    char const* what;
    uint64_t count = 0;
};

enum known : unsigned {
    mode_without_meaning,
    tma_reserved_bits,
    cyc_of_ten_bytes,
    mwait_masks,
    pwre_hw,
    pwrx_reason,
    bbp_unknown,
    bip_as_tnt,
    bep_unknown,
    cfe_unknown,
    evd_unknown,
    trig_unknown,
    known_differences
};

inline known_difference differences[known_differences] = {
    {"PKT-090", "MODE.Exec with L and D, MODE.TSX with InTX and TXAbort: libipt reads them"},
    {"PKT-104", "TMA with a reserved bit: libipt rejects it, ptspec only in strict mode"},
    {"PKT-110", "CYC: libipt reads up to 9 bytes, ptspec 10"},
    {"PKT-183", "MWAIT: libipt takes reserved bits for hints and extensions"},
    {"PKT-185", "PWRE.HW: libipt reads and writes bit 2.3, ptspec bit 2.7"},
    {"PKT-187", "PWRX: libipt drops bit 1 of the wake reason"},
    {"PKT-200", "BBP: unknown to libipt"},
    {"PKT-203", "BIP in a block: libipt reads its first byte as TNT.short"},
    {"PKT-204", "BEP: unknown to libipt"},
    {"PKT-220", "CFE: unknown to libipt 2.0"},
    {"PKT-225", "EVD: unknown to libipt 2.0"},
    {"PKT-240", "TRIG: unknown to libipt 2.0"},
};

inline uint64_t packets_of_kind[packet::kind_count];
inline uint64_t errors_of_kind[5];

inline void count(known which) { ++differences[which].count; }

// -------------------------------------------------------------------------------- comparing

[[noreturn]] inline void fail(byte_view in, size_t at, char const* what) {
    std::printf("DIFFERENCE at offset %zu: %s\n  bytes:", at, what);
    for (uint8_t const byte : in.from(at).first(24)) { std::printf(" %02x", unsigned{byte}); }
    std::printf("\n  before:");
    size_t const begin = at < 24 ? 0 : at - 24;
    for (uint8_t const byte : in.from(begin).first(at - begin)) {
        std::printf(" %02x", unsigned{byte});
    }
    std::printf("\n");
    std::exit(1);
}

inline auto same_branches(pt_packet_tnt const& theirs, packet::branches ours) -> bool {
    return theirs.bit_size == ours.count && theirs.payload == ours.bits;
}

template <class Packet>
auto same_ip(pt_packet_ip const& theirs, Packet const& ours) -> bool {
    return static_cast<unsigned>(theirs.ipc) ==
               underlying(ours.template get<typename Packet::IPBytes>()) &&
           theirs.ip == ours.payload();
}

/// Compares a packet that both have read: type and every field.
struct comparison {
    pt_packet const& theirs;

    [[nodiscard]] auto is(pt_packet_type type) const -> bool { return theirs.type == type; }

    auto operator()(packet::pad const&) const -> bool { return is(ppt_pad); }
    auto operator()(packet::psb const&) const -> bool { return is(ppt_psb); }
    auto operator()(packet::psbend const&) const -> bool { return is(ppt_psbend); }
    auto operator()(packet::ovf const&) const -> bool { return is(ppt_ovf); }
    auto operator()(packet::tracestop const&) const -> bool { return is(ppt_stop); }
    auto operator()(packet::tnt_short const& ours) const -> bool {
        return is(ppt_tnt_8) && same_branches(theirs.payload.tnt, ours.taken());
    }
    auto operator()(packet::tnt_long const& ours) const -> bool {
        return is(ppt_tnt_64) && same_branches(theirs.payload.tnt, ours.taken());
    }
    auto operator()(packet::tip const& ours) const -> bool {
        return is(ppt_tip) && same_ip(theirs.payload.ip, ours);
    }
    auto operator()(packet::tip_pge const& ours) const -> bool {
        return is(ppt_tip_pge) && same_ip(theirs.payload.ip, ours);
    }
    auto operator()(packet::tip_pgd const& ours) const -> bool {
        return is(ppt_tip_pgd) && same_ip(theirs.payload.ip, ours);
    }
    auto operator()(packet::fup const& ours) const -> bool {
        return is(ppt_fup) && same_ip(theirs.payload.ip, ours);
    }
    auto operator()(packet::pip const& ours) const -> bool {
        return is(ppt_pip) && theirs.payload.pip.cr3 == ours.get<packet::pip::CR3>() &&
               (theirs.payload.pip.nr != 0) == ours.get<packet::pip::NR>();
    }
    auto operator()(packet::mode_exec const& ours) const -> bool {
        return is(ppt_mode) && theirs.payload.mode.leaf == pt_mol_exec &&
               (theirs.payload.mode.bits.exec.csl != 0) == ours.get<packet::mode_exec::CS_L>() &&
               (theirs.payload.mode.bits.exec.csd != 0) == ours.get<packet::mode_exec::CS_D>();
    }
    auto operator()(packet::mode_tsx const& ours) const -> bool {
        return is(ppt_mode) && theirs.payload.mode.leaf == pt_mol_tsx &&
               (theirs.payload.mode.bits.tsx.intx != 0) == ours.get<packet::mode_tsx::InTX>() &&
               (theirs.payload.mode.bits.tsx.abrt != 0) == ours.get<packet::mode_tsx::TXAbort>();
    }
    auto operator()(packet::cbr const& ours) const -> bool {
        return is(ppt_cbr) && theirs.payload.cbr.ratio == ours.get<packet::cbr::CoreBusRatio>();
    }
    auto operator()(packet::tsc const& ours) const -> bool {
        return is(ppt_tsc) && theirs.payload.tsc.tsc == ours.get<packet::tsc::TSC>();
    }
    auto operator()(packet::mtc const& ours) const -> bool {
        return is(ppt_mtc) && theirs.payload.mtc.ctc == ours.get<packet::mtc::CTC>();
    }
    auto operator()(packet::tma const& ours) const -> bool {
        return is(ppt_tma) && theirs.payload.tma.ctc == ours.get<packet::tma::CTC>() &&
               theirs.payload.tma.fc == ours.get<packet::tma::FC>();
    }
    auto operator()(packet::cyc const& ours) const -> bool {
        return is(ppt_cyc) && theirs.payload.cyc.value == ours.value();
    }
    auto operator()(packet::vmcs const& ours) const -> bool {
        return is(ppt_vmcs) && theirs.payload.vmcs.base == ours.get<packet::vmcs::base>();
    }
    auto operator()(packet::mnt const& ours) const -> bool {
        return is(ppt_mnt) && theirs.payload.mnt.payload == ours.get<packet::mnt::payload>();
    }
    auto operator()(packet::ptw const& ours) const -> bool {
        return is(ppt_ptw) && theirs.payload.ptw.plc == ours.get<packet::ptw::PayloadBytes>() &&
               (theirs.payload.ptw.ip != 0) == ours.get<packet::ptw::IP>() &&
               theirs.payload.ptw.payload == ours.packet_word::payload();
    }
    auto operator()(packet::exstop const& ours) const -> bool {
        return is(ppt_exstop) && (theirs.payload.exstop.ip != 0) == ours.get<packet::exstop::IP>();
    }
    auto operator()(packet::mwait const& ours) const -> bool {
        uint64_t const hints = theirs.payload.mwait.hints;
        uint64_t const ext = theirs.payload.mwait.ext;
        if (hints > 0xFF || ext > 3) { count(mwait_masks); }
        return is(ppt_mwait) && (hints & 0xFF) == ours.get<packet::mwait::hints>() &&
               (ext & 3) == ours.get<packet::mwait::ext>();
    }
    auto operator()(packet::pwre const& ours) const -> bool {
        uint64_t const bytes = ours.raw;
        bool const bit_2_3 = (bytes >> 19 & 1) != 0;
        bool const bit_2_7 = (bytes >> 23 & 1) != 0;
        if (bit_2_3 != bit_2_7) { count(pwre_hw); }
        return is(ppt_pwre) && theirs.payload.pwre.state == ours.get<packet::pwre::state>() &&
               theirs.payload.pwre.sub_state == ours.get<packet::pwre::substate>() &&
               (theirs.payload.pwre.hw != 0) == bit_2_3 && ours.get<packet::pwre::HW>() == bit_2_7;
    }
    auto operator()(packet::pwrx const& ours) const -> bool {
        auto const& read = theirs.payload.pwrx;
        uint64_t const reason = ours.get<packet::pwrx::reason>();
        if ((reason & 2) != 0) { count(pwrx_reason); }
        return is(ppt_pwrx) && read.last == ours.get<packet::pwrx::last>() &&
               read.deepest == ours.get<packet::pwrx::deepest>() &&
               (reason & ~uint64_t{2}) == (uint64_t{read.interrupt} | uint64_t{read.store} << 2 |
                                           uint64_t{read.autonomous} << 3);
    }
};

/// True for the packets that libipt knows: those that `comparison` accepts.
inline auto is_known_to_libipt(kind which) -> bool {
    return packet::for_kind(
        which,
        []<class Packet>() {
            return requires(comparison const& with, Packet const& ours) { with(ours); };
        },
        packet::all{});
}

/// The known difference under which a packet that libipt does not know is counted, if any.
inline auto difference_of(kind which) -> known {
    switch (which) {
        case kind::bbp: return bbp_unknown;
        case kind::bep: return bep_unknown;
        case kind::cfe: return cfe_unknown;
        case kind::evd: return evd_unknown;
        case kind::trig: return trig_unknown;
        default: return known_differences;
    }
}

/// The packet kind that the first bytes determine, else PAD.
inline auto packet_of_head(byte_view in) -> kind {
    auto opcode = packet::classify_first(in.empty() ? uint8_t{0} : in[0]);
    if (opcode.what == packet::opcode_byte::meaning::prefix && in.size() > 1) {
        opcode = packet::classify_ext(in[1]);
    }
    return opcode.what == packet::opcode_byte::meaning::packet ? opcode.id : kind::pad;
}

/// Compares the results at `at`: for libipt the status of pt_pkt_next, which is a length or an
/// error, and its packet.
inline void compare(byte_view in, size_t at, packet::decode_options how,
                    packet::decoded const& ours, int status, pt_packet const& theirs) {
    auto const here = in.from(at);
    auto const expect = [&](bool holds, char const* what) {
        if (!holds) { fail(in, at, what); }
    };
    auto const fails_with = [&](pt_error_code code) { return status == -static_cast<int>(code); };
    auto const is_unknown = [&](kind which) {
        if (is_known_to_libipt(which)) { return false; }
        expect(fails_with(pte_bad_opc), "libipt knows a packet that it should not");
        if (auto const one = difference_of(which); one != known_differences) { count(one); }
        return true;
    };

    if (how.block != packet::block::none && !here.empty() && (here[0] & 7) == 4) {
        expect(status == 1 && theirs.type == ppt_tnt_8, "libipt reads no TNT.short in a block");
        expect(ours ? ours.packet.is<packet::bip>() : ours.error == error::truncated,
               "no BIP in a block");
        return count(bip_as_tnt);
    }
    switch (ours.error) {
        case error::none: break;
        case error::truncated:
            if (is_unknown(packet_of_head(here))) { return; }
            if (ours.need == 10 && (here[0] & 3) == 3) {
                expect(fails_with(pte_bad_packet) || fails_with(pte_eos), "a CYC that is cut off");
                return count(cyc_of_ten_bytes);
            }
            return expect(fails_with(pte_eos), "ptspec: truncated");
        case error::bad_opcode: return expect(fails_with(pte_bad_opc), "ptspec: bad_opcode");
        case error::reserved:
            if (ours.broken == rule::PKT_090) {
                expect(status == 2 && theirs.type == ppt_mode, "libipt rejects a MODE");
                return count(mode_without_meaning);
            }
            return expect(fails_with(pte_bad_packet), "ptspec: reserved");
        case error::bad_packet:
            if (ours.broken == rule::PKT_104) {
                auto const loose = packet::decode(here, {how.block, false});
                expect(loose && loose.packet.is<packet::tma>(), "a TMA that is not strict");
                count(tma_reserved_bits);
            }
            return expect(fails_with(pte_bad_packet), "ptspec: bad_packet");
    }
    if (is_unknown(ours.packet.kind())) { return; }
    if (ours.packet.is<packet::cyc>() && ours.length() == 10) {
        expect(fails_with(pte_bad_packet), "libipt reads a CYC of ten bytes");
        return count(cyc_of_ten_bytes);
    }
    expect(status >= 0, "libipt rejects what ptspec reads");
    expect(static_cast<unsigned>(status) == ours.length() && theirs.size == ours.length(),
           "the lengths differ");
    bool const same = packet::visit(
        [&](auto const& one) {
            if constexpr (requires { comparison{theirs}(one); }) {
                return comparison{theirs}(one);
            } else {
                return false;
            }
        },
        ours.packet);
    expect(same, "the packet or a field differs");
}

inline auto configuration(buffer& in, size_t size) -> pt_config {
    pt_config config;
    pt_config_init(&config);
    config.begin = in.data();
    config.end = in.data() + size;
    return config;
}

/// A decoder of libipt over the first `size` bytes.
class decoder {
public:
    decoder(buffer& in, size_t size) {
        auto const config = configuration(in, size);
        decoder_ = pt_pkt_alloc_decoder(&config);
        if (decoder_ == nullptr) { std::abort(); }
    }
    ~decoder() { pt_pkt_free_decoder(decoder_); }
    decoder(decoder const&) = delete;
    auto operator=(decoder const&) -> decoder& = delete;

    void go_to(size_t at) {
        if (pt_pkt_sync_set(decoder_, at) < 0) { std::abort(); }
    }
    auto next(pt_packet& packet) -> int { return pt_pkt_next(decoder_, &packet, sizeof packet); }
    [[nodiscard]] auto offset() const -> size_t {
        uint64_t at = 0;
        if (pt_pkt_get_offset(decoder_, &at) < 0) { std::abort(); }
        return static_cast<size_t>(at);
    }
    /// The PSB that libipt finds, or `npos`.
    auto search(int (*way)(pt_packet_decoder*)) -> size_t {
        int const status = way(decoder_);
        return status >= 0 ? offset() : status == -pte_eos ? trace::npos : (std::abort(), 0);
    }

private:
    pt_packet_decoder* decoder_;
};

/// The offset of a packet or an error in a buffer, and the block before it.
struct start {
    size_t at;
    packet::block items;
};

/// Reads a whole buffer; after an error it continues at the next byte. Returns all starts.
inline auto compare_all(buffer& in) -> std::vector<start> {
    decoder theirs{in, in.size()};
    byte_view const view{in};
    packet::block items = packet::block::none;
    std::vector<start> starts;
    size_t at = 0;
    bool in_step = false;
    while (at < in.size()) {
        starts.push_back({at, items});
        if (!in_step) { theirs.go_to(at); }
        if (theirs.offset() != at) { fail(view, at, "the offsets differ"); }
        packet::decode_options const how{items, true};
        auto const ours = packet::decode(view.from(at), how);
        pt_packet packet;
        std::memset(&packet, 0, sizeof packet);
        int const status = theirs.next(packet);
        compare(view, at, how, ours, status, packet);
        if (status < 0 && theirs.offset() != at) { fail(view, at, "libipt moved on an error"); }
        if (ours) {
            ++packets_of_kind[underlying(ours.packet.kind())];
            items = packet::block_after(ours.packet, items);
            at += ours.length();
        } else {
            ++errors_of_kind[underlying(ours.error)];
            items = packet::block::none;
            at += 1;
        }
        in_step = ours && status >= 0 && static_cast<unsigned>(status) == ours.length();
    }
    return starts;
}

// -------------------------------------------------------------------------------- the report

/// Prints how many packets of each kind were compared. Returns false if a required kind was not
/// met.
template <class Kinds>
auto print_kinds(Kinds has_to_be_met) -> bool {
    bool met = true;
    std::printf("\n%-10s %12s\n", "packet", "compared");
    for (unsigned i = 0; i < packet::kind_count; ++i) {
        auto const name = packet::name_of(static_cast<kind>(i));
        std::printf("%-10.*s %12" PRIu64 "\n", static_cast<int>(name.size()), name.data(),
                    packets_of_kind[i]);
        met = met && (packets_of_kind[i] != 0 || !has_to_be_met(static_cast<kind>(i)));
    }
    return met;
}
/// Prints how often each difference was met. Returns how many differences were met.
inline auto print_differences() -> unsigned {
    unsigned met = 0;
    std::printf("\n%-8s %10s  %s\n", "rule", "times", "known difference");
    for (auto const& one : differences) {
        std::printf("%-8s %10" PRIu64 "  %s\n", one.rule, one.count, one.what);
        met += one.count != 0 ? 1U : 0U;
    }
    return met;
}

}  // namespace differential
