// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/capabilities.hpp>

// The words of a processor that a check of an MSR reads, as parameters, in the order of
// `capability_words` in claims.py; and the capabilities made of them.
#define WORDS                                                                                      \
    uint32_t leaf_07_0_ebx, uint32_t leaf_14_0_eax, uint32_t leaf_14_0_ebx,                        \
        uint32_t leaf_14_0_ecx, uint32_t leaf_14_1_eax, uint32_t leaf_14_1_ebx,                    \
        uint32_t leaf_80000008_eax, uint32_t leaf_0d_1_eax, uint32_t leaf_0d_1_ecx,                \
        uint64_t perf_capabilities, uint64_t vmx_misc

#define CAPS                                                                                       \
    {                                                                                              \
        .leaf_07_0_ebx = {leaf_07_0_ebx}, .leaf_0d_1_eax = {leaf_0d_1_eax},                        \
        .leaf_0d_1_ecx = {leaf_0d_1_ecx}, .leaf_14_0_eax = {leaf_14_0_eax},                        \
        .leaf_14_0_ebx = {leaf_14_0_ebx}, .leaf_14_0_ecx = {leaf_14_0_ecx},                        \
        .leaf_14_1_eax = {leaf_14_1_eax}, .leaf_14_1_ebx = {leaf_14_1_ebx},                        \
        .leaf_80000008_eax = {leaf_80000008_eax}, .perf_capabilities = {perf_capabilities},        \
        .vmx_misc = {                                                                              \
            vmx_misc                                                                               \
        }                                                                                          \
    }
