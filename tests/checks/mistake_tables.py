# SPDX-License-Identifier: BSL-1.0
"""The mistakes of tests/fail/, which must not compile, and what the compiler must say of each.

A table is a file of fragments. It begins with its title, includes and usings:

    /// Registers and their fields

    #include <ptspec/reg/rtit_ctl.hpp>

    using ctl = ptspec::reg::ia32_rtit_ctl;

    namespace value_too_wide {
    /// MTCFreq has 4 bits, and 16 needs 5.
    // expect: value_does_not_fit_in_the_field
    #ifndef SHOULD_FAIL
    static_assert(ctl{}.with(ctl::MTCFreq{15}).raw != 0);
    #else
    static_assert(ctl{}.with(ctl::MTCFreq{16}).raw != 0);
    #endif
    }  // namespace value_too_wide

A fragment is a namespace with the name of the mistake. In it stand a sentence that says what is
wrong, markers, and the code; the code has `#ifndef SHOULD_FAIL` or `#ifdef SHOULD_FAIL`, without
which it is valid. The file as it stands is the unit of all valid halves. The unit of a mistake is
the file with SHOULD_FAIL, without the other fragments and without the namespace.

A file without fragments is one mistake, named as the file: of its includes or macros, say. It may
be wrong without SHOULD_FAIL, too; then it has no valid half.

The markers:

    // expect: TEXT            the messages must contain this text
    // expect: TEXT | TEXT     one of these texts: compilers write the same differently
    // one error               the compiler must report one error
    // at most N lines         its messages must have no more lines
    // also clang              the page of errors also has the message of clang
    // only clang              only clang reports the mistake: others are not asked
    // a warning               a compiler only warns, and the prologue makes the warning an error

One of the texts must not occur in the code of the mistake: compilers quote the code.
"""

import dataclasses
import pathlib
import re

OPEN = re.compile(r"namespace (\w+) \{")
CLOSE = re.compile(r"\}  // namespace (\w+)")
EXPECT = re.compile(r"// expect:(.*)")
AT_MOST = re.compile(r"// at most (\d+) lines")
MARKER = re.compile(r"// (expect|one error|at most|also clang|only clang|a warning)")
ERROR = re.compile(r"^.*\berror\b(?: \w+)?: .*", re.M)  # `error: ..`, and of MSVC `error C2338: ..`
INCLUDE = re.compile(r"#include <.*")


class TableError(Exception):
    """The message says what is wrong with a table, and where."""


@dataclasses.dataclass
class Mistake:
    name: str
    path: pathlib.Path
    line: int
    sentence: str = ""
    texts: list = dataclasses.field(default_factory=list)  # those of which each must occur
    one_error: bool = False
    most_lines: int | None = None
    also_clang: bool = False
    only_clang: bool = False
    is_warning: bool = False
    code: list = dataclasses.field(default_factory=list)   # lines, without sentence and markers
    span: range = range(0)                                 # its lines in the file, from 0

    @property
    def where(self):
        return f"{self.path}:{self.line}: {self.name}"

    def is_for(self, compiler):
        """True if a compiler, "g++", "clang" or another, reports this mistake."""
        return compiler == "clang" or not self.only_clang

    def complaint(self, said):
        """What is wrong with the messages of a compiler that refused the mistake, or None."""
        heard = said.replace(self.path.resolve().as_posix(), "").replace(str(self.path), "")
        missing = [text for text in self.texts
                   if not any(one in heard for one in text.split(" | "))]
        errors, lines = len(ERROR.findall(said)), len(said.splitlines())
        if missing:
            return f"it does not compile, but the compiler does not say: {missing}"
        if self.one_error and errors != 1:
            return f"{errors} errors, not one"
        if self.most_lines is not None and lines > self.most_lines:
            return f"{lines} lines of messages, not {self.most_lines}"
        return None

    def half(self, mistaken):
        """The code of the mistake or its valid half, for a reader: without other directives."""
        kept, nested = [], []
        for line in self.code:
            if line in ("#ifdef SHOULD_FAIL", "#ifndef SHOULD_FAIL"):
                nested.append((line == "#ifdef SHOULD_FAIL") == mistaken)
            elif line.startswith("#if"):
                nested.append(None)
            elif line == "#else" and nested:
                nested[-1] = None if nested[-1] is None else not nested[-1]
            elif line == "#endif" and nested:
                nested.pop()
            elif all(nested):
                kept.append(line)
        return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n")


@dataclasses.dataclass
class Table:
    path: pathlib.Path
    title: str
    lines: list
    prologue: range        # the lines of includes, usings and what fragments share
    mistakes: list
    is_file: bool = False  # a file without fragments

    @property
    def has_valid_half(self):
        return not self.is_file or any("SHOULD_FAIL" in line for line in self.lines)

    def includes(self):
        """The standard and ptspec includes, which may be compiled once for all units."""
        return [self.lines[at] for at in self.prologue if INCLUDE.fullmatch(self.lines[at])]

    def unit(self, mistake=None, with_includes=True):
        """The source of a mistake, or of all valid halves. Lines keep their numbers."""
        dropped = set()
        if mistake:
            inside = set(mistake.span[1:-1])
            dropped = {at for at in range(self.prologue.stop, len(self.lines)) if at not in inside}
        if not with_includes:
            dropped |= {at for at in self.prologue if INCLUDE.fullmatch(self.lines[at])}
        lines = ["" if at in dropped else line for at, line in enumerate(self.lines)]
        define = "#define SHOULD_FAIL\n" if mistake else ""
        return f'{define}#line 1 "{self.path.resolve().as_posix()}"\n' + "\n".join(lines) + "\n"


def read_head(mistake, lines, at, needs_sentence):
    """Reads the sentence and the markers of a mistake. Returns the number of the next line."""
    sentence = []
    while at < len(lines) and lines[at].startswith("//"):
        line, where = lines[at], f"{mistake.path}:{at + 1}: {mistake.name}"
        if line.startswith("///"):
            sentence.append(line[3:].strip())
        elif found := EXPECT.fullmatch(line):
            if not found[1].strip():
                raise TableError(f"{where}: no text after `// expect:`")
            mistake.texts.append(found[1].strip())
        elif line == "// one error":
            mistake.one_error = True
        elif found := AT_MOST.fullmatch(line):
            mistake.most_lines = int(found[1])
        elif line == "// also clang":
            mistake.also_clang = True
        elif line == "// only clang":
            mistake.only_clang = True
        elif line == "// a warning":
            mistake.is_warning = True
        elif not line.startswith("// SPDX-"):
            raise TableError(f"{where}: unknown marker `{line}`")
        at += 1
    mistake.sentence = " ".join(sentence)
    if needs_sentence and not mistake.sentence:
        raise TableError(f"{mistake.where}: no sentence `/// ...` that says what is wrong")
    if not mistake.texts:
        raise TableError(f"{mistake.where}: no line `// expect: TEXT`; say what the compiler must "
                         "answer")
    return at


def check_code(mistake, needs_halves):
    for line in mistake.code:
        if MARKER.match(line):
            raise TableError(f"{mistake.where}: `{line}` must stand before the code")
    if not any(line and not line.startswith(("//", "#")) for line in mistake.code):
        raise TableError(f"{mistake.where}: the fragment is empty")
    if needs_halves and not {"#ifdef SHOULD_FAIL", "#ifndef SHOULD_FAIL"} & set(mistake.code):
        raise TableError(f"{mistake.where}: no `#ifdef SHOULD_FAIL`: what is the mistake?")
    code = mistake.half(True)
    if all(any(one in code for one in text.split(" | ")) for text in mistake.texts):
        raise TableError(f"{mistake.where}: every text of `// expect:` occurs in the code, which "
                         "the compiler may quote for another reason")


def read_fragment(path, lines, at):
    """The fragment whose namespace opens in a line."""
    mistake = Mistake(OPEN.fullmatch(lines[at])[1], path, at + 1)
    end = next((i for i in range(at + 1, len(lines))
                if CLOSE.fullmatch(lines[i]) or OPEN.fullmatch(lines[i])), len(lines))
    if end == len(lines) or lines[end] != f"}}  // namespace {mistake.name}":
        raise TableError(f"{mistake.where}: no line `}}  // namespace {mistake.name}`")
    begin = read_head(mistake, lines[:end], at + 1, True)
    mistake.code, mistake.span = lines[begin:end], range(at, end + 1)
    check_code(mistake, True)
    return mistake


def read_file(path, lines):
    """A file without fragments."""
    mistake = Mistake(path.stem, path, 1, span=range(-1, len(lines) + 1))
    begin = read_head(mistake, lines, 0, False)
    mistake.code = lines[begin:]
    check_code(mistake, False)
    return Table(path, path.parent.name.capitalize(), lines, range(0), [mistake], True)


def read_table(path):
    path = pathlib.Path(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    first = next((at for at, line in enumerate(lines) if OPEN.fullmatch(line)), None)
    if first is None:
        return read_file(path, lines)
    title = next((line[4:] for line in lines[:first] if line.startswith("/// ")), None)
    if title is None:
        raise TableError(f"{path}:1: no title `/// ...`")
    table = Table(path, title, lines, range(first), [])
    at = 0
    while at < len(lines):
        if OPEN.fullmatch(lines[at]):
            table.mistakes.append(read_fragment(path, lines, at))
            at = table.mistakes[-1].span.stop
            continue
        if MARKER.match(lines[at]):
            raise TableError(f"{path}:{at + 1}: `{lines[at]}` stands in no fragment")
        if at > first and lines[at]:
            raise TableError(f"{path}:{at + 1}: `{lines[at]}` stands between fragments")
        at += 1
    return table


def read_tables(paths):
    tables, seen = [read_table(path) for path in paths], {}
    for mistake in (one for table in tables for one in table.mistakes):
        if mistake.name in seen:
            raise TableError(f"{mistake.where}: the name is also in {seen[mistake.name].where}")
        seen[mistake.name] = mistake
    return tables
