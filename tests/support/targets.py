#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Prints the files that tests need and a build makes, for `tests/run --only`.

    ctest --show-only=json-v1 ... | targets.py BUILD_DIRECTORY
    targets.py --self-test

They are the REQUIRED_FILES of the tests, one a line, by the names that ninja builds them with.
Those outside of the build directory are left out.
"""

import json
import pathlib
import sys
import unittest


def files_of(listing, build):
    """The files of the build that a listing of ctest requires, in order and once each."""
    found = {}
    for test in listing["tests"]:
        for one in test.get("properties", []):
            if one["name"] != "REQUIRED_FILES":
                continue
            for path in map(pathlib.PurePath, one["value"]):
                if path.is_relative_to(build):
                    found[str(path.relative_to(build))] = None
    return list(found)


class SelfTest(unittest.TestCase):
    def test_the_files_of_the_build_are_found_once(self):
        def test(name, *files):
            labels = {"name": "LABELS", "value": ["unit"]}
            return {"name": name, "properties": [labels, {"name": "REQUIRED_FILES",
                                                          "value": list(files)}]}

        listing = {"tests": [test("a", "/b/bin/one", "/b/tests/two"), test("c", "/b/bin/one"),
                             test("d", "/usr/bin/true", "/bc/x"), test("e"), {"name": "f"}]}
        self.assertEqual(files_of(listing, "/b"), ["bin/one", "tests/two"])
        self.assertEqual(files_of({"tests": []}, "/b"), [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        unittest.main(argv=sys.argv[:1])
    for name in files_of(json.load(sys.stdin), sys.argv[1]):
        print(name)
