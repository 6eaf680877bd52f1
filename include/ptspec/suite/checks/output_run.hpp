// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/checks/enabling.hpp>

/// What the checks of output share.
namespace ptspec::suite::checks::detail {

using namespace ptspec::detail;

/// Requires that nothing ended tracing.
template <target T>
constexpr void require_no_end(armed<T>& on, rule which, traced const& got) noexcept {
    on.require(!got.status.template get<status::Error>(), which, "Error", 0, 1, status::address);
    on.require(!got.status.template get<status::Stopped>(), which, "Stopped", 0, 1,
               status::address);
}

/// Requires the packets of `snippets::branches`.
template <target T>
constexpr void require_branches(armed<T>& on, rule which) noexcept {
    wanted const body[] = {expected::taken, expected::not_taken,
                           expected::tip_to(snippets::branches.marks[0])};
    on.expect_body(which, snippets::branches, body);
}

/// Runs `snippets::branches`, and requires that its bytes went along a path: they fill each stretch
/// but the last, where OutputOffset counts from its first byte. `base` and `index` are OUTPUT_BASE
/// and MaskOrTableOffset after the run.
template <size_t Count, target T>
constexpr void follow(armed<T>& on, rule which, ctl with, stretch const (&path)[Count],
                      uint64_t base, uint64_t index) noexcept {
    auto const got = on.run(snippets::branches, with);
    if (!got.has_run) { return; }
    require_no_end(on, which, got);
    on.require(got.base.raw == base, which, "OUTPUT_BASE", base, got.base.raw,
               ia32_rtit_output_base::address);
    on.require(got.index() == index, which, "MaskOrTableOffset", index, got.index(),
               ia32_rtit_output_mask_ptrs::address);
    stretch all[Count] = {};
    for (size_t i = 0; i < Count; ++i) { all[i] = path[i]; }
    auto& last = all[Count - 1];
    uint64_t const room = last.end - last.first;
    on.require(got.offset() <= room, which, "OutputOffset", room, got.offset(),
               ia32_rtit_output_mask_ptrs::address);
    if (on.is_broken()) { return; }
    last.end = last.first + got.offset();
    on.collect(all, on.bytes());
    on.read_bytes(with);
    require_branches(on, which);
}

/// Requires that output with these values is an operational error: Error = 1, nothing stored, and
/// the output MSRs as they were.
template <target T>
constexpr void refuse_output_now(armed<T>& on, rule which, ctl with) noexcept {
    auto const before = on.state().output;
    on.require(!status_of(on).template get<status::Error>(), "OUT-008"_rule,
               "Error while TraceEn is 0", 0, 1, status::address);
    auto const got = on.run(snippets::branches, with);
    if (!got.has_run) { return; }
    on.require(got.status.template get<status::Error>(), which, "Error", 1, 0, status::address);
    on.require(!got.status.template get<status::TriggerEn>(), "REG-056"_rule, "TriggerEn", 0, 1,
               status::address);
    on.require(got.base == before.base, which, "OUTPUT_BASE", before.base.raw, got.base.raw,
               ia32_rtit_output_base::address);
    on.require(got.pointers == before.mask_ptrs, which, "OUTPUT_MASK_PTRS", before.mask_ptrs.raw,
               got.pointers.raw, ia32_rtit_output_mask_ptrs::address);
    on.require(on.is_clear({4096, 8192}) && on.is_clear({3 * 4096, 8 * 4096}), which,
               "bytes of trace after an error");
}
template <target T>
constexpr void refuse_output(armed<T>& on, rule which, ctl with, uint64_t base, uint64_t index,
                             uint64_t offset) noexcept {
    on.clear();
    if (on.set(status::address, 0) && on.set_output(base, index, offset)) {
        refuse_output_now(on, which, with);
    }
}

}  // namespace ptspec::suite::checks::detail
