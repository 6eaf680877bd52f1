# SPDX-License-Identifier: BSL-1.0
"""The self-test of execute.py: compiled functions give the values of their terms.

The functions are those of self_test.cpp and of all statements, compiled by clang++ and by g++. What
the translator does not know must be refused by the name of the function.
"""

import ctypes
import os
import random
import subprocess
import tempfile

import z3

import execute
from ir import CXX, FOLDER, INCLUDE, ROOT, Module, Unsupported, compiled_to_ir

PYTHON = {
    z3.Z3_OP_UNINTERPRETED: "0", z3.Z3_OP_TRUE: "True",
    z3.Z3_OP_FALSE: "False", z3.Z3_OP_NOT: "not {0}",
    z3.Z3_OP_EQ: "{0} == {1}", z3.Z3_OP_DISTINCT: "{0} != {1}",
    z3.Z3_OP_ITE: "{1} if {0} else {2}",
    z3.Z3_OP_BNOT: "{0} ^ {ones}", z3.Z3_OP_BNEG: "-{0} & {ones}",
    z3.Z3_OP_BSUB: "{0} - {1} & {ones}",
    z3.Z3_OP_BUDIV: "{0} // {1} if {1} else {ones}", z3.Z3_OP_BUREM: "{0} % {1} if {1} else {0}",
    z3.Z3_OP_BUDIV_I: "{0} // {1} if {1} else {ones}",
    z3.Z3_OP_BUREM_I: "{0} % {1} if {1} else {0}",
    z3.Z3_OP_BSHL: "{0} << {1} & {ones} if {1} < {width} else 0",
    z3.Z3_OP_BLSHR: "{0} >> min({1}, {width})",
    z3.Z3_OP_BASHR: "({0} ^ {top}) - {top} >> min({1}, {width}) & {ones}",
    z3.Z3_OP_EXTRACT: "{0} >> {low} & {ones}",
    z3.Z3_OP_ZERO_EXT: "{0}", z3.Z3_OP_SIGN_EXT: "({0} ^ {top0}) - {top0} & {ones}",
    z3.Z3_OP_ULEQ: "{0} <= {1}", z3.Z3_OP_ULT: "{0} < {1}",
    z3.Z3_OP_UGEQ: "{0} >= {1}", z3.Z3_OP_UGT: "{0} > {1}",
    z3.Z3_OP_SLEQ: "{0} ^ {top0} <= {1} ^ {top0}", z3.Z3_OP_SLT: "{0} ^ {top0} < {1} ^ {top0}",
    z3.Z3_OP_SGEQ: "{0} ^ {top0} >= {1} ^ {top0}", z3.Z3_OP_SGT: "{0} ^ {top0} > {1} ^ {top0}",
}
JOINED = {z3.Z3_OP_AND: " and ", z3.Z3_OP_OR: " or ", z3.Z3_OP_BAND: " & ", z3.Z3_OP_BOR: " | ",
          z3.Z3_OP_BXOR: " ^ ", z3.Z3_OP_BADD: " + ", z3.Z3_OP_BMUL: " * "}


def evaluator(inputs, outputs):
    """A Python function that computes terms: it takes and returns a list of ints.

    Other variables are 0: the result of a freeze of poison.
    """
    names = {one.get_id(): f"i{at}" for at, one in enumerate(inputs)}
    text = ["def run(inputs):"]
    if inputs:
        text.append(f" {', '.join(names.values())}, = inputs")
    stack = list(outputs)
    while stack:
        term = stack[-1]
        children = term.children()
        waiting = [one for one in children if one.get_id() not in names]
        if waiting and term.get_id() not in names:
            stack += waiting
            continue
        stack.pop()
        if term.get_id() in names:
            continue
        kind = term.decl().kind()
        args = [names[one.get_id()] for one in children]
        width = term.size() if z3.is_bv(term) else 1
        ones = (1 << width) - 1
        if z3.is_bv_value(term):
            made = str(term.as_long())
        elif kind in JOINED:
            made = JOINED[kind].join(args)
            if kind in (z3.Z3_OP_BADD, z3.Z3_OP_BMUL):
                made = f"{made} & {ones}" if kind == z3.Z3_OP_BMUL else f"({made}) & {ones}"
        elif kind == z3.Z3_OP_CONCAT:
            made, below = [], 0
            for one, arg in zip(children[::-1], args[::-1]):
                made.append(f"{arg} << {below}")
                below += one.size()
            made = " | ".join(made)
        elif kind in PYTHON:
            top0 = 1 << children[0].size() - 1 if children and z3.is_bv(children[0]) else 0
            low = term.params()[1] if kind == z3.Z3_OP_EXTRACT else 0
            made = PYTHON[kind].format(*args, width=width, ones=ones, low=low, top=1 << width - 1,
                                       top0=top0)
        else:
            raise Unsupported(f"to evaluate {term.decl()}")
        names[term.get_id()] = f"t{len(names)}"
        text.append(f" {names[term.get_id()]} = {made}")
    text.append(f" return [{', '.join(names[one.get_id()] for one in outputs)}]")
    found = {}
    exec(compile("\n".join(text), "term", "exec"), found)
    return found["run"]


def random_number(dice, width):
    """Numbers of every size, and numbers with few or many ones."""
    value = dice.getrandbits(width)
    match dice.randrange(6):
        case 0: value &= (1 << dice.randrange(1, width + 1)) - 1
        case 1: value &= dice.getrandbits(width) & dice.getrandbits(width)
        case 2: value |= dice.getrandbits(width) | dice.getrandbits(width)
        case 3: value = (1 << dice.randrange(width)) - dice.randrange(2)
        case 4: value = -value & -1 << dice.randrange(width)
    return value & (1 << width) - 1


INTEGERS = {1: ctypes.c_bool, 8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32,
            64: ctypes.c_uint64}
SIGNED = {8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32, 64: ctypes.c_int64}


def compare(module, library, name, runs, dice):
    """Runs a function and its term on the same inputs. Returns the number of undefined inputs."""
    function = module.function("@" + name)
    inputs = function.inputs()
    result = execute.call(module, name, *inputs)
    outputs = [result.defined, *([result.value] if result.value is not None else []),
               *result.memory]
    run = evaluator(inputs, outputs)
    call = getattr(library, name)
    call.restype = INTEGERS[function.returns[1]] if result.value is not None else None
    call.argtypes = [ctypes.c_void_p if one.size else
                     (SIGNED if one.signed else INTEGERS)[one.kind[1]] for one in function.params]
    undefined = 0
    for _ in range(runs):
        given = [random_number(dice, one.size()) for one in inputs]
        expected = run(given)
        if not expected[0]:
            undefined += 1
            continue
        buffers = [ctypes.create_string_buffer(value.to_bytes(one.size, "little"), one.size)
                   if one.size else value for value, one in zip(given, function.params)]
        returned = call(*buffers)
        found = [returned] if result.value is not None else []
        found += [int.from_bytes(one.raw, "little") for one in buffers if not isinstance(one, int)]
        if found != expected[1:]:
            raise SystemExit(f"{name}{tuple(map(hex, given))} is {found}, its term {expected[1:]}")
    return undefined


REFUSED = {
    "has_a_loop": "has_a_loop: a loop: br ",
    "calls_itself": "calls_itself: a recursion: ",
    "adds_floating_point": "adds_floating_point: an unknown instruction: ",
    "has_an_unknown_instruction": "has_an_unknown_instruction: an unknown instruction: ",
    "calls_another": "calls_another: a call of a function without a body: ",
    "calls_through_a_pointer": "calls_through_a_pointer: an unknown instruction: ",
    "stores_a_pointer": "stores_a_pointer: a pointer in memory of the caller",
    "reads_a_variable": "reads_a_variable: access to @variable: ",
}


def run(total):
    dice = random.Random(1)
    # The C header of generated.cpp is made by a program that may not be built.
    sources = [FOLDER / "self_test.cpp", *[one for one in sorted(FOLDER.glob("statements/*.cpp"))
                                           if one.stem != "generated"]]
    modules = [Module(compiled_to_ir(one)) for one in sources]
    tested = [(source, module, name[1:]) for source, module in zip(sources, modules)
              for name, (head, _) in module.functions.items()
              if not name.lstrip('@"').startswith("_Z") and name[1:] not in REFUSED]
    for name, wanted in REFUSED.items():
        try:
            execute.call(modules[0], name, *modules[0].function("@" + name).inputs())
            raise SystemExit(f"{name} is not refused")
        except Unsupported as why:
            if wanted not in str(why):
                raise SystemExit(f"{name} is refused with: {why}") from None
    runs, undefined = -(-total // len(tested)), 0
    with tempfile.TemporaryDirectory() as folder:
        for compiler in ("clang++-19", "g++"):
            for source in sources:
                library = f"{folder}/{compiler}.{source.stem}.so"
                subprocess.run([compiler, *CXX, f"-I{INCLUDE}", f"-I{ROOT}",
                                "-shared", "-fPIC", "-Wl,-z,lazy", "-o", library, str(source)],
                               check=True)
                library = ctypes.CDLL(library, os.RTLD_LAZY)
                for other, module, name in tested:
                    if other == source:
                        undefined += compare(module, library, name, -(-runs // 2), dice)
    print(f"{runs * len(tested)} runs of {len(tested)} functions equal their terms, {undefined} of "
          f"them undefined and not run; {len(REFUSED)} functions are refused")
