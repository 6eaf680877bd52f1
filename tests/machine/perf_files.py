# SPDX-License-Identifier: BSL-1.0
"""The trace in a perf.data file, read without perf."""

import dataclasses
import struct

HEAD_SIZE = 104
LOST, AUX, LOST_SAMPLES, AUXTRACE = 2, 11, 13, 71
MMAP, COMM, FORK, MMAP2, ITRACE_START = 1, 3, 7, 10, 12  # the PID is their first field
TRUNCATED = 1  # a flag of AUX


@dataclasses.dataclass
class aux_trace:
    """The records of a trace."""
    pieces: dict          # buffer -> (offset, bytes) of each AUXTRACE
    size: int = 0         # of the trace that AUX records announce
    truncated: int = 0    # AUX records with this flag
    end: int = 0          # the last AUX record's
    lost: int = 0         # LOST and LOST_SAMPLES records
    started: set = dataclasses.field(default_factory=set)  # processes of ITRACE_START records
    named: set = dataclasses.field(default_factory=set)    # those of COMM, FORK and MMAP records

    @property
    def in_file(self):
        return sum(len(piece) for all_of in self.pieces.values() for _, piece in all_of)

    @property
    def raw(self):
        """The bytes of each buffer; pieces that do not follow each other are apart. The last one
        keeps its padding if there are several buffers, because no AUX record names its buffer."""
        made = []
        for all_of in self.pieces.values():
            now = None
            for at, piece in all_of:
                # A piece is padded to a multiple of 8; the next one begins where it really ends.
                if now is not None and -8 < at - end <= 0:
                    del now[len(now) + at - end:]
                else:
                    now = bytearray()
                    made.append(now)
                now += piece
                end = at + len(piece)
        if len(self.pieces) == 1 and 0 < end - self.end < 8:
            del made[-1][self.end - end:]
        return [bytes(one) for one in made]


def read(data):
    """The trace of a perf.data file, or of a directory of `perf record --kcore`. The head of a file
    whose perf was killed has no size: then the records up to the last complete one are read."""
    content = (data / "data" if data.is_dir() else data).read_bytes()
    if content[:8] != b"PERFILE2" or len(content) < HEAD_SIZE:
        raise ValueError(f"{data} is no perf.data file")
    at, size = struct.unpack_from("<QQ", content, 40)
    end = min(at + size, len(content)) if size else len(content)
    made = aux_trace({})
    while at + 8 <= end:
        kind, _, length = struct.unpack_from("<IHH", content, at)
        if size == 0 and (length < 8 or at + length > end):
            break
        if length < 8:
            raise ValueError(f"{data}: a record of {length} bytes")
        if kind == AUX:
            offset, of_aux, flags = struct.unpack_from("<QQQ", content, at + 8)
            made.size += of_aux
            made.truncated += flags & TRUNCATED != 0
            made.end = max(made.end, offset + of_aux)
        elif kind in (LOST, LOST_SAMPLES):
            made.lost += 1
        elif kind == ITRACE_START:
            made.started.add(struct.unpack_from("<I", content, at + 8)[0])
        elif kind in (MMAP, COMM, FORK, MMAP2):
            made.named.add(struct.unpack_from("<I", content, at + 8)[0])
        elif kind == AUXTRACE:
            of_trace, offset, _, buffer = struct.unpack_from("<QQQI", content, at + 8)
            piece = content[at + length:at + length + of_trace]
            made.pieces.setdefault(buffer, []).append((offset, piece))
            at += of_trace
        at += length
    return made
