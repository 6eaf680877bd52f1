# SPDX-License-Identifier: BSL-1.0
"""What the parsers of catalogue pages share: tables, numbers, lists, profiles and rules, as defined
at the beginning of notation.md.

Parsers are strict: anything that notation.md does not describe raises a `NotationError`.
"""

import collections
import contextlib
import pathlib
import re
import sys

SPEC = pathlib.Path(__file__).resolve().parents[1] / "spec"

CASE_HEAD = ("id", "profile", "setup", "operation", "expected", "rules")
PROFILE_HEAD = ("profile", "07H.0 EBX[25]", "14H.0 EAX", "14H.0 EBX", "14H.0 ECX", "14H.1 EAX",
                "14H.1 EBX", "14H.1 ECX", "M", "LA", "VMX_MISC[14]", "signature")
RULE = re.compile(r"^- ((?:REG|OUT)-\d{3}) |\*\*((?:PKT|GEN|PRG)-\d{3})\*\*", re.M)

Profile = collections.namedtuple(
    "Profile", "leaf_07_0_ebx_25 leaf_14_0_eax leaf_14_0_ebx leaf_14_0_ecx leaf_14_1_eax "
               "leaf_14_1_ebx leaf_14_1_ecx max_phys_addr linear_address_bits vmx_misc_14")


class NotationError(ValueError):
    """A table contains something that notation.md does not describe."""


@contextlib.contextmanager
def naming(case):
    """Adds the name of the case to a NotationError."""
    try:
        yield
    except NotationError as error:
        raise NotationError(f"{case}: {error}") from None


def refused(read, *arguments):
    """True when parsing raises a NotationError."""
    try:
        read(*arguments)
    except NotationError:
        return True
    return False


# ------------------------------------------------------------------------------------- tables

def cells_of(line):
    """The cells of a table line: separated by bars and trimmed; `\\|` is a literal bar."""
    if not (line.startswith("|") and re.search(r"(?<!\\)\|$", line)):
        raise NotationError(f"a row begins and ends with a bar: {line}")
    return tuple(cell.strip().replace("\\|", "|")
                 for cell in re.split(r"(?<!\\)\|", line)[1:-1])


def table_below(text, heading, head):
    """The rows of the only table in the section with this heading."""
    sections = re.split(r"^(?=## )", text, flags=re.M)
    found = [section for section in sections if section.startswith(heading + "\n")]
    if len(found) != 1:
        raise NotationError(f"{len(found)} sections {heading!r}")
    lines = [line for line in found[0].split("\n") if line.lstrip().startswith("|")]
    if "\n\n" + "\n".join(lines) + "\n\n" not in found[0] + "\n":
        raise NotationError(f"a line that belongs to no row in the table below {heading!r}")
    rows = [cells_of(line) for line in lines]
    if rows[:2] != [head, ("---",) * len(head)]:
        raise NotationError(f"the table below {heading!r} has not the columns {', '.join(head)}")
    for row in rows[2:]:
        if len(row) != len(head):
            raise NotationError(f"{row[0]}: {len(row)} cells below {len(head)} columns")
    return rows[2:]


def cases_below(text, heading, prefix, read):
    """Applies `read` to each row of a table of cases, which are numbered from `prefix`-01."""
    cases = [read(row) for row in table_below(text, heading, CASE_HEAD)]
    for at, case in enumerate(cases, 1):
        if case.id != f"{prefix}-{at:02}":
            raise NotationError(f"{case.id} stands where {prefix}-{at:02} belongs")
    return cases


# ------------------------------------------------------------------------------------- cells

def number(text, bits=64):
    if not re.fullmatch(r"[0-9A-Fa-f]+", text):
        raise NotationError(f"{text!r} is no hexadecimal number")
    if int(text, 16) >> bits:
        raise NotationError(f"{text!r} has more than {bits} bits")
    return int(text, 16)


def split_outside(text, separators, brackets):
    """Splits a text at separators that are outside brackets."""
    parts, depth, begin, at = [], 0, 0, 0
    while at < len(text):
        depth += {brackets[0]: 1, brackets[1]: -1}.get(text[at], 0)
        if depth not in (0, 1):
            raise NotationError(f"brackets without their twin in {text!r}")
        found = next((s for s in separators if not depth and text.startswith(s, at)), None)
        if found:
            parts.append(text[begin:at])
            begin = at = at + len(found)
        else:
            at += 1
    if depth:
        raise NotationError(f"brackets without their twin in {text!r}")
    parts.append(text[begin:])
    if any(part != part.strip() or not part for part in parts):
        raise NotationError(f"an item is missing, or has a blank too many, in {text!r}")
    return parts


# ------------------------------------------------------------------------------------- references

class Catalogue:
    """What the cells of all tables refer to: rules, and the profiles of registers.md."""

    def __init__(self, spec=SPEC, registers_md=None):
        self.spec = pathlib.Path(spec)
        self.registers_md = registers_md or self.page("registers.md")
        self.rules = set()
        for path in self.spec.glob("*.md"):
            for match in RULE.finditer(self.page(path.name)):
                self.rules.add(match[1] or match[2])
        self.profiles = self.read_profiles()

    def page(self, name):
        return (self.spec / name).read_text(encoding="utf-8")

    def read_profiles(self):
        profiles = {}
        for row in table_below(self.registers_md,
                               "## 0. CPU profiles used by the worked cases", PROFILE_HEAD):
            if not re.fullmatch(r"P-[A-Z]+", row[0]) or row[0] in profiles:
                raise NotationError(f"{row[0]!r} is no name of a new profile")
            words = [number(cell, 32) for cell in row[1:8]]
            if not (row[8].isdecimal() and row[9].isdecimal() and row[10] in ("0", "1")):
                raise NotationError(f"{row[0]}: M, LA and VMX_MISC[14] are no numbers")
            profiles[row[0]] = Profile(*words, int(row[8]), int(row[9]), int(row[10]))
        return profiles

    def profile(self, name):
        if name not in self.profiles:
            raise NotationError(f"there is no profile {name!r}")
        return self.profiles[name]

    def rule_ids(self, cell, prefix):
        """The rules in a cell; a number without prefix gets this prefix."""
        rules = []
        for item in cell.split(","):
            rule = re.sub(r"^(?=\d{3}$)", prefix, item.strip())
            if rule not in self.rules:
                raise NotationError(f"there is no rule {item.strip()!r}")
            if rule in rules:
                raise NotationError(f"{rule} twice")
            rules.append(rule)
        return tuple(rules)


def main(help_text, self_test, rows):
    """A parser as a program: prints its `rows` of the catalogue, or tests itself."""
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(help_text, file=sys.stderr)
        return 2
    for row in rows(*arguments):
        print(row)
    return 0
