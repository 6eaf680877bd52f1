#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs functions without loops of an LLVM IR text on Z3 terms.

    execute.py FILE.cpp       prints the functions of a file, and their terms

    module = Module(compiled_to_ir("statements/x.cpp", include))
    result = call(module, "f", z3.BitVec("a", 32), 5)
    result.value, result.memory, result.defined

A call runs the instructions of the function once, on terms: a phi selects by the conditions of the
edges that lead to its block. A pointer argument is memory of as many bytes as its
`dereferenceable` says, given and returned as one little-endian number. Calls of functions of the
same module are run in place.

A result is `defined` unless an instruction has undefined behaviour, or a poison value is returned,
stored in memory of the caller, or decides a branch. Flags such as nsw and exact make poison, as
LLVM's manual says; `undef` and memory without a value count as poison, which is stricter. Ignored:
inbounds of an address, since every access is checked to be inside its object; `!range` and
attributes of values, since the functions are called with plain integers.

Everything else stops the translation with the names of the function and the instruction: a loop, a
recursion, a call of another function, floating point, vectors, a pointer as a number.
"""

import argparse
import collections
import re
import sys

import z3

from ir import ATTRIBUTES, Module, Parser, Unsupported, compiled_to_ir, offset_of, size_of
from terms import (BINARY, COMPARE, INTRINSICS, NO, WIDER, YES, Bits, Pointer, PointerByte, all_of,
                   any_of, bits, choose, folded, is_set, negated, number)

Result = collections.namedtuple("Result", "value memory defined")


def call(module, name, *args):
    """Calls a function with ints and terms. Memory is one term for each pointer argument."""
    function = module.function("@" + name)
    undefined = []
    memory, values = {}, []
    for (param, kind, size, _), given in zip(function.params, args, strict=True):
        if kind[0] == "ptr":
            if not size or 8 * size != given.size():
                raise Unsupported(f"{name}: {size} bytes at {param}")
            memory[param] = [Bits(z3.Extract(8 * i + 7, 8 * i, given), NO)
                             for i in range(size)]
            values.append(Pointer([(YES, param, 0)], NO))
        elif isinstance(given, int):
            values.append(number(given, kind[1]))
        else:
            if z3.is_bool(given):
                given = bits(given)
            if given.size() != kind[1]:
                raise Unsupported(f"{name}: {given.size()} bits for {kind[1]}")
            values.append(Bits(given, NO))
    run = Run(module, function, values, memory, YES, (), undefined)
    # The value and the memory of the caller are read wherever the function returns.
    poison = [run.value.poison] if isinstance(run.value, Bits) else []
    end = [run.memory[param.name] for param in function.params if param.size]
    if any(isinstance(one, PointerByte) for part in end for one in part):
        raise Unsupported(f"{name}: a pointer in memory of the caller")
    poison += [one.poison for part in end for one in part]
    value = run.value.term if isinstance(run.value, Bits) else None
    if function.returns == ("int", 1):
        value = is_set(value)
    return Result(value, [z3.simplify(joined(part).term) for part in end],
                  negated(any_of(*undefined, *poison)))


def joined(parts):
    """Bytes, the lowest first, as one value."""
    if any(isinstance(one, PointerByte) for one in parts):
        raise Unsupported("a pointer in memory is read as a number")
    term = parts[0].term if len(parts) == 1 else z3.Concat(*[one.term for one in parts[::-1]])
    return Bits(z3.simplify(term), any_of(*[one.poison for one in parts]))


class Run:
    """One run of a function: `value` and `memory` at its end."""

    def __init__(self, module, function, args, memory, active, callers, ub):
        self.module, self.function, self.ub = module, function, ub
        self.callers = (*callers, function.name)
        self.values = dict(zip([one.name for one in function.params], args, strict=True))
        self.value = None
        first = next(iter(function.blocks))
        self.edges = {label: [] for label in function.blocks}  # (from, condition, memory)
        self.edges[first].append((None, active, memory))
        returns = []
        for self.label, lines in function.blocks.items():
            edges = [edge for edge in self.edges[self.label] if not edge[1].eq(NO)]
            self.edges[self.label] = edges
            self.active = any_of(*[edge[1] for edge in edges])
            if not edges:
                continue
            self.memory = self.merged(edges)
            for line in lines:
                try:
                    found = self.step(Parser(line, module.types))
                except Unsupported as why:
                    raise Unsupported(f"{function.name}: {why}: {line}") from None
                except (KeyError, AttributeError, TypeError, z3.Z3Exception) as why:
                    raise Unsupported(f"{function.name}: {why!r}: {line}") from None
                if found is not None:
                    returns.append((None, self.active, self.memory, found))
        if returns:
            self.memory = self.merged([one[:3] for one in returns])
            self.value = returns[-1][3]
            for one in returns[:-1]:
                self.value = choose(one[1], one[3], self.value)
        else:
            raise Unsupported(f"{function.name}: no path returns")

    def merged(self, edges):
        memory = dict(edges[-1][2])
        for _, condition, other in edges[:-1]:
            for name, content in other.items():
                if memory.setdefault(name, content) is not content:
                    memory[name] = choose(condition, content, memory[name])
        return memory

    def undefined(self, condition):
        self.ub.append(all_of(self.active, condition))

    # --- operands

    def operand(self, line, kind):
        line.attributes()
        token = line.next()
        if token.startswith("%"):
            return self.values[token]
        if token in ("poison", "undef", "zeroinitializer"):
            return self.uniform(kind, NO if token == "zeroinitializer" else YES)
        if kind[0] == "int":
            return number({"true": 1, "false": 0}[token] if token in ("true", "false")
                          else int(token), kind[1])
        if token.startswith("@"):
            return Pointer([(YES, token, 0)], NO)
        if token == "null":
            return Pointer([(YES, "null", 0)], NO)
        if token == "getelementptr":
            while line.accept("inbounds", "nuw", "nusw"):
                pass
            line.expect("(")
            found = self.address(line)
            line.expect(")")
            return found
        raise Unsupported(f"the operand {token}")

    def uniform(self, kind, poison):
        if kind[0] == "int":
            return Bits(z3.BitVecVal(0, kind[1]), poison)
        if kind[0] == "ptr":
            return Pointer([(YES, "null", 0)], poison)
        members = kind[1] if kind[0] == "struct" else [kind[2]] * kind[1]
        return [self.uniform(one, poison) for one in members]

    def typed(self, line):
        kind = line.type()
        return kind, self.operand(line, kind)

    def address(self, line):
        kind = line.type()
        line.expect(",")
        _, base = self.typed(line)
        offset, poison, first = 0, base.poison, True
        while line.accept(","):
            if line.peek() in ("!", "align"):
                break
            _, index = self.typed(line)
            poison = any_of(poison, index.poison)
            term = z3.simplify(index.term)
            known = term.as_signed_long() if z3.is_bv_value(term) else None
            if first:
                size = size_of(kind)
            elif kind[0] == "struct":
                offset = plus(offset, offset_of(kind, known))
                kind = kind[1][known]
                continue
            else:
                kind = kind[2]
                size = size_of(kind)
            first = False
            wide = z3.SignExt(64 - term.size(), term) if term.size() < 64 else term
            offset = plus(offset, known * size if known is not None else wide * size)
        return Pointer([(when, name, plus(at, offset)) for when, name, at in base.choices], poison)

    # --- memory

    def content(self, name):
        if name in self.memory:
            return self.memory[name]
        if name not in self.module.constants:
            raise Unsupported(f"access to {name}")
        if isinstance(self.module.constants[name], str):
            line = Parser(self.module.constants[name], self.module.types)
            self.module.constants[name] = list(self.constant(line, line.type()))
        return self.module.constants[name]

    def constant(self, line, kind):
        """The bytes of a constant."""
        if line.accept("zeroinitializer", "undef", "poison"):
            return [number(0, 8)] * size_of(kind)
        if kind[0] == "int":
            value = self.operand(line, kind).term.as_long()
            return [number(value >> 8 * i & 255, 8) for i in range(size_of(kind))]
        if kind[0] == "array" and line.peek().startswith('c"'):
            text = line.next()[2:-1]
            return [number(int(one[1:], 16) if one[0] == "\\" else ord(one), 8)
                    for one in re.findall(r"\\[0-9A-F]{2}|.", text)]
        if kind[0] == "array" and line.accept("["):
            made = []
            while not line.accept("]"):
                made += self.constant(line, line.type())
                line.accept(",")
            return made
        if kind[0] == "struct" and line.accept("{", "<"):
            line.accept("{")
            made = []
            for index, member in enumerate(kind[1]):
                made += [number(0, 8)] * (offset_of(kind, index) - len(made))
                line.type()
                made += self.constant(line, member)
                line.accept(",")
            line.expect("}")
            line.accept(">")
            return made + [number(0, 8)] * (size_of(kind) - len(made))
        raise Unsupported(f"a constant with {line.peek()}")

    def places(self, pointer, count, align):
        """The places of an access, as (condition, object, offset). Outside them it is undefined."""
        self.undefined(pointer.poison)
        found = []
        for when, name, at in pointer.choices:
            if name == "null":
                self.undefined(when)
                continue
            last = len(self.content(name)) - count
            if isinstance(at, int):
                if not 0 <= at <= last:
                    self.undefined(when)
                else:
                    found.append((when, name, at))
                continue
            inside = [(all_of(when, at == place), name, place)
                      for place in range(0, last + 1, align)]
            self.undefined(all_of(when, negated(any_of(*[at == one[2] for one in inside]))))
            found += inside
        return found

    def load(self, pointer, count, align):
        value = None
        for when, name, at in reversed(self.places(pointer, count, align)):
            one = joined(self.content(name)[at:at + count])
            value = one if value is None else choose(when, one, value)
        return value if value is not None else Bits(z3.BitVecVal(0, 8 * count), YES)

    def load_bytes(self, pointer, count):
        """The bytes of a copy: each is poison or not for itself, as padding is."""
        value = None
        for when, name, at in reversed(self.places(pointer, count, 1)):
            one = self.content(name)[at:at + count]
            value = one if value is None else choose(when, one, value)
        return value if value is not None else [Bits(z3.BitVecVal(0, 8), YES)] * count

    def load_pointer(self, pointer, align):
        value = Pointer([], YES)
        for when, name, at in reversed(self.places(pointer, 8, align)):
            parts = self.content(name)[at:at + 8]
            if [getattr(part, "at", None) for part in parts] != list(range(8)):
                raise Unsupported("a load of a pointer that was not stored")
            value = choose(when, parts[0].pointer, value)
        return value

    def store(self, pointer, parts, align):
        for when, name, at in self.places(pointer, len(parts), align):
            if name.startswith("@"):
                raise Unsupported(f"a store to {name}")
            content = list(self.content(name))
            for i, part in enumerate(parts):
                content[at + i] = choose(when, part, content[at + i])
            self.memory[name] = content

    # --- instructions

    def step(self, line):
        """Runs one instruction. Returns the value of a `ret`, [] for one without a value."""
        target = None
        if line.peek(1) == "=":
            target = line.next()
            line.next()
        name = line.next()
        handler = getattr(self, "do_" + name, None)
        if handler:
            value = handler(line)
        elif name in BINARY:
            value = self.binary(name, line)
        else:
            raise Unsupported("an unknown instruction")
        if target:
            self.values[target] = value
            return None
        return value if name == "ret" else None

    def branch(self, label, condition):
        label = label.removeprefix("%")
        self.edges[label].append((self.label, all_of(self.active, condition), self.memory))

    def do_br(self, line):
        if line.accept("label"):
            return self.branch(line.next(), YES)
        _, condition = self.typed(line)
        self.undefined(condition.poison)
        taken = is_set(condition.term)
        line.expect(",")
        line.expect("label")
        self.branch(line.next(), taken)
        line.expect(",")
        line.expect("label")
        return self.branch(line.next(), negated(taken))

    def do_switch(self, line):
        kind, value = self.typed(line)
        self.undefined(value.poison)
        line.expect(",")
        line.expect("label")
        default = line.next()
        line.expect("[")
        targets = collections.defaultdict(list)
        while not line.accept("]"):
            line.type()
            case = folded(value.term == self.operand(line, kind).term)
            line.expect(",")
            line.expect("label")
            targets[line.next()].append(case)
        others = negated(any_of(*[case for cases in targets.values() for case in cases]))
        targets[default].append(others)
        for label, cases in targets.items():
            self.branch(label, any_of(*cases))

    def do_ret(self, line):
        kind = line.type()
        return [] if kind == ("void",) else self.operand(line, kind)

    def do_unreachable(self, line):
        self.undefined(YES)

    def do_phi(self, line):
        kind = line.type()
        values = {}
        while line.accept("["):
            token = line.peek()
            if token.startswith("%") and token not in self.values:
                line.next()  # a value of a block that no path reaches
                value = None
            else:
                value = self.operand(line, kind)
            line.expect(",")
            values[line.next().removeprefix("%")] = value
            line.expect("]")
            line.accept(",")
        edges = self.edges[self.label]
        value = values[edges[-1][0]]
        for label, condition, _ in edges[:-1]:
            value = choose(condition, values[label], value)
        return value

    def do_select(self, line):
        _, condition = self.typed(line)
        line.expect(",")
        _, one = self.typed(line)
        line.expect(",")
        _, other = self.typed(line)
        made = choose(is_set(condition.term), one, other)
        if isinstance(made, (Bits, Pointer)):
            return made._replace(poison=any_of(made.poison, condition.poison))
        return made

    def do_freeze(self, line):
        kind, value = self.typed(line)
        if z3.is_false(value.poison):
            return value
        return Bits(choose(value.poison, z3.FreshConst(z3.BitVecSort(kind[1])), value.term), NO)

    def do_icmp(self, line):
        same_sign = line.accept("samesign")
        how = line.next()
        kind, one = self.typed(line)
        line.expect(",")
        other = self.operand(line, kind)
        poison = any_of(one.poison, other.poison)
        if kind[0] == "ptr":
            same = [all_of(a[0], b[0]) for a in one.choices for b in other.choices
                    if a[1] == b[1] == "null"]
            if how not in ("eq", "ne") or "null" not in {a[1] for a in other.choices}:
                raise Unsupported("a comparison of pointers")
            equal = any_of(*same)
            return Bits(bits(equal if how == "eq" else negated(equal)), poison)
        if same_sign:
            poison = any_of(poison, z3.simplify((one.term ^ other.term) < 0))
        return Bits(bits(folded(COMPARE[how](one.term, other.term))), poison)

    def binary(self, name, line):
        flags = set()
        while line.peek() in ("nuw", "nsw", "exact", "disjoint"):
            flags.add(line.next())
        kind, one = self.typed(line)
        line.expect(",")
        other = self.operand(line, kind)
        a, b, width = one.term, other.term, kind[1]
        poison = [one.poison, other.poison]
        if name in ("udiv", "urem"):
            self.undefined(any_of(other.poison, b == 0))
        if name in ("shl", "lshr", "ashr"):
            poison.append(z3.UGE(b, width))
        if name in WIDER:
            for flag, wide in (("nuw", z3.ZeroExt), ("nsw", z3.SignExt)):
                if flag in flags:
                    by = width if name != "sub" and name != "add" else 1
                    whole = WIDER[name](wide(by, a), wide(by, b))
                    poison.append(whole != wide(by, WIDER[name](a, b)))
        if "exact" in flags:
            poison.append(z3.URem(a, b) != 0 if name == "udiv" else (a >> b) << b != a)
        if "disjoint" in flags:
            poison.append(a & b != 0)
        return Bits(folded(BINARY[name](a, b)), any_of(*poison[:2], *map(z3.simplify, poison[2:])))

    def convert(self, line, made):
        flags = {line.next() for _ in range(2) if line.peek() in ("nuw", "nsw", "nneg")}
        kind, value = self.typed(line)
        line.expect("to")
        width = line.type()[1]
        term = made(value.term, abs(width - kind[1]))
        poison = [value.poison]
        if "nneg" in flags:
            poison.append(value.term < 0)
        if "nuw" in flags:
            poison.append(z3.ZeroExt(kind[1] - width, term) != value.term)
        if "nsw" in flags:
            poison.append(z3.SignExt(kind[1] - width, term) != value.term)
        return Bits(folded(term), any_of(*poison))

    def do_zext(self, line):
        return self.convert(line, lambda term, by: z3.ZeroExt(by, term))

    def do_sext(self, line):
        return self.convert(line, lambda term, by: z3.SignExt(by, term))

    def do_trunc(self, line):
        return self.convert(line, lambda term, by: z3.Extract(term.size() - by - 1, 0, term))

    def do_getelementptr(self, line):
        while line.accept("inbounds", "nuw", "nusw"):
            pass
        return self.address(line)

    def do_alloca(self, line):
        kind = line.type()
        name = f"{'/'.join(self.callers)}{line.tokens[0]}"
        self.memory[name] = [Bits(z3.BitVecVal(0, 8), YES)] * size_of(kind)
        return Pointer([(YES, name, 0)], NO)

    def align(self, line):
        while line.peek() and line.next() != "align":
            pass
        return int(line.peek() or 1)

    def do_load(self, line):
        kind = line.type()
        line.expect(",")
        _, pointer = self.typed(line)
        if kind[0] == "ptr":
            return self.load_pointer(pointer, self.align(line))
        if kind[0] != "int":
            raise Unsupported(f"a load of type {kind[0]}")
        value = self.load(pointer, size_of(kind), self.align(line))
        return Bits(z3.Extract(kind[1] - 1, 0, value.term), value.poison)

    def do_store(self, line):
        kind, value = self.typed(line)
        line.expect(",")
        _, pointer = self.typed(line)
        if kind[0] == "ptr":
            return self.store(pointer, [PointerByte(value, i) for i in range(8)], self.align(line))
        if kind[0] != "int":
            raise Unsupported(f"a store of type {kind[0]}")
        size = size_of(kind)
        term = z3.ZeroExt(8 * size - kind[1], value.term)
        self.store(pointer, [Bits(z3.simplify(z3.Extract(8 * i + 7, 8 * i, term)), value.poison)
                             for i in range(size)], self.align(line))

    def do_extractvalue(self, line):
        _, value = self.typed(line)
        while line.accept(","):
            value = value[int(line.next())]
        return value

    def do_insertvalue(self, line):
        _, whole = self.typed(line)
        line.expect(",")
        _, part = self.typed(line)
        path = []
        while line.accept(","):
            path.append(int(line.next()))

        def replaced(value, path):
            if not path:
                return part
            return [replaced(one, path[1:]) if i == path[0] else one
                    for i, one in enumerate(value)]

        return replaced(whole, path)

    def do_tail(self, line):
        line.expect("call")
        return self.do_call(line)

    def do_call(self, line):
        while line.peek() in ATTRIBUTES or line.accept("fastcc"):
            line.attributes()
        kind = line.type()
        name = line.next()
        if not name.startswith("@"):
            raise Unsupported("a call through a pointer")
        if name.startswith(("@llvm.lifetime.", "@llvm.experimental.noalias.")):
            return None
        line.expect("(")
        args = []
        while not line.accept(")"):
            args.append(self.typed(line)[1])
            line.accept(",")
        if name.startswith("@llvm."):
            return self.intrinsic(name, kind, args)
        if name not in self.module.functions:
            raise Unsupported("a call of a function without a body")
        if name[1:] in self.callers:
            raise Unsupported("a recursion")
        run = Run(self.module, self.module.function(name), args, self.memory, self.active,
                  self.callers, self.ub)
        self.memory = run.memory
        return run.value

    def intrinsic(self, name, kind, args):
        name = name.split(".")[1] if "with.overflow" not in name and ".sat." not in name \
            else ".".join(name.split(".")[1:-1])
        if name == "assume":
            return self.undefined(any_of(args[0].poison, negated(is_set(args[0].term))))
        if name in ("memcpy", "memmove", "memset"):
            length = z3.simplify(args[2].term)
            if not z3.is_bv_value(length):
                raise Unsupported("a copy of variable length")
            count = length.as_long()
            if name == "memset":
                return self.store(args[0], [args[1]] * count, 1)
            return self.store(args[0], self.load_bytes(args[1], count), 1)
        if name not in INTRINSICS:
            raise Unsupported("an unknown intrinsic")
        poison = any_of(*[one.poison for one in args])
        made = INTRINSICS[name](*[one.term for one in args])
        if isinstance(made, tuple):
            if "overflow" in name:
                return [Bits(made[0], poison), Bits(bits(made[1]), poison)]
            made, extra = made
            poison = any_of(poison, z3.simplify(extra))
        return Bits(made, poison)


def plus(a, b):
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    term = z3.simplify((z3.BitVecVal(a, 64) if isinstance(a, int) else a) + b)
    return term.as_signed_long() if z3.is_bv_value(term) else term


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file")
    module = Module(compiled_to_ir(parser.parse_args().file))
    for name in module.functions:
        if not name.lstrip('@"').startswith("_Z"):
            found = call(module, name[1:], *module.function(name).inputs())
            print(name[1:], found.value, *found.memory)


if __name__ == "__main__":
    sys.setrecursionlimit(100_000)
    sys.exit(main())
