# SPDX-License-Identifier: BSL-1.0
"""Makes what `pt_record --raw` writes. The formats are written here a second time."""

import struct

PROCESS = 100


def write(path, traces, code, address, events=()):
    """A new directory with the traces of threads of one process, from PROCESS on, its code at an
    address, and lines of events after the first one."""
    path.mkdir()
    journal = struct.pack("<QIIQ", address, len(code), PROCESS, 0) + code + bytes(-len(code) % 8)
    lines = [f"1 start {PROCESS}", *events]
    files = {"settings": b"ctl=2518\nkind=manual\nprogram=made\n", "progress": bytes(56),
             f"{PROCESS}.code": journal,
             f"{PROCESS}.events": "".join(f"{line}\n" for line in lines).encode()}
    for i, trace in enumerate(traces):
        files[f"{PROCESS}.{PROCESS + i}.pt"] = trace
    for name, data in files.items():
        (path / name).write_bytes(data)
    return str(path)
