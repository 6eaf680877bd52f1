#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs the suite of checks on machines: the emulated PC with Intel PT, Linux on it, Debian's QEMU
and Bochs.

    suite.py [TEST]...          three minutes

On the emulated PC, each check must have the outcome that it has on the model, but for what the
emulator lacks. QEMU and Bochs have no Intel PT: the absence is checked, and whether they fault.
Installs Debian's packages qemu-system-x86, bochs and mtools.
"""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from common import BUILD, MACHINE, ROOT

CHECK_MACHINE = ROOT / "examples/check_machine/build"
IMAGES = BUILD / "check_machine"
SUITE = BUILD / "bin/pt_suite"
COUNTS = re.compile(r"^# (\d+) holds, (\d+) broken, (\d+) observed, (\d+) unsteady, "
                    r"(\d+) skipped, (\d+) errors$", re.M)

# What the emulator lacks, as a check says that it is skipped for it.
LACKS = {
    "CPUID.07H.0:EBX.RTM is 0",
    "CPUID.0DH.1:ECX.PT_STATE is 0",
    "the target has no XSAVES of component 8",
    "the target is not reset",
    "time passes otherwise than in the model",
}
# What the module does not do: these belong to perf.
OF_PERF = {"the target receives no PMI", "the target must not access 38EH to 391H"}
# A preset and a kind of processor.
PROCESSORS = [("Skylake-X", "skylake"), ("Broadwell-ULT", "broadwell"), ("IceLake-U", "icelake"),
              ("ArrowLake-P", "icelake"), ("GoldmontPlus", "atom"), ("P-SKL", "manual")]


def outcomes(report):
    """The outcome of each check in a report of TAP, with what is said of it."""
    found = {}
    for line in report.replace("\r", "").splitlines():
        one = re.fullmatch(r"(ok|not ok) \d+ - (\S+) (\S+)(?: # (.*))?", line)
        if one:
            word = re.match(r"(OBSERVED|SKIP|ERROR|UNSTEADY) (.*)", one[4] or "")
            what = word[1] if word else "holds" if one[1] == "ok" else "broken"
            found[one[2]] = (what, word[2] if word else one[4] or "")
    return found


def install(*packages):
    subprocess.run(["bash", "-c", ". tests/support/packages.sh; "
                    f"install_packages $(packages_not_installed {' '.join(packages)})"],
                   check=True, cwd=ROOT)


def boot(*arguments):
    return subprocess.run([MACHINE, "boot", *map(str, arguments)], capture_output=True, text=True,
                          errors="replace", check=False, timeout=600)


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for what in ("pvh", "stick", "iso", "module"):
            subprocess.run([CHECK_MACHINE, what], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([MACHINE, "build"], check=True)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def of_model(self, *options):
        done = subprocess.run([SUITE, "--json", *options], capture_output=True, text=True,
                              check=False)
        rows = [json.loads(line) for line in done.stdout.splitlines()[1:]]
        return {one["check"]: (one["outcome"], one["detail"]) for one in rows}

    def same_as_model(self, report, model, lacks=frozenset(LACKS)):
        seen = outcomes(report)
        self.assertEqual(sorted(seen), sorted(model))
        for check, (what, why) in seen.items():
            expected, reason = model[check]
            if what == "SKIP" and why in lacks:
                continue
            words = {"holds": "holds", "OBSERVED": "observed", "SKIP": "skipped"}
            self.assertEqual((check, words.get(what, what)), (check, expected), why)
            if what == "SKIP":
                self.assertEqual(why, reason, check)

    def test_emulated_pc_is_as_the_model(self):
        for preset, kind in PROCESSORS:
            with self.subTest(preset):
                done = boot("--preset", preset, "--kind", kind, IMAGES / "pvh.elf",
                            f"kind={kind}", "runs=3", "observe")
                self.assertEqual(done.returncode, 0, done.stdout[-2000:])
                self.assertRegex(done.stdout.replace("\r", ""), rf"(?m)^# row: {kind}\n"
                                 r"# \d+ traces; in 0 the model has other bytes$")
                model = self.of_model("--as-preset", preset, "--as-kind", kind, "--runs", "3")
                self.same_as_model(done.stdout, model)
                lacking = [one for one, (what, why) in outcomes(done.stdout).items()
                           if what == "SKIP" and why in LACKS]
                print(f"{preset}: {COUNTS.search(done.stdout)[0]}; {len(lacking)} for what the "
                      "emulator lacks")

    def test_options(self):
        done = boot(IMAGES / "pvh.elf", "runs=0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("# no option runs=0", done.stdout)

    def test_stick_keeps_its_report(self):
        install("mtools")
        stick = self.folder / "stick.img"
        shutil.copy(IMAGES / "stick.img", stick)
        done = boot("--keep", stick)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])
        self.same_as_model(done.stdout, self.of_model())
        report = self.folder / "report"

        def mtools(name, *words):
            subprocess.run([name, "-i", f"{stick}@@1M", *words], check=True)

        mtools("mcopy", "-n", "::/pt_suite.txt", report)
        whole = report.read_text(encoding="utf-8")
        self.assertEqual(outcomes(whole), outcomes(done.stdout))
        # A machine that hung while a check ran: the check is left out from then on.
        report.write_text(whole[:whole.index("# runs topa-int\n") + 16], encoding="utf-8")
        mtools("mcopy", "-o", report, "::/pt_suite.txt")
        for _ in range(2):
            done = boot("--keep", stick)
            self.assertEqual(done.returncode, 1)
            wrong = {one: said for one, said in outcomes(done.stdout).items()
                     if said[0] not in ("holds", "OBSERVED", "SKIP")}
            self.assertEqual(wrong, {"topa-int": ("ERROR", "it did not end the last time")})

    def in_linux(self, preset, script):
        """What the kernel prints while a script runs that inserts the module."""
        shutil.copy(IMAGES / "pt_suite.ko", self.folder)
        done = subprocess.run(
            [MACHINE, "run", "--preset", preset, "--file", "pt_suite.ko", "sh", "-c",
             f"{script}; dmesg > printed"], cwd=self.folder, capture_output=True, text=True,
            check=False, timeout=600)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        printed = (self.folder / "printed").read_text(encoding="utf-8")
        self.assertNotRegex(printed, "BUG:|WARNING:|Oops|Call Trace")
        return re.findall(r"pt_suite: (.*)", printed)

    def test_module(self):
        for preset in ("Skylake-X", "ArrowLake-P"):
            with self.subTest(preset):
                lines = self.in_linux(preset, "insmod pt_suite.ko runs=2 && rmmod pt_suite")
                self.assertIn("KTAP version 1", lines)
                model = self.of_model("--as-preset", preset, "--runs", "2")
                self.same_as_model("\n".join(lines), model, LACKS | OF_PERF)
                self.assertEqual(lines[-1],
                                 "# 1 processors, 0 of them failed or could not be asked")
                print(f"{preset}: {COUNTS.search(chr(10).join(lines))[0]}")

    def test_module_leaves_perf_alone(self):
        lines = self.in_linux("Skylake-X", "perf record -e intel_pt//u -a -o of.data sleep 5 & "
                              "sleep 2; insmod pt_suite.ko runs=1; wait")
        self.assertNotIn("KTAP version 1", lines)
        self.assertRegex("\n".join(lines), "# processor 0: perf uses Intel PT: error 16")

    def absent(self, report, faults):
        """Checks a report of an emulator without Intel PT."""
        seen = outcomes(report)
        asked = {one for one, (what, _) in seen.items() if what != "SKIP"}
        self.assertEqual(asked, {"msrs-without-intel-pt"} if faults else set())
        if faults:
            self.assertEqual(seen["msrs-without-intel-pt"][0], "holds")
        decided = sum(why == "policy: ignores absent MSRs" for _, why in seen.values())
        line = f"# policy: ignores absent MSRs; it decides {decided} checks\n"
        self.assertEqual(line in report.replace("\r", ""), not faults)
        self.assertEqual(decided == 0, faults)

    def test_qemu_ignores_absent_msrs(self):
        install("qemu-system-x86")
        done = subprocess.run(
            ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-M", "q35", "-m", "256",
             "-display", "none", "-nodefaults", "-no-reboot", "-serial", "stdio",
             "-device", "isa-debug-exit,iobase=0xf4,iosize=1", "-kernel", IMAGES / "pvh.elf"],
            capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 35)  # nothing could be asked
        self.absent(done.stdout, faults=False)

    def test_bochs_faults_unless_it_ignores(self):
        install("bochs", "bochsbios", "vgabios")
        for model in ("corei7_skylake_x", "tigerlake"):
            for ignores in (0, 1):
                with self.subTest(f"{model} {ignores}"):
                    self.absent(self.run_bochs(model, ignores), faults=not ignores)

    def run_bochs(self, model, ignores):
        folder = self.folder / f"{model}{ignores}"
        folder.mkdir()
        (folder / "bochsrc").write_text(f"""config_interface: textconfig
display_library: rfb, options="timeout=0"
megs: 256
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path={IMAGES / "check_machine.iso"}, status=inserted
boot: cdrom
cpu: model={model}, ips=100000000, ignore_bad_msrs={ignores}
com1: enabled=1, mode=file, dev=serial
sound: driver=dummy
log: log
""", encoding="utf-8")
        (folder / "continue").write_text("c\n", encoding="utf-8")
        serial = folder / "serial"
        with subprocess.Popen(["bochs", "-q", "-f", "bochsrc", "-rc", "continue"], cwd=folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as bochs:
            try:
                end = time.monotonic() + 120
                while time.monotonic() < end and bochs.poll() is None:
                    report = serial.read_text(errors="replace") if serial.exists() else ""
                    if COUNTS.search(report.replace("\r", "")):
                        return report
                    time.sleep(0.5)
            finally:
                bochs.kill()
        self.fail("Bochs did not run the program")


if __name__ == "__main__":
    unittest.main(verbosity=2)
