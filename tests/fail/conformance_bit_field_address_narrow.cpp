// SPDX-License-Identifier: BSL-1.0
// expect: the_definition_lacks_a_bit_of_the_field | only_gcc_reads_bit_fields
// expect: Bit = 48] | the_field<48U> | only_gcc_reads_bit_fields
#include <ptspec/conformance.hpp>
#include <ptspec/topa/entry.hpp>

using namespace ptspec;

struct my_entry {
    uint64_t flags : 12;
#ifndef SHOULD_FAIL
    uint64_t base : 40;
    uint64_t rest : 12;
#else
    uint64_t base : 36;
    uint64_t rest : 16;
#endif
};
#if defined(SHOULD_FAIL) || (defined(__GNUC__) && !defined(__clang__))
static_assert(conforms_bit_field<topa::entry::Base>([](my_entry const& it) { return it.base; },
                                                    max_phys_addr{52}));
#endif
