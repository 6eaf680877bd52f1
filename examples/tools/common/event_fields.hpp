// SPDX-License-Identifier: BSL-1.0
#pragma once

// The fields of events, as listings and pages show them.

#include "event_names.hpp"
#include "listing.hpp"

#include <ptspec/ptspec.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace events {

using namespace ptspec;

namespace detail {

inline auto name(packet::cfe_type type) -> std::string_view {
    using enum packet::cfe_type;
    switch (type) {
        case INTR: return "intr";
        case IRET: return "iret";
        case SMI: return "smi";
        case RSM: return "rsm";
        case SIPI: return "sipi";
        case INIT: return "init";
        case VMENTRY: return "vmentry";
        case VMEXIT: return "vmexit";
        case VMEXIT_INTR: return "vmexit_intr";
        case SHUTDOWN: return "shutdown";
        case UINTR: return "uintr";
        case UIRET: return "uiret";
        case SWINTR: return "swintr";
        case SYSCALL: return "syscall";
    }
    return "";
}
inline auto name(packet::evd_type type) -> std::string_view {
    using enum packet::evd_type;
    switch (type) {
        case PFA: return "pfa";
        case VMXQ: return "vmxq";
        case VMXR: return "vmxr";
    }
    return "";
}
/// Source: PKT-201.
inline auto name_of_group(std::uint64_t type) -> std::string_view {
    switch (type) {
        case 0x01: return "general";
        case 0x04: return "basic";
        case 0x05: return "memory";
        case 0x08:
        case 0x09:
        case 0x0A: return "lbr";
        case 0x10: return "xmm";
        default: return "";
    }
}
/// Source: PKT-187.
inline auto name_of_wake(std::uint64_t reason) -> std::string_view {
    switch (reason) {
        case 0: return "other";
        case 1: return "interrupt";
        case 4: return "store";
        case 8: return "hardware";
        default: return "";
    }
}
/// What an event of MODE.TSX reports.
inline auto name(packet::mode_tsx which, bool is_status) -> std::string_view {
    bool const is_in = which.get<packet::mode_tsx::InTX>();
    if (which.get<packet::mode_tsx::TXAbort>()) { return "abort"; }
    if (is_status) { return is_in ? "inside" : "outside"; }
    return is_in ? "begin" : "commit";
}

/// The name, or the number of a value without a name.
template <class Fields>
void add_name(Fields& fields, std::string_view field, std::string_view name, std::uint64_t value) {
    fields.string(field, name.empty() ? std::to_string(value) : std::string{name});
}
template <class Fields>
void add_address(Fields& fields, std::string_view field, bool is_known, std::uint64_t value) {
    if (is_known) {
        fields.hex(field, value);
    } else {
        fields.nothing(field);
    }
}
template <class Fields>
void add_ip(Fields& fields, trace::event const& one) {
    add_address(fields, "ip", one.has_ip, one.ip);
}
template <class Fields>
void add_to(Fields& fields, trace::event const& one) {
    add_address(fields, "to", one.has_to, one.to);
}

}  // namespace detail

/// Passes the fields of an event as name and value to `fields`, as `listing::fields_of` does.
template <class Fields>
void add_fields(Fields& fields, trace::event const& one) {
    using enum trace::event_type;
    auto const& which = one.packet;
    switch (one.what) {
        case branches: {
            auto const all = one.branches();
            fields.number("n", all.count);
            fields.branches("bits", all);
            return;
        }
        case indirect_branch:
        case disabled: detail::add_to(fields, one); return;
        case async_branch:
        case async_disabled:
            detail::add_ip(fields, one);
            detail::add_to(fields, one);
            return;
        case paging: {
            auto const pip = which.as<packet::pip>();
            fields.hex("cr3", pip.get<packet::pip::CR3>());
            fields.number("nr", pip.get<packet::pip::NR>());
            break;
        }
        case vmcs: fields.hex("base", which.as<packet::vmcs>().get<packet::vmcs::base>()); break;
        case exec_mode: {
            auto const mode = which.as<packet::mode_exec>();
            fields.number("mode", mode.code_bits());
            fields.number("if", mode.get<packet::mode_exec::IF>());
            break;
        }
        case transaction:
            fields.string("state", detail::name(which.as<packet::mode_tsx>(), one.is_status));
            break;
        case ptwrite: {
            auto const ptw = which.as<packet::ptw>();
            fields.number("size", ptw.get<packet::ptw::PayloadBytes>() == 0 ? 4 : 8);
            fields.hex("payload", ptw.payload());
            break;
        }
        case mwait: {
            auto const mwait_packet = which.as<packet::mwait>();
            fields.hex("hints", mwait_packet.get<packet::mwait::hints>());
            fields.hex("ext", mwait_packet.get<packet::mwait::ext>());
            break;
        }
        case pwre: {
            auto const entry = which.as<packet::pwre>();
            fields.number("state", entry.get<packet::pwre::state>());
            fields.number("sub_state", entry.get<packet::pwre::substate>());
            fields.number("hw", entry.get<packet::pwre::HW>());
            break;
        }
        case pwrx: {
            auto const exit = which.as<packet::pwrx>();
            auto const reason = exit.get<packet::pwrx::reason>();
            fields.number("last", exit.get<packet::pwrx::last>());
            fields.number("deepest", exit.get<packet::pwrx::deepest>());
            detail::add_name(fields, "wake", detail::name_of_wake(reason), reason);
            break;
        }
        case pebs_group: {
            auto const bbp = which.as<packet::bbp>();
            auto const type = bbp.get<packet::bbp::type>();
            detail::add_name(fields, "group", detail::name_of_group(type), type);
            fields.number("size", underlying(bbp.opens()));
            break;
        }
        case pebs_item: {
            auto const bip = which.as<packet::bip>();
            fields.number("id", bip.get<packet::bip::id>());
            fields.hex("payload", bip.payload());
            break;
        }
        case event_data: {
            auto const evd = which.as<packet::evd>();
            auto const type = evd.get<packet::evd::type>();
            detail::add_name(fields, "type", detail::name(type), underlying(type));
            fields.hex("payload", evd.get<packet::evd::payload>());
            break;
        }
        case control_flow: {
            auto const cfe = which.as<packet::cfe>();
            auto const type = cfe.get<packet::cfe::type>();
            detail::add_name(fields, "type", detail::name(type), underlying(type));
            fields.number("vector", cfe.get<packet::cfe::vector>());
            break;
        }
        case trigger: {
            auto const trig = which.as<packet::trig>();
            fields.hex("trbv", trig.get<packet::trig::TRBV>());
            fields.number("mult", trig.get<packet::trig::MULT>());
            if (trig.get<packet::trig::ICNTV>()) {
                fields.hex("icnt", trig.ICNT());
            } else {
                fields.nothing("icnt");
            }
            break;
        }
        case frequency:
            fields.number("ratio", which.as<packet::cbr>().get<packet::cbr::CoreBusRatio>());
            return;
        case maintenance:
            fields.hex("payload", which.as<packet::mnt>().get<packet::mnt::payload>());
            return;
        case overflow: return;
        case damage:
        case note:
            if (which.kind() == packet::kind::none) {
                fields.nothing("packet");  // the bytes are no packet
            } else {
                fields.string("packet", listing::name(which.kind()));
            }
            fields.string("rule", rule_id{one.broken}.letters);
            if (one.error == packet::error::truncated) { fields.number("left", one.skipped); }
            return;
        case synced:
        case resynced:
        case lost: fields.number("skipped", one.skipped); return;
        case unknown: return;
        case enabled:
        case resumed:
        case trace_stop:
        case exstop:
        case pebs_end:
        case psb: break;
        case need_input:
        case end: return;
    }
    detail::add_ip(fields, one);
}

}  // namespace events
