// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/msr_state.hpp>
#include <ptspec/base/flag_set.hpp>
#include <ptspec/base/ports.hpp>
#include <ptspec/reg/xsave.hpp>
#include <ptspec/suite/snippet.hpp>

/// What the suite needs of a processor, a hypervisor or an emulator: its ports.
namespace ptspec::suite {

/// The result of an RDMSR or a WRMSR.
struct msr_result {
    bool is_done = false;  ///< false: it faulted, or the target refused to execute it
    uint8_t vector = 0;    ///< of the fault
    bool is_asked = true;  ///< false: the target did not execute it
    uint64_t value = 0;    ///< that was read

    static constexpr uint8_t general_protection = 13;

    [[nodiscard]] constexpr auto faulted() const noexcept -> bool { return is_asked && !is_done; }
};

/// Pages that the target gives for output and tables: contiguous, and aligned to their whole size,
/// a power of two. Nothing else uses them.
struct given_memory {
    phys_addr base{};
    uint8_t* bytes = nullptr;  ///< the same pages, mapped
    uint32_t pages = 0;

    static constexpr uint64_t page_bytes = 4096;

    [[nodiscard]] constexpr auto size() const noexcept -> uint64_t { return pages * page_bytes; }
    /// True if `count` bytes at an address are given.
    [[nodiscard]] constexpr auto has(uint64_t address, uint64_t count) const noexcept -> bool {
        uint64_t const offset = address - base.value;
        return offset <= size() && count <= size() - offset;
    }
    [[nodiscard]] constexpr auto page(uint32_t number) const noexcept -> uint64_t {
        return base.value + number * page_bytes;
    }
};

/// What a target can do besides reading and writing MSRs.
enum class ability : uint32_t {
    enable = 1,          ///< TraceEn may become 1
    execute = 2,         ///< `execute`
    interrupt = 4,       ///< `pmi`
    xsaves = 8,          ///< XSAVES and XRSTORS of component 8
    reset = 16,          ///< `reset`
    global_status = 32,  ///< 38EH, 390H and 391H may be accessed
    model_time = 64,     ///< time passes as in `model_target`
};
using ability_set = flag_set<ability>;

/// What happened to a snippet.
struct snippet_run {
    msr_result enabled{};       ///< the WRMSR that enables; if it faulted nothing else executed
    msr_result disabled{};      ///< the WRMSR that disables
    bool is_disturbed = false;  ///< an interrupt came between, or something else
    uint64_t tsc_before = 0;
    uint64_t tsc_after = 0;

    [[nodiscard]] constexpr auto tsc_passed() const noexcept -> uint64_t {
        return tsc_after - tsc_before;
    }
};

enum class reset_kind : uint8_t { warm, cold };

/// A logical processor that can be asked.
///
/// `write` may fault. `execute` runs a snippet with interrupts disabled, at the address
/// `address_of`. `pmi` is true if a PMI came since the last call. `note` stores the name of a check
/// and the MSRs as they are, where both survive a hang, before the check runs; an empty name after
/// it. `xsaves` and `xrstors` are of component 8 alone. What a target is not able to do, by its
/// `abilities`, is not called.
template <class T>
concept target = requires(T& it, uint32_t index, uint64_t value, snippet const& code, text name,
                          access::msr_state const& msrs, reg::xsave_pt_state& image,
                          reset_kind kind) {
    { it.read(index) } -> same_as<msr_result>;
    { it.write(index, value) } -> same_as<msr_result>;
    { it.query(index, index) } -> same_as<cpuid_registers>;
    { it.memory() } -> same_as<given_memory>;
    { it.abilities() } -> same_as<ability_set>;
    { it.address_of(code) } -> same_as<uint64_t>;
    { it.execute(code, value, value) } -> same_as<snippet_run>;
    { it.cr3() } -> same_as<uint64_t>;
    { it.pmi() } -> same_as<bool>;
    { it.xsaves(image) } -> same_as<msr_result>;
    { it.xrstors(image) } -> same_as<msr_result>;
    { it.reset(kind) } -> same_as<bool>;
    it.note(name, msrs);
};

}  // namespace ptspec::suite
