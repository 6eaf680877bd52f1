// SPDX-License-Identifier: BSL-1.0
#pragma once

// The part of QEMU's plugin interface that pt_record and machine use. QEMU exports these functions
// from its binaries; Debian has no package with their header.
//
// PT_RECORD_QEMU_API selects the version of the interface: 1 for QEMU 6.0 to 8.2, 3 or higher for
// QEMU 9.0 and newer, which accept only versions from 2 on.
// Source: QEMU's documentation, "QEMU TCG Plugins".

#include <cstddef>
#include <cstdint>

#ifndef PT_RECORD_QEMU_API
#define PT_RECORD_QEMU_API 1
#endif
static_assert(PT_RECORD_QEMU_API == 1 || PT_RECORD_QEMU_API >= 3,
              "version 2 exists in no released QEMU");

#define PT_RECORD_EXPORT __attribute__((visibility("default")))

extern "C" {

using qemu_plugin_id_t = std::uint64_t;

struct qemu_info_t {
    char const* target_name;
    struct {
        int min;
        int cur;
    } version;
    bool system_emulation;
    struct {
        int smp_vcpus;
        int max_vcpus;
    } system;
};

struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_CB_RW_REGS };

using qemu_plugin_simple_cb_t = void (*)(qemu_plugin_id_t);
using qemu_plugin_udata_cb_t = void (*)(qemu_plugin_id_t, void*);
using qemu_plugin_vcpu_simple_cb_t = void (*)(qemu_plugin_id_t, unsigned);
using qemu_plugin_vcpu_udata_cb_t = void (*)(unsigned, void*);
using qemu_plugin_vcpu_tb_trans_cb_t = void (*)(qemu_plugin_id_t, qemu_plugin_tb*);
using qemu_plugin_vcpu_syscall_cb_t = void (*)(qemu_plugin_id_t, unsigned, std::int64_t,
                                               std::uint64_t, std::uint64_t, std::uint64_t,
                                               std::uint64_t, std::uint64_t, std::uint64_t,
                                               std::uint64_t, std::uint64_t);
using qemu_plugin_vcpu_syscall_ret_cb_t = void (*)(qemu_plugin_id_t, unsigned, std::int64_t,
                                                   std::int64_t);

PT_RECORD_EXPORT extern int qemu_plugin_version;
PT_RECORD_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, qemu_info_t const* info, int argc,
                                         char** argv);

void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, qemu_plugin_vcpu_simple_cb_t);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_vcpu_tb_trans_cb_t);
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, qemu_plugin_vcpu_udata_cb_t,
                                          qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, qemu_plugin_vcpu_udata_cb_t,
                                            qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, qemu_plugin_vcpu_syscall_cb_t);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, qemu_plugin_vcpu_syscall_ret_cb_t);
void qemu_plugin_register_flush_cb(qemu_plugin_id_t, qemu_plugin_simple_cb_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_udata_cb_t, void*);

std::size_t qemu_plugin_tb_n_insns(qemu_plugin_tb const*);
std::uint64_t qemu_plugin_tb_vaddr(qemu_plugin_tb const*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(qemu_plugin_tb const*, std::size_t);
#if PT_RECORD_QEMU_API >= 3
std::size_t qemu_plugin_insn_data(qemu_plugin_insn const*, void*, std::size_t);
#else
void const* qemu_plugin_insn_data(qemu_plugin_insn const*);
#endif
std::size_t qemu_plugin_insn_size(qemu_plugin_insn const*);
std::uint64_t qemu_plugin_insn_vaddr(qemu_plugin_insn const*);

}  // extern "C"
