// SPDX-License-Identifier: BSL-1.0
#pragma once

// What both machines do with the processor and with devices of QEMU: I/O ports, a serial port, the
// exit, and the handler of #GP.

#include <ptspec/ptspec.hpp>

#include <ptspec/ports/x86.hpp>

#include <stdint.h>

namespace machine {

using ptspec::text;

// ------------------------------------------------------------------------------------ I/O ports

inline void out_8(uint16_t port, uint8_t value) {
    asm volatile("outb %0, %1" : : "a"(value), "Nd"(port) : "memory");
}
[[nodiscard]] inline auto in_8(uint16_t port) -> uint8_t {
    uint8_t value = 0;
    asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port) : "memory");
    return value;
}

/// A serial port of a PC, a 16550, at 115200 baud.
class serial_port {
public:
    explicit serial_port(uint16_t base) : base_{base} {
        out_8(at(1), 0x00);  // no interrupts
        out_8(at(3), 0x80);  // the divisor
        out_8(at(0), 0x01);
        out_8(at(1), 0x00);
        out_8(at(3), 0x03);  // 8 bits, no parity
        out_8(at(2), 0x07);  // FIFOs
    }
    void print(text words) const {
        constexpr uint8_t is_empty = 0x20;
        for (char const letter : words) {
            while ((in_8(at(5)) & is_empty) == 0) {}
            out_8(at(0), static_cast<uint8_t>(letter));
        }
    }

private:
    [[nodiscard]] auto at(unsigned reg) const -> uint16_t {
        return static_cast<uint16_t>(base_ + reg);
    }
    uint16_t base_;
};

/// Ends QEMU by its device isa-debug-exit at F4H: its exit status is 33 after success, 35 after
/// failure. Returns on a machine without it.
inline void exit_emulator(bool passed) { out_8(0xF4, passed ? 0x10 : 0x11); }

// ------------------------------------------------------------------------------------ exceptions

/// What an exception in 64-bit mode pushes, after an error code if there is one.
struct interrupt_frame {
    uint64_t ip;
    uint64_t cs;
    uint64_t flags;
    uint64_t sp;
    uint64_t ss;
};

/// A gate of the IDT in 64-bit mode.
struct gate {
    uint64_t low = 0;
    uint64_t high = 0;

    gate() = default;
    /// An interrupt gate to a handler in the current code segment.
    explicit gate(uintptr_t handler) : high{handler >> 32} {
        uint64_t cs = 0;
        asm volatile("movq %%cs, %0" : "=r"(cs));
        low = (handler & 0xFFFF) | cs << 16 | uint64_t{0x8E00} << 32 |
              (handler >> 16 & 0xFFFF) << 48;
    }
};

struct [[gnu::packed]] table_register {
    uint16_t limit;
    uint64_t base;
};

inline constexpr unsigned general_protection = 13;

/// The handler of #GP: an access of `skipping_access` continues, and reports the fault.
template <class OtherFault>
[[gnu::interrupt]] void on_general_protection(interrupt_frame* frame, uint64_t) {
    interrupt_frame volatile* const saved = frame;  // the processor reads it
    uint64_t ip = saved->ip;
    uint64_t flags = saved->flags;
    if (!ptspec::ports::skip_faulted_access(ip, flags)) { OtherFault::end(general_protection); }
    saved->ip = ip;
    saved->flags = flags;
}

}  // namespace machine
