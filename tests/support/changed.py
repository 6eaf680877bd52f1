#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Chooses the tests for changed files, for `tests/run --changed`.

    changed.py BUILD FILE...   prints the names of the tests, one a line, in the order of relevance
    changed.py --self-test

Always chosen: tests of the changed files themselves, and checks of the sources. Then, up to SECONDS
of processor time, tests whose dependency records (of the last build) have a changed header: first
those that include it directly or mention most of its words and rules, then the cheapest. What is
not run is reported.
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 60
WORD = re.compile(r"\b(?:struct|class|enum class|enum|concept|auto|using) +([a-z]\w{4,})")
RULE = re.compile(r"\b(REG|OUT|PKT|GEN|PRG)[-_](\d{3})\b")


def own_tests(path):
    """The tests of one changed file, as names or regular expressions."""
    name = re.sub(r"\.\w+$", "", path).replace("/", ".")
    found = []
    if re.match(r"include/ptspec/.*\.hpp$", path):
        found += [name.removeprefix("include.ptspec."), r"single_include\.check",
                  r"checks\.(tree|order|words|rules|format|readme)"]
    if path == "tests/fail/README.md":
        return [r"checks\.errors_page", r"fail\..*"]
    if re.match(r"(.*/)?README\.md$", path):
        return [r"checks\.(tree|readme)"]
    if path.startswith("include/ptspec/reg/"):
        found += ["laws_words", "registers_csv"]
    elif path.startswith("include/ptspec/packet/"):
        found += ["laws_packets"]
    elif path.startswith("tests/spec/"):
        found += [r"checks\.(rules|tree)", r"support\..*"]
    elif re.match(r"tests/checks/(\w+\.(csv|txt)|sources\.py)$", path):
        found += [r"checks\.(tree|order|words)(\.self_test)?"]
    elif re.match(r"tests/checks/(mistake_tables|compile_fail|errors_page)\.py$", path):
        found += [r"checks\.(compile_fail|errors_page)(\.self_test)?", r"fail\..*"]
    elif path == "tests/checks/include_time.py":
        found += [r"checks\.readme"]
    elif path.startswith("tests/checks/"):
        found += [name.removeprefix("tests.") + r"(\.self_test)?"]
    elif path.startswith("tests/fail/headers/"):
        found += [r"fail\.headers", r"checks\.errors_page"]
    elif path.startswith("tests/fail/"):
        found += [name.removeprefix("tests."), r"checks\.errors_page"]
    elif path.startswith("tests/") and path.endswith((".cpp", ".py")):
        found += [name.removeprefix("tests.")]
    elif path.startswith("examples/") and path.endswith(".cpp"):
        program = pathlib.PurePath(path).stem
        found += [f"examples.{program}", f"tools.{program}"]
    return found


def words_of(text):
    """The names that a header declares, and the rules that it cites."""
    return set(WORD.findall(text)) | {f"{area}-{number}" for area, number in RULE.findall(text)}


def mentions(text, words):
    """How many of the words occur in a text."""
    found = set(re.findall(r"\w+", text)) | {f"{a}-{n}" for a, n in RULE.findall(text)}
    # GEN-100..105 and GEN-100, 105 are citations, too, but count as one.
    return len(words & found)


class Build:
    """What the records of a build say about its tests."""

    def __init__(self, deps, log, costs, tests):
        self.headers = collections.defaultdict(set)  # test -> files that its objects depend on
        self.sources = collections.defaultdict(set)  # test -> its own sources
        self.cost = collections.defaultdict(float)   # test -> seconds to build and run
        programs = collections.defaultdict(set)
        for test in tests:
            programs[self.program_of(test)].add(test)
        seconds = {}
        for line in log.splitlines()[1:]:
            begin, end, _, output, _ = line.split("\t")
            seconds[output] = (int(end) - int(begin)) / 1000
        for block in re.split(r"\n(?=\S)", deps):
            head, *files = block.splitlines()
            found = re.match(r"(\S*?CMakeFiles/(\S+?)\.dir/\S+):", head)
            if not found or found[2] not in programs:
                continue
            files = [file.strip() for file in files]
            for test in programs[found[2]]:
                self.headers[test].update(files)
                self.sources[test].update(files[:1])
                self.cost[test] += seconds.get(found[1], 1)
        for line in costs.splitlines():
            if line == "---":
                break
            name, _, value = line.rsplit(" ", 2)
            self.cost[name] += float(value)

    @staticmethod
    def program_of(test):
        """The target of a test: examples and tools are named without their folder."""
        return re.sub(r"^(examples|tools)\.", "", test)

    def dependents(self, path):
        return {test for test, files in self.headers.items() if path in files}


def choose(build, changed, read):
    """(tests by relevance, how many more depend on the changed files)."""
    relevance = collections.Counter()
    for path in changed:
        if not path.endswith((".hpp", ".h")):
            continue
        words = words_of(read(path))
        include = re.sub(r"^(include|tests|examples)/", "", path)
        for test in build.dependents(path):
            text = "".join(read(one) for one in build.sources[test])
            direct = f"<{include}>" in text or f'"{include}"' in text
            # In steps: a few words more do not outweigh the cost.
            relevance[test] += 100 * direct + mentions(text, words).bit_length()
    order = sorted(relevance, key=lambda test: (-relevance[test], build.cost[test]))
    chosen, spent = [], 0
    for test in order:
        if spent + build.cost[test] <= SECONDS:
            spent += build.cost[test]
            chosen.append(test)
    return chosen, len(order) - len(chosen), spent


def records(folder):
    def read(path):
        return path.read_text() if path.is_file() else ""

    def ran(*command):
        return subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout

    tests = re.findall(r"^ *Test *#\d+: (\S+)$", ran("ctest", "--show-only"), re.M)
    deps = ran("ninja", "-t", "deps").replace(f"{ROOT}/", "")
    return Build(deps, read(folder / ".ninja_log"),
                 read(folder / "Testing" / "Temporary" / "CTestCostData.txt"), tests)


def self_test():
    deps = """\
tests/CMakeFiles/a.one.dir/a/one.cpp.o: #deps 2, deps mtime 1 (VALID)
    tests/a/one.cpp
    include/ptspec/a/one.hpp

tests/CMakeFiles/a.two.dir/a/two.cpp.o: #deps 2, deps mtime 1 (VALID)
    tests/a/two.cpp
    include/ptspec/a/one.hpp

tests/CMakeFiles/a.three.dir/a/three.cpp.o: #deps 2, deps mtime 1 (VALID)
    tests/a/three.cpp
    include/ptspec/a/one.hpp

tests/CMakeFiles/b.four.dir/b/four.cpp.o: #deps 1, deps mtime 1 (VALID)
    tests/b/four.cpp
"""
    log = "# ninja log v5\n" + "".join(
        f"0\t{1000 * end}\t1\ttests/CMakeFiles/a.{name}.dir/a/{name}.cpp.o\tx\n"
        for name, end in (("one", 20), ("two", 30), ("three", 4)))
    texts = {"include/ptspec/a/one.hpp": "struct a_word {}; // REG-123",
             "tests/a/one.cpp": "#include <ptspec/a/one.hpp>",
             "tests/a/two.cpp": "cites REG-123 of a_word", "tests/a/three.cpp": "nothing"}
    build = Build(deps, log, "a.three 1 1.5\n---\n", ["a.one", "a.two", "a.three", "b.four"])
    assert build.cost["a.three"] == 5.5, dict(build.cost)
    changed = ["include/ptspec/a/one.hpp"]
    assert choose(build, changed, texts.get) == (["a.one", "a.two", "a.three"], 0, 55.5)
    build.cost["a.two"] = 41
    assert choose(build, changed, texts.get) == (["a.one", "a.three"], 1, 25.5)
    assert choose(build, ["tests/b/four.cpp"], texts.get) == ([], 0, 0)
    assert own_tests("include/ptspec/reg/x.hpp")[0] == "reg.x"
    assert "registers_csv" in own_tests("include/ptspec/reg/x.hpp")
    assert own_tests("tests/checks/x.py") == [r"checks.x(\.self_test)?"]
    assert own_tests("tests/checks/x.csv") == [r"checks\.(tree|order|words)(\.self_test)?"]
    for judge in ("mistake_tables", "compile_fail", "errors_page"):
        assert own_tests(f"tests/checks/{judge}.py")[-1] == r"fail\..*"
    assert own_tests("tests/fail/README.md") == [r"checks\.errors_page", r"fail\..*"]
    assert own_tests("tests/a/b.cpp") == ["a.b"]
    assert own_tests("examples/tools/a/b.cpp") == ["examples.b", "tools.b"]
    assert own_tests("tests/fail/a.cpp") == ["fail.a", r"checks\.errors_page"]
    assert own_tests("tests/fail/headers/a.cpp") == [r"fail\.headers", r"checks\.errors_page"]
    for page in ("include/ptspec/reg/README.md", "examples/README.md", "tests/bench/README.md"):
        assert own_tests(page) == own_tests("README.md")
    print("changed.py: self-test passed")


def main(folder, *changed):
    def read(path):
        file = ROOT / path
        return file.read_text(errors="replace") if file.is_file() else ""

    names = {one for path in changed for one in own_tests(path)}
    build = records(pathlib.Path(folder))
    headers = [path for path in changed if path.endswith((".hpp", ".h"))]
    if headers and not build.headers:
        print("No records of a build: run tests/run once, so that the tests that depend on a "
              "changed header are found.", file=sys.stderr)
    chosen, rest, seconds = choose(build, changed, read)
    if headers:
        print(f"{len(chosen)} tests that depend on a changed header, about {seconds:.0f} s of "
              f"processor time; {rest} more depend on one and are not run.", file=sys.stderr)
    print("\n".join([*sorted(names), *map(re.escape, chosen)]))


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        main(*sys.argv[1:])
