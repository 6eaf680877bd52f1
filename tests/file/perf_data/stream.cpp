// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/stream.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;

TEST_CASE("pieces of several threads are of no thread") {
    CHECK_TWICE([](auto value) {
        auto const tid = [](unsigned second) {
            piece const pieces[] = {{.tid = 5}, {.tid = second}};
            return stream{pieces, 2}.tid();
        };
        return tid(value(5U)) == 5 && tid(value(6U)) == no_tid;
    });
}

TEST_CASE("a list has a stream for each idx, and for the samples of each processor and thread") {
    CHECK_TWICE([](auto value) {
        piece const pieces[] = {{.idx = 0},
                                {.idx = 0},
                                {.idx = value(1U)},
                                {.idx = 1, .cpu = 1, .is_sample = true},
                                {.idx = 1, .is_sample = true}};
        stream_list list;
        list.first = pieces;
        list.piece_count = 5;
        auto at = list.begin();
        bool const has_both = (*at).size() == 2 && (*at).idx() == 0;
        ++at;
        bool const has_one = (*at).size() == 1 && (*at).idx() == 1 && !(*at)[0].is_sample;
        ++at;
        bool const has_cpu = (*at).size() == 1 && (*at).cpu() == 1;
        ++at;
        ++at;
        return list.size() == 4 && has_both && has_one && has_cpu && at == list.end();
    });
}
