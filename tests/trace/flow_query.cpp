// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/flow_query.hpp>

#include <support/check_twice.hpp>
#include <support/made_stream.hpp>

using namespace ptspec;
using test::made_stream;
using trace::event_type;
using trace::no_answer;

namespace {

constexpr auto query_of(byte_view bytes) -> trace::flow_query<> {
    trace::flow_query<> made{trace::event_reader<>{bytes}};
    // The state of the first PSB+.
    while (made.pending() != nullptr) { made.pop(); }
    return made;
}

}  // namespace

TEST_CASE("branches and targets in the order of the code (PKT-277)") {
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{"ON 0c 2d0020 06 0d", engine::model_kind::manual});
        auto from = query_of(stream.view());
        bool const first = from.take_branch().taken && from.branches_left() == 1 &&
                           !from.take_branch().taken;
        auto const wrong = from.take_branch();
        auto const target = from.take_target();
        bool const second = wrong.what == no_answer::branch && target.ip == 0x2000 && target.has_ip;
        bool const third = from.take_target().what == no_answer::branch && from.take_branch().taken;
        auto const hidden = from.take_target();
        return first && second && third && hidden && !hidden.has_ip &&
               from.take_branch().what == no_answer::end &&
               from.take_target().what == no_answer::end;
    });
}

TEST_CASE("a TIP may come after a TNT that has later branches (PKT-275, GEN-145)") {
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{"ON 0c 2d0020 01", engine::model_kind::manual});
        auto from = query_of(stream.view());
        bool const first = from.take_branch().taken;
        auto const target = from.take_target();
        return first && target && target.ip == 0x2000 && from.branches_left() == 1 &&
               from.pending() == nullptr && !from.take_branch().taken &&
               from.pending()->what == event_type::disabled;
    });
}

TEST_CASE("an event comes before the next branch, and is removed by pop()") {
    CHECK_TWICE([](auto value) {
        auto const stream = value(
            made_stream{"ON 04 3d1010 2d0020 06", engine::model_kind::manual});
        auto from = query_of(stream.view());
        from.pop();  // nothing is pending
        bool const first = from.take_branch() && from.take_branch().what == no_answer::event &&
                           from.take_target().what == no_answer::event;
        auto const* const event = from.pending();
        bool const is_right = event != nullptr && event->what == event_type::async_branch &&
                              event->ip == 0x1010 && event->to == 0x2000;
        from.pop();
        return first && is_right && from.pending() == nullptr && from.take_branch().taken;
    });
}

TEST_CASE("after an OVF the IP of a PSB+ is an event, and branches follow (GEN-343)") {
    CHECK_TWICE([](auto value) {
        auto const stream = value(
            made_stream{"ON 06 02f3 ON 0c 06 2d0050", engine::model_kind::manual});
        trace::event_reader<> const events{stream.view(), {}, cpu::quirks(cpu::quirk::skd010)};
        trace::flow_query<> from{events};
        while (from.pending() != nullptr) { from.pop(); }
        bool const before = from.take_branch().taken;
        uint64_t resumed_at = 0;
        while (auto const* const event = from.pending()) {
            if (event->what == event_type::resumed) { resumed_at = event->ip; }
            from.pop();
        }
        bool const branches = from.take_branch().taken && !from.take_branch().taken &&
                              from.take_branch().taken;
        return before && resumed_at == 0x1000 && branches && from.take_target().ip == 0x5000 &&
               from.take_branch().what == no_answer::end;
    });
}

TEST_CASE("a query skips branches at unknown IPs: after damage, and without a PSB (PKT-254)") {
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{"ON 01 06 04 2d0020 0c", engine::model_kind::manual});
        trace::flow_query<> from{trace::event_reader<>{stream.view()}};
        trace::event last{};
        while (auto const* const event = from.pending()) {
            last = *event;
            from.pop();
        }
        bool const resumed = last.what == event_type::resumed && last.ip == 0x2000;
        auto const start = value(made_stream{"06 06 2d0020 0c", engine::model_kind::manual});
        trace::event_reader<> const events{start.view(), {}, {}, {}, {.sync = false}};
        trace::flow_query<> two{events};
        return resumed && from.take_branch().taken && two.take_target() && two.take_branch().taken;
    });
}

TEST_CASE("a query of a trace in chunks asks for input") {
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{"OFF 310030 06 2d0020", engine::model_kind::manual});
        trace::flow_query<> from{trace::event_reader<>{}};
        bool const empty = from.take_branch().what == no_answer::need_input &&
                           from.feed(stream.view().first(24));
        while (from.pending() != nullptr) { from.pop(); }
        bool const more = from.take_branch().what == no_answer::need_input &&
                          from.feed(stream.view().from(24));
        while (from.pending() != nullptr) { from.pop(); }
        bool const branch = from.take_branch().taken && from.take_target().ip == 0x2000;
        bool const last = from.take_target().what == no_answer::need_input;
        from.finish();
        return empty && more && branch && last && from.take_target().what == no_answer::end;
    });
}
