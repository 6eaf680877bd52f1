// SPDX-License-Identifier: BSL-1.0
/// Drivers, `<termios.h>` and `<arpa/telnet.h>` define macros with the names of fields. Include
/// them after ptspec.
// expect: a macro has the name of a field: include ptspec before the header that defines it
// one error
#ifdef SHOULD_FAIL
#define IA32_RTIT_OUTPUT_BASE 0x560
#define IA32_RTIT_OUTPUT_MASK_PTRS 0x561
#define IA32_RTIT_CTL 0x570
#define IA32_RTIT_STATUS 0x571
#define IA32_RTIT_CR3_MATCH 0x572
#define IA32_RTIT_ADDR0_A 0x580
#define IA32_RTIT_ADDR0_B 0x581
#define IA32_RTIT_ADDR1_A 0x582
#define IA32_RTIT_ADDR1_B 0x583
#define CR3 0003000
#define IP 244
#define TSC 0
#define END 0
#define rdmsr(index, low, high) (void)0
#else
// Headers for Windows and other systems define these; no name of ptspec is one of them.
#define far
#define near
#define small char
#define interface struct
#define linux 1
#define unix 1
#define i386 1
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#define ERROR 0
#define DELETE 0x10000
#define STRICT 1
#define TRUE 1
#define FALSE 0
#endif

#include <ptspec/conformance.hpp>
#include <ptspec/ptspec.hpp>

#ifndef SHOULD_FAIL
#define IA32_RTIT_CTL 0x570
static_assert(ptspec::conforms_address<ptspec::reg::ia32_rtit_ctl>(IA32_RTIT_CTL));
#endif
