#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of examples/tools/machine that need no emulator: what its arguments may be, and what is
refused before anything is built. bad_input.py beside this file has those that boot."""

import contextlib
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.dont_write_bytecode = True
TOOL = pathlib.Path(__file__).resolve().parents[2] / "examples/tools/machine"
MACHINE = TOOL / "machine"
sys.path.insert(0, str(TOOL))
import disk  # noqa: E402
import inside  # noqa: E402
import steps  # noqa: E402


def elf(machine):
    return b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HH", 2, machine) + bytes(44)


class Folder(unittest.TestCase):
    """Tests in a temporary directory, which is also that of the build."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=True)

    def file(self, name, content=b"", mode=0o644):
        file = self.folder / name
        file.write_bytes(content)
        file.chmod(mode)
        return file

    def refuses(self, status, text, *arguments):
        done = subprocess.run(
            [sys.executable, "-B", MACHINE, *map(str, arguments)], cwd=self.folder,
            env={**os.environ, "PTSPEC_BUILD_DIR": str(self.folder / "build")},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertRegex(done.stderr, rf"^machine: .*{text}")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse((self.folder / "build").exists(), "something was built")


class Arguments(Folder):
    def test_names_of_the_library_are_checked(self):
        self.refuses(2, "--preset Skylake-Y", "run", "--preset", "Skylake-Y", "ls")
        self.refuses(2, "--preset Lakefield", "run", "--preset", "Lakefield", "ls")
        self.refuses(2, "--kind moon: none of manual, broadwell", "run", "--kind", "moon", "ls")
        self.refuses(2, "--hide MOON: unknown; known are CR3FILTER, .*PTWRITE",
                     "run", "--hide", "MOON", "ls")

    def test_names_of_the_library_are_known(self):
        for option, name in (("--preset", "skylake-x"), ("--preset", "Broadwell"),
                             ("--kind", "atom"), ("--hide", "PTWRITE"), ("--hide", "INTEL_PT"),
                             ("--hide", "RANGECNT")):
            with self.subTest(name):
                self.refuses(2, "--seconds 0", "run", option, name, "--seconds", "0", "ls")

    def test_numbers(self):
        self.refuses(2, "--cpus", "run", "--cpus", "many", "ls")
        self.refuses(2, "--cpus 0", "run", "--cpus", "0", "ls")
        self.refuses(2, "--seconds", "run", "--seconds", "1.5", "ls")
        self.refuses(2, "--memory 1T", "run", "--memory", "1T", "ls")
        self.refuses(2, "--memory -1G", "run", "--memory=-1G", "ls")
        self.refuses(2, "--memory 32M: at least", "run", "--memory", "32M", "ls")
        self.refuses(2, "--memory 2000000G", "run", "--memory", "2000000G", "ls")
        self.refuses(2, "--log-code needs --log", "run", "--log-code", "0+1", "ls")
        self.refuses(2, "--log-code 0", "run", "--log", "x", "--log-code", "0", "ls")

    def test_words(self):
        self.refuses(2, "invalid choice: 'walk'", "walk")
        self.refuses(2, "--sed", "run", "--sed", "ls")
        self.refuses(2, "expected one argument", "run", "--preset")
        self.refuses(2, "a shell needs a terminal", "run")
        self.refuses(2, "--keep needs --root", "run", "--keep", "ls")

    def test_files_to_take_along(self):
        self.refuses(2, "--file none: no such file", "run", "--file", "none", "ls")
        self.refuses(2, "--file .*: not a file", "run", "--file", self.folder, "ls")
        self.file("a")
        (self.folder / "b").mkdir()
        self.file("b/a")
        self.refuses(2, "two files of --file have the name a",
                     "run", "--file", "a", "--file", "b/a", "ls")
        self.refuses(2, "--script none: no such file", "run", "--script", "none")
        self.refuses(2, "one of them", "run", "--script", "a", "ls")

    def test_kernel(self):
        self.refuses(2, "--kernel none: no such file", "run", "--kernel", "none", "ls")
        self.file("text", b"no kernel" * 1000)
        self.refuses(2, "text: no kernel of Linux", "run", "--kernel", "text", "ls")

    def test_root(self):
        self.refuses(2, "--root none: no such file", "run", "--root", "none", "ls")
        self.refuses(2, "`machine root` makes it", "run", "--root", "build/machine/root.img", "ls")
        self.refuses(2, "--root .*: not a file", "run", "--root", self.folder, "ls")
        self.file("disk", bytes(8192))
        self.refuses(2, "--root disk: no file system", "run", "--root", "disk", "ls")
        self.refuses(2, "disk exists", "root", "disk")
        self.refuses(2, "no such directory", "root", "none/disk")
        self.refuses(2, "--add a b", "root", "--add", "a b")

    def test_commands(self):
        if not os.path.exists(inside.BUSYBOX):
            self.skipTest("needs the package busybox-static")
        self.refuses(127, "frobnicate: command not found", "run", "frobnicate")
        self.refuses(127, "./a: command not found", "run", "./a")
        self.file("a", b"#!/bin/sh\n")
        self.refuses(127, "./a: not executable", "run", "./a")
        self.file("arm", elf(183), 0o755)
        self.refuses(2, "arm: a program for AArch64", "run", "./arm")
        self.refuses(2, "arm: a program for AArch64", "run", "--file", "arm", "./arm")

    def test_log_that_cannot_be_written(self):
        self.refuses(125, "none/x: No such file", "run", "--log", "none/x", "ls")


class Parts(Folder):
    def test_missing_packages_without_root_are_a_command(self):
        with mock.patch("os.geteuid", lambda: 1000), self.assertRaises(steps.Failed) as caught:
            steps.install({"seabios": "/nonexistent", "cpio": "/"})
        self.assertRegex(str(caught.exception),
                         "sudo apt-get update && sudo apt-get install .*seabios$")

    def test_another_host_is_refused(self):
        with mock.patch("platform.machine", lambda: "aarch64"), \
                self.assertRaisesRegex(steps.Failed, "this host is aarch64; programs"):
            steps.check_host()

    def test_a_full_disk_is_said_before(self):
        with self.assertRaisesRegex(steps.Failed, "MB of free space, and"):
            steps.need_space(self.folder / "not/there", 1 << 40)

    @staticmethod
    def ends(process):
        """Whether a killed process ends within 20 seconds."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                state = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").split()[2]
            except OSError:
                return True
            if state == "Z":
                return True
            time.sleep(0.05)
        return False

    def test_what_a_step_started_ends_with_it(self):
        script = ("import signal, sys\nsys.path.insert(0, sys.argv[1])\nimport steps\n"
                  "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
                  "steps.run('sh', '-c', 'sleep 50 & echo $! $$ >pids; sleep 50')")
        started = subprocess.Popen([sys.executable, "-B", "-c", script, TOOL], cwd=self.folder)
        file, end = self.folder / "pids", time.monotonic() + 20
        while not (file.exists() and file.read_text()) and time.monotonic() < end:
            time.sleep(0.05)
        started.terminate()
        self.assertEqual(started.wait(timeout=20), 7)
        for one in file.read_text().split():
            self.assertTrue(self.ends(one), one)

    def test_a_signal_while_a_command_starts_ends_it(self):
        script = ("import signal, subprocess, sys, time\nsys.path.insert(0, sys.argv[1])\n"
                  "import steps\nstart = subprocess.Popen\n"
                  "def start_slowly(*words, **how):\n"
                  "    made = start(*words, **how)\n    time.sleep(1)\n    return made\n"
                  "subprocess.Popen = start_slowly\n"
                  "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
                  "steps.run('sh', '-c', 'echo $$ >pid; kill -TERM $PPID; exec sleep 50')")
        started = subprocess.run([sys.executable, "-B", "-c", script, TOOL], cwd=self.folder,
                                 check=False, timeout=20)
        self.assertEqual(started.returncode, 7)
        process = (self.folder / "pid").read_text(encoding="utf-8").strip()
        self.assertTrue(self.ends(process), process)

    def test_release_of_a_kernel(self):
        head = bytearray(0x4000)
        head[0x1FE:0x200], head[0x202:0x206] = b"\x55\xaa", b"HdrS"
        struct.pack_into("<H", head, 0x20E, 0x3000 - 0x200)
        struct.pack_into("<H", head, 0x236, 1)
        head[0x3000:0x3010] = b"6.1.0-5-x (me) \0"
        self.assertEqual(inside.release_of(self.file("kernel", bytes(head))), "6.1.0-5-x")
        struct.pack_into("<H", head, 0x236, 0)
        with self.assertRaisesRegex(steps.WrongUsage, "32 bits"):
            inside.release_of(self.file("kernel", bytes(head)))

    def test_interpreters(self):
        for line, expected in (("#!/bin/sh -e", ["/bin/sh"]), ("#! /usr/bin/env bash", ["bash"]),
                               ("#!", []), ("echo", [])):
            self.assertEqual(inside.interpreter_of(self.file("a", line.encode())), expected)

    def test_architectures(self):
        for number, expected in ((62, ""), (3, ""), (183, "AArch64"), (999, "ELF machine 999")):
            self.assertEqual(inside.architecture_of(self.file("a", elf(number))), expected)
        self.assertEqual(inside.architecture_of(self.file("a", b"\x7fELF")), "")

    def test_modules_come_after_those_that_they_need(self):
        self.file("modules.dep", b"b/vblk.ko.xz: v/virtio.ko v/ring.ko\nv/virtio.ko:\n"
                                 b"v/ring.ko: v/virtio.ko\nother.ko: v/ring.ko\n")
        with mock.patch("disk.modules_of", lambda _: self.folder):
            found = disk.needed_modules("x", ["vblk", "builtin"])
        self.assertEqual([one.name for one in found], ["virtio.ko", "ring.ko", "vblk.ko.xz"])

    def test_package_sources(self):
        for name, text in (
                ("a.list", "deb [arch=amd64] http://m/debian bookworm main\n"),
                ("a.sources", "Types: deb\nURIs: http://m/debian\nSuites: bookworm x\n")):
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            (folder / "sources.list.d").mkdir()
            (folder / "sources.list.d/0.list").write_text(
                "deb http://m/debian-security other main\n", "utf-8")
            (folder / "sources.list.d" / name).write_text(text, "utf-8")
            self.assertEqual(disk.mirror(folder), ("bookworm", "http://m/debian"))
        with self.assertRaisesRegex(steps.Failed, "no package source"):
            disk.mirror(self.folder)

    def test_unchanged_files_are_removed_and_others_stay(self):
        """The script that runs after the command, with names that a shell might misread."""
        options = mock.Mock(root="x")
        names = ["plain", "two words", "a\nline", "-n", "$(x)", "it's", "in/side"]
        made = inside.system(self.folder / "system", options)
        for name in names:
            source = self.file("source", b"x")
            made.take_along(source, name)
        files = self.folder / "system/files"
        (files / "plain").write_bytes(b"changed")
        (files / "new").write_bytes(b"new")
        subprocess.run(["sh", "-e", "-c", made.finish_script() + ":"], cwd=files, check=True,
                       env={**os.environ, "B": ""})
        left = sorted(str(one.relative_to(files)) for one in files.rglob("*"))
        self.assertEqual(left, ["new", "plain"])


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        unittest.main()
