#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The names of functions in files of compilers and linkers, compared with nm and objdump.

    elf_names.py ELF_NAMES
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
from folder import Folder  # noqa: E402

ELF_NAMES = sys.argv.pop(1)
CLANG = next(filter(shutil.which, ("clang++-19", "clang++", "clang++-14")), None)

# Functions with code that rarely executes: a report, an exception, and the clean-up of objects.
COLD = b"""
#include <cstdio>
#include <stdexcept>
#include <string>
__attribute__((noinline, cold)) void report(int x) { std::printf("%d\\n", x); }
struct object { ~object(); int value; };
object::~object() { std::puts("end"); }
__attribute__((noinline)) int throws(int x) {
    if (x == 7) {
        report(x);
        std::string s = std::to_string(x);
        std::puts(s.c_str());
        throw std::runtime_error(s);
    }
    return x * 3;
}
__attribute__((noinline)) int cleans(int x) {
    object one{x};
    if (x > 3) { throw 1; }
    return throws(x) + (__builtin_expect(x < 0, 0) ? (report(x), __builtin_trap(), 0) : x);
}
int main(int count, char**) {
    try { for (int i = 0; i < 8; ++i) { std::printf("%d\\n", cleans(i + count)); } }
    catch (...) { std::puts("caught"); }
    try { throws(7); } catch (std::exception& one) { std::puts(one.what()); }
}
"""
# A function of one file, with the name of one in another file.
SAME = b"""
extern "C" int printf(char const*, ...);
__attribute__((noinline, cold)) static void report(int x) { printf("NAME %d", x); }
__attribute__((noinline)) static int same(int x) {
    if (__builtin_expect(x == 7, 0)) { report(x); report(x + 1); return 4; }
    return x * 3;
}
int NAME(int x) { return same(x) + same(x + 1); }
"""


def said(*command):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout


class Names(Folder):
    def ranges(self, path):
        """(start, end, entry, name) of all ranges with a name."""
        return [(int(start, 16), int(end, 16), int(entry, 16), name) for start, end, entry, name in
                (line.split(" ", 3) for line in said(ELF_NAMES, path).splitlines())]

    def addresses(self, path):
        """The addresses of each name, by nm."""
        made = {}
        for at, name in re.findall(r"^(\w+) \w (\S+)$", said("nm", path), re.M):
            made.setdefault(name, set()).add(int(at, 16))
        return made


class Parts(Names):
    def check_parts(self, path, suffix):
        """A symbol with this suffix is a part of the function that jumps into it, and of none if
        a CALL enters it. Returns how many were compared."""
        here, jumps, calls = None, {}, set()
        for line in said("objdump", "-d", "--no-show-raw-insn", path).splitlines():
            if match := re.match(r"(\w+) <(.+)>:", line):
                here = match[2]
            elif match := re.search(r"\t(\w+) +\w+ <([^+>]+)(\+\S+)?>", line):
                if match[1].startswith("call"):
                    calls.add(match[2])
                elif match[2] != here:
                    jumps.setdefault(match[2], set()).add(here)
        at = self.addresses(path)
        compared = 0
        for start, _, entry, name in self.ranges(path):
            if not re.search(suffix + "$", name):
                continue
            function = re.sub(suffix + "$", "", name)
            if name in calls:
                self.assertEqual(entry, start, name)
                compared += 1
            elif any(one == function or one.startswith(function + ".")
                     for one in jumps.get(name, ())):
                self.assertEqual({entry}, at[function], name)
                compared += 1
        for start, _, entry, name in self.ranges(path):
            if not re.search(suffix + "$", name):
                self.assertEqual(entry, start, name)
        return compared

    def build(self, compiler, *flags):
        source = self.file("cold.cpp", COLD)
        said(compiler, *flags, source, "-o", self.folder / "program")
        return self.folder / "program"

    def test_gcc_jumps_to_the_cold_part(self):
        program = self.build("g++", "-O2", "-freorder-blocks-and-partition")
        self.assertGreaterEqual(self.check_parts(program, r"\.cold"), 3)

    def test_clang_calls_what_it_outlines_from_cold_code(self):
        if CLANG is None:
            raise unittest.SkipTest("clang")
        program = self.build(CLANG, "-O2", "-mllvm", "-hot-cold-split=true", "-mllvm",
                             "-hotcoldsplit-threshold=0")
        self.assertGreaterEqual(self.check_parts(program, r"\.cold\.\d+"), 1)

    def test_clang_jumps_between_sections_of_basic_blocks(self):
        if CLANG is None:
            raise unittest.SkipTest("clang")
        program = self.build(CLANG, "-O2", "-fbasic-block-sections=all")
        self.assertGreaterEqual(self.check_parts(program, r"\.(__part\.\d+|eh)"), 10)

    def test_functions_of_two_files_have_one_name(self):
        sources = [self.file(f"{name}.cpp", SAME.replace(b"NAME", name.encode()))
                   for name in ("one", "two")]
        main = self.file("main.cpp", b"int one(int), two(int); int main(int c, char**) "
                                     b"{ return one(c) + two(c); }")
        program = self.folder / "program"
        said("g++", "-O2", *sources, main, "-o", program)
        code = said("objdump", "-d", "--no-show-raw-insn", program)
        wanted = {}
        for block in code.split("\n\n"):
            if match := re.match(r"(\w+) <_ZL4samei>:", block):
                (part,) = set(re.findall(r"\tj\w+ +(\w+) <_ZL4samei\.cold>", block))
                wanted[int(part, 16)] = int(match[1], 16)
        self.assertEqual(len(wanted), 2)
        self.assertEqual({start: entry for start, _, entry, name in self.ranges(program)
                          if name == "_ZL4samei.cold"}, wanted)

    def test_clones_are_functions(self):
        """Those of gcc, whose names have a number: .part.0, .isra.0, .constprop.0, .lto_priv.0."""
        source = self.file("clones.s", b"".join(
            b".type %s,@function\n%s: nop\nnop\n.size %s,2\n" % (name, name, name) for name in
            (b"f", b"f.part.0", b"f.isra.0", b"f.constprop.0", b"f.lto_priv.0", b"f.part.0.cold",
             b"f.cold.3", b"cold", b".cold", b"g.cold", b"f.coldest")))
        said("gcc", "-shared", "-nostdlib", source, "-o", self.folder / "program.so")
        found = {name: (start, entry)
                 for start, _, entry, name in self.ranges(self.folder / "program.so")}
        parts = {"f.part.0.cold": "f.part.0", "f.cold.3": "f"}
        for name, (start, entry) in found.items():
            self.assertEqual(entry, found[parts.get(name, name)][0], name)
        self.assertEqual(len(found), 11)

    def test_a_label_in_a_function_is_a_part_of_it(self):
        source = self.file("label.s", b"""
            .type f,@function
            f: nop; nop
            inside: nop; nop
            .type entry,@function
            entry: nop; nop
            .size entry, . - entry
            nop
            .size f, . - f
            after: nop; nop
        """)
        said("gcc", "-shared", "-nostdlib", source, "-o", self.folder / "program.so")
        ranges = self.ranges(self.folder / "program.so")
        f = ranges[0][0]
        self.assertEqual([(start - f, end - f, entry - f, name)
                          for start, end, entry, name in ranges],
                         [(0, 2, 0, "f"), (2, 4, 0, "inside"), (4, 6, 4, "entry"), (6, 7, 0, "f"),
                          (7, 9, 7, "after")])


class Choice(Names):
    """Of several symbols for an address, one is its name."""

    TABLE = [  # (type, has a size, binding, name); the first is the name
        [("function", True, "local", "camlO__f_82"), ("notype", False, "global",
                                                      "camlO__code_begin")],
        [("function", True, "global", "a"), ("function", False, "global", "longer.text")],
        [("function", True, "weak", "weak_but_sized"), ("function", False, "global", "b")],
        [("function", False, "local", "c"), ("notype", True, "global", "label_with_size")],
        [("function", True, "local", "d"), ("function", True, "weak", "weak_d")],
        [("function", True, "global", "e"), ("function", True, "local", "local_e")],
        [("function", True, "global", "read"), ("function", True, "global", "__read_internal"),
         ("function", True, "global", "_read_it")],
        [("function", True, "global", "the_longest"), ("function", True, "global", "long")],
        [("notype", True, "weak", "sized"), ("notype", False, "global", "not_sized")],
    ]

    def test_which_name(self):
        for turned in (False, True):
            source = ""
            for row in self.TABLE:
                for kind, has_size, binding, name in row[::-1] if turned else row:
                    source += f".type {name},@{kind}\n{name}:\n"
                    source += f".size {name},4\n" if has_size else ""
                    source += f".{binding} {name}\n" if binding != "local" else ""
                source += "nop; nop; nop; nop\n"
            path = self.folder / "program.so"
            said("gcc", "-shared", "-nostdlib", self.file("names.s", source.encode()), "-o", path)
            self.assertEqual([name for *_, name in self.ranges(path)],
                             [row[0][3] for row in self.TABLE])

    def test_go(self):
        if shutil.which("go") is None:
            raise unittest.SkipTest("go")
        self.file("main.go", b"package main\nfunc main() {}\n")
        subprocess.run(["go", "build", "-o", "program", "main.go"], cwd=self.folder, check=True,
                       env={**os.environ, "GOFLAGS": "-mod=mod", "GOCACHE": f"{self.folder}/cache"})
        start = min(self.addresses(self.folder / "program")["runtime.text"])
        (name,) = [name for at, _, _, name in self.ranges(self.folder / "program") if at == start]
        self.assertNotEqual(name, "runtime.text")


# Calls of functions of other files; the address of one is also read from the global offset table.
CALLS = b"""
int first(int), second(int), third(int), fourth(int), fifth(int);
extern int (*pointer)(int);
int all(int x) { return first(x) + second(x) + third(x) + fourth(x) + fifth(x); }
void set(void) { pointer = fifth; }
"""
# Functions that are chosen when the program starts.
CHOSEN = b"""
#define CHOSEN(name, n) static int name##_is(int x) { return x + n; } \\
    static int (*name##_choice(void))(int) { return name##_is; } \\
    int name(int x) __attribute__((ifunc(#name "_choice")));
CHOSEN(first, 1) CHOSEN(second, 2) CHOSEN(third, 3) CHOSEN(fourth, 4) CHOSEN(fifth, 5)
int (*pointer)(int);
void _start(void) { int all(int); void set(void); all(1); set(); }
"""


class LinkageTables(Names):
    def tables(self, path):
        """{address: names} of the entries of the procedure linkage tables, by objdump. The entry of
        a relocation without a symbol has the names of the function that it points to."""
        functions = {}
        for name, places in self.addresses(path).items():
            for at in places:
                functions.setdefault(at, set()).add(name)
        made = {}
        code = said("objdump", "-d", *[word for one in self.SECTIONS for word in ("-j", one)], path)
        for at, name in re.findall(r"^([0-9a-f]+) <(\S+)@plt>:", code, re.M):
            target = re.fullmatch(r"\*ABS\*\+0x(\w+)", name)
            made[int(at, 16)] = ({f"{one}@plt" for one in functions[int(target[1], 16)]}
                                 if target else {f"{name}@plt"})
        return made

    SECTIONS = (".plt", ".plt.got", ".plt.sec", ".iplt")

    def static_tables(self, path):
        """The same of a static program, whose entries objdump does not name: by its disassembly,
        its relocations and the contents of its slots. An entry begins after a NOP."""
        functions, wanted = {}, {}
        for name, places in self.addresses(path).items():
            for at in places:
                functions.setdefault(at, set()).add(name)
        targets = {int(slot, 16): int(target, 16) for slot, target in re.findall(
            r"^(\w+) +\w+ R_X86_64_IRELATIV\w* +(\w+)$", said("readelf", "-rW", path), re.M)}
        for line in said("objdump", "-s", "-j", ".got", "-j", ".got.plt", path).splitlines():
            if match := re.match(r" ([0-9a-f]+) ((?:[0-9a-f]{8} ){1,4})", line):
                for i, word in enumerate(match[2].split()):
                    target = int.from_bytes(bytes.fromhex(word), "little")
                    targets.setdefault(int(match[1], 16) + 4 * i, target)
        begin = None
        for line in said("objdump", "-d", "--no-show-raw-insn", "-j", ".plt", path).splitlines():
            if not (match := re.match(r" +(\w+):\t(.*)$", line)):
                continue
            if re.match(r"nop|xchg +%ax,%ax", match[2]):
                begin = None
                continue
            begin = begin or int(match[1], 16)
            if jump := re.search(r"jmp +\*(?:0x)?(\w+)$|jmp .*# (\w+)", match[2]):
                slot = int(jump[1] or jump[2], 16)
                wanted[begin] = {f"{one}@plt" for one in functions[targets[slot]]}
        return wanted

    def check_tables(self, path, least, wanted=None):
        """Each entry has the name that objdump finds, and ends where the next one begins or
        earlier. Code in no entry has no such name."""
        wanted = wanted or self.tables(path)
        found = {start: (end, name) for start, end, _, name in self.ranges(path)
                 if name.endswith("@plt")}
        self.assertEqual(set(found), set(wanted))
        for at, names in wanted.items():
            self.assertIn(found[at][1], names)
            self.assertIn(found[at][0] - at, (8, 16, 32))
        self.assertGreaterEqual(len(found), least)

    def link(self, compiler, flags, source=b""):
        files = [self.file(f"{i}.c", one) for i, one in enumerate((CALLS, source)) if one]
        path = self.folder / "program"
        said(compiler, "-O2", "-w", "-nostdlib", "-fno-stack-protector",
             "-fno-asynchronous-unwind-tables", *flags.split(), *files, "-o", path)
        return path

    def test_the_forms_of_the_linkers(self):
        linkers = ["bfd"] + ["lld"] * (shutil.which("ld.lld") is not None)
        forms = 0
        for linker in linkers:
            for machine in ("-m64", "-m32", "-mx32"):
                if (linker, machine) == ("lld", "-mx32"):
                    continue  # it has no such format
                for bind in ("lazy", "now"):
                    for protection in ("none", "branch"):
                        flags = (f"{machine} -fuse-ld={linker} -Wl,-z,{bind} "
                                 f"-fcf-protection={protection}")
                        with self.subTest(flags=flags):
                            shared = self.link("gcc", flags + " -shared -fPIC")
                            self.check_tables(shared, 5)
                            forms += 1

    def test_programs_of_32_bits_that_are_not_position_independent(self):
        source = self.file("other.c", b"int (*pointer)(int);" + b"".join(
            b"int %s(int x) { return x; }" % one.encode()
            for one in ("first", "second", "third", "fourth", "fifth")))
        shared = self.folder / "other.so"
        said("gcc", "-m32", "-nostdlib", "-shared", "-fPIC", source, "-o", shared)
        for bind in ("lazy", "now"):
            path = self.link("gcc", f"-m32 -fno-pic -no-pie -Wl,-z,{bind} -Wl,-e,all "
                                    f"-Wl,--no-as-needed {shared}")
            self.check_tables(path, 5)

    def test_retpolines(self):
        if shutil.which("ld.lld") is None:
            raise unittest.SkipTest("lld")
        for bind in ("lazy", "now"):
            path = self.link("gcc", f"-shared -fPIC -fuse-ld=lld -Wl,-z,{bind},-z,retpolineplt")
            names = dict(re.findall(r"^0*(\w+) .*R_X86_64_JUMP_SLO\w* +\w+ (\w+)",
                                    said("readelf", "-rW", path), re.M))
            code = said("objdump", "-d", "-j", ".plt", path)
            wanted = {int(at, 16): {f"{names[slot]}@plt"} for at, slot in re.findall(
                r"^ +(\w+):.*mov .*,%r11 +# (\w+)", code, re.M) if slot in names}
            self.check_tables(path, 5, wanted)

    def test_forms_that_no_installed_linker_writes(self):
        """BND without ENDBR64, as ld wrote with -z bndplt, and the entries of mold."""
        source = self.file("forms.s", b"""
            .section .plt.sec,"ax"
            bnd jmp *slot1(%rip); nop
            bnd jmp *slot2(%rip); nop
            .section .plt,"ax"
            .balign 16
            endbr64; push %r11; pushq slot0(%rip); jmp *slot0(%rip); nop; .balign 16
            endbr64; .byte 0x41, 0xBB, 0, 0, 0, 0; jmp *slot1(%rip)
            endbr64; .byte 0x41, 0xBB, 1, 0, 0, 0; jmp *slot2(%rip)
            .data
            slot0: .quad 0
            slot1: .quad first
            slot2: .quad second
        """)
        path = self.folder / "program.so"
        said("gcc", "-shared", "-nostdlib", source, "-o", path)
        start = {name: int(at, 16) for name, at in re.findall(
            r"(\.plt\S*) +PROGBITS +(\w+)", said("readelf", "-SW", path))}
        sec, plt = start[".plt.sec"], start[".plt"]
        self.check_tables(path, 4, {sec: {"first@plt"}, sec + 8: {"second@plt"},
                                    plt + 32: {"first@plt"}, plt + 48: {"second@plt"}})

    def test_functions_that_are_chosen_at_the_start_of_a_static_program(self):
        for machine in ("-m64", "-m32", "-mx32"):
            for protection in ("none", "branch"):
                flags = f"{machine} -static -fno-pic -no-pie -fcf-protection={protection}"
                with self.subTest(flags=flags):
                    path = self.link("gcc", flags, CHOSEN)
                    self.check_tables(path, 5, self.static_tables(path))

    def test_a_static_program_of_the_c_library(self):
        source = self.file("main.c", b"int main(void) { return 0; }")
        path = self.folder / "program"
        try:
            said("gcc", "-static", source, "-o", path)
        except subprocess.CalledProcessError:
            raise unittest.SkipTest("libc.a") from None
        self.check_tables(path, 20, self.static_tables(path))


if __name__ == "__main__":
    if shutil.which("objdump") is None:
        skips.end("objdump", "all")
    skips.main(sys.argv[:1])
