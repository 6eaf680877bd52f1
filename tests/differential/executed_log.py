# SPDX-License-Identifier: BSL-1.0
"""Reads the log of QEMU's user mode: the address and RSP of each instruction of a thread, and what
the files of a process say of an address. Nothing of ptspec is used here."""

import bisect
import collections
import mmap
import pathlib
import re
import struct

# The environment with which QEMU logs each instruction, in one file for each thread.
def environment(prefix):
    return {"QEMU_LOG": "exec,nochain,cpu,tid", "QEMU_SINGLESTEP": "1",
            "QEMU_LOG_FILENAME": f"{prefix}.%d"}


EXECUTED = re.compile(rb"^(?:Trace \d+: 0x\w+ \[\w+/(\w+)/[^\n]*\nRAX=[^\n]*\n[^\n]* RSP=(\w+)"
                      rb"|(Stopped execution) of TB)", re.M)


def executed(path):
    """(RIP, RSP) of each instruction that began, in the order of the log."""
    found = []
    with open(path, "rb") as file:
        if file.seek(0, 2) == 0:
            return found
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            for one in EXECUTED.finditer(log):
                if one[3] is not None:
                    found.pop()  # an event came before the instruction
                else:
                    found.append((int(one[1], 16), int(one[2], 16)))
    return found


Function = collections.namedtuple("Function", "address size names")
Function.__doc__ = "The names of a function; the address is that in memory."

COLD = re.compile(r"\.cold(\.\d+)?$")
NO_FUNCTION = ("_etext", "etext", "__etext")


class Elf:
    """The code and the symbols of an ELF file for x86-64."""

    def __init__(self, path):
        self.path = path
        self.data = pathlib.Path(path).read_bytes()
        program_at, section_at = struct.unpack_from("<QQ", self.data, 32)
        program_size, programs, section_size, sections, names = struct.unpack_from(
            "<HHHHH", self.data, 54)
        self.segments, self.sections = [], []
        for i in range(programs):
            kind, flags, offset, address, _, size = struct.unpack_from(
                "<IIQQQQ", self.data, program_at + i * program_size)
            if kind == 1:
                self.segments.append((address, offset, size))
        for i in range(sections):
            self.sections.append(struct.unpack_from("<IIQQQQIIQQ", self.data,
                                                    section_at + i * section_size))
        self.section_names = [self.text(self.sections[names][4], one[0]) for one in self.sections]

    def text(self, table, at):
        return self.data[table + at:self.data.index(b"\0", table + at)].decode("latin-1")

    def code(self, address, size):
        for start, offset, length in self.segments:
            if start <= address < start + length:
                begin = offset + address - start
                return self.data[begin:begin + size]
        return b""

    def build_id(self):
        for name, section in zip(self.section_names, self.sections):
            if name == ".note.gnu.build-id":
                return self.data[section[4] + 16:section[4] + section[5]].hex()
        return ""

    def symbols(self):
        """(address, size, name, is_label, source file, end of the section) of functions."""
        for section in self.sections:
            if section[1] not in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
                continue
            names = self.sections[section[6]][4]
            source = ""
            for at in range(section[4], section[4] + section[5], 24):
                name, info, _, place, address, size = struct.unpack_from("<IBBHQQ", self.data, at)
                kind = info & 15
                if kind == 4:  # STT_FILE
                    source = self.text(names, name)
                if kind not in (0, 2, 10) or place == 0 or place >= len(self.sections):
                    continue
                is_code = self.sections[place][2] & 4 != 0
                text = self.text(names, name)
                if not is_code or text == "" or kind == 0 and (
                        text[0] in ".$" or text in NO_FUNCTION):
                    continue
                end = self.sections[place][3] + self.sections[place][5]
                yield address, size, text, kind == 0, source if info >> 4 == 0 else "", end

    def plt(self, resolvers):
        """(address, size, name) of the entries of procedure linkage tables. `resolvers` are the
        names by which resolvers of indirect functions are known: {address: names}."""
        slots = {}
        for section in self.sections:
            if section[1] != 4:  # SHT_RELA
                continue
            symbols = self.sections[section[6]] if section[6] else None
            for at in range(section[4], section[4] + section[5], 24):
                slot, info, addend = struct.unpack_from("<QQQ", self.data, at)
                if info >> 32 and symbols:
                    name, = struct.unpack_from("<I", self.data, symbols[4] + 24 * (info >> 32))
                    slots[slot] = {self.text(self.sections[symbols[6]][4], name)}
                elif info & 0xffffffff == 37:  # R_X86_64_IRELATIVE
                    slots[slot] = resolvers.get(addend, set())
        for name, section in zip(self.section_names, self.sections):
            if name not in (".plt", ".plt.sec", ".plt.got"):
                continue
            code = self.code(section[3], section[5])
            # Entries of .plt.got have 8 bytes, unless they begin with ENDBR64, and those of a
            # static program that is no PIE: JMP [RIP+slot], XCHG AX, AX.
            is_short = name == ".plt.got" or code[:2] == b"\xff\x25" and code[6:8] == b"\x66\x90"
            size = 8 if is_short and code[:4] != b"\xf3\x0f\x1e\xfa" else 16
            for at in range(0, len(code), size):
                jump = code.find(b"\xff\x25", at, at + size)
                if jump < 0:
                    continue
                distance = int.from_bytes(code[jump + 2:jump + 6], "little", signed=True)
                for one in slots.get(section[3] + jump + 6 + distance, ()):
                    yield section[3] + at, size, f"{one}@plt"


def functions_of(path):
    """Functions of a file, by address, and where cold parts belong: {address: address}."""
    elf = Elf(path)
    all_symbols = list(elf.symbols())
    debug = elf.build_id()
    debug = pathlib.Path(f"/usr/lib/debug/.build-id/{debug[:2]}/{debug[2:]}.debug")
    if debug.exists():
        all_symbols += Elf(debug).symbols()
    resolvers = collections.defaultdict(set)
    for address, _, name, _, _, _ in all_symbols:
        resolvers[address].add(name)
    all_symbols += [(address, size, name, False, "", address + size)
                    for address, size, name in elf.plt(resolvers)]
    by_address = {}
    for address, size, name, is_label, source, end in all_symbols:
        one = by_address.setdefault(address, [0, set(), True, end])
        one[0] = max(one[0], size)
        one[1].add(name)
        one[2] = one[2] and is_label
    starts = sorted(by_address)
    found = []
    covered = 0
    for i, address in enumerate(starts):
        size, names, is_label, end = by_address[address]
        # A label in a function is none.
        if is_label and address < covered:
            continue
        if size == 0:
            size = (starts[i + 1] if i + 1 < len(starts) and starts[i + 1] < end else end) - address
        elif not is_label:
            covered = max(covered, address + size)
        found.append(Function(address, size, frozenset(names)))
    by_name = {}
    for address, _, name, _, source, _ in all_symbols:
        by_name[source, name] = address
        by_name.setdefault(("", name), address)
    cold = {}
    for address, _, name, _, source, _ in all_symbols:
        if COLD.search(name):
            base = COLD.sub("", name)
            owner = by_name.get((source, base), by_name.get(("", base)))
            if owner is not None:
                cold[address] = owner
    return elf, found, cold


PREFIXES = frozenset(b"\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65")
Kind = collections.namedtuple("Kind", "what length target pops")


def kind_of(code):
    """What an instruction does to RIP and RSP: of a CALL its length, of direct branches the
    distance of the target from the next instruction, of RETs the bytes that they pop."""
    at, prefixes, rex = 0, set(), 0
    while at < len(code) and code[at] in PREFIXES:
        prefixes.add(code[at])
        at += 1
    if at < len(code) and code[at] & 0xf0 == 0x40:
        rex = code[at]
        at += 1
    if at >= len(code):
        return Kind("unknown", 0, None, 0)
    op = code[at]
    after = code[at + 1:]

    def relative(size):
        return at + 1 + size, int.from_bytes(after[:size], "little", signed=True)

    if op == 0xe8:
        return Kind("call", *relative(4), 0)
    if op == 0xe9:
        return Kind("jump", *relative(4), 0)
    if op == 0xeb:
        return Kind("jump", *relative(1), 0)
    if op & 0xf0 == 0x70 or 0xe0 <= op <= 0xe3:
        return Kind("conditional", *relative(1), 0)
    if op == 0xc3:
        return Kind("return", at + 1, None, 8)
    if op == 0xc2:
        return Kind("return", at + 3, None, 8 + int.from_bytes(after[:2], "little"))
    if op == 0x0f and after:
        if after[0] & 0xf0 == 0x80:
            return Kind("conditional", at + 6, int.from_bytes(after[1:5], "little", signed=True),
                        0)
        if after[0] == 0x05:
            return Kind("system", at + 2, None, 0)
    if op == 0xff and after:
        which, mod, rm = after[0] >> 3 & 7, after[0] >> 6, after[0] & 7
        if which in (2, 4):
            length = at + 2
            if mod != 3 and rm == 4:
                length += 1
                if mod == 0 and len(after) > 1 and after[1] & 7 == 5:
                    length += 4
            if mod == 1:
                length += 1
            if mod == 2 or mod == 0 and rm == 5:
                length += 4
            return Kind("call" if which == 2 else "jump", length, None, 0)
    if prefixes & {0xf2, 0xf3} and (0xa4 <= op <= 0xa7 or 0xaa <= op <= 0xaf or
                                    0x6c <= op <= 0x6f):
        return Kind("repeated", 0, None, 0)
    # Instructions that load RSP: MOV, XCHG, POP, and LEA of another base.
    if after and op in (0x89, 0x8b, 0x87) and rex & 8:
        to = (after[0] & 7) | (rex & 1) << 3
        reg = (after[0] >> 3 & 7) | (rex & 4) << 1
        is_register = after[0] >> 6 == 3
        if (op == 0x89 and is_register and to == 4 or op == 0x8b and reg == 4 or
                op == 0x87 and (reg == 4 or is_register and to == 4)):
            return Kind("loads", 0, None, 0)
    if after and op == 0x8d and after[0] >> 3 & 7 == 4 and not rex & 4:
        base = after[0] & 7 if after[0] & 7 != 4 else after[1] & 7
        if base != 4 or rex & 1:
            return Kind("loads", 0, None, 0)
    if op == 0x5c and not rex & 1 or op == 0x94 and rex & 9 == 8:
        return Kind("loads", 0, None, 0)
    return Kind("other", 0, None, 0)


class Image:
    """The files that a process maps: {path: address of the first byte}."""

    def __init__(self, mapped):
        self.files, self.functions, self.cold = [], [], {}
        for path, base in mapped.items():
            elf, found, cold = functions_of(path)
            start = min(one[0] for one in elf.segments)
            offset = base - (start & ~0xfff)
            self.files.append((offset, elf))
            self.functions += [one._replace(address=one.address + offset) for one in found]
            self.cold |= {a + offset: b + offset for a, b in cold.items()}
        self.functions.sort()
        self.starts = [one.address for one in self.functions]
        self.by_address = {one.address: one for one in self.functions}
        # Names that an address has share a class: the smallest of them, without a version.
        self.classes = {}
        for one in self.functions:
            names = sorted(map(plain, one.names))
            first = min((self.name_class(name) for name in names))
            for name in names:
                self.classes[self.name_class(name)] = first
        self.known, self.kinds = {}, {}

    def name_class(self, name):
        while self.classes.setdefault(name, name) != name:
            name = self.classes[name]
        return name

    def function(self, ip):
        """The address of the function that contains an address: of several, the one that begins
        last; 0: none."""
        found = self.known.get(ip)
        if found is None:
            found = self.known[ip] = self.find(ip)
        return found

    def find(self, ip):
        at = bisect.bisect_right(self.starts, ip) - 1
        for i in range(at, max(-1, at - 40), -1):
            one = self.functions[i]
            if ip - one.address < one.size:
                return self.cold.get(one.address, one.address)
        return 0

    def name(self, function):
        if function == 0:
            return "?"
        return self.name_class(min(map(plain, self.by_address[function].names)))

    def kind(self, ip):
        found = self.kinds.get(ip)
        if found is None:
            code = b""
            for offset, elf in self.files:
                code = code or elf.code(ip - offset, 15)
            found = self.kinds[ip] = kind_of(code)
        return found

    def code(self, ip, size):
        for offset, elf in self.files:
            found = elf.code(ip - offset, size)
            if found:
                return found
        return b""


def plain(name):
    """A name without the version of its symbol, and with the separator of stacks replaced."""
    name = re.sub(r"@@?(?!plt)[\w.]+", "", name)
    return name.replace(";", ":")
