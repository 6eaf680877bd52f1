#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that tests cite each rule of the catalogue in tests/spec/, or that excused_rules.csv lists
it, and that the catalogue quotes the sentences of include/ptspec/base/rule.hpp, each of which
has the word "must".

    tests/checks/rules.py [ROOT]          prints the counts, and a line `path:line: what is wrong`
                                          for each finding
    tests/checks/rules.py --verbose       also the tests that cite each rule
    tests/checks/rules.py --quote         first writes the sentences of rule.hpp into the catalogue
    tests/checks/rules.py --self-test     breaks each check in a small tree; each must be found

The sentence of a rule stands in quotation marks directly after its id: `- REG-070 "the output base
must .." ..`, `**PKT-052** "IPBytes must not be 5 or 7" ..`. A rule that rule.hpp does not have
quotes none. A sentence is the text of a violation, so it says what "must" or "must not" be.

A citation is `PKT-052` or `PKT_052`, a range `PKT-050..068` (all existing rules in it; both ends
must exist) or a list without blanks, `PKT-036,037` or `PKT-036/037`. Tests cite anywhere in their
text; include/ cites in doc comments with `-` and in code with `_`, as in `rule::PKT_052`.

Exit status: 0 no finding, 1 findings, 2 wrong usage.
"""

import argparse
import collections
import csv
import pathlib
import re
import sys
import tempfile

from sources import matches

PREFIXES = ("REG", "OUT", "PKT", "GEN", "PRG")

REASONS = ("prose", "policy", "unconfirmed", "history", "missing")

# Declares the rule ids, and has their sentences; does not count as a citation.
DECLARATION = "include/ptspec/base/rule.hpp"

ANY = "|".join(PREFIXES)
DEFINITION = re.compile(r"^- ((?:REG|OUT)-\d{3}) |\*\*((?:PKT|GEN|PRG)-\d{3})\*\*", re.M)
QUOTE = re.compile(r' "([^"]*)"')
SENTENCE = re.compile(r'case rule::(\w{3}_\d{3}):\s*return((?:\s*"(?:[^"\\]|\\.)*")+);')
CITATION = re.compile(
    rf"\b({ANY})(?:-(\d+)|_(\d{{3}})\b)((?:(?:\.\.|,|/)(?:\1[-_])?\d{{3}}(?!\w))*)")
VOICE = re.compile(r"\bmust\b")
FURTHER = re.compile(r"(\.\.|,|/)\D*(\d{3})")


class Finding(collections.namedtuple("Finding", "path line what")):
    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}"


Citation = collections.namedtuple("Citation", "id path line in_code")


class Catalogue:
    """The rules that tests/spec/ defines and excuses, with their places."""

    def __init__(self, root):
        self.findings = []
        self.rules = {}    # rule -> place of its definition
        self.excused = {}  # rule -> its line in the table of excuses
        self.quotes = {}   # rule -> the sentence in quotation marks after its id
        self.spec = root / "tests" / "spec"
        self.read_rules()
        self.read_excuses()

    def find(self, path, line, what):
        self.findings.append(Finding(f"tests/spec/{path}", line, what))

    def read_rules(self):
        for page in sorted(self.spec.glob("*.md")):
            text = page.read_text(encoding="utf-8")
            for line, match in matches(DEFINITION, text):
                rule = match[1] or match[2]
                quote = QUOTE.match(text, match.end() - (1 if match[1] else 0))
                if quote:
                    self.quotes[rule] = quote[1]
                if rule in self.rules:
                    self.find(page.name, line, f"{rule} is defined a second time")
                self.rules.setdefault(rule, Finding(f"tests/spec/{page.name}", line, rule))

    def read_excuses(self):
        table = "excused_rules.csv"
        with open(self.spec / table, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        for line, row in enumerate(rows[1:], 2):
            rule, reason = (row + ["", ""])[:2]
            if rule not in self.rules:
                self.find(table, line, f"there is no rule {rule}")
            if rule in self.excused:
                self.find(table, line, f"{rule} is excused a second time")
            if reason not in REASONS:
                self.find(table, line, f"{reason!r} is none of {', '.join(REASONS)}")
            self.excused.setdefault(rule, line)

    def between(self, first, last):
        return [rule for rule in sorted(self.rules) if first <= rule <= last]


def citations_in(path, text, catalogue):
    """The citations in a text, with ranges and lists expanded, and the findings about them."""
    citations, findings = [], []
    for line, match in matches(CITATION, text):
        prefix, in_code = match[1], match[3] is not None
        ids = [f"{prefix}-{match[2] or match[3]}"]
        for separator, number in FURTHER.findall(match[4]):
            ids.append(f"{prefix}-{number}")
            if separator == "..":
                if ids[-2] > ids[-1]:
                    findings.append(Finding(path, line, f"the range {match[0]} runs backwards"))
                ids[-1:-1] = catalogue.between(ids[-2], ids[-1])
        for rule in dict.fromkeys(ids):
            if rule in catalogue.rules:
                citations.append(Citation(rule, path, line, in_code))
            else:
                findings.append(Finding(path, line, f"there is no rule {rule}"))
    return citations, findings


def sources(root, folder, suffixes, without=()):
    for path in sorted((root / folder).rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix in suffixes and not name.startswith(without):
            yield name, path.read_text(encoding="utf-8", errors="replace")


def sentences_of(root):
    """The sentence of each rule in rule.hpp."""
    return sentences_in((root / DECLARATION).read_text(encoding="utf-8"))


def sentences_in(text):
    return {match[1].replace("_", "-"): "".join(re.findall(r'"([^"]*)"', match[2]))
            for match in SENTENCE.finditer(text)}


def write_quotes(root):
    """Writes the sentences of rule.hpp after the ids of the rules."""
    sentences = sentences_of(root)

    def quoted(match):
        rule = match["rule"]
        sentence = f' "{sentences[rule]}"' if rule in sentences else ""
        return match["head"] + sentence

    head = re.compile(r'(?P<head>^- (?P<rule>(?:REG|OUT)-\d{3})(?= ))(?: "[^"]*")?', re.M)
    bold = re.compile(r'(?P<head>\*\*(?P<rule>(?:PKT|GEN|PRG)-\d{3})\*\*)(?: "[^"]*")?')
    for page in sorted((root / "tests" / "spec").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        page.write_text(bold.sub(quoted, head.sub(quoted, text)), encoding="utf-8")


class Report:
    def __init__(self, root):
        self.catalogue = Catalogue(root)
        self.findings = list(self.catalogue.findings)
        self.tests = collections.defaultdict(dict)  # rule -> tests that cite it
        for path, text in sources(root, "tests", (".cpp", ".hpp", ".py"),
                                  without=("tests/spec/", "tests/checks/")):
            for citation in self.read(path, text):
                self.tests[citation.id][path] = True
        self.check_excuses()
        for path, text in sources(root, "tests/spec", (".md", ".csv")):
            self.read(path, text)
        for path, text in sources(root, "include", (".hpp",)):
            self.check_header(path, self.read(path, text))
        self.check_uncited()
        self.check_quotes(sentences_of(root))

    def read(self, path, text):
        citations, findings = citations_in(path, text, self.catalogue)
        self.findings += findings
        return citations

    def uncited(self):
        return [rule for rule in sorted(self.catalogue.rules)
                if rule not in self.tests and rule not in self.catalogue.excused]

    def check_excuses(self):
        for rule, line in self.catalogue.excused.items():
            if rule in self.tests:
                tests = ", ".join(self.tests[rule])
                self.findings.append(Finding("tests/spec/excused_rules.csv", line,
                                             f"{rule} needs no excuse: {tests} cites it"))

    def check_header(self, path, citations):
        for rule, _, line, in_code in citations:
            if in_code and path != DECLARATION and rule in self.catalogue.excused:
                self.findings.append(Finding(path, line, f"{rule} is excused from tests"))

    def check_uncited(self):
        for rule in self.uncited():
            self.findings.append(self.catalogue.rules[rule]._replace(what=f"no test cites {rule}"))

    def check_quotes(self, sentences):
        for rule, place in self.catalogue.rules.items():
            sentence, quote = sentences.get(rule), self.catalogue.quotes.get(rule)
            if sentence is not None and not VOICE.search(sentence):
                self.findings.append(place._replace(
                    what=f'"{sentence}" of {rule} does not say what must be'))
            if sentence == quote:
                continue
            wanted = f"no sentence of {rule}" if sentence is None else f'"{sentence}" of {rule}'
            here = "none is quoted" if quote is None else f'"{quote}" is quoted'
            self.findings.append(place._replace(what=f"rule.hpp has {wanted}, {here} here"))

    def counts(self):
        yield "prefix", "rules", "cited", "excused", "uncited"
        for prefix in (*PREFIXES, ""):
            groups = (self.catalogue.rules, self.tests, self.catalogue.excused, self.uncited())
            yield prefix or "all", *(sum(rule.startswith(prefix) for rule in group)
                                     for group in groups)


# ------------------------------------------------------------------------------------- self-test

def small_tree():
    """A tree without findings."""
    return {
        "tests/spec/registers.md": "- REG-001 One.\n- REG-002 Two. (REG-001)\n- OUT-001 Three.\n",
        "tests/spec/packets.md": "**PKT-001** A.\n**PKT-003** B.\n**PKT-004** C.\n"
                                 '**PKT-052** "D must not be E" D.\n',
        "tests/spec/tracing.md": '**GEN-001** "a must b"\nE.\n',
        "tests/spec/programming.md": "**PRG-001** F. See GEN-001.\n",
        "tests/spec/excused_rules.csv": "id,reason\nPRG-001,policy\n",
        "tests/checks/unread.py": "# PKT-999\n",
        "include/ptspec/base/rule.hpp": "enum class rule { PKT_052, GEN_001 };\n"
                                   'case rule::PKT_052: return "D must not be E";\n'
                                   'case rule::GEN_001:\n return "a must "\n "b";\n',
        "include/ptspec/a.hpp": "/// PKT-001..004, REG-002.\n return rule::PKT_003;\n",
        "tests/a.cpp": 'TEST("REG-001: x") // PKT-001..004\n',
        "tests/fail/b.cpp": "// OUT_001, REG-002, PKT-052, GEN-001\n",
    }


# Path to change, old text, new text, and the expected findings.
TAMPERED = [
    ("tests/spec/tracing.md", "E.", "E. **PKT-052**",
     ["tests/spec/tracing.md:2: PKT-052 is defined a second time"]),
    ("tests/spec/programming.md", "See GEN-001", "See GEN-002",
     ["tests/spec/programming.md:1: there is no rule GEN-002"]),
    ("tests/spec/excused_rules.csv", "PRG-001", "XYZ-002",
     ["tests/spec/excused_rules.csv:2: there is no rule XYZ-002",
      "tests/spec/programming.md:1: no test cites PRG-001"]),
    ("tests/spec/excused_rules.csv", "policy", "laziness",
     ["tests/spec/excused_rules.csv:2: 'laziness' is none of prose, policy, unconfirmed, history, "
      "missing"]),
    ("tests/spec/excused_rules.csv", ",policy", "",
     ["tests/spec/excused_rules.csv:2: '' is none of prose, policy, unconfirmed, history, "
      "missing"]),
    ("tests/spec/excused_rules.csv", "PRG-001,policy\n", "PRG-001,policy\nPRG-001,prose\n",
     ["tests/spec/excused_rules.csv:3: PRG-001 is excused a second time"]),
    ("tests/spec/excused_rules.csv", "PRG-001,policy\n", "PRG-001,policy\nOUT-001,prose\n",
     ["tests/spec/excused_rules.csv:3: OUT-001 needs no excuse: tests/fail/b.cpp cites it"]),
    ("tests/a.cpp", "REG-001", "REG-003",
     ["tests/a.cpp:1: there is no rule REG-003",
      "tests/spec/registers.md:1: no test cites REG-001"]),
    ("tests/a.cpp", "x", "x PKT-52", ["tests/a.cpp:1: there is no rule PKT-52"]),
    ("tests/a.cpp", "x", "x PKT_053", ["tests/a.cpp:1: there is no rule PKT-053"]),
    ("tests/a.cpp", "x", "x PKT-003,005", ["tests/a.cpp:1: there is no rule PKT-005"]),
    ("tests/a.cpp", "x", "x PKT-003/PKT-005", ["tests/a.cpp:1: there is no rule PKT-005"]),
    ("tests/a.cpp", "x", "x PKT-001..053", ["tests/a.cpp:1: there is no rule PKT-053"]),
    ("tests/a.cpp", "x", "x PKT-004..001",
     ["tests/a.cpp:1: the range PKT-004..001 runs backwards"]),
    ("tests/a.cpp", "PKT-001..004", "PKT-001,003",
     ["tests/spec/packets.md:3: no test cites PKT-004"]),
    ("include/ptspec/a.hpp", "REG-002", "REG-009",
     ["include/ptspec/a.hpp:1: there is no rule REG-009"]),
    ("include/ptspec/a.hpp", "rule::PKT_003", "rule::PKT_002",
     ["include/ptspec/a.hpp:2: there is no rule PKT-002"]),
    ("include/ptspec/a.hpp", "rule::PKT_003", "rule::PRG_001",
     ["include/ptspec/a.hpp:2: PRG-001 is excused from tests"]),
    ("tests/fail/b.cpp", "PKT-052, ", "",
     ["tests/spec/packets.md:4: no test cites PKT-052"]),
    ("tests/fail/b.cpp", "OUT_001, REG-002", "OUT_001",
     ["tests/spec/registers.md:2: no test cites REG-002"]),
    ("include/ptspec/base/rule.hpp", "PKT_052,", "PKT_051,",
     ["include/ptspec/base/rule.hpp:1: there is no rule PKT-051"]),
    ("include/ptspec/base/rule.hpp", "must not be E", "is not mustard",
     ['tests/spec/packets.md:4: "D is not mustard" of PKT-052 does not say what must be',
      'tests/spec/packets.md:4: rule.hpp has "D is not mustard" of PKT-052, "D must not be E" is '
      'quoted here']),
    ("include/ptspec/base/rule.hpp", "not be E", "be E",
     ['tests/spec/packets.md:4: rule.hpp has "D must be E" of PKT-052, "D must not be E" is quoted '
      'here']),
    ("tests/spec/tracing.md", ' "a must b"', "",
     ['tests/spec/tracing.md:1: rule.hpp has "a must b" of GEN-001, none is quoted here']),
    ("tests/spec/registers.md", "REG-001 ", 'REG-001 "One" ',
     ['tests/spec/registers.md:1: rule.hpp has no sentence of REG-001, "One" is quoted here']),
]


def report_of(tree, prepare=lambda root: None):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in tree.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        prepare(pathlib.Path(folder))
        return Report(pathlib.Path(folder))


def self_test():
    failures = []

    def expect(what, found, wanted):
        if found != wanted:
            failures.append(f"{what}\n  wanted {wanted}\n  found  {found}")

    clean = report_of(small_tree())
    expect("the clean tree", [str(f) for f in clean.findings], [])
    expect("its counts", list(clean.counts())[1:],
           [("REG", 2, 2, 0, 0), ("OUT", 1, 1, 0, 0), ("PKT", 4, 4, 0, 0),
            ("GEN", 1, 1, 0, 0), ("PRG", 1, 0, 1, 0), ("all", 9, 8, 1, 0)])
    for path, old, new, wanted in TAMPERED:
        tree = small_tree()
        assert old in tree[path], f"{path} has no {old!r} to replace"
        tree[path] = tree[path].replace(old, new, 1)
        found = sorted(str(f) for f in report_of(tree).findings)
        expect(f"{path}: {old!r} -> {new!r}", found, wanted)
    wrong_quotes = small_tree()
    for path, old, new, _ in TAMPERED[-3:]:
        wrong_quotes[path] = wrong_quotes[path].replace(old, new, 1)
    expect("--quote", [str(f) for f in report_of(wrong_quotes, write_quotes).findings], [])
    print("\n".join(failures) if failures else f"self-test: {len(TAMPERED)} defects, all found")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description="Report which rules the tests cite.")
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--verbose", action="store_true", help="list the tests of each rule")
    parser.add_argument("--quote", action="store_true",
                        help="write the sentences of rule.hpp into the catalogue")
    parser.add_argument("--self-test", action="store_true", help="show that every check can fail")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    root = pathlib.Path(options.root)
    if not (root / "tests" / "spec").is_dir():
        parser.error(f"{root} has no tests/spec")
    if options.quote:
        write_quotes(root)
    report = Report(root)
    for row in report.counts():
        print("{:8}{:>8}{:>8}{:>8}{:>8}".format(*row))
    if options.verbose:
        for rule in sorted(report.tests):
            print(f"{rule} {' '.join(report.tests[rule])}")
    for finding in report.findings:
        print(finding)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
