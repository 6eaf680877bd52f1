// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/vmx/guest_pt.hpp>
#include <ptspec/vmx/shadow.hpp>

/// EPT violations by the output of a guest with guest-physical output: what a VMM does after the VM
/// exit, and a model of the memory that causes them.
///
/// The processor translates ahead, so that no byte of trace is lost: the address may be one of a
/// later region than the current one. The exit comes after the instruction that set TraceEn, at an
/// instruction boundary when output moves on, or after a VM entry. An event that the entry was to
/// inject is in the IDT-vectoring information: inject it again.
namespace ptspec::vmx {

/// An access of output that EPT does not allow, as the exit of an EPT violation describes it.
///
/// Source: SDM vol. 3, "Exit Qualification for EPT Violations"; PRG-180..182.
struct output_access {
    static constexpr uint32_t exit_reason = 48;  ///< EPT violation
    static constexpr uint64_t read = 1U << 0;
    static constexpr uint64_t write = 1U << 1;
    /// Not by an instruction or the delivery of an event. UNCONFIRMED; PEBS may set it, too.
    static constexpr uint64_t asynchronous = 1U << 16;

    phys_addr address{};  ///< guest-physical
    bool is_write = false;

    [[nodiscard]] constexpr auto qualification() const noexcept -> uint64_t {
        return (is_write ? write : read) | asynchronous;
    }
    friend constexpr auto operator==(output_access const&, output_access const&) -> bool = default;
};

/// What a VMM does after an EPT violation.
enum class ept_violation_action : uint8_t {
    not_output,    ///< not by output: the caller's own code handles it
    resume,        ///< the page is there now: enter the guest again
    missing_page,  ///< make the page present and writable, then enter the guest again
    end_output,    ///< there is no memory: `end_output`, then enter the guest again
};

/// The answer to an EPT violation. The page is a guest-physical address.
struct [[nodiscard]] ept_violation_answer {
    ept_violation_action what = ept_violation_action::not_output;
    phys_addr page{};

    constexpr explicit operator bool() const noexcept {
        return what == ept_violation_action::resume || what == ept_violation_action::missing_page;
    }
};

/// Decides what to do after a VM exit by an EPT violation at a guest-physical address. `memory`
/// says what is at this address. Call it after `leave`.
///
/// An exit is one of output if its qualification says that it was asynchronous, and the guest
/// traces with guest-physical output.
///
/// Source: PRG-180..182.
template <guest_memory_port Memory>
[[nodiscard]] constexpr auto on_ept_violation(guest_pt const& guest, uint64_t qualification,
                                              phys_addr address, Memory& memory) noexcept
    -> ept_violation_answer {
    bool const is_output = (qualification & output_access::asynchronous) != 0 && guest.trace_en() &&
                           guest.current_output() == guest_output::guest_physical;
    if (!is_output) { return {}; }
    phys_addr const page = align_down(address, 4096);
    switch (memory.translate(page.value, 4096).kind) {
        case backing::mapped: return {ept_violation_action::resume, page};
        case backing::missing: return {ept_violation_action::missing_page, page};
        case backing::none: break;
    }
    return {ept_violation_action::end_output, page};
}

/// Ends a guest's trace as an operational error does, because its output leads to an address
/// without memory. A processor finds reserved bits there when it reads a table; what it writes to
/// such a region is lost, which the guest then learns by the error. Call it between `leave` and
/// `enter`.
///
/// Source: REG-056, OUT-060, PRG-180.
constexpr void end_output(guest_pt& guest) noexcept {
    using status = access::ia32_rtit_status;
    guest.msrs.status = guest.msrs.status.with(status::Error{true}, status::TriggerEn{false});
}

/// Guest-physical memory as the output of a processor reaches it, for a model of the processor: a
/// `memory_port` that translates each page, and fails where there is no mapping. The access is kept
/// for the VM exit. After the VMM has made the page present, the processor's output continues
/// without loss; after `end_output` what waits for the page is lost: `discard`.
///
/// Source: PRG-180, PRG-181.
template <memory_port Host, guest_memory_port Guest>
class ept_memory {
public:
    using ignores_pmis = choose_t<memory_port_members<Host>::has_raise, void, ept_memory>;
    using ignores_fabric = choose_t<memory_port_members<Host>::has_send, void, ept_memory>;

    constexpr ept_memory(Host& host, Guest& guest) noexcept : host_{host}, guest_{guest} {}

    [[nodiscard]] constexpr auto load(uint64_t address) noexcept -> port_value {
        if (discards_) { return {true, ~uint64_t{0}}; }
        auto const there = translate({address, false});
        return there ? host_.load(there.value) : port_value{};
    }
    [[nodiscard]] constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        if (discards_) { return bytes.size(); }
        size_t stored = 0;
        while (stored != bytes.size()) {
            uint64_t const at = address + stored;
            auto const there = translate({at, true});
            if (!there) { break; }
            uint64_t const left = 4096 - at % 4096;
            byte_view const part = bytes.from(stored).first(static_cast<size_t>(left));
            size_t const count = host_.store(there.value, part);
            stored += count;
            if (count != part.size()) { break; }
        }
        return stored;
    }

    /// The interrupts and the fabric are those of the host's memory port.
    constexpr void raise() noexcept { host_.raise(); }
    [[nodiscard]] constexpr auto send(byte_view bytes) noexcept -> size_t {
        return host_.send(bytes);
    }

    /// While `discards` is true, stored bytes are lost, and loads return ones.
    constexpr void discard(bool discards) noexcept { discards_ = discards; }

    /// True if an access failed since `take_violation`.
    [[nodiscard]] constexpr auto has_violation() const noexcept -> bool { return has_violation_; }
    /// The first access that failed: the VM exit is taken.
    constexpr auto take_violation() noexcept -> output_access {
        has_violation_ = false;
        return violation_;
    }

private:
    constexpr auto translate(output_access wanted) noexcept -> port_value {
        auto const page = guest_.translate(align_down(wanted.address, 4096).value, 4096);
        if (page.kind == backing::mapped) {
            return {true, page.host.value + wanted.address.value % 4096};
        }
        if (!has_violation_) { violation_ = wanted; }
        has_violation_ = true;
        return {};
    }

    Host& host_;
    Guest& guest_;
    output_access violation_{};
    bool has_violation_ = false;
    bool discards_ = false;
};

}  // namespace ptspec::vmx
