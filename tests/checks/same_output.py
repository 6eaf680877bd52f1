#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compares what the programs of examples/ print at an older commit and in the working tree. Run it
manually, before and after a change that must not be visible.

    tests/checks/same_output.py COMMIT
    tests/checks/same_output.py COMMIT --accept FILE    differences that are intended
    tests/checks/same_output.py COMMIT --only REGEX     only kinds of calls that match
    tests/checks/same_output.py COMMIT --limit N        print N groups of differences (40)
    tests/checks/same_output.py --self-test

Both sides are built under build/same_output/, that of the commit once. The calls are

- each way in which a program prints a trace, for all traces of tests/traces, the recorded traces
  and the recorded perf.data files;
- the calls that the tests in tests/tools/ make, with their input: the cases of tests/spec/ are
  among them;
- --help, and the programs that need no arguments.

Compared are standard output, messages, the exit status and written files. A line may differ by the
renames of CHANGELOG.md, section `### Renamed` (--renames FILE: another file of that form), and by
the sentences of the rules.

A line of the file of --accept is a regular expression, then ` # ` and the reason. It accepts a line
that differs, when it matches in `KIND: -LINE` (old) or `KIND: +LINE` (new). KIND is the program and
its options, as in `pt_dump --events`; `(exit)` and `(errors)` after it are the status and messages.

Differences are printed by kind and by the first pair of lines that differs, in which numbers count
as equal; with the number of calls and a first example.

Exit status: 0 no difference but accepted ones, 1 differences, 2 wrong usage or no build.
"""

import argparse
import collections
import concurrent.futures
import difflib
import hashlib
import os
import pathlib
import pickle
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import renames
import rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import skips  # noqa: E402
import traces  # noqa: E402

HOME = ROOT / "build" / "same_output"
JOBS = 2
TIMEOUT = 120
SOURCES = ("include", "examples", "CMakeLists.txt")
LONGEST_DIFF = 200_000  # lines; longer texts are compared line by line
CONFIGURE = ["-G", "Ninja", "-Wno-dev", "--log-level=WARNING", "-DPTSPEC_TESTS=OFF",
             "-DPTSPEC_EXAMPLES=ON", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
             "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1"]

CLOCK = ["--mtc-freq", "3", "--tsc-ratio", "168/2", "--non-turbo", "20"]
KINDS = ("manual", "broadwell", "skylake", "icelake", "atom")
# The ways in which a program prints a trace, which is the last argument.
WAYS = {
    "pt_dump": [[], ["--strict", "--no-sync"], ["--json", "--no-pad"], ["--cpu", "6/78/3"],
                ["--jobs", "2"], ["--time", *CLOCK], ["--events"], ["--events", "--json"],
                ["--events", "--no-sync"], ["--events", "--cpu", "6/78/3"],
                ["--events", "--time", *CLOCK],
                ["--events", "--time", "--monotonic", "--tsc-hz", "2000000000", *CLOCK,
                 "--guest-tsc", "1000,0x2000000000000"],
                ["--summary"], ["--summary", "--time", *CLOCK], ["--summary", "--json"],
                ["--check"], ["--check", "--json"],
                *(["--check", "--kind", kind] for kind in KINDS),
                ["--chrome-trace", *CLOCK], ["--streams"]],
    "pt_twin": [[], ["--events"], *(["--kind", kind] for kind in KINDS)],
    "pt_cut": [["--list"], ["--private", "-o", "-"],
               ["--private", "--offsets", "--drop-damaged", "--tsc", "rebase", "--ratio", "168/2",
                "-o", "-"]],
    "timeline": [["-o", "-", *CLOCK], ["--no-sync", "-o", "-"]],
    "what_happened": [[]],
    "perf_events": [[]],
}
# Programs that read a listing from standard input.
LISTING_READERS = {"pt_asm": [[]]}

# Tests whose calls need other programs, or repeat those above.
NO_CALLS_OF = ("golden", "output", "perf_data", "perf_data_list", "pt_count_mpi", "pt_record",
               "regmap_cases", "regmap_sources", "timeline_browser")
TEST = re.compile(r"COMMAND \$\{python\}\s+tests/tools/(\w+)\.py((?:\s+\$<TARGET_FILE:\w+>)*)")

MARK = re.compile(r"\{(file|out)(\d+)\}")
# What a program is called with: options, `{file}` for a file or `{out}` for a file to write, each
# with a number, and the contents of files and of standard input.
Call = collections.namedtuple("Call", "kind tool arguments stdin files")
Difference = collections.namedtuple("Difference", "kind call lines")


class Failed(Exception):
    pass


# -------------------------------------------------------------------------------------- the builds

def run(*command, **options):
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    if done.returncode != 0:
        raise Failed(f"{shlex.join(map(str, command))}\n{done.stdout[-4000:]}")
    return done.stdout


def build(source, where):
    """Builds the examples of a source tree. Returns the folder of the programs."""
    run("cmake", "-S", source, "-B", where, *CONFIGURE)
    run("cmake", "--build", where, "--parallel", JOBS)
    return where / "bin"


def build_commit(commit):
    """The programs of a commit. They are built once for all commits with the same sources."""
    found = run("git", "-C", ROOT, "rev-parse", "--verify", f"{commit}^{{commit}}").strip()
    sources = run("git", "-C", ROOT, "rev-parse", *(f"{found}:{path}" for path in SOURCES))
    programs = HOME / hashlib.sha256(sources.encode()).hexdigest()[:16]
    if not programs.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder, "tree")
            run("git", "-C", ROOT, "worktree", "add", "--detach", tree, found)
            try:
                built = build(tree, pathlib.Path(folder, "build"))
            finally:
                run("git", "-C", ROOT, "worktree", "remove", "--force", tree)
            partial = programs.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(built, partial)
            partial.rename(programs)
    return programs


# --------------------------------------------------------------------------------------- the calls

def kind_of(tool, arguments):
    """The program and its options, without their values."""
    return " ".join([tool, *sorted({word for word in arguments
                                    if re.fullmatch(r"--[a-z][\w-]*", word)})])


def calls_for(name, data, tools):
    """The calls that print a trace or a file."""
    for tool, ways in WAYS.items():
        for way in ways if tool in tools else ():
            more = ["168", "2", "3"] if tool == "what_happened" else []
            yield Call(kind_of(tool, way), tool, [*way, "{file0}", *more], b"", [(name, data)])


def all_calls(tools, programs):
    for name, data, listing, _ in traces.all_traces():
        yield from calls_for(f"{name.replace('/', '-')}.pt", data, tools)
        for tool, ways in LISTING_READERS.items():
            for way in ways if tool in tools else ():
                yield Call(kind_of(tool, way), tool, way, listing.encode(), [])
    perf_data = pathlib.Path(os.environ.get("PTSPEC_PERF_DATA")
                             or ROOT.parent / "shared" / "perfdata")
    if not perf_data.is_dir():
        skips.say("recorded perf.data", "same_output")
    for path in [*sorted((ROOT / "tests" / "traces").glob("*.data.xz")),
                 *sorted(perf_data.glob("perf.data*")), *sorted(perf_data.glob("made/*.data"))]:
        name = path.with_name(path.name.removesuffix(".xz"))
        yield from calls_for(name.name, traces.read(name), tools)
    for tool in sorted(tools):
        yield Call(f"{tool} --help", tool, ["--help"], b"", [])
        yield Call(tool, tool, [], b"", [])
    yield from recorded_calls(tools, programs)


def recorded_calls(tools, programs):
    """The calls of the tests in tests/tools/, with the programs of the working tree."""
    text = (ROOT / "tests" / "CMakeLists.txt").read_text(encoding="utf-8")
    tests = [(name, re.findall(r":(\w+)>", targets)) for name, targets in TEST.findall(text)
             if name not in NO_CALLS_OF]

    def record(test):
        name, targets = test
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "calls")
            subprocess.run([sys.executable, "-B", __file__, "--record", log, programs,
                            ROOT / "tests" / "tools" / f"{name}.py",
                            *(programs / target for target in targets)], cwd=ROOT,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
            return name, pickle.loads(log.read_bytes()) if log.is_file() else []

    seen = set()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for name, calls in pool.map(record, tests):
            if not calls:
                raise Failed(f"no calls of tests/tools/{name}.py were recorded")
            for call in map(Call._make, calls):
                key = hashlib.sha256(pickle.dumps(call)).digest()
                if call.tool in tools and key not in seen:
                    seen.add(key)
                    yield call


def described(arguments, programs, temporary):
    """A call of a test as a Call without its standard input; None when it cannot be repeated."""
    tool, *arguments = map(str, arguments)
    if pathlib.Path(tool).parent != programs:
        return None
    words, files, numbers = [], [], {}
    for word in arguments:
        path, at, address = word.partition("@")
        if not path.startswith(temporary):
            words.append(word)
        elif os.path.isdir(path):
            return None
        else:
            exists = os.path.isfile(path)
            if path not in numbers:
                numbers[path] = f"{{file{len(files)}}}" if exists else f"{{out{len(numbers)}}}"
                if exists:
                    name = pathlib.Path(path).name
                    files.append((name, pathlib.Path(path).read_bytes()))
            words.append(numbers[path] + at + address)
    name = pathlib.Path(tool).name
    return Call(kind_of(name, words), name, words, b"", files)


def record(log, programs, script, *arguments):
    """Executes a test, and writes the calls that it makes to a file."""
    calls, really = [], subprocess.run
    temporary = tempfile.gettempdir() + os.sep

    def spy(command, *others, **options):
        repeatable = not {"cwd", "env", "stdin", "preexec_fn"} & {*options}
        if repeatable and isinstance(command, (list, tuple)):
            call = described(command, pathlib.Path(programs), temporary)
            data = options.get("input") or b""
            if call:
                data = data.encode() if isinstance(data, str) else bytes(data)
                calls.append(tuple(call._replace(stdin=data)))
        return really(command, *others, **options)

    subprocess.run = spy
    sys.argv = [script, *arguments]
    sys.path[0] = str(pathlib.Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        pathlib.Path(log).write_bytes(pickle.dumps(calls))


def execute(program, call):
    """What a program does as {part: bytes}; the parts are `` (standard output), `errors`, `exit`
    and written files."""
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{number}.{name}" for number, (name, _) in enumerate(call.files)]
        for name, (_, data) in zip(names, call.files):
            pathlib.Path(folder, name).write_bytes(data)
        words = [MARK.sub(lambda mark: names[int(mark[2])] if mark[1] == "file" else mark[0][1:-1],
                          word) for word in call.arguments]
        try:
            done = subprocess.run([program, *words], input=call.stdin, capture_output=True,
                                  cwd=folder, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            return {"exit": b"timeout"}
        parts = {"": done.stdout, "errors": done.stderr, "exit": b"%d" % done.returncode}
        for path in sorted(pathlib.Path(folder).iterdir()):
            number = re.match(r"\d+", path.name)
            data = path.read_bytes()
            if number is None or data != call.files[int(number[0])][1]:
                parts[f"file {path.name}"] = data
        return parts


# -------------------------------------------------------------------------------- the differences

class Words:
    """The words that may differ."""

    WORD = re.compile(r"[\w:]+")

    def __init__(self, rows, sentences=()):
        """`sentences`: of the rules, before and now, as {rule: sentence}."""
        self.new = collections.defaultdict(set)
        self.rules = {sentence: rule for side in sentences for rule, sentence in side.items()}
        self.sentence = re.compile("|".join(sorted(map(re.escape, self.rules), key=len,
                                                   reverse=True)) or r"(?!)")
        for old, new, *_ in rows:
            self.new[old].add(new)
            self.new[f"ptspec::{old}"].add(f"ptspec::{new}")
            self.new[old.rpartition("::")[2]].add(new.rpartition("::")[2])

    def same(self, old, new):
        """True when two lines are equal but for renames."""
        old, new = (self.sentence.sub(lambda found: self.rules[found[0]], line)
                    for line in (old, new))
        if old == new:
            return True
        if not self.new or self.WORD.sub("", old) != self.WORD.sub("", new):
            return False
        before, after = self.WORD.findall(old), self.WORD.findall(new)
        return len(before) == len(after) and all(
            one == other or other in self.new.get(one, ()) for one, other in zip(before, after))


def hunks(old, new):
    """The runs of lines that differ as (old lines, new lines)."""
    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < min(len(old), len(new)) - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[begin:len(old) - end], new[begin:len(new) - end]
    if len(old) == len(new) and sum(map(str.__ne__, old, new)) <= max(16, len(old) // 8):
        # The same number of lines: most changes are changes of a line.
        yield from (([one], [other]) for one, other in zip(old, new) if one != other)
    elif len(old) + len(new) > LONGEST_DIFF:
        yield old, new
    else:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=True)
        for tag, a, b, c, d in matcher.get_opcodes():
            if tag != "equal":
                yield old[a:b], new[c:d]


def differing_lines(old, new, words):
    """The lines that differ, with - or + before them."""
    for before, after in hunks(old.decode(errors="backslashreplace").split("\n"),
                               new.decode(errors="backslashreplace").split("\n")):
        if len(before) == len(after):
            pairs = [pair for pair in zip(before, after) if not words.same(*pair)]
            before, after = [one for one, _ in pairs], [other for _, other in pairs]
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)


def compare(call, old, new, words):
    """The differences between what two programs did."""
    for part in sorted({*old, *new}):
        if old.get(part) != new.get(part):
            lines = list(differing_lines(old.get(part, b""), new.get(part, b""), words))
            if lines:
                kind = f"{call.kind} ({part})" if part else call.kind
                yield Difference(kind, call, lines)


class Accepted:
    def __init__(self, text):
        self.rows = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            pattern, mark, reason = line.rpartition(" # ")
            if not mark or not reason.strip():
                raise Failed(f"line {number} has no ` # REASON`: {line}")
            try:
                self.rows.append((re.compile(pattern), reason))
            except re.error as error:
                raise Failed(f"line {number}: {error}") from error
        self.counts = collections.Counter()

    def accepts(self, kind, line):
        for number, (pattern, _) in enumerate(self.rows):
            if pattern.search(f"{kind}: {line}"):
                self.counts[number] += 1
                return True
        return False

    def left(self, difference):
        """A difference without the lines that are accepted."""
        return difference._replace(lines=[line for line in difference.lines
                                          if not self.accepts(difference.kind, line)])


def group_of(difference):
    """The kind and the first lines that differ, without numbers."""
    first = [next((line for line in difference.lines if line[0] == sign), "") for sign in "-+"]
    return difference.kind, *(re.sub(r"\b(?:0x)?[0-9A-Fa-f]*[0-9][0-9A-Fa-f]*\b", "N", line)
                              for line in first)


def shown(call):
    words = [MARK.sub(lambda mark: call.files[int(mark[2])][0] if mark[1] == "file" else mark[0],
                      word) for word in call.arguments]
    text = shlex.join([call.tool, *words])
    if call.stdin:
        text += f" <<< {call.stdin[:200].decode(errors='backslashreplace')!r}"
    return text if len(text) < 400 else f"{text[:400]}.."


def report(differences, count, accepted, limit, out=print):
    """Prints the differences that are not accepted, by groups. Returns their number."""
    groups = collections.defaultdict(list)
    for difference in map(accepted.left, differences):
        if difference.lines:
            groups[group_of(difference)].append(difference)
    ordered = sorted(groups.values(), key=len, reverse=True)
    for group in ordered[:limit]:
        first = min(group, key=lambda one: len(one.lines))
        lines = sum(len(one.lines) for one in group)
        out(f"\n{len(group)} calls, {lines} lines: {first.kind}")
        out(f"    {shown(first.call)}")
        for sign in "-+":
            some = [line for line in first.lines if line[0] == sign]
            out("\n".join(f"    {line[:200]}" for line in some[:2]) or f"    {sign}(no line)")
    if len(ordered) > limit:
        out(f"\n{len(ordered) - limit} more groups: --limit")
    kinds = collections.Counter(one.kind for group in ordered for one in group)
    out("")
    for kind, number in kinds.most_common():
        out(f"{number:6} differ: {kind}")
    for number, (pattern, reason) in enumerate(accepted.rows):
        out(f"{accepted.counts[number]:6} lines accepted: {pattern.pattern} # {reason}")
    total = sum(kinds.values())
    out(f"{count} calls, {total} differences in {len(ordered)} groups")
    return total


# -------------------------------------------------------------------------------------- self-test

def fake_tool(folder, name, body):
    path = pathlib.Path(folder, name)
    path.write_text(f"#!{sys.executable}\nimport sys, pathlib\n{body}\n")
    path.chmod(0o755)
    return path


def self_test():
    failures = []

    def expect(what, found, wanted):
        if found != wanted:
            failures.append(f"{what}\n  wanted {wanted!r}\n  found  {found!r}")

    sentences = [{"GEN-006": "x is y"}, {"GEN-006": "x must be y (z)"}]
    expect("sentences", [Words([], sentences).same("1 x is y", line)
                         for line in ("1 x must be y (z)", "2 x must be y (z)", "1 x must be y")],
           [True, False, False])
    words = Words([("trace::context", "trace::binder"), ("a::why", "a::error"),
                   ("b::why", "b::broken")])

    def lines(old, new):
        return list(differing_lines(old.encode(), new.encode(), words))

    expect("equal", lines("a\nb\n", "a\nb\n"), [])
    expect("one line", lines("a\nb\nc\n", "a\nx\nc\n"), ["-b", "+x"])
    expect("a line more", lines("a\nc\n", "a\nb\nc\n"), ["+b"])
    expect("a line less", lines("a\nb\nc\n", "a\nc\n"), ["-b"])
    expect("order", sorted(lines("a\nb\n", "b\na\n")), ["+a", "+b", "-a", "-b"])
    expect("renamed", lines("x=why context ptspec::trace::context\n",
                            "x=broken binder ptspec::trace::binder\n"), [])
    expect("other word", lines("why\n", "wrong\n"), ["-why", "+wrong"])
    expect("backwards", lines("binder\n", "context\n"), ["-binder", "+context"])
    expect("punctuation", lines("why=1\n", "error:1\n"), ["-why=1", "+error:1"])
    expect("bytes", lines("\xff", "\xfe"), ["-\xff", "+\xfe"])
    expect("long", len(lines("a\n" * LONGEST_DIFF + "b", "c\n" * LONGEST_DIFF)),
           2 * LONGEST_DIFF + 2)
    expect("kind", kind_of("pt_dump", ["--time", "{file0}", "--hex", "00", "--time"]),
           "pt_dump --hex --time")

    with tempfile.TemporaryDirectory() as folder:
        body = ("data = sys.stdin.buffer.read().decode()\n"
                "for word in sys.argv[1:]:\n"
                "    path = pathlib.Path(word)\n"
                "    data += path.read_text() if path.exists() else f'no {word} '\n"
                "if len(sys.argv) > 2: pathlib.Path(sys.argv[2]).write_text('ANSWER')\n"
                "print(data, 'ANSWER'); print('MESSAGE', file=sys.stderr); sys.exit(STATUS)")

        def tool(name, answer="1", message="m", status="0"):
            return fake_tool(folder, name, body.replace("ANSWER", answer)
                             .replace("MESSAGE", message).replace("STATUS", status))

        call = Call("t --x", "t", ["{file0}", "{out1}"], b"in ", [("f.pt", b"file ")])
        old = execute(tool("old"), call)
        expect("parts", old, {"": b"in file no out1  1\n", "errors": b"m\n", "exit": b"0",
                              "file out1": b"1"})
        for changes, wanted in (({}, []), ({"answer": "2"}, ["t --x", "t --x (file out1)"]),
                                ({"message": "n"}, ["t --x (errors)"]),
                                ({"status": "3"}, ["t --x (exit)"])):
            found = [one.kind for one in compare(call, old, execute(tool("new", **changes), call),
                                                 words)]
            expect(f"changed {changes}", found, wanted)
        expect("changed input", execute(fake_tool(folder, "bad", "open(sys.argv[1], 'w')"), call)
               .get("file 0.f.pt"), b"")

        # A test whose calls are recorded.
        tool("tool")
        script = pathlib.Path(folder, "script.py")
        log = pathlib.Path(folder, "calls")
        script.write_text(
            "import subprocess, sys, tempfile, pathlib\n"
            "with tempfile.TemporaryDirectory() as where:\n"
            "    file = pathlib.Path(where, 'f.pt')\n    file.write_bytes(b'file ')\n"
            "    out = pathlib.Path(where, 'out')\n"
            "    subprocess.run([sys.argv[1], file, str(out)], input='in ', text=True)\n"
            "    subprocess.run([sys.argv[1], '-', where])\n"
            "    subprocess.run([sys.argv[1], '--x'], cwd=where)\n"
            "    subprocess.run(['true'])\n"
            "sys.exit(1)\n")
        subprocess.run([sys.executable, __file__, "--record", log, folder, script,
                        pathlib.Path(folder, "tool")], capture_output=True, check=False)
        expect("recorded", [*map(Call._make, pickle.loads(log.read_bytes()))],
               [call._replace(kind="tool", tool="tool")])

    accepted = Accepted("# intended\n\nt --x: [-+]rule=GEN-00[67] # GEN-007 stands\nno # never\n")
    printed = []
    call = Call("t --x", "t", ["--x", "{file0}"], b"", [("f.pt", b"")])
    differences = [Difference("t --x", call, ["-rule=GEN-006", "+rule=GEN-007"]),
                   Difference("t --x", call, ["-1 a", "+2 a", "+rule=GEN-007"]),
                   Difference("t --x", call, ["-0x3f a", "+4 a"]),
                   Difference("t --x (exit)", call, ["-0", "+1"]),
                   Difference("u", call, ["+rule=GEN-007"])]
    expect("left", report(differences, 9, accepted, 40, printed.append), 4)
    text = "\n".join(printed)
    for wanted in ("2 calls, 4 lines: t --x\n    t --x f.pt\n    -1 a\n    +2 a",
                   "1 calls, 1 lines: u\n    t --x f.pt\n    -(no line)\n    +rule=GEN-007",
                   "     3 lines accepted: t --x: [-+]rule=GEN-00[67] # GEN-007 stands",
                   "     0 lines accepted: no # never", "     2 differ: t --x\n",
                   "9 calls, 4 differences in 3 groups"):
        if wanted not in text:
            failures.append(f"no {wanted!r} in the report:\n{text}")
    for wrong in ("x", "x # ", "( # open"):
        try:
            Accepted(wrong)
            failures.append(f"accepted {wrong!r}")
        except Failed:
            pass
    print("\n".join(failures) if failures else "self-test: differences are found and accepted")
    return 1 if failures else 0


def declarations(commit):
    """rule.hpp of a commit, and of the working tree."""
    for path in (rules.DECLARATION, rules.DECLARATION.replace("base/", "")):
        shown = subprocess.run(["git", "-C", str(ROOT), "show", f"{commit}:{path}"],
                               capture_output=True, text=True, check=False)
        if shown.returncode == 0:
            yield shown.stdout
            break
    yield (ROOT / rules.DECLARATION).read_text(encoding="utf-8")


def check(options):
    accepted = Accepted(options.accept.read_text(encoding="utf-8") if options.accept else "")
    try:
        words = Words(renames.read_table(options.renames.read_text(encoding="utf-8")),
                      [rules.sentences_in(text) for text in declarations(options.commit)])
    except renames.BadTable as error:
        raise Failed(str(error)) from error
    old, new = build_commit(options.commit), build(ROOT, HOME / "tree")
    programs = [{path.name for path in side.iterdir() if os.access(path, os.X_OK)
                 and path.suffix == ""} for side in (old, new)]
    for name in sorted(programs[0] ^ programs[1]):
        print(f"only {'before' if name in programs[0] else 'now'}: {name}")

    def one(call):
        if not re.search(options.only, call.kind):
            return None
        return list(compare(call, execute(old / call.tool, call), execute(new / call.tool, call),
                            words))

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        calls = all_calls(programs[0] & programs[1], new)
        results = [found for found in pool.map(one, calls) if found is not None]
    differences = [difference for found in results for difference in found]
    return report(differences, len(results), accepted, options.limit)


def main():
    if sys.argv[1:2] == ["--record"]:
        return record(*sys.argv[2:])
    parser = argparse.ArgumentParser(description="Compare the output of the programs.")
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--accept", type=pathlib.Path, help="differences that are intended")
    parser.add_argument("--renames", type=pathlib.Path, default=ROOT / "CHANGELOG.md")
    parser.add_argument("--only", default="", help="a regular expression for kinds of calls")
    parser.add_argument("--limit", type=int, default=40, help="groups of differences to print")
    parser.add_argument("--self-test", action="store_true", help="show that each part can differ")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.commit is None:
        parser.error("needs a commit")
    try:
        differences = check(options)
        skips.status(False)  # prints what was missing
        return 1 if differences else 0
    except (Failed, OSError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
