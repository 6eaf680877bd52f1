// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/output/result.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using engine::write_result;

TEST_CASE("the default write_result is all 0, and true") {
    CHECK_TWICE([](auto value) {
        auto const done = value(write_result{});
        return done && done.taken == 0 && done.stored == 0 && done.lost == 0 && done.pmis == 0 &&
               done.first == 0 && done.last == 0 && !done.has_address && !done.fault.happened;
    });
}

TEST_CASE("write_result is true unless a port fault happened") {
    CHECK_TWICE([](auto value) {
        return value(write_result{.taken = 5, .lost = 5}) &&
               !value(write_result{.taken = 5, .fault = {true, 0x1000}}) &&
               !value(write_result{.fault = {true, 0}});
    });
}

TEST_CASE("two results are equal if all members are equal") {
    CHECK_TWICE([](auto value) {
        write_result const one{
            .taken = 1, .stored = 2, .lost = 3, .pmis = 4, .first = 5, .last = 6};
        auto other = [&](auto change) {
            auto copy = value(one);
            change(copy);
            return copy;
        };
        return value(one) == one && other([](auto& it) { ++it.taken; }) != one &&
               other([](auto& it) { ++it.stored; }) != one &&
               other([](auto& it) { ++it.lost; }) != one &&
               other([](auto& it) { ++it.pmis; }) != one &&
               other([](auto& it) { it.first += 1; }) != one &&
               other([](auto& it) { it.last += 1; }) != one &&
               other([](auto& it) { it.has_address = true; }) != one &&
               other([](auto& it) { it.fault.happened = true; }) != one;
    });
}

TEST_CASE("count_stored() adds the bytes, keeps the first address and updates the last") {
    CHECK_TWICE([](auto value) {
        write_result done{.taken = 2, .lost = 2, .pmis = 1, .first = 9, .last = 9};
        done.count_stored(value(uint64_t{0x1'2FFD}), 3);
        bool const one = done == write_result{.taken = 5,
                                              .stored = 3,
                                              .lost = 2,
                                              .pmis = 1,
                                              .first = 0x1'2FFD,
                                              .last = 0x1'2FFF,
                                              .has_address = true};
        done.count_stored(value(uint64_t{0x4000}), 1);
        return one && done == write_result{.taken = 6,
                                           .stored = 4,
                                           .lost = 2,
                                           .pmis = 1,
                                           .first = 0x1'2FFD,
                                           .last = 0x4000,
                                           .has_address = true};
    });
    CHECK_TWICE([](auto value) {  // address 0 is a valid first address
        write_result done = value(write_result{});
        done.count_stored(0, 1);
        done.count_stored(0x1000, 2);
        return done ==
               write_result{
                   .taken = 3, .stored = 3, .first = 0, .last = 0x1001, .has_address = true};
    });
}

TEST_CASE("the sum of two results has both counts, the whole span and the last fault") {
    CHECK_TWICE([](auto value) {
        auto sum = value(write_result{.taken = 1, .stored = 2, .lost = 3, .pmis = 4});
        sum += value(write_result{.taken = 16, .stored = 32, .lost = 48, .pmis = 64});
        return sum == write_result{.taken = 17, .stored = 34, .lost = 51, .pmis = 68};
    });
    CHECK_TWICE([](auto value) {
        write_result const nowhere{.first = 7, .last = 7};  // no valid addresses
        write_result const one{.first = 0x1000, .last = 0x1FFF, .has_address = true};
        write_result const two{.first = 0x4000, .last = 0x4003, .has_address = true};
        auto first = value(nowhere);
        first += one;
        auto both = first;
        both += value(nowhere);
        both += two;
        return first.first == 0x1000 && first.last == 0x1FFF && first.has_address &&
               both.first == 0x1000 && both.last == 0x4003 && both.has_address;
    });
    CHECK_TWICE([](auto value) {
        auto sum = value(write_result{.fault = {true, 0x1000}});
        sum += value(write_result{});
        bool const free = static_cast<bool>(sum);
        sum += value(write_result{.fault = {true, 0x2000}});
        return free && sum.fault == port_fault{true, 0x2000};
    });
}

TEST_CASE("an address is true if it is known, even address 0") {
    using engine::output_address;
    CHECK_TWICE([](auto value) {
        output_address const zero = value(output_address{true, 0});
        return zero && !output_address{} && zero != output_address{} &&
               zero == output_address{true, 0} && zero != output_address{true, 1};
    });
}

TEST_CASE("totals sum the counts of writes, and are equal if all three counts are") {
    using engine::totals;
    CHECK_TWICE([](auto value) {
        totals all;
        all += value(write_result{.taken = 9, .stored = 5, .lost = 4, .pmis = 1, .first = 7});
        totals const then = all;
        all += value(write_result{.taken = 5, .stored = 2, .lost = 3, .pmis = 6, .last = 7});
        return then == totals{5, 4, 1} && all == totals{7, 7, 7} &&
               (totals{} += write_result{.pmis = 2}).pmis == 2 && all != totals{6, 7, 7} &&
               all != totals{7, 6, 7} && all != totals{7, 7, 6};
    });
}
