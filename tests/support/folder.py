# SPDX-License-Identifier: BSL-1.0
"""A folder for the files of a test."""

import pathlib
import tempfile
import unittest


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path
