// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/read_result.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;

TEST_CASE("each error has a sentence of its own") {
    CHECK_TWICE([](auto value) {
        constexpr unsigned count = underlying(read_error::bad_record_type) + 1;
        bool right = true;
        for (unsigned one = 0; one < count; ++one) {
            auto const text = describe(static_cast<read_error>(value(one)));
            right = right && text.size() != 0 && !(text == "unknown error");
            for (unsigned other = 0; other < one; ++other) {
                right = right && !(text == describe(static_cast<read_error>(other)));
            }
        }
        return right && describe(static_cast<read_error>(value(count))) == "unknown error";
    });
}

TEST_CASE("a result is true without an error") {
    CHECK_TWICE([](auto value) {
        return read_status{} && !read_status{value(read_error::truncated), 3} &&
               read_status{value(read_error::none), 3};
    });
}
