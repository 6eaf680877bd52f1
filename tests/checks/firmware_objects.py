# SPDX-License-Identifier: BSL-1.0
"""Compiles sources of tests/firmware with firmware flags, for the checks that inspect the object.
"""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRMWARE = ROOT / "tests" / "firmware"
FLAGS = ["-std=c++20", "-ffreestanding", "-fno-exceptions", "-fno-rtti", "-nostdinc++",
         "-fno-stack-protector", "-fno-pic", "-fno-pie"]


def output_of(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def compile_to(path, source, compiler, *flags):
    subprocess.run([*compiler.split(), *FLAGS, *flags, f"-I{ROOT / 'include'}", "-c", str(source),
                    "-o", str(path)], check=True)
