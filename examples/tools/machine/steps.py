# SPDX-License-Identifier: BSL-1.0
"""What the parts of `machine` share: messages, failures, commands and packages."""

import contextlib
import os
import pathlib
import platform
import shlex
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("PTSPEC_BUILD_DIR", ROOT / "build")).resolve() / "machine"
os.environ["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"  # of mke2fs, debootstrap


class Failed(Exception):
    """A failure whose text is a message for the user."""
    status = 125


class WrongUsage(Failed):
    status = 2


class NotFound(Failed):
    """The command is absent: the status of a shell."""
    status = 127


def say(*words):
    print("machine:", *words, file=sys.stderr, flush=True)


def wait_for(words, **how):
    """Runs a command in a session of its own; ends all its processes if this script ends."""
    # A signal while the command starts waits: its handler would end this script without it.
    waiting = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)

    def unblock():
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        started = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True,
                                   preexec_fn=unblock, **how)
    except BaseException:
        unblock()
        raise
    try:
        unblock()
        return started.wait()
    except BaseException:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(started.pid, number)
                started.wait(timeout=5)
        raise


def run(*command, log=None, **how):
    """Runs a command; its output goes to a log file, whose end is shown if it fails."""
    words = [str(word) for word in command]
    if log is None:
        status = wait_for(words, **how)
    else:
        with open(log, "w", encoding="utf-8") as to:
            status = wait_for(words, stdout=to, stderr=subprocess.STDOUT, **how)
    if status != 0:
        end = "" if log is None else "\n" + "\n".join(
            pathlib.Path(log).read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        full = f"\n{BUILD} has no free space" if free_bytes(BUILD) < 1 << 20 else ""
        raise Failed(f"{shlex.join(words)}: exit status {status}{end}{full}")


def check_host():
    host = platform.machine()
    if host != "x86_64":
        raise Failed(f"this host is {host}; programs and kernel come from the host, and the "
                     "machine is x86-64")


def install(packages):
    """Installs those whose file is absent, as root; for another user it names the command."""
    missing = [name for name, file in packages.items() if not os.path.exists(file)]
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise Failed(f"packages of Debian are missing: {' '.join(missing)}")
    update = ["apt-get", "update"]
    command = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if os.geteuid() != 0:
        raise Failed("packages are missing; this installs them: "
                     f"sudo {shlex.join(update)} && sudo {shlex.join(command)}")
    say("installs", *missing)
    BUILD.mkdir(parents=True, exist_ok=True)
    plain = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(*update, log=BUILD / "update.log", env=plain)
    run(*command, log=BUILD / "install.log", env=plain)


def free_bytes(folder):
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def need_space(folder, megabytes):
    free = free_bytes(folder) >> 20
    if free < megabytes:
        raise Failed(f"{folder} has {free} MB of free space, and {megabytes} MB are needed")
