# SPDX-License-Identifier: BSL-1.0
"""Reads the data of a page of `timeline`, and the golden listings that it is compared with."""

import html.parser
import itertools
import json
import re

import traces

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)


class Elements(html.parser.HTMLParser):
    """The elements of a page, and the text of its title."""

    def __init__(self, page):
        super().__init__()
        self.names, self.attributes, self.title, self.inside = [], [], "", None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "title":
            self.title += data


def data_of(page):
    return json.loads(DATA.search(page)[1])


def decode(packed):
    """The numbers of a column: -N stands for N zeros."""
    values = []
    for value in packed:
        values += [0] * -value if value < 0 else [value]
    return values


def undiff(packed):
    return list(itertools.accumulate(decode(packed)))


def events_of(page, stream):
    """The listed events of a trace, as dictionaries."""
    columns = page["streams"][stream]["events"]
    offsets, types = undiff(columns["offset"]), decode(columns["type"])
    times = undiff(columns["time"]) if "time" in columns else [None] * len(offsets)
    return [{"offset": offset, "time": time, "type": page["types"][kind],
             "lane": page["type_lanes"][kind], "ip": ip, "to": to, "text": text or ""}
            for offset, time, kind, ip, to, text in zip(
                offsets, times, types, columns["ip"], columns["to"], columns["text"], strict=True)]


def calls_of(page, stream):
    """The calls of a trace: for each lane its label and its bars, as dictionaries. Positions are in
    bytes, or in ticks since the first time of the trace."""
    calls = page["streams"][stream]["calls"]
    lanes = {}
    for lane in calls["lanes"]:
        columns = {name: decode(lane[name]) for name in ("level", "kind", "count", "instructions")}
        columns["name"] = [calls["names"][number] for number in decode(lane["name"])]
        for place, size in (("offset", "bytes"), ("time", "ticks")):
            if place in lane:
                begins = undiff(lane[place])
                columns[place] = [(begin / 1024, (begin + length) / 1024) for begin, length
                                  in zip(begins, decode(lane[size]), strict=True)]
        lanes[lane["label"]] = [dict(zip(columns, values)) for values
                                in zip(*columns.values(), strict=True)]
    return lanes


def packets_of(listing):
    """The packets of a golden listing: (offset, name, fields)."""
    found = []
    for line in listing.splitlines():
        offset, name, *fields = line.split(" ")
        if not name.startswith("!"):
            found.append((int(offset, 16), name, dict(field.split("=", 1) for field in fields)))
    return found


def recorded(name):
    """The bytes of a recorded trace, and its golden listing."""
    return traces.recorded(name), traces.read(traces.folder() / f"{name}.packets").decode()
