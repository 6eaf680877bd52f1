// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/address_filter.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using test::letters;

TEST_CASE("address filters, as perf record writes them") {
    CHECK_TWICE([](auto value) {
        auto const text = value(letters(
            "filter 0x1f0/0x200@/bin/true,stop 16/8@/bin/ls\n filter 0xffffffff81000000/4096"));
        address_filter_reader all{text};
        auto const one = all.next();
        auto const two = all.next();
        auto const three = all.next();
        return one && !one.is_stop && one.address == 0x1F0 && one.size == 0x200 &&
               one.file.size() == 9 && one.file[8] == 'e' && two && two.is_stop &&
               two.address == 16 && two.size == 8 && two.file.size() == 7 && three &&
               !three.is_stop && three.address == 0xFFFF'FFFF'8100'0000 && three.size == 4096 &&
               three.file.empty() && !all.next() && !all.is_bad();
    });
}

TEST_CASE("text of another form is no filter, and ends them") {
    CHECK_TWICE([](auto value) {
        auto const is_bad = [&](auto const& text) {
            address_filter_reader all{text};
            return !all.next() && all.is_bad() && !all.next();
        };
        auto const none = [&](auto const& text) {
            address_filter_reader all{text};
            return !all.next() && !all.is_bad();
        };
        return is_bad(value(letters("start 0x10/8"))) && is_bad(value(letters("filter 0x10"))) &&
               is_bad(value(letters("filter"))) && is_bad(value(letters("filter 0x/8"))) &&
               is_bad(value(letters("filter 10/0"))) && is_bad(value(letters("filter 1/2/bin"))) &&
               is_bad(value(letters("filter 1/2@"))) && is_bad(value(letters("filterx 1/2"))) &&
               is_bad(value(letters("filter 0x10000000000000000/2"))) &&
               is_bad(value(letters("filter 18446744073709551616/2"))) &&
               is_bad(value(letters("filter main"))) && none(value(letters(" ,\n"))) &&
               none(byte_view{});
    });
}
