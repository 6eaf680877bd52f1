// SPDX-License-Identifier: BSL-1.0

// Compares the definitions in pt_definitions.h, which are those of a driver, with ptspec. The
// comparison takes place while this file is compiled. examples/mistakes/ has definitions that stop
// the build.

#include "../standard_output.hpp"
#include "pt_definitions.h"

#include <ptspec/conformance.hpp>
#include <ptspec/packet/list.hpp>
#include <ptspec/registers.hpp>
#include <ptspec/topa/entry.hpp>

#include <cstdio>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;
using topa::entry;

// --- the MSRs ------------------------------------------------------------------------------------

static_assert(conforms_address<reg::ia32_rtit_output_base>(MSR_RTIT_OUTPUT_BASE));
static_assert(conforms_address<reg::ia32_rtit_output_mask_ptrs>(MSR_RTIT_OUTPUT_MASK));
static_assert(conforms_address<ctl>(MSR_RTIT_CTL));
static_assert(conforms_address<status>(MSR_RTIT_STATUS));
static_assert(conforms_address<reg::ia32_rtit_cr3_match>(MSR_RTIT_CR3_MATCH));
static_assert(conforms_address<reg::ia32_rtit_addr>(MSR_RTIT_ADDR_A(1), 1, reg::range_end::a));
static_assert(conforms_address<reg::ia32_rtit_addr>(MSR_RTIT_ADDR_B(3), 3, reg::range_end::b));

// --- RTIT_CTL: every field is defined or left out ------------------------------------------------

static_assert(conforms_all<ctl>(
    field_is<ctl::TraceEn>(RTIT_CTL_TRACEEN), field_is<ctl::CYCEn>(RTIT_CTL_CYCEN),
    field_is<ctl::OS>(RTIT_CTL_OS), field_is<ctl::User>(RTIT_CTL_USR),
    field_is<ctl::PwrEvtEn>(RTIT_CTL_PWREVTEN), field_is<ctl::FUPonPTW>(RTIT_CTL_FUPONPTW),
    field_is<ctl::FabricEn>(RTIT_CTL_FABRICEN), field_is<ctl::CR3Filter>(RTIT_CTL_CR3FILTER),
    field_is<ctl::ToPA>(RTIT_CTL_TOPA), field_is<ctl::MTCEn>(RTIT_CTL_MTCEN),
    field_is<ctl::TSCEn>(RTIT_CTL_TSCEN), field_is<ctl::DisRETC>(RTIT_CTL_DISRETC),
    field_is<ctl::PTWEn>(RTIT_CTL_PTWEN), field_is<ctl::BranchEn>(RTIT_CTL_BRANCHEN),
    field_is<ctl::MTCFreq>(RTIT_CTL_MTC, RTIT_CTL_MTC_SHIFT),
    field_is<ctl::CycThresh>(RTIT_CTL_CYC, RTIT_CTL_CYC_SHIFT),
    field_is<ctl::PSBFreq>(unshifted{RTIT_CTL_PSB_VALUES}, RTIT_CTL_PSB_SHIFT),
    field_is<ctl::EventEn>(RTIT_CTL_EVENTEN), field_is<ctl::ADDR0_CFG>(RTIT_CTL_ADDR0),
    field_is<ctl::ADDR1_CFG>(RTIT_CTL_ADDR1), field_is<ctl::ADDR2_CFG>(RTIT_CTL_ADDR2),
    field_is<ctl::ADDR3_CFG>(RTIT_CTL_ADDR3), left_out<ctl::DisTNT, ctl::InjectPsbPmiOnEnable>()));

static_assert(conforms_value(ctl::ADDR0_CFG{reg::addr_cfg::trace_stop}, RTIT_CTL_ADDR0_STOP));
static_assert(conforms_value(reg::addr_cfg::filter, RTIT_ADDR_FILTER));
static_assert(conforms_value(reg::addr_cfg::trace_stop, RTIT_ADDR_STOP));

// --- RTIT_STATUS: a struct of bit-fields ---------------------------------------------------------

namespace {

using status_bits = decltype(rtit_status::bits);

constexpr auto status_conforms() -> bool {
    return conforms_all<status>(
        member_is<status::FilterEn>([](status_bits it) { return it.filter_en; }),
        member_is<status::ContextEn>([](status_bits it) { return it.context_en; }),
        member_is<status::TriggerEn>([](status_bits it) { return it.trigger_en; }),
        member_is<status::Error>([](status_bits it) { return it.error; }),
        member_is<status::Stopped>([](status_bits it) { return it.stopped; }),
        member_is<status::PendPSB>([](status_bits it) { return it.pend_psb; }),
        member_is<status::PendToPAPMI>([](status_bits it) { return it.pend_topa_pmi; }),
        member_is<status::PacketByteCnt>([](status_bits it) { return it.packet_bytes; }));
}
static_assert(!reads_constant_bit_fields || status_conforms());  // only g++ reads them here

}  // namespace

// --- CPUID ---------------------------------------------------------------------------------------

static_assert(conforms_leaf<reg::cpuid_14h_0_ebx>(CPUID_PT));
static_assert(conforms<reg::cpuid_14h_0_ebx::MTC>(CPUID_PT_EBX_MTC));
static_assert(conforms<reg::cpuid_14h_0_ecx::TOPAOUT>(at_bits{CPUID_PT_TOPA_BIT}));
static_assert(conforms<reg::cpuid_14h_0_ecx::MENTRY>(at_bits{CPUID_PT_MULTI_BIT}));
static_assert(conforms<reg::cpuid_14h_0_ecx::LIP>(at_bits{CPUID_PT_LIP_BIT}));

// --- ToPA entries --------------------------------------------------------------------------------

static_assert(conforms_all<entry>(field_is<entry::END>(TOPA_END), field_is<entry::INT>(TOPA_INT),
                                  field_is<entry::STOP>(TOPA_STOP),
                                  field_is<entry::Size>(TOPA_SIZE),
                                  field_is<entry::Base>(TOPA_BASE, max_phys_addr{52})));
static_assert(conforms_value(entry::Size{topa::region_size::size_64K}, TOPA_SIZE_64K));

// --- packets -------------------------------------------------------------------------------------

static_assert(conforms_opcode<packet::tip>(PT_TIP, PT_IP_MASK));
static_assert(conforms_length<packet::tip>(1, PT_IP_BYTES_MAX));
static_assert(conforms_opcode<packet::cbr>(PT_CBR));
static_assert(conforms_length<packet::cbr>(PT_CBR_BYTES));
static_assert(conforms_opcode<packet::mtc>(PT_MTC));
static_assert(conforms_opcode<packet::mode_tsx>(PT_MODE_TSX, PT_MODE_MASK));
static_assert(conforms_opcode<packet::psbend::Escape>(PT_ESCAPE));
static_assert(conforms_opcode<packet::psbend::Opcode>(PT_ESCAPED_PSBEND));
static_assert(conforms_length<packet::psb>(sizeof pt_psb));

auto main() -> int {
    // At run time a comparison returns false instead of stopping the build: here for the array,
    // which is no constant expression, and for bit-fields with every compiler.
    bool const conforms = conforms_opcode<packet::psb>(pt_psb) && status_conforms();
    std::puts(conforms ? "pt_definitions.h conforms" : "pt_definitions.h does not conform");
    return conforms ? 0 : 1;
}
