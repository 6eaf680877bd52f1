// SPDX-License-Identifier: BSL-1.0
// Also tests/trace/binder_reference.cpp.
#include <ptspec/trace/binder.hpp>

#include <support/check_twice.hpp>
#include <support/made_stream.hpp>

#include <ptspec/trace/reader.hpp>

#include <string>

using namespace ptspec;
using test::made_stream;
using trace::execution_state;
using trace::owner;
using trace::resumption;
using trace::tracing;

namespace {

/// What the last packet of a stream belongs to, and the state after it.
struct last {
    trace::binding bound{};
    execution_state state{};
    bool binds_branches = false;

    [[nodiscard]] constexpr auto is(owner to, bool completes, rule broken = rule::none) const
        -> bool {
        return bound.to == to && bound.completes == completes && bound.broken == broken;
    }
};

constexpr auto last_of(made_stream const& stream) -> last {
    trace::reader from{stream.view(), trace::reader_options{.sync = true}};
    trace::binder binder;
    last found;
    while (auto const got = from.next()) {
        if (got.what != trace::item_type::packet) {
            binder.restart();
            continue;
        }
        found.bound = binder.add(got.packet, got.place());
    }
    found.state = binder.state();
    found.binds_branches = binder.binds_branches();
    return found;
}

}  // namespace

#define LAST(stream, ...)                                                                          \
    CHECK_TWICE([](auto value) {                                                                   \
        auto const last = last_of(value(made_stream{stream, engine::model_kind::manual}));         \
        return __VA_ARGS__;                                                                        \
    })

TEST_CASE("a PSB+ is from PSB to PSBEND (PKT-134)") {
    LAST("PSB", last.bound.in_psb_plus && !last.bound.completes);
    LAST("PSB 3d1000 0223", last.bound.in_psb_plus);
    LAST("PSB 0223", last.bound.in_psb_plus);
    LAST("PSB 3d1000 0223 CBR", !last.bound.in_psb_plus);
}

TEST_CASE("the status of a PSB+ is known afterwards: the next one repeats it (GEN-344)") {
    LAST("PSB 3d1000 9920 0223 PSB 3d1000 9920", last.is(owner::status, true));
    LAST("PSB 3d1000 9920 0223 PSB 3d1000 9921", last.is(owner::status, true, rule::GEN_344));
    LAST("PSB 3d1000 9901 0223 PSB 3d1000 9902", last.is(owner::status, true, rule::GEN_344));
    LAST("ON 06 PSB 9902", last.is(owner::status, true, rule::GEN_344) && !last.bound.is_note);
    LAST("ON 0243001000000000 PSB 0243002000000000",
         last.is(owner::status, true, rule::GEN_344) && last.bound.is_note);
}

TEST_CASE("a PSB+ is bound whole if it says what the packets before it said (GEN-344)") {
    CHECK_TWICE([](auto value) {
        auto const binds = [&](char const* before, char const* whole) {
            made_stream const stream{value(before), engine::model_kind::manual};
            trace::reader from{stream.view(), trace::reader_options{.sync = true}};
            trace::binder binder;
            while (auto const got = from.next()) { (void)binder.add(got.packet, got.place()); }
            made_stream const more{whole, engine::model_kind::manual};
            trace::reader status{more.view(), trace::reader_options{.sync = true}};
            trace::psb_plus read;
            while (auto const got = status.next()) { read.add(got.packet, got.place()); }
            return binder.try_psb_plus(read);
        };
        char const* const on = "ON 06 0243001000000000";
        return binds(on, "PSB 3d1000 9901 0223") &&
               binds(on, "PSB 3d1000 9901 0243001000000000 0223") &&
               !binds(on, "PSB 3d1000 9902 0223") &&
               !binds(on, "PSB 3d1000 9901 0243002000000000 0223") && !binds(on, "PSB 9901 0223") &&
               !binds("ON 06 9901", "PSB 3d1000 9901 0223") &&
               !binds("ON 06 02f3", "PSB 3d1000 9901 0223") && binds("ON 06 01", "PSB 9902 0223") &&
               !binds("ON 06 01", "PSB 3d1000 9901 0223") && !binds("PSB", "PSB 3d1000 0223");
    });
}

TEST_CASE("a packet of a PSB+ reports the state (PKT-134,136)") {
    LAST("PSB CBR", last.is(owner::none, true) && last.bound.in_psb_plus);
    LAST("PSB 024301a000000000", last.is(owner::status, true) && last.bound.in_psb_plus &&
                                     last.state.cr3 == 0xA000 << 4 && last.state.non_root);
    LAST("PSB 9922", last.is(owner::status, true));
    LAST("ON", last.binds_branches == false && last.state.enabled == tracing::entering);
    LAST("ON 06", last.is(owner::branch, true) && last.state.enabled == tracing::on &&
                      last.binds_branches && last.state.code_bits == 64);
    LAST("OFF", last.state == execution_state{.enabled = tracing::off});
}

TEST_CASE("the state after packets outside of a PSB+ (PKT-081,082,083,086,163,224)") {
    LAST("ON 9902 2d0020", last.state.code_bits == 32 && last.is(owner::far_transfer, true));
    LAST("ON 024300a000000000", last.is(owner::paging, true) && last.state.has_cr3 &&
                                    last.state.cr3 == 0xA'0000 && !last.state.non_root);
    LAST("OFF 024301a000000000", last.is(owner::paging, true) && last.state.non_root);
    LAST("ON 02c80500000000", last.is(owner::paging, true) && last.state.vmcs == 0x5000);
    LAST("ON 9921 3d1010", last.is(owner::transaction, true) && last.state.transaction);
    LAST("ON 9905 3d1010", last.is(owner::interrupt_flag, true) && last.state.interrupts);
    LAST("ON 01", last.is(owner::branch, true) && last.state.enabled == tracing::off);
    LAST("OFF 9901 310030", last.is(owner::enable, true) && last.state.enabled == tracing::on);
}

TEST_CASE("who consumes a FUP (PKT-273)") {
    LAST("ON 02f3 3d1010", last.is(owner::overflow, true));
    LAST("ON 9920 3d1010", last.is(owner::transaction, true));
    LAST("ON 9922 3d1010", last.is(owner::transaction_abort, false));
    LAST("ON 9922 3d1010 2d0020", last.is(owner::transaction_abort, true));
    LAST("ON 02b20100000000000000 3d1010", last.is(owner::ptwrite, true));
    LAST("ON 02e2 3d1010", last.is(owner::power, true));
    LAST("ON 026384 02b3 3d1010", last.is(owner::pebs, true));
    LAST("ON 0213810e 3d1010", last.is(owner::control_flow, true));
    LAST("ON d9c0010000 3d1010", last.is(owner::trigger, true));
    LAST("ON 3d1010", last.is(owner::asynchronous, false));
    LAST("ON 3d1010 01", last.is(owner::asynchronous, true));
    LAST("ON 3d1010 9901", last.is(owner::asynchronous, false));
    LAST("ON 3d1010 024301a000000000", last.is(owner::asynchronous, false));
    LAST("ON 1d", last.is(owner::asynchronous, true, rule::PKT_078));
    LAST("OFF 3d1010", last.is(owner::asynchronous, false, rule::GEN_342));
    LAST("ON 3d1010 3d2010", last.is(owner::asynchronous, false, rule::PKT_077));
}

TEST_CASE("timing packets and PADs disturb nothing (PKT-272)") {
    for (auto const* between : {"5901", "02732000000000", "1900100000000000", "02032000", "07 02",
                                "00", "02c3880100000000000000"}) {
        std::string const stream = std::string{"ON 02b20100000000000000 "} + between + " 3d1010";
        CHECK(last_of(made_stream{stream, engine::model_kind::manual}).is(owner::ptwrite, true));
    }
}

TEST_CASE("whether tracing resumed at the IP of a PSB+ after an OVF (GEN-228,343)") {
    LAST("ON 02f3 ON",
         last.bound.resumed == resumption::possible && last.state.enabled == tracing::entering);
    LAST("ON 02f3 ON ON", last.bound.resumed == resumption::none);
    LAST("ON 02f3 ON 06", last.bound.resumed == resumption::confirmed && last.binds_branches);
    LAST("ON 02f3 ON 2d0020", last.bound.resumed == resumption::confirmed);
    LAST("ON 02f3 ON 01", last.bound.resumed == resumption::confirmed);
    LAST("ON 02f3 ON 3d1010",
         last.is(owner::overflow, true) && last.bound.resumed == resumption::withdrawn);
    LAST("ON 02f3 ON 02f3", last.bound.resumed == resumption::withdrawn);
    LAST("ON 02f3 ON 310030", last.bound.resumed == resumption::refuted);
    LAST("ON 02f3 ON 0283",
         last.is(owner::trace_stop, true) && last.bound.resumed == resumption::refuted);
    LAST("ON 02f3 ON OFF", last.bound.resumed == resumption::refuted);
    LAST("ON 02f3 310030", last.bound.resumed == resumption::none);
}

TEST_CASE("packets bind the same one by one and as a visitor gets them") {
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{
            "ON 06 3d1010 024301a000000000 2d0020 5901 01 OFF 310030 02f3 3d1010 02b201000000000000"
            "00 3d1010 9921 3d1010 06",
            engine::model_kind::manual});
        trace::reader from{stream.view(), trace::reader_options{.sync = true}};
        trace::binder one;
        trace::binder two;
        while (auto const got = from.next()) {
            auto const first = one.add(got.packet, got.place());
            auto const second = packet::visit(
                [&](auto const& which) { return two.add(which, got.place()); }, got.packet);
            if (first.to != second.to || first.completes != second.completes ||
                first.broken != second.broken || one.state() != two.state()) {
                return false;
            }
        }
        return one.state().enabled == tracing::on && one.state().transaction;
    });
}

TEST_CASE("two binders agree if both bind all later packets alike") {
    CHECK_TWICE([](auto value) {
        using packet::ip_bytes;
        auto const pge = value(packet::tip_pge::of(ip_bytes::sign_48, 0x1000));
        trace::binder one;
        trace::binder two;
        bool const at_first = one.agrees_with(two);
        (void)one.add(pge, trace::packet_place{0, 0x1000, 7});
        bool const on = one.agrees_with(two);
        (void)two.add(pge, trace::packet_place{100, 0x1000, 7});
        bool const both = one.agrees_with(two);
        (void)two.add(packet::ovf{}, trace::packet_place{107, 0x1000, 2});
        return at_first && !on && both && !one.agrees_with(two);
    });
}
