// SPDX-License-Identifier: BSL-1.0
// Pairs of equivalent functions: lib_NAME uses ptspec, hand_NAME uses manually written masks and
// shifts. tests/checks/codegen.py compiles them and compares the instructions of each pair. They
// must be the same; a lib_check_NAME must not have more instructions than its hand_check_NAME.

#include <ptspec/ptspec.hpp>
#include <ptspec/ports/x86.hpp>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;
using base = reg::ia32_rtit_output_base;
using pointers = reg::ia32_rtit_output_mask_ptrs;

extern "C" {

// ------------------------------------------------------------------------------------ get

auto lib_get_flag(uint64_t raw) noexcept -> bool { return ctl{raw}.get<ctl::BranchEn>(); }
auto hand_get_flag(uint64_t raw) noexcept -> bool { return (raw >> 13 & 1) != 0; }

auto lib_get_lowest_flag(uint64_t raw) noexcept -> bool { return ctl{raw}.get<ctl::TraceEn>(); }
auto hand_get_lowest_flag(uint64_t raw) noexcept -> bool { return (raw & 1) != 0; }

auto lib_get_either_flag(uint64_t raw) noexcept -> bool {
    return status{raw}.get<status::Error>() || status{raw}.get<status::Stopped>();
}
auto hand_get_either_flag(uint64_t raw) noexcept -> bool { return (raw & 0x30) != 0; }

auto lib_get_field(uint64_t raw) noexcept -> uint64_t { return ctl{raw}.get<ctl::MTCFreq>(); }
auto hand_get_field(uint64_t raw) noexcept -> uint64_t { return raw >> 14 & 0xF; }

auto lib_get_wide_field(uint64_t raw) noexcept -> uint64_t {
    return status{raw}.get<status::PacketByteCnt>();
}
auto hand_get_wide_field(uint64_t raw) noexcept -> uint64_t { return raw >> 32 & 0x1FFFF; }

auto lib_get_top_field(uint64_t raw) noexcept -> uint64_t {
    return pointers{raw}.get<pointers::OutputOffset>();
}
auto hand_get_top_field(uint64_t raw) noexcept -> uint64_t { return raw >> 32; }

auto lib_get_encoding(uint64_t raw) noexcept -> reg::addr_cfg {
    return ctl{raw}.get<ctl::ADDR1_CFG>();
}
auto hand_get_encoding(uint64_t raw) noexcept -> reg::addr_cfg {
    return static_cast<reg::addr_cfg>(raw >> 36 & 0xF);
}

auto lib_get_address(uint64_t raw) noexcept -> uint64_t {
    return base{raw}.get<base::BasePhysAddr>();
}
auto hand_get_address(uint64_t raw) noexcept -> uint64_t { return raw & ~uint64_t{0x7F}; }

auto lib_get_region_base(uint64_t raw) noexcept -> uint64_t {
    return topa::entry{raw}.get<topa::entry::Base>();
}
auto hand_get_region_base(uint64_t raw) noexcept -> uint64_t { return raw & ~uint64_t{0xFFF}; }

auto lib_get_from_memory(ctl const* word) noexcept -> uint64_t { return word->get<ctl::MTCFreq>(); }
auto hand_get_from_memory(uint64_t const* word) noexcept -> uint64_t { return *word >> 14 & 0xF; }

// ------------------------------------------------------------------------------------ with

auto lib_set_flag(uint64_t raw) noexcept -> uint64_t {
    return ctl{raw}.with(ctl::TraceEn{true}).raw;
}
auto hand_set_flag(uint64_t raw) noexcept -> uint64_t { return raw | 1; }

auto lib_clear_flag(uint64_t raw) noexcept -> uint64_t {
    return ctl{raw}.with(ctl::TraceEn{false}).raw;
}
auto hand_clear_flag(uint64_t raw) noexcept -> uint64_t { return raw & ~uint64_t{1}; }

auto lib_with_flag(uint64_t raw, bool on) noexcept -> uint64_t {
    return ctl{raw}.with(ctl::BranchEn{on}).raw;
}
auto hand_with_flag(uint64_t raw, bool on) noexcept -> uint64_t {
    return (raw & ~(uint64_t{1} << 13)) | uint64_t{on} << 13;
}

auto lib_with_constants(uint64_t raw) noexcept -> uint64_t {
    return ctl{raw}
        .with(ctl::TraceEn{true}, ctl::FabricEn{false}, ctl::MTCFreq{3}, ctl::CycThresh{5},
              ctl::ADDR0_CFG{reg::addr_cfg::trace_stop})
        .raw;
}
auto hand_with_constants(uint64_t raw) noexcept -> uint64_t {
    return (raw & 0xFFFF'FFF0'FF84'3FBE) | 0x2'0028'C001;
}

auto lib_from_nothing() noexcept -> uint64_t {
    return ctl{}
        .with(ctl::TraceEn{true}, ctl::User{true}, ctl::BranchEn{true}, ctl::ToPA{true})
        .raw;
}
auto hand_from_nothing() noexcept -> uint64_t { return 0x2109; }

auto lib_with_wrapped(uint64_t raw, uint64_t number) noexcept -> uint64_t {
    return ctl{raw}.with(ctl::MTCFreq{wrapped{number}}).raw;
}
auto hand_with_wrapped(uint64_t raw, uint64_t number) noexcept -> uint64_t {
    return (raw & ~(uint64_t{0xF} << 14)) | (number & 0xF) << 14;
}

auto lib_with_two_wrapped(uint64_t raw, uint64_t one, uint64_t two) noexcept -> uint64_t {
    return ctl{raw}.with(ctl::MTCFreq{wrapped{one}}, ctl::PSBFreq{wrapped{two}}).raw;
}
auto hand_with_two_wrapped(uint64_t raw, uint64_t one, uint64_t two) noexcept -> uint64_t {
    uint64_t const mtc = one & 0xF;
    uint64_t const psb = two & 0xF;
    return (raw & ~uint64_t{0xF03'C000}) | (mtc << 14 | psb << 24);
}

auto lib_with_encoding(uint64_t raw, reg::addr_cfg encoding) noexcept -> uint64_t {
    return ctl{raw}.with(ctl::ADDR1_CFG{encoding}).raw;
}
auto hand_with_encoding(uint64_t raw, reg::addr_cfg encoding) noexcept -> uint64_t {
    uint64_t const number = static_cast<uint64_t>(encoding) & 0xF;
    return (raw & ~(uint64_t{0xF} << 36)) | number << 36;
}

auto lib_with_address(uint64_t raw, uint64_t address) noexcept -> uint64_t {
    return topa::entry{raw}.with(topa::entry::Base{wrapped{address}}).raw;
}
auto hand_with_address(uint64_t raw, uint64_t address) noexcept -> uint64_t {
    uint64_t const bits = address & ~uint64_t{0xFFF};
    return (raw & 0xFFF) | bits;
}

auto lib_with_top_field(uint64_t raw, uint64_t number) noexcept -> uint64_t {
    return pointers{raw}.with(pointers::OutputOffset{wrapped{number}}).raw;
}
auto hand_with_top_field(uint64_t raw, uint64_t number) noexcept -> uint64_t {
    uint64_t const bits = number & 0xFFFF'FFFF;
    return (raw & 0xFFFF'FFFF) | bits << 32;
}

void lib_with_in_memory(ctl* word, uint64_t number) noexcept {
    *word = word->with(ctl::MTCFreq{wrapped{number}});
}
void hand_with_in_memory(uint64_t* word, uint64_t number) noexcept {
    *word = (*word & ~(uint64_t{0xF} << 14)) | (number & 0xF) << 14;
}

// ------------------------------------------------------------------------------------ masks

auto lib_reserved_bits(uint64_t raw) noexcept -> uint64_t { return ctl{raw}.reserved_bits_set(); }
auto hand_reserved_bits(uint64_t raw) noexcept -> uint64_t { return raw & 0xFE7F'0000'7084'0000; }

auto lib_has_reserved_bits(uint64_t raw) noexcept -> bool {
    return topa::entry{raw}.reserved_bits_set() != 0;
}
auto hand_has_reserved_bits(uint64_t raw) noexcept -> bool { return (raw & 0xC2A) != 0; }

auto lib_reserved_bits_of_39(uint64_t raw) noexcept -> uint64_t {
    return base{raw}.reserved_bits_set(39);
}
auto hand_reserved_bits_of_39(uint64_t raw) noexcept -> uint64_t {
    return raw & 0xFFFF'FF80'0000'007F;
}

// ------------------------------------------------------------------------------------ packets

auto lib_cbr(uint64_t raw) noexcept -> uint64_t {
    return packet::cbr{raw}.get<packet::cbr::CoreBusRatio>();
}
auto hand_cbr(uint64_t raw) noexcept -> uint64_t { return raw >> 16 & 0xFF; }

auto lib_make_cbr(uint64_t ratio) noexcept -> uint64_t {
    return packet::cbr{}.with(packet::cbr::CoreBusRatio{wrapped{ratio}}).raw;
}
auto hand_make_cbr(uint64_t ratio) noexcept -> uint64_t { return 0x0302 | (ratio & 0xFF) << 16; }

auto lib_tsc(uint64_t raw) noexcept -> uint64_t { return packet::tsc{raw}.get<packet::tsc::TSC>(); }
auto hand_tsc(uint64_t raw) noexcept -> uint64_t { return raw >> 8; }

auto lib_cr3(uint64_t raw) noexcept -> uint64_t { return packet::pip{raw}.get<packet::pip::CR3>(); }
auto hand_cr3(uint64_t raw) noexcept -> uint64_t { return raw >> 17 << 5; }

auto lib_make_pip(uint64_t cr3, bool nr) noexcept -> uint64_t {
    return packet::pip{}.with(packet::pip::NR{nr}, packet::pip::CR3{wrapped{cr3}}).raw;
}
auto hand_make_pip(uint64_t cr3, bool nr) noexcept -> uint64_t {
    uint64_t const address = cr3 & 0x000F'FFFF'FFFF'FFE0;
    return 0x4302 | (uint64_t{nr} << 16 | address >> 5 << 17);
}

auto lib_fc(uint64_t raw) noexcept -> uint64_t { return packet::tma{raw}.get<packet::tma::FC>(); }
auto hand_fc(uint64_t raw) noexcept -> uint64_t { return raw >> 40 & 0x1FF; }

auto lib_vmcs(uint64_t raw) noexcept -> uint64_t {
    return packet::vmcs{raw}.get<packet::vmcs::base>();
}
auto hand_vmcs(uint64_t raw) noexcept -> uint64_t { return (raw >> 16 & 0xFF'FFFF'FFFF) << 12; }

auto lib_mnt(wide_bits raw) noexcept -> uint64_t {
    return packet::mnt{raw}.get<packet::mnt::payload>();
}
auto hand_mnt(wide_bits raw) noexcept -> uint64_t { return raw.low >> 24 | raw.high << 40; }

auto lib_ptw(wide_bits raw) noexcept -> uint64_t { return packet::ptw{raw}.payload(); }
auto hand_ptw(wide_bits raw) noexcept -> uint64_t { return raw.low >> 16 | raw.high << 48; }

auto lib_ip_bytes(wide_bits raw) noexcept -> packet::ip_bytes {
    return packet::tip{raw}.get<packet::tip::IPBytes>();
}
auto hand_ip_bytes(wide_bits raw) noexcept -> packet::ip_bytes {
    return static_cast<packet::ip_bytes>(raw.low >> 5 & 7);
}

auto lib_is_tip(packet::any_packet const& any) noexcept -> bool { return any.is<packet::tip>(); }
auto hand_is_tip(packet::any_packet const& any) noexcept -> bool {
    return any.kind() == packet::kind::tip;
}

// ------------------------------------------------------------------------------------ WRMSR

}  // extern "C"

namespace {

constexpr auto& processor = cpu::preset::P_SKL;

template <uint32_t Index>
auto faults(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return !access::check_write(processor, now, Index, value);
}
auto is_tracing(access::msr_state const& now) noexcept -> bool { return (now.ctl.raw & 1) != 0; }

}  // namespace

extern "C" {

auto lib_check_ctl(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return faults<0x570>(now, value);
}
auto hand_check_ctl(access::msr_state const& now, uint64_t value) noexcept -> bool {
    if (value == now.ctl.raw) { return false; }
    return (value & now.ctl.raw & 1) != 0 || (value & ~uint64_t{0x33'0F7B'EF8F}) != 0 ||
           (value & value >> 1 & 0x11'0000'0000) != 0 || (0x249U >> (value >> 14 & 15) & 1) == 0 ||
           (0x3FFFU >> (value >> 19 & 15) & 1) == 0 || (0x3FU >> (value >> 24 & 15) & 1) == 0;
}

auto lib_check_status(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return faults<0x571>(now, value);
}
auto hand_check_status(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return is_tracing(now) || (value & 0xFFFE'0000'FFFF'FFC8) != 0;
}

auto lib_check_output_base(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return faults<0x560>(now, value);
}
auto hand_check_output_base(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return is_tracing(now) || (value & 0xFFFF'FF80'0000'007F) != 0;
}

auto lib_check_output_mask_ptrs(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return faults<0x561>(now, value);
}
auto hand_check_output_mask_ptrs(access::msr_state const& now, uint64_t) noexcept -> bool {
    return is_tracing(now);
}

auto lib_check_cr3_match(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return faults<0x572>(now, value);
}
auto hand_check_cr3_match(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return is_tracing(now) || (value & 31) != 0;
}

auto lib_check_addr1_b(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return faults<0x583>(now, value);
}
auto hand_check_addr1_b(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return is_tracing(now) ||
           static_cast<int64_t>(value << 16) >> 16 != static_cast<int64_t>(value);
}

auto lib_check_addr2_a(access::msr_state const& now, uint64_t value) noexcept -> bool {
    return faults<0x584>(now, value);
}
auto hand_check_addr2_a(access::msr_state const&, uint64_t) noexcept -> bool { return true; }

// ------------------------------------------------------------------------------------ instructions

auto lib_rdmsr(uint32_t index) noexcept -> uint64_t {
    ports::x86_msrs<> msrs;
    return msrs.read(index).value;
}
auto hand_rdmsr(uint32_t index) noexcept -> uint64_t {
    uint32_t low = 0;
    uint32_t high = 0;
    asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(index));
    return uint64_t{high} << 32 | low;
}

auto lib_wrmsr(uint32_t index, uint64_t value) noexcept -> bool {
    ports::x86_msrs<> msrs;
    return msrs.write(index, value);
}
auto hand_wrmsr(uint32_t index, uint64_t value) noexcept -> bool {
    auto const low = static_cast<uint32_t>(value);
    asm volatile("wrmsr" : : "c"(index), "a"(low), "d"(static_cast<uint32_t>(value >> 32)));
    return true;
}

auto lib_wrmsr_skipped(uint32_t index, uint64_t value) noexcept -> bool {
    ports::x86_msrs<ports::skipping_access> msrs;
    return msrs.write(index, value);
}
auto hand_wrmsr_skipped(uint32_t index, uint64_t value) noexcept -> bool {
    bool carry = false;
    auto const low = static_cast<uint32_t>(value);
    asm volatile("clc; wrmsr"
                 : "=@ccc"(carry)
                 : "c"(index), "a"(low), "d"(static_cast<uint32_t>(value >> 32)));
    return !carry;
}

auto lib_cpuid_ebx(uint32_t leaf) noexcept -> uint32_t {
    return ports::x86_cpuid{}.query(leaf, 0).ebx;
}
auto hand_cpuid_ebx(uint32_t leaf) noexcept -> uint32_t {
    uint32_t ebx = 0;
    uint32_t ecx = 0;
    asm volatile("cpuid" : "+a"(leaf), "=b"(ebx), "+c"(ecx) : : "edx");
    return ebx;
}

void lib_sfence() noexcept { ports::x86_msrs<>{}.fence(); }
void hand_sfence() noexcept { asm volatile("sfence"); }

}  // extern "C"
