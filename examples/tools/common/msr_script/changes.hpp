// SPDX-License-Identifier: BSL-1.0
#pragma once

// The statements that change the state of a logical processor. They implement no rule themselves:
// each calls the library and prints the result.

#include "session.hpp"

#include <ptspec/access/resets.hpp>
#include <ptspec/access/xsave.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace msr_script {

// ------------------------------------------------------------------------------------ MSRs

inline void write(session& in, std::uint32_t index, std::uint64_t value) {
    auto const done = access::effect_of_write(in.of, in.now, index, value);
    if (!done) {
        reported_rules broken;
        access::find_broken_rules(in.of, in.now, index, value, {}, into(broken));
        return in.gp(broken);
    }
    using reset = reg::ia32_perf_global_status_reset;
    if (index == reset::address && reset{value}.get<reset::Trace_ToPA_PMI>()) {
        in.pmi_pending = false;
    }
    in.apply(done);
    in.line("ok");
}

inline void wrmsr(session& in, words& given, std::uint32_t index) {
    given.expect("=");
    auto const value = given.number("the value");
    given.end();
    write(in, index, value);
}

inline void rdmsr(session& in, words& given, std::uint32_t index) {
    given.end();
    bool const is_mask_ptrs = index == reg::ia32_rtit_output_mask_ptrs::address;
    bool const lags = in.output_is_on() && in.msrs_at_start &&
                      (is_mask_ptrs || index == reg::ia32_rtit_output_base::address);
    auto const got = access::read(in.of, lags ? *in.msrs_at_start : in.now, index);
    if (!got) { return in.gp({got.verdict.broken}); }
    in.line(hex(got.value, is_mask_ptrs ? 16 : 1));
}

inline void choose_scheme(session& in, words& given) {
    using cpu::output_scheme;
    if (given.accept("single")) {
        in.scheme = output_scheme::single_range;
    } else if (given.accept("topa")) {
        in.scheme = output_scheme::topa;
    } else if (given.accept("fabric")) {
        in.scheme = output_scheme::fabric;
    } else {
        throw refusal{"a scheme is single, topa or fabric"};
    }
    given.end();
}

inline void enable(session& in, words& given) {
    using ctl = reg::ia32_rtit_ctl;
    using cpu::output_scheme;
    given.end();
    auto value = in.now.ctl.with(ctl::TraceEn{true});
    if (!value.get<ctl::BranchEn>() && !value.get<ctl::User>() && !value.get<ctl::OS>()) {
        value = value.with(ctl::BranchEn{true}, ctl::User{true}, ctl::OS{true});
    }
    if (in.scheme) {
        value = value.with(ctl::ToPA{*in.scheme == output_scheme::topa},
                           ctl::FabricEn{*in.scheme == output_scheme::fabric});
    } else if (!value.get<ctl::FabricEn>()) {
        value = value.with(ctl::ToPA{true});
    }
    write(in, ctl::address, value.raw);
}

inline void disable(session& in, words& given) {
    using ctl = reg::ia32_rtit_ctl;
    given.end();
    write(in, ctl::address, in.now.ctl.with(ctl::TraceEn{false}).raw);
}

// ------------------------------------------------------------------------------------ trace

inline void print_written(session& in, engine::write_result const& what) {
    bool const in_memory = what.stored != 0 && what.has_address;
    std::string const at = " first " + hex(what.first) + " last " + hex(what.last);
    in.line("stored " + hex(what.stored) + " lost " + hex(what.lost) + " PMI " + hex(what.pmis) +
            (in_memory ? at : ""));
}

inline void write_trace(session& in, words& given) {
    static constexpr std::uint8_t pads[0x1'0000] = {};
    constexpr std::uint64_t most = 0x1'0000'0000;
    auto count = given.number("a number of bytes");
    given.end();
    if (count > most) { throw refusal{"at most " + hex(most) + " bytes are written at once"}; }
    engine::write_result done;
    in.psb_due = in.psb_due && count == 0;
    while (count != 0) {
        auto const piece = static_cast<std::size_t>(std::min<std::uint64_t>(count, sizeof(pads)));
        done += in.output.write(in.now, in.memory, byte_view{pads, piece});
        count -= piece;
    }
    in.output.write_back(in.now);
    in.pmi_pending = in.pmi_pending || done.pmis != 0;
    in.total += done;
    print_written(in, done);
}

inline void total(session& in, words& given) {
    given.end();
    print_written(in, in.total);
}

// ------------------------------------------------------------------------------------ events

inline void cold_reset(session& in, words& given) {
    given.end();
    in.reset();
    in.line("ok");
}

/// An event whose only effect is a change of state.
template <auto After>
void event(session& in, words& given) {
    given.end();
    in.set_state(After(in));
    in.line("ok");
}
inline constexpr auto warm_reset =
    event<[](session const& in) { return access::warm_reset(in.of, in.now); }>;
inline constexpr auto init = event<[](session const& in) {
    // The reset vector: FFFF0000 + FFF0.
    bool const linear = in.of.ip_payload() == cpu::ip_payload::linear;
    return access::init(in.of, in.now, {.ip = linear ? 0xFFFF'FFF0U : 0xFFF0U});
}>;
inline constexpr auto smi = event<[](session const& in) { return access::smi(in.now); }>;
inline constexpr auto vmxon = event<[](session const& in) { return access::vmxon(in.of, in.now); }>;
inline constexpr auto vmxoff = event<[](session const& in) { return access::vmxoff(in.now); }>;

inline void rsm(session& in, words& given) {
    given.end();
    auto const got = access::rsm(in.of, in.now);
    switch (got.outcome) {
        case access::rsm_outcome::resumed: in.apply(got.effect); return in.line("ok");
        case access::rsm_outcome::shutdown:
            return in.line("shutdown " + ids_of(reported_rules{got.broken}));
        case access::rsm_outcome::undefined_opcode: return in.line("UD");
    }
}

// ------------------------------------------------------------------------------------ XSAVES

inline void xsaves(session& in, words& given) {
    using area = reg::xsave_pt_state;
    given.end();
    auto const done = access::xsaves(in.of, in.now);
    auto const& image = done.image;
    in.line(hex(image.get<area::IA32_RTIT_CTL>().raw) + ' ' +
            hex(image.get<area::IA32_RTIT_OUTPUT_BASE>().raw) + ' ' +
            hex(image.get<area::IA32_RTIT_OUTPUT_MASK_PTRS>()) + ' ' +
            hex(image.get<area::IA32_RTIT_STATUS>().raw) + ' ' +
            hex(image.get<area::IA32_RTIT_CR3_MATCH>().raw) + ' ' +
            hex(image.get<area::IA32_RTIT_ADDR0_A>().raw) + ' ' +
            hex(image.get<area::IA32_RTIT_ADDR0_B>().raw) + ' ' +
            hex(image.get<area::IA32_RTIT_ADDR1_A>().raw) + ' ' +
            hex(image.get<area::IA32_RTIT_ADDR1_B>().raw));
    in.set_state(done.state);
}

inline void xrstors(session& in, words& given) {
    using area = reg::xsave_pt_state;
    access::xrstors_result done;
    if (given.accept("init")) {
        given.end();
        done = access::xrstors_init(in.now);
    } else {
        auto image = area{}.with(
            area::IA32_RTIT_OUTPUT_MASK_PTRS{access::cold_reset().output.mask_ptrs});
        for (auto& quadword : image.quadwords) {
            if (given.at_end()) { break; }
            quadword = given.number("a quadword");
        }
        given.end();
        done = access::xrstors(in.of, in.now, image);
    }
    if (!done) {
        reported_rules broken{done.effect.verdict.broken};
        if (done.violated.broken != rule::none) { broken.push_back(done.violated.broken); }
        return in.gp(broken);
    }
    in.apply(done.effect);
    in.line("ok");
}

}  // namespace msr_script
