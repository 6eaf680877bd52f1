// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/rule.hpp>
#include <ptspec/trace/tsc_change.hpp>

/// What `keep_part` keeps of a trace, and what it reports.
namespace ptspec::edit {

/// Whose part of a trace is kept.
enum class side : uint8_t { guest, host };

/// In which operation TraceEn is 1.
///
/// Source: PRG-163.
enum class traced_in : uint8_t {
    both,      ///< system-wide
    non_root,  ///< VM entries set TraceEn, VM exits clear it
    root,      ///< VM exits set TraceEn, VM entries clear it
};

/// What `keep_part` keeps, and how.
struct part_options {
    static constexpr uint64_t any_vmcs = ~uint64_t{0};

    side keep = side::guest;
    traced_in where = traced_in::both;
    /// The address of the guest's VMCS, as VMCS packets have it. Other guests belong to neither
    /// side.
    uint64_t vmcs = any_vmcs;
    /// A VM exit after which the guest continues at the same or the next instruction leaves no
    /// trace. If false, and where this is not possible, tracing is disabled and enabled around it.
    bool hides_exits = true;
    /// `other_tsc` changes a TSC of the other side to one of the side that is kept. If false, TSC
    /// and TMA of the other side are removed.
    bool has_other_tsc = false;
    trace::tsc_change other_tsc{};
};

/// The result of `keep_part`.
struct [[nodiscard]] kept_part {
    rule broken = rule::none;   ///< that the first damage breaks
    uint64_t offset = 0;        ///< of that damage, in the original
    uint64_t kept = 0;          ///< bytes of packets that remain, without PADs
    uint64_t unattributed = 0;  ///< bytes of packets that may be of either side: removed
    uint64_t incomplete = 0;    ///< bytes of an incomplete packet at the end: removed
    uint64_t left = 0;          ///< VM transitions to the other side
    uint64_t hidden = 0;        ///< how many of them leave no trace

    constexpr explicit operator bool() const noexcept { return broken == rule::none; }
};

}  // namespace ptspec::edit
