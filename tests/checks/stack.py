#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks the use of the stack, from the call graph that g++ -fcallgraph-info=su writes.

    stack.py GRAPH --max-frame BYTES --max-path BYTES FUNCTION...
    stack.py --self-test

No frame may be larger than one limit, and on no call path from a FUNCTION the sum of the frames
than the other. A recursion, a call through a pointer and a frame of unbounded size have no sum, and
fail. Functions that are not in the graph, such as those of the kernel, count as 0 bytes.
"""

import argparse
import pathlib
import re
import sys

NODE = re.compile(r'^node: \{ title: "([^"]*)" label: "((?:[^"\\]|\\.)*)"', re.M)
EDGE = re.compile(r'^edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', re.M)
# The bytes include the return address.
FRAME = re.compile(r"\\n(\d+) bytes \(([a-z,]*)\)")


class Graph:
    def __init__(self, text):
        self.frames, self.names, self.problems = {}, {}, []
        for title, label in NODE.findall(text):
            frame = FRAME.search(label)
            self.names[title] = label.split("\\n")[0]
            if frame:
                self.frames[title] = int(frame[1])
                if frame[2] == "dynamic":
                    self.problems.append(f"a frame of unbounded size: {self.names[title]}")
        self.calls = {}
        for caller, callee in EDGE.findall(text):
            self.calls.setdefault(caller, []).append(callee)
        self.deepest = {}

    def path_from(self, title, open_calls=()):
        """The bytes of the deepest call path from a function, and the functions on it."""
        if title in open_calls:
            self.problems.append(f"a recursion: {self.names.get(title, title)}")
            return 0, []
        if title not in self.deepest:
            if title == "__indirect_call":
                self.problems.append("a call through a pointer")
            below = [self.path_from(callee, (*open_calls, title))
                     for callee in self.calls.get(title, [])]
            bytes_below, path = max(below, key=lambda one: one[0], default=(0, []))
            self.deepest[title] = self.frames.get(title, 0) + bytes_below, [title, *path]
        return self.deepest[title]


def check(text, functions, max_frame, max_path):
    """The problems, the largest frame, and the deepest path as (bytes, functions on it)."""
    graph = Graph(text)
    largest, name = max(((frame, graph.names[title]) for title, frame in graph.frames.items()),
                        default=(0, "no function at all"))
    if largest > max_frame or not graph.frames:
        graph.problems.append(f"a frame of {largest} bytes: {name}")
    deepest = 0, []
    for function in functions:
        if function not in graph.frames:
            graph.problems.append(f"there is no function {function}")
            continue
        deepest = max(deepest, graph.path_from(function), key=lambda one: one[0])
    if deepest[0] > max_path:
        graph.problems.append(f"a call path of {deepest[0]} bytes:")
        graph.problems += [f"  {graph.frames.get(title, 0):5} {graph.names.get(title, title)}"
                           for title in deepest[1]]
    return graph.problems, largest, deepest


def self_test():
    def node(name, frame=None, kind="static"):
        size = f"\\n{frame} bytes ({kind})" if frame is not None else ""
        return f'node: {{ title: "{name}" label: "{name}\\na.cpp:1:1{size}" }}\n'

    def edge(caller, callee):
        return f'edge: {{ sourcename: "{caller}" targetname: "{callee}" label: "a.cpp:2:2" }}\n'

    plain = (node("main", 100) + node("one", 40) + node("two", 60, "dynamic,bounded") +
             node("outside") + edge("main", "one") + edge("main", "two") + edge("one", "outside"))
    cases = [  # a graph, the largest frame and path allowed, and the expected problems
        (plain, 100, 160, []),
        (plain, 99, 160, ["a frame of 100 bytes: main"]),
        (plain, 100, 159, ["a call path of 160 bytes:", "    100 main", "     60 two"]),
        (plain + edge("one", "main"), 100, 999, ["a recursion: main"]),
        (plain + edge("two", "__indirect_call"), 100, 999, ["a call through a pointer"]),
        (plain + node("odd", 1, "dynamic"), 100, 999, ["a frame of unbounded size: odd"]),
        (plain.replace("main", "other"), 100, 999, ["there is no function main"]),
        ("", 100, 999, ["a frame of 0 bytes: no function at all", "there is no function main"]),
    ]
    failures = 0
    for text, max_frame, max_path, wanted in cases:
        found = check(text, ["main"], max_frame, max_path)[0]
        if found != wanted:
            print(f"expected {wanted}, got {found}")
            failures += 1
    print(f"{len(cases)} cases, {failures} failures")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    parser = argparse.ArgumentParser(description="Check the use of the stack.")
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("functions", nargs="+", metavar="function")
    parser.add_argument("--max-frame", type=int, required=True, metavar="BYTES")
    parser.add_argument("--max-path", type=int, required=True, metavar="BYTES")
    options = parser.parse_args()
    problems, largest, deepest = check(options.graph.read_text(encoding="utf-8"), options.functions,
                                       options.max_frame, options.max_path)
    print("\n".join(problems) if problems else
          f"stack: at most {largest} bytes in a frame and {deepest[0]} on a call path, "
          f"of {len(deepest[1])} functions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
