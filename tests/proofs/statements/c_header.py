# SPDX-License-Identifier: BSL-1.0
"""Statements about the functions of the generated C header: they equal those of the library."""

from claims import capability_words, flag, statement, var

words = tuple(capability_words.values())


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
