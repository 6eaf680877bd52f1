// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/execution_context.hpp>

/// VMX transitions and instructions, system management mode, measured launch.
namespace ptspec::engine::action {

/// A value that a VM transition loads into IA32_RTIT_CTL: by an MSR list, or by the controls that
/// load or clear it.
///
/// Source: GEN-273, GEN-274, REG-125..127.
struct ctl_load {
    bool has_value = false;
    access::ia32_rtit_ctl value{};
};

/// Source: GEN-271, GEN-273, GEN-274, GEN-301, GEN-302.
struct vm_exit {
    uint64_t from = 0;  ///< the guest RIP that the VMCS saves
    uint64_t to = 0;
    execution_context after{};
    ctl_load loads{};
    uint64_t qualification = 0;
    uint64_t reason = 0;
    bool is_vectored = false;  ///< caused by an event that has a vector
    uint8_t vector = 0;
    bool to_stm = false;  ///< an SMM VM exit; `vmcs` is then that of the SMM-transfer monitor
    uint64_t vmcs = 0;
};
/// Source: GEN-272..274, GEN-301.
struct vm_entry {
    uint64_t at = 0;
    uint64_t to = 0;
    execution_context after{};
    ctl_load loads{};
    bool from_stm = false;  ///< a return from SMM; `vmcs` is then the current VMCS
    uint64_t vmcs = 0;
};
/// A VM entry that failed: execution continues after the instruction, or with the host's state.
///
/// Source: GEN-276.
struct vm_entry_failure {
    uint64_t to = 0;
    execution_context after{};
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

/// Source: GEN-113, GEN-260.
struct smi {
    uint64_t next = 0;  ///< the saved IP
    uint64_t to = 0;
    execution_context after{};
};
/// Source: GEN-261, GEN-262.
struct rsm {
    uint64_t to = 0;
    execution_context after{};
};
/// GETSEC[SENTER] and GETSEC[ENTERACCS], or SENTER on another logical processor. Source: GEN-287.
struct measured_launch {};
/// An authenticated code module is set up. Source: GEN-288.
struct acm_begin {};
struct acm_end {
    uint64_t next = 0;
};

}  // namespace ptspec::engine::action
