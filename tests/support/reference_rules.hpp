// SPDX-License-Identifier: BSL-1.0
#pragma once

// A reference model of the access rules: registers.md sections 0 to 4, sentence by sentence, on
// plain integers. It uses no combined masks and nothing of the library.

namespace reference {

using number = unsigned long long;

// ------------------------------------------------------------------------------ section 0

/// A processor: CPUID.14H.0 EAX, EBX, ECX, then CPUID.14H.1 EAX, EBX, then the two widths in
/// CPUID.80000008H, IA32_VMX_MISC[14] and CPUID.07H.0:EBX[25].
struct processor {
    char const* name = "";
    unsigned eax0 = 0;
    unsigned ebx0 = 0;
    unsigned ecx0 = 0;
    unsigned eax1 = 0;
    unsigned ebx1 = 0;
    unsigned m = 0;
    unsigned la = 48;
    bool vmx14 = false;
    bool pt = false;
};

/// The profiles of section 0, then some rows of presets.csv, with the names used there.
inline constexpr processor cpus[] = {
    {"P-NONE", 0, 0, 0, 0, 0, 39, 48, false, false},
    {"P-BDW", 0, 0x00000001, 0x00000001, 0, 0, 39, 48, false, true},
    {"P-SKL", 1, 0x0000000F, 0x00000007, 0x02490002, 0x003F3FFF, 39, 48, true, true},
    {"P-ATM", 1, 0x0000007F, 0x80000007, 0x02490002, 0x003FFFFF, 42, 48, true, true},
    {"P-FUT", 1, 0x000003FF, 0x8000000F, 0xFFFF0204, 0xFFFFFFFF, 52, 57, true, true},
    {"P-SRO", 1, 0x0000000A, 0x00000004, 0x02490000, 0x003F0FFF, 46, 48, true, true},
    {"P-FAB", 1, 0x00000008, 0x00000008, 0x00010000, 0x00000000, 40, 48, true, true},
    {"Broadwell-ULT", 0, 0x1, 0x1, 0, 0, 39, 48, false, true},
    {"Skylake-X", 1, 0x0F, 0x7, 0x02490002, 0x003F3FFF, 46, 48, true, true},
    {"CannonLake", 1, 0x0F, 0x7, 0x02490002, 0x003F1FFF, 39, 48, true, true},
    {"IceLake-U", 1, 0x0F, 0x7, 0x02490002, 0x003F1FFF, 39, 48, true, true},
    {"TigerLake", 1, 0x4F, 0x7, 0x02490002, 0x003F1FFF, 39, 48, true, true},
    {"ArrowLake-P", 1, 0x15F, 0x7, 0x02490002, 0x003F003F, 46, 48, true, true},
    {"ArrowLake-E", 1, 0x15F, 0x80000007, 0x02490002, 0x003F003F, 46, 48, true, true},
    {"WildcatLake-P", 1, 0x15F, 0x7, 0x02490002, 0x003F003F, 46, 48, true, true},
    {"WildcatLake-E", 1, 0x15F, 0x80000007, 0x02490002, 0x003F003F, 46, 48, true, true},
    {"PantherLake-P", 1, 0x15F, 0x7, 0x02490002, 0x003F003F, 46, 48, true, true},
    {"PantherLake-E", 1, 0x15F, 0x80000007, 0x02490002, 0x003F003F, 46, 48, true, true},
    {"QEMU", 1, 0x0F, 0x7, 0x02490002, 0x003F1FFF, 0, 48, false, true},
    {"QEMU-LIP", 1, 0x0F, 0x80000007, 0x02490002, 0x003F1FFF, 0, 48, false, true},
};
inline constexpr unsigned profiles = 7;
inline constexpr unsigned all_cpus = sizeof(cpus) / sizeof(cpus[0]);

/// The registers of a processor. After a cold reset all are 0 except OUTPUT_MASK_PTRS, which is
/// 7FH.
struct msrs {
    number ctl = 0;
    number status = 0;
    number base = 0;
    number mask_ptrs = 0x7F;
    number cr3_match = 0;
    number addr[8] = {};
    bool in_vmx = false;
};

/// The code that runs after the access.
struct code_context {
    unsigned cpl = 0;
    number cr3 = 0;
    bool pae = false;
    bool enclave = false;
    number ip = 0;
};

/// The two versions of the text about REG-121.
enum class vmx_text { newer, of_2016 };

/// A set of REG rules, one bit for each number.
struct rule_set {
    number bits[4] = {};

    constexpr void add(unsigned rule) { bits[rule / 64] |= number{1} << rule % 64; }
    [[nodiscard]] constexpr auto has(unsigned rule) const -> bool {
        return bits[rule / 64] >> rule % 64 & 1;
    }
    [[nodiscard]] constexpr auto empty() const -> bool {
        return bits[0] == 0 && bits[1] == 0 && bits[2] == 0 && bits[3] == 0;
    }
    [[nodiscard]] constexpr auto same_as(rule_set const& other) const -> bool {
        return bits[0] == other.bits[0] && bits[1] == other.bits[1] && bits[2] == other.bits[2] &&
               bits[3] == other.bits[3];
    }
};

/// Bits `high:low` of a number.
constexpr auto field(number value, unsigned high, unsigned low) -> number {
    number const above = value >> low;
    unsigned const width = high - low + 1;
    return width == 64 ? above : above % (number{1} << width);
}
constexpr auto bit(number value, unsigned position) -> bool {
    return field(value, position, position) == 1;
}

/// REG-046, REG-164: the number of address ranges.
constexpr auto ranges(processor const& cpu) -> number {
    if (cpu.eax0 == 0) { return 0; }
    number const count = field(cpu.eax1, 2, 0);
    return count > 4 ? 4 : count;
}
/// REG-046: the bitmaps in CPUID.14H.1.
constexpr auto mtc_bitmap(processor const& cpu) -> number {
    return cpu.eax0 == 0 ? 0 : field(cpu.eax1, 31, 16);
}
constexpr auto cyc_bitmap(processor const& cpu) -> number {
    return cpu.eax0 == 0 ? 0 : field(cpu.ebx1, 15, 0);
}
constexpr auto psb_bitmap(processor const& cpu) -> number {
    return cpu.eax0 == 0 ? 0 : field(cpu.ebx1, 31, 16);
}

// ------------------------------------------------------------------------------ section 1

/// REG-017: the MSRs that the rules cover. Other indexes have no rule.
constexpr auto is_covered(unsigned index) -> bool { return 0x560 <= index && index <= 0x587; }

/// The rules by which RDMSR and WRMSR fault, independent of the value.
constexpr auto absence(processor const& cpu, unsigned index) -> rule_set {
    rule_set broken;
    bool const is_output = index == 0x560 || index == 0x561;
    bool const is_control = index == 0x570 || index == 0x571;
    bool const is_cr3_match = index == 0x572;
    bool const is_addr = 0x580 <= index && index <= 0x587;
    bool const has_a_name = is_output || is_control || is_cr3_match || is_addr;
    if (has_a_name && !cpu.pt) {  // REG-001; the rules below assume that the feature exists
        broken.add(1);
        return broken;
    }
    if (is_output && !(bit(cpu.ecx0, 0) || bit(cpu.ecx0, 2))) { broken.add(12); }
    if (is_cr3_match && !bit(cpu.ebx0, 0)) { broken.add(13); }
    if (is_addr && !(bit(cpu.ebx0, 2) && (index - 0x580) / 2 < ranges(cpu))) { broken.add(14); }
    if (!has_a_name) { broken.add(17); }
    return broken;
}

/// The value of an MSR.
constexpr auto value_in(msrs const& now, unsigned index) -> number {
    if (index == 0x560) { return now.base; }
    if (index == 0x561) { return now.mask_ptrs; }
    if (index == 0x570) { return now.ctl; }
    if (index == 0x571) { return now.status; }
    if (index == 0x572) { return now.cr3_match; }
    if (0x580 <= index && index <= 0x587) { return now.addr[index - 0x580]; }
    return 0;
}

// ------------------------------------------------------------------------------ section 2

/// The rules that writing `value` to IA32_RTIT_CTL breaks.
constexpr auto broken_by_ctl(processor const& cpu, msrs const& now, number value, vmx_text text)
    -> rule_set {
    rule_set broken;
    bool const was_on = bit(now.ctl, 0);
    bool const is_on = bit(value, 0);

    if (now.in_vmx && !cpu.vmx14 && (text == vmx_text::newer || is_on)) { broken.add(121); }
    if (value == now.ctl) { return broken; }  // REG-020
    if (was_on && is_on) { broken.add(21); }

    bool const topa = bit(value, 8);
    bool const fabric = bit(value, 6);
    if (topa && !bit(cpu.ecx0, 0)) { broken.add(24); }
    if (is_on && !topa && !fabric && !bit(cpu.ecx0, 2)) { broken.add(25); }
    if (fabric && !bit(cpu.ecx0, 3)) { broken.add(26); }

    number const mtc_freq = field(value, 17, 14);
    number const cyc_thresh = field(value, 22, 19);
    number const psb_freq = field(value, 27, 24);
    if (bit(value, 1) && !bit(cpu.ebx0, 1)) { broken.add(27); }
    if (cyc_thresh != 0 && !bit(cpu.ebx0, 1)) { broken.add(27); }
    if (psb_freq != 0 && !bit(cpu.ebx0, 1)) { broken.add(27); }
    // REG-028 covers encodings of a field that exists (REG-008); otherwise its bits are reserved.
    bool const has_mtc_freq = bit(cpu.ebx0, 3);
    bool const has_cyc_and_psb = bit(cpu.ebx0, 1);
    if (has_mtc_freq && mtc_freq != 0 && !bit(mtc_bitmap(cpu), unsigned(mtc_freq))) {
        broken.add(28);
    }
    if (has_cyc_and_psb && cyc_thresh != 0 && !bit(cyc_bitmap(cpu), unsigned(cyc_thresh))) {
        broken.add(28);
    }
    if (has_cyc_and_psb && psb_freq != 0 && !bit(psb_bitmap(cpu), unsigned(psb_freq))) {
        broken.add(28);
    }
    if (bit(value, 9) && !bit(cpu.ebx0, 3)) { broken.add(30); }
    if (mtc_freq != 0 && !bit(cpu.ebx0, 3)) { broken.add(30); }

    if (bit(value, 7) && !bit(cpu.ebx0, 0)) { broken.add(31); }
    if (bit(value, 12) && !bit(cpu.ebx0, 4)) { broken.add(32); }
    if (bit(value, 5) && !bit(cpu.ebx0, 4)) { broken.add(32); }
    if (bit(value, 4) && !bit(cpu.ebx0, 5)) { broken.add(33); }
    if (bit(value, 56) && !bit(cpu.ebx0, 6)) { broken.add(34); }
    if (bit(value, 31) && !bit(cpu.ebx0, 7)) { broken.add(35); }
    if (bit(value, 55) && !bit(cpu.ebx0, 8)) { broken.add(36); }

    for (unsigned n = 0; n < 4; ++n) {
        number const cfg = field(value, 35 + 4 * n, 32 + 4 * n);
        if (cfg != 0 && !(bit(cpu.ebx0, 2) && n < ranges(cpu))) { broken.add(37); }
        if (cfg > 2) { broken.add(37); }
    }
    if (is_on && !bit(value, 13) && !bit(cpu.ebx0, 3)) { broken.add(40); }
    if (bit(value, 18)) { broken.add(44); }
    if (bit(value, 23)) { broken.add(44); }
    if (field(value, 30, 28) != 0) { broken.add(44); }
    if (field(value, 54, 48) != 0) { broken.add(44); }
    if (field(value, 63, 57) != 0) { broken.add(44); }
    return broken;
}

// ------------------------------------------------------------------------------ sections 3, 4

/// The rules that WRMSR at CPL 0 breaks.
constexpr auto broken_by_write(processor const& cpu, msrs const& now, unsigned index, number value,
                               vmx_text text = vmx_text::newer) -> rule_set {
    rule_set broken = absence(cpu, index);
    if (!broken.empty()) { return broken; }
    if (index == 0x570) { return broken_by_ctl(cpu, now, value, text); }
    if (bit(now.ctl, 0)) { broken.add(4); }
    if (index == 0x571) {
        if (bit(value, 3)) { broken.add(52); }
        if (field(value, 31, 8) != 0) { broken.add(52); }
        if (field(value, 63, 49) != 0) { broken.add(52); }
        if (bit(value, 6) && !bit(cpu.ebx0, 6)) { broken.add(54); }
        if (bit(value, 7) && !bit(cpu.ebx0, 6)) { broken.add(54); }
        if (field(value, 48, 32) != 0 && !bit(cpu.ebx0, 1)) { broken.add(55); }
    }
    if (index == 0x560) {
        unsigned const m = cpu.m == 0 ? 36 : cpu.m;
        if (field(value, 6, 0) != 0) { broken.add(70); }
        if (field(value, 63, m) != 0) { broken.add(70); }
    }
    if (index == 0x572 && field(value, 4, 0) != 0) { broken.add(74); }
    if (0x580 <= index && index <= 0x587) {
        for (unsigned at = cpu.la - 1; at < 63; ++at) {
            if (bit(value, at) != bit(value, 63)) { broken.add(76); }
        }
    }
    return broken;
}

// ----------------------------------------------------------------------------------- effects

enum class psb { no, may, yes };

struct effect {
    msrs state;
    psb plus = psb::no;
    bool pmi = false;
    bool trace_stop = false;
};

/// REG-057, including REG-075.
constexpr auto context_en(msrs const& now, code_context const& code) -> bool {
    if (!bit(now.ctl, 2) && code.cpl == 0) { return false; }
    if (!bit(now.ctl, 3) && code.cpl > 0) { return false; }
    if (code.enclave) { return false; }
    unsigned const lowest = code.pae ? 5 : 12;
    bool const match = field(code.cr3, 63, lowest) == field(now.cr3_match, 63, lowest);
    return !(bit(now.ctl, 7) && !match);
}

/// REG-077, REG-078: `ip` is in a range whose ADDRn_CFG is `cfg`.
constexpr auto in_range(msrs const& now, number cfg, number ip) -> bool {
    bool found = false;
    for (unsigned n = 0; n < 4; ++n) {
        if (field(now.ctl, 35 + 4 * n, 32 + 4 * n) != cfg) { continue; }
        if (now.addr[2 * n] <= ip && ip <= now.addr[2 * n + 1]) { found = true; }
    }
    return found;
}
constexpr auto any_filter(msrs const& now) -> bool {
    for (unsigned n = 0; n < 4; ++n) {
        if (field(now.ctl, 35 + 4 * n, 32 + 4 * n) == 1) { return true; }
    }
    return false;
}

constexpr auto changed(number value, unsigned position, bool to) -> number {
    if (bit(value, position) == to) { return value; }
    return to ? value + (number{1} << position) : value - (number{1} << position);
}

/// The effects of a 0-to-1 transition of TraceEn. CTL has its new value.
constexpr auto risen(processor const& cpu, msrs const& now, code_context const& code) -> effect {
    effect out{now};
    number& status = out.state.status;
    bool const inject = bit(now.ctl, 56);
    bool const trigger = !bit(now.status, 5) && !bit(now.status, 4);  // REG-056, REG-043
    status = changed(status, 2, trigger);
    if (trigger) { status = changed(status, 1, context_en(now, code)); }  // REG-057
    bool const context = bit(status, 1);

    // REG-058, REG-051. While TriggerEn stays 0, ContextEn keeps its old value (GEN-024): FilterEn
    // may change then, but no rule requires it.
    if (!bit(cpu.ebx0, 2)) {
        status = changed(status, 0, false);
    } else if (!any_filter(now)) {
        status = changed(status, 0, true);
    } else if (trigger && context) {
        bool const inside = in_range(now, 1, code.ip) && !in_range(now, 2, code.ip);
        status = changed(status, 0, inside);
    }

    if (trigger) {
        out.plus = psb::may;
        if (!bit(cpu.ebx0, 1)) { out.plus = psb::yes; }  // REG-063
        if (bit(cpu.ebx0, 1) && field(now.status, 48, 32) == 0) { out.plus = psb::yes; }
        if (inject && bit(now.status, 6)) {  // REG-065
            out.plus = psb::yes;
            status = changed(status, 6, false);
        }
    }
    out.pmi = inject && bit(now.status, 7) && bit(cpu.ecx0, 0);  // REG-066, REG-204

    // REG-068, GEN-088, GEN-090.
    if (trigger && context && in_range(now, 2, code.ip)) {
        out.trace_stop = true;
        status = changed(status, 0, false);
        status = changed(status, 5, true);
        status = changed(status, 2, false);
    }
    return out;
}

/// The effects of WRMSR at CPL 0 when it breaks no rule.
constexpr auto after_write(processor const& cpu, msrs const& now, unsigned index, number value,
                           code_context const& code = {}) -> effect {
    effect out{now};
    if (index == 0x560) { out.state.base = value; }
    if (index == 0x561) {
        out.state.mask_ptrs = field(value, 63, 7) * 128 + 127;  // REG-072
    }
    if (index == 0x571) {
        out.state.status = field(value, 63, 3) * 8 + field(now.status, 2, 0);  // REG-050
    }
    if (index == 0x572) { out.state.cr3_match = value; }
    if (0x580 <= index && index <= 0x587) { out.state.addr[index - 0x580] = value; }
    if (index == 0x570) {
        out.state.ctl = value;
        if (!bit(now.ctl, 0) && bit(value, 0)) { return risen(cpu, out.state, code); }
        if (bit(now.ctl, 0) && !bit(value, 0)) {
            out.state.status = changed(now.status, 2, false);  // REG-061
        }
    }
    return out;
}

}  // namespace reference
