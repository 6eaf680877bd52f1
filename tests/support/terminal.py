# SPDX-License-Identifier: BSL-1.0
"""A pseudo terminal, for tests of interactive output."""

import contextlib
import os
import pty


@contextlib.contextmanager
def opened(test):
    """The two ends of a pseudo terminal: (ours, the tool's). Where the system has none, such as a
    chroot without /dev/pts, skips the test."""
    try:
        ours, theirs = pty.openpty()
    except OSError as why:
        test.skipTest(f"a pseudo terminal ({why})")
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)
