// SPDX-License-Identifier: BSL-1.0
#pragma once

// Why a packet is in the trace: the rules of the catalogue, and a sentence.

#include <ptspec/packet/list.hpp>

#include <string_view>

namespace trace_script {

/// The rules for the packets of one kind.
constexpr auto why(ptspec::packet::kind which) -> std::string_view {
    using ptspec::packet::kind;
    switch (which) {
        case kind::pad: return "GEN-008: alignment, as the options require";
        case kind::tnt_short:
        case kind::tnt_long:
            return "GEN-120, GEN-121, GEN-123: branches in their order, written when the packet is "
                   "full or another packet comes";
        case kind::tip: return "GEN-110, GEN-340: a target that the code alone does not show";
        case kind::tip_pge:
            return "GEN-100: PacketEn rose, and this is the first IP that is traced";
        case kind::tip_pgd:
            return "GEN-101, GEN-102: PacketEn fell; with the target where its context is traced";
        case kind::fup: return "GEN-113, GEN-227, GEN-303: the IP that the packets around it need";
        case kind::pip: return "GEN-240, GEN-241: CR3 was written, or a PSB+ reports it";
        case kind::mode_exec:
            return "GEN-235, GEN-236: the width of the code, where a decoder does not know it";
        case kind::mode_tsx: return "GEN-250..255: a transaction began, ended or was aborted";
        case kind::tracestop: return "GEN-089, GEN-090: an IP in a TraceStop range";
        case kind::cbr:
            return "GEN-202: the ratio of core to bus clock, written when a clock starts";
        case kind::tsc: return "GEN-200: the time-stamp counter, after the clocks had stopped";
        case kind::mtc: return "GEN-203: MTCFreq bits of the crystal counter have gone around";
        case kind::tma: return "GEN-201: how the crystal counter relates to the TSC";
        case kind::cyc: return "GEN-211, GEN-212, GEN-216: core clocks up to the next packet";
        case kind::vmcs: return "GEN-170, GEN-244: the current VMCS";
        case kind::ovf: return "GEN-225, GEN-227: packets were lost before this one";
        case kind::psb:
            return "GEN-160..163: as many bytes as PSBFreq says, or tracing was enabled";
        case kind::psbend: return "GEN-170: the end of a PSB+";
        case kind::ptw: return "GEN-300: PTWRITE where PTWEn, ContextEn and FilterEn are 1";
        case kind::exstop: return "GEN-310, GEN-317: the clock stops here";
        case kind::mwait: return "GEN-310: what MWAIT asked for";
        case kind::pwre: return "GEN-310, GEN-311, GEN-315: the C-state that was resolved";
        case kind::pwrx: return "GEN-313: what ended the C-state";
        case kind::bbp:
        case kind::bip:
        case kind::bep: return "GEN-320..322: a PEBS record";
        case kind::cfe: return "GEN-301, GEN-303, GEN-304: an event that Event Trace reports";
        case kind::evd: return "GEN-302: data of the CFE that follows";
        default: return "";  // the engine does not write it
    }
}

}  // namespace trace_script
