# SPDX-License-Identifier: BSL-1.0
"""Makes perf.data files, and the lines that perf_data_list prints of them.

The layouts are written here a second time: nothing is taken from the headers.
"""

import struct

TID, TIME, ID, CPU, STREAM_ID, IDENTIFIER = (1 << bit for bit in (1, 2, 6, 7, 9, 16))
IP, ADDR, PERIOD, RAW = 1 << 0, 1 << 3, 1 << 8, 1 << 10
SAMPLE_ID_ALL = 1 << 18

AUX_SAMPLE = 1 << 20

COMM, SAMPLE, AUX, AUXTRACE_INFO, AUXTRACE, HEADER_ATTR, HEADER_FEATURE = 3, 9, 11, 70, 71, 64, 80
TRUNCATED, OVERWRITE, PARTIAL, COLLISION = 1, 2, 4, 8
PT_TYPE = 8
PSB = b"\x02\x82" * 8
PSBEND = b"\x02\x23"


def u16(*values):
    return struct.pack(f"<{len(values)}H", *values)


def u32(*values):
    return struct.pack(f"<{len(values)}I", *values)


def u64(*values):
    return struct.pack(f"<{len(values)}Q", *values)


def padded(data, to=8):
    return data + bytes(-len(data) % to)


def c_string(text, to=8):
    return padded(text + b"\0", to)


class Event:
    """A perf_event_attr of `size` bytes, with ids."""

    def __init__(self, type=PT_TYPE, config=0, sample_type=0, flags=SAMPLE_ID_ALL, ids=(),
                 size=128, chance=None):
        self.type, self.config, self.sample_type = type, config, sample_type
        self.flags, self.ids, self.size = flags, list(ids), size
        tail = bytes(256) if chance is None else chance.randbytes(256)
        self.attr = (u32(type, size) + u64(config, 1, sample_type, 4, flags) + tail)[:size or 64]

    def line(self, offset):
        def at(place, size):
            return int.from_bytes(self.attr[place:place + size], "little")
        return (f" offset={offset} type={self.type} size={len(self.attr)} config={self.config} "
                f"sample_period=1 sample_type={self.sample_type} read_format=4 flags={self.flags} "
                f"wakeup={at(48, 4)} bp_type={at(52, 4)} config1={at(56, 8)} config2={at(64, 8)} "
                f"branch_sample_type={at(72, 8)} sample_regs_user={at(80, 8)} "
                f"sample_stack_user={at(88, 4)} aux_action={at(116, 4)} config4={at(136, 8)} "
                f"ids={','.join(map(str, self.ids))}")


class Record:
    """The bytes of a record, and its line without the place."""

    def __init__(self, type, body, values, misc=0, after=b"", end=None):
        end_bytes, end_values = end or (b"", "")
        self.type = type
        self.data = u32(type) + u16(misc, 8 + len(body) + len(end_bytes)) + body + end_bytes
        self.size = len(self.data)
        follows = f" after={len(after)}" if after else ""
        self.line = f"type={type} misc={misc} size={self.size}{follows}{end_values} {values}"
        self.data += after
        self.trace = after


def end_of(event, chance, zeros=False):
    """The end of a record of the kernel, and what is printed of it."""
    out, text = b"", ""
    kind = event.sample_type
    if not event.flags & SAMPLE_ID_ALL:
        return out, text
    identifier = 0 if zeros else chance.choice(event.ids)
    values = {TID: f"{chance.randrange(1 << 32)}/{chance.randrange(1 << 32)}",
              TIME: chance.randrange(1 << 64), STREAM_ID: chance.randrange(1 << 64),
              CPU: chance.randrange(1 << 32)}
    if zeros:
        values = {TID: "0/0", TIME: 0, STREAM_ID: 0, CPU: 0}
    for bit in (TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER):
        if kind & bit == 0:
            continue
        if bit == TID:
            out += u32(*map(int, values[bit].split("/")))
        elif bit in (ID, IDENTIFIER):
            out += u64(identifier)
        elif bit == CPU:
            out += u32(values[bit], 0)
        else:
            out += u64(values[bit])
    for bit, name in ((TID, "id_thread"), (TIME, "time"), (ID | IDENTIFIER, "id"),
                      (STREAM_ID, "stream_id"), (CPU, "id_cpu")):
        if kind & bit:
            text += f" {name}={identifier if bit == ID | IDENTIFIER else values[bit]}"
    return out, text


def sample_of(event, chance):
    """A SAMPLE, with everything in it."""
    kind, body, text = event.sample_type, b"", {}

    def number(bit, name, value):
        nonlocal body
        if kind & bit:
            body += u64(value)
            text[name] = value
    identifier = chance.choice(event.ids)
    number(IDENTIFIER, "id", identifier)
    number(IP, "ip", chance.randrange(1 << 64))
    if kind & TID:
        pair = chance.randrange(1 << 32), chance.randrange(1 << 32)
        body += u32(*pair)
        text["id_thread"] = f"{pair[0]}/{pair[1]}"
    number(TIME, "time", chance.randrange(1 << 64))
    number(ADDR, "addr", chance.randrange(1 << 64))
    number(ID, "id", identifier)
    number(STREAM_ID, "stream_id", chance.randrange(1 << 64))
    if kind & CPU:
        text["id_cpu"] = chance.randrange(1 << 32)
        body += u32(text["id_cpu"], chance.randrange(1 << 32))
    number(PERIOD, "period", chance.randrange(1 << 64))
    rest = chance.randbytes(8 * chance.randrange(4))
    line = "".join(f" {name}={text[name]}" for name in ("id_thread", "time", "id", "stream_id",
                                                        "id_cpu") if name in text)
    values = " ".join(f"{name}={text.get(name, 0)}" for name in ("ip", "addr", "period"))
    made = Record(SAMPLE, body + rest, f"{values} rest={rest.hex()}", chance.choice((1, 2)))
    made.line = made.line.replace(f"size={made.size} ", f"size={made.size}{line} ", 1)
    return made


def info_of(words=18, filter=b"", snapshot=0, chance=None, numbers=None):
    """AUXTRACE_INFO with `words` quadwords; the last is that of event trace."""
    priv = numbers or [PT_TYPE, 31, 1 << 30, 77, 1, 0x400, 0x800, 2, snapshot, 1, 0x200, 0x3C000,
                       168, 2, 2, 24]
    priv = priv + [len(filter)]
    whole = u64(*priv) + (c_string(filter) if filter else b"") + u64(1)
    body = u32(1, 0) + whole[:8 * words]
    known = (priv[:16] + [1] if words >= len(whole) // 8 else (priv[:16] + [0]))
    known = [value if i < words or i == 16 else 0 for i, value in enumerate(known)]
    return Record(AUXTRACE_INFO, body,
                  f"kind=1 words={words} priv={''.join(f'{one},' for one in known)} "
                  f"filter={filter.hex()}")


def auxtrace(data, offset=0, reference=0, idx=0, tid=7, cpu=0xFFFFFFFF, size=None):
    size = len(data) if size is None else size
    return Record(AUXTRACE, u64(size, offset, reference) + u32(idx, tid, cpu, 0),
                  f"trace_size={size} trace_offset={offset} reference={reference} idx={idx} "
                  f"tid={tid} cpu={cpu}", after=data)


def id_end(event, tid, time=0, cpu=0):
    """The end of a record of the kernel, or the begin of a SAMPLE without ADDR and PERIOD."""
    kind = event.sample_type
    identifier = u64(event.ids[0]) if event.ids else b""
    thread, when = u32(tid, tid), u64(time)
    parts = [(TID, thread), (TIME, when), (ID, identifier), (STREAM_ID, u64(0)),
             (CPU, u32(cpu, 0)), (IDENTIFIER, identifier)]
    return b"".join(part for bit, part in parts if kind & bit)


def aux(event, offset, size, flags, tid=7, time=0, cpu=0):
    """An AUX record, with its end."""
    return Record(AUX, u64(offset, size, flags), "", end=(id_end(event, tid, time, cpu), ""))


def aux_sample(event, data, tid=7, time=0, cpu=0):
    """A SAMPLE of TID, TIME, CPU and AUX."""
    assert event.sample_type & ~(TID | TIME | CPU) == AUX_SAMPLE
    data = padded(data)
    return Record(SAMPLE, id_end(event, tid, time, cpu) + u64(len(data)) + data, "")


def text_feature(text):
    """The data of a feature that is a string, as perf pads it."""
    return u32(64) + padded(text + b"\0", 64)


def bpf_program(number, functions, info_size=232, tags=()):
    """An entry of the feature BPF_PROG_INFO: `functions` are pairs of address and code."""
    code = padded(b"".join(one for _, one in functions))
    addresses = u64(*(address for address, _ in functions))
    sizes = padded(u32(*(len(one) for _, one in functions)))
    data = code + addresses + sizes + b"".join(tags)
    total, count = sum(len(one) for _, one in functions), len(functions)
    info = (u32(6, number) + (tags[0] if tags else bytes(8)) + u32(total, 0) + u64(0, 0, 0) +
            u32(0, 0) + u64(0) + bytes(16) + u32(0, 0) + u64(0, 0) + u32(count, count) +
            u64(len(code), len(code) + len(addresses)) + u32(0, 0) + u64(0) + u32(0, 0) +
            u64(0, 0) + u32(0, 0, 0, len(tags)) + u64(len(code) + len(addresses) + len(sizes)))
    arrays = 1 | 1 << 3 | 1 << 4 | (1 << 8 if tags else 0)
    return u32(info_size, len(data)) + u64(arrays) + info.ljust(info_size, b"\0") + data


def bpf_feature(*programs):
    return u32(len(programs)) + b"".join(programs)


def all_records(event, chance):
    """One record of every type, and more of those with variants."""
    def ends():
        return end_of(event, chance, zeros=chance.random() < 0.2)

    def n32():
        return chance.randrange(1 << 32)

    def n64():
        return chance.randrange(1 << 64)

    def name(most):
        return bytes(chance.randrange(1, 256) for _ in range(chance.randrange(most)))
    for exec_bit in (0, 0x2000):
        a, b, text = n32(), n32(), name(16)
        yield Record(3, u32(a, b) + c_string(text),
                     f"thread={a}/{b} name={text.hex()} exec={exec_bit >> 13}", exec_bit,
                     end=ends())
    for data in (0, 0x2000):
        a, b, c, d, e, text = n32(), n32(), n64(), n64(), n64(), name(40)
        yield Record(1, u32(a, b) + u64(c, d, e) + c_string(text),
                     f"thread={a}/{b} addr={c} len={d} pgoff={e} filename={text.hex()} "
                     f"data={data >> 13}", 1 | data, end=ends())
    for size in (None, 20, 16, 0, 255):
        a, b, c, d, e, text = n32(), n32(), n64(), n64(), n64(), name(300)
        prot, flags, maj, minor, ino, gen = n32(), n32(), n32(), n32(), n64(), n64()
        head = u32(a, b) + u64(c, d, e)
        build_id = chance.randbytes(20)
        if size is None:
            middle = u32(maj, minor) + u64(ino, gen)
        else:
            maj = minor = ino = gen = 0
            middle = bytes([size, 1, 2, 3]) + build_id
        shown = build_id[:min(size or 0, 20)].hex()
        yield Record(10, head + middle + u32(prot, flags) + c_string(text),
                     f"thread={a}/{b} addr={c} len={d} pgoff={e} filename={text.hex()} data=0 "
                     f"prot={prot} flags={flags} build_id={shown} maj={maj} min={minor} ino={ino} "
                     f"ino_generation={gen}", 2 | (0 if size is None else 0x4000), end=ends())
    for kind in (7, 4):
        a, b, c, d, e = n32(), n32(), n32(), n32(), n64()
        yield Record(kind, u32(a, b, c, d) + u64(e), f"thread={a}/{c} parent={b}/{d} own_time={e}",
                     end=ends())
    a, b = n64(), n64()
    yield Record(2, u64(a, b), f"count={b} lost_id={a}", end=ends())
    yield Record(13, u64(a), f"count={a} lost_id=0", end=ends())
    for kind in (5, 6):
        a, b, c = n64(), n64(), n64()
        yield Record(kind, u64(a, b, c), f"throttled={6 - kind} own_time={a} own_id={b} "
                     f"own_stream_id={c}", end=ends())
    for flags in (0, 1, 2, 4, 8, n64()):
        a, b = n64(), n64()
        yield Record(11, u64(a, b, flags), f"aux_offset={a} aux_size={b} flags={flags}", end=ends())
    a, b = n32(), n32()
    yield Record(12, u32(a, b), f"thread={a}/{b}", end=ends())
    for misc, values in ((0, "out=0 preempted=0"), (0x2000, "out=1 preempted=0"),
                         (0x6000, "out=1 preempted=1"), (0x4000, "out=0 preempted=0")):
        yield Record(14, b"", values, misc, end=ends())
        yield Record(15, u32(a, b), f"{values} other={a}/{b}", misc, end=ends())
    for flags in (0, 1, 0xFFFE):
        a, b, c, text = n64(), n32(), chance.randrange(1 << 16), name(300)
        yield Record(17, u64(a) + u32(b) + u16(c, flags) + c_string(text),
                     f"addr={a} len={b} kind={c} unregistered={flags & 1} name={text.hex()}", 1,
                     end=ends())
    for kind in (0, 1, 2, 0xFFFF):
        a, b, tag = chance.randrange(1 << 16), n32(), chance.randbytes(8)
        yield Record(18, u16(kind, a) + u32(b) + tag,
                     f"kind={kind} flags={a} program={b} tag={tag.hex()}", 1, end=ends())
    for _ in range(4):
        a, old, new = n64(), *(chance.randbytes(chance.choice((0, 1, 5, 300))) for _ in range(2))
        yield Record(20, padded(u64(a) + u16(len(old), len(new)) + old + new),
                     f"addr={a} old={old.hex()} new={new.hex()}", 1, end=ends())
    for kind in (8, 16, 19, 21, 63):
        body = chance.randbytes(8 * chance.randrange(6))
        yield Record(kind, body, f"body={body.hex()}", end=ends())
    yield sample_of(event, chance)
    for kind in (65, 67, 68, 73, 78, 82, 84, 85, 86, 87, 0xFFFFFFFF):
        body = chance.randbytes(8 * chance.randrange(6))
        yield Record(kind, body, f"body={body.hex()}", chance.randrange(1 << 16))
    body = u32(24, 9)
    yield Record(66, body, f"body={body.hex()}", after=chance.randbytes(24))
    entries = [(n64(), n64(), n64(), n64()) for _ in range(chance.randrange(5))]
    yield Record(69, u64(len(entries)) + b"".join(u64(*one) for one in entries) +
                 chance.randbytes(16 * len(entries)),
                 f"count={len(entries)} entries=" + "".join(
                     "/".join(map(str, one)) + "," for one in entries))
    a, b, c, d, e = n64(), n64(), n64(), n64(), n64()
    yield Record(79, u64(a, b, c), f"shift={a} mult={b} zero={c}")
    yield Record(79, u64(a, b, c, d, e) + bytes([1, 0]) + bytes(6),
                 f"shift={a} mult={b} zero={c} cycles={d} mask={e} cap_zero=1 cap_short=0")
    for form in (0, 1, 2):
        a = [n32() for _ in range(7)]
        ip, time, text = n64(), n64(), name(64)
        body = u32(*a[:5], form) + u64(ip) + (u64(time) if form else b"") + c_string(text, 64)
        body += u32(*a[5:]) if form == 2 else b""
        yield Record(72, body,
                     f"kind={a[0]} code={a[1]} cpu={a[2]} thread={a[3]}/{a[4]} format={form} "
                     f"ip={ip} own_time={time if form else 0} message={text.hex()} "
                     f"machine_pid={a[5] if form == 2 else 0} vcpu={a[6] if form == 2 else 0}")
    body = chance.randbytes(40)
    yield Record(81, body, f"data={body.hex()}")
    yield Record(83, u64(37) + body, f"data={body[:37].hex()}")
    yield auxtrace(chance.randbytes(8 * chance.randrange(9)), n64(), n64(), n32(), n32(), n32())


def file_of(events, records, features=None, header=104, step=None, gap=0):
    """A file in file layout, and its lines. `features`: {bit: data}."""
    ids, places = b"", []
    for event in events:
        places.append((header + gap + len(ids), 8 * len(event.ids)))
        ids += u64(*event.ids)
    step = step or max((len(event.attr) + 16 for event in events), default=0)
    attrs = header + gap + len(ids)
    table, lines = b"", ["layout pipe=0 cut=0"]
    for event, (offset, size) in zip(events, places):
        lines.append("attr" + event.line(attrs + len(table)))
        table += (event.attr + u64(offset, size)).ljust(step, b"\xee")
    begin = attrs + len(table) + gap
    data = b"".join(one.data for one in records)
    end = begin + len(data)
    features = features or {}
    sections, after, at = b"", b"", end + 16 * len(features)
    for bit, content in sorted(features.items()):
        sections += u64(at + len(after), len(content))
        lines.append(f"feature which={bit} offset={at + len(after)} size={len(content)} wrong=0")
        after += content
    bits = [sum(1 << bit % 64 for bit in features if bit // 64 == word) for word in range(4)]
    whole = u64(0x32454C4946524550, header, step, attrs, len(table), begin, len(data), 0, 0, *bits)
    whole = whole[:header] + bytes(gap) + ids + table + bytes(gap) + data + sections + after
    return whole, lines, begin


def pipe_of(events, records, features=None):
    """A file in pipe layout, and its lines."""
    lines, at = ["layout pipe=1 cut=0"], 16
    all_of_it, later = [], []
    for bit, content in sorted((features or {}).items()):
        one = Record(HEADER_FEATURE, u64(bit) + content, f"feature={bit} data={content.hex()}")
        later.append(f"feature which={bit} offset={at + 16} size={len(content)} wrong=0")
        all_of_it.append(one)
        at += len(one.data)
    for event in events:
        one = Record(HEADER_ATTR, event.attr + u64(*event.ids), event.line(at + 8)[1:])
        lines.append("attr" + event.line(at + 8))
        all_of_it.append(one)
        at += len(one.data)
    all_of_it += records
    return (u64(0x32454C4946524550, 16) + b"".join(one.data for one in all_of_it),
            lines + later, 16, all_of_it)


def record_lines(records, begin):
    lines = []
    for one in records:
        lines.append(f"record at={begin} {one.line}")
        begin += len(one.data)
    return lines


def pt_segment(chance, tsc, size):
    """Packets from a PSB on, at least `size` bytes. `tsc` None: without TSC."""
    out = PSB
    if tsc is not None:
        out += b"\x19" + (tsc & (1 << 56) - 1).to_bytes(7, "little")
    out += PSBEND
    while len(out) < size:
        out += chance.choice((b"\x04", b"\x2d" + chance.randbytes(2), b"\x59\x11", b"\x06",
                              b"\x02\x03" + chance.randbytes(1) + b"\0"))
    return out

