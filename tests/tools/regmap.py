#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of regmap as a program: names, values, pictures, and the self-contained atlas.

    regmap.py REGMAP
"""

import csv
import html.parser
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
from tool_checks import ToolChecks  # noqa: E402

SPEC = pathlib.Path(__file__).resolve().parents[1] / "spec"
REGMAP = sys.argv[1]


def run(*arguments):
    done = subprocess.run([REGMAP, *arguments], capture_output=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def rows_of(name):
    with open(SPEC / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def words():
    """The words that registers.csv lists: C++ name -> rows."""
    found = {}
    for row in rows_of("registers.csv"):
        name = row["cpp_name"].rsplit("::", 1)[0]
        if "::" in name:
            found.setdefault(name, []).append(row)
    return found


def packets():
    """The packets of packets.csv: C++ name and name."""
    return {row["cpp_name"].split(";")[0]: row["name"] for row in rows_of("packets.csv")}


class Page(html.parser.HTMLParser):
    """Parses a page; fails where its elements are not properly nested."""

    VOID = {"meta", "link", "br", "wbr", "img", "input", "hr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.elements, self.text = [], [], [], [], {}
        self.article = None
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes["href"])
        if tag == "article":
            self.article = attributes["id"]
            self.text[self.article] = ""
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
        if tag == "article":
            self.article = None

    def handle_data(self, data):
        if self.article:
            self.text[self.article] += data


class EveryTool(ToolChecks, unittest.TestCase):
    TOOL = REGMAP
    PRINTS = [([], b""), (["--list"], b""), (["IA32_RTIT_CTL"], b""),
              (["PTW", "029278563412"], b""),
              (["--svg", "PTW"], b""), (["--html", "-"], b""), (["--c", "-"], b""),
              (["--rust", "-"], b""), (["--json", "-"], b""), (["--cases", "-"], b"")]
    WRITES = [["--html"], ["--c"], ["--rust"], ["--json"], ["--cases"]]


class Atlas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        status, cls.html, errors = run("--html", "-")
        assert (status, errors) == (0, ""), errors
        cls.page = Page(cls.html)

    def test_the_page_has_every_word_and_field(self):
        for name, rows in words().items():
            anchor = name.replace("::", "-")
            self.assertIn(anchor, self.page.text)
            text = self.page.text[anchor]
            for row in rows:
                if row["cpp_name"].count("::") == 2:
                    self.assertIn(row["cpp_name"].rsplit("::", 1)[1], text, anchor)
            place = rows[0]["address_hex"]
            if rows[0]["kind"] == "cpuid":
                leaf, subleaf, register = place.split(".")
                self.assertIn(f"leaf {leaf}H, sub-leaf {subleaf}, {register}", text)
            elif re.fullmatch("[0-9A-F]+", place) and "XSAVE_PT_STATE" not in rows[0]["register"]:
                self.assertIn(f" {place}H", text, anchor)

    def test_registers_with_a_single_name_are_listed_under_it(self):
        headings = set(re.findall(r"<h3><a [^>]*>(.*?)</a></h3>", self.html.replace("<wbr>", "")))
        for name, rows in words().items():
            register = rows[0]["register"]
            if not re.match(r"IA32_RTIT_(ADDR|TRIGGER)|XSAVE_PT_STATE|TOPA", register):
                self.assertIn(register, headings)
        self.assertTrue(headings >= set(packets().values()))

    def test_the_page_has_every_packet(self):
        for name, spelled in packets().items():
            self.assertIn(f"packet-{name}", self.page.text)
            self.assertTrue(self.page.text[f"packet-{name}"].strip().startswith(spelled))

    def test_the_page_shows_how_a_field_can_be_written(self):
        status = self.page.text["reg-ia32_rtit_status"]
        self.assertRegex(status, r"\b0FilterEnwrite ignored")
        self.assertRegex(status, r"\b4Errorread/write")
        self.assertRegex(self.page.text["reg-ia32_rtit_output_mask_ptrs"], "LowerMaskreads 1")
        self.assertRegex(self.page.text["reg-cpuid_14h_0_ebx"], "CR3FILTERread only")

    def test_each_word_has_a_wide_and_a_narrow_diagram(self):
        pictures = [a for tag, a in self.page.elements if tag == "svg"]
        kinds = [a["class"] for tag, a in self.page.elements
                 if tag == "div" and a.get("class", "").startswith("picture")]
        self.assertEqual(len(pictures), len(kinds))
        self.assertEqual(kinds.count("picture wide"), kinds.count("picture tall"))
        self.assertEqual(kinds.count("picture wide") + kinds.count("picture bytes"),
                         len(self.page.text))
        self.assertTrue(all(a["role"] == "img" for a in pictures))

    def test_the_page_loads_no_resource_and_has_no_script(self):
        self.assertNotRegex(self.html,
                            r"https?:|//[a-z]|url\(|@import|\bsrc=|<link|<script|\bon\w+=")
        self.assertTrue(all(link.startswith("#") for link in self.page.links))

    def test_every_link_has_a_target_and_every_id_is_unique(self):
        self.assertEqual(len(set(self.page.ids)), len(self.page.ids))
        self.assertEqual({link[1:] for link in self.page.links} - set(self.page.ids), set())
        self.assertEqual(set(self.page.text) - {link[1:] for link in self.page.links}, set())

    def test_the_page_is_accessible(self):
        self.assertTrue(self.html.startswith("<!doctype html>\n<html lang=\"en\">"))
        for needed in ('<meta charset="utf-8">', 'name="viewport"', "prefers-color-scheme: dark",
                       "<main", "<h1>", "<h2 ", "<h3>", 'aria-label="Contents"'):
            self.assertIn(needed, self.html)

    def test_the_page_in_a_file_is_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "atlas.html")
            self.assertEqual(run("--html", str(path)), (0, "", ""))
            self.assertEqual(path.read_text(encoding="utf-8"), self.html)
            status, out, errors = run("--html", str(pathlib.Path(folder, "no", "atlas.html")))
            self.assertEqual((status, out), (2, ""))
            self.assertIn("No such file or directory", errors)


class CommandLine(unittest.TestCase):
    def refused(self, status, message, *arguments):
        self.assertEqual(run(*arguments), (status, "", f"regmap: {message}\n"))

    def test_help(self):
        status, out, errors = run("--help")
        self.assertEqual((status, errors), (0, ""))
        self.assertTrue(out.startswith("usage: regmap"))
        self.assertEqual(run(), (status, out, errors))
        self.assertEqual(run("-h"), (status, out, errors))

    def test_every_spelling_of_a_name(self):
        for names in (["IA32_RTIT_CTL", "ia32_rtit_ctl", "ptspec::reg::ia32_rtit_ctl"],
                      ["TIP.PGE", "tip_pge", "packet::tip_pge", "Tip.Pge"],
                      ["CPUID.14H.0:EBX", "cpuid_14h_0_ebx", "reg::cpuid_14h_0_ebx"],
                      ["IA32_RTIT_ADDR", "IA32_RTIT_ADDR0_A", "ia32_rtit_addr3_b",
                       "IA32_RTIT_ADDRn_A"],
                      ["MSR_LASTBRANCH_x_FROM_IP", "MSR_LASTBRANCH_31_FROM_IP",
                       "msr_lastbranch_n_from_ip"],
                      ["TOPA_ENTRY", "topa::entry", "entry"]):
            shown = run(names[0])
            self.assertEqual((shown[0], shown[2]), (0, ""))
            self.assertTrue(shown[1].startswith(names[0] + ": "), shown[1][:60])
            for name in names:
                self.assertEqual(run(name), shown, name)

    def test_every_name_of_the_catalogue_is_accepted(self):
        known = {row["register"] for rows in words().values() for row in rows
                 if not re.match("XSAVE_PT_STATE|TOPA", row["register"])}
        self.assertGreater(len(known), 60)
        for name in [*known, *packets().values()]:
            self.assertEqual(run(name)[0], 0, name)

    def test_the_list_has_every_name(self):
        status, out, errors = run("--list")
        self.assertEqual((status, errors), (0, ""))
        names = {line.split()[0] for line in out.splitlines() if line.startswith("  ")}
        self.assertTrue(names >= set(packets().values()))
        self.assertTrue({"IA32_RTIT_CTL", "CPUID.14H.1:EBX", "TOPA_END_ENTRY"} <= names)
        self.assertIn("  IA32_RTIT_CTL               64-bit MSR 570H\n", out)

    def test_a_word_with_its_fields(self):
        status, out, _ = run("IA32_RTIT_STATUS")
        self.assertEqual(status, 0)
        self.assertTrue(out.startswith("IA32_RTIT_STATUS: 64-bit MSR 571H, "
                                       "ptspec::reg::ia32_rtit_status\n\n 63"))
        self.assertIn("  48:32  PacketByteCnt  read/write\n", out)
        self.assertIn("  2      TriggerEn      write ignored\n", out)
        self.assertTrue(all(len(line) <= 100 for line in out.splitlines()))

    def test_encodings_are_explained(self):
        out = run("IA32_RTIT_CTL")[1]
        self.assertIn("  17:14  MTCFreq               read/write  "
                      "1, 2, 4 to 32768 crystal cycles\n", out)
        self.assertIn("read/write  none, 1, 2 to 16384 cycles\n", out)
        self.assertIn("read/write  0=off, 1=filter, 2=trace_stop\n", out)
        self.assertIn("address bits 63:12, reserved from MAXPHYADDR on\n", run("topa::entry")[1])

    def test_a_packet_with_its_fields(self):
        out = run("PTW")[1]
        self.assertTrue(out.startswith("PTW: 6 or 10 bytes, ptspec::packet::ptw\nbinds to IP: yes\n"
                                       "in PSB+: no\nCYC eligible: yes\n"))
        self.assertIn("  1.5..1.6  PayloadBytes\n", out)
        self.assertIn("  0.0..0.7  Escape        is 02H\n", out)
        self.assertIn("  2.0..     payload       4 or 8 bytes\n", out)

    def test_several_names(self):
        status, out, _ = run("PAD", "OVF")
        self.assertEqual(status, 0)
        self.assertEqual(out, run("PAD")[1] + "\n\n" + run("OVF")[1])

    def test_unicode_line_characters(self):
        self.assertIn("└", run("--unicode", "PAD")[1])
        self.assertTrue(run("PAD")[1].isascii())

    def test_values_of_words(self):
        summary = ("TraceEn=1 OS=1 User=1 ToPA=1 MTCEn=1 BranchEn=1 MTCFreq=3 (8 crystal cycles) "
                   "reserved set 40000H")
        for value in ("4E30D", "0x4e30d", "4E30DH"):
            status, out, errors = run("IA32_RTIT_CTL", value)
            self.assertEqual((status, errors), (0, ""))
            self.assertEqual(out.splitlines()[0], summary)
            self.assertIn("  MTCFreq               3 (8 crystal cycles)\n", out)
            self.assertIn("  CycThresh             0\n", out)
        self.assertTrue(run("IA32_RTIT_CTL", "0xCFE")[1].startswith("CYCEn=1 OS=1 User=1 PwrEvtEn"))
        self.assertTrue(run("CPUID.15H:ECX", "16E3600")[1].startswith(
            "CrystalHz=16E3600H (24000000 Hz)\n"))

    def test_maxphyaddr(self):
        word = ["IA32_RTIT_OUTPUT_BASE", "8000000000"]
        self.assertTrue(run(*word)[1].startswith("BasePhysAddr=8000000000H\n"))
        self.assertTrue(run("--maxphyaddr", "39", *word)[1].startswith(
            "BasePhysAddr=8000000000H reserved set 8000000000H\n"))

    def test_bytes_of_packets(self):
        line = "PTW PayloadBytes=0 IP=1 payload=12345678H\n"
        for given in (["029278563412"], ["02", "92", "78563412"], ["02 92 78 56 34 12"]):
            status, out, _ = run("PTW", *given)
            self.assertEqual(status, 0)
            self.assertTrue(out.startswith(line), out)
        self.assertTrue(run("BIP", "0C EF BE AD DE")[1].startswith("BIP id=1 payload=DEADBEEFH\n"))
        self.assertTrue(run("BIP", "0CEFBEADDE00000000")[1].startswith(
            "BIP id=1 payload=DEADBEEFH\n"))

    def test_bytes_of_another_packet(self):
        self.refused(1, "the bytes must begin the requested packet (PKT-010)", "TIP", "0282")
        self.refused(1, "a packet must have all of its bytes (PKT-255)", "CBR", "0203")
        self.refused(1, "IPBytes must not be 5 or 7 (PKT-052)", "TIP", "AD")
        self.refused(1, "more bytes than the packet has: 2, not 1", "PAD", "0000")

    def test_invalid_values(self):
        self.refused(2, "12345678901234567 is no hexadecimal number of 64 bits", "IA32_RTIT_CTL",
                     "12345678901234567")
        self.refused(2, "100000000 has more than 32 bits", "CPUID.15H:ECX", "100000000")
        self.refused(2, "one value is needed", "IA32_RTIT_CTL", "1", "2")
        self.refused(2, "0x is no hexadecimal number of 64 bits", "IA32_RTIT_CTL", "0x")
        self.refused(2, "123: bytes are pairs of hexadecimal digits", "TIP", "123")
        self.refused(2, "this has more than 64 bits: decode its registers one by one",
                     "XSAVE_PT_STATE", "0")

    def test_unknown_names(self):
        self.refused(2, "there is no word or packet TIPPGE; did you mean TIP.PGE or TIP.PGD? "
                     "--list prints all names",
                     "TIPPGE")
        self.refused(2, "there is no word or packet rtit_status; did you mean IA32_RTIT_STATUS? "
                     "--list prints all names", "rtit_status")
        for name in ("IA32_RTIT_ADDR4_A", "IA32_RTIT_CTRL", "", "x"):
            status, out, errors = run(name)
            self.assertEqual((status, out), (2, ""), name)
            self.assertIn("did you mean", errors)
        self.refused(2, "IA32_RTIT_STATS is neither a name nor a hexadecimal value; did you mean "
                     "IA32_RTIT_STATUS?", "IA32_RTIT_CTL", "IA32_RTIT_STATS")

    def test_wrong_usage(self):
        self.refused(2, "--html needs an argument", "--html")
        for arguments in (["--list", "PAD"], ["--html", "-", "PAD"], ["--c", "-", "--list"]):
            self.refused(2, "names, --list and the options with FILE do not go together",
                         *arguments)
        self.refused(2, "one file is written at a time", "--c", "-", "--html", "-")
        self.refused(2, "--svg needs one name", "--svg")
        self.refused(2, "--svg needs one name", "--svg", "PAD", "OVF")
        for number in ("31", "65", "4x", "", "100"):
            self.refused(2, "--maxphyaddr is a number from 32 to 64", "--maxphyaddr", number, "PAD")

    def test_pictures_are_self_contained(self):
        for name in ("IA32_RTIT_CTL", "XSAVE_PT_STATE", *packets().values()):
            status, out, errors = run("--svg", name)
            self.assertEqual((status, errors), (0, ""))
            root = xml.etree.ElementTree.fromstring(out)
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            self.assertEqual(root[0].text, name)
            self.assertNotRegex(out.replace("http://www.w3.org/2000/svg", ""),
                                r"https?:|url\(|@import|href|<script")


if __name__ == "__main__":
    skips.main(sys.argv[:1])
