// SPDX-License-Identifier: BSL-1.0
#pragma once

// The emulated processor as the trace unit needs it: its state, memory and interrupt.

#include "machine_hooks.h"

#include <ptspec/base/ports.hpp>
#include <ptspec/engine/action/execution_context.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace machine {

using namespace ptspec;
using cpu::code_width;

/// The state of a processor in the emulator. Valid between two instructions.
class guest_state {
public:
    guest_state() = default;
    explicit guest_state(unsigned cpu)
        : at_{static_cast<unsigned char const*>(machine_state(cpu))},
          where_{machine_state_layout()} {}

    /// Hidden flags of QEMU: CPL in bits 1:0, CS32 is bit 4, CS64 bit 15.
    [[nodiscard]] auto flags() const -> std::uint32_t {
        std::uint32_t value = 0;
        std::memcpy(&value, at_ + where_->hflags, sizeof value);
        return value;
    }
    /// RIP, without the base of CS.
    [[nodiscard]] auto ip() const -> std::uint64_t { return word(where_->eip); }
    /// The base of CS; 0 in 64-bit code.
    [[nodiscard]] auto code_base() const -> std::uint64_t {
        return width() == code_width::bits_64 ? 0 : word(where_->cs_base);
    }
    [[nodiscard]] auto linear_ip() const -> std::uint64_t { return ip() + code_base(); }
    [[nodiscard]] auto cr2() const -> std::uint64_t { return word(where_->cr2); }
    [[nodiscard]] auto cr3() const -> std::uint64_t { return word(where_->cr3); }
    [[nodiscard]] auto width() const -> code_width {
        std::uint32_t const now = flags();
        return (now >> 15 & 1) != 0  ? code_width::bits_64
               : (now >> 4 & 1) != 0 ? code_width::bits_32
                                     : code_width::bits_16;
    }
    [[nodiscard]] auto cpl() const -> std::uint8_t {
        return static_cast<std::uint8_t>(flags() & 3);
    }
    /// AL, which MWAIT takes its hints from.
    [[nodiscard]] auto mwait_hints() const -> std::uint8_t {
        return static_cast<std::uint8_t>(word(where_->rax));
    }
    [[nodiscard]] auto is_watched() const -> bool { return (flags() & MACHINE_TRACED) != 0; }
    [[nodiscard]] auto context() const -> engine::execution_context {
        constexpr std::uint64_t pe = 1, pae = 1U << 5, lma = 1U << 10, if_flag = 1U << 9,
                                vm = 1U << 17;
        std::uint64_t const flags = word(where_->eflags);
        engine::execution_context now;
        now.cr3 = cr3();
        now.cs_base = code_base();
        now.cpl = cpl();
        now.width = width();
        now.real_mode = (word(where_->cr0) & pe) == 0;
        now.virtual_8086 = (flags & vm) != 0;
        now.pae = (word(where_->cr4) & pae) != 0 && (word(where_->efer) & lma) == 0;
        now.IF = (flags & if_flag) != 0;
        return now;
    }

private:
    [[nodiscard]] auto word(std::size_t offset) const -> std::uint64_t {
        std::uint64_t value = 0;
        std::memcpy(&value, at_ + offset, sizeof value);
        return value;
    }
    unsigned char const* at_ = nullptr;
    machine_layout const* where_ = nullptr;
};

/// Physical memory, and the interrupt of the local APIC.
///
/// Combines consecutive stores within a page, up to 256 bytes, until `flush`: a call of the
/// emulator for each packet took a tenth of the time of traced code. The first store to a page is
/// not delayed, so that its result says whether the page is memory.
class guest_port {
public:
    explicit guest_port(unsigned cpu) : cpu_{cpu} {}

    auto load(std::uint64_t address) noexcept -> port_value {
        flush();
        std::uint64_t value = 0;
        bool const done = machine_memory(cpu_, address, &value, sizeof value, 0) != 0;
        return {done, value};
    }
    auto store(std::uint64_t address, byte_view bytes) noexcept -> std::size_t {
        bool const follows = address == at_ + count_ && address % page != 0 &&
                             bytes.size() <= page - address % page;
        if (!follows || bytes.size() > sizeof waiting_ - count_) { flush(); }
        if (follows && bytes.size() <= sizeof waiting_) {
            std::memcpy(waiting_ + count_, bytes.data(), bytes.size());
            count_ += bytes.size();
            return bytes.size();
        }
        // machine_memory only reads from it: is_write is 1.
        auto* const from = const_cast<std::uint8_t*>(bytes.data());
        bool const done = machine_memory(cpu_, address, from, bytes.size(), 1) != 0;
        at_ = done ? address + bytes.size() : 0;
        return done ? bytes.size() : 0;
    }
    void flush() noexcept {
        if (count_ == 0) { return; }
        faults_ += machine_memory(cpu_, at_, waiting_, count_, 1) != 0 ? 0 : 1;
        at_ += count_;
        count_ = 0;
    }
    void raise() noexcept {
        flush();
        ++pmis_;
        machine_pmi(cpu_);
    }
    [[nodiscard]] auto pmis() const -> std::uint64_t { return pmis_; }
    /// Delayed stores to a page that was memory and is no longer: the bytes are lost.
    [[nodiscard]] auto faults() const -> std::uint64_t { return faults_; }

private:
    static constexpr std::uint64_t page = 4096;

    unsigned cpu_;
    std::uint64_t pmis_ = 0, faults_ = 0;
    std::uint64_t at_ = 0;   ///< the physical address of `waiting_`
    std::size_t count_ = 0;  ///< of bytes in `waiting_`
    std::uint8_t waiting_[256];
};

}  // namespace machine
