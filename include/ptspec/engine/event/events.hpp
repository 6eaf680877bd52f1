// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/event/branch.hpp>

namespace ptspec::engine::event {

// ------------------------------------------------------------------------------------ state

/// MOV to CR3 that no VMM intercepts. Source: GEN-087, GEN-240..243.
struct mov_cr3 {
    /// A bit of the operand that is not written to CR3: with CR4.PCIDE set it asks to keep cached
    /// translations.
    static constexpr uint64_t keeps_translations = uint64_t{1} << 63;

    uint64_t at = 0;
    uint64_t next = 0;
    uint64_t cr3 = 0;  ///< the operand
};
/// STI, CLI, POPF. Source: GEN-305.
struct interrupt_flag {
    uint64_t next = 0;
    bool IF = false;
};

/// XBEGIN, or an XACQUIRE that starts a transaction. Source: GEN-250, GEN-253.
struct transaction_begin {
    uint64_t at = 0;
    uint64_t next = 0;
};
/// XEND or XRELEASE. Source: GEN-251, GEN-253.
struct transaction_end {
    uint64_t at = 0;
    uint64_t next = 0;
};
/// Source: GEN-252.
struct transaction_abort {
    uint64_t at = 0;
    uint64_t to = 0;  ///< the fallback, or the XACQUIRE
};

/// EENTER, ERESUME, EEXIT, EEE, AEX: `after` says whether it leads into an enclave, and which.
///
/// Source: GEN-113, GEN-285, GEN-286.
struct enclave_transfer {
    uint64_t from = 0;  ///< the instruction; the one behind it for an AEX that is like a trap
    uint64_t to = 0;    ///< the AEP for AEX
    running after{};
};

// ------------------------------------------------------------------------------------ VMX

/// What a VM transition makes of IA32_RTIT_CTL: an MSR list, or the controls that load or clear it.
///
/// Source: GEN-273, GEN-274, REG-125..127.
struct ctl_load {
    bool is_there = false;
    access::ia32_rtit_ctl value{};
};

/// Source: GEN-271, GEN-273, GEN-274, GEN-301, GEN-302.
struct vm_exit {
    uint64_t from = 0;  ///< the IP that the VMCS has
    uint64_t to = 0;
    running after{};
    ctl_load loads{};
    uint64_t qualification = 0;
    uint64_t reason = 0;
    bool is_vectored = false;  ///< an event with a vector caused it
    uint8_t vector = 0;
    bool to_stm = false;  ///< an SMM VM exit; `vmcs` is that of the monitor
    uint64_t vmcs = 0;
};
/// Source: GEN-272..274, GEN-301.
struct vm_entry {
    uint64_t at = 0;
    uint64_t to = 0;
    running after{};
    ctl_load loads{};
    bool from_stm = false;  ///< it returns from SMM; `vmcs` is the one that is current then
    uint64_t vmcs = 0;
};
/// A VM entry that failed: it goes on behind the instruction, or has loaded the host's state.
///
/// Source: GEN-276.
struct vm_entry_failure {
    uint64_t to = 0;
    running after{};
    bool loaded_host_state = false;
};
/// VMPTRLD that succeeded. Source: GEN-244.
struct vmptrld {
    uint64_t next = 0;
    uint64_t vmcs = 0;
};
/// VMCLEAR of the current VMCS. Source: GEN-244.
struct vmclear {
    uint64_t next = 0;
};
struct vmxon {
    uint64_t at = 0;
    uint64_t next = 0;
};
struct vmxoff {
    uint64_t next = 0;
};

// ------------------------------------------------------------------------------------ SMM and so on

/// Source: GEN-113, GEN-260.
struct smi {
    uint64_t next = 0;  ///< the IP that is saved
    uint64_t to = 0;
    running after{};
};
/// Source: GEN-261, GEN-262.
struct rsm {
    uint64_t to = 0;
    running after{};
};
/// GETSEC[SENTER] and GETSEC[ENTERACCS], or SENTER on another logical processor. Source: GEN-287.
struct measured_launch {};
/// Source: GEN-288.
struct acm_begin {};
struct acm_end {
    uint64_t next = 0;
};

// ------------------------------------------------------------------------------------ values, power

/// PTWRITE whose operand can be read. Source: GEN-300.
struct ptwrite {
    uint64_t at = 0;
    uint64_t next = 0;
    uint64_t value = 0;
    bool is_64_bit = false;
};

/// A C-state as packets tell it. Source: GEN-310.
struct c_state {
    uint8_t state = 0;
    uint8_t substate = 0;
};

/// MWAIT, or an I/O instruction that counts as one. A C-state 0 is none. Source: GEN-310, GEN-312.
struct mwait {
    uint64_t at = 0;
    uint64_t next = 0;
    uint8_t hints = 0;
    uint8_t ext = 0;
    c_state thread{};         ///< as resolved
    bool is_io = false;       ///< there is no MWAIT packet
    bool is_pending = false;  ///< an event is pending already: GEN-314
};
/// HLT, shutdown, a VMX abort, INIT, and whatever else comes to C1. Source: GEN-311.
struct halt {
    uint64_t from = 0;  ///< the instruction; the one behind it for INIT
    uint64_t next = 0;
    bool is_shutdown = false;
};
/// Why a C-state ends. Source: GEN-313.
enum class wake_reason : uint8_t { other = 0, interrupt = 1, store = 4, hardware = 8 };
/// A C-state ends. What woke the processor up comes next. Source: GEN-200, GEN-205, GEN-313, GEN-318.
struct wake {
    uint8_t last = 0;     ///< core C-state
    uint8_t deepest = 0;  ///< core C-state
    wake_reason reason = wake_reason::other;
};
/// Hardware duty cycling begins; `wake` ends it. Source: GEN-315.
struct duty_cycle {
    uint64_t next = 0;
    uint8_t state = 6;
};
/// The clock stops while code runs: a new P-state, thermal throttling, STPCLK. Source: GEN-316.
struct clock_stop {
    uint64_t next = 0;
};
/// It goes on, at a ratio. Source: GEN-202, GEN-316.
struct clock_resume {};

// ------------------------------------------------------------------------------------ PEBS

/// Items of a PEBS record. Source: GEN-320.
struct pebs_item {
    uint8_t id = 0;
    uint64_t value = 0;
};
struct pebs_group {
    uint8_t type = 0;
    bool items_of_4 = false;
    pebs_item const* items = nullptr;
    size_t count = 0;
};
/// A PEBS record that goes into the trace. Source: GEN-320..322.
struct pebs_record {
    uint64_t ip = 0;
    pebs_group const* groups = nullptr;
    size_t count = 0;
};

// ------------------------------------------------------------------------------------ the unit itself

/// Time passes.
///
/// Units:  core clock cycles; ticks of the crystal clock; ticks of the time-stamp counter as RDTSC
///         would give them.
/// Source: GEN-200..204, GEN-210.
struct time {
    uint64_t cycles = 0;  ///< that passed
    uint64_t art = 0;     ///< what the crystal counter is now
    uint64_t tsc = 0;     ///< what the time-stamp counter is now
};
/// Core clock cycles pass. Source: GEN-210.
struct cycles {
    uint64_t passed = 0;
};
/// The core clock has another ratio to the bus clock. Source: GEN-202.
struct ratio {
    uint8_t core_to_bus = 0;  ///< 0: the processor's own
};
/// A CYC without a packet, as before the counter wraps. Source: GEN-217.
struct cycle_guard {};
/// A PSB+ is due, whatever was counted. Source: GEN-164.
struct psb_due {};
/// Packets are lost from now on, whatever the buffer has room for. Source: GEN-225.
struct overflow {};
/// They come through again. Source: GEN-227.
struct overflow_end {
    uint64_t next = 0;
};

}  // namespace ptspec::engine::event
