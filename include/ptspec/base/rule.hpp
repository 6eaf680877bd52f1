// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/lang.hpp>

namespace ptspec {

/// A violated rule, by its number in the rule catalogue, with a thousand for each family.
///
/// Lists only the rules that a function of this library returns. `none`: no rule was violated.
enum class rule : uint16_t {
    none = 0,
    REG_001 = 1001,
    REG_002 = 1002,
    REG_004 = 1004,
    REG_006 = 1006,
    REG_012 = 1012,
    REG_013 = 1013,
    REG_014 = 1014,
    REG_017 = 1017,
    REG_021 = 1021,
    REG_024 = 1024,
    REG_025 = 1025,
    REG_026 = 1026,
    REG_027 = 1027,
    REG_028 = 1028,
    REG_030 = 1030,
    REG_031 = 1031,
    REG_032 = 1032,
    REG_033 = 1033,
    REG_034 = 1034,
    REG_035 = 1035,
    REG_036 = 1036,
    REG_037 = 1037,
    REG_040 = 1040,
    REG_044 = 1044,
    REG_048 = 1048,
    REG_052 = 1052,
    REG_053 = 1053,
    REG_054 = 1054,
    REG_055 = 1055,
    REG_056 = 1056,
    REG_068 = 1068,
    REG_070 = 1070,
    REG_074 = 1074,
    REG_076 = 1076,
    REG_102 = 1102,
    REG_103 = 1103,
    REG_121 = 1121,
    REG_128 = 1128,
    REG_129 = 1129,
    REG_130 = 1130,
    REG_131 = 1131,
    REG_132 = 1132,
    REG_135 = 1135,
    REG_136 = 1136,
    REG_137 = 1137,
    REG_139 = 1139,
    REG_140 = 1140,
    REG_143 = 1143,
    REG_144 = 1144,
    REG_148 = 1148,
    REG_200 = 1200,
    REG_203 = 1203,
    REG_204 = 1204,
    OUT_020 = 2020,
    OUT_022 = 2022,
    OUT_023 = 2023,
    OUT_024 = 2024,
    OUT_046 = 2046,
    OUT_056 = 2056,
    OUT_060 = 2060,
    OUT_061 = 2061,
    OUT_062 = 2062,
    OUT_063 = 2063,
    OUT_064 = 2064,
    OUT_065 = 2065,
    OUT_066 = 2066,
    OUT_067 = 2067,
    OUT_068 = 2068,
    OUT_070 = 2070,
    OUT_071 = 2071,
    OUT_080 = 2080,
    OUT_091 = 2091,
    OUT_093 = 2093,
    OUT_111 = 2111,
    OUT_113 = 2113,
    PKT_010 = 3010,
    PKT_012 = 3012,
    PKT_013 = 3013,
    PKT_015 = 3015,
    PKT_033 = 3033,
    PKT_036 = 3036,
    PKT_037 = 3037,
    PKT_052 = 3052,
    PKT_070 = 3070,
    PKT_076 = 3076,
    PKT_077 = 3077,
    PKT_078 = 3078,
    PKT_089 = 3089,
    PKT_090 = 3090,
    PKT_103 = 3103,
    PKT_104 = 3104,
    PKT_109 = 3109,
    PKT_110 = 3110,
    PKT_131 = 3131,
    PKT_134 = 3134,
    PKT_135 = 3135,
    PKT_142 = 3142,
    PKT_173 = 3173,
    PKT_255 = 3255,
    PKT_273 = 3273,
    PKT_278 = 3278,
    PKT_303 = 3303,
    PKT_340 = 3340,
    PKT_344 = 3344,
    PKT_347 = 3347,
    GEN_006 = 4006,
    GEN_010 = 4010,
    GEN_011 = 4011,
    GEN_020 = 4020,
    GEN_090 = 4090,
    GEN_100 = 4100,
    GEN_101 = 4101,
    GEN_105 = 4105,
    GEN_120 = 4120,
    GEN_122 = 4122,
    GEN_125 = 4125,
    GEN_170 = 4170,
    GEN_171 = 4171,
    GEN_172 = 4172,
    GEN_174 = 4174,
    GEN_176 = 4176,
    GEN_202 = 4202,
    GEN_203 = 4203,
    GEN_206 = 4206,
    GEN_211 = 4211,
    GEN_214 = 4214,
    GEN_217 = 4217,
    GEN_227 = 4227,
    GEN_235 = 4235,
    GEN_236 = 4236,
    GEN_237 = 4237,
    GEN_245 = 4245,
    GEN_300 = 4300,
    GEN_302 = 4302,
    GEN_320 = 4320,
    GEN_321 = 4321,
    GEN_342 = 4342,
    GEN_344 = 4344,
    PRG_128 = 5128,
    PRG_165 = 5165,
    PRG_166 = 5166,
    PRG_170 = 5170,
    PRG_174 = 5174,
};

/// What the rule demands: "X must ..." or "X must not ...", the text of a violation.
template <same_as<rule> Rule = rule>  // a plain function adds 1.1 % to including ptspec.hpp
[[nodiscard]] constexpr auto describe(Rule broken) noexcept -> text {
    switch (broken) {
        case rule::none: return "no rule is broken";
        case rule::REG_001:
            return "an IA32_RTIT MSR must not be accessed on a processor without Intel PT";
        case rule::REG_002: return "RDMSR and WRMSR must be executed at CPL 0";
        case rule::REG_004:
            return "while TraceEn is 1, MSRs other than IA32_RTIT_CTL must not be written";
        case rule::REG_006: return "a reserved bit must not be written as 1";
        case rule::REG_012:
            return "the output MSRs must not be accessed on a processor that has neither ToPA nor "
                   "single-range output";
        case rule::REG_013:
            return "IA32_RTIT_CR3_MATCH must not be accessed on a processor without CR3 filtering";
        case rule::REG_014: return "an address range must be one that the processor has";
        case rule::REG_017:
            return "an index between 560H and 587H must be that of an MSR of Intel PT";
        case rule::REG_021:
            return "while TraceEn stays 1, the bits of IA32_RTIT_CTL must not change";
        case rule::REG_024: return "ToPA must be 0 without CPUID.14H.0:ECX.TOPAOUT";
        case rule::REG_025:
            return "trace must not go to a single range without CPUID.14H.0:ECX.SNGLRNGOUT";
        case rule::REG_026: return "FabricEn must be 0 without CPUID.14H.0:ECX.FABRIC";
        case rule::REG_027:
            return "CYCEn, CycThresh and PSBFreq must be 0 without CPUID.14H.0:EBX.CPSB_CAM";
        case rule::REG_028:
            return "MTCFreq, CycThresh and PSBFreq must be 0 or an encoding that CPUID.14H.1 lists";
        case rule::REG_030: return "MTCEn and MTCFreq must be 0 without CPUID.14H.0:EBX.MTC";
        case rule::REG_031: return "CR3Filter must be 0 without CPUID.14H.0:EBX.CR3FILTER";
        case rule::REG_032: return "PTWEn and FUPonPTW must be 0 without CPUID.14H.0:EBX.PTWRITE";
        case rule::REG_033: return "PwrEvtEn must be 0 without CPUID.14H.0:EBX.PWR_EVT";
        case rule::REG_034:
            return "InjectPsbPmiOnEnable must be 0 without CPUID.14H.0:EBX.INJECTPSBPMI";
        case rule::REG_035: return "EventEn must be 0 without CPUID.14H.0:EBX.EVENT_TRACE";
        case rule::REG_036: return "DisTNT must be 0 without CPUID.14H.0:EBX.TNT_DIS";
        case rule::REG_037:
            return "ADDRn_CFG must be 0, 1 or 2, and 0 for a range that does not exist";
        case rule::REG_040:
            return "BranchEn must be 1 when TraceEn is, without CPUID.14H.0:EBX.MTC";
        case rule::REG_044: return "bits 18, 23, 30:28, 54:48 and 63:57 of IA32_RTIT_CTL must be 0";
        case rule::REG_048:
            return "a period must be 2^n crystal cycles for MTC, 2^(n-1) cycles for CYC, 2^(n+11) "
                   "bytes for PSB";
        case rule::REG_052: return "bits 3, 31:8 and 63:49 of IA32_RTIT_STATUS must be 0";
        case rule::REG_053:
            return "software must set Error and Stopped only to restore a saved state";
        case rule::REG_054:
            return "PendPSB and PendToPAPMI must be 0 without CPUID.14H.0:EBX.INJECTPSBPMI";
        case rule::REG_055: return "PacketByteCnt must be 0 without CPUID.14H.0:EBX.CPSB_CAM";
        case rule::REG_056:
            return "TriggerEn must be 0 while TraceEn is 0, and while Stopped or Error is 1";
        case rule::REG_068: return "a branch into a TraceStop range must stop tracing";
        case rule::REG_070: return "the output base must be a multiple of 128 below 2^MAXPHYADDR";
        case rule::REG_074: return "bits 4:0 of IA32_RTIT_CR3_MATCH must be 0";
        case rule::REG_076: return "an end of an address range must be canonical";
        case rule::REG_102: return "TraceEn must not be 1 at RSM: the processor shuts down";
        case rule::REG_103:
            return "RSM must not leave both Intel PT and LBR enabled on this processor";
        case rule::REG_121:
            return "Intel PT must not be used in VMX operation without IA32_VMX_MISC[14]";
        case rule::REG_128:
            return "secondary control 24 must say how the guest's output is translated";
        case rule::REG_129:
            return "guest-physical output must have EPT, and VM entry and exit must load and clear "
                   "IA32_RTIT_CTL";
        case rule::REG_130: return "VM entry must not load IA32_RTIT_CTL while TraceEn is 1";
        case rule::REG_131: return "VM entry must not load reserved bits of IA32_RTIT_CTL";
        case rule::REG_132: return "VMX controls of Intel PT must be 0 without IA32_VMX_MISC[14]";
        case rule::REG_135:
            return "a VMX control of Intel PT must have a value that its capability MSR allows";
        case rule::REG_136:
            return "an IA32_RTIT MSR must not be accessed in a trust domain without XFAM[8]";
        case rule::REG_137:
            return "all logical processors of a TDX platform must report the same leaf 14H";
        case rule::REG_139:
            return "a debugger must not write IA32_RTIT_CTL or the header in a trust domain's "
                   "XSAVE image";
        case rule::REG_140: return "PT_STATE in IA32_XSS must be 0 where CPUID.0DH.1:ECX lacks it";
        case rule::REG_143: return "XRSTORS must not load the state of Intel PT while TraceEn is 1";
        case rule::REG_144:
            return "XRSTORS must load values that WRMSR accepts, and the reserved bytes must be 0";
        case rule::REG_148:
            return "the image that XRSTORS loads must have the compacted form, XSTATE_BV within "
                   "XCOMP_BV, and only components that IA32_XSS allows";
        case rule::REG_200:
            return "PEBS records must not go to the trace without PEBS_OUTPUT_PT_AVAIL";
        case rule::REG_203:
            return "IA32_PERF_GLOBAL_STATUS must not be written; 390H clears its bits and 391H "
                   "sets them";
        case rule::REG_204: return "Trace_ToPA_PMI must be 0 on a processor without ToPA output";
        case rule::OUT_020: return "a single-range output must have 128 bytes to 4 GB";
        case rule::OUT_022:
            return "the mask of a single-range output must be contiguous from bit 0";
        case rule::OUT_023: return "the base of a single-range output must be aligned to its size";
        case rule::OUT_024: return "the output offset must lie inside the single-range region";
        case rule::OUT_046: return "a ToPA table must have at most 2^25 entries";
        case rule::OUT_056: return "a ToPA table must end with END or with STOP";
        case rule::OUT_060: return "bits 1, 3, 5, 10 and 11 of a ToPA entry must be 0";
        case rule::OUT_061: return "a ToPA table must begin at a multiple of 4 KB";
        case rule::OUT_062:
            return "the base of an output region must be aligned to the region's size";
        case rule::OUT_063: return "an address in a ToPA entry must lie below 2^MAXPHYADDR";
        case rule::OUT_064: return "the output offset must lie inside the current region";
        case rule::OUT_065: return "a ToPA entry with END must not have INT or STOP";
        case rule::OUT_066: return "entry 0 of a ToPA table must be an output region, not END";
        case rule::OUT_067:
            return "without CPUID.14H.0:ECX.MENTRY entries after entry 0 must not be output "
                   "regions";
        case rule::OUT_068:
            return "without CPUID.14H.0:ECX.MENTRY a ToPA table must link to itself";
        case rule::OUT_070:
            return "an output region must not lie at address 0 or over a ToPA table";
        case rule::OUT_071: return "a ToPA entry must lie below 2^MAXPHYADDR";
        case rule::OUT_080: return "a full region with STOP must stop tracing";
        case rule::OUT_091: return "a ToPA table must not lie in restricted memory";
        case rule::OUT_093: return "INT must be on a region before the last";
        case rule::OUT_111: return "trace must not be stored into restricted memory";
        case rule::OUT_113: return "trace must not be stored into the APIC's page";
        case rule::PKT_010: return "the bytes must begin the requested packet";
        case rule::PKT_012: return "the byte after 02 must be one that selects a packet";
        case rule::PKT_013: return "the byte after 02 C3 must be 88";
        case rule::PKT_015: return "the first byte must be one that begins a packet";
        case rule::PKT_033: return "a TNT.short must carry 1 to 6 branches";
        case rule::PKT_036: return "a TNT.long must have a stop bit";
        case rule::PKT_037: return "a TNT.long must carry at least one branch";
        case rule::PKT_052: return "IPBytes must not be 5 or 7";
        case rule::PKT_070: return "a TIP must have an IP";
        case rule::PKT_076: return "a TIP.PGE must have an IP";
        case rule::PKT_077:
            return "a FUP without an owner must be followed by the TIP or TIP.PGD of its event";
        case rule::PKT_078: return "a FUP must have an IP";
        case rule::PKT_089: return "the leaf of a MODE must not be 2 to 7";
        case rule::PKT_090: return "CS.L must not be set with CS.D, nor InTX with TXAbort";
        case rule::PKT_103: return "FC of a TMA must be less than a period of the crystal clock";
        case rule::PKT_104: return "the reserved bits of a TMA must be 0";
        case rule::PKT_109: return "a CYC must have as few bytes as its value needs";
        case rule::PKT_110: return "the value of a CYC must fit in 64 bits";
        case rule::PKT_131: return "a PSB must be 02 82 eight times";
        case rule::PKT_134: return "a PSBEND must end a PSB+";
        case rule::PKT_135: return "a TMA must directly follow its TSC";
        case rule::PKT_142: return "a PSB+ must have one PSB";
        case rule::PKT_173: return "PayloadBytes must not be 2 or 3";
        case rule::PKT_255: return "a packet must have all of its bytes";
        case rule::PKT_273: return "the FUP that a packet announces must follow it";
        case rule::PKT_278: return "TSC must not decrease";
        case rule::PKT_303: return "a TMA must follow a TSC, and no other TMA";
        case rule::PKT_340: return "a value must fit its field";
        case rule::PKT_344:
            return "a BIP must stand in a block, and a TNT.short with the low bits 100 must not";
        case rule::PKT_347: return "there must be room for the whole packet";
        case rule::GEN_006: return "a PSB must not split an event of several packets";
        case rule::GEN_010:
            return "a packet must begin where this kind of processor places it with PADs";
        case rule::GEN_011:
            return "the form of an IP must be the one that this kind of processor selects";
        case rule::GEN_020: return "packets must not follow TraceStop until TraceEn rises";
        case rule::GEN_090: return "TraceStop must follow TIP.PGD";
        case rule::GEN_100: return "TIP.PGE must not stand where PacketEn was 1";
        case rule::GEN_101: return "TIP.PGD must not stand where PacketEn was 0";
        case rule::GEN_105: return "TNT and TIP must not stand where PacketEn is 0";
        case rule::GEN_120:
            return "a TNT must have no more branches than the processor collects, and the shorter "
                   "form if they fit";
        case rule::GEN_122: return "a TNT that is not full must not be followed by a TNT";
        case rule::GEN_125: return "a TNT must not stand in a PSB+";
        case rule::GEN_170:
            return "a PSB+ must have each status packet once: CBR always, FUP and MODE.Exec if "
                   "PacketEn is 1";
        case rule::GEN_171:
            return "the packets of a PSB+ must have the order of this kind of processor";
        case rule::GEN_172:
            return "packets other than status packets, MTC, CYC, PAD and MNT must not stand in a "
                   "PSB+";
        case rule::GEN_174: return "the first IP after a PSB must not be compressed";
        case rule::GEN_176:
            return "a PSB+ must not have a FUP while PacketEn is 0, except before TIP.PGE";
        case rule::GEN_202: return "CBR must not be 0";
        case rule::GEN_203:
            return "the value of an MTC must be 1 more than the last, or 2 if one was lost";
        case rule::GEN_206: return "MTC, TMA and TSC must show the same crystal clock";
        case rule::GEN_211: return "a CYC must count at least one cycle";
        case rule::GEN_214: return "a CYC must stand directly before the packet that it times";
        case rule::GEN_217: return "a CYC must not stand directly before another CYC";
        case rule::GEN_227:
            return "after an OVF, FUP or TIP.PGE must come before TNT, TIP and TIP.PGD";
        case rule::GEN_235: return "MODE.Exec must be followed by TIP or TIP.PGE";
        case rule::GEN_236:
            return "the first TIP.PGE after a PSB+ without MODE.Exec must follow a MODE.Exec";
        case rule::GEN_237: return "MODE.Exec must not be followed by TIP.PGD";
        case rule::GEN_245: return "MODE.Exec must stand after PIP and VMCS";
        case rule::GEN_300: return "a PTW must not stand where ContextEn or FilterEn is 0";
        case rule::GEN_302: return "EVD must be followed by its CFE";
        case rule::GEN_320: return "a BEP must end a block";
        case rule::GEN_321: return "a block must be ended by BBP or BEP";
        case rule::GEN_342: return "the FUP of an event must not stand where PacketEn is 0";
        case rule::GEN_344:
            return "while PacketEn stays 1, a PSB+ must repeat MODE.Exec, MODE.TSX and CR3";
        case rule::PRG_128:
            return "a buffer must have a page for each of its tables, which have one region each "
                   "on some processors";
        case rule::PRG_165:
            return "an MSR list must have at most as many entries as IA32_VMX_MISC says, and bits "
                   "63:32 of an entry must be 0";
        case rule::PRG_166:
            return "the VM-exit MSR-store list must not store output MSRs and IA32_RTIT_STATUS "
                   "while tracing";
        case rule::PRG_170: return "guest-physical output must have all VMX controls of Intel PT";
        case rule::PRG_174:
            return "a guest must have a subset of the processor's Intel PT that can be "
                   "virtualized, and the same LIP";
    }
    return "unknown rule";
}

/// The id of a rule as spelled in the catalogue, `OUT-062`.
struct rule_id {
    char letters[8] = {'n', 'o', 'n', 'e'};

    constexpr explicit rule_id(rule broken) noexcept {
        auto const number = underlying(broken);
        if (number < 1000) { return; }
        char const families[][4] = {"REG", "OUT", "PKT", "GEN", "PRG"};
        for (unsigned i = 0; i < 3; ++i) { letters[i] = families[(number / 1000U - 1U) % 5U][i]; }
        letters[3] = '-';
        letters[4] = static_cast<char>('0' + number / 100U % 10U);
        letters[5] = static_cast<char>('0' + number / 10U % 10U);
        letters[6] = static_cast<char>('0' + number % 10U);
    }

    [[nodiscard]] constexpr auto view() const noexcept -> text {
        return {letters, letters[4] == 0 ? size_t{4} : size_t{7}};
    }
};

/// Keeps the first violated rule: an argument for functions that call `found` with each one.
struct first_rule {
    rule broken = rule::none;

    constexpr void operator()(rule one) noexcept {
        if (broken == rule::none) { broken = one; }
    }
};

}  // namespace ptspec
