// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/edit/detail/part/keeper.hpp>

/// The part of a trace that is the guest's, or the host's.
///
/// With the three "conceal VMX from PT" controls, the trace of a guest that traces itself (PRG-163)
/// shows no VMX operation: `count_vmx_packets` is 0. Without them, `keep_part` keeps the guest's or
/// the host's part of a trace of both, or removes the packets of VMX from a trace of the guest
/// alone. It needs the PIPs that these controls hide: a trace that was recorded with one of them
/// cannot be divided.
namespace ptspec::edit {

/// Keeps the guest's or the host's packets of a trace, in place. Packets that are removed become
/// PADs, here or later; the size does not change. To a decoder the result is the trace of that side
/// alone.
///
/// PIP.NR shows to which side a packet belongs, and VMCS packets do if the guest is one of several.
/// What cannot be attributed is removed: after an OVF or damage, until the next PIP; a PSB+ with an
/// IP but without a PIP, as without OS. A TIP.PGE directly after a CBR is one of an enable.
///
/// - PIP: NR becomes 0. That of a VM transition remains only if CR3 is another one than before:
///   then it is the PIP of a CR3 write that exited.
/// - VMCS, and the events of VM transitions (CFE, EVD), are removed from a guest's part.
/// - Where a side is left and entered again, TIP becomes TIP.PGD without IP and TIP.PGE, with the
///   MODE.Exec that it needs. VM exits can be hidden: see `part_options`.
/// - IPs whose last IP was removed get a longer form. There is room in what was removed.
/// - A PSB+ of the other side remains with the status of a side that is not traced.
/// - TSC and TMA of the other side are removed or changed. MTC, CYC and CBR of both sides remain,
///   because time also passes while the other side executes.
///
/// Near RETs of a guest are compressed against a stack of CALLs that the host's CALLs and RETs also
/// changed. Record with DisRETC = 1, or some decoders (GEN-134) may misread RETs after a VM exit.
///
/// Errors: the rule that the first damage breaks. Damage becomes an OVF, if there is room for one,
///         and packets are kept again from the next PSB and PIP on. Bytes before the damage that
///         were taken for packets may remain.
/// Source: SDM vol. 3, "Intel Processor Trace and VMX"; PRG-163, PRG-164, GEN-028, GEN-100,
///         GEN-101, GEN-176, GEN-181, GEN-229, GEN-236, GEN-271..275, GEN-278, GEN-306,
///         PKT-053..062, PKT-076, PKT-081, PKT-082, PKT-136, PKT-140, PKT-151..156, PKT-163,
///         PKT-250..256, PKT-274, PKT-317.
template <class Packets = packet::all>
constexpr auto keep_part(trace_memory whole, part_options const& options = {}) noexcept
    -> kept_part {
    return detail::part_keeper<Packets>{whole, options}.run();
}

}  // namespace ptspec::edit
