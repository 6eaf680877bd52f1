// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/effect.hpp>
#include <ptspec/access/image.hpp>
#include <ptspec/access/resets.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/base/ports.hpp>
#include <ptspec/vmx/controls.hpp>

/// Intel PT of a virtual processor: what its accesses read, write, and raise.
///
/// A VM exit ends the guest's trace, and VM entry continues it (`vmx/world_switch.hpp`). Between
/// the two, `guest_pt::msrs` has the guest's values, and no value of the guest is in the processor.
/// Which MSRs are intercepted may change with each function here and with each `enter`: call
/// `update_msr_bitmap` after `enter`, before VM entry, each time.
namespace ptspec::vmx {

/// Whose code a virtual processor executes. Source: PRG-173.
enum class guest_level : uint8_t {
    l1,         ///< the guest's own
    l2,         ///< that of a guest of the guest: between `enter_nested` and `leave_nested`
    smm_of_l2,  ///< SMM of the guest, entered from L2: RSM returns there
};

/// Intel PT of a virtual processor.
///
/// Source: SDM vol. 3, "Intel Processor Trace and VMX"; PRG-170..177.
struct guest_pt {
    cpu::capabilities caps{};  ///< what CPUID reports to the guest
    /// How the VMM translates the output of the guest's own code; see `current_output`.
    guest_output output = guest_output::guest_physical;
    /// The values that the guest sees. Of IA32_PERF_GLOBAL_STATUS only Trace_ToPA_PMI is in use.
    access::msr_state msrs{};
    /// With shadow tables: what the processor holds while the guest traces, in place of the output
    /// MSRs of the guest, and CTL.ToPA.
    access::output_registers host_output{};
    bool host_topa = true;
    shadow_use shadow = shadow_use::needed;
    /// With shadow paging the processor's CR3 is that of tables which the VMM made, and it compares
    /// this CR3 with `host_cr3_match`, not with the guest's IA32_RTIT_CR3_MATCH. Before VM entry,
    /// set `host_cr3_match` to the CR3 of the tables for the guest's value. If there are none yet,
    /// set it to a CR3 that is never used. For the PIPs of the trace see `edit::replace_cr3`.
    bool shadow_paging = false;
    access::ia32_rtit_cr3_match host_cr3_match{};

    bool pmi_pending = false;  ///< inject a PMI: `take_pmi` clears it
    /// TraceEn rose, and VM entry has not loaded it yet: the effects of enabling are not
    /// performed yet.
    bool starts = false;
    /// The processor holds a STATUS without PendToPAPMI: its reads are intercepted.
    bool hides_pend_topa_pmi = false;
    /// PacketByteCnt of the processor, for a guest without CPSB_CAM, which reads 0.
    uint64_t hidden_byte_count = 0;

    guest_level level = guest_level::l1;
    controls nested{};  ///< of the VMCS with which L1 runs L2; set by `enter_nested`

    [[nodiscard]] constexpr auto trace_en() const noexcept -> bool {
        return msrs.ctl.get<access::ia32_rtit_ctl::TraceEn>();
    }
    /// How the output of the code that runs now is translated. If L1 does not use guest-physical
    /// output for L2, the addresses are physical ones of L1, which the EPT of L2 does not
    /// translate: then the VMM needs shadow tables.
    ///
    /// Source: REG-128, PRG-180, PRG-184.
    [[nodiscard]] constexpr auto current_output() const noexcept -> guest_output {
        return level == guest_level::l2 && guest_output_of(nested) == guest_output::shadow
                   ? guest_output::shadow
                   : output;
    }
    /// VM entry is refused until `begin_shadow` was called, and the shadow is complete.
    [[nodiscard]] constexpr auto needs_shadow() const noexcept -> bool {
        return current_output() == guest_output::shadow && trace_en() &&
               shadow == shadow_use::needed;
    }
};

/// How to handle accesses of a guest to `index` while it runs, after `enter`.
///
/// Source: PRG-172, PRG-175, PRG-184.
[[nodiscard]] constexpr auto access_of_guest(guest_pt const& guest, msr_index index) noexcept
    -> guest_access {
    auto const usual = access_of_guest(guest.caps, guest.trace_en(), index, guest.current_output());
    bool const is_other_value = (guest.hides_pend_topa_pmi &&
                                 index == access::ia32_rtit_status::address) ||
                                (guest.shadow_paging &&
                                 index == access::ia32_rtit_cr3_match::address);
    return usual == guest_access::pass_through && is_other_value ? guest_access::intercept : usual;
}

/// The MSR bitmap of a VMCS: which accesses exit.
///
/// Shape:  for MSR n, below 2000H: bit n % 8 of byte n / 8 for RDMSR, 2048 bytes later for WRMSR.
/// Source: SDM vol. 3, "MSR-Bitmap Address".
struct msr_bitmap {
    static constexpr size_t writes = 2048;

    uint8_t bytes[4096]{};
};

namespace detail {

/// Calls `each(byte, bit, exits)` for the bits of the MSRs of Intel PT in a bitmap.
constexpr void for_each_pt_bit(guest_pt const& guest, auto&& each) noexcept {
    for (uint32_t index = access::first_pt_msr; index <= access::last_pt_msr; ++index) {
        bool const exits = access_of_guest(guest, index) != guest_access::pass_through;
        for (size_t at = index / 8; at < sizeof msr_bitmap::bytes; at += msr_bitmap::writes) {
            each(at, 1U << index % 8, exits);
        }
    }
}

}  // namespace detail

/// Sets the bits of the MSRs of Intel PT, and no others. Call it after `enter`, before VM entry. If
/// an MSR that holds the host's value were passed through, the guest could read it, and let the
/// host trace to any address. While L2 runs, bits are only set, because `bitmap` may have those of
/// L1: see the function below.
///
/// Source: PRG-172, PRG-184.
constexpr void update_msr_bitmap(guest_pt const& guest, msr_bitmap& bitmap) noexcept {
    detail::for_each_pt_bit(guest, [&](size_t at, unsigned bit, bool exits) {
        bool const clears = !exits && guest.level != guest_level::l2;
        unsigned const others = bitmap.bytes[at] & ~(clears ? bit : 0);
        bitmap.bytes[at] = static_cast<uint8_t>(others | (exits ? bit : 0));
    });
}

/// The same for the bitmap with which L2 runs: an access exits if it is intercepted here or in
/// `of_l1`, the bitmap that L1 has for L2, whose exits L1 handles. If L1 uses no bitmap, every
/// access exits: all bits of `of_l1` are 1.
///
/// Source: SDM vol. 3, "MSR-Bitmap Address"; PRG-172.
constexpr void update_msr_bitmap(guest_pt const& guest, msr_bitmap const& of_l1,
                                 msr_bitmap& merged) noexcept {
    detail::for_each_pt_bit(guest, [&](size_t at, unsigned bit, bool exits) {
        unsigned const others = merged.bytes[at] & ~bit;
        unsigned const wanted = exits ? bit : of_l1.bytes[at] & bit;
        merged.bytes[at] = static_cast<uint8_t>(others | wanted);
    });
}

// ------------------------------------------------------------------------------------ MSR exits

/// What a VMM does after an exit of a guest at RDMSR or WRMSR.
enum class exit_action : uint8_t {
    skip,       ///< skip the instruction; RDMSR returns `value`
    inject_gp,  ///< inject #GP(0)
    not_pt,     ///< not an MSR of Intel PT: the caller's own code handles it
};

struct [[nodiscard]] exit_answer {
    exit_action what = exit_action::skip;
    rule broken = rule::none;       ///< of `inject_gp`
    uint64_t value = 0;             ///< that RDMSR reads
    bool trace_en_changed = false;  ///< with shadow tables they may be needed: `needs_shadow`

    constexpr explicit operator bool() const noexcept { return what == exit_action::skip; }
    friend constexpr auto operator==(exit_answer const&, exit_answer const&) -> bool = default;
};

namespace detail {

using namespace ptspec::detail;

/// Sets CTL without what the processor does when TraceEn rises. TriggerEn follows.
constexpr void set_ctl(guest_pt& guest, access::ia32_rtit_ctl value) noexcept {
    using status = access::ia32_rtit_status;
    guest.starts = value.get<access::ia32_rtit_ctl::TraceEn>();
    guest.shadow = shadow_use::needed;
    guest.msrs.ctl = value;
    guest.msrs.status = guest.msrs.status.with(
        status::TriggerEn{access::trigger_en(value, guest.msrs.status)});
}

/// STATUS as a guest sees it: without the bits of features that it does not have.
///
/// Source: REG-051, REG-054, REG-055, REG-067.
constexpr auto visible_status(cpu::capabilities const& guest_caps,
                              access::ia32_rtit_status status) noexcept
    -> access::ia32_rtit_status {
    using word = access::ia32_rtit_status;
    uint64_t const filter_en = guest_caps.has_ip_filtering() ? 0 : field_mask<word::FilterEn>;
    return {status.raw & ~(access::faulting_status_mask(guest_caps) | filter_en)};
}

constexpr auto gp_of(access::verdict const& checked) noexcept -> exit_answer {
    return {.what = exit_action::inject_gp, .broken = checked.broken};
}

}  // namespace detail

/// Handles an exit at RDMSR.
///
/// Errors: `inject_gp` with the rule of `access::check_read`.
/// Source: PRG-172, PRG-173.
constexpr auto on_rdmsr(guest_pt const& guest, msr_index index, unsigned cpl = 0) noexcept
    -> exit_answer {
    if (!access::is_pt_msr(index)) { return {.what = exit_action::not_pt}; }
    auto const checked = access::check_read(guest.caps, index, cpl);
    if (!checked) { return detail::gp_of(checked); }
    return {.value = access::value_of(guest.msrs, index)};
}

/// Handles an exit at WRMSR. `code` is the guest's, after the instruction. If TraceEn rises, the
/// processor performs the effects at the next VM entry.
///
/// Errors: `inject_gp` with the rule of `access::check_write`, against the guest's capabilities.
///         Nothing has changed then.
/// Source: PRG-173.
constexpr auto on_wrmsr(guest_pt& guest, msr_index index, uint64_t value,
                        access::processor_context const& code = {},
                        access::policy const& policy = {}) noexcept -> exit_answer {
    if (!access::is_pt_msr(index)) { return {.what = exit_action::not_pt}; }
    bool const was_on = guest.trace_en();
    auto const checked = access::check_write(guest.caps, guest.msrs, index, value, code.cpl,
                                             policy);
    if (!checked) { return detail::gp_of(checked); }
    access::ia32_rtit_ctl const ctl{value};
    bool const starts = index == access::ia32_rtit_ctl::address && !was_on &&
                        ctl.get<access::ia32_rtit_ctl::TraceEn>();
    if (starts) {
        detail::set_ctl(guest, ctl);
    } else {
        guest.msrs = access::apply(guest.caps, guest.msrs, index, value, code).state;
        guest.starts = guest.starts && guest.trace_en();
    }
    return {.trace_en_changed = was_on != guest.trace_en()};
}

/// Handles an exit at XSAVES that saves component 8: returns the image, and clears TraceEn. If the
/// image cannot be stored, restore `guest` from a copy.
///
/// Source: REG-142, PRG-110.
[[nodiscard]] constexpr auto on_xsaves(guest_pt& guest) noexcept -> access::xsave_pt_state {
    auto const saved = access::xsaves(guest.caps, guest.msrs);
    guest.msrs = saved.state;
    guest.starts = false;
    return saved.image;
}

/// Handles an exit at XRSTORS that loads component 8.
///
/// Errors: `inject_gp`: REG-143 while TraceEn is 1, REG-144 for a value that a WRMSR would not
///         write. Nothing has changed then.
/// Source: REG-143..145, PRG-112.
constexpr auto on_xrstors(guest_pt& guest, access::xsave_pt_state const& image,
                          access::policy const& policy = {}) noexcept -> exit_answer {
    auto const loaded = access::xrstors_except_ctl(guest.caps, guest.msrs, image, policy);
    if (!loaded) { return detail::gp_of(loaded.effect.verdict); }
    guest.msrs = loaded.effect.state;
    detail::set_ctl(guest, image.get<access::xsave_pt_state::IA32_RTIT_CTL>());
    return {.trace_en_changed = guest.trace_en()};
}

// ------------------------------------------------------------------------------------ events

/// A PMI that the VMM injects now. True once for each interrupt that output raised.
///
/// Source: PRG-177.
[[nodiscard]] constexpr auto take_pmi(guest_pt& guest) noexcept -> bool {
    bool const pending = guest.pmi_pending;
    guest.pmi_pending = false;
    return pending;
}

/// Handles a write of IA32_PERF_GLOBAL_STATUS_RESET or IA32_PERF_GLOBAL_STATUS_SET by the guest, as
/// far as Intel PT is concerned: the caller's own code handles the other bits. RDMSR of
/// IA32_PERF_GLOBAL_STATUS returns Trace_ToPA_PMI of `guest.msrs.perf_global_status`. Setting the
/// bit raises no interrupt.
///
/// Errors: `inject_gp` with REG-204 for Trace_ToPA_PMI without ToPA output; `not_pt` for another
///         MSR.
/// Source: REG-203, REG-204, PRG-177.
constexpr auto on_global_status_write(guest_pt& guest, msr_index index, uint64_t value) noexcept
    -> exit_answer {
    bool const sets = index == reg::ia32_perf_global_status_set::address;
    if (!sets && index != reg::ia32_perf_global_status_reset::address) {
        return {.what = exit_action::not_pt};
    }
    // The bit is the same one in the three registers.
    uint64_t const bit = value & detail::field_mask<reg::ia32_perf_global_status::Trace_ToPA_PMI>;
    auto const checked = access::check_write(guest.caps, guest.msrs, index, bit);
    if (!checked) { return detail::gp_of(checked); }
    auto& status = guest.msrs.perf_global_status;
    status.raw = sets ? status.raw | bit : status.raw & ~bit;
    return {};
}

/// Emulates VMXON of the guest. Without Intel PT in VMX operation it clears TraceEn, and writes of
/// CTL raise #GP until VMXOFF. Not in SMM, where instructions of VMX raise #UD, nor in L2.
///
/// Source: REG-110, REG-121, PRG-160, PRG-173.
constexpr void vmxon(guest_pt& guest) noexcept {
    guest.msrs = access::vmxon(guest.caps, guest.msrs);
    guest.starts = guest.starts && guest.trace_en();
}
/// Emulates VMXOFF of the guest.
constexpr void vmxoff(guest_pt& guest) noexcept { guest.msrs = access::vmxoff(guest.msrs); }

namespace detail {

/// Goes to another level. If the output is translated in another way there, the guest needs a new
/// shadow.
constexpr void set_level(guest_pt& guest, guest_level level, controls const& nested) noexcept {
    auto const before = guest.current_output();
    guest.level = level;
    guest.nested = nested;
    if (guest.current_output() != before) { guest.shadow = shadow_use::needed; }
}

/// A reset, which leaves VMX operation.
constexpr void reset(guest_pt& guest, access::msr_state const& after) noexcept {
    guest.msrs = after;
    guest.pmi_pending = guest.starts = false;
    set_level(guest, guest_level::l1, {});
}

}  // namespace detail

/// Emulates a cold reset of the guest, also while L2 runs. Source: REG-090.
constexpr void cold_reset(guest_pt& guest) noexcept { detail::reset(guest, access::cold_reset()); }
/// Emulates a warm reset of the guest, also while L2 runs. Source: REG-091..093.
constexpr void warm_reset(guest_pt& guest) noexcept {
    detail::reset(guest, access::warm_reset(guest.caps, guest.msrs));
}
/// Emulates the delivery of an SMI to the guest. SMM does not run in L2: the VMM leaves L2 without
/// a VM exit to L1, and after `rsm` it enters L2 again. In SMM an SMI stays pending, and nothing
/// changes. INIT and SIPI change nothing of Intel PT.
///
/// Source: REG-094, REG-100.
constexpr void smi(guest_pt& guest) noexcept {
    if (guest.msrs.in_smm) { return; }
    guest.msrs = access::smi(guest.msrs);
    guest.starts = false;
    if (guest.level == guest_level::l2) {
        detail::set_level(guest, guest_level::smm_of_l2, guest.nested);
    }
}
/// What RSM of the guest does.
struct [[nodiscard]] guest_rsm {
    access::rsm_outcome outcome = access::rsm_outcome::resumed;
    rule broken = rule::none;
    bool trace_en_changed = false;

    constexpr explicit operator bool() const noexcept {
        return outcome == access::rsm_outcome::resumed;
    }
};

/// Emulates RSM of the guest. `guest.level` says whether it returns to L2.
///
/// Errors: the outcome and rule of `access::rsm`; nothing has changed then. After `shutdown` the
///         guest runs again after a reset or INIT.
/// Source: REG-101..103, REG-108.
[[nodiscard]] constexpr auto rsm(guest_pt& guest, access::policy const& policy = {}) noexcept
    -> guest_rsm {
    auto const checked = access::rsm(guest.caps, guest.msrs, {}, policy);
    guest_rsm const result{checked.outcome, checked.broken, checked && guest.msrs.smram_trace_en};
    if (!result) { return result; }
    using ctl = access::ia32_rtit_ctl;
    detail::set_ctl(guest, guest.msrs.ctl.with(ctl::TraceEn{guest.msrs.smram_trace_en}));
    guest.msrs.in_smm = guest.msrs.smram_trace_en = false;
    if (guest.level == guest_level::smm_of_l2) {
        detail::set_level(guest, guest_level::l2, guest.nested);
    }
    return result;
}

// ------------------------------------------------------------------------------------ migration

/// The size of a guest's image in bytes.
inline constexpr size_t guest_image_size = access::image_size + 24;

namespace detail {

inline constexpr uint64_t flag_pmi_pending = 1;
inline constexpr uint64_t flag_starts = 2;
inline constexpr uint64_t flag_in_l2 = 4;
inline constexpr uint64_t flag_smm_of_l2 = 8;
inline constexpr uint64_t flag_nested_ept = 16;

/// Serialises what a guest has beside its MSRs.
constexpr void save_rest(guest_pt const& guest, uint8_t* bytes) noexcept {
    store_le64(bytes, (guest.pmi_pending ? flag_pmi_pending : 0) |
                          (guest.starts && guest.trace_en() ? flag_starts : 0) |
                          (guest.level == guest_level::l2 ? flag_in_l2 : 0) |
                          (guest.level == guest_level::smm_of_l2 ? flag_smm_of_l2 : 0) |
                          (guest.nested.enable_ept ? flag_nested_ept : 0));
    store_le64(bytes + 8, guest.nested.secondary.raw | uint64_t{guest.nested.vm_exit.raw} << 32);
    store_le64(bytes + 16, guest.nested.vm_entry.raw);
}

/// Deserialises the same. Returns false if the flags exclude each other, or are unknown.
constexpr auto load_rest(guest_pt& guest, uint8_t const* bytes) noexcept -> bool {
    uint64_t const flags = load_le64(bytes);
    uint64_t const words = load_le64(bytes + 8);
    uint64_t const entry = load_le64(bytes + 16);
    auto const has = [=](uint64_t flag) { return (flags & flag) != 0; };
    guest.pmi_pending = has(flag_pmi_pending);
    guest.starts = has(flag_starts);
    guest.level = has(flag_in_l2)       ? guest_level::l2
                  : has(flag_smm_of_l2) ? guest_level::smm_of_l2
                                        : guest_level::l1;
    guest.nested = {{static_cast<uint32_t>(words)},
                    {static_cast<uint32_t>(words >> 32)},
                    {static_cast<uint32_t>(entry)},
                    has(flag_nested_ept)};
    bool const in_smm = guest.msrs.in_smm;
    bool const has_controls = (flags & flag_nested_ept) != 0 || words != 0 || entry != 0;
    if (guest.level == guest_level::l1 && has_controls) { return false; }
    return flags < 32 && entry <= low_bits(32) && (!guest.starts || guest.trace_en()) &&
           !(has(flag_in_l2) && (has(flag_smm_of_l2) || in_smm)) &&
           (in_smm || !has(flag_smm_of_l2));
}

}  // namespace detail

/// Serialises a guest's Intel PT between VM exit and VM entry, at whichever level it is. How the
/// VMM translates output is not part of it: `current_output` follows from `output` of the other VMM
/// and from the level.
///
/// Shape:  `access::store` of the MSRs, then three numbers of 8 bytes, little-endian. Flags: 1 for
///         a PMI that is pending, 2 if TraceEn rose and VM entry has not loaded it yet, 4 for L2, 8
///         for SMM that RSM leaves to L2, 16 for "enable EPT" of L2. The other controls of L2: the
///         secondary ones, 4 bytes, and those of VM exit; those of VM entry.
[[nodiscard]] constexpr auto store(guest_pt const& guest) noexcept -> byte_array<guest_image_size> {
    byte_array<guest_image_size> image;
    auto const msrs = access::store(guest.msrs);
    copy_bytes(image.data(), msrs.data(), access::image_size);
    detail::save_rest(guest, image.data() + access::image_size);
    return image;
}

/// Loads an image into a guest whose `caps` and `output` are set. With shadow tables a guest that
/// traces needs a new shadow before VM entry. The bytes are untrusted.
///
/// Errors: those of `access::load`; `unknown_flags`; `refused` with the rule by which a VM entry
///         with the controls of L2 would fail. Nothing has changed then.
[[nodiscard]] constexpr auto load(guest_pt& guest, byte_view image) noexcept
    -> access::load_result {
    if (image.size() < access::image_size) { return access::load(guest.caps, image); }
    auto const loaded = access::load(guest.caps, image.first(access::image_size));
    if (!loaded) { return loaded; }
    if (image.size() < guest_image_size) { return {access::error::truncated}; }
    if (image.size() > guest_image_size) { return {access::error::wrong_size}; }
    guest_pt made = guest;
    made.msrs = loaded.state;
    if (!detail::load_rest(made, image.data() + access::image_size)) {
        return {access::error::unknown_flags};
    }
    if (made.level != guest_level::l1) {
        rule const broken = broken_rule(guest.caps, made.nested, {});
        if (broken != rule::none) { return {access::error::refused, broken}; }
    }
    made.shadow = shadow_use::needed;
    made.hides_pend_topa_pmi = false;
    made.hidden_byte_count = 0;
    guest = made;
    return loaded;
}

/// Sets the MSRs of a guest to values that another VMM has read, for example one by one
/// (`access::set_raw`). Written by `on_wrmsr` instead, a CTL with TraceEn = 1 counts as an enable:
/// the guest gets a PSB+, and once more an interrupt that is pending. The modes of the guest, VMX
/// operation and SMM, stay.
///
/// Errors: `refused` with the MSR and the rule by which the guest cannot have a value. Nothing has
///         changed then.
/// Source: REG-056, REG-063..066, PRG-173.
[[nodiscard]] constexpr auto restore(guest_pt& guest, access::msr_state msrs) noexcept
    -> access::load_result {
    using status = access::ia32_rtit_status;
    msrs.status = msrs.status.with(status::TriggerEn{access::trigger_en(msrs.ctl, msrs.status)});
    msrs.in_vmx_operation = guest.msrs.in_vmx_operation;
    msrs.in_smm = guest.msrs.in_smm;
    msrs.smram_trace_en = guest.msrs.smram_trace_en;
    auto const checked = access::load(guest.caps, access::store(msrs));
    if (!checked) { return checked; }
    guest.msrs = checked.state;
    guest.starts = false;
    guest.shadow = shadow_use::needed;
    guest.hides_pend_topa_pmi = false;
    guest.hidden_byte_count = 0;
    return checked;
}

}  // namespace ptspec::vmx
