// SPDX-License-Identifier: BSL-1.0
#pragma once

// The statements that set up a logical processor and its memory. They print nothing.

#include "session.hpp"

#include <ptspec/cpu/presets.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace msr_script {

inline void choose_cpu(session& in, std::string_view name) {
    auto const found = cpu::preset::find({name.data(), name.size()});
    if (!found) { throw refusal{"no such processor: " + quoted(name) + "; --help lists them"}; }
    in.of = found->value;
    in.reset();
}

inline void cpu_statement(session& in, words& given) {
    auto const name = given.next("a profile or a processor");
    given.end();
    choose_cpu(in, name);
}

inline void maxphyaddr(session& in, words& given) {
    auto const bits = given.number("MAXPHYADDR", 10);
    given.end();
    if (bits < 32 || bits > 52) { throw refusal{"MAXPHYADDR is 32 to 52"}; }
    in.of.leaf_80000008_eax = in.of.leaf_80000008_eax.with(
        reg::cpuid_80000008h_eax::MAXPHYADDR{wrapped{bits}});
}

inline void set(session& in, words& given) {
    auto const name = given.next("a register");
    given.expect("=");
    auto const value = given.number("its value");
    given.end();
    with_register(in, name, [&]<class Word>(Word& word) {
        if constexpr (same_as<Word, reg::ia32_vmx_misc>) {
            if (value > 1) { throw refusal{"VMX_MISC14 is 0 or 1"}; }
            word = word.with(reg::ia32_vmx_misc::INTEL_PT{value == 1});
        } else {
            word = {value | Word::forced_1_mask()};
        }
    });
    in.msrs_at_start.reset();
    in.set_state(in.now);
}

inline void store(session& in, words& given) {
    auto const address = given.number("an address");
    given.expect("]");
    given.expect("=");
    auto const value = given.number("a word");
    given.end();
    if (!is_aligned(address, 8)) {
        throw refusal{"the address of a 64-bit word is a multiple of 8"};
    }
    if (!in.memory.put(address, value)) {
        throw refusal{"more than " + std::to_string(physical_memory::max_words) +
                      " words of memory"};
    }
}

// ------------------------------------------------------------------------------------ the model

inline void smrr(session& in, words& given) {
    auto const base = given.number("the value of IA32_SMRR_PHYSBASE");
    auto const mask = given.number("the value of IA32_SMRR_PHYSMASK");
    given.end();
    in.how.restricted.smrr_physbase = {base};
    in.how.restricted.smrr_physmask = {mask};
}

/// Takes the address of the APIC page, or IA32_APIC_BASE. The APIC is enabled in both cases.
inline void apic(session& in, words& given) {
    auto const base = given.number("the value of IA32_APIC_BASE");
    given.end();
    in.apic = reg::ia32_apic_base{base}.with(reg::ia32_apic_base::EN{true});
}

inline void pmi_lead(session& in, words& given) {
    auto const bytes = given.number("a number of bytes");
    given.end();
    if (bytes > low_bits(32)) { throw refusal{"a PMI leads by less than 2^32 bytes"}; }
    in.how.pmi_lead_bytes = static_cast<std::uint32_t>(bytes);
}

inline void restricted(session& in, words& given) {
    using engine::restricted_access;
    bool const drops = given.accept("drop");
    if (!drops && !given.accept("error")) { throw refusal{"restricted takes drop or error"}; }
    given.end();
    in.how.when_restricted = drops ? restricted_access::drop : restricted_access::error;
}

}  // namespace msr_script
