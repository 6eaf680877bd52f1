// SPDX-License-Identifier: BSL-1.0
// Also tests/tools/pt_flow_processes.py, with random systems of processes.

#include <tools/common/traced/address_spaces.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

auto file(std::uint64_t size, std::string path, std::uint64_t offset = 0) -> traced::mapped {
    return {.size = size, .offset = offset, .path = std::move(path), .build_id = ""};
}
constexpr bool is_code = true;

/// `path+offset`, `?` where it is disputed, or nothing.
auto at(traced::address_spaces const& in, std::uint32_t space, std::uint64_t address)
    -> std::string {
    auto const [start, what] = in.mapping_at(space, address);
    if (what == nullptr) { return ""; }
    return what->is_disputed ? "?"
                             : what->path + "+" + std::to_string(what->offset + address - start);
}

}  // namespace

TEST_CASE("at an unknown time, code is known where all versions that have code have the same") {
    constexpr std::size_t addresses = 40;
    std::mt19937 numbers{1};
    auto const below = [&](unsigned count) { return static_cast<unsigned>(numbers() % count); };
    for (unsigned round = 0; round < 2000; ++round) {
        traced::address_spaces spaces;
        std::vector<std::uint32_t> processes;
        std::array<std::set<std::string>, addresses> wanted;
        std::array<std::string, addresses> now;
        for (std::uint32_t process = 1; process <= 1 + below(3); ++process) {
            processes.push_back(process);
            now = {};
            for (unsigned change = 0; change < 1 + below(6); ++change) {
                auto const time = change + 1;
                if (below(4) == 0) {
                    spaces.exec(process, time);
                    now = {};
                }
                auto const first = below(addresses), size = 1 + below(addresses - first);
                bool const has_code = below(6) != 0;
                auto const path = std::string(1, static_cast<char>('a' + below(2)));
                // Mostly where another mapping of the same file has the same bytes.
                auto const offset = first + (below(4) == 0 ? 1 : 0);
                spaces.map(process, first, file(size, path, offset), has_code, time, true);
                for (unsigned i = first; i < first + size; ++i) {
                    now[i] = has_code ? path + "+" + std::to_string(offset + i - first) : "";
                    if (has_code) { wanted[i].insert(now[i]); }
                }
            }
        }
        auto const space = spaces.space_of_any(processes);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < addresses; ++i) {
            auto const& all = wanted[i];
            auto const right = all.empty() ? "" : all.size() == 1 ? *all.begin() : "?";
            wrong += at(spaces, space, i) == right ? 0 : 1;
        }
        CAPTURE(round);
        REQUIRE(wrong == 0);
        CHECK(spaces.space_of_any(processes) == space);
    }
}

TEST_CASE("a mapping without a time over another one makes the code of both unknown") {
    traced::address_spaces spaces;
    spaces.map(1, 0x1000, file(0x2000, "a"), is_code, 0, false);
    spaces.map(1, 0x2000, file(0x2000, "b"), is_code, 0, false);
    spaces.map(1, 0x2000, file(0x2000, "b"), is_code, 0, false);  // the same again
    auto const space = spaces.space_of(spaces.versions_in(1, {}), ~std::uint64_t{0});
    CHECK(at(spaces, space, 0x1FFF) == "a+4095");
    CHECK(at(spaces, space, 0x2000) == "?");
    CHECK(at(spaces, space, 0x4000) == "");
}

TEST_CASE("mappings at the end of the address space") {
    traced::address_spaces spaces;
    constexpr auto all = ~std::uint64_t{0};
    spaces.map(1, all - 0xFFF, file(all, "a"), is_code, 1, true);
    spaces.map(2, all - 0x7FF, file(0x10, "b"), is_code, 1, true);
    auto const space = spaces.space_of_any({1, 2});
    CHECK(at(spaces, space, all - 0xFFF) == "a+0");
    CHECK(at(spaces, space, all - 0x7FF) == "?");
    CHECK(at(spaces, space, all - 0x7EF) == "a+2064");
}

TEST_CASE("many mappings that overlap end the search, and the code is not known") {
    traced::address_spaces spaces;
    std::vector<std::uint32_t> processes;
    for (std::uint32_t process = 1; process <= 100; ++process) {
        processes.push_back(process);
        for (std::uint32_t i = 0; i < 1000; ++i) {
            spaces.map(process, i * 64 + process % 2 * 32, file(32, "a"), is_code, 1, true);
        }
        spaces.map(process + 100, 0, file(1 << 20, "b"), is_code, 1, true);
        processes.push_back(process + 100);
    }
    auto const space = spaces.space_of_any(processes);
    bool const is_right = at(spaces, space, 64) == "?" || at(spaces, space, 64).empty();
    CHECK(is_right);
}
