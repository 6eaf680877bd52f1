// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/image.hpp>
#include <ptspec/vmx/guest_pt.hpp>

/// A guest's Intel PT as bytes, for migration.
namespace ptspec::vmx {

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
