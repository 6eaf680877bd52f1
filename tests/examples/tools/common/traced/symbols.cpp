// SPDX-License-Identifier: BSL-1.0
// Also tests/tools/elf_names.py, with the files of compilers and linkers.

#include <tools/common/traced/symbols.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace {

struct asked {
    std::uint64_t address;
    std::uint64_t start, end, entry;
    std::string name;  // empty: no function, and `entry` is `start`
};

void check(traced::symbols const& names, std::vector<asked> const& all) {
    for (auto const& one : all) {
        CAPTURE(one.address);
        auto const found = names.function_at(one.address);
        CHECK(found.begin == one.start);
        CHECK(found.end == one.end);
        CHECK(found.entry == one.entry);
        CHECK(found.contains(one.address));
        CHECK((found.symbol == nullptr ? std::string{} : found.symbol->name) == one.name);
        CHECK(names.at(one.address) == found.symbol);
    }
}

}  // namespace

TEST_CASE("a range is that of a function, or of the space between two") {
    traced::symbols names;
    names.add_map("100 20 f\n140 10 g\n150 10 h\n");
    names.sort();
    check(names, {{0, 0, 0x100, 0, ""},
                  {0xFF, 0, 0x100, 0, ""},
                  {0x100, 0x100, 0x120, 0x100, "f"},
                  {0x11F, 0x100, 0x120, 0x100, "f"},
                  {0x120, 0x120, 0x140, 0x120, ""},
                  {0x14F, 0x140, 0x150, 0x140, "g"},
                  {0x150, 0x150, 0x160, 0x150, "h"},
                  {0x1000, 0x160, ~std::uint64_t{0}, 0x160, ""}});
}

TEST_CASE("without symbols, no function is anywhere") {
    traced::symbols names;
    names.sort();
    check(names, {{0x100, 0, ~std::uint64_t{0}, 0, ""}});
}

TEST_CASE("of functions that overlap, the one that begins last counts") {
    traced::symbols names;
    names.add_map("100 100 outer\n120 10 inner\n1F0 20 next\n300 10 one\n300 10 other\n");
    names.sort();
    check(names, {{0x110, 0x100, 0x120, 0x100, "outer"},
                  {0x125, 0x120, 0x130, 0x120, "inner"},
                  {0x130, 0x130, 0x1F0, 0x100, "outer"},
                  {0x1F8, 0x1F0, 0x210, 0x1F0, "next"},
                  {0x210, 0x210, 0x300, 0x210, ""},
                  {0x300, 0x300, 0x310, 0x300, "other"}});
}

TEST_CASE("a size that exceeds the address space ends with it") {
    traced::symbols names;
    names.add_map("100 ffffffffffffffff f\n200 10 g\n");
    names.sort();
    check(names, {{0x210, 0x210, ~std::uint64_t{0}, 0x100, "f"}});
}

TEST_CASE("kallsyms: a function ends at the next symbol, and a part belongs to its module") {
    traced::symbols kernel, names;
    // Of several names, the last is that of the function: the marks of sections precede it.
    kernel.add_kallsyms("ffffffff81000000 T _text\n"
                        "ffffffff81000000 t start\n"
                        "ffffffff81000010 t f.cold\n"
                        "ffffffff81000020 t twice.cold\n"
                        "ffffffff81000030 t g.cold.12\n"
                        "ffffffff81000040 T f\n"
                        "ffffffff81000050 t twice\n"
                        "ffffffff81000060 t twice\n"
                        "ffffffff81000070 t g\n"
                        "ffffffff81000080 D data\n"
                        "ffffffffc0000000 t f.cold\t[module]\n"
                        "ffffffffc0000010 t h.cold\t[module]\n"
                        "ffffffffc0000020 t f\t[module]\n"
                        "ffffffffc0000030 t h.cold\t[other]\n"
                        "ffffffffc0000040 t h\t[other]\n");
    kernel.sort();
    names.add_map("1000 10 user\n");
    names.set_kernel(kernel);
    names.sort();
    constexpr std::uint64_t text = 0xFFFF'FFFF'8100'0000, modules = 0xFFFF'FFFF'C000'0000;
    check(names,
          {{0x1000, 0x1000, 0x1010, 0x1000, "user"},
           {0x1010, 0x1010, std::uint64_t{1} << 63, 0x1010, ""},
           {std::uint64_t{1} << 63, std::uint64_t{1} << 63, text, std::uint64_t{1} << 63, ""},
           {text + 1, text, text + 0x10, text, "start"},
           {text + 0x10, text + 0x10, text + 0x20, text + 0x40, "f.cold"},
           {text + 0x2F, text + 0x20, text + 0x30, text + 0x20, "twice.cold"},
           {text + 0x30, text + 0x30, text + 0x40, text + 0x70, "g.cold.12"},
           {text + 0x90, text + 0x70, modules, text + 0x70, "g"},
           {modules, modules, modules + 0x10, modules + 0x20, "f.cold"},
           {modules + 0x10, modules + 0x10, modules + 0x20, modules + 0x10, "h.cold"},
           {modules + 0x30, modules + 0x30, modules + 0x40, modules + 0x40, "h.cold"}});
}

TEST_CASE("address_names answers as the symbols do, in any order of questions") {
    traced::symbols names;
    std::string map;
    for (unsigned i = 0; i < 3000; ++i) {
        map += tool::hex(0x1000 + i * 48) + " " + tool::hex(i % 40 + 1) + " f" + std::to_string(i) +
               "\n";
    }
    names.add_map(map);
    names.sort();
    traced::address_names cached{names};
    std::uint64_t at = 1;
    for (unsigned i = 0; i < 100'000; ++i) {
        at = at * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
        auto const address = (at >> 40) % 0x25000;
        auto const wanted = names.function_at(address);
        auto const found = cached.range_at(address);
        bool const is_same = found.begin == wanted.begin && found.end == wanted.end &&
                             found.entry == wanted.entry && found.symbol == wanted.symbol;
        REQUIRE(is_same);
    }
    CHECK(cached.of(0x1000) == "f0");
    CHECK(cached.of(0x1031) == "f1+0x1");
    CHECK(cached.of(0x1032) == "0x1032");
}
