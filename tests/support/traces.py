# SPDX-License-Identifier: BSL-1.0
"""Finds traces, and their golden listings: those of tests/traces, which belong to the project, and
recorded traces from external sources. PTSPEC_TRACES names the folder of the latter; the default is
../shared/traces beside the source tree.
"""

import csv
import lzma
import os
import pathlib
import re
import sys
import tarfile
import unittest

import skips

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEED = "recorded traces"


def folder():
    return pathlib.Path(os.environ.get("PTSPEC_TRACES") or ROOT.parent / "shared" / "traces")


def facts():
    return pathlib.Path(os.environ.get("PTSPEC_FACTS") or ROOT.parent / "shared" / "facts")


def perf_data_folder():
    return pathlib.Path(os.environ.get("PTSPEC_PERF_DATA") or ROOT.parent / "shared" / "perfdata")


def are_there():
    return (folder() / "README.md").is_file()


def shipped(name, kind="pt"):
    """A trace of tests/traces by name, its listing (`packets`) or perf.data file (`data`)."""
    return read(ROOT / "tests" / "traces" / f"{name}.{kind}")


def recorded(name):
    """A recorded trace by name. A test that needs it is skipped without the recorded traces."""
    if not are_there():
        raise unittest.SkipTest(NEED)
    return read(folder() / f"{name}.pt")


def recorded_perf_data(name):
    """A recorded perf.data file by name. A test that needs it is skipped without these files."""
    data = read(perf_data_folder() / name)
    if data is None:
        raise unittest.SkipTest("recorded perf.data")
    return data


def read(path):
    """The contents of a file, or of its .xz form; None when both are missing."""
    if path.is_file():
        return path.read_bytes()
    packed = path.with_name(path.name + ".xz")
    return lzma.decompress(packed.read_bytes()) if packed.is_file() else None


def listed_in(where):
    for listing in sorted(where.glob("*.packets.xz")):
        name = listing.name.removesuffix(".packets.xz")
        if not name.endswith(".chunks"):
            yield name, read(where / f"{name}.pt"), read(where / f"{name}.packets").decode(), True


def all_traces():
    """Yields (name, bytes, golden listing, sync) for every trace, including libipt's own test
    streams. Without the recorded traces, the test program counts as skipped in part."""
    yield from listed_in(ROOT / "tests" / "traces")
    where = folder()
    if not are_there():
        skips.say(NEED, pathlib.Path(sys.argv[0]).name)
        return
    yield from listed_in(where)
    with tarfile.open(where / "libipt-tests.tar.xz") as tests:
        files = {member.name: member for member in tests.getmembers() if member.isfile()}

        def content(name):
            return tests.extractfile(files[name]).read()

        for name in sorted(n for n in files if n.endswith(".packets")):
            base = name.removesuffix(".packets")
            info = content(str(pathlib.PurePosixPath(name).parent / "info.txt")).decode()
            yield (f"libipt-tests/{pathlib.PurePosixPath(base).name}", content(base + ".pt"),
                   content(name).decode(), "sync: no" not in info)


def without_rules(listing):
    """A listing of pt_dump as libipt lists a trace: damage has no rule."""
    return re.sub(r"^(\S+ !error code=\S+(?: left=\d+)?) rule=.*$", r"\1", listing,
                  flags=re.MULTILINE)


def disagreements():
    """Intended differences between the library and the golden listings: (trace, offset) -> row."""
    with open(ROOT / "tests" / "trace" / "disagreements.csv", newline="") as file:
        return {(row["trace"], row["offset"]): row for row in csv.DictReader(file)}


def expected(name, golden, used=None):
    """The golden listing after the changes of `disagreements`."""
    lines = golden.split("\n")
    for (trace, offset), row in disagreements().items():
        if trace == name:
            places = [i for i, line in enumerate(lines) if line.startswith(offset + " ")]
            if len(places) != 1:
                sys.exit(f"disagreements.csv: {name} has {len(places)} lines at {offset}")
            if lines[places[0]] == row["line"]:
                sys.exit(f"disagreements.csv: {name} agrees at {offset}")
            lines[places[0]] = row["line"]
            if used is not None:
                used.add((trace, offset))
    return "\n".join(lines)
