// SPDX-License-Identifier: BSL-1.0
#pragma once

// Packets in the notation of the rule catalogue: `TNT(10), TIP(2000), PIP(1000,NR=0)`.

#include <ptspec/packet/list.hpp>
#include <ptspec/print/rows.hpp>
#include <ptspec/print/text.hpp>
#include <ptspec/trace/reader.hpp>

#include <cstdint>

namespace trace_script {

using namespace ptspec;

/// The catalogue's name for the value of a packet field.
template <class Packet>
constexpr auto name_in(text field, std::uint64_t encoding) -> text {
    return print::row_list_of<Packet>().field(field)->enumerator(encoding);
}
constexpr auto has_vector(packet::cfe_type type) -> bool {
    using packet::cfe_type;
    return type == cfe_type::INTR || type == cfe_type::SIPI || type == cfe_type::VMEXIT_INTR ||
           type == cfe_type::UINTR || type == cfe_type::SWINTR;
}

/// Prints packets to `out`.
template <class Out>
class packet_printer {
public:
    constexpr packet_printer(Out& out, bool with_if) : out_{out}, with_if_{with_if} {}

    template <class Packet>
    constexpr void operator()(Packet const& which, trace::packet_place where) {
        show(which, where.ip);
    }

private:
    Out& out_;
    bool with_if_;

    constexpr void put(text what) { out_(what); }
    constexpr void hex(std::uint64_t number) { print::hex(number, out_); }
    constexpr void flag(text name, bool value) {
        put(name);
        put(value ? text{"=1"} : text{"=0"});
    }

    template <class Packet>
    constexpr void show(Packet const&, std::uint64_t) {
        put(Packet::about.name);
    }
    constexpr void branches(packet::branches const& all) {
        put("TNT(");
        for (unsigned i = 0; i < all.count; ++i) { put(all.taken(i) ? text{"1"} : text{"0"}); }
        put(")");
    }
    constexpr void show(packet::tnt_short const& p, std::uint64_t) { branches(p.taken()); }
    constexpr void show(packet::tnt_long const& p, std::uint64_t) { branches(p.taken()); }
    template <class Packet>
    constexpr void with_ip(Packet const& p, std::uint64_t ip) {
        put(Packet::about.name);
        put("(");
        if (p.has_ip()) { hex(ip); }
        put(")");
    }
    constexpr void show(packet::tip const& p, std::uint64_t ip) { with_ip(p, ip); }
    constexpr void show(packet::tip_pge const& p, std::uint64_t ip) { with_ip(p, ip); }
    constexpr void show(packet::tip_pgd const& p, std::uint64_t ip) { with_ip(p, ip); }
    constexpr void show(packet::fup const& p, std::uint64_t ip) { with_ip(p, ip); }
    constexpr void show(packet::pip const& p, std::uint64_t) {
        put("PIP(");
        hex(p.get<packet::pip::CR3>());
        flag(",NR", p.get<packet::pip::NR>());
        put(")");
    }
    constexpr void show(packet::vmcs const& p, std::uint64_t) {
        put("VMCS(");
        hex(p.get<packet::vmcs::base>());
        put(")");
    }
    constexpr void show(packet::mode_exec const& p, std::uint64_t) {
        put("MODE.Exec(");
        print::decimal(p.code_bits(), out_);
        if (with_if_) { flag(",IF", p.get<packet::mode_exec::IF>()); }
        put(")");
    }
    constexpr void show(packet::mode_tsx const& p, std::uint64_t) {
        flag("MODE.TSX(InTX", p.get<packet::mode_tsx::InTX>());
        flag(",TXAbort", p.get<packet::mode_tsx::TXAbort>());
        put(")");
    }
    constexpr void show(packet::tracestop const&, std::uint64_t) { put("TraceStop"); }
    constexpr void show(packet::mtc const& p, std::uint64_t) {
        put("MTC(");
        hex(p.get<packet::mtc::CTC>());
        put(")");
    }
    constexpr void show(packet::cyc const& p, std::uint64_t) {
        put("CYC(");
        print::decimal(p.value(), out_);
        put(")");
    }
    constexpr void show(packet::ptw const& p, std::uint64_t) {
        flag("PTW(IP", p.get<packet::ptw::IP>());
        put(p.get<packet::ptw::PayloadBytes>() == 0 ? text{",4B,"} : text{",8B,"});
        hex(p.payload());
        put(")");
    }
    constexpr void show(packet::mwait const& p, std::uint64_t) {
        put("MWAIT(");
        hex(p.get<packet::mwait::hints>());
        put(",");
        hex(p.get<packet::mwait::ext>());
        put(")");
    }
    constexpr void c_state(std::uint64_t state) {
        put("C");
        print::decimal(state, out_);
    }
    constexpr void show(packet::pwre const& p, std::uint64_t) {
        put("PWRE(");
        c_state(p.get<packet::pwre::state>());
        if (auto const sub = p.get<packet::pwre::substate>(); sub != 0) {
            put(".");
            print::decimal(sub, out_);
        }
        put(p.get<packet::pwre::HW>() ? text{",HW)"} : text{")"});
    }
    constexpr void show(packet::exstop const& p, std::uint64_t) {
        flag("EXSTOP(IP", p.get<packet::exstop::IP>());
        put(")");
    }
    constexpr void show(packet::pwrx const& p, std::uint64_t) {
        put("PWRX(");
        c_state(p.get<packet::pwrx::last>());
        put(",");
        c_state(p.get<packet::pwrx::deepest>());
        put(",");
        hex(p.get<packet::pwrx::reason>());
        put(")");
    }
    constexpr void show(packet::cfe const& p, std::uint64_t) {
        auto const type = p.get<packet::cfe::type>();
        put("CFE(");
        put(name_in<packet::cfe>("type", underlying(type)));
        if (has_vector(type)) {
            put(":");
            hex(p.get<packet::cfe::vector>());
        }
        flag(",IP", p.get<packet::cfe::IP>());
        put(")");
    }
    constexpr void show(packet::evd const& p, std::uint64_t) {
        put("EVD(");
        put(name_in<packet::evd>("type", underlying(p.get<packet::evd::type>())));
        put(":");
        hex(p.get<packet::evd::payload>());
        put(")");
    }
    constexpr void show(packet::bbp const& p, std::uint64_t) {
        put(p.get<packet::bbp::SZ>() ? text{"BBP(1,"} : text{"BBP(0,"});
        hex(p.get<packet::bbp::type>());
        put(")");
    }
    constexpr void show(packet::bip const& p, std::uint64_t) {
        put("BIP(");
        hex(p.get<packet::bip::id>());
        put(":");
        hex(p.payload());
        put(")");
    }
    constexpr void show(packet::bep const& p, std::uint64_t) {
        flag("BEP(IP", p.get<packet::bep::IP>());
        put(")");
    }
};

}  // namespace trace_script
