# SPDX-License-Identifier: BSL-1.0
"""Makes ELF files."""

import struct

EXECUTABLE, SHARED, CORE = 2, 3, 4
CODE_OFFSET = 0xB0  # of the code, in the file


def made_elf(code, address, functions=(), kind=EXECUTABLE, build_id=b""):
    """An ELF file of 64 bits with this code, and a symbol (name, address, size) for each function.
    """
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in functions)
    symbols = bytes(24)
    for name, at, size in functions:
        place = names.index(b"\0" + name.encode() + b"\0") + 1
        symbols += struct.pack("<IBBHQQ", place, 0x12, 0, 1, at, size)
    titles = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    note = struct.pack("<III4s", 4, len(build_id), 3, b"GNU") + build_id + bytes(-len(build_id) % 4)
    parts = [code, symbols, names, titles, note]
    offsets = []
    body = b""
    for part in parts:
        offsets.append(CODE_OFFSET + len(body))
        body += part
    sections = [(0, 0, 0, 0, 0, 0, 0), (1, 1, address, offsets[0], len(code), 0, 0),
                (7, 2, 0, offsets[1], len(symbols), 3, 24),
                (15, 3, 0, offsets[2], len(names), 0, 0),
                (23, 3, 0, offsets[3], len(titles), 0, 0)]
    table = b"".join(struct.pack("<IIQQQQIIQQ", name, kind, 0, at, offset, size, link, 0, 1, entry)
                     for name, kind, at, offset, size, link, entry in sections)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", kind, 62, 1,
                         address, 0x40, CODE_OFFSET + len(body), 0, 0x40, 0x38, 2, 0x40, 5, 4)
    load = struct.pack("<IIQQQQQQ", 1, 5, offsets[0], address, address, len(code), len(code), 1)
    notes = struct.pack("<IIQQQQQQ", 4, 4, offsets[4], 0, 0, len(note), len(note), 4)
    return header + load + (notes if build_id else bytes(56)) + body + table
