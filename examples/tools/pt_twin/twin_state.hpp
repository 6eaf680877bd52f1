// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a twin knows between two packets.

#include "choices.hpp"
#include "script_run.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pt_twin {

/// Whether TraceEn is 0; it is 1 and the code is not traced; the code is traced.
enum class tracing : std::uint8_t { off, out, on };

/// The vector of interrupts: packets do not say which it was.
constexpr std::uint8_t interrupt_vector = 0x20;

/// The state of a twin, and what it is derived from. Parts refer to others.
struct twin_state {
    twin_state(recording const& from, configuration const& how, std::string_view kind_name,
               machine& on, std::string* script, std::uint32_t forgotten)
        : all{from.all},
          begin{from.begin - from.alignment},
          ends_in_pads{from.ends_in_pads},
          with{how},
          is_broadwell{kind_name == "broadwell"},
          evidence{from, with, kind_name},
          run{with, on, script},
          choices{forgotten} {}
    twin_state(twin_state const&) = delete;

    std::span<seen const> all;
    std::uint64_t begin;  ///< the offset of a multiple of 16 in the output buffer
    bool ends_in_pads;
    configuration with;
    bool is_broadwell;
    pt_twin::evidence evidence;
    script_run run;
    pt_twin::choices choices;
    bool is_told = false;          ///< the cycles of the next CYC have passed
    std::vector<bool> branches{};  ///< not yet an event
    tracing now = tracing::off;
};

}  // namespace pt_twin
