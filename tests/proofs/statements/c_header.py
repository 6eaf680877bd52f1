# SPDX-License-Identifier: BSL-1.0
"""Statements about the functions of the generated C header: they equal those of the library."""

from claims import flag, statement, var

words = tuple(var(name, 64 if at > 8 else 32) for at, name in enumerate(
    ("07H.0:EBX", "14H.0:EAX", "14H.0:EBX", "14H.0:ECX", "14H.1:EAX", "14H.1:EBX",
     "80000008H:EAX", "0DH.1:EAX", "0DH.1:ECX", "IA32_PERF_CAPABILITIES", "IA32_VMX_MISC")))


@statement("ptspec_write_check equals check_write, values and rules, of IA32_RTIT_CTL in every "
           "state",
           mutant=("access/legal.hpp", "&& !value.get<ia32_rtit_ctl::BranchEn>()", ""))
def ctl(f):
    state = (var("now"), flag("in_vmx"), 0x570, var("value"))
    return f.write_in_c(*words, *state) == f.write_in_cpp(*words, *state)


@statement("ptspec_write_check equals check_write, values and rules, of all indexes, values, "
           "states and capability words",
           mutant=("cpu/capabilities.hpp", "return {bits == 0 ? 36U : bits};",
                   "return {bits == 0 ? 39U : bits};"))
def write(f):
    state = (var("now"), flag("in_vmx"), var("index", 32), var("value"))
    return f.write_in_c(*words, *state) == f.write_in_cpp(*words, *state)


@statement("ptspec_topa_entry_check equals broken_rule, of all entries, places and capability "
           "words",
           mutant=("topa/entry.hpp", "if (!end && at.index != 0)", "if (at.index != 0)"))
def entry(f):
    place = (var("table"), var("index", 32), var("entry"))
    return f.entry_in_c(*words, *place) == f.entry_in_cpp(*words, *place)
