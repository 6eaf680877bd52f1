#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Parses the worked cases OC of output.md, by the grammar of notation.md, section 2.

    oc_cases.py [SPEC]        prints the parsed rows, without comments
    oc_cases.py --self-test   breaks the notation in many ways; each change must be rejected

A cell that the notation does not describe raises a `NotationError` that names the case. Only
comments, which contain no claim, are skipped; text that resembles a claim is not a comment. A `?`
instead of a value is rejected, because results of the output engine are always defined.
"""

import collections
import itertools
import re
import sys

import spec_page
from spec_page import CASE_HEAD, SPEC, NotationError, number, refused

# The kinds of rows; `rules` are the rules that a row cites.
#
# `scheme` is single or topa. `smrr` is (PHYSBASE, PHYSMASK) or None. `memory` is a list of
# (address, word), `writes` a list of byte counts.
Engine = collections.namedtuple(
    "Engine", "id profile scheme base mask_ptrs stopped inject smrr memory writes wanted rules")
# `reach` is the addresses of the first and last byte that had one, or None. The last two are False
# when nothing is claimed.
Wanted = collections.namedtuple(
    "Wanted", "error stopped base mask_ptrs reach stored lost pmi global_status_55 pend_topa_pmi")
# The fields of an entry. With `end` 1, `base` is the address of the next table.
Entry = collections.namedtuple("Entry", "end interrupt stop size base")
Encode = collections.namedtuple("Encode", "id entry word rules")
# `broken` is the rule that the word breaks, or None.
Decode = collections.namedtuple("Decode", "id word max_phys_addr entry broken rules")
Build = collections.namedtuple("Build", "id start bytes offset base mask_ptrs rules")
Locate = collections.namedtuple("Locate", "id base mask_ptrs idx entry off rules")
# Writing the `pieces` has the same effect as writing the `whole`.
Pieces = collections.namedtuple("Pieces", "id pieces whole rules")

PROSE = "OC-51"

SCHEMES = {"single range": "single", "ToPA": "topa"}

# A comment is at least two words.
COMMENT = re.compile(r"[A-Za-z0-9][\w.,:=+*/'()-]*(?: [\w.,:=+*/'()-]+)+", re.A)
# The names of results next to a number, and words that never occur in comments.
CLAIM_IN_WORDS = re.compile(
    r"(?i:\b(?:error|stopped|base|mask_ptrs|MP|first|byte|last|stored|lost|PMIs?)(?: is| are)?:? )"
    r"[0-9A-F]+H?\b|\b[0-9A-F]+H? (?i:bytes? )?(?i:stored|lost|PMIs?)\b")
NEVER_IN_COMMENTS = re.compile(r"global[_ ]?status|pend[_ ]?to|\bfault|\b[A-Z]{3}-\d", re.I)


# ------------------------------------------------------------------------------------- parts

def matched(pattern, cell, what):
    found = re.fullmatch(pattern, cell, re.A)
    if not found:
        raise NotationError(f"{cell!r} is no {what}")
    return found.groups()


def pairs_of(text, what):
    """`NAME=v ..`, each name at most once."""
    pairs = [matched(r"(\w+)=(\w+)", item, what) for item in text.split(" ")]
    if len(pairs) != len(dict(pairs)):
        raise NotationError(f"a name twice in {text!r}")
    return dict(pairs)


def counts(text, separator):
    """A list of `nH`."""
    return tuple(number(matched(r"(\w+)H", item, "number of bytes")[0])
                 for item in text.split(separator))


def output_msrs(base, mask_ptrs, max_phys_addr=52):
    """BASE and MASK_PTRS, with values that the registers can hold: WRMSR never faults in these
    cases."""
    base, mask_ptrs = number(base), number(mask_ptrs)
    if base % 128 or base >> max_phys_addr:
        raise NotationError(f"BASE cannot be {base:X}")
    if mask_ptrs % 128 != 127:
        raise NotationError(f"MASK_PTRS cannot be {mask_ptrs:016X}: its bits 6:0 are ones")
    return base, mask_ptrs


def pointers(mask_ptrs):
    return {"idx": mask_ptrs >> 7 & 2**25 - 1, "off": mask_ptrs >> 32}


def check_comment(text, *facts):
    """Checks that a comment is words, and that values in it are correct: `facts` are values by
    name."""
    if text is None:
        return
    if not COMMENT.fullmatch(text) or CLAIM_IN_WORDS.search(text) or NEVER_IN_COMMENTS.search(text):
        raise NotationError(f"{text!r} is no comment")
    for word in text.split(" "):
        if "=" in word:
            name, value = matched(r"\(?(\w+)=(\w+)[,:)]?", word, "word of a comment")
            if name == "M":
                said = int(value) if value.isdecimal() else None
            else:
                said = number(value.removesuffix("H"))
            if said not in [some[name] for some in facts if name in some]:
                raise NotationError(f"{word!r} in a comment, and it is not so")


# ------------------------------------------------------------------------------------- rows

class Reader:
    """Parses one row."""

    def __init__(self, catalogue):
        self.catalogue = catalogue

    def row(self, cells):
        name, profile, setup, operation, expected, rules = cells
        if not re.fullmatch(r"OC-[0-9]{2}", name):
            raise NotationError(f"{name!r} is no id of a case")
        with spec_page.naming(name):
            read = self.reader_of(name, profile, operation)
            return read(name, profile, setup, operation, expected,
                        self.catalogue.rule_ids(rules, "OUT-"))

    def reader_of(self, name, profile, operation):
        if profile != "-":
            return self.engine
        if name == PROSE:
            return self.pieces
        without_profile = {"encode": self.encode, "decode": self.decode, "build": self.build,
                           "locate": self.locate}
        if operation not in without_profile:
            raise NotationError(f"{operation!r} is no operation without a profile")
        return without_profile[operation]

    # the engine

    def engine(self, name, profile, setup, operation, expected, rules):
        cpu = self.catalogue.profile(profile)
        scheme, base, mask_ptrs, others, memory = matched(
            r"(single range|ToPA), BASE=(\w+), MASK_PTRS=(\w+)((?:, [^;]+)?)(?:; memory (.+))?",
            setup, "setup")
        base, mask_ptrs = output_msrs(base, mask_ptrs, cpu.max_phys_addr)
        stopped, inject, smrr = self.others(others)
        scheme = SCHEMES[scheme]
        self.check_processor(cpu, scheme, inject)
        writes = self.writes(operation)
        wanted = self.wanted(expected, cpu, mask_ptrs, sum(writes), smrr)
        return Engine(name, profile, scheme, base, mask_ptrs, stopped, inject, smrr,
                      self.memory(memory), writes, wanted, rules)

    @staticmethod
    def others(text):
        """Stopped, Inject, and SMRR."""
        kinds = {}
        for item in text.split(", ")[1:]:
            kind, base, mask = matched(
                r"(Stopped=1|Inject=1)|SMRR base (\w+) mask (\w+)", item, "item of a setup")
            kind = kind or "SMRR"
            if kind in kinds:
                raise NotationError(f"{kind} twice")
            # The upper halves of both registers are reserved.
            kinds[kind] = base and (number(base, 32), number(mask, 32))
        return "Stopped=1" in kinds, "Inject=1" in kinds, kinds.get("SMRR")

    @staticmethod
    def check_processor(cpu, scheme, inject):
        """Checks that the WRMSR that sets TraceEn does not fault."""
        if not cpu.leaf_14_0_ecx >> {"topa": 0, "single": 2}[scheme] & 1:
            raise NotationError(f"the profile has no output of the scheme {scheme}")
        if inject and not cpu.leaf_14_0_ebx >> 6 & 1:
            raise NotationError("the profile has no InjectPsbPmiOnEnable")

    @staticmethod
    def memory(text):
        if text is None:
            return ()
        words = [matched(r"\[(\w+)\]=(\w+)", item, "word of memory") for item in text.split(", ")]
        words = tuple((number(address), number(word)) for address, word in words)
        if any(address % 8 for address, _ in words):
            raise NotationError(f"a word at no multiple of 8 in {text!r}")
        if len(words) != len(dict(words)):
            raise NotationError(f"two words in one place in {text!r}")
        return words

    @staticmethod
    def writes(operation):
        text = matched(r"enable(?:, write (.+) bytes)?", operation, "operation")[0]
        return () if text is None else counts(text, " + ")

    @staticmethod
    def wanted(cell, cpu, mask_ptrs_before, written, smrr):
        (error, stopped, base, mask_ptrs, first, last, stored, lost, pmi, claim, comment) = matched(
            r"Error=([01]) Stopped=([01]); BASE=(\w+) MASK_PTRS=(\w+); "
            r"(?:first byte (\w+), last (\w+); )?stored (\w+)H lost (\w+)H PMI (\w+)"
            r"(?:; (GLOBAL_STATUS\[55\]=1|PendToPAPMI=1))?(?:; (.+))?", cell, "result of a case")
        base, mask_ptrs = output_msrs(base, mask_ptrs, cpu.max_phys_addr)
        wanted = Wanted(error == "1", stopped == "1", base, mask_ptrs,
                        None if first is None else (number(first), number(last)),
                        number(stored), number(lost), number(pmi, 32),
                        claim == "GLOBAL_STATUS[55]=1", claim == "PendToPAPMI=1")
        if wanted.stored + wanted.lost != written:
            raise NotationError(f"{written:X}H bytes are written, and not all stored or lost")
        # A byte without an address is lost. A byte with an address is lost only when it is dropped.
        if (wanted.stored and not wanted.reach) or (
                wanted.reach and not (wanted.stored or (wanted.lost and smrr))):
            raise NotationError(f"addresses of bytes that had none, or the reverse, in {cell!r}")
        if claim and not wanted.pmi:
            raise NotationError(f"{claim} without a PMI")
        check_comment(comment, pointers(mask_ptrs_before), pointers(mask_ptrs),
                      {"Error": int(error), "Stopped": int(stopped), "M": cpu.max_phys_addr,
                       "BASE": base, "MASK_PTRS": mask_ptrs})
        return wanted

    # without a profile

    def encode(self, name, _, setup, operation, expected, rules):
        fields = pairs_of(matched(r"entry (.+)", setup, "setup")[0], "field of an entry")
        # A field that is not named has no value; with END=1 only the next table remains.
        wanted = {"0": ["Base", "END", "INT", "STOP", "Size"], "1": ["END", "NextTable"]}
        if sorted(fields) != wanted.get(fields.get("END")):
            raise NotationError(f"{setup!r} has not the fields of an entry")
        if fields["END"] == "1":
            entry = self.entry("1", "0", "0", "0", fields["NextTable"])
        else:
            entry = self.entry("0", *(fields[field] for field in ("INT", "STOP", "Size", "Base")))
        word, comment = matched(r"(\w+)(?:; (.+))?", expected, "word")
        check_comment(comment)
        return Encode(name, entry, number(word), rules)

    def decode(self, name, _, setup, operation, expected, rules):
        word, width = matched(r"word (\w+), M=([1-9][0-9])", setup, "setup")
        if not 32 <= int(width) <= 52:
            raise NotationError(f"M cannot be {width}")
        *fields, verdict, comment = matched(
            r"END=(\w+) INT=(\w+) STOP=(\w+) Size=(\w+) Base=(\w+); ([^;]+)(?:; (.+))?",
            expected, "result of decoding")
        broken = None
        if verdict != "legal":
            matched(r"[A-Z]{3}-\d{3}", verdict, "rule")
            broken, = self.catalogue.rule_ids(verdict, "")
        check_comment(comment, {"M": int(width)})
        return Decode(name, number(word), int(width), self.entry(*fields), broken, rules)

    @staticmethod
    def entry(end, interrupt, stop, size, base):
        base = number(base, 52)
        if base % 4096:
            raise NotationError(f"no entry can hold the address {base:X}")
        return Entry(*(number(bit, 1) for bit in (end, interrupt, stop)), number(size, 4), base)

    def build(self, name, _, setup, operation, expected, rules):
        request = matched(r"single range, Start=(\w+) Bytes=(\w+) Offset=(\w+)", setup, "setup")
        base, mask_ptrs, comment = matched(r"BASE=(\w+) MASK_PTRS=(\w+)(?:; (.+))?", expected,
                                           "value of the two MSRs")
        check_comment(comment)
        return Build(name, *map(number, request), *output_msrs(base, mask_ptrs), rules)

    def locate(self, name, _, setup, operation, expected, rules):
        where = matched(r"ToPA, BASE=(\w+), MASK_PTRS=(\w+)", setup, "setup")
        idx, entry, off, comment = matched(r"idx=(\w+) entry=(\w+) off=(\w+)(?:; (.+))?", expected,
                                           "position")
        check_comment(comment)
        return Locate(name, *output_msrs(*where), number(idx, 25), number(entry), number(off, 32),
                      rules)

    def pieces(self, name, _, setup, operation, expected, rules):
        matched("any", setup, "setup of a comparison")
        matched("identical", expected, "result of a comparison")
        pieces, whole = matched(r"write (.+) bytes against write (\w+H) bytes", operation,
                                "comparison")
        case = Pieces(name, counts(pieces, ", "), *counts(whole, ", "), rules)
        if sum(case.pieces) != case.whole or len(case.pieces) < 2:
            raise NotationError(f"{operation!r} does not write the same bytes twice")
        return case


# ------------------------------------------------------------------------------------- all cases

class Catalogue(spec_page.Catalogue):
    """The catalogue entries that cells refer to, and the page with the cases."""

    def __init__(self, spec=SPEC, output_md=None):
        super().__init__(spec)
        self.output_md = output_md or self.page("output.md")


def read_cases(catalogue=None):
    """All cases of the table, in order."""
    catalogue = catalogue or Catalogue()
    return spec_page.cases_below(catalogue.output_md, "## 13. Worked cases", "OC",
                                 Reader(catalogue).row)


# ------------------------------------------------------------------------------------- listing

def written_again(case):
    """The cells of a case without comments."""
    again = {Engine: engine_again, Encode: encode_again, Decode: decode_again, Build: build_again,
             Locate: locate_again, Pieces: pieces_again}
    profile = case.profile if isinstance(case, Engine) else "-"
    return case.id, profile, *again[type(case)](case), ", ".join(case.rules)


def engine_again(case):
    wanted = case.wanted
    setup = [f"{scheme}, BASE={case.base:X}, MASK_PTRS={case.mask_ptrs:016X}"
             for scheme, name in SCHEMES.items() if name == case.scheme]
    setup += ["Stopped=1"] * case.stopped + ["Inject=1"] * case.inject
    setup += ["SMRR base {:X} mask {:X}".format(*case.smrr)] if case.smrr else []
    memory = ", ".join(f"[{address:X}]={word:X}" for address, word in case.memory)
    counts_of = " + ".join(f"{count:X}H" for count in case.writes)
    expected = [f"Error={wanted.error:d} Stopped={wanted.stopped:d}",
                f"BASE={wanted.base:X} MASK_PTRS={wanted.mask_ptrs:016X}",
                *(["first byte {:X}, last {:X}".format(*wanted.reach)] if wanted.reach else []),
                f"stored {wanted.stored:X}H lost {wanted.lost:X}H PMI {wanted.pmi:X}",
                *["GLOBAL_STATUS[55]=1"] * wanted.global_status_55,
                *["PendToPAPMI=1"] * wanted.pend_topa_pmi]
    return (", ".join(setup) + (f"; memory {memory}" if memory else ""),
            f"enable, write {counts_of} bytes" if counts_of else "enable", "; ".join(expected))


def encode_again(case):
    end, interrupt, stop, size, base = case.entry
    fields = (f"END=1 NextTable={base:X}" if end else
              f"END=0 Base={base:X} Size={size:X} INT={interrupt} STOP={stop}")
    return f"entry {fields}", "encode", f"{case.word:X}"


def decode_again(case):
    return (f"word {case.word:X}, M={case.max_phys_addr}", "decode",
            "END={} INT={} STOP={} Size={:X} Base={:X}; ".format(*case.entry)
            + (case.broken or "legal"))


def build_again(case):
    return (f"single range, Start={case.start:X} Bytes={case.bytes:X} Offset={case.offset:X}",
            "build", f"BASE={case.base:X} MASK_PTRS={case.mask_ptrs:016X}")


def locate_again(case):
    return (f"ToPA, BASE={case.base:X}, MASK_PTRS={case.mask_ptrs:016X}", "locate",
            f"idx={case.idx:X} entry={case.entry:X} off={case.off:X}")


def pieces_again(case):
    pieces = ", ".join(f"{count:X}H" for count in case.pieces)
    return "any", f"write {pieces} bytes against write {case.whole:X}H bytes", "identical"


def listing(case):
    return f"| {' | '.join(written_again(case))} |"


# ------------------------------------------------------------------------------------- self-test

# Rule ids are assembled here, so that these rows do not cite rules.
def ids(*numbers):
    return tuple(f"{PREFIX}{number}" for number in numbers)


PREFIX = "OUT-"

# Rows that must be accepted.
SINGLE_RANGE = (
    "OC-01", "P-SRO", "single range, BASE=100080, MASK_PTRS=a00000fff, SMRR base 0 mask 800",
    "enable",
    "Error=1 Stopped=0; BASE=100080 MASK_PTRS=A00000FFF; stored 0H lost 0H PMI 0", "020")
TOPA = (
    "OC-02", "P-ATM", "ToPA, BASE=10000, MASK_PTRS=10000017F, SMRR base 80000006 mask FF800800, "
    "Inject=1; memory [10000]=400004, [1000FFF8]=F", "enable, write 10H + 0H + AH bytes",
    "Error=0 Stopped=1; BASE=20000 MASK_PTRS=20000007F; first byte 400001, last FF; "
    "stored 1H lost 19H PMI A; PendToPAPMI=1; wraps once", PREFIX + "085, 110,055")
COMMENTED = (
    *TOPA[:4], TOPA[4].replace("wraps once", "from idx=2 off=1H, to off=2 (M=42)"), TOPA[5])
LARGE = (
    "OC-03", "P-BDW", "ToPA, BASE=0, MASK_PTRS=7F, Stopped=1; memory [0]=0",
    "enable, write FFFFFFFFFFFFFFFFH bytes",
    "Error=0 Stopped=0; BASE=7FFFFFFF80 MASK_PTRS=FFFFFFFFFFFFFFFF; first byte 0, last 1; "
    "stored FFFFFFFFFFFFFFFFH lost 0H PMI FFFFFFFF; GLOBAL_STATUS[55]=1; "
    "8K: M=39, idx=1FFFFFF off=FFFFFFFF makes no error", "080")
DROPPED = (
    "OC-04", "P-ATM", "ToPA, BASE=10000, MASK_PTRS=7F, SMRR base 0 mask 800",
    "enable, write 2H bytes",
    "Error=0 Stopped=0; BASE=10000 MASK_PTRS=20000007F; first byte 0, last 1; "
    "stored 0H lost 2H PMI 0", "111")
ENCODE = ("OC-05", "-", "entry STOP=1 INT=0 Size=F Base=FFFFFF8000000 END=0", "encode",
          "3d0; 128 MB", "040")
ENCODE_END = ("OC-06", "-", "entry NextTable=5F000 END=1", "encode", "5F001", "043")
DECODE = ("OC-07", "-", "word FFFFFFFFFFFFFFFF, M=52", "decode",
          f"END=1 INT=0 STOP=1 Size=A Base=1000; {PREFIX}065; all bits, M=52", "065")
DECODE_LEGAL = ("OC-08", "-", "word 1, M=32", "decode",
                "END=0 INT=1 STOP=0 Size=0 Base=2000; legal", "040")
BUILD = ("OC-09", "-", "single range, Start=1 Bytes=2 Offset=3", "build", "BASE=80 MASK_PTRS=FF",
         "020")
LOCATE = ("OC-10", "-", "ToPA, BASE=FFFFFFFFFFF80, MASK_PTRS=FF", "locate",
          "idx=1FFFFFF entry=10000000 off=FFFFFFFF; the last there is", "050")
PIECES = ("OC-51", "-", "any", "write 1H, AH bytes against write BH bytes", "identical", "151")

READ = tuple((row, case) for *rows, case in (
    (SINGLE_RANGE, Engine(
        "OC-01", "P-SRO", "single", 0x100080, 0xA00000FFF, False, False, (0, 0x800), (), (),
        Wanted(True, False, 0x100080, 0xA00000FFF, None, 0, 0, 0, False, False), ids("020"))),
    (TOPA, COMMENTED, Engine(
        "OC-02", "P-ATM", "topa", 0x10000, 0x10000017F, False, True, (0x80000006, 0xFF800800),
        ((0x10000, 0x400004), (0x1000FFF8, 0xF)), (0x10, 0, 0xA),
        Wanted(False, True, 0x20000, 0x20000007F, (0x400001, 0xFF), 1, 0x19, 0xA, False, True),
        ids("085", "110", "055"))),
    (LARGE, Engine(
        "OC-03", "P-BDW", "topa", 0, 0x7F, True, False, None, ((0, 0),), (2**64 - 1,),
        Wanted(False, False, 0x7FFFFFFF80, 2**64 - 1, (0, 1), 2**64 - 1, 0, 2**32 - 1, True,
               False), ids("080"))),
    (DROPPED, Engine(
        "OC-04", "P-ATM", "topa", 0x10000, 0x7F, False, False, (0, 0x800), (), (2,),
        Wanted(False, False, 0x10000, 0x20000007F, (0, 1), 0, 2, 0, False, False), ids("111"))),
    (ENCODE, Encode("OC-05", Entry(0, 0, 1, 15, 0xFFFFFF8000000), 0x3D0, ids("040"))),
    (ENCODE_END, Encode("OC-06", Entry(1, 0, 0, 0, 0x5F000), 0x5F001, ids("043"))),
    (DECODE, Decode("OC-07", 2**64 - 1, 52, Entry(1, 0, 1, 10, 0x1000), PREFIX + "065",
                    ids("065"))),
    (DECODE_LEGAL, Decode("OC-08", 1, 32, Entry(0, 1, 0, 0, 0x2000), None, ids("040"))),
    (BUILD, Build("OC-09", 1, 2, 3, 0x80, 0xFF, ids("020"))),
    (LOCATE, Locate("OC-10", 0xFFFFFFFFFFF80, 0xFF, 0x1FFFFFF, 0x10000000, 0xFFFFFFFF, ids("050"))),
    (PIECES, Pieces("OC-51", (1, 10), 11, ids("151"))),
) for row in rows)

# Invalid texts after the setup of an engine case.
NO_SETUPS = (
    ", ", ",", "; ", ", Stopped", ", Stopped=0", ", Stopped=1, Stopped=1", ", Error=1",
    ", Inject=0", ", Inject=1, Inject=1", ", InjectPsbPmiOnEnable=1", ", PendToPAPMI=1",
    ", TraceEn=1", "; Stopped=1", ", SMRR", ", SMRR base 0", ", SMRR mask 0 base 0",
    ", SMRR base 0, mask 0", ", SMRR base=0 mask=0", ", SMRR base 0 mask 100000000",
    ", SMRR base 100000000 mask 0", ", SMRR base 0 mask 0, SMRR base 0 mask 0", ", SMRR 0 mask 0",
    ", memory [0]=0", "; memory", "; memory ", "; [0]=0", "; memory [0]=0,", "; memory [0]",
    "; memory [0]=", "; memory 0=0", "; memory []=0", "; memory [4]=0", "; memory [0]=?",
    "; memory [0]=0 [8]=0", "; memory [0]=0; [8]=0", "; memory [0]=0, [0]=1", "; memory [0x0]=0",
    "; memory [0]=12345678901234567", "; memory [0]=0; memory [8]=0", "; memory [0]=0H",
    "; memory [0]=0, Inject=1", "; Memory [0]=0", "; memory [10000000000000000]=0")

# Invalid changes to the result of TOPA: (old, new).
NO_RESULTS = (
    ("Error=0", "Error=2"), ("Error=0", "Error=?"), ("Error=0", "Error"), ("Error=0 ", ""),
    ("Error=0 Stopped=1", "Stopped=1 Error=0"), ("Error=0 S", "Error=0, S"), (" Stopped=1", ""),
    ("Error=0 S", "Error=0; S"), ("Stopped=1", "Stopped=01"), ("BASE=20000", "BASE=?"),
    ("BASE=20000", "BASE=20040"), ("BASE=20000", "BASE=40000000000"), ("BASE=20000 ", ""),
    ("BASE=20000 MASK", "BASE=20000, MASK"), ("MASK_PTRS=20000007F", "MASK_PTRS=?"),
    ("MASK_PTRS=20000007F", "MASK_PTRS=200000000"), ("MASK_PTRS=20000007F", "MP=20000007F"),
    ("MASK_PTRS=20000007F", "MASK_PTRS=1000000000000007F"), ("first byte 400001, last FF; ", ""),
    ("first byte", "first"), ("last FF", "last byte FF"), (", last", "; last"), (", last FF", ""),
    ("first byte 400001, ", ""), ("last FF", "last FFH"), ("last FF", "last ?"),
    ("first byte 400001", "first byte ?"), ("stored 1H", "stored 1"), ("stored 1H", "stored ?H"),
    ("stored 1H", "stored 2H"), ("lost 19H", "lost 18H"),
    ("stored 1H lost 19H", "lost 19H stored 1H"), ("stored 1H l", "stored 1H, l"),
    ("lost 19H ", ""), ("lost 19H P", "lost 19H; P"), ("PMI A", "PMI=A"), ("PMI A", "PMI ?"),
    ("PMI A", "PMI 100000000"), ("PMI A", "PMI 0"), (" PMI A", ""), ("PMI A", "PMIs A"),
    ("PendToPAPMI=1", "PendToPAPMI=0"), ("PendToPAPMI=1", "PendToPAPMI"),
    ("PendToPAPMI=1", "PendToPAPMI=1, seen"), ("PendToPAPMI=1", "pendToPAPMI=1"),
    ("PendToPAPMI=1", "GLOBAL_STATUS[55]=1; PendToPAPMI=1"),
    ("PendToPAPMI=1", "PendToPAPMI=1; GLOBAL_STATUS[55]=1"),
    ("PendToPAPMI=1", "PendToPAPMI=1; PendToPAPMI=1"),
    ("PendToPAPMI=1", "GLOBAL_STATUS[55]=0"), ("PendToPAPMI=1", "GLOBAL_STATUS[54]=1"),
    ("PendToPAPMI=1", "GLOBAL_STATUS=80000000000000"), ("; wraps", ";wraps"),
    ("; wraps", "; wraps; wraps"))

# Invalid cells: for each valid row, the replacements by column.
REFUSED = (
    (TOPA, {
        "id": ("", "OC-1", "OC-123", "RC-01", "oc-01", "OC_01"),
        # Some of these have no ToPA, no InjectPsbPmiOnEnable, or no PT.
        "profile": ("", "P-XXL", "ATM", "P-ATM P-BDW", "--", "P-FAB", "P-BDW", "P-NONE", "P-SRO"),
        "setup": (
            "", "cold state", "any", "fabric", "ToPA", "topa, BASE=0, MASK_PTRS=7F", "ToPA, BASE=0",
            "ToPA, MASK_PTRS=7F", "ToPA, MASK_PTRS=7F, BASE=0", "ToPA, BASE=0, MP=7F",
            "ToPA, BASE=?, MASK_PTRS=7F", "ToPA, BASE=0, MASK_PTRS=0",
            "ToPA, BASE=40, MASK_PTRS=7F", "ToPA, BASE=40000000000, MASK_PTRS=7F",
            "ToPA BASE=0, MASK_PTRS=7F", "ToPA, BASE=0 MASK_PTRS=7F", "ToPA; BASE=0, MASK_PTRS=7F",
            "range, BASE=0, MASK_PTRS=7F",
            *("ToPA, BASE=0, MASK_PTRS=7F" + more for more in NO_SETUPS)),
        "operation": (
            "", "write 1AH bytes", "enable write 1AH bytes", "enable; write 1AH bytes", "enable,",
            "enable, write 1A bytes", "enable, write 1AH", "enable, write 1AH byte", "enable",
            "enable, write bytes", "enable, write 1AH + bytes", "enable, write 10H, AH bytes",
            "enable, write 10H+AH bytes", "enable, write 10H AH bytes", "enable, write ?H bytes",
            "enable, write 0x1AH bytes", "enable, write 1Ah bytes", "enable, write 26 bytes",
            "enable, write 10H bytes, write AH bytes", "enable, 1AH bytes", "enable, write",
            "enable, write 1AH bytes, disable", "enable then write 1AH bytes", "encode", "locate",
            "Enable, write 1AH bytes", "enable, write 1BH bytes", "enable, write 10H + 10H bytes",
            "enable, write 19H bytes", "write 1H, 19H bytes against write 1AH bytes",
            "enable, write 1000000000000001AH bytes", "enable, write -1H bytes"),
        "expected": (
            "", "Error=0 Stopped=0", "#GP", "identical", "ok",
            "Error=0 Stopped=1; BASE=0 MASK_PTRS=7F",
            *(TOPA[4].replace(old, new, 1) for old, new in NO_RESULTS)),
        "rules": ("", "999", PREFIX + "999", PREFIX + "85", "85", "085;110", "OUT_" "085", "085, ",
                  "085 110", "085, 085", PREFIX + "085, 085", "OC-02")}),
    (COMMENTED, {"expected": [COMMENTED[4].replace(old, new) for old, new in (
        ("idx=2", "idx=3"), ("off=1H", "off=3H"), ("off=2", "off=0"), ("M=42", "M=39"),
        ("M=42", "M=2A"), ("idx=2", "IDX=2"), ("off=2", "off=2."), ("off=2", "off=02=2"))]}),
    (LARGE, {"expected": [LARGE[4].replace(old, new) for old, new in (
        ("PMI FFFFFFFF", "PMI 0"), ("M=39", "M=42"), ("first byte 0, last 1; ", ""))]}),
    (DROPPED, {
        "setup": ("ToPA, BASE=10000, MASK_PTRS=7F", "ToPA, BASE=10000, MASK_PTRS=7F, Stopped=1"),
        "operation": ("enable", "enable, write 1H bytes")}),
    (SINGLE_RANGE, {
        "profile": ("P-BDW", "P-FAB", "P-NONE"),  # profiles without single-range output
        "setup": (SINGLE_RANGE[2] + ", Inject=1",),
        "operation": ("enable, write 1H bytes", "enable, write bytes"),
        "expected": (SINGLE_RANGE[4].replace("; stored", "; first byte 0, last 0; stored"),)}),
    (ENCODE, {
        "setup": (
            "", "entry", "entry ", "END=0 Base=0 Size=0 INT=0 STOP=0", "entry END=0",
            "entry END=0 Base=0 Size=0 INT=0", "entry END=0 Base=0 Size=0 INT=0 STOP=0 STOP=0",
            "entry END=0 Base=0 Size=0 INT=0 STOP=2", "entry END=0 Base=0 Size=10 INT=0 STOP=0",
            "entry END=0 Base=800 Size=0 INT=0 STOP=0", "entry END=0 Base=? Size=0 INT=0 STOP=0",
            "entry END=0 Base=10000000000000 Size=0 INT=0 STOP=0", "entry END=1 NextTable=0 Size=0",
            "entry END=0, Base=0, Size=0, INT=0, STOP=0", "entry END=0 NextTable=0", "entry END=2",
            "entry END=1 Base=0", "entry END=1 NextTable=80", "entry end=1 NextTable=0",
            "entry Base=0 Size=0 INT=0 STOP=0", "entry END=1 NextTable=0 END=1", "entry END=1",
            "entry END=0 Base=0 Size=0 INT=0 STOP=0 Reserved1=1", "word 1, M=39"),
        "operation": ("", "Encode", "encode it", "decode", "enable"),
        "expected": (
            "", "?", "3D0H", "0x3D0", "3D0 128 MB", "3D0, 128 MB", "3D0; 128", "word 3D0", "3D0; ",
            "3D0; 3D1", "3D0; legal", "10000000000000000", "3D0;128 MB", "3D0; Size=F",
            "illegal")}),
    (DECODE_LEGAL, {
        "setup": (
            "", "word", "word 1", "word 1, M=", "word 1, M=3", "word 1, M=53", "word 1, M=2A",
            "word 1, M=039", "word 1; M=39", "word 1 M=39", "word ?, M=39", "1, M=39",
            "word 1, m=39", "word 1, M=31", "word 10000000000000000, M=39", "word 1, M=39, M=39")}),
    (DECODE, {
        "operation": ("", "Decode", "decode, legal", "encode"),
        "expected": (
            "", "legal", "END=1 INT=0 STOP=1 Size=A; legal",
            "INT=0 END=1 STOP=1 Size=A Base=1000; legal",
            "END=1 INT=0 STOP=1 Size=A NextTable=1000; legal",
            "END=1, INT=0, STOP=1, Size=A, Base=1000; legal",
            "END=2 INT=0 STOP=1 Size=A Base=1000; legal", "END=1 INT=0 STOP=1 Size=A Base=1; legal",
            "END=1 INT=0 STOP=1 Size=10 Base=1000; legal",
            "END=1 INT=? STOP=1 Size=A Base=0; legal",
            *("END=1 INT=0 STOP=1 Size=A Base=1000" + more for more in (
                "", ";", " legal", ", legal", "; illegal", "; Legal", "; legal now", "; 065",
                "; all bits", "; legal; M=52", "; legal; all bits, M=39", "; legal; one; two",
                f"; {PREFIX}999", f"; {PREFIX}065, {PREFIX}066", f"; legal; {PREFIX}065",
                f"; {PREFIX}065; {PREFIX}066", f"; {PREFIX}065; legal")))}),
    (BUILD, {
        "setup": (
            "", "single range", "single range, Start=1 Bytes=2",
            "single range, Start=1 Offset=3 Bytes=2", "single range, Start=1, Bytes=2, Offset=3",
            "single range Start=1 Bytes=2 Offset=3", "single range, Start=? Bytes=2 Offset=3",
            "single range, Start=1 Bytes=2H Offset=3", "ToPA, Start=1 Bytes=2 Offset=3",
            "single range, Start=1 Bytes=2 Offset=3 Size=4", "single range, BASE=80, MASK_PTRS=FF",
            "single range, Start= Bytes= Offset="),
        "operation": ("", "Build", "build it", "locate"),
        "expected": (
            "", "BASE=80", "BASE=80, MASK_PTRS=FF", "MASK_PTRS=FF BASE=80", "BASE=80 MASK_PTRS=?",
            "BASE=80 MASK_PTRS=FFH", "BASE=80 MASK_PTRS=FE", "BASE=81 MASK_PTRS=FF", "80 FF",
            "BASE=10000000000000 MASK_PTRS=FF", "BASE=80 MASK_PTRS=FF; done",
            "BASE=80 MASK_PTRS=FF; Error=0 Stopped=0", "BASE=80 MASK_PTRS=FF ")}),
    (LOCATE, {
        "setup": (
            "", "ToPA", "ToPA, BASE=80", "ToPA, BASE=80, MASK_PTRS=FE",
            "ToPA, BASE=8, MASK_PTRS=FF", "ToPA, BASE=80, MASK_PTRS=FF, Stopped=1",
            "ToPA, BASE=80, MASK_PTRS=FF; memory [80]=0", "single range, BASE=80, MASK_PTRS=FF",
            "ToPA, BASE=80 MASK_PTRS=FF", "ToPA, BASE=80, MP=FF"),
        "operation": ("", "Locate", "locate it", "build"),
        "expected": (
            "", "idx=1 entry=88", "entry=88 idx=1 off=0", "idx=1, entry=88, off=0", "1 88 0",
            "idx=2000000 entry=88 off=0", "idx=1 entry=88 off=100000000", "idx=1 entry=88 off=0H",
            "idx=1 entry=? off=0", "idx=1 entry=88 off=0; last", "idx=1 entry=88 off=0 idx=1",
            "idx=1 entry=88 off=0; as off=0 says", "idx=1 entry=88 off=0, the last")}),
    (PIECES, {
        "id": ("OC-50", "OC-52"),
        "profile": ("", "any", "P-SKL"),
        "setup": ("", "-", "all", "Any", "any, any", "ToPA"),
        "operation": (
            "", "write 1H, AH bytes", "write 1H, AH bytes against BH bytes", "encode",
            "write 1H, AH bytes against write CH bytes",
            "write 1H + AH bytes against write BH bytes",
            "write 1H AH bytes against write BH bytes", "write BH bytes against write BH bytes",
            "write 1H, AH bytes against write 1H, AH bytes", "write bytes against write BH bytes",
            "write 1, A bytes against write B bytes", "write 1H, ?H bytes against write BH bytes",
            "write 1H, AH bytes and write BH bytes",
            "enable, write 1H, AH bytes against write BH bytes"),
        "expected": ("", "Identical", "identical bytes", "the same", "identical; in all cases")}),
)

# Texts that are never valid comments.
NO_COMMENTS = (
    "", " ", "word", "1", "FF", "?", "-", "; two words", "two  words", " two words", "two words ",
    "two words;", "two words; and two", "two | words", "two [words]", "two {words}", "what is it?",
    "Error=2 then", "with Error=", "with =1", "Error = 1", "an Error=?", "an Error=0=1",
    "the PMIs are 2", "with PMI=1", "with STATUS=30", "with Inject=1", "with M=51", "with M=2A",
    "with idx=1FFFFFE", "with off=ABCDEF", "with off=ABCDEFH", "with BASE=ABCD80",
    "with MASK_PTRS=ABCDFF", "with entry=10000", "with x=1", "PMI 1", "PMI 1 later", "2 PMIs",
    "PMIs: 2", "Error 1", "Error is 1", "and Stopped 1", "Stopped: 1", "BASE 20000",
    "base is 20000", "MASK_PTRS 7F", "MP 7F", "first byte 400000", "first 400000", "last FF",
    "and last FF", "last byte FF",
    "stored 10H", "then stored 10H lost 0H", "lost 5H", "5H lost", "5H bytes lost", "10H stored",
    "lost ?", "GLOBAL_STATUS[55]", "GLOBAL_STATUS is set", "global status set", "Global_Status set",
    "sets PendToPAPMI", "pend topa", "Pend_ToPA set", "#GP later", "no fault", "it faults",
    f"breaks {PREFIX}060", "PendToPAPMI=1 here",
    "two words, GLOBAL_STATUS[55]=1", "caf\u00E9 au lait", "two\twords", "two\nwords",
)

# Invalid changes to the page: (old, new).
TAMPERED = (
    ("| OC-14 | P-SKL |", "| OC-14 | P-SKL | x |"), ("| OC-14 | P-SKL |", "| OC-14 |"),
    ("| OC-01 | P-SKL |", "| OC-01 | P-SKL | x |"), ("| OC-14 |", "| OC-15 |"),
    ("| OC-14 |", "OC-14 |"), ("| OC-01 |", "| OC-02 |"), ("| OC-51 |", "OC-51 |"),
    ("| OC-40 |", "\n| OC-40 |"), ("| OC-40 |", "  | OC-40 |"),
    ("| OC-40 |", "text\n| OC-40 |"), (f"142, {PREFIX}054 |", f"142, {PREFIX}054"),
    (f"058, {PREFIX}051 |", f"058, {PREFIX}051 \\|"),
    ("| setup | operation |", "| operation | setup |"),
    ("## 13. Worked cases", "## 13. Cases"), ("## 13. Worked cases", "## 14. Worked cases"),
    ("## 13. Worked", "## 13. Worked cases\n\n## 13. Worked"), ("| OC-50 | - |", "| OC-50 |- -|"),
    ("| OC-50 | - |", "| OC-50 | P-SKL |"), ("| OC-50 | - |", "| OC-50 | \\| |"),
    ("| OC-51 | - |", "| OC-51 | P-SKL |"), ("| OC-50 | -", "| OC-51 | -"),
)

NUMBER = re.compile(r"\b[0-9A-F]+(?=H?\b)")
NO_NUMBERS = ("", "x", "?", "0x1", "-1", "+1", "1.5", "1_0", "G", "1" * 17, "\u0661")
TOO_MUCH = ("!", ";", "=", ",", "[", ")", "#", "\t", "\n", "\u00E9", "_x", "; ", ", ", " ")


def corrupted(cell, column):
    """All corruptions of a cell without comments. None of them turns a list into another valid
    list."""
    rules = column == "rules"
    numbers = [range(*match.span()) for match in NUMBER.finditer(cell)]
    for at in range(len(cell) + 1):
        yield from (cell[:at] + more + cell[at:] for more in TOO_MUCH
                    if not (rules and more.isspace()))
    for at, character in enumerate(cell):
        if not any(at in span for span in numbers) and not (rules and character == " "):
            yield cell[:at] + cell[at + 1:]
            if character.isalpha():
                yield cell[:at] + character.swapcase() + cell[at + 1:]
    for span in numbers:
        yield from (cell[:span.start] + other + cell[span.stop:] for other in NO_NUMBERS)
    for old, new in itertools.permutations(("; ", ", ", " ", " + "), 2):
        yield from (cell[:match.start()] + new + cell[match.end():]
                    for match in re.finditer(rf"(?<![;,+]){re.escape(old)}(?!\+)", cell))
    items = cell.split("; ")
    yield from ("; ".join(items[:n] + items[n:n + 1] + items[n:]) for n in range(len(items)))
    yield from ("; ".join(some) for some in itertools.permutations(items) if list(some) != items)
    words = cell.split(" ")
    for n, word in enumerate(words):
        if word != "0H,":  # a second `0H`, or none, is valid
            yield " ".join(words[:n] + [word] + words[n:])
            if not (word.startswith(("[", PREFIX)) and word.endswith(",")):
                yield " ".join(words[:n] + words[n + 1:])


def with_cell(row, at, cell):
    return row[:at] + (cell,) + row[at + 1:]


def complaint(reader, row):
    """The error when an invalid row is accepted, or rejected without its case name."""
    try:
        reader.row(row)
    except NotationError as error:
        named = str(error).startswith(f"{row[0]}: ") or not re.fullmatch(r"OC-\d\d", row[0], re.A)
        return [] if named else [f"is refused, and its case not named: {error}"]
    return [f"is read: {row}"]


def corrupted_rows(rows, cases):
    """Invalid rows, made from those of the page. Of cells that differ only in numbers, one is used.
    """
    seen = set()
    for row, case in zip(rows, cases):
        for at, (column, cell, bare) in enumerate(zip(CASE_HEAD, row, written_again(case))):
            comment = cell.removeprefix(bare)
            shape = column, type(case), NUMBER.sub("0", bare), bool(comment)
            if shape in seen:
                continue
            seen.add(shape)
            yield from (with_cell(row, at, other + comment) for other in corrupted(bare, column))
            yield from (with_cell(row, at, other) for n, other in enumerate(row) if n != at)
            if column == "expected":
                yield from (with_cell(row, at, f"{bare}; {text}") for text in NO_COMMENTS)
            if comment:
                yield with_cell(row, at, cell + comment)
    # Cells of one kind in a row of another. A position is also a valid setup of the engine.
    of_each_kind = {type(case): row for row, case in zip(rows, cases)}
    for (kind, row), (other_kind, other) in itertools.permutations(of_each_kind.items(), 2):
        yield from (with_cell(row, at, other[at]) for at, column in enumerate(CASE_HEAD[1:5], 1)
                    if other[at] != row[at]
                    and (kind, other_kind, column) != (Engine, Locate, "setup"))


def self_test():
    catalogue = Catalogue()
    reader = Reader(catalogue)
    wrong = []
    for cells, case in READ:
        if reader.row(cells) != case:
            wrong.append(f"is read as\n{reader.row(cells)}\nnot\n{case}")
        wrong += [f"is not read again: {written_again(case)}"] * (
            reader.row(written_again(case)) != case)
    refusals = [with_cell(row, CASE_HEAD.index(column), cell) for row, columns in REFUSED
                for column, cells in columns.items() for cell in cells]
    rows = spec_page.table_below(catalogue.output_md, "## 13. Worked cases", CASE_HEAD)
    cases = read_cases()
    for row, case in zip(rows, cases):
        # Only comments are dropped.
        for cell, again in zip(row, written_again(case)):
            wrong += [f"{case.id}: {again!r} was read, not {cell!r}"] * (
                cell != again and not cell.startswith(again + "; "))
    refusals += corrupted_rows(rows, cases)
    for row in refusals:
        wrong += complaint(reader, row)
    for old, new in TAMPERED:
        assert old in catalogue.output_md, f"the page has no {old!r} to replace"
        text = catalogue.output_md.replace(old, new, 1)
        wrong += [f"is read: {old!r} as {new!r}"] * (
            not refused(lambda t: read_cases(Catalogue(output_md=t)), text))
    print("\n".join(wrong[:40]) if wrong else
          f"self-test: {len(READ) + len(cases)} rows read, {len(refusals) + len(TAMPERED)} "
          "mistakes refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(spec_page.main(__doc__, self_test,
                            lambda *spec: map(listing, read_cases(Catalogue(*spec)))))
