// SPDX-License-Identifier: BSL-1.0
#include <support/check_twice.hpp>

#include <ptspec/trace/detail/event_queue.hpp>

#include <string_view>

using namespace ptspec;
using trace::event_type;
using queue = trace::detail::event_queue<16>;

namespace {

constexpr auto event_at(uint64_t offset, event_type what = event_type::frequency) -> trace::event {
    return {.what = what, .offset = offset};
}
/// The offsets of the events are the digits of `expected`.
constexpr auto has_offsets(queue const& all, std::string_view expected) -> bool {
    if (all.count != expected.size()) { return false; }
    for (unsigned i = 0; i < all.count; ++i) {
        if (all.all[i].offset != static_cast<uint64_t>(expected[i] - '0')) { return false; }
    }
    return true;
}
constexpr auto of_offsets(std::string_view offsets) -> queue {
    queue made;
    for (char const digit : offsets) { made.put(event_at(static_cast<uint64_t>(digit - '0'))); }
    return made;
}

}  // namespace

TEST_CASE("events are pending, then ready; those that were returned are removed") {
    CHECK_TWICE([](auto value) {
        auto all = value(of_offsets("123"));
        bool const pending = !all.has_ready() && !all.is_ready() && all.first_pending() == 0;
        all.complete(false);
        bool const ready = all.has_ready() && all.is_ready() && all.first_pending() == 3;
        all.put(event_at(4));
        all.first = 3;
        all.compact();
        return pending && ready && has_offsets(all, "4") && all.first == 0 && all.ready == 0;
    });
}

TEST_CASE("IPs and times are set for pending events only") {
    CHECK_TWICE([](auto value) {
        auto all = value(of_offsets("1"));
        all.complete(false);
        all.put(event_at(2));
        all.set_ip_of_pending(0x1000);
        all.set_time_of_pending({.tsc = 7});
        bool const set = !all.all[0].has_ip && all.all[0].when.is_absent() && all.all[1].has_ip &&
                         all.all[1].ip == 0x1000 && all.all[1].when.tsc == 7;
        all.hide_ips();
        bool const stays = all.all[1].has_ip;
        all.complete(false);
        all.hide_ips();
        return set && stays && !all.all[1].has_ip && all.all[1].ip == 0;
    });
}

TEST_CASE("an event is inserted, or returned first") {
    CHECK_TWICE([](auto value) {
        auto all = value(of_offsets("12"));
        all.insert(1, event_at(3));
        bool const inserted = has_offsets(all, "132") && all.held == 1;
        auto other = value(of_offsets("12"));
        other.put_first(event_at(5));
        return inserted && has_offsets(other, "512") && other.ready == 1 &&
               other.first_pending() == 1;
    });
}

TEST_CASE("held events: the last `resumed`, or all, did not happen (GEN-343)") {
    CHECK_TWICE([](auto value) {
        queue all;
        all.put(event_at(1, event_type::resumed));
        all.put(event_at(2));
        all.put(event_at(3, event_type::resumed));
        all.put(event_at(4));
        all.complete(true);
        all.put(event_at(5, event_type::resumed));
        all = value(all);
        bool const found = all.last_resumed(0) == 2 && all.held == 4 && !all.has_ready();
        auto some = all;
        some.withdraw(false);
        auto none = all;
        none.withdraw(true);
        none.release();
        return found && has_offsets(some, "1245") && some.held == 3 && has_offsets(none, "245") &&
               none.ready == 2 && none.held == 0;
    });
    CHECK_TWICE([](auto value) {
        auto all = value(of_offsets("12"));
        all.complete(true);
        return all.last_resumed(0) == 2;
    });
}

TEST_CASE("a FUP of the OVF: the pending event is `resumed`, its MODE.Exec stays pending") {
    CHECK_TWICE([](auto value) {
        queue all;
        all.put(event_at(1, event_type::async_branch));
        all.put(event_at(2, event_type::exec_mode));
        all = value(all);
        bool const ends = all.ends_in_mode();
        all.resume_at_fup();
        return ends && all.all[0].what == event_type::resumed && all.held == 1 &&
               all.first_pending() == 1;
    });
}

TEST_CASE("a full queue: held events are ready before those that are `resumed`") {
    CHECK_TWICE([](auto value) {
        queue all;
        all.put(event_at(1, event_type::resumed));
        all.put(event_at(2));
        all.put(event_at(3, event_type::resumed));
        all.put(event_at(4));
        all.complete(true);
        all = value(all);
        all.release_some();
        queue only;
        only.put(event_at(1, event_type::resumed));
        only.put(event_at(2, event_type::resumed));
        only.complete(true);
        only = value(only);
        only.release_some();
        return has_offsets(all, "2413") && all.ready == 2 && all.held == 2 && only.ready == 1 &&
               only.held == 1;
    });
}
