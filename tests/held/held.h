// SPDX-License-Identifier: BSL-1.0

// The model as a target in another namespace: target.cpp is compiled with -Dptspec=held and with
// the headers of a mutant, oracle.cpp with those of the source tree.
#pragma once

#include <stdint.h>

struct held_result {
    bool is_done;
    uint8_t vector;
    bool is_asked;
    uint64_t value;
};
struct held_run {
    held_result enabled;
    held_result disabled;
    uint64_t tsc_before;
    uint64_t tsc_after;
};

extern "C" {
// Begins with a processor after a cold reset: a preset by its number, with TSX or without, and a
// kind by its number, or its own kind; its snippets are at `code`.
void held_start(unsigned preset, bool has_tsx, int kind, uint64_t code, uint8_t* bytes,
                uint32_t pages);
uint64_t held_stray_bytes(void);

held_result held_read(uint32_t index);
held_result held_write(uint32_t index, uint64_t value);
void held_query(uint32_t leaf, uint32_t subleaf, uint32_t* registers);
uint64_t held_memory_base(void);
uint32_t held_abilities(void);
uint64_t held_address_of(void const* snippet);
held_run held_execute(void const* snippet, uint64_t on, uint64_t off);
uint64_t held_cr3(void);
bool held_pmi(void);
held_result held_xsaves(uint64_t* quadwords);
held_result held_xrstors(uint64_t const* quadwords);
bool held_reset(bool is_cold);
}
