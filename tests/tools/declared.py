#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What a perf.data file, or --ctl, says of IA32_RTIT_CTL: which packets a trace can have.

    declared.py PT_FLOW PT_DUMP TIMELINE
"""

import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import perf_data_files as made  # noqa: E402
import traces  # noqa: E402
from elf_files import CORE, made_elf  # noqa: E402
from folder import Folder  # noqa: E402

PT_FLOW, PT_DUMP, TIMELINE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)

# Bits of IA32_RTIT_CTL, and of the config of perf where they are the same: tests/spec.
DIS_RETC, PTW_EN, BRANCH_EN, DIS_TNT = 1 << 11, 1 << 12, 1 << 13, 1 << 55
TSC_MTC = 0x600 | 3 << 14
PT = 1  # bit 0 of the config of perf: bit 13 is BranchEn
KERNEL = 0xFFFFFFFF81000000
# 0: CALL 8; 5: JMP RAX; 7: NOP; 8: RET
CALLS = bytes.fromhex("e803000000 ffe0 90 c3")
# 0: JZ 3; 2: NOP; 3: JMP RAX
BRANCHES = bytes.fromhex("7401 90 ffe0")


def tip(target):
    """A TIP with a target of 4 bytes."""
    return b"\x4d" + (target & 0xFFFFFFFF).to_bytes(4, "little")


def run(tool, *arguments):
    done = subprocess.run([tool, "--quiet", *map(str, arguments)], capture_output=True, text=True,
                          timeout=120)
    return done.returncode, done.stdout, done.stderr


class Declared(Folder):
    """A trace of the kernel, of one CPU."""

    def perf_data(self, trace, config, filters=b"", cpuid=b""):
        event = made.Event(config=config, sample_type=made.TID | made.TIME | made.CPU, ids=[1])
        records = [made.Record(14, b"", "", end=(made.id_end(event, 100, 77, 0), "")),
                   made.auxtrace(made.padded(trace), tid=0xFFFFFFFF, cpu=0)]
        features = {9: made.text_feature(cpuid)} if cpuid else None
        data = made.file_of([event], [made.info_of(30, filter=filters), *records], features)[0]
        return self.file("perf.data", data)

    def trace(self, *packets):
        """A PSB+, and packets after a TIP.PGE with the begin of the kernel."""
        start = made.PSB + b"\x19" + (84 * 800).to_bytes(7, "little") + made.PSBEND
        return start + b"\x99\x01\x71" + KERNEL.to_bytes(8, "little")[:6] + b"".join(packets)

    def kernel(self, code):
        return self.file("kcore", made_elf(code, KERNEL, kind=CORE))

    def assert_only_gaps(self, lines, error):
        """Where nothing but gaps is printed, stderr says so."""
        is_known = any(not line.startswith("gap ") for line in lines)
        self.assertRegex(error, r"\A\Z" if is_known else r"\Apt_flow: no \w+: only gaps: .*\n\Z")

    def walk(self, code, *arguments):
        """The lines of pt_flow, with addresses from the begin of the code."""
        status, out, error = run(PT_FLOW, "--kernel", self.kernel(code), *arguments)
        self.assert_only_gaps(out.splitlines(), error)
        text = out.replace(f"{KERNEL >> 8:x}", "")
        return status, text.splitlines()

    def both(self, code, trace, config, form):
        """The lines for a perf.data file, which are those for a raw trace with --ctl."""
        status, lines = self.walk(code, form, self.perf_data(trace, config))
        ctl = config & ~PT | 0x10D | (0 if config & PT else BRANCH_EN)
        image = f"{self.file('image', code)}@{KERNEL:x}"
        raw = run(PT_FLOW, form, "--ctl", f"0x{ctl:x}", "--image", image,
                  self.file("raw", made.padded(trace)))
        self.assertEqual((raw[0], raw[1].replace(f"{KERNEL >> 8:x}", "").splitlines()),
                         (status, lines))
        self.assert_only_gaps(lines, raw[2])
        return status, lines

    def test_without_tnt_code_is_known_up_to_a_conditional_branch(self):  # GEN-325
        trace = self.trace(tip(KERNEL), tip(KERNEL + 3), tip(KERNEL + 3), b"\x01")
        status, lines = self.both(BRANCHES, trace, TSC_MTC | DIS_TNT, "--instructions")
        self.assertEqual(status, 1)
        self.assertEqual([line for line in lines if line[0] != "g"],
                         ["0x00", "0x00", "0x03", "0x03"])
        gaps = [line.split(" offset=")[0] + " " + line.split(" ", 3)[3]
                for line in lines if line[0] == "g"]
        self.assertEqual(gaps, ["gap no-tnt from=0x00 to=0x00", "gap no-tnt from=0x00 to=0x03"])
        _, lines = self.both(BRANCHES, trace, TSC_MTC | DIS_TNT, "--edges")
        self.assertEqual([line for line in lines if line[0] != "g"],
                         ["edge - 0x00", "edge - 0x03", "edge 0x03 0x03"])

    def test_without_tnt_a_ret_is_known_if_rets_are_not_compressed(self):  # GEN-325
        trace = self.trace(tip(KERNEL + 5), tip(KERNEL), tip(KERNEL + 5), b"\x01")
        status, lines = self.both(CALLS, trace, TSC_MTC | DIS_TNT | DIS_RETC, "--instructions")
        self.assertEqual((status, lines),
                         (0, ["0x00", "0x08", "0x05", "0x00", "0x08", "0x05"]))
        status, lines = self.both(CALLS, trace, TSC_MTC | DIS_TNT, "--edges")
        self.assertEqual((status, [line.split(" offset")[0] for line in lines]),
                         (1, ["edge 0x00 0x08", "gap no-tnt", "edge - 0x05", "edge 0x05 0x00",
                              "edge 0x00 0x08", "gap no-tnt", "edge - 0x05"]))

    def test_without_branches_a_trace_is_one_gap(self):  # GEN-029
        ptwrite = bytes.fromhex("0212efbeadde")
        trace = b"".join(made.PSB + made.PSBEND + ptwrite * 1000 for _ in range(100))
        for jobs in (1, 4):
            status, lines = self.walk(BRANCHES, "--jobs", jobs,
                                      self.perf_data(trace, TSC_MTC | PT | PTW_EN))
            self.assertEqual((status, lines), (1, ["gap no-branches offset=0x0"]))
        self.assertEqual(self.both(BRANCHES, trace, TSC_MTC | PT | PTW_EN, "--edges"),
                         (1, ["gap no-branches offset=0x0"]))
        # Branches are on without the bit `pt`, and with both bits.
        trace = self.trace(tip(KERNEL), b"\x01")
        for config in (TSC_MTC, TSC_MTC | PT | BRANCH_EN):
            _, lines = self.both(bytes.fromhex("ffe0"), trace, config, "--instructions")
            self.assertEqual(lines, ["0x00", "0x00"])

    def test_the_drawings_name_the_gaps(self):
        for config, name in ((TSC_MTC | DIS_TNT, "no-tnt"), (TSC_MTC | PT, "no-branches")):
            trace = self.trace(tip(KERNEL), tip(KERNEL), b"\x01") if config & DIS_TNT else made.PSB
            file = self.perf_data(trace + made.PSBEND, config)
            code = self.kernel(BRANCHES)
            _, out, _ = run(PT_DUMP, "--chrome-trace", "--calls", "--kernel", code, file)
            self.assertIn(f"not known: {name}", out)
            _, out, _ = run(TIMELINE, "--calls", "--kernel", code, "-o", "-", file)
            self.assertIn(name, out)

    def test_a_direct_branch_that_leaves_a_filter_may_have_no_ip(self):  # SKL014
        # 0: JMP 12H; 2: NOPs; 12H: JMP RAX. The filter has the first 16 bytes.
        code = b"\xeb\x10" + b"\x90" * 16 + b"\xff\xe0"
        trace = self.trace(b"\x01")
        leaves, stays = ["0x00"], ["0x00", "0x12"]
        for filters, cpuid, wanted in (
                (f"filter 0x{KERNEL:x}/16", b"GenuineIntel,6,78,3", leaves),
                (f"filter 0x{KERNEL:x}/0x13", b"GenuineIntel,6,78,3", stays),
                (f"stop 0x{KERNEL:x}/16", b"GenuineIntel,6,78,3", stays),
                ("", b"GenuineIntel,6,78,3", stays),
                (f"filter 0x{KERNEL:x}/16", b"GenuineIntel,6,61,4", stays)):
            with self.subTest(filters + " " + cpuid.decode()):
                file = self.perf_data(trace, TSC_MTC, filters.encode(), cpuid)
                self.assertEqual(self.walk(code, "--instructions", file)[1], wanted)

    def test_the_filters_of_a_file_are_where_it_is_mapped(self):  # SKL014
        code = self.file("code", bytes(0x100) + b"\xeb\x10" + b"\x90" * 16 + b"\xff\xe0")
        event = made.Event(config=TSC_MTC, sample_type=made.TID | made.TIME | made.CPU, ids=[1])
        end = made.id_end(event, 100, 0, 0), ""
        body = (made.u32(100, 100) + made.u64(0x401000, 0x1000, 0) + made.u32(0, 0) +
                made.u64(0, 0) + made.u32(5, 2) + made.c_string(str(code).encode()))
        trace = (made.PSB + made.PSBEND + b"\x99\x01\x71" + (0x401100).to_bytes(6, "little") +
                 b"\x01")
        for size, wanted in ((16, ["0x401100"]), (19, ["0x401100", "0x401112"])):
            filters = f"filter 0x100/{size}@{code}".encode()
            records = [made.info_of(60, filter=filters), made.Record(10, body, "", 2, end=end),
                       made.auxtrace(made.padded(trace), tid=100)]
            features = {9: made.text_feature(b"GenuineIntel,6,78,3")}
            file = self.file("perf.data", made.file_of([event], records, features)[0])
            self.assertEqual(run(PT_FLOW, "--instructions", file)[1].split(), wanted)

    def test_the_listing_of_streams_has_all_of_ctl(self):
        filters = b"filter 0x1000/16,stop 0x2000/8@/bin/true"
        config = TSC_MTC | DIS_TNT | PT | PTW_EN | 1 << 5 | 3 << 24 | 1 << 40
        file = self.perf_data(made.PSB, config, filters)
        wanted = {"TraceEn": 1, "CYCEn": 0, "OS": 1, "User": 1, "PwrEvtEn": 0, "FUPonPTW": 1,
                  "FabricEn": 0, "CR3Filter": 0, "ToPA": 1, "MTCEn": 1, "TSCEn": 1, "DisRETC": 0,
                  "PTWEn": 1, "BranchEn": 0, "MTCFreq": 3, "CycThresh": 0, "PSBFreq": 3,
                  "EventEn": 0, "ADDR0_CFG": 1, "ADDR1_CFG": 2, "ADDR2_CFG": 0, "ADDR3_CFG": 0,
                  "DisTNT": 1, "InjectPsbPmiOnEnable": 0}
        value = 0x10D | config & ~PT & ~(1 << 40) | 0x21 << 32
        found = [json.loads(line) for line in
                 run(PT_DUMP, "--json", "--streams", file)[1].splitlines()]
        self.assertEqual([one["event"] for one in found], ["config", "ctl", "stream"])
        self.assertEqual(found[1], {"event": "ctl", "value": f"0x{value:x}", **wanted,
                                    "unknown_config": "0x10000000000", "filter": filters.decode()})
        text = run(PT_DUMP, "--streams", file)[1].splitlines()[1]
        self.assertEqual(text.split(" unknown")[0], f"ctl value=0x{value:x} " + " ".join(
            f"{name}={field}" for name, field in wanted.items()))

    def test_ctl_has_fields_of_the_clock(self):
        # A TSC, a TMA, and an MTC after 8 ticks of the crystal clock.
        trace = self.file("raw", made.PSB + b"\x19" + (84 * 800).to_bytes(7, "little") +
                          b"\x02\x73" + (800).to_bytes(2, "little") + bytes(3) + made.PSBEND +
                          b"\x59\x65")
        times = ("--time", "--tsc-ratio", "168/2")
        plain = run(PT_DUMP, *times, trace)[1]
        wanted = run(PT_DUMP, *times, "--mtc-freq", "3", trace)[1]
        self.assertNotEqual(plain, wanted)
        self.assertEqual(run(PT_DUMP, *times, "--ctl", "0xe701", trace)[1], wanted)
        for order in (("--ctl", "2701", "--mtc-freq", "3"), ("--mtc-freq", "3", "--ctl", "2701")):
            self.assertEqual(run(PT_DUMP, *times, *order, trace)[1], wanted)
        for tool in (PT_FLOW, PT_DUMP, TIMELINE):
            for text, why in (("x", "is no hexadecimal"), ("40000", "has reserved bits")):
                status, _, error = run(tool, "--ctl", text, trace)
                self.assertEqual(status, 2)
                self.assertIn(why, error)

    def test_a_reported_file(self):
        folder = traces.perf_data_folder() / "made"
        if not (folder / "notnt.data").is_file():
            self.skipTest("recorded perf.data")
        status, out, _ = run(PT_FLOW, "--edges", "--kernel", folder / "notnt.kcore",
                             folder / "notnt.data")
        self.assertEqual(status, 1)
        self.assertEqual([line.split(" offset")[0] for line in out.splitlines()],
                         ["gap no-tnt", f"edge - 0x{KERNEL:x}", "gap no-tnt",
                          f"edge - 0x{KERNEL:x}", "gap no-tnt"] * 2)


if __name__ == "__main__":
    unittest.main()
