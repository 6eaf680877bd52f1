# SPDX-License-Identifier: BSL-1.0
"""What the tests that boot the machine share: where things are, and arguments."""

import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MACHINE = ROOT / "examples/tools/machine/machine"
BUILD = pathlib.Path(os.environ.get("PTSPEC_BUILD_DIR", ROOT / "build")).resolve()
IMAGE = BUILD / "machine/root.img"  # that `machine root` makes


def need(parser, *programs):
    """Ends with wrong usage unless these programs of the project are built."""
    absent = [name for name in programs if not (BUILD / "bin" / name).exists()]
    if absent:
        parser.error(f"not built: tests/run --build {' '.join(absent)}")


def parse(parser, arguments):
    """The options, with --keep FOLDER, which must be new. Builds the machine."""
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args(arguments)
    need(parser, "pt_flow")
    if options.keep and options.keep.exists():
        parser.error(f"{options.keep} exists")
    subprocess.run([MACHINE, "build"], check=True)
    return options


def perf_errors(file, symfs):
    """`perf script` that decodes a file: the finished process, and its trace errors."""
    done = subprocess.run(["perf", "script", "--symfs", symfs, "-i", file, "--itrace=e",
                           "-F", "ip,event"], capture_output=True, text=True, errors="replace",
                          check=False, timeout=300)
    return done, re.findall(r"instruction trace error type.*", done.stdout + done.stderr)
