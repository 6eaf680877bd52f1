// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/check.hpp>
#include <ptspec/access/enables.hpp>
#include <ptspec/access/pt_msrs.hpp>
#include <ptspec/base/bytes.hpp>

/// Serialises an `msr_state` to bytes, for storage or migration to another processor.
namespace ptspec::access {

/// Why an image was rejected.
enum class error : uint8_t {
    none,
    truncated,      ///< fewer bytes than the size in the header, or than a header has
    not_an_image,   ///< the magic number does not match
    other_version,  ///< an image of an unknown format version
    wrong_size,     ///< more bytes than the image has
    unknown_flags,  ///< unknown flags, or flags that exclude each other
    refused,        ///< the processor cannot hold a value; the result names the MSR and the rule
    out_of_range,   ///< a number out of range
    no_room,        ///< the output buffer is too small
};

/// The format version that `store` writes.
inline constexpr uint32_t image_version = 1;

namespace detail {

/// "PTSTATE" and a zero byte, as a little-endian number.
inline constexpr uint64_t image_magic = 0x0045'5441'5453'5450;

inline constexpr uint64_t flag_in_vmx_operation = 1;
inline constexpr uint64_t flag_in_smm = 2;
inline constexpr uint64_t flag_smram_trace_en = 4;

/// The related MSRs of an image, which follow those of `pt_msrs`.
inline constexpr uint32_t related_msrs[] = {
    reg::ia32_xss::address,
    reg::ia32_perf_global_status::address,
    reg::ia32_debugctl::address,
};
inline constexpr size_t related_count = sizeof related_msrs / sizeof related_msrs[0];
inline constexpr size_t image_head = 16;

}  // namespace detail

/// The size of an image in bytes.
inline constexpr size_t image_size = detail::image_head +
                                     8 * (pt_msrs.size() + detail::related_count + 1);

/// Serialises a state.
///
/// Shape: a header of 16 bytes: `PTSTATE` and a zero byte, then the version and the size in bytes,
///        4 bytes each. Then 8 bytes for each MSR: CTL, STATUS, OUTPUT_BASE, OUTPUT_MASK_PTRS,
///        CR3_MATCH, ADDR0_A to ADDR3_B, IA32_XSS, IA32_PERF_GLOBAL_STATUS, IA32_DEBUGCTL. Then 8
///        bytes of flags: 1 for VMX operation, 2 for SMM, 4 for the TraceEn that the SMI saved. All
///        numbers are little-endian.
[[nodiscard]] constexpr auto store(msr_state const& state) noexcept -> byte_array<image_size> {
    byte_array<image_size> image;
    uint8_t* next = image.data();
    store_le64(next, detail::image_magic);
    store_le64(next + 8, uint64_t{image_size} << 32 | image_version);
    next += detail::image_head;
    auto const add = [&](uint64_t value) {
        store_le64(next, value);
        next += 8;
    };
    for (pt_msr const& msr : pt_msrs) { add(value_of(state, msr.index)); }
    for (msr_index const index : detail::related_msrs) { add(value_of(state, index)); }
    store_le64(next, (state.in_vmx_operation ? detail::flag_in_vmx_operation : 0) |
                         (state.in_smm ? detail::flag_in_smm : 0) |
                         (state.smram_trace_en ? detail::flag_smram_trace_en : 0));
    return image;
}

/// A deserialised state, or why the image was rejected.
struct load_result {
    access::error error = access::error::none;
    rule broken = rule::none;  ///< for `refused`: the rule that the value breaks
    msr_index msr{};           ///< for `refused`: the MSR
    msr_state state{};         ///< the state after a cold reset on an error

    constexpr explicit operator bool() const noexcept { return error == access::error::none; }
};

namespace detail {

constexpr auto refused_value(rule broken, msr_index index) noexcept -> load_result {
    return {access::error::refused, broken, index, {}};
}

}  // namespace detail

/// The rule by which a processor can never hold a value in a covered MSR, or none: the value is not
/// the initial one of an MSR that the processor lacks, or no WRMSR writes it.
///
/// Source: REG-012..015, REG-024..044, REG-052..055, REG-070..076, REG-140, REG-204.
[[nodiscard]] constexpr auto broken_rule_of_value(capabilities const& caps, msr_index index,
                                                  uint64_t value) noexcept -> rule {
    if (auto const absent = detail::rule_of_absence(caps, index); absent != rule::none) {
        return value == value_of(msr_state{}, index) ? rule::none : absent;
    }
    if (index == ia32_rtit_ctl::address) { return broken_rule(caps, ia32_rtit_ctl{value}); }
    if (index == reg::ia32_perf_global_status::address) {
        // Its bits can only be set through the SET register.
        index = reg::ia32_perf_global_status_set::address;
    }
    return broken_rule(caps, msr_state{}, index, value);
}

/// Deserialises a state and checks that the processor `caps` can hold it. The bytes are untrusted.
///
/// Errors: those of `access::error`. A value is refused by the rule that a WRMSR of it would break
///         on this processor; by REG-056 when TriggerEn does not follow from the other bits; by
///         REG-121 when TraceEn is 1 in VMX operation and the processor does not allow it.
/// Source: REG-056, REG-121, and the rules of `find_broken_rules`.
[[nodiscard]] constexpr auto load(capabilities const& caps, byte_view image) noexcept
    -> load_result {
    if (image.size() < 8) { return {access::error::truncated}; }
    if (load_le64(image.data()) != detail::image_magic) { return {access::error::not_an_image}; }
    if (image.size() < detail::image_head) { return {access::error::truncated}; }
    uint64_t const version_and_size = load_le64(image.data() + 8);
    if ((version_and_size & low_bits(32)) != image_version) {
        return {access::error::other_version};
    }
    if (version_and_size >> 32 != image_size) { return {access::error::wrong_size}; }
    if (image.size() < image_size) { return {access::error::truncated}; }
    if (image.size() > image_size) { return {access::error::wrong_size}; }

    load_result loaded;
    uint8_t const* from = image.data() + detail::image_head;
    auto const load_one = [&](msr_index index) {
        uint64_t const value = load_le64(from);
        from += 8;
        if (!loaded) { return; }
        auto const broken = broken_rule_of_value(caps, index, value);
        if (broken != rule::none) { loaded = detail::refused_value(broken, index); }
        set_raw(loaded.state, index, value);
    };
    for (pt_msr const& msr : pt_msrs) { load_one(msr.index); }
    for (msr_index const index : detail::related_msrs) { load_one(index); }
    if (!loaded) { return detail::refused_value(loaded.broken, loaded.msr); }
    uint64_t const flags = load_le64(from);
    msr_state& state = loaded.state;
    state.in_vmx_operation = (flags & detail::flag_in_vmx_operation) != 0;
    state.in_smm = (flags & detail::flag_in_smm) != 0;
    state.smram_trace_en = (flags & detail::flag_smram_trace_en) != 0;
    if (flags > 7 || (state.smram_trace_en && !state.in_smm)) {
        return {access::error::unknown_flags};
    }
    if (state.status.get<ia32_rtit_status::TriggerEn>() != trigger_en(state.ctl, state.status)) {
        return detail::refused_value(rule::REG_056, ia32_rtit_status::address);
    }
    bool const trace_en = state.ctl.get<ia32_rtit_ctl::TraceEn>();
    if (trace_en && detail::is_disallowed_in_vmx(caps, state, state.ctl, {})) {
        return detail::refused_value(rule::REG_121, ia32_rtit_ctl::address);
    }
    return loaded;
}

}  // namespace ptspec::access
