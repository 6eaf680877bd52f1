// SPDX-License-Identifier: BSL-1.0
//! The checks of the generated Rust module (regmap --rust), which stands beside this file.
#![no_std]
#![deny(warnings)]
mod ptspec;
use ptspec::*;

/// A check with the capability words as its first parameters, in the order of words.hpp.
macro_rules! check {
    ($name:ident($($state:ident: $kind:ty),*), $caps:ident, $found:expr) => {
        #[no_mangle]
        pub extern "C" fn $name(
            cpuid_07h_0_ebx: u32,
            cpuid_14h_0_eax: u32,
            cpuid_14h_0_ebx: u32,
            cpuid_14h_0_ecx: u32,
            cpuid_14h_1_eax: u32,
            cpuid_14h_1_ebx: u32,
            cpuid_80000008h_eax: u32,
            cpuid_0dh_1_eax: u32,
            cpuid_0dh_1_ecx: u32,
            ia32_perf_capabilities: u64,
            ia32_vmx_misc: u64,
            $($state: $kind),*
        ) -> u32 {
            let $caps = Caps {
                cpuid_07h_0_ebx,
                cpuid_0dh_1_eax,
                cpuid_0dh_1_ecx,
                cpuid_14h_0_eax,
                cpuid_14h_0_ebx,
                cpuid_14h_0_ecx,
                cpuid_14h_1_eax,
                cpuid_14h_1_ebx,
                cpuid_80000008h_eax,
                ia32_perf_capabilities,
                ia32_vmx_misc,
            };
            $found as u32
        }
    };
}

check!(
    write_in_rust(ctl: u64, in_vmx_operation: bool, index: u32, value: u64),
    caps,
    write_check(&caps, &State { ctl, in_vmx_operation }, index, value)
);
check!(
    entry_in_rust(table: u64, index: u32, entry: u64),
    caps,
    topa_entry_check(&caps, table, index, entry)
);
