// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/packet/packet_word.hpp>

namespace ptspec::packet {

/// The event that a CFE reports. Other values decode, but their meaning is unknown.
///
/// Source: PKT-221. Processors with FRED have SWINTR and SYSCALL.
enum class cfe_type : uint8_t {
    INTR = 0x01,
    IRET = 0x02,
    SMI = 0x03,
    RSM = 0x04,
    SIPI = 0x05,
    INIT = 0x06,
    VMENTRY = 0x07,
    VMEXIT = 0x08,
    VMEXIT_INTR = 0x09,
    SHUTDOWN = 0x0A,
    UINTR = 0x0C,
    UIRET = 0x0D,
    SWINTR = 0x0E,
    SYSCALL = 0x0F,
};

/// The payload type of an EVD. Other values decode, but their meaning is unknown.
///
/// Source: PKT-226.
enum class evd_type : uint8_t {
    PFA = 0,   ///< page-fault linear address
    VMXQ = 1,  ///< VMX exit qualification
    VMXR = 2,  ///< VMX exit reason
};

/// CFE, a control-flow event of event trace.
///
/// Shape:  4 bytes: 02H 13H, the type and IP, the vector.
/// Errors: truncated.
/// Source: SDM vol. 3, "Control Flow Event (CFE) Packet"; PKT-220, PKT-221.
struct cfe : packet_word<cfe, 4> {
    static constexpr facts about{.id = kind::cfe,
                                 .name = "CFE",
                                 .binds_to_ip = ip_binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x13> {};
    struct type : enumerated<20, 16, cfe_type> {};
    struct IP : flag<23> {};  ///< a FUP follows
    struct vector : field<31, 24> {};
    struct layout : bit_layout<32, Escape, Opcode, type, reserved<22, 21>, IP, vector> {};
};

/// EVD, data of the event that the next CFE reports.
///
/// Shape:  11 bytes: 02H 53H, the type, then 8 bytes.
/// Errors: truncated.
/// Source: SDM vol. 3, "Event Data (EVD) Packet"; PKT-225, PKT-226 (six bits of type are
///         UNCONFIRMED).
struct evd : packet_word<evd, 11> {
    static constexpr facts about{.id = kind::evd,
                                 .name = "EVD",
                                 .binds_to_ip = ip_binding::conditional,
                                 .cyc_eligible = cyc_rule::unconfirmed};

    struct Escape : fixed<7, 0, 0x02> {};
    struct Opcode : fixed<15, 8, 0x53> {};
    struct type : enumerated<21, 16, evd_type> {};
    struct payload : field<87, 24> {};
    struct layout : bit_layout<88, Escape, Opcode, type, reserved<23, 22>, payload> {};
};

}  // namespace ptspec::packet
