#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of topa_view as a program: chains of ToPA tables as text and as a picture, hostile tables,
and invalid command lines.

    topa_view.py TOPA_VIEW
"""

import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skips  # noqa: E402
from tool_checks import ScriptChecks  # noqa: E402

TOPA_VIEW = sys.argv[1]
SVG = "{http://www.w3.org/2000/svg}"

HEAD = """\
ToPA chain at {}, as a processor of MAXPHYADDR {} reads it.
Indexes, addresses and words are hexadecimal. A # more in a bar is 2 times the size.

"""
RING = "cpu P-SKL; [10000]=400000; [10008]=402044; [10010]=10001; set BASE=10000; "
# Two tables: 64 KB and 4 KB, then 8 KB with STOP.
CHAIN = ("cpu P-SKL; [10000]=10000100; [10008]=20000004; [10010]=20001; [20000]=30000050; "
         "set BASE=10000; ")


def run(script, *arguments):
    done = subprocess.run([TOPA_VIEW, *arguments], input=script, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def words_at(address, words):
    return "; ".join(f"[{address + 8 * n:X}]={word:X}" for n, word in enumerate(words)) + "; "


class EveryTool(ScriptChecks, unittest.TestCase):
    TOOL = TOPA_VIEW
    FIRST, SECOND = "[10000]=400010", "set BASE=10000"
    PRINTS = [([], RING.encode()), (["-e", RING, "--svg", "-"], b""),
              (["--all"], (words_at(0x10000, [0x400000] * 5000 + [0x10001])
                           + "set BASE=10000").encode())]
    WRITES = [["-e", RING, "--svg"]]
    READS = [[]]
    READS_STDIN = [[], ["-"]]
    REFUSES = {(): 2}


class Text(unittest.TestCase):
    maxDiff = None

    def draws(self, script, status, text, *arguments):
        self.assertEqual(run(script, *arguments), (status, text, ""))

    def test_a_ring(self):
        self.draws(RING + "set MASK_PTRS=800000000FF", 0, HEAD.format("10000", 39) + """\
table 0 at 10000
     at     word    region or link             size  flags
  0  10000  400000  400000..400FFF             4 KB         #
> 1  10008  402044  402000..403FFF             8 KB  INT    ##
     800H of 2000H bytes are filled, 25%; the next byte goes to 402800
  2  10010  10001   -> 10000, back to table 0        END

chain     1 table, 2 regions, 12 KB; table 0 links to itself
position  table 0, entry 1, offset 800: the next byte goes to 402800
          6 KB (1800H) from the start of the chain to here
findings  none
""")

    def test_a_chain_of_two_tables_with_STOP(self):
        text = HEAD.format("10000", 39) + """\
table 0 at 10000
     at     word      region or link       size  flags
  0  10000  10000100  10000000..1000FFFF  64 KB         #####
  1  10008  20000004  20000000..20000FFF   4 KB  INT    #
  2  10010  20001     -> 20000, table 1          END

table 1 at 20000
     at     word      region or link       size  flags
{}
chain     2 tables, 3 regions, 76 KB; ends with STOP in table 1, entry 0
{}findings  none
"""
        last = "  0  20000  30000050  30000000..30001FFF   8 KB  STOP   ##\n"
        first = CHAIN + "enable; write {}"
        self.draws(first.format("11001"), 0, text.format(">" + last[1:] + """\
     1H of 2000H bytes are filled, 0%; the next byte goes to 30000001
""", """\
position  table 1, entry 0, offset 1: the next byte goes to 30000001
          69633 bytes (11001H) from the start of the chain to here
"""), "--table", "10000", "-")
        # STOP leaves the offset after the last byte. This is valid while Stopped is set.
        self.draws(first.format("14000"), 0, text.format(">" + last[1:] + """\
     2000H of 2000H bytes are filled, 100%
""", """\
position  table 1, entry 0, offset 2000
          76 KB (13000H) from the start of the chain to here
          Stopped is set: OUT-080, a full region with STOP must stop tracing
"""), "--table", "10000", "-")

    def test_a_position_at_which_tracing_cannot_be_enabled(self):
        status, out, _ = run(CHAIN + "set MASK_PTRS=1000000000FF")
        self.assertEqual(status, 1)
        self.assertIn("""
> 1  10008  20000004  20000000..20000FFF   4 KB  INT    #
     1000H of 1000H bytes are filled, 100%
!    OUT-064: the output offset must lie inside the current region
""", out)
        out = run(CHAIN + "set MASK_PTRS=1001000000FF")[1]
        self.assertIn("INT    #\n!    OUT-064: ", out)
        status, out, _ = run(CHAIN + "set MASK_PTRS=1000000000FF; set STATUS=10")
        self.assertEqual(status, 1)
        self.assertIn("!    OUT-064: ", out)
        self.assertIn("\n          Error is set: OUT-064, the output offset must lie", out)
        self.assertIn("\nfindings  1\n", out)
        status, out, _ = run(CHAIN + "set STATUS=10")
        self.assertEqual(status, 0)
        self.assertIn("\n          Error is set: REG-053, ", out)

    def test_a_position_on_END_is_followed(self):
        status, out, _ = run(CHAIN + "set MASK_PTRS=9990000017F")
        self.assertEqual(status, 0)
        self.assertIn("\n> 0  20000  30000050 ", out)
        self.assertIn("""
position  table 0, entry 2, offset 999: the link is followed, to table 1, entry 0, offset 0: the
          next byte goes to 30000000
          68 KB (11000H) from the start of the chain to here
""", out)
        status, out, _ = run(CHAIN + "[20000]=30000452; set MASK_PTRS=9990000017F")
        self.assertEqual(status, 1)
        self.assertIn("\n> 0  20000  30000452 ", out)
        self.assertIn("""
position  table 0, entry 2, offset 999: the link is followed, to table 1, entry 0, offset 0
findings  1
""", out)

    def test_a_position_after_the_end_of_its_table(self):
        status, out, _ = run(CHAIN + "[10038]=400002; set MASK_PTRS=3FF")
        self.assertEqual(status, 1)
        self.assertNotIn("\n>", out)
        self.assertIn("""
position  table 0, entry 7, offset 0
          OUT-060: bits 1, 3, 5, 10 and 11 of a ToPA entry must be 0
          this is not an entry of the chain
findings  1
""", out)
        status, out, _ = run(CHAIN + "[10038]=400000; set MASK_PTRS=3FF")
        self.assertEqual(status, 0)
        self.assertIn("\nposition  table 0, entry 7, offset 0: the next byte goes to 400000\n", out)
        status, out, _ = run(CHAIN + "set MASK_PTRS=3FF")
        self.assertEqual(status, 1)
        self.assertIn("entry 7, offset 0: no word was given of this entry\n", out)

    def test_a_position_in_another_chain(self):
        for more, line in (("", "a table at 0, entry 0, offset 0: no word was given of this entry"),
                           ("[30000]=2; set BASE=30000; ", "a table at 30000, entry 0, offset 0")):
            status, out, _ = run(CHAIN.replace("set BASE=10000; ", more), "--table", "10000", "-")
            self.assertEqual(status, 0)
            self.assertIn(f"\nposition  {line}\n", out)
            self.assertIn("\n          this is not an entry of the chain\nfindings  none\n", out)

    def test_several_findings(self):
        # A finding at an entry is listed once, in the order of rules; warnings follow.
        words = [0x1000002, 0x1001440, 0x8000000000, 0xFEE00000]
        self.draws("cpu P-SKL; apic FEE00000; smrr FEE00000 FFF00800; set BASE=10000; "
                   + words_at(0x10000, words + [0x30005]) + words_at(0x30000, [0x30001]), 1,
                   HEAD.format("10000", 39) + """\
table 0 at 10000
     at     word        region or link             size  flags
> 0  10000  1000002     1000000..1000FFF           4 KB           #
!    OUT-060: bits 1, 3, 5, 10 and 11 of a ToPA entry must be 0
  1  10008  1001440     1001000..1002FFF           8 KB           ##
!    OUT-060: bits 1, 3, 5, 10 and 11 of a ToPA entry must be 0
!    OUT-062: the base of an output region must be aligned to the region's size
  2  10010  8000000000  8000000000..8000000FFF     4 KB           #
!    OUT-063: an address in a ToPA entry must lie below 2^MAXPHYADDR
  3  10018  FEE00000    FEE00000..FEE00FFF         4 KB           #
?    warning OUT-111: trace must not be stored into restricted memory
?    warning OUT-113: trace must not be stored into the APIC's page
  4  10020  30005       -> 30000, table 1                INT END
!    OUT-065: a ToPA entry with END must not have INT or STOP

table 1 at 30000
     at     word        region or link             size  flags
  0  30000  30001       -> 30000, back to table 1        END
!    OUT-066: entry 0 of a ToPA table must be an output region, not END

chain     2 tables, 4 regions, 20 KB; table 1 links to itself
position  table 0, entry 0, offset 0
findings  6, and 2 warnings
""")

    def test_hostile_chains(self):
        # A table that contains only a link to itself.
        self.draws("set BASE=10000; [10000]=10001", 1, HEAD.format("10000", 52) + """\
table 0 at 10000
     at     word   region or link             size  flags
> 0  10000  10001  -> 10000, back to table 0        END
!    OUT-066: entry 0 of a ToPA table must be an output region, not END

chain     1 table, 0 regions, 0 bytes; table 0 links to itself
position  table 0, entry 0, offset 0
findings  1
""")
        # A link to memory that is not given, and a table that continues into such memory.
        status, out, _ = run("set BASE=10000; [10000]=400000; [10008]=20001")
        self.assertEqual(status, 1)
        self.assertIn("""
table 1 at 20000
     at     word    region or link     size  flags
  0  20000          not given
!    no word of this table was given
""", out)
        self.assertIn("\nchain     2 tables, 1 region, 4 KB; cannot be read from table 1, entry 0 "
                      "on\n", out)
        status, out, _ = run("set BASE=10000; [10000]=400000; [10010]=402000")
        self.assertEqual(status, 1)
        self.assertIn("""
> 0  10000  400000  400000..400FFF  4 KB         #
     0H of 1000H bytes are filled, 0%; the next byte goes to 400000
  1  10008  0       0..FFF          4 KB         #
?    warning OUT-070: an output region must not lie at address 0 or over a ToPA table
  2  10010  402000  402000..402FFF  4 KB         #
  3  10018          not given
!    there is neither END nor STOP in what was given of this table
""", out)
        # A chain whose last link leads to its middle.
        script = "".join(words_at(0x10000 * n, [0x400000, 0x10000 * (n + 1) | 1])
                         for n in range(1, 5))
        status, out, _ = run(script + words_at(0x50000, [0x400000, 0x30001]) + "set BASE=10000")
        self.assertEqual(status, 0)
        self.assertIn("  1  50008  30001   -> 30000, back to table 2        END\n", out)
        self.assertIn("chain     5 tables, 5 regions, 20 KB; table 4 links back to table 2\n", out)
        # The highest possible addresses.
        words = words_at(2**64 - 4096, [2**64 - 2, 0, 1])
        status, out, _ = run(words + "set BASE=FFFFFFFFFFFFF000")
        self.assertEqual(status, 1)
        for rule in ("OUT-060", "OUT-062", "OUT-063"):
            self.assertIn(f"\n!    {rule}: ", out)
        self.assertLessEqual(max(map(len, out.split("\n"))), 100)

    def test_a_chain_is_bounded(self):
        script = "".join(words_at(0x10000 + 0x1000 * n, [0, 0x11000 + 0x1000 * n | 1])
                         for n in range(1200)) + "set BASE=10000"
        status, out, _ = run(script)
        self.assertEqual(status, 0)
        self.assertIn("\ntable 999 at ", out)
        self.assertNotIn("table 1000 ", out)
        self.assertIn("-> 3F8000, not looked at", out)
        self.assertIn("chain     1000 tables, 1000 regions, 4000 KB; goes on: only these", out)

    def test_memory_is_bounded(self):
        pages = [f"[{0x100000 + (n << 12) + 0xFF8:X}]=400000" for n in range(2049)]
        status, out, _ = run("\n".join(pages[:2048] + ["set BASE=100000"]))
        self.assertEqual(status, 1)
        self.assertIn("1048576 regions", out)
        self.assertEqual(run("\n".join(pages + ["set BASE=100000"])),
                         (2, "", "topa_view: words in more than 2048 pages of 4 KB\n"))

    def test_long_tables(self):
        words = [0x2000000 + 0x1000 * n | (4 if n == 400 else 0) for n in range(500)] + [0x10001]
        script = words_at(0x10000, words) + "set BASE=10000; set MASK_PTRS=647F"
        status, out, _ = run(script)
        self.assertEqual(status, 0)
        self.assertIn("""
    0  10000  2000000  2000000..2000FFF           4 KB         #
    1  10008  2001000  2001000..2001FFF           4 KB         #
   ..                  197 more like these        4 KB         #
   C7  10638  20C7000  20C7000..20C7FFF           4 KB         #
>  C8  10640  20C8000  20C8000..20C8FFF           4 KB         #
       0H of 1000H bytes are filled, 0%; the next byte goes to 20C8000
   C9  10648  20C9000  20C9000..20C9FFF           4 KB         #
   CA  10650  20CA000  20CA000..20CAFFF           4 KB         #
   ..                  196 more like these        4 KB         #
  18F  10C78  218F000  218F000..218FFFF           4 KB         #
  190  10C80  2190004  2190000..2190FFF           4 KB  INT    #
  191  10C88  2191000  2191000..2191FFF           4 KB         #
""", out)
        self.assertLess(out.count("\n"), 30)
        self.assertIn("\n          800 KB (C8000H) from the start of the chain to here\n", out)
        status, out, _ = run(script, "--all")
        self.assertEqual((status, out.count(" # ") + out.count(" #\n")), (0, 501))
        self.assertNotIn("more like these", out)
        # Runs of nine entries or more are folded.
        for count, folded in ((8, False), (9, True)):
            words = [0x400000 + 0x1000 * n for n in range(count)] + [0x10001]
            out = run(words_at(0x10000, words), "--table", "10000", "-")[1]
            self.assertEqual("more like these" in out, folded)
        # An entry that breaks a rule is not folded with the others.
        words = [0x400000 + 0x1000 * n for n in range(30)] + [0x10001]
        words[15] += 1 << 39
        out = run("cpu P-SKL; " + words_at(0x10000, words), "--table", "10000", "-")[1]
        self.assertEqual(out.count("12 more like these"), 1)
        self.assertEqual(out.count("11 more like these"), 1)
        self.assertRegex(out, r"\n   F  10078  800040F000  800040F000\.\.800040FFFF +4 KB +#\n"
                              r"!     OUT-063: ")
        # All findings are counted, including those of folded entries.
        words = [0x402 + 0x1000 * n for n in range(0x50, 0x63)] + [0x10001]
        status, out, _ = run(words_at(0x10000, words) + "set BASE=10000; set MASK_PTRS=9FF")
        self.assertEqual(out.count("\n!     OUT-060: "), 5)
        self.assertIn("findings  19\n", out)

    def test_lines_have_at_most_100_columns(self):
        bar = "A # more in a bar is {} times the size."
        real, hostile = (0xFF00000001000, 0xF000000000000), (2**64 - 2**20, 2**64 - 2**40)
        for (table, base), largest, doublings in (
                (real, 0, 1), (real, 14, 1), (real, 15, 2),
                (hostile, 3, 1), (hostile, 5, 2), (hostile, 14, 4), (hostile, 15, 8)):
            sizes = {1, largest} if largest else {0}
            words = [base | size << 6 | 4 for size in sizes] * 300 + [base | 0x14]
            status, out, _ = run(f"set BASE={table:X}; " + words_at(table, words))
            with self.subTest(table, largest=largest):
                self.assertLessEqual(max(map(len, out.split("\n"))), 100)
                self.assertIn(bar.format(2**doublings), out)
                for size in sizes:
                    self.assertIn("  " + "#" * (size // doublings + 1) + "\n", out)

    def test_a_dump_as_memory(self):
        ring = struct.pack("<3Q", 0x400000, 0x402044, 0x10001)
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page@1")
            page.write_bytes(ring + bytes(4096 - len(ring)))
            by_script = run(RING)[1].replace("MAXPHYADDR 39", "MAXPHYADDR 52")
            self.draws("set BASE=10000", 0, by_script, "--dump", f"{page}@10000")
            # Without a script no position is shown.
            text, _, rest = by_script.partition("\nposition")
            text = text.replace("> 0", "  0").replace(
                "     0H of 1000H bytes are filled, 0%; the next byte goes to 400000\n", "")
            text += "\nfindings  none\n"
            self.draws("", 0, text, "--dump", f"{page}@10000", "--table", "10000")
            self.draws("frob", 0, text, "--dump", f"{page}@10000", "--table", "10000")
            # The script may replace words of a dump, and a second dump may follow.
            page.write_bytes(ring[:8])
            rest = pathlib.Path(folder, "rest")
            rest.write_bytes(ring[8:16])
            self.draws("[10010]=10001; set BASE=10000", 0, by_script, "--dump", f"{page}@10000",
                       "--dump", f"{rest}@10008")
            # Memory that is not given does not read as zeros.
            status, out, _ = run("", "--dump", f"{page}@10000", "--table", "10000")
            self.assertEqual(status, 1)
            self.assertIn("  1  10008          not given\n!    there is neither END nor STOP", out)

    def test_the_processor(self):
        script = "[10000]=400000; [10008]=401000; [10010]=10001; set BASE=10000"
        self.assertEqual(run(script)[0], 0)
        status, out, _ = run(script, "--cpu", "P-BDW")
        self.assertEqual(status, 1)
        self.assertIn("as a processor of MAXPHYADDR 39, without MENTRY, reads it.", out)
        self.assertIn("!    OUT-067: ", out)
        self.assertEqual(run("cpu P-SKL; " + script, "--cpu", "P-BDW")[0], 0)
        self.assertEqual(run("maxphyaddr 32; [10000]=100000010; set BASE=10000")[0], 1)
        self.assertEqual(run("maxphyaddr 33; [10000]=100000010; set BASE=10000")[0], 0)

    def test_a_table_at_an_invalid_address(self):
        status, out, _ = run("cpu P-SKL; smrr 0 FFFF0800; [8000]=400000; [8008]=400010; "
                             "set BASE=8000")
        self.assertEqual(status, 1)
        self.assertEqual(out.count("!    OUT-091: "), 2)
        status, out, _ = run("set BASE=10080; [10080]=400010")
        self.assertEqual(status, 1)
        self.assertEqual(out.count("!    OUT-061: "), 1)
        # The rule applies to the entries of the table, not to the link to it.
        status, out, _ = run("smrr 0 FFFF0800; set BASE=10000; "
                             + words_at(0x10000, [0x400000, 0x8001]) + words_at(0x8000, [0x400010]))
        self.assertEqual((status, out.count("!    OUT-091: ")), (1, 1))
        self.assertLess(out.index("\ntable 1 at 8000\n"), out.index("OUT-091"))
        # A region that overlaps its table is only a warning.
        status, out, _ = run("set BASE=10000; [10000]=10010")
        self.assertEqual(status, 0)
        self.assertIn("?    warning OUT-070: ", out)
        self.assertIn("findings  none, and 1 warning\n", out)


class Picture(unittest.TestCase):
    def picture(self, script, *arguments):
        status, out, errors = run(script, "--svg", "-", *arguments)
        self.assertEqual(errors, "")
        self.assertIn(status, (0, 1))
        root = xml.etree.ElementTree.fromstring(out)
        self.assertEqual(root.tag, SVG + "svg")
        return out, root

    @staticmethod
    def drawings(root):
        """The wide and the narrow drawing."""
        return [group for group in root if group.get("class") in ("wide", "narrow")]

    @staticmethod
    def texts(drawing):
        return [element.text for element in drawing.iter(SVG + "text")]

    def test_the_picture_is_self_contained(self):
        for script in (RING, CHAIN, "set BASE=10000; [10000]=10001"):
            out, root = self.picture(script)
            self.assertNotRegex(out.replace("http://www.w3.org/2000/svg", ""),
                                r"https?:|url\(|@import|href|<script|<image|<foreign|\bon\w+=")
            self.assertEqual({element.tag.removeprefix(SVG) for element in root.iter()},
                             {"svg", "title", "desc", "style", "g", "text", "rect", "path"}
                             - (set() if "rect" in out else {"rect"}))
            self.assertIn("prefers-color-scheme:dark", out)

    def test_the_picture_has_a_title_and_a_description(self):
        _, root = self.picture(CHAIN)
        self.assertEqual((root.get("role"), root[0].tag, root[0].text),
                         ("img", SVG + "title", "ToPA chain at 10000"))
        self.assertEqual((root[1].tag, root[1].text),
                         (SVG + "desc", "2 tables, 3 regions, 76 KB; ends with STOP in table 1, "
                                        "entry 0. Findings: none."))
        for drawing in self.drawings(root):
            self.assertIn("table 1, entry 0: 30000000..30001FFF, 8 KB, STOP",
                          [element.text for element in drawing.iter(SVG + "title")])

    def test_both_drawings_show_all_entries(self):
        script = CHAIN.replace("30000050", "30001050") + "set MASK_PTRS=400000000FF"
        _, root = self.picture(script)
        wide, narrow = self.drawings(root)
        for drawing in (wide, narrow):
            texts = self.texts(drawing)
            for text in ("table 0 at 10000", "table 1 at 20000", "10000000..1000FFFF", "64 KB",
                         "20000000..20000FFF", "-> 20000, table 1", "INT", "END", "STOP", "0", "2"):
                self.assertIn(text, texts)
            whole = " ".join(texts)
            self.assertIn("Position: table 0, entry 1, offset 400: the next byte goes to 20000400",
                          whole)
            self.assertIn("400H of 1000H bytes are filled, 25%", whole)
            self.assertIn("OUT-062: the base of an output region must be aligned to the region's "
                          "size", whole)
            self.assertIn("Findings: 1", texts)
            classes = [element.get("class") for element in drawing.iter()]
            self.assertEqual(classes.count("link"), 1)
            self.assertEqual(classes.count("wash"), 1)
            self.assertIn("bad", classes)
        self.assertIn("10008", self.texts(wide))
        self.assertIn("20000004", self.texts(wide))
        self.assertIn("10008: 20000004", self.texts(narrow))

    def test_nothing_is_drawn_outside_the_picture(self):
        words = [0xF000000000000 | 15 << 6 | 0x414 | n << 30 for n in range(4)]
        for script in (RING + "set MASK_PTRS=400000000FF", CHAIN,
                       "set BASE=FF00000001000; " + words_at(0xFF00000001000, words)):
            _, root = self.picture(script)
            width, height = int(root.get("width")), int(root.get("height"))
            style = root.find(SVG + "style").text
            narrow = re.search(r"\.topa\{width:(\d+)px;height:(\d+)px\}", style).groups()
            for drawing, (across, down) in zip(self.drawings(root),
                                               ((width, height), map(int, narrow))):
                self.assertLessEqual(across, 900 if drawing.get("class") == "wide" else 390)
                for box in drawing.iter(SVG + "rect"):
                    x, y, w, h = (float(box.get(name)) for name in ("x", "y", "width", "height"))
                    self.assertTrue(0 <= x <= x + w <= across, box.attrib)
                    self.assertTrue(0 <= y <= y + h <= down, box.attrib)
                for text in drawing.iter(SVG + "text"):
                    self.assertTrue(0 <= float(text.get("x")) <= across
                                    and 0 <= float(text.get("y")) <= down, text.attrib)

    def test_the_strip_is_to_scale(self):
        _, root = self.picture(CHAIN + "set MASK_PTRS=800000000FF")
        boxes = [box for box in self.drawings(root)[0].iter(SVG + "rect")
                 if box.get("height") == "18" and box.get("class") in ("region", "filled")]
        # 64, 4 and 8 KB, filled up to the second half; slightly wider than to scale, with gaps.
        wide = [float(box.get("width")) for box in boxes]
        self.assertEqual([box.get("class") for box in boxes],
                         ["filled", "region", "filled", "region"])
        self.assertAlmostEqual(wide[0] / (872 * 64 / 76), 1, delta=0.03)
        self.assertAlmostEqual(wide[3] / wide[1], 2, delta=0.2)
        self.assertAlmostEqual(wide[2] / wide[1], 0.5, delta=0.02)

        # A region with a finding is underlined.
        _, root = self.picture(CHAIN.replace("20000004", "20000404"))
        lines = [(float(box.get("x")), float(box.get("width")))
                 for box in self.drawings(root)[0].iter(SVG + "rect")
                 if box.get("class") == "bad" and box.get("height") == "3"]
        self.assertEqual(lines, [(round(14 + wide[0] + 1, 2), round(wide[1], 2))])

    def test_links_end_at_the_names_of_tables(self):
        closed = CHAIN.replace("30000050", "30000040") + "[20008]=10001"
        # Links to later tables are drawn first.
        for script, targets in ((RING, (0,)), (CHAIN, (1,)), (closed, (1, 0))):
            _, root = self.picture(script)
            for drawing in self.drawings(root):
                links = [path for path in drawing.iter(SVG + "path") if path.get("class") == "link"]
                self.assertEqual(len(links), len(targets))
                tips = [float(re.match(r"M\S+ (\S+)l", path.get("d"))[1])
                        for path in drawing.iter(SVG + "path") if path.get("class") == "tip"]
                names = [float(text.get("y")) for text in drawing.iter(SVG + "text")
                         if text.get("class") == "table"]
                self.assertEqual([tip + 5 for tip in tips], [names[which] for which in targets])

    def test_the_number_of_rows_is_bounded(self):
        script = "".join(words_at(0x10000 + 0x1000 * n, [0x400000 + 64 * (i % 2) for i in range(8)]
                                  + [0x11000 + 0x1000 * n | 1]) for n in range(300))
        _, root = self.picture(script + "set BASE=10000")
        for drawing in self.drawings(root):
            self.assertEqual(sum(1 for text in self.texts(drawing) if text == "END"), 2000 // 9)
            self.assertIn("701 rows more, not drawn here", self.texts(drawing))

    def test_the_output_of_svg(self):
        with tempfile.TemporaryDirectory() as folder:
            to = pathlib.Path(folder, "a.svg")
            status, out, errors = run(RING, "--svg", str(to))
            self.assertEqual((status, out, errors), (0, run(RING)[1], ""))
            self.assertEqual(to.read_text(), run(RING, "--svg", "-")[1])
            self.assertEqual(run(RING.replace("10001", "20001"), "--svg", "-")[0], 1)
            status, out, errors = run(RING, "--svg", folder)
            self.assertEqual((status, out), (2, ""))


class CommandLine(unittest.TestCase):
    def refused(self, about, *arguments, script=""):
        status, out, errors = run(script, *arguments)
        self.assertEqual((status, out), (2, ""), arguments)
        self.assertIn(about, errors)
        self.assertTrue(errors.startswith("topa_view: ") and errors.count("\n") == 1, errors)

    def test_help(self):
        status, out, errors = run("", "--help")
        self.assertEqual((status, errors), (0, ""))
        self.assertTrue(out.startswith("usage: topa_view "))
        self.assertLessEqual(max(map(len, out.split("\n"))), 100)
        for option in ("--svg", "--dump", "--table", "--cpu", "--all", "--help"):
            self.assertIn(option, out)

    def test_wrong_usage(self):
        for option in ("--svg", "--dump", "--table", "--cpu"):
            self.refused(f"{option} needs an argument", option)
        for address in ("x", "", "0x1000", "1001", "40", "10000000000000000"):
            self.refused("--table takes a hexadecimal address, a multiple of 80",
                         "--table", address)
        self.refused("--cpu: no such processor: P-XXL", "--cpu", "P-XXL")

    def test_files(self):
        self.refused("none: No such file", __file__ + ".none")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "file")
            file.write_bytes(bytes(8))
            self.refused("statement 1: a NUL byte", f"{file}")
            for what in (f"{file}", f"{file}@", f"{file}@x", f"{file}@1",
                         f"{file}@10000000000000000", "@0x0"):
                self.refused("--dump takes FILE@ADDRESS", "--dump", what)
            self.refused("No such file", "--dump", f"{folder}/none@0")
            self.refused("Is a directory", "--dump", f"{folder}@0")
            file.write_bytes(bytes(16))
            self.refused("after the last address", "--dump", f"{file}@FFFFFFFFFFFFFFF8")
            for size, about in ((0, "is empty"), (7, "not a whole number of 8-byte words"),
                                (4097, "not a whole number of"), ((4 << 20) + 8, "more than 4 MB")):
                with open(file, "wb") as sparse:
                    sparse.truncate(size)
                self.refused(about, "--dump", f"{file}@0")
            with open(file, "wb") as sparse:
                sparse.truncate(2 << 20)
            self.refused("more than 4 MB", *["--dump", f"{file}@0"] * 3)
            self.assertEqual(run("", *["--dump", f"{file}@0"] * 2, "--table", "1FF000")[0], 1)
        self.refused("more than 4 MB", "--dump", "/dev/zero@0")

    def test_invalid_statements(self):
        self.refused("statement 2: no such statement: 'frob'",
                     script="set BASE=0; frob; set BASE=1")
        self.refused("statement 1: ", script="[1]=1")
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "script")
            script.write_text(RING)
            self.assertEqual(run("frob", str(script)), run(RING))
            # With a script there is a position, which may be in another table.
            for given in (["-e", RING], [str(script)]):
                self.assertIn("\nposition ", run("frob", "--table", "10000", *given)[1])


if __name__ == "__main__":
    skips.main(sys.argv[:1])
