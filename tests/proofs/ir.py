# SPDX-License-Identifier: BSL-1.0
"""The functions and constants of an LLVM IR text, and the compiler that makes it from C++.

    module = Module(compiled_to_ir("statements/x.cpp"))
    function = module.function("@f")    # parameters, and blocks from the entry to the ends

What the parser does not know, and a loop, is Unsupported, with the name of the function.
"""

import collections
import pathlib
import re
import subprocess

import z3

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
INCLUDE = ROOT / "include"
CXX = ["-std=c++20", "-O2", "-fno-exceptions", "-g0", "-w"]
IR = ["-S", "-emit-llvm", "-fno-vectorize", "-fno-slp-vectorize", "-mllvm",
      "-unroll-threshold=100000", "-mllvm", "-inline-threshold=100000", "-mllvm",
      "-simplifycfg-sink-common=false"]

RUST = ["opt-level=2", "panic=abort", "codegen-units=1", "no-vectorize-loops", "no-vectorize-slp",
        "llvm-args=-unroll-threshold=100000 -inline-threshold=100000"]

TOKEN = re.compile(r'(;.*)|c"[^"]*"|[%@$]"[^"]*"|[%@$][\w.$-]+|-?\d+|"[^"]*"|[\w.]+|[^\s]')
ATTRIBUTES = set("""noundef nonnull nocapture readonly writeonly readnone zeroext signext noalias
    returned align dereferenceable dereferenceable_or_null range sret immarg inreg writable
    dead_on_unwind""".split())
HINTS = {"dso_local", "linkonce_odr", "internal", "private", "hidden", "noundef", "fastcc",
         "local_unnamed_addr", "unnamed_addr", "weak_odr"}


class Unsupported(Exception):
    """The translator does not know something: it names the function and the instruction."""


Param = collections.namedtuple("Param", "name kind size signed")


class Function(collections.namedtuple("Function", "name returns params blocks")):
    def inputs(self):
        """A variable for each parameter."""
        return [z3.BitVec(one.name, 8 * one.size if one.size else one.kind[1])
                for one in self.params]


class Parser:
    """The tokens of one line, or of one statement of several lines."""

    def __init__(self, line, types):
        self.tokens = [one[0] for one in TOKEN.finditer(line) if not one[1]]
        self.at, self.types = 0, types

    def peek(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def next(self):
        self.at += 1
        return self.peek(-1)

    def accept(self, *words):
        if self.peek() in words:
            return self.next()
        return None

    def expect(self, word):
        if self.next() != word:
            raise Unsupported(f"{self.peek(-1)!r} where {word!r} was expected")

    def skip_parentheses(self):
        depth = 0
        while True:
            token = self.next()
            depth += {"(": 1, ")": -1}.get(token, 0)
            if depth == 0:
                return

    def attributes(self):
        """Skips the attributes of a value. Returns them, and what some have in parentheses."""
        found = {}
        while self.peek() in ATTRIBUTES:
            name = self.next()
            found[name] = ""
            if name == "align" and self.peek() != "(":
                self.next()
            elif self.peek() == "(":
                found[name] = self.peek(1)
                self.skip_parentheses()
        return found

    def type(self):
        token = self.next()
        if token in ("void", "ptr"):
            return (token,)
        if re.fullmatch(r"i\d+", token):
            return "int", int(token[1:])
        if token == "[":
            count = int(self.next())
            self.expect("x")
            element = self.type()
            self.expect("]")
            return "array", count, element
        packed = token == "<" and self.accept("{")
        if packed or token == "{":
            members = []
            while not self.accept("}"):
                members.append(self.type())
                self.accept(",")
            if packed:
                self.expect(">")
            return "struct", members, bool(packed)
        if token.startswith("%") and token in self.types:
            return self.types[token]
        raise Unsupported(f"the type {token} {self.peek()}")


def align_of(kind):
    match kind[0]:
        case "int": return min(16, size_of(kind))
        case "ptr": return 8
        case "array": return align_of(kind[2])
        case "struct": return 1 if kind[2] else max(map(align_of, kind[1]), default=1)


def size_of(kind):
    match kind[0]:
        case "int": return 1 << max(0, (kind[1] - 1).bit_length() - 3)
        case "ptr": return 8
        case "array": return kind[1] * size_of(kind[2])
        case "struct": return offset_of(kind, len(kind[1]))
    raise Unsupported(f"the size of {kind[0]}")


def offset_of(kind, index):
    """The offset of a member of a struct; for the index after the last, the size of the struct."""
    at = 0
    for member in kind[1][:index]:
        at += -at % (1 if kind[2] else align_of(member)) + size_of(member)
    end = align_of(kind) if index == len(kind[1]) else align_of(kind[1][index])
    return at + -at % (1 if kind[2] else end)


class Module:
    """The functions and constants of an LLVM IR text."""

    def __init__(self, text):
        self.types, self.constants, self.functions = {}, {}, {}
        lines = iter(text.splitlines())
        pending = {}
        for line in lines:
            if found := re.match(r'(%(?:"[^"]*"|[\w.$-]+)) = type (.*)', line):
                pending[found[1]] = found[2]
            elif found := re.match(r'(@(?:"[^"]*"|[\w.$-]+)) = .*?\bconstant (.*)', line):
                self.constants[found[1]] = found[2]
            elif line.startswith("define "):
                self.read_function(line, lines, pending)

    def read_type(self, name, pending):
        if name in pending:
            text = pending.pop(name)
            for used in re.findall(r'%"[^"]*"|%[\w.$-]+', text):
                self.read_type(used, pending)
            if not text.startswith("opaque"):
                self.types[name] = Parser(text, self.types).type()

    def read_function(self, head, lines, pending):
        for name in list(pending):
            self.read_type(name, pending)
        name = re.search(r'@("[^"]*"|[\w.$-]+)\(', head)[1]
        blocks, label = {}, None
        text = ""
        for line in lines:
            if line == "}":
                break
            if found := re.match(r'([\w.$-]+|"[^"]*"):', line):
                label = found[1]
                blocks[label] = []
            elif line.strip():
                text = f"{text} {line.strip()}"
                if text.count("[") > text.count("]"):
                    continue  # a switch
                if label is None:
                    label = str(head.count(" %", head.index(name + "(")))
                    blocks[label] = []
                blocks[label].append(text.strip())
                text = ""
        self.functions["@" + name] = head, blocks

    def function(self, name):
        """The parsed head of a function, and its blocks in an order from the entry to the ends."""
        head, blocks = self.functions[name]
        line = Parser(head, self.types)
        line.next()
        while line.peek() in HINTS or line.peek() in ATTRIBUTES:
            line.attributes() if line.peek() in ATTRIBUTES else line.next()
        try:
            returns = line.type()
            line.next()
            line.expect("(")
            params = []
            while not line.accept(")"):
                kind = line.type()
                attributes = line.attributes()
                size = int(attributes.get("dereferenceable", 0))
                signed = "signext" in attributes
                params.append(Param(line.next(), kind, size, signed))
                line.accept(",")
        except Unsupported as why:
            raise Unsupported(f"{name[1:]}: {why}: {head}") from None
        return Function(name[1:], returns, params, self.ordered(name[1:], blocks))

    def ordered(self, name, blocks):
        done, path = [], []

        def visit(label):
            path.append(label)
            for to in re.findall(r'label %([\w.$-]+|"[^"]*")', blocks[label][-1]):
                if to in path:
                    raise Unsupported(f"{name}: a loop: {blocks[label][-1]}")
                if to not in done:
                    visit(to)
            path.pop()
            done.append(label)

        visit(next(iter(blocks)))
        return {label: blocks[label] for label in reversed(done)}


def compiled_to_ir(source, include=INCLUDE, flags=()):
    """The LLVM IR of a C++ file."""
    command = ["clang++-19", *CXX, *IR, *flags, f"-I{include}", f"-I{ROOT}", "-o", "-",
               str(source)]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def rust_to_ir(source):
    """The LLVM IR of a Rust file, from a compiler with opaque pointers: 1.70 or newer."""
    command = ["rustc", "--edition=2021", "--crate-type=lib", "--emit=llvm-ir", "-o", "-",
               *[f"-C{one}" for one in RUST], str(source)]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout
