// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/detail/fast_ips.hpp>

#include <support/check_twice.hpp>

#include <cstdint>

using namespace ptspec;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;

namespace {

constexpr auto running_state() -> access::msr_state {
    access::msr_state now;
    now.ctl = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true}, ctl::BranchEn{true});
    now.status = status{}.with(status::TriggerEn{true}, status::ContextEn{true},
                               status::FilterEn{true});
    return now;
}
}  // namespace

TEST_CASE("fast_ips_around() returns IPs with FilterEn 1 and no TraceStop") {  // GEN-080..085
    using engine::ip_span;
    using engine::fast_ips_around;
    constexpr auto all = ~std::uint64_t{0};
    constexpr auto with = [](reg::addr_cfg zero, access::address_range const& first,
                             reg::addr_cfg one, access::address_range const& second) {
        auto now = running_state();
        now.ctl = now.ctl.with(ctl::ADDR0_CFG{zero}, ctl::ADDR1_CFG{one});
        now.addr[0] = first;
        now.addr[1] = second;
        return now;
    };
    constexpr auto off = reg::addr_cfg::off;
    constexpr auto filter = reg::addr_cfg::filter;
    constexpr auto stop = reg::addr_cfg::trace_stop;
    CHECK_TWICE([=](auto value) {
        access::address_range const low{{0x2000}, {value(std::uint64_t{0x2FFF})}};
        access::address_range const high{{0x5000}, {0x5FFF}};
        auto const two = with(filter, low, filter, high);
        auto const stops = with(stop, low, stop, high);
        auto const both = with(filter, {{0x2000}, {0x5FFF}}, stop, {{0x3000}, {0x3FFF}});
        return fast_ips_around(with(off, low, off, high), 0x2000) == ip_span{0, all} &&
               fast_ips_around(two, 0x2000) == ip_span{0x2000, 0x2FFF} &&
               fast_ips_around(two, 0x2FFF) == ip_span{0x2000, 0x2FFF} &&
               fast_ips_around(two, 0x5800) == ip_span{0x5000, 0x5FFF} &&
               fast_ips_around(two, 0x3000) == ip_span{} &&
               fast_ips_around(stops, 0x1FFF) == ip_span{0, 0x1FFF} &&
               fast_ips_around(stops, 0x3000) == ip_span{0x3000, 0x4FFF} &&
               fast_ips_around(stops, 0x6000) == ip_span{0x6000, all} &&
               fast_ips_around(stops, 0x2000) == ip_span{} &&
               fast_ips_around(both, 0x2FFF) == ip_span{0x2000, 0x2FFF} &&
               fast_ips_around(both, 0x4000) == ip_span{0x4000, 0x5FFF} &&
               fast_ips_around(both, 0x3000) == ip_span{};
    });
    CHECK_TWICE([=](auto value) {
        return value(ip_span{}).size() == 0 && value(ip_span{0, all}).size() == all &&
               value(ip_span{1, all}).size() == all && value(ip_span{5, 5}).size() == 1 &&
               value(ip_span{0x2000, 0x2FFF}).size() == 0x1000 && ip_span{}.first > ip_span{}.last;
    });
    // Every IP in the span has FilterEn 1 and no TraceStop. With ordered ranges (A <= B) the IPs
    // next to the span do not.
    auto const is_right = [=](access::msr_state const& now, bool has_order) {
        auto const is_traced = [&](std::uint64_t ip) {
            auto const done = access::evaluate(cpu::preset::P_FUT, now, {.ip = ip}, ip);
            return done.after.filter && !done.trace_stop;
        };
        for (std::uint64_t from = 0; from < 8; ++from) {
            auto const span = fast_ips_around(now, from);
            auto const has = [&](std::uint64_t ip) { return span.first <= ip && ip <= span.last; };
            if (is_traced(from) != has(from)) { return false; }
            for (std::uint64_t to = 0; to < 8; ++to) {
                if (has(to) && !is_traced(to)) { return false; }
                bool const is_next = to + 1 == span.first || (to != 0 && to - 1 == span.last);
                if (has(from) && has_order && is_next && is_traced(to)) { return false; }
            }
        }
        return true;
    };
    unsigned wrong = 0;
    for (std::uint64_t i = 0; i < 6 * 6 * 6 * 6; ++i) {
        access::address_range const one{{i % 6}, {i / 6 % 6}};
        access::address_range const two{{i / 36 % 6}, {i / 216}};
        bool const has_order = one.a.raw <= one.b.raw && two.a.raw <= two.b.raw;
        wrong += is_right(with(filter, one, stop, two), has_order) ? 0 : 1;
        wrong += is_right(with(stop, one, filter, two), has_order) ? 0 : 1;
        wrong += is_right(with(stop, one, stop, two), has_order) ? 0 : 1;
    }
    CHECK(wrong == 0);
}
