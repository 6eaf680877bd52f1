#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Mutation testing: changes one operator of a header at a time, and checks that a test fails. It is
a tool to find missing tests: for a survivor a test is missing, or the change has no visible effect.

    tests/mutate.py                                     50 mutants, sampled from all headers
    tests/mutate.py --changed [REF] --full              all in lines that differ from REF (HEAD)
    tests/mutate.py --files include/ptspec/packet/*.hpp --count 200 --seed 7 --min 85
    tests/mutate.py --files include/ptspec/base/bits.hpp --also tests/laws.cpp tests/fail/reg.cpp
    tests/mutate.py --files include/ptspec/base/bits.hpp --list
    tests/mutate.py --self-test

For a mutant of include/ptspec/a/b.hpp, tests/a/b.cpp runs first, then the tests that its first
comment names (`// Also tests/a/c.cpp.`), then the tests of the tables of packets if it is one, then
the --also tests, until one kills it. What detail/ has is tested by the tests of its users. A mutant
is
    killed     when the test fails, crashes or hangs, or when it does not compile because of a
               static_assert or a call of a ptspec::build_error function; for a table of
               tests/fail, when a mistake compiles or an expected message is missing,
    survived   when every test passes,
    invalid    when it does not compile for another reason: it is not counted.
The score is killed / (killed + survived).

Exit status: 0, 1 (score below --min, or invalid input), 2 (wrong usage), 130 (Ctrl-C; results so
far are printed).
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "checks"))
import mistake_tables

# str.format fills in the words in braces; {flags} may become several words.
BUILD = ("{cxx} -std=c++20 -O0 -I {include} -I {root}/tests -I {generated} -I {root}"
         " '-DPTSPEC_ROOT=\"{root}\"' {flags} {test} {main} -o {program}")
BUILD_SECONDS = 300
RUN_BYTES = 4 << 30  # address space
FILE_BYTES = 5 << 30  # also of a sparse file with a place for each MSR

# ------------------------------------------------------------------------------------- mutants

TOKEN = re.compile(r"""
    (?P<skip>   //[^\n]* | /\*.*?\*/ | \#(?:\\.|[^\\\n])* )   # comments, preprocessor lines
  | (?P<string> (?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"
              | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" )
  | (?P<number> \.?\d(?:'?[\w.])* )
  | (?P<char>   '(?:\\.|[^'\\\n])+' )
  | (?P<name>   [A-Za-z_]\w* )
  | (?P<op>     <=> | <<= | >>= | \.\.\. | ->\* | -> | :: | \+\+ | -- | && | \|\| | << | >>
              | [-+*/%&|^<>=!]= | [^\w\s] )
  | \s+ """, re.S | re.X)

SWAPS = {"&&": "||", "||": "&&", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
         "+": "-", "-": "+", "<<": ">>", ">>": "<<", "&": "|", "|": "&"}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "<<=": ">>=", ">>=": "<<=", "&=": "|=", "|=": "&="}
NAMES = {"true": "false", "false": "true"}
PAIRS = {"(": ")", "[": "]", "{": "}"}
INTEGER = re.compile(r"(0[xX][\da-fA-F']+|0[bB][01']+|[1-9][\d']*|0)([uUlLzZ]*)")

# A statement that is executed for its effect, with the contents of its brackets removed.
PLACE = r"\w+(?:(?:\.|->|::)(?:template )?\w+|\(\)|\[\])*"
STATEMENT = re.compile(
    rf"break|continue|(?:\+\+|--){PLACE}|{PLACE}(?:\+\+|--)|{PLACE}(?:<.*>)?\(\)"
    rf"|\**{PLACE}(?:[-+*/%&|^]|<<|>>)?=(?!=|default$|delete$).*", re.S)

Token = collections.namedtuple("Token", "kind text start end")
Edit = collections.namedtuple("Edit", "start end new")
Mutant = collections.namedtuple("Mutant", "path line before after text")


class Source:
    """A header as tokens, and the edits that make its mutants."""

    def __init__(self, text):
        self.text = text
        self.tokens = [Token(m.lastgroup if m.lastgroup != "mark" else "string", m[0], *m.span())
                       for m in TOKEN.finditer(text) if m.lastgroup not in (None, "skip")]
        self.closing = self.match_brackets()
        self.unchanged = set(self.find_unchanged())

    def token(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def match_brackets(self):
        """The index of the closing bracket for each opening one."""
        closing, open_ones = {}, []
        for i, token in enumerate(self.tokens):
            if token.kind == "op" and token.text in PAIRS:
                open_ones.append(i)
            elif open_ones and token.text == PAIRS[self.token(open_ones[-1])]:
                closing[open_ones.pop()] = i
        return closing

    def on_new_line(self, i):
        between = self.text[self.tokens[i - 1].end:self.tokens[i].start] if i else "\n"
        return "\n" in between

    def find_unchanged(self):
        """Tokens that are not changed: template heads, static_asserts, requirements and operator
        names."""
        for i, token in enumerate(self.tokens):
            end = i
            if token.text == "template" and self.token(i + 1) == "<":
                end = self.end_of_template_head(i + 1)
            elif token.text == "static_assert":
                end = self.closing.get(i + 1, i)
            elif token.text == "requires":
                end = self.end_of_requirement(i)
            elif token.text == "operator":
                end = i + 2
            yield from range(i + 1, end + 1)

    def end_of_template_head(self, i):
        depth = 0
        while i < len(self.tokens):
            depth += {"<": 1, ">": -1, ">>": -2}.get(self.token(i), 0)
            if depth <= 0:
                break
            i = self.closing.get(i, i) + 1
        return i

    def end_of_requirement(self, i):
        """The last token of a requirement. For `requires (T t) { ... }` it is the closing brace;
        for a clause it is the last token of its line, or of lines joined by `&&` or `||`."""
        if self.token(i - 1) in ("=", "&&", "||", "(", "!", ",", "return", "requires"):
            body = self.closing.get(i + 1, i) + 1 if self.token(i + 1) == "(" else i + 1
            return self.closing.get(body, body)
        i += 1
        while i + 1 < len(self.tokens):
            i = self.closing.get(i, i)
            joined = {"&&", "||", "requires"} & {self.token(i), self.token(i + 1)}
            if self.token(i + 1) in ("{", ";") or (self.on_new_line(i + 1) and not joined):
                break
            i += 1
        return i

    def is_binary(self, token):
        """Binary operators have blanks around them; template brackets, references and signs do not.
        """
        around = self.text[token.start - 1:token.start] + self.text[token.end:token.end + 1]
        return len(around) == 2 and around.isspace()

    def edits(self):
        for i, token in enumerate(self.tokens):
            if i not in self.unchanged:
                yield from self.edits_at(i, token)
        yield from self.deletions()

    def edits_at(self, i, token):
        here = (token.start, token.end)
        if token.kind == "number":
            if integer := INTEGER.fullmatch(token.text):
                digits, suffix = integer[1].replace("'", ""), integer[2]
                for value in (int(digits, 0) + 1, int(digits, 0) - 1):
                    if value >= 0:
                        yield Edit(*here, (hex(value) if digits[1:2] in "xX" and digits[1:]
                                           else str(value)) + suffix)
        elif token.text in NAMES:
            yield Edit(*here, NAMES[token.text])
        elif token.text in ("if", "while"):
            yield from self.negated_condition(i)
        elif token.kind == "op":
            if token.text in SWAPS and self.is_binary(token):
                yield Edit(*here, SWAPS[token.text])
            elif token.text in ASSIGNMENTS:
                yield Edit(*here, ASSIGNMENTS[token.text])
            elif token.text == "!":
                yield Edit(*here, "")
            elif token.text == "?":
                first = self.begin_of_choice(i)
                yield from self.negation(first, i - 1)

    def negation(self, first, last):
        start, end = self.tokens[first].start, self.tokens[last].end
        yield Edit(start, end, f"!({self.text[start:end]})")

    def negated_condition(self, i):
        """`if (x)`, `if constexpr (x)`, `while (x)`; for `if (auto y = f(); x)` only the last part.
        """
        opening = i + 2 if self.token(i + 1) == "constexpr" else i + 1
        if last := self.closing.get(opening):
            first = max([opening] + [j for j in range(opening, last) if self.token(j) == ";"]) + 1
            if not any(self.token(j) == "=" for j in range(first, last)):  # a declaration
                yield from self.negation(first, last - 1)

    def begin_of_choice(self, i):
        """The first token of the condition before the `?` at i."""
        opening = {last: first for first, last in self.closing.items()}
        before = ("=", "return", ",", ";", "?", ":", "(", "[", "{", "}")
        while i and self.token(i - 1) not in before:
            i = opening.get(i - 1, i - 1)
        return i

    def deletions(self):
        for i, token in enumerate(self.tokens):
            if token.text in (";", "{", "}") and self.token(i + 1) != "static_assert":
                skeleton, end = self.statement(i + 1)
                if self.token(end) == ";" and STATEMENT.fullmatch(skeleton):
                    yield Edit(self.tokens[i + 1].start, self.tokens[end].end, ";")

    def statement(self, i):
        """A statement with empty brackets, and the index of its end, which should be `;`."""
        skeleton = ""
        while i < len(self.tokens) and self.token(i) not in (";", ")", "}"):
            if skeleton and (skeleton[-1] + self.token(i)[0]).replace("_", "x").isalnum():
                skeleton += " "
            skeleton += self.token(i)
            if i in self.closing:
                i = self.closing[i]
                skeleton += self.token(i)
            i += 1
        return skeleton, i


def mutants_of(path, text, active=lambda line: True):
    """All mutants of a file. `active` returns whether the compiler sees a line."""
    for start, end, new in Source(text).edits():
        line = text.count("\n", 0, start) + 1
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        before, after = (" ".join(lines.split()) for lines in
                         (text[first:last], text[first:start] + new + text[end:last]))
        if active(line):
            yield Mutant(path, line, before, after, text[:start] + new + text[end:])


# ------------------------------------------------------------------------------------- processes

class Stopped(Exception):
    """Ctrl-C was pressed."""


class Processes:
    """The running programs, so that all of them can be killed."""

    def __init__(self):
        self.lock, self.running, self.stopped = threading.Lock(), set(), False

    def run(self, command, seconds, folder, memory=None):
        """The exit status (None after a time-out) and the beginning of the output."""
        with tempfile.TemporaryFile(dir=folder) as printed:
            with self.lock:
                if self.stopped:
                    raise Stopped
                process = subprocess.Popen(
                    command, cwd=folder, start_new_session=True,
                    env={**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)},
                    stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT)
                self.running.add(process)
            set_limits(process.pid, seconds, memory)
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                end(process)
                process.wait()
                with self.lock:
                    self.running.discard(process)
            if self.stopped:
                raise Stopped
            printed.seek(0)
            return status, printed.read(1 << 20).decode(errors="replace")

    def stop(self):
        with self.lock:
            self.stopped = True
            for process in self.running:
                end(process)


def end(process):
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # its process group: a compiler has children
        except ProcessLookupError:
            pass


def set_limits(pid, seconds, memory):
    """Limits a mutant that loops, allocates or prints without end, even after this script has
    ended."""
    try:
        import resource
        resource.prlimit(pid, resource.RLIMIT_CPU, (int(seconds) + 5,) * 2)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
        if memory:
            resource.prlimit(pid, resource.RLIMIT_AS, (memory, memory))
    except (ImportError, AttributeError, OSError):
        pass  # not Linux, or the program has ended


# ------------------------------------------------------------------------------------- verdicts

class InputError(Exception):
    """The input is invalid; the message says why."""


class Workspace:
    """A source tree, and how its tests are built and executed."""

    def __init__(self, root, scratch, options):
        self.root, self.scratch, self.options = root, scratch, options
        self.processes = Processes()
        self.main = scratch / "main.o"
        self.generated = scratch / "generated"  # headers that the build generates from the
                                                # catalogue
        text = "".join(p.read_text(encoding="utf-8") for p in (root / "include").rglob("*.hpp"))
        self.build_errors = set(re.findall(r"build_error::(\w+)", text))

    def prepare(self):
        tables = self.root / "tests/support/spec_tables.py"
        if tables.is_file():
            self.generated.mkdir()
            for what, name in (("packets", "spec_tables"), ("cases", "rc_cases"),
                               ("outputs", "oc_cases"), ("traces", "tc_cases")):
                subprocess.run([sys.executable, "-B", tables, what, self.root / "tests/spec",
                                self.generated / f"{name}.hpp"], check=True)
        command = self.words("{cxx} -std=c++20 -O0 -I {include} -I {root}/tests -I {root} {flags} "
                             "-c {test} -o {main}", self.root / "include",
                             self.root / "tests/support/main.cpp", self.scratch)
        status, printed = self.processes.run(list(command), BUILD_SECONDS, self.scratch)
        if status != 0:
            raise InputError(f"tests/support/main.cpp:1: does not compile\n{printed}")

    def words(self, template, include, test, folder):
        values = {"cxx": self.options.cxx, "include": include, "root": self.root, "test": test,
                  "main": self.main, "program": folder / "program", "flags": "",
                  "generated": self.generated}
        for word in shlex.split(template):
            if word == "{flags}":
                yield from shlex.split(self.options.flags)
            else:
                yield word.format(**values)

    def tests_for(self, header):
        """The tests for a header, the most effective first."""
        packets = self.root / "include/ptspec/packet"
        tables = [self.root / f"tests/packet/{name}.cpp" for name in ("list", "vectors")]
        return list(dict.fromkeys([*self.mirrors(header), *(tables if header.parent == packets
                                                            else ()), *self.options.also]))

    def mirrors(self, header):
        """The test of a header, and those that it names. For a header of detail/ without a test,
        those of its users."""
        include = self.root / "include"
        mirror = self.root / "tests" / header.relative_to(include / "ptspec")
        own = mirror.with_suffix(".cpp")
        if own.is_file():
            head = own.read_text(encoding="utf-8").partition("#include")[0]
            return [own, *(self.root / name for name in re.findall(r"\btests/[\w/]+\.cpp", head))]
        if "detail" not in header.relative_to(include).parts:
            return []
        line = f"#include <{header.relative_to(include)}>"
        wing = next(folder.parent for folder in header.parents if folder.name == "detail")
        users = [user for user in sorted(wing.rglob("*.hpp"))
                 if line in user.read_text(encoding="utf-8")]
        return list(dict.fromkeys(test for user in users for test in self.mirrors(user)))

    def run_test(self, test, include, folder):
        """The result of a test with a set of headers: passed, killed or invalid, and the output."""
        if self.root / "tests/fail" in test.parents:
            return self.run_fail_test(test, include, folder)
        command = list(self.words(self.options.build, include, test, folder))
        status, printed = self.processes.run(command, BUILD_SECONDS, folder)
        if status != 0:
            return ("killed" if self.is_build_check(printed) else "invalid"), printed
        memory = None if "sanitize" in self.options.flags else RUN_BYTES  # sanitizers reserve
                                                                          # terabytes
        status, printed = self.processes.run([str(folder / "program")], self.options.timeout,
                                             folder, memory)
        return ("passed" if status == 0 else "killed"), printed

    def run_fail_test(self, test, include, folder):
        table, printed = mistake_tables.read_table(test), ""
        compiler = "clang" if "clang" in self.options.cxx else "g++"
        for mistake in (one for one in table.mistakes if one.is_for(compiler)):
            unit = test
            if not table.is_file:
                unit = folder / "mistake.cpp"
                unit.write_text(table.unit(mistake), encoding="utf-8")
            command = self.words(self.options.build, include, unit, folder)
            defines = ["-DSHOULD_FAIL"] if table.is_file else []
            status, printed = self.processes.run([*command, "-fsyntax-only", *defines],
                                                 BUILD_SECONDS, folder)
            if status == 0 or mistake.complaint(printed):
                return "killed", printed
        return "passed", printed

    def is_build_check(self, printed):
        """True when the first error is an assertion, or when a build_error occurs anywhere."""
        said = re.findall(r"\b(error|note)\b[^:]*: (.*)", printed)
        first = next((what for kind, what in said if kind == "error"), "")
        stopping = {word for _, what in said if "constexpr" in what
                    for word in re.findall(r"\w+", what)}
        return bool(re.search(r"static assertion|static_assert", first)
                    or self.build_errors & stopping)

    def check_baseline(self, headers):
        """Unchanged headers must pass; otherwise every mutant would count as killed."""
        for header in headers:
            if not self.tests_for(header):
                raise InputError(f"{header.relative_to(self.root)}:1: has no test")
        for test in dict.fromkeys(t for header in headers for t in self.tests_for(header)):
            with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
                verdict, printed = self.run_test(test, self.root / "include", pathlib.Path(folder))
            if verdict != "passed":
                name = test.relative_to(self.root)
                raise InputError(f"{name}:1: fails without any mutant\n{printed}")

    def judge(self, mutant):
        with tempfile.TemporaryDirectory(dir=self.scratch) as name:
            folder = pathlib.Path(name)
            shutil.copytree(self.root / "include", folder / "include")
            (folder / mutant.path).write_text(mutant.text, encoding="utf-8")
            for test in self.tests_for(self.root / mutant.path):
                verdict, _ = self.run_test(test, folder / "include", folder)
                if verdict != "passed":
                    return verdict
            return "survived"

    def active_lines(self, header):
        """The lines of a header that remain after preprocessing."""
        command = self.words("{cxx} -std=c++20 -E -I {include} {flags} {test} -o {program}",
                             self.root / "include", header, self.scratch)
        status, printed = self.processes.run(list(command), BUILD_SECONDS, self.scratch)
        if status != 0:
            raise InputError(f"{header.relative_to(self.root)}:1: does not preprocess\n{printed}")
        output = self.scratch / "program"
        active, line, inside = set(), 0, False
        for text in output.read_text(encoding="utf-8").splitlines():
            if marker := re.match(r'# (\d+) "(.*?)"', text):
                line, inside = int(marker[1]), marker[2] == str(header)
            else:
                if inside and text.strip():
                    active.add(line)
                line += 1
        output.unlink()
        return active


# ------------------------------------------------------------------------------------- the run

def changed_lines(root, ref):
    """The lines of each header that differ from a commit, as {path: set of line numbers}."""
    git = ["git", "-C", str(root)]
    diff = subprocess.run([*git, "diff", "-U0", "--no-color", "--no-ext-diff", ref, "--",
                           "include/ptspec"], capture_output=True, text=True)
    if diff.returncode != 0:
        raise InputError(diff.stderr.strip())
    changed, path = collections.defaultdict(set), ""
    for line in diff.stdout.splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            changed[path].update(range(first, first + count))
    new = subprocess.run([*git, "ls-files", "--others", "--exclude-standard", "--",
                          "include/ptspec"], capture_output=True, text=True, check=True).stdout
    for path in new.splitlines():
        changed[path].update(range(1, len((root / path).read_text().splitlines()) + 1))
    return {path: lines for path, lines in changed.items() if (root / path).is_file()}


def choose(workspace, headers, options, lines_of=None):
    """The mutants to run, in source order. `lines_of` restricts them to some lines."""
    mutants = []
    for header in headers:
        path = header.relative_to(workspace.root).as_posix()
        active = workspace.active_lines(header)
        if lines_of is not None:
            active &= lines_of[path]
        mutants += mutants_of(path, header.read_text(encoding="utf-8"), active.__contains__)
    mutants = list(dict.fromkeys(mutants))
    if not options.full and options.count < len(mutants):
        numbers = random.Random(options.seed).sample(range(len(mutants)), options.count)
        return [mutants[i] for i in sorted(numbers)]
    return mutants


def judge_all(workspace, mutants, jobs):
    """The verdicts {mutant: verdict}, and whether Ctrl-C interrupted the run."""
    verdicts = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(workspace.judge, mutant): mutant for mutant in mutants}
        try:
            for future in concurrent.futures.as_completed(waiting):
                mutant = waiting[future]
                verdicts[mutant] = future.result()
                print(f"[{len(verdicts)}/{len(mutants)}] {verdicts[mutant]} "
                      f"{mutant.path}:{mutant.line}", file=sys.stderr)
        except KeyboardInterrupt:
            workspace.processes.stop()
            pool.shutdown(cancel_futures=True)
            return verdicts, True
    return verdicts, False


def report(verdicts, minimum):
    """Prints the survivors and the score; returns the exit status."""
    for mutant in sorted(verdicts, key=lambda m: (m.path, m.line)):
        if verdicts[mutant] == "survived":
            print(f"{mutant.path}:{mutant.line}: survived\n  - {mutant.before}\n  + {mutant.after}")
    counts = collections.Counter(verdicts.values())
    judged = counts["killed"] + counts["survived"]
    score = 100 * counts["killed"] / judged if judged else 0
    print(f"{score:.1f}% killed: {counts['killed']} killed, {counts['survived']} survived; "
          f"{counts['invalid']} invalid")
    return 1 if judged and score < minimum else 0


def work(root, options):
    everything = [path for path in sorted((root / "include/ptspec").rglob("*.hpp"))
                  if path.name not in ("ptspec.hpp", "version.hpp")]
    headers = [pathlib.Path(path).resolve() for path in options.files] or everything
    lines_of = None
    if options.changed:
        lines_of = changed_lines(root, options.changed)
        headers = [path for path in headers if path.relative_to(root).as_posix() in lines_of]
    options.also = [pathlib.Path(path).resolve() for path in options.also]
    for path in headers + options.also:
        if not path.is_file() or not path.is_relative_to(root):
            raise InputError(f"{path}:1: no file of {root}")
    with tempfile.TemporaryDirectory(prefix="mutants.") as scratch:
        workspace = Workspace(root, pathlib.Path(scratch), options)
        mutants = choose(workspace, headers, options, lines_of)
        if options.list:
            for mutant in mutants:
                print(f"{mutant.path}:{mutant.line}: {mutant.before} | {mutant.after}")
            return 0
        workspace.prepare()
        workspace.check_baseline(sorted({root / mutant.path for mutant in mutants}))
        verdicts, cut_short = judge_all(workspace, mutants, options.jobs)
        status = report(verdicts, options.min)
        return 130 if cut_short else status


def options_from(arguments):
    parser = argparse.ArgumentParser(description="Mutation testing of the headers.")
    parser.add_argument("--files", nargs="+", default=[], metavar="HEADER")
    parser.add_argument("--changed", nargs="?", const="HEAD", metavar="REF",
                        help="only lines that differ from a commit (HEAD)")
    parser.add_argument("--also", nargs="+", default=[], metavar="TEST", help="further tests")
    parser.add_argument("--count", type=int, default=50, help="how many mutants to draw")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--full", action="store_true", help="all mutants, not a draw")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--min", type=float, default=0, metavar="PERCENT", help="lowest good score")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60, help="seconds that a test may run")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--flags", default="", help='for the compiler: --flags="-O1 -DX"')
    parser.add_argument("--build", default=BUILD, help="the command that builds a test")
    parser.add_argument("--self-test", action="store_true")
    return parser.parse_args(arguments)


# ------------------------------------------------------------------------------------- self-test

SAMPLE = r'''
#define ONE 1 + 1  // 1 + 1
/* a < b */ template <int N = (1 < 2)> requires (N > 1)
struct x : y<7> { static_assert(N == 1, "1"); };
auto a = b && c ? 0x1'0 : 2U;
bool operator<(x const& p, x&& q) { if (int i = 0; p < q) { return true; } }
concept d = requires(int i) { i + 1; } || e;
void f() { g(1); int h = i; j[k] <<= l; ++m; n = "1 + 1"; return !o; }
'''

SAMPLE_EDITS = [
    "7 -> 8", "7 -> 6", "&& -> ||", "b && c -> !(b && c)", "0x1'0 -> 0x11", "0x1'0 -> 0xf",
    "2U -> 3U", "2U -> 1U", "0 -> 1", "p < q -> !(p < q)", "< -> <=", "true -> false",
    "|| -> &&", "1 -> 2", "1 -> 0", "<<= -> >>=", "! -> ", "g(1); -> ;", "j[k] <<= l; -> ;",
    "++m; -> ;", 'n = "1 + 1"; -> ;']

TOY_HEADER = '''\
namespace ptspec {
namespace build_error { void too_big(); }
constexpr int limit(int x) {
    if (x > 3) { build_error::too_big(); }
    return x;
}
template <int N> struct list { int at[N]; };
constexpr bool small(int x) { return x < 10; }
inline int twice(int x) { return x + x; }
inline bool odd(int x) { return x == 1; }
inline int last(list<4> const&) { return 3; }
inline void wait() { for (int i = 1; i != 4; i <<= 1) { } }
#if 0
inline int never() { return 1 + 1; }
#endif
}
'''

TOY_FILES = {
    "include/ptspec/toy.hpp": TOY_HEADER,
    "tests/support/main.cpp": "int run();\nint main() { return run(); }\n",
    "tests/toy.cpp": '''\
#include <ptspec/toy.hpp>
using namespace ptspec;
constexpr int three = limit(3);
static_assert(small(9) && !small(10));
list<4> given{{1, 2, 3, 4}};
int run() {
    wait();
    return !(twice(2) == 4 && last(given) == 3 && PTSPEC_ROOT[0] == '/');
}
''',
    "tests/more.cpp": "#include <ptspec/toy.hpp>\n"
                      "int run() { return !ptspec::odd(1) || ptspec::odd(0); }\n",
    "tests/fail/big.cpp": '''\
/// Toys
#include <ptspec/toy.hpp>
namespace big {
/// 5 is over the limit.
// expect: too_big
#ifdef SHOULD_FAIL
constexpr int x = ptspec::limit(5);
#endif
}  // namespace big
namespace one_too_big {
/// 4 is, too.
// expect: too_big
#ifdef SHOULD_FAIL
constexpr int x = ptspec::limit(4);
#endif
}  // namespace one_too_big
''',
}

TOY_VERDICTS = {
    "if (!(x > 3)) { build_error::too_big(); }": "killed",  # by a build_error
    "if (x > 3) { ; }": "killed",  # by tests/fail
    "if (x > 4) { build_error::too_big(); }": "killed",  # by tests/fail
    "constexpr bool small(int x) { return x <= 10; }": "killed",  # by a static_assert
    "inline int twice(int x) { return x - x; }": "killed",  # by a failing test
    "inline bool odd(int x) { return x != 1; }": "killed",  # by an --also test
    "inline bool odd(int x) { return x == 2; }": "killed",
    "inline int last(list<5> const&) { return 3; }": "invalid",
    "inline void wait() { for (int i = 1; i != 4; i >>= 1) { } }": "killed",  # by a time-out
    "inline void wait() { for (int i = 2; i != 4; i <<= 1) { } }": "survived",
}


def self_test(arguments):
    failures = []

    def expect(what, found, wanted):
        if found != wanted:
            failures.append(f"{what}\n  wanted {wanted}\n  found  {found}")

    edits = [f"{SAMPLE[edit.start:edit.end]} -> {edit.new}" for edit in Source(SAMPLE).edits()]
    expect("the edits of the sample", sorted(edits), sorted(SAMPLE_EDITS))

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for path, text in TOY_FILES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        options = options_from([*arguments, "--full", "--timeout", "2"])
        options.also = [root / "tests/more.cpp", root / "tests/fail/big.cpp"]
        header = root / "include/ptspec/toy.hpp"
        (root / "scratch").mkdir()
        workspace = Workspace(root, root / "scratch", options)
        workspace.prepare()
        workspace.check_baseline([header])
        mutants = choose(workspace, [header], options)
        expect("mutants that the compiler does not see",
               [m.line for m in mutants if "never" in m.before], [])
        found = {m.after: workspace.judge(m) for m in mutants if m.after in TOY_VERDICTS}
        expect("verdicts", found, TOY_VERDICTS)
        expect("leftovers", [p.name for p in (root / "scratch").iterdir()], ["main.o"])

        options.full, options.count = False, 5
        first, again = (choose(workspace, [header], options) for _ in range(2))
        expect("a draw can be repeated", (len(first), first), (5, again))

        def trouble(path, text, action):
            (root / path).write_text(text, encoding="utf-8")
            try:
                action()
            except InputError as found:
                return str(found).partition("\n")[0]
            return "nothing wrong"

        if shutil.which("git"):
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
            subprocess.run(["git", "add", "include"], cwd=root, check=True)
            subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"],
                           cwd=root, check=True)
            header.write_text(TOY_HEADER.replace("x + x", "2 * x"), encoding="utf-8")
            options.full = True
            expect("mutants of changed lines",
                   [m.after for m in choose(workspace, [header], options,
                                            changed_lines(root, "HEAD"))],
                   ["inline int twice(int x) { return 3 * x; }",
                    "inline int twice(int x) { return 1 * x; }"])
            header.write_text(TOY_HEADER, encoding="utf-8")
            expect("nothing changed", changed_lines(root, "HEAD"), {})

        expect("a failing baseline",
               trouble("tests/more.cpp", "int run() { return 1; }\n",
                       lambda: workspace.check_baseline([header])),
               "tests/more.cpp:1: fails without any mutant")
        options.also = []
        hidden = root / "include/ptspec/detail/hidden.hpp"
        hidden.parent.mkdir()
        hidden.write_text("#pragma once\n", encoding="utf-8")
        expect("no user", workspace.tests_for(hidden), [])
        header.write_text(TOY_HEADER + "#include <ptspec/detail/hidden.hpp>\n", encoding="utf-8")
        expect("the tests of its user", workspace.tests_for(hidden), [root / "tests/toy.cpp"])
        test = root / "tests/toy.cpp"
        test.write_text(f"// Also tests/more.cpp.\n{test.read_text(encoding='utf-8')}",
                        encoding="utf-8")
        expect("the tests that the first comment names", workspace.tests_for(header),
               [test, root / "tests/more.cpp"])
        test.unlink()
        expect("no test", trouble("tests/more.cpp", "", lambda: workspace.check_baseline([header])),
               "include/ptspec/toy.hpp:1: has no test")
    print("\n".join(failures) if failures else "self-test: every verdict comes as expected")
    return 1 if failures else 0


def main():
    options = options_from(sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # same as Ctrl-C
    try:
        if options.self_test:
            return self_test(["--cxx", options.cxx])
        return work(pathlib.Path(__file__).resolve().parents[1], options)
    except InputError as trouble:
        print(trouble)
        return 1
    except (KeyboardInterrupt, Stopped):
        return 130


if __name__ == "__main__":
    sys.exit(main())
