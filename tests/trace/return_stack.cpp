// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/return_stack.hpp>
#include <ptspec/base/raw_bits.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

using namespace ptspec;
using trace::return_stack;

namespace {

constexpr auto all_bits = low_bits(64);

}  // namespace

TEST_CASE("a return pops the most recent call") {  // GEN-130, GEN-132
    CHECK_TWICE([](auto value) {
        return_stack calls;
        calls.push(value(std::uint64_t{0x10}));
        calls.push(value(std::uint64_t{0x20}));
        return calls.size() == 2 && calls[0] == 0x10 && calls[1] == 0x20 &&
               calls.pop(0x20, all_bits) && calls.pop(0x10, all_bits) && calls.size() == 0;
    });
}

TEST_CASE("a mismatching return pops the entry") {  // GEN-133, GEN-134
    CHECK_TWICE([](auto value) {
        return_stack calls;
        calls.push(0x10);
        calls.push(0x20);
        return !calls.pop(value(std::uint64_t{0x21}), all_bits) && calls.size() == 1 &&
               calls.pop(0x10, all_bits);
    });
    CHECK_TWICE([](auto value) {  // or keeps all entries, or clears them
        using trace::ret_mismatch;
        bool good = true;
        for (auto const how : {ret_mismatch::keep, ret_mismatch::clear}) {
            return_stack calls;
            calls.push(0x10);
            calls.push(0x20);
            unsigned const left = how == ret_mismatch::keep ? 2 : 0;
            good = good && !calls.pop(value(std::uint64_t{0x21}), all_bits, how) &&
                   calls.size() == left && calls.pop(0x20, all_bits, how) == (left == 2) &&
                   calls.size() == (left == 2 ? 1 : 0);
        }
        return good;
    });
    CHECK_TWICE([](auto value) {  // an empty stack matches nothing
        return_stack calls;
        return !calls.pop(value(std::uint64_t{0}), all_bits) && calls.size() == 0;
    });
}

TEST_CASE("the 65th call drops the oldest") {  // GEN-131
    CHECK_TWICE([](auto value) {
        return_stack calls;
        for (std::uint64_t i = 0; i < value(std::uint64_t{65}); ++i) { calls.push(0x1000 + i); }
        bool good = calls.size() == 64 && calls[0] == 0x1001 && calls[63] == 0x1040;
        for (std::uint64_t i = 65; i-- > 1;) { good = good && calls.pop(0x1000 + i, all_bits); }
        return good && !calls.pop(0x1000, all_bits);
    });
    CHECK_TWICE([](auto value) {  // the ring index wraps several times
        return_stack calls;
        bool good = true;
        for (std::uint64_t i = 0; i < value(std::uint64_t{200}); ++i) {
            calls.push(i);
            calls.push(i + 1000);
            good = good && calls.pop(i + 1000, all_bits);
        }
        for (std::uint64_t i = 200; i-- > 137;) { good = good && calls.pop(i, all_bits); }
        return good && calls.size() == 0;
    });
}

TEST_CASE("only the bits that were popped are compared") {  // GEN-137
    CHECK_TWICE([](auto value) {
        return_stack calls;
        calls.push(value(std::uint64_t{0x1'0000'1005}));
        calls.push(value(std::uint64_t{0x1'0000'1005}));
        calls.push(value(std::uint64_t{0x1'0001'1005}));
        return calls.pop(0x1005, low_bits(16)) && calls.pop(0x1005, low_bits(32)) &&
               !calls.pop(0x1005, all_bits);
    });
}

TEST_CASE("clears_stack suits decoders that pop on every RET and on compressed RETs only") {
    // GEN-133, GEN-134
    CHECK_TWICE([](auto value) {
        return_stack calls;
        return_stack pops_always;      // as perf
        return_stack pops_compressed;  // as libipt
        test::random_numbers random{value(std::uint64_t{2026})};
        bool good = true;
        for (unsigned i = 0; i < 2000; ++i) {
            std::uint64_t const seed = random();
            std::uint64_t const to = seed >> 62;  // few, so that many match by chance
            if ((seed >> 40) % 5 < 2) {
                calls.push(to);
                pops_always.push(to);
                pops_compressed.push(to);
            } else {
                bool const compressed = calls.pop(to, all_bits, trace::ret_mismatch::clear);
                bool const top_leads_there = pops_always.pop(to, all_bits);
                good = good && (!compressed || top_leads_there);
                if (compressed) { good = good && pops_compressed.pop(to, all_bits); }
            }
        }
        return good;
    });
}

TEST_CASE("clear() empties a stack; stacks with the same entries are equal") {  // GEN-135
    CHECK_TWICE([](auto value) {
        return_stack one;
        return_stack two;
        for (std::uint64_t i = 0; i < value(std::uint64_t{70}); ++i) { one.push(i); }
        for (std::uint64_t i = 6; i < value(std::uint64_t{70}); ++i) { two.push(i); }
        bool good = one == two;
        two.push(1);
        good = good && !(one == two);
        two.clear();
        good = good && two.size() == 0 && two == return_stack{} && !(two == one);
        two.push(5);
        one.clear();
        one.push(6);
        return good && !(one == two);
    });
}

TEST_CASE("a direct CALL of the next instruction pushes nothing (GEN-132)") {
    CHECK_TWICE([](auto value) {
        return !trace::pushes_return(value(uint64_t{0x1005}), 0x1005) &&
               trace::pushes_return(value(uint64_t{0x1006}), 0x1005);
    });
}

TEST_CASE("a RET pops as many bits as its code has (GEN-137)") {
    CHECK_TWICE([](auto value) {
        return trace::popped_bits(value(cpu::code_width::bits_16)) == 0xFFFF &&
               trace::popped_bits(value(cpu::code_width::bits_32)) == 0xFFFF'FFFF &&
               trace::popped_bits(value(cpu::code_width::bits_64)) == ~uint64_t{0};
    });
}

TEST_CASE(
    "several pushes and pops at once are the same as one after another, also when it is full") {
    std::mt19937_64 numbers{1};
    auto const roll = [&](std::uint64_t sides) { return numbers() % sides; };
    unsigned full = 0;
    unsigned deep = 0;
    for (int i = 0; i < 20'000; ++i) {
        trace::return_stack one;
        for (auto left = roll(2) == 0 ? roll(80) : 60 + roll(10); left-- > 0;) {
            one.push(numbers());
        }
        auto two = one;
        // What a walk would note of these pushes and pops.
        std::vector<std::uint64_t> own;
        unsigned taken = 0;
        int level = 0;
        int depth = 0;
        for (auto left = roll(30); left-- > 0;) {
            if (roll(100) < 55) {
                own.push_back(numbers());
                one.push(own.back());
                depth = std::max(depth, ++level);
            } else if (one.size() != 0) {
                (void)one.take();
                --level;
                if (own.empty()) {
                    ++taken;
                } else {
                    own.pop_back();
                }
            }
        }
        auto const size = two.size();
        REQUIRE(two.size_after(static_cast<unsigned>(depth)) >= taken);
        two.replace(taken, static_cast<unsigned>(own.size()), static_cast<unsigned>(depth),
                    [&](unsigned at) { return own[at]; });
        REQUIRE(one == two);
        full += size + static_cast<unsigned>(depth) > trace::return_stack::max_count ? 1 : 0;
        deep += taken > 2 ? 1 : 0;
    }
    CHECK(full > 1000);
    CHECK(deep > 1000);
}
