// SPDX-License-Identifier: BSL-1.0
#pragma once

// Values that a row prints: registers, fields, and the time of an MTC.

#include "state.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace msr_plan {

/// The time of an MTC. Source: PRG-137.
inline void next_mtc(row_state& row, words& in) {
    in.expect("MTC");
    in.expect("payload");
    auto const payload = in.number("the payload of an MTC");
    if (!row.from.tsc || !row.from.ctc || !row.from.fc || payload > 0xFF) {
        throw refusal{"the time of an MTC needs TSC, TMA CTC, FC and a payload of 8 bits"};
    }
    auto const shift = static_cast<unsigned>(row.on.now.ctl.get<reg::ia32_rtit_ctl::MTCFreq>());
    unsigned const bits = shift + 8 < 16 ? shift + 8 : 16;
    std::uint64_t const d = ((payload << shift) - *row.from.ctc) & low_bits(bits);
    std::uint64_t const time = *row.from.tsc - *row.from.fc +
                               d * row.from.caps.leaf_15_ebx.raw / row.from.caps.leaf_15_eax.raw;
    say(row, "d=" + hex(d));
    say(row, "time=" + hex(time));
}

template <class Word>
inline auto field_of(Word now, std::string_view name) -> std::optional<std::uint64_t> {
    auto const* const field = print::row_list_of<Word>().field({name.data(), name.size()});
    if (field == nullptr) { return std::nullopt; }
    return now.raw >> field->row.lsb & low_bits(field->row.msb - field->row.lsb + 1);
}
/// A register, or a field of IA32_RTIT_CTL or IA32_RTIT_STATUS, by its name.
inline auto value_of(row_state const& row, std::string_view name) -> std::optional<std::string> {
    if (auto const value = field_of(row.on.now.ctl, name)) { return hex(*value); }
    if (auto const value = field_of(row.on.now.status, name)) { return hex(*value); }
    if (name == "VMX") { return row.on.now.in_vmx_operation ? "1" : "0"; }
    if (name == "SMM") { return row.on.now.in_smm ? "1" : "0"; }
    auto const index = pc_notation::index_of(name);
    if (!access::is_covered_msr(index)) { return std::nullopt; }
    return word(access::value_of(row.on.now, index));
}
inline void claim_all(row_state& row) {
    for (char const* const name : {"Error", "Stopped", "TriggerEn", "TraceEn", "560", "561", "570",
                                   "571", "572", "580", "581", "582", "583", "38E", "VMX", "SMM"}) {
        say(row, std::string{name} + "=" + *value_of(row, name));
    }
}

}  // namespace msr_plan
