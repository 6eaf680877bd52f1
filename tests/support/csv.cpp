// SPDX-License-Identifier: BSL-1.0
#include <support/csv.hpp>

#include <doctest/doctest.h>

#include <spec_tables.hpp>

namespace test = ptspec::test;
using namespace std::string_literals;

namespace {

/// The error message for a text that is not a valid table; empty for a valid one.
auto complaint(std::string_view text) -> std::string {
    try {
        (void)test::parse_csv(text, "t.csv");
    } catch (std::runtime_error const& error) { return error.what(); }
    return "";
}

}  // namespace

TEST_CASE("a cell is addressed by its row and its column name") {
    auto const table = test::parse_csv("id,what\n1,one\n2,two\n", "t.csv");
    CHECK(table.names == std::vector{"id"s, "what"s});
    REQUIRE(table.rows.size() == 2);
    CHECK(table.rows[0]["id"] == "1");
    CHECK(table.rows[0]["what"] == "one");
    CHECK(table.rows[1]["id"] == "2");
    CHECK(table.rows[1]["what"] == "two");
    CHECK(table.rows[1].place == "t.csv:3");
}

TEST_CASE("the last line needs no line end, and lines may end with CR LF") {
    CHECK(test::parse_csv("a,b\n1,2", "t.csv").rows[0]["b"] == "2");
    CHECK(test::parse_csv("a,b\n1,", "t.csv").rows[0]["b"].empty());
    auto const table = test::parse_csv("a,b\r\n1,2\r\n3,4\r\n", "t.csv");
    REQUIRE(table.rows.size() == 2);
    CHECK(table.rows[1]["a"] == "3");
    CHECK(table.rows[1]["b"] == "4");
}

TEST_CASE("cells may be empty, and blanks are part of a cell") {
    auto const table = test::parse_csv("a,b,c\n,,\n x , ,y\n", "t.csv");
    REQUIRE(table.rows.size() == 2);
    CHECK(table.rows[0]["a"].empty());
    CHECK(table.rows[0]["b"].empty());
    CHECK(table.rows[0]["c"].empty());
    CHECK(table.rows[1]["a"] == " x ");
    CHECK(table.rows[1]["b"] == " ");
}

TEST_CASE("a quoted cell may contain commas, line ends and doubled quotes") {
    auto const table = test::parse_csv(
        "\"a\",b\n\"1,2\",\"say \"\"x\"\"\"\n\"\",\"two\nlines\"\n3,4\n", "t.csv");
    CHECK(table.names == std::vector{"a"s, "b"s});
    REQUIRE(table.rows.size() == 3);
    CHECK(table.rows[0]["a"] == "1,2");
    CHECK(table.rows[0]["b"] == "say \"x\"");
    CHECK(table.rows[1]["a"].empty());
    CHECK(table.rows[1]["b"] == "two\nlines");
    CHECK(table.rows[1].place == "t.csv:3");
    CHECK(table.rows[2].place == "t.csv:5");
}

TEST_CASE("every violation of the format is an error that names its line") {
    CHECK(complaint("a,b\n1,2\n").empty());
    CHECK(complaint("") == "t.csv:1: an empty file");
    CHECK(complaint("a,b\n") == "t.csv:2: a table without rows");
    CHECK(complaint("a,b") == "t.csv:1: a table without rows");
    CHECK(complaint("a,,b\n1,2,3\n") == "t.csv:2: a column without a name");
    CHECK(complaint("a,b,a\n1,2,3\n") == "t.csv:2: two columns a");
    CHECK(complaint("a,b\n1,2\n1\n") == "t.csv:3: 1 cells below 2 names");
    CHECK(complaint("a,b\n1,2,3\n") == "t.csv:2: 3 cells below 2 names");
    CHECK(complaint("a,b\n1,2\n\n3,4\n") == "t.csv:3: an empty line");
    CHECK(complaint("a,b\n1,2\r\n\r\n") == "t.csv:3: an empty line");
    CHECK(complaint("a,b\n1,2\n\n") == "t.csv:3: an empty line");
    CHECK(complaint("a,b\n1,x\"y\n") == "t.csv:2: a quote inside a cell that is not quoted");
    CHECK(complaint("a,b\n1,\"x\"y\n") == "t.csv:2: text after a closing quote");
    CHECK(complaint("a,b\n1,\"x\n") == "t.csv:3: a quoted cell that does not end");
    CHECK(complaint("a,b\n1,x\ty\n") == "t.csv:2: a control character");
    CHECK(complaint("a,b\n1,\"x\ty\"\n") == "t.csv:2: a control character");
    CHECK(complaint("a,b\n1\r,2\n") == "t.csv:2: a control character");
}

TEST_CASE("a missing column and a missing file are errors") {
    auto const table = test::parse_csv("a,b\n1,2\n", "t.csv");
    CHECK_THROWS_WITH((void)table.rows[0]["c"], "t.csv:2: there is no column c");
    CHECK_THROWS_WITH((void)test::read_csv("tests/spec/nothing.csv"),
                      "tests/spec/nothing.csv: cannot be read");
}

TEST_CASE("every table of the catalogue can be read") {
    for (auto const* name : {"excused_rules", "opcode_map", "packet_vectors", "packets", "presets",
                             "registers", "scenarios"}) {
        CHECK_NOTHROW((void)test::read_csv("tests/spec/"s + name + ".csv"));
    }
    CHECK(test::read_csv("tests/spec/opcode_map.csv").rows.size() == 768);
    CHECK(test::read_csv("tests/spec/packet_vectors.csv").rows.size() ==
          test::packet_vectors_count);

    auto const table = test::read_csv("tests/spec/registers.csv");
    CHECK(table.rows[4]["field"] == "MaskOrTableOffset");
    CHECK(table.rows[4]["description"] == "Mask[31:7] single-range, or ToPA entry index");
    CHECK(table.rows[4].place == "tests/spec/registers.csv:6");
}

TEST_CASE("count_of_rows counts the table rows of a page by the prefix of their ids") {
    auto const page = test::read_text("tests/spec/output.md");
    CHECK(page.find("\n| OC-01 |") != std::string::npos);
    CHECK(test::count_of_rows("tests/spec/output.md", "OC-01") == 1);
    CHECK(test::count_of_rows("tests/spec/output.md", "OC-0") == 9);
    CHECK(test::count_of_rows("tests/spec/output.md", "RC-") == 0);
}
