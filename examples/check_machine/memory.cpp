// SPDX-License-Identifier: BSL-1.0
// The functions that a freestanding implementation must provide, and the program's entry point.
// Together with the functions of the library it links to a program without further dependencies.

#include <stddef.h>

extern "C" {

void* memcpy(void* to, void const* from, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        static_cast<char*>(to)[i] = static_cast<char const*>(from)[i];
    }
    return to;
}

void* memmove(void* to, void const* from, size_t count) {
    auto* const target = static_cast<char*>(to);
    auto const* const source = static_cast<char const*>(from);
    for (size_t i = 0; i < count; ++i) {
        size_t const at = target < source ? i : count - 1 - i;
        target[at] = source[at];
    }
    return to;
}

void* memset(void* to, int value, size_t count) {
    for (size_t i = 0; i < count; ++i) { static_cast<char*>(to)[i] = static_cast<char>(value); }
    return to;
}

int memcmp(void const* one, void const* two, size_t count) {
    auto const* const a = static_cast<unsigned char const*>(one);
    auto const* const b = static_cast<unsigned char const*>(two);
    for (size_t i = 0; i < count; ++i) {
        if (a[i] != b[i]) { return a[i] < b[i] ? -1 : 1; }
    }
    return 0;
}

[[noreturn]] void _start() {
    while (true) {}
}

}  // extern "C"
