#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Proves the statements of statements/*.py for all inputs, and refutes each one's mutant.

    run.py [--all] [--only WORD] [--no-mutants] [--regmap PROGRAM]
    run.py --self-test [RUNS]         the self-test of the translator: self_test.py

Each line has the statement, whether it is proved, and the processor time of the proof; then whether
the mutant is refuted. Statements that take up to a minute need --all, those about the generated C
header and Rust module need --regmap, and the latter rustc 1.70 or newer.

Exit status: 0 all are proved and all mutants refuted, 1 not all, 2 wrong usage.
"""

import argparse
import functools
import importlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import z3

import claims
from execute import call
from ir import FOLDER, INCLUDE, Module, Unsupported, compiled_to_ir, rust_to_ir

TIMEOUT = 120  # seconds of one proof
NEEDS = {"regmap": "--regmap", "rustc": "rustc 1.70 or newer (Debian 12: rustc-web)"}


class Functions:
    """The functions of compiled files. A call returns the value, or the result with its memory."""

    def __init__(self, modules):
        self.modules, self.defined = modules, []

    def __getattr__(self, name):
        module = next(one for one in self.modules if "@" + name in one.functions)

        def run(*args):
            result = call(module, name, *args)
            self.defined.append(result.defined)
            return result if result.memory else result.value
        return run


def prove(claim, modules):
    """The verdict, the seconds, and the inputs of a counter-example."""
    begin = time.process_time()
    functions = Functions(modules)
    claimed = claim(functions)
    parts = [part if isinstance(part, tuple) else (z3.BoolVal(True), part)
             for part in (claimed if isinstance(claimed, list) else [claimed])]
    # No call has undefined behaviour where what is given for all parts holds.
    parts.append((z3.And(*[given for given, _ in parts if not over_integers(given)]),
                  z3.And(*functions.defined)))
    for given, holds in parts:
        verdict, example = decide(given, holds)
        if verdict != "proved":
            break
    if verdict == "refuted" and holds is parts[-1][1]:
        example += " (undefined behaviour)"
    return verdict, time.process_time() - begin, example


def over_integers(term):
    seen, rest = set(), [term]
    while rest:
        one = rest.pop()
        if one.get_id() not in seen:
            seen.add(one.get_id())
            if one.sort() == z3.IntSort():
                return True
            rest += one.children()
    return False


def decide(given, holds):
    solver = z3.Solver() if over_integers(given) else z3.SolverFor("QF_BV")
    solver.set("timeout", TIMEOUT * 1000)
    solver.add(given)
    if solver.check() != z3.sat:
        return "vacuous", ""
    solver.add(z3.Not(holds))
    found = str(solver.check())
    if found != "sat":
        return "proved" if found == "unsat" else "undecided", ""
    model = solver.model()
    example = ", ".join(sorted(f"{one} = {model[one]}" if z3.is_bool(model[one]) else
                               f"{one} = {model[one].as_long():X}H" for one in model.decls()
                               if one.arity() == 0))
    return "refuted", example


def rustc_is_known():
    """True for rustc 1.70 and newer: older ones write pointers with types."""
    if not shutil.which("rustc"):
        return False
    said = subprocess.run(["rustc", "--version"], check=True, text=True, capture_output=True)
    return [int(one) for one in said.stdout.split()[1].split(".")[:2]] >= [1, 70]


class Compiler:
    """Compiles the files of statements, also with an edited header."""

    def __init__(self, folder, regmap):
        self.folder, self.regmap, self.modules = pathlib.Path(folder), regmap, {}
        if regmap:
            subprocess.run([regmap, "--c", f"{folder}/ptspec.h"], check=True)
            subprocess.run([regmap, "--rust", f"{folder}/ptspec.rs"], check=True)

    @functools.cached_property
    def rust(self):
        """The functions of generated.rs, which stands beside the module for this."""
        source = shutil.copy(FOLDER / "statements" / "generated.rs", self.folder)
        return Module(rust_to_ir(source))

    def modules_of(self, one, mutant=None):
        """The compiled files that a statement is about."""
        return [self.module(one.source, one.only, mutant),
                *([self.rust] if "rustc" in one.needs else [])]

    def module(self, source, only="", mutant=None):
        key = source, only if mutant else "", mutant
        if key not in self.modules:
            include = INCLUDE
            if mutant:
                include = self.folder / "mutant"
                shutil.rmtree(include, ignore_errors=True)
                shutil.copytree(INCLUDE, include)
                header, old, new = mutant
                text = (include / "ptspec" / header).read_text(encoding="utf-8")
                if text.count(old) == 0 or old == new:
                    raise SystemExit(f"{header}: no {old!r}")
                (include / "ptspec" / header).write_text(text.replace(old, new, 1),
                                                         encoding="utf-8")
            flags = [f"-I{self.folder}", *([f"-DONLY_{only}"] if only and mutant else [])]
            text = compiled_to_ir(FOLDER / "statements" / f"{source}.cpp", include, flags)
            self.modules[key] = Module(text)
        return self.modules[key]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--no-mutants", action="store_true")
    parser.add_argument("--regmap")
    parser.add_argument("--self-test", nargs="?", type=int, const=100_000)
    chosen = parser.parse_args()
    if chosen.self_test:
        import self_test
        return self_test.run(chosen.self_test)
    for file in sorted((FOLDER / "statements").glob("*.py")):
        importlib.import_module(f"statements.{file.stem}")
    has = {"regmap": chosen.regmap, "rustc": rustc_is_known()}
    begin = time.monotonic()
    wrong, solving, count = 0, 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(folder, chosen.regmap)
        for one in claims.ALL:
            if chosen.only not in f"{one.source}: {one.name}":
                continue
            if one.slow and not chosen.all:
                print(f"skipped  {one.source}: {one.name}: needs --all")
                continue
            if missing := [need for need in one.needs if not has[need]]:
                print(f"skipped  {one.source}: {one.name}: needs {NEEDS[missing[0]]}")
                continue
            try:
                found, seconds, example = prove(one.claim, compiler.modules_of(one))
            except Unsupported as why:
                found, seconds, example = "unknown", 0.0, str(why)
            except subprocess.CalledProcessError as why:
                found, seconds, example = "no build", 0.0, why.stderr
            solving += seconds
            count += 1
            mutant = ""
            if not chosen.no_mutants:
                try:
                    changed = compiler.modules_of(one, one.mutant)
                    mutant = prove(one.claim, changed)[0]
                except Unsupported as why:
                    mutant = str(why)
                except subprocess.CalledProcessError:
                    mutant = "does not build"
            good = found == "proved" and mutant in ("", "refuted")
            wrong += not good
            print(f"{found:8} {seconds:6.2f} s  {one.source}: {one.name}"
                  f"{'; mutant ' + mutant if mutant else ''}", flush=True)
            if example:
                print(f"          {example}")
    print(f"{count} statements, {wrong} wrong; {solving:.1f} s for the proofs, "
          f"{time.monotonic() - begin:.1f} s with compilers and mutants")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.setrecursionlimit(100_000)
    sys.exit(main())
