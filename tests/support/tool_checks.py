# SPDX-License-Identifier: BSL-1.0
"""Tests for every tool: help, and behaviour when output, input or memory fails."""

import os
import pathlib
import re
import resource
import subprocess
import tempfile

import terminal

MEGABYTE = 1 << 20


class ToolChecks:
    """Tests for a unittest.TestCase. A tool sets the attributes below."""

    TOOL = ""           # path of the program
    PRINTS = ()         # (arguments, standard input) of command lines that print something
    WRITES = ()         # arguments that are followed by the name of an output file
    READS = ()          # arguments that are followed by the name of an input file
    READS_STDIN = ()    # arguments with which standard input is read
    REFUSES = {}        # arguments with which a line of 64 MB is rejected -> exit status

    def name(self):
        return pathlib.Path(self.TOOL).name

    def run_tool(self, *arguments, data=b"", **streams):
        streams = {"stdout": subprocess.PIPE, "input": data, **streams}
        return subprocess.run([self.TOOL, *map(str, arguments)], stderr=subprocess.PIPE,
                              timeout=300, **streams)

    def assert_fails(self, done, about=None):
        self.assertEqual(done.returncode, 2, (about, done.stderr))
        self.assertRegex(done.stderr.decode(), rf"\A{self.name()}: .+\n\Z", about)

    def all_prints(self):
        return [(["--help"], b""), *self.PRINTS]

    # help

    def test_the_help_has_all_sections(self):
        done = self.run_tool("--help")
        text = done.stdout.decode()
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(text.startswith(f"usage: {self.name()} "), text[:80])
        for needed in ("\nExample:\n", "\nExit status: 0", "\n  -h, --help "):
            self.assertIn(needed, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertEqual(self.run_tool("-h").stdout, done.stdout)

    def test_the_examples_in_the_help_print_the_given_output(self):
        text = self.run_tool("--help").stdout.decode()
        block = re.search(r"\nExample:\n(.*?\n)\nExit status:", text, re.S)[1]
        block = re.sub("^  ", "", block, flags=re.M)
        self.assertTrue(block.startswith("$ "))
        examples = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)+)", block, re.M)
        path = f"{pathlib.Path(self.TOOL).resolve().parent}:{os.environ['PATH']}"
        for command, printed in examples:
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, env={**os.environ, "PATH": path})
            self.assertEqual((done.stdout, done.stderr), (printed, ""), command)

    def test_every_option_of_the_usage_is_explained(self):
        text = self.run_tool("--help").stdout.decode()
        usage, _, rest = text.partition("\n\n")
        for option in re.findall(r"(?<![\w-])-{1,2}[a-z]+", usage):
            self.assertRegex(rest, rf"(?m)^  (?:-\w, )?{option}\b")

    def test_an_unknown_option(self):
        for option in ("--nothing", "-x", "--help=yes"):
            done = self.run_tool(option)
            self.assert_fails(done)
            self.assertIn(f"{option}: no such option; --help lists them", done.stderr.decode())
            self.assertEqual(done.stdout, b"")

    # output

    def test_a_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("/dev/full")
        for arguments, data in self.all_prints():
            with open("/dev/full", "wb") as full:
                self.assert_fails(self.run_tool(*arguments, data=data, stdout=full), arguments)
        for arguments in self.WRITES:
            self.assert_fails(self.run_tool(*arguments, "/dev/full"), arguments)

    def test_an_output_that_cannot_be_opened(self):
        for arguments in self.WRITES:
            for path in ("/", "/nothing/here", ""):
                done = self.run_tool(*arguments, path)
                self.assert_fails(done, arguments)
                self.assertEqual(done.stdout, b"")

    def test_a_closed_standard_output(self):
        for arguments, data in self.all_prints():
            done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', self.TOOL, *arguments],
                                  input=data, stderr=subprocess.PIPE)
            self.assert_fails(done, arguments)

    def test_a_file_does_not_become_standard_output(self):
        for arguments in self.WRITES:
            with tempfile.TemporaryDirectory() as folder:
                once, again = pathlib.Path(folder, "once"), pathlib.Path(folder, "again")
                self.run_tool(*arguments, once)
                subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', self.TOOL, *arguments, again],
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
                self.assertIn(again.read_bytes() if again.exists() else b"",
                              (b"", once.read_bytes()))

    def test_a_pipe_without_a_reader(self):
        for arguments, data in self.all_prints():
            ours, theirs = os.pipe()
            os.close(ours)
            done = self.run_tool(*arguments, data=data, stdout=theirs)
            os.close(theirs)
            self.assertEqual((done.returncode, done.stderr), (2, b""), arguments)

    def test_a_file_at_its_size_limit(self):
        for arguments, data in self.all_prints():
            with tempfile.TemporaryFile() as file:
                done = self.run_tool(*arguments, data=data, stdout=file, preexec_fn=lambda: (
                    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))))
                self.assert_fails(done, arguments)

    # input

    def test_unreadable_files(self):
        for arguments in self.READS:
            for path in ("/", "/nothing/here", "", "/proc/self/mem"):
                done = self.run_tool(*arguments, path)
                self.assert_fails(done, (arguments, path))
                self.assertEqual(done.stdout, b"")

    def test_an_unreadable_standard_input(self):
        for arguments in self.READS_STDIN:
            done = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&-', self.TOOL, *arguments],
                                  capture_output=True)
            self.assert_fails(done, arguments)
            done = subprocess.run(["sh", "-c", 'exec "$0" "$@" </', self.TOOL, *arguments],
                                  capture_output=True)
            self.assert_fails(done, arguments)

    def test_a_line_without_an_end(self):
        for arguments, status in self.REFUSES.items():
            with subprocess.Popen([self.TOOL, *arguments], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
                try:
                    for _ in range(64):
                        child.stdin.write(b"x" * MEGABYTE)
                    child.stdin.close()
                except BrokenPipeError:
                    pass
                said = child.stderr.read()
                _, ended, usage = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(ended)
            self.assertEqual(child.returncode, status, said)
            self.assertIn(b"longer than 4096 characters", said)
            self.assertLess(usage.ru_maxrss, 40 << 10)

    # memory

    def limited(self, megabytes, arguments, data=b""):
        limit = int(megabytes * MEGABYTE)
        return self.run_tool(*arguments, data=data, preexec_fn=lambda: (
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))))

    def test_memory_that_is_exhausted(self):
        least = next((size for size in range(2, 65)
                      if self.limited(size, ["--help"]).returncode == 0), None)
        if least is None:
            self.skipTest("a build that starts in 64 MB")
        for arguments, data in self.all_prints():
            for step in range(0, 64, 3):
                done = self.limited(least + step / 8, arguments, data)
                self.assertIn(done.returncode, (0, 2), (arguments[:1], step, done.stderr[-300:]))
                if done.returncode == 2:
                    self.assertEqual(done.stderr, f"{self.name()}: out of memory\n".encode())


class ScriptChecks(ToolChecks):
    """The same tests, and tests for every tool that runs a script."""

    FIRST, SECOND = "", ""  # scripts of their own that together print something

    def printed(self, *arguments, data=b""):
        done = self.run_tool(*arguments, data=data)
        self.assertEqual(done.stderr, b"")
        return done.stdout

    def test_a_script_comes_from_text_file_or_standard_input(self):
        whole = f"{self.FIRST}; {self.SECOND}"
        wanted = self.printed("-e", whole)
        self.assertNotIn(wanted, (b"", self.printed("-e", self.SECOND)))
        self.assertEqual(self.printed("-e", self.FIRST, "-e", self.SECOND), wanted)
        self.assertEqual(self.printed("-e", f"# nothing\n{self.FIRST}", "-e", self.SECOND), wanted)
        self.assertEqual(self.printed(data=whole.encode()), wanted)
        self.assertEqual(self.printed("-", data=whole.encode()), wanted)
        self.assertEqual(self.printed("-e", whole, data=b"frob"), wanted)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "-a script; of=lines")
            path.write_text(f"# a comment; frob\n{self.FIRST}\n;;\n  {self.SECOND}")
            self.assertEqual(self.printed(path), wanted)
            done = subprocess.run([self.TOOL, "--", path.name], cwd=folder, capture_output=True)
            self.assertEqual((done.stdout, done.stderr), (wanted, b""))

    def test_a_script_comes_from_one_place(self):
        for arguments, about in ((["-e"], "-e needs an argument"),
                                 (["-e", self.FIRST, "x"], "not also x"),
                                 (["x", "-e", self.FIRST], "not also x"),
                                 (["a", "b"], "takes one script, not also b")):
            done = self.run_tool(*arguments)
            self.assert_fails(done, arguments)
            self.assertIn(about, done.stderr.decode())

    def test_a_script_that_is_taken_for_a_file_is_noticed(self):
        for text, is_script in ((self.FIRST, True), (f"{self.FIRST}; {self.SECOND}", True),
                                ("nothing.txt", False), ("", False)):
            done = self.run_tool(text)
            self.assert_fails(done, text)
            self.assertIn("No such file or directory", done.stderr.decode())
            self.assertEqual("; -e TEXT takes a script from the command line"
                             in done.stderr.decode(), is_script, text)

    def test_a_statement_that_cannot_be_read_is_told_by_its_number(self):
        for text in ("frob", "x" * 5000, "\x1b[2J"):
            done = self.run_tool(data=f"{self.FIRST};;\n# frob\n{text}; {self.SECOND}".encode())
            self.assert_fails(done)
            self.assertRegex(done.stderr, rb"\A[\w ]+: (statement|event) 2\b[ -~]*\n\Z")
        done = self.run_tool(data=b"frob\0")
        self.assertRegex(done.stderr.decode(), "(statement|event) 1: a NUL byte")

    def test_at_a_terminal_without_a_script_it_says_how(self):
        with terminal.opened(self) as (_, theirs):
            done = subprocess.run([self.TOOL], stdin=theirs, capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, self.run_tool("--help").stdout))
