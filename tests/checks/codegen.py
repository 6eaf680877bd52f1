#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that accessors cost nothing: they compile to the same instructions as manually written
masks and shifts.

    codegen.py COMPILER...   compile tests/firmware/accessors.cpp with each and compare its pairs,
                             and check the sizes of the files of tests/firmware/sizes
    codegen.py --sizes COMPILER...   check the sizes only
    codegen.py --self-test

The instructions of lib_NAME and hand_NAME must be the same, without padding at the end. Differences
that depend on the compiler's evaluation order are allowed: the choice of registers (one renaming
must turn one list into the other), or, in functions without a jump, the order of instructions and
copies between registers. Other tests check that both compute the same.

lib_check_NAME must have at most as many instructions as hand_check_NAME, and no call: compilers
order the tests of several masks differently.

The head of a file in tests/firmware/sizes limits the size of its object, compiled with -Os or as it
says, and lists texts that must not occur in it: `// at most: 100 bytes`,
`// at most: 100 bytes, with -O2`, `// at most: 100 bytes by clang++`, `// without: TEXT`. The size
is that of code and constants, of the functions in the file and of all that they need.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from firmware_objects import FIRMWARE, compile_to, output_of

SOURCE = FIRMWARE / "accessors.cpp"
LEVELS = ["-O1", "-O2"]
FLAGS = ["-fcf-protection=none"]

SIZES = FIRMWARE / "sizes"
SIZE_FLAGS = ["-fno-asynchronous-unwind-tables", *FLAGS]
AT_MOST = re.compile(r"^// at most: (\d+) bytes(?:, with (-O\w)| by (g\+\+|clang\+\+))?$", re.M)
WITHOUT = re.compile(r"^// without: (.+)$", re.M)
SECTION = re.compile(r"^\.(?:text|rodata|data|bss)\S*\s+(\d+)", re.M)

LABEL = re.compile(r"[0-9a-f]+ <(.*)>:$")
INSTRUCTION = re.compile(r"\s+([0-9a-f]+):\t([^#\n]*)")
PADDING = re.compile(r"(?:(?:data16|cs) +)*nop|xchg +%ax,%ax")
REGISTER = re.compile(r"%(\w+)")
TARGET = re.compile(r"\b([0-9a-f]+) <([^>+]+)(?:\+0x[0-9a-f]+)?>")


def functions_in(path):
    """The instructions of each function. The target of a local jump is replaced by its index."""
    listings, current = {}, None
    for line in output_of("objdump", "-d", "-r", "--no-show-raw-insn", str(path)).splitlines():
        label = LABEL.match(line)
        if label:
            current = listings.setdefault(label[1], [])
            continue
        instruction = INSTRUCTION.match(line)
        if instruction and current is not None:
            current.append((instruction[1], instruction[2].strip()))
    functions = {}
    for name, lines in listings.items():
        while lines and PADDING.match(lines[-1][1]):
            lines.pop()
        number = {address: str(i) for i, (address, _) in enumerate(lines)}
        functions[name] = [TARGET.sub(lambda target: "@" + number.get(target[1], target[2]), text)
                           for _, text in lines]
    return functions


def family_of(register):
    """The whole register and the part of it: eax is (rax, 32 bits)."""
    name = register
    if re.fullmatch(r"r\d+[dwb]?", name):
        number = re.match(r"r\d+", name)[0]
        return number, name[len(number):]
    if name in ("al", "bl", "cl", "dl"):
        return name[0] + "x", "b"
    if name in ("ah", "bh", "ch", "dh"):
        return name[0] + "x", "high"
    if name in ("sil", "dil", "spl", "bpl"):
        return name[:2], "b"
    if name[0] in "er" and len(name) == 3:
        return name[1:], "d" if name[0] == "e" else ""
    return name, "w" if len(name) == 2 else ""


def bag_of(lines):
    """The instructions without order, register names and copies; the width of each register
    remains."""
    bag = []
    for line in lines:
        line = REGISTER.sub(lambda one: f"%{family_of(one[1])[1]}", line)
        if not re.fullmatch(r"mov +%,%", line):
            bag.append(line)
    return sorted(bag)


def same_multiset(one, two):
    return "@" not in "".join(one + two) and bag_of(one) == bag_of(two)


def same_instructions(one, two):
    """True when both lists are equal up to one renaming of registers."""
    if [REGISTER.sub("%", line) for line in one] != [REGISTER.sub("%", line) for line in two]:
        return False
    there, back = {}, {}
    for left, right in zip(REGISTER.findall("\n".join(one)), REGISTER.findall("\n".join(two))):
        (a, part_a), (b, part_b) = family_of(left), family_of(right)
        if part_a != part_b or there.setdefault(a, b) != b or back.setdefault(b, a) != a:
            return False
    return True


def meets_requirement(name, lib, hand):
    """True when a pair meets its requirement."""
    if name.startswith("check_"):
        return (len(without_padding(lib)) <= len(without_padding(hand))
                and not any(line.startswith("call") for line in lib))
    return same_instructions(lib, hand) or same_multiset(lib, hand)


def without_padding(lines):
    return [line for line in lines if not PADDING.match(line)]


def differences_in(path):
    """The pairs that differ, by name, and the number of pairs."""
    # Ignores C++ functions, which were not inlined: the caller shows a call instead.
    functions = {name: lines for name, lines in functions_in(path).items()
                 if not name.startswith("_Z")}
    pairs = [name[4:] for name in functions if name.startswith("lib_")]
    unpaired = {name for name in functions if name.partition("_")[2] not in pairs} | {
        f"lib_{name}" for name in pairs if f"hand_{name}" not in functions}
    if unpaired:
        raise ValueError(f"no pair: {', '.join(sorted(unpaired))}")
    both = {name: (functions[f"lib_{name}"], functions[f"hand_{name}"]) for name in pairs}
    failed = {name: pair for name, pair in both.items() if not meets_requirement(name, *pair)}
    return failed, len(pairs)


def bytes_in(path):
    """The size of the code and the constants of an object."""
    return sum(map(int, SECTION.findall(output_of("size", "-A", str(path)))))


def family_of_compiler(compiler):
    """Which compiler a command such as c++ is."""
    about = output_of(*compiler.split(), "--version")
    return "clang++" if "clang" in about else "g++"


def limit_of_size(source, family):
    """The limit in the source text for a compiler, or None."""
    limits = [int(limit) for limit, _, of in AT_MOST.findall(source) if of in ("", family)]
    return min(limits, default=None)


def problems_of_size(source, path, family):
    """The violations of the limits in the source text by the object at `path`."""
    limit, texts = limit_of_size(source, family), WITHOUT.findall(source)
    if not AT_MOST.search(source) and not texts:
        yield "no line `// at most: N bytes` and none `// without: TEXT`"
    size = bytes_in(path)
    if size == 0:
        yield "nothing in it"
    if limit is not None and size > limit:
        yield f"{size} bytes, more than {limit}"
    for text in texts:
        if text.encode() in path.read_bytes():
            yield f"has the text {text!r}"


def size_flags(source):
    """The flags with which a file is compiled whose size is limited."""
    levels = {level for _, level, _ in AT_MOST.findall(source) if level}
    return [*(levels or ["-Os"]), *SIZE_FLAGS]


def check_sizes(compilers):
    failed = False
    sources = sorted(SIZES.glob("*.cpp"))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "object.o")
        for compiler in compilers:
            family = family_of_compiler(compiler)
            for source in sources:
                text = source.read_text(encoding="utf-8")
                flags = size_flags(text)
                name = f"{compiler} {flags[0]}: {source.name}"
                try:
                    compile_to(path, source, compiler, *flags)
                    problems = list(problems_of_size(text, path, family))
                    limit = limit_of_size(text, family)
                    print(f"{name}: {bytes_in(path)} bytes" + (f" of {limit}" if limit else ""))
                except (OSError, subprocess.CalledProcessError) as error:
                    problems = [str(error)]
                for problem in problems:
                    print(f"{name}: {problem}")
                failed |= bool(problems)
    return failed or not sources


def check(compilers):
    failed = check_sizes(compilers)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "object.o")
        for compiler in compilers:
            for level in LEVELS:
                try:
                    compile_to(path, SOURCE, compiler, *FLAGS, level)
                    different, count = differences_in(path)
                except (OSError, ValueError, subprocess.CalledProcessError) as error:
                    print(f"{compiler} {level}: {error}")
                    failed = True
                    continue
                for name, (lib, hand) in different.items():
                    print(f"{compiler} {level}: {name}", "  through ptspec:",
                          *(f"    {line}" for line in lib), "  manually written:",
                          *(f"    {line}" for line in hand), sep="\n")
                print(f"{compiler} {level}: {count} pairs, {len(different)} differ")
                failed |= bool(different) or count == 0
    return 1 if failed else 0


def self_test():
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ["g++", "clang++"]), None)
    if compiler is None or "x86_64" not in output_of(*compiler.split(), "-dumpmachine"):
        print("skipped: a compiler for x86-64: all")
        return 77
    cases = [  # two bodies of a function of a and b, and whether their instructions are the same
        ("return a >> 3 & 7;", "return a / 8 % 8;", True),
        ("return a >> 3 & 7;", "return a >> 4 & 7;", False),
        ("return a >> 3 & 7;", "return a >> 3 & 15;", False),
        ("return a & 7;", "return (a & 7) + (b & 8);", False),
        ("return a + 1;", "return b + 1 + 0 * a;", True),  # the computed value is not compared
        ("if (a != 7) { return b * 9; } return b / 3;", "return a != 7 ? b / 3 : b * 9;", False),
    ]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source, path = pathlib.Path(folder, "case.cpp"), pathlib.Path(folder, "case.o")
        for lib, hand, same in cases:
            source.write_text("".join(
                f'extern "C" unsigned {name}_x(unsigned a, unsigned b) {{ {body} }}\n'
                for name, body in (("lib", lib), ("hand", hand))), encoding="utf-8")
            compile_to(path, source, compiler, *FLAGS, "-O1")
            different, count = differences_in(path)
            if count != 1 or bool(different) == same:
                print(f"{lib} and {hand}: expected {same}, got {different or 'no difference'}")
                failures += 1
        source.write_text('extern "C" int lib_x(int a) { return a; }\n', encoding="utf-8")
        compile_to(path, source, compiler, *FLAGS, "-O1")
        try:
            differences_in(path)
            print("a function without its pair was not noticed")
            failures += 1
        except ValueError:
            pass
    checks = [  # two listings of a check, and whether the first is good enough
        (["test $1,%al", "ret"], ["test $2,%al", "ret"], True),
        (["ret"], ["test $2,%al", "ret"], True),
        (["nopl 0x0(%rax)", "nop", "ret"], ["ret"], True),
        (["test $1,%al", "ret"], ["ret", "nop"], False),
        (["call @f", "ret"], ["test $2,%al", "ret"], False),
    ]
    for lib, hand, good in checks:
        if meets_requirement("check_x", lib, hand) != good:
            print(f"{lib} for {hand}: expected {good}")
            failures += 1
    renamings = [  # two listings, and whether they are equal up to register names
        (["mov %rdi,%rax", "and $0x7,%eax"], ["mov %rdi,%rcx", "and $0x7,%ecx"], True),
        (["mov %rdi,%rax", "and $0x7,%eax"], ["mov %rdi,%rcx", "and $0x7,%edx"], False),
        (["mov %rdi,%rax", "add %rsi,%rax"], ["mov %rdi,%rax", "add %rdi,%rax"], False),
        (["mov %eax,%ecx"], ["mov %rax,%rcx"], False),
        (["mov %r8d,%r9d"], ["mov %eax,%ecx"], True),
        (["setne %al", "movzbl %al,%eax"], ["setne %dl", "movzbl %dl,%edx"], True),
    ]
    for one, two, same in renamings:
        if same_instructions(one, two) != same:
            print(f"{one} and {two}: expected {same}")
            failures += 1
    multisets = [  # two listings, and whether they are equal up to order and copies
        (["mov    %rdi,%rax", "and $1,%eax", "shl $2,%rsi"], ["shl $2,%rax", "and $1,%edi"], True),
        (["mov    %edi,%eax", "shl $2,%rsi"], ["shl $2,%rax"], False),
        (["and $1,%eax", "and $1,%eax"], ["and $1,%eax"], False),
        (["and $1,%eax"], ["and $1,%rax"], False),
        (["jne @2", "ret", "inc %eax"], ["jne @2", "inc %eax", "ret"], False),
    ]
    for one, two, same in multisets:
        if same_multiset(one, two) != same:
            print(f"{one} and {two} without order: expected {same}")
            failures += 1
    sized = 'extern "C" int f(int a) { return a; }\n'
    worded = 'extern "C" char const* f() { return "some words"; }\n'
    unrolled = ("// at most: 150 bytes, with -Os\n"
                "void f(int* to) { for (int i = 0; i < 99; ++i) { to[i] = to[i] * i + 3; } }\n")
    sizes = [  # a source, and the expected findings
        ("// at most: 20 bytes\n" + sized, []),
        ("// at most: 1 bytes\n" + sized, ["more than 1"]),
        ("// at most: 11 bytes\n" + worded, ["more than 11"]),  # constants are counted
        ("// without: words\n// without: some\n" + sized, []),
        ("// without: other\n// without: words\n" + worded, ["has the text 'words'"]),
        ("// at most: 20 bytes by g++\n// at most: 20 bytes by clang++\n" + sized, []),
        ("// at most: 1 bytes by g++\n// at most: 1 bytes by clang++\n" + sized, ["more than 1"]),
        ("// at most: 1 bytes by c++\n" + sized, ["no line"]),
        (sized, ["no line"]),
        ("// at most: 20 bytes\n", ["nothing in it"]),
        (unrolled, []),
        (unrolled.replace("-Os", "-O3"), ["more than 150"]),
    ]
    family = family_of_compiler(compiler)
    with tempfile.TemporaryDirectory() as folder:
        source, path = pathlib.Path(folder, "case.cpp"), pathlib.Path(folder, "case.o")
        for text, wanted in sizes:
            source.write_text(text, encoding="utf-8")
            compile_to(path, source, compiler, *size_flags(text))
            found = list(problems_of_size(text, path, family))
            if len(found) != len(wanted) or any(a not in b for a, b in zip(wanted, found)):
                print(f"{text}: expected {wanted}, got {found}")
                failures += 1
    both = "// at most: 7 bytes by g++\n// at most: 8 bytes by clang++\n"
    limits = [(both, "g++", 7), (both, "clang++", 8), (both[:26], "g++", 7),
              (both[:26], "clang++", None)]
    for text, name, limit in limits:
        if limit_of_size(text, name) != limit:
            print(f"{text}: expected {limit} for {name}")
            failures += 1
    all_cases = (cases, checks, renamings, multisets, limits, sizes)
    count = sum(map(len, all_cases)) + 1
    print(f"{count} cases, {failures} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    only_sizes = arguments[:1] == ["--sizes"]
    compilers = arguments[1:] if only_sizes else arguments
    if not compilers or compilers[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    return check_sizes(compilers) if only_sizes else check(compilers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
