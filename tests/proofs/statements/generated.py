# SPDX-License-Identifier: BSL-1.0
"""Statements about the functions of the generated C header and Rust module: they equal those of the
library."""

from claims import capability_words, flag, statement, var

words = tuple(capability_words.values())
WRITE = (var("now"), flag("in_vmx"), var("index", 32), var("value"))
PLACE = (var("table"), var("index", 32), var("entry"))
WIDTH = ("cpu/capabilities.hpp", "return {bits == 0 ? 36U : bits};",
         "return {bits == 0 ? 39U : bits};")
FIRST = ("topa/entry.hpp", "if (!end && at.index != 0)", "if (at.index != 0)")


@statement("ptspec_write_check equals check_write, values and rules, of all indexes, values, "
           "states and capability words", needs=("regmap",), mutant=WIDTH)
def write_in_c(f):
    return f.write_in_c(*words, *WRITE) == f.write_in_cpp(*words, *WRITE)


@statement("ptspec_topa_entry_check equals broken_rule, of all entries, places and capability "
           "words", needs=("regmap",), mutant=FIRST)
def entry_in_c(f):
    return f.entry_in_c(*words, *PLACE) == f.entry_in_cpp(*words, *PLACE)


@statement("write_check of the Rust module equals check_write, values and rules, of all indexes, "
           "values, states and capability words", needs=("regmap", "rustc"), mutant=WIDTH)
def write_in_rust(f):
    return f.write_in_rust(*words, *WRITE) == f.write_in_cpp(*words, *WRITE)


@statement("topa_entry_check of the Rust module equals broken_rule, of all entries, places and "
           "capability words", needs=("regmap", "rustc"), mutant=FIRST)
def entry_in_rust(f):
    return f.entry_in_rust(*words, *PLACE) == f.entry_in_cpp(*words, *PLACE)
