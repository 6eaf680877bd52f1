// SPDX-License-Identifier: BSL-1.0
#include "held.h"

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/model_kind.hpp>
#include <ptspec/suite/model_target.hpp>

#include <new>

namespace {

using namespace ptspec;
using suite::model_target;

alignas(model_target) unsigned char place[sizeof(model_target)];
auto now() -> model_target& { return *std::launder(reinterpret_cast<model_target*>(place)); }

auto result_of(suite::msr_result const& one) -> held_result {
    return {one.is_done, one.vector, one.is_asked, one.value};
}

}  // namespace

void held_start(unsigned preset, bool has_tsx, int kind, uint64_t code, uint8_t* bytes,
                uint32_t pages) {
    auto one = cpu::preset::all.begin();
    for (unsigned i = 0; i < preset; ++i) { ++one; }
    auto caps = (*one).value;
    caps.leaf_07_0_ebx = caps.leaf_07_0_ebx.with(reg::cpuid_07h_0_ebx::RTM{has_tsx});
    auto const options = kind < 0 ? engine::options_of(caps)
                                  : engine::model_kinds[static_cast<unsigned>(kind)].options;
    new (place) model_target{caps, options, bytes, pages, suite::defect::none, {.code = code}};
}
auto held_stray_bytes() -> uint64_t { return now().stray_bytes(); }

auto held_read(uint32_t index) -> held_result { return result_of(now().read(index)); }
auto held_write(uint32_t index, uint64_t value) -> held_result {
    return result_of(now().write(index, value));
}
void held_query(uint32_t leaf, uint32_t subleaf, uint32_t* registers) {
    auto const got = now().query(leaf, subleaf);
    registers[0] = got.eax;
    registers[1] = got.ebx;
    registers[2] = got.ecx;
    registers[3] = got.edx;
}
auto held_memory_base() -> uint64_t { return now().memory().base.value; }
auto held_abilities() -> uint32_t { return now().abilities().bits; }
auto held_address_of(void const* snippet) -> uint64_t {
    return now().address_of(*static_cast<suite::snippet const*>(snippet));
}
auto held_execute(void const* snippet, uint64_t on, uint64_t off) -> held_run {
    auto const got = now().execute(*static_cast<suite::snippet const*>(snippet), on, off);
    return {result_of(got.enabled), result_of(got.disabled), got.tsc_before, got.tsc_after};
}
auto held_cr3() -> uint64_t { return now().cr3(); }
auto held_pmi() -> bool { return now().pmi(); }
auto held_xsaves(uint64_t* quadwords) -> held_result {
    reg::xsave_pt_state image{};
    auto const got = result_of(now().xsaves(image));
    for (unsigned i = 0; i < 16; ++i) { quadwords[i] = image.quadwords[i]; }
    return got;
}
auto held_xrstors(uint64_t const* quadwords) -> held_result {
    reg::xsave_pt_state image{};
    for (unsigned i = 0; i < 16; ++i) { image.quadwords[i] = quadwords[i]; }
    return result_of(now().xrstors(image));
}
auto held_reset(bool is_cold) -> bool {
    return now().reset(is_cold ? suite::reset_kind::cold : suite::reset_kind::warm);
}
