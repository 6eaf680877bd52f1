#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of examples/tools/machine that boot it: files that come back, exit statuses, and ends that
are not those of the command. Needs what `machine run` needs; the tests of a disk also the root that
`machine root` makes, those of full disks root rights.

    boots.py [TEST]...          three minutes
"""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

from common import IMAGE, MACHINE

BUSY = ["sh", "-c", "echo ready; while :; do :; done"]


def descendants(pid):
    """The processes that a process started, directly or not."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True,
                            check=True).stdout
    children = {}
    for line in listed.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found = []
    for child in children.get(pid, []):
        found += [child, *descendants(child)]
    return found


def is_there(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2] != "Z"
    except OSError:
        return False


def default_signals():
    """Background jobs of a shell ignore SIGINT, children of nohup SIGHUP, and their children."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def own_terminal():
    default_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Boots(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=True)

    def run_in(self, *arguments, cwd=None, **more):
        return subprocess.run([MACHINE, "run", *map(str, arguments)], cwd=cwd or self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", check=False, env={**os.environ, **more})

    def ends(self, status, text, *arguments, **more):
        """Runs; expects an exit status, and a text in what is printed."""
        done = self.run_in(*arguments, **more)
        output = done.stdout + done.stderr
        self.assertEqual(done.returncode, status, output)
        if text:
            self.assertRegex(output, text)
        self.assertNotIn("Traceback", output)
        return output

    def file(self, name, content, mode=0o644):
        file = self.folder / name
        file.write_bytes(content)
        file.chmod(mode)
        return file

    # files and statuses

    def test_files_come_back(self):
        names = ["plain", "two words", "a\nline", "it's", "changed"]
        for name in names:
            self.file(name, b"here")
        arguments = [word for name in names for word in ("--file", name)]
        self.ends(5, "", *arguments, "sh", "-c", r"""
            for name in plain "two words" "it's"; do rm "$name"; done
            printf new >changed
            mkdir -p empty/folder sub
            printf 1 >"sub/na
me"
            cp -p plain2 copy 2>/dev/null || cp -p "a
line" copy
            ln -s sub link
            printf hidden >.status
            exit 5""")
        self.assertEqual((self.folder / "changed").read_text(), "new")
        self.assertTrue((self.folder / "empty/folder").is_dir())
        self.assertEqual((self.folder / "sub/na\nme").read_text(), "1")
        self.assertEqual((self.folder / "copy").read_text(), "here")
        self.assertEqual(os.readlink(self.folder / "link"), "sub")
        self.assertEqual((self.folder / ".status").read_text(), "hidden")
        for name in names[:-1]:
            self.assertEqual((self.folder / name).read_text(), "here")

    def test_a_file_of_100_megabytes_comes_back(self):
        self.ends(0, "", "sh", "-c", "dd if=/dev/zero bs=1M count=100 | tr '\\0' x >large; "
                                     "echo end >>large")
        self.assertEqual((self.folder / "large").stat().st_size, (100 << 20) + 4)
        with open(self.folder / "large", "rb") as text:
            text.seek(-6, os.SEEK_END)
            self.assertEqual(text.read(), b"xxend\n")

    def test_programs_and_scripts(self):
        self.file("tool", b"#!/bin/bash\nx=(a b c)\necho ${#x[@]} of bash >out\nexit 4\n", 0o755)
        self.ends(4, "", "./tool")
        self.assertEqual((self.folder / "out").read_text(), "3 of bash\n")
        self.file("tool2", b"#!/usr/bin/env bash\n[[ abc == a* ]] && exit 3\n")
        self.ends(3, "", "--script", "tool2")
        self.file("absent", b"#!/nowhere/interpreter\n", 0o755)
        self.ends(125, "its interpreter /nowhere/interpreter is not on this machine", "./absent")

    def test_what_cannot_execute_inside(self):
        head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HH", 2, 183) + bytes(44)
        self.file("arm", head, 0o755)
        output = self.ends(0, "status 12[67]", "--file", "arm", "sh", "-c",
                           "./arm; echo status $?; no_such_command; echo status $?")
        self.assertIn("status 127", output)

    def test_the_least_memory_suffices(self):
        least = re.search(r"at least (\d+M)", self.ends(
            2, "are needed here", "--memory", "170M", "true"))[1]
        self.ends(6, "", "--memory", least, "sh", "-c", "exit 6")

    def test_a_full_working_directory(self):
        self.ends(9, "No space left", "--memory", "400M", "sh", "-c",
                  "dd if=/dev/zero of=large bs=1M; exit 9")
        self.assertGreater((self.folder / "large").stat().st_size, 50 << 20)

    # ends

    def test_a_limit_of_time(self):
        begin = time.monotonic()
        self.ends(124, "stopped after 12 seconds", "--seconds", "12", *BUSY)
        self.assertLess(time.monotonic() - begin, 40)

    def test_a_kernel_panic(self):
        self.ends(125, "the kernel panicked: sysrq triggered crash", "sh", "-c",
                  "echo c >/proc/sysrq-trigger")

    def test_power_off_by_the_command(self):
        self.ends(125, "the machine ended before the command did", "poweroff", "-f")

    def test_a_kernel_that_finds_no_intel_pt(self):
        self.ends(0, "this kernel offers no Intel PT", "--hide", "INTEL_PT", "true")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_full_disks(self):
        small = self.folder / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60M", "small", small], check=True)
        try:
            self.ends(125, "not all files of the command|MB of free space", "sh", "-c",
                      "dd if=/dev/zero of=large bs=1M count=70", cwd=small)
            (small / "large").unlink(missing_ok=True)
            self.ends(125, "is full|MB of free space|No space left", "sh", "-c",
                      "dd if=/dev/zero of=large bs=1M count=70", TMPDIR=str(small))
            self.assertEqual(list(small.iterdir()), [])
        finally:
            subprocess.run(["umount", small], check=True)

    # signals and terminals

    def start(self, *arguments, terminal=False):
        """Starts a run, in a terminal of its own or not, and waits until it is ready."""
        master, slave = pty.openpty()
        started = subprocess.Popen(
            [MACHINE, "run", *arguments], cwd=self.folder, stdout=slave, stderr=slave,
            stdin=slave if terminal else subprocess.DEVNULL, start_new_session=True,
            preexec_fn=own_terminal if terminal else default_signals)
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        return started, master, slave

    def wait_for(self, master, text, seconds=90):
        seen, end = b"", time.monotonic() + seconds
        while text not in seen:
            self.assertGreater(end, time.monotonic(), seen)
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 4096)
        return seen

    def leaves_nothing(self, started, status, processes):
        self.assertEqual(started.wait(timeout=30), status)
        end = time.monotonic() + 10
        while any(map(is_there, processes)) and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual([one for one in processes if is_there(one)], [])

    def test_signals_end_the_emulator(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129),
                               (signal.SIGKILL, -9)):
            with self.subTest(number):
                started, master, _ = self.start(*BUSY)
                self.wait_for(master, b"ready")
                processes = descendants(started.pid)
                self.assertTrue(processes)
                started.send_signal(number)
                self.leaves_nothing(started, status, processes)

    def test_ctrl_c_restores_the_terminal(self):
        started, master, slave = self.start(*BUSY, terminal=True)
        before = termios.tcgetattr(slave)
        self.wait_for(master, b"ready")
        processes = descendants(started.pid)
        os.write(master, b"\3")
        self.leaves_nothing(started, 130, processes)
        self.assertEqual(termios.tcgetattr(slave), before)

    def test_a_shell(self):
        started, master, slave = self.start(terminal=True)
        before = termios.tcgetattr(slave)
        self.wait_for(master, b"# ")
        os.write(master, b"sleep 99999999\r")
        time.sleep(1)
        os.write(master, b"\3")
        os.write(master, b"echo $((6*7))x; exit 3\r")
        self.wait_for(master, b"42x")
        self.leaves_nothing(started, 3, descendants(started.pid))
        self.assertEqual(termios.tcgetattr(slave), before)

    # disks

    @unittest.skipUnless(IMAGE.exists(), "`machine root` was not called")
    def test_a_root_keeps_what_it_is_asked_to_keep(self):
        before = IMAGE.stat().st_mtime_ns
        self.ends(7, "", "--root", IMAGE, "bash", "-c",
                  "touch /marker; modprobe loop; lsmod >modules; exit 7")
        self.assertEqual(IMAGE.stat().st_mtime_ns, before)
        self.assertIn("loop", (self.folder / "modules").read_text())
        copy = self.folder / "copy.img"
        subprocess.run(["cp", "--sparse=always", IMAGE, copy], check=True)
        self.ends(0, "", "--root", "copy.img", "--keep", "touch", "/marker")
        self.ends(0, "", "--root", "copy.img", "test", "-e", "/marker")
        self.ends(127, "not found", "--root", "copy.img", "no_such_command")


if __name__ == "__main__":
    unittest.main()
