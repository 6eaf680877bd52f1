// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/write/batch.hpp>

#include <support/check_twice.hpp>
#include <support/streams.hpp>

using namespace ptspec;
using test::bytes;
using test::join;
using trace::packet_batch;
using trace::psb_status;
using trace::writer_options;
using trace::writer_state;

TEST_CASE("a batch holds its packets and the state after them") {
    CHECK_TWICE([](auto value) {
        writer_options const how{};
        writer_state before;
        before.tnt = {2, value(uint64_t{1})};
        before.bytes = 100;
        packet_batch<> all{before, how};
        bool const empty = all.bytes().empty() && all.broken() == rule::none &&
                           all.state().bytes == 100 && all.state().tnt == before.tnt;
        all.branch(true);
        all.add(packet::cbr{});
        all.add_ip<packet::tip>(0x1000);
        return empty && all.bytes() == bytes(0x16, 0x02, 0x03, 0, 0, 0x6D, 0, 0x10, 0, 0, 0, 0) &&
               all.state().bytes == 112 && all.state().tnt.count == 0 &&
               all.state().tnt.bits == 0 && all.state().last_ip == 0x1000 &&
               all.state().has_last_ip;
    });
}

TEST_CASE("a batch reports the first broken rule and holds no packet after it") {
    CHECK_TWICE([](auto value) {
        writer_options const how{.pads = value(trace::pad_policy::within_words), .cyc = true};
        writer_state before;
        before.cycles = 9;
        packet_batch<> all{before, how};
        all.add(packet::cbr{});
        all.add(packet::tnt_short{});
        all.add(packet::bip{});
        all.add(packet::cbr{});
        return all.broken() == rule::PKT_033 && all.bytes() == bytes(0x02, 0x03, 0, 0) &&
               all.state().bytes == 4 && all.state().cycles == 9;
    });
}

TEST_CASE("the largest batch fits into its buffer (PKT-134,347)") {
    CHECK_TWICE([](auto value) {
        writer_options const how{.tnt_capacity = 47,
                                 .defers_tips = true,
                                 .pads = trace::pad_policy::within_words,
                                 .cyc = true};
        writer_state before;
        before.tnt = {46, value(uint64_t{1})};
        before.bytes = 1;
        before.deferred_count = writer_state::max_deferred;
        for (auto& ip : before.deferred) { ip = 0x8000'0000'0000; }
        before.deferred[1] = 0x1'0000'0000'0000;
        before.cycles = ~uint64_t{0};
        psb_status status;
        status.tsc = packet::tsc{};
        status.tma = packet::tma{};
        status.cbr = packet::cbr{};
        status.pip = packet::pip{};
        status.vmcs = packet::vmcs{};
        status.mode_tsx = packet::mode_tsx{};
        status.mode_exec = packet::mode_exec{};
        status.fup = 0x8000'0000'0000;
        packet_batch<> all{before, how};
        all.add(status);
        auto const got = all.bytes();
        return all.broken() == rule::none && got.size() > 100 && got.size() < 384 - 64 &&
               all.state().bytes == 1 + got.size() && got[got.size() - 2] == 0x02 &&
               got[got.size() - 1] == 0x23 && all.state().deferred_count == 0 &&
               all.state().cycles == 0;
    });
}

TEST_CASE("a batch without room for PADs breaks PKT-347, and writes nothing past its buffer") {
    for (auto const pads : {trace::pad_policy::within_words, trace::pad_policy::broadwell,
                            trace::pad_policy::skylake}) {
        writer_options const how{.pads = pads};
        trace::writer_state const before;
        trace::packet_batch<> batch{before, how};
        unsigned count = 0;
        for (; batch.broken() == rule::none && count < 1000; ++count) { batch.add(packet::tsc{}); }
        CHECK(batch.broken() == rule::PKT_347);
        CHECK(batch.bytes().size() <= trace::writer_state::max_bytes);
        CHECK(count > 16);
    }
    writer_options const how{.pads = trace::pad_policy::skylake};
    trace::writer_state const before{.bytes = 1};
    trace::packet_batch<> batch{before, how};
    for (int i = 0; i < 3; ++i) { batch.align_end(255); }
    CHECK(batch.broken() == rule::none);
    CHECK(batch.bytes().size() == 254);
    trace::packet_batch<> modes{before, how};  // more MODEs than a group has
    for (int i = 0; i < 40; ++i) { modes.add(packet::mode_exec{}); }
    modes.finish();
    CHECK(modes.broken() == rule::none);
    CHECK(modes.bytes().size() < 100);
}

TEST_CASE(
    "MODEs that no IP follows begin at a multiple of 8, others directly before it (GEN-010)") {
    CHECK_TWICE([](auto value) {
        writer_options const how{.pads = trace::pad_policy::skylake};
        writer_state before;
        before.bytes = value(uint64_t{3});
        trace::packet_batch<> alone{before, how};
        alone.add(packet::mode_tsx{});
        alone.finish();
        trace::packet_batch<> grouped{before, how};
        grouped.add(packet::mode_exec{});
        grouped.add(packet::fup::of(packet::ip_bytes::sign_48, 0x1000));
        grouped.finish();
        return alone.bytes().size() == 7 && alone.bytes()[5] == 0x99 && alone.bytes()[4] == 0 &&
               alone.state().bytes == 10 && grouped.bytes().size() == 2 + 2 + 7 &&
               grouped.bytes()[2] == 0x99 && grouped.bytes()[4] == 0x7D &&
               grouped.state().bytes == 14 && grouped.state().ends_in_payload;
    });
}

TEST_CASE("the bytes of a CYC are counted with those of its packet") {
    CHECK_TWICE([](auto value) {
        writer_options const how{.cyc = true};
        writer_state before;
        before.cycles = value(uint64_t{3});
        trace::packet_batch<> batch{before, how};
        batch.add(packet::mtc{});
        return batch.bytes().size() == 3 && batch.state().bytes == 3 && batch.state().cycles == 0;
    });
}

TEST_CASE("the first IP of a context has the wide form of its kind (GEN-011)") {
    CHECK_TWICE([](auto value) {
        writer_options const how{.ips = trace::ip_choice::icelake};
        packet_batch<> all{writer_state{}, how};
        all.add_ip<packet::fup>(value(uint64_t{0x1000}));
        all.add_ip<packet::tip>(0x1001);
        all.begin_context();
        all.add_ip<packet::tip>(0x1002);
        all.add_ip<packet::tip>(0x1003);
        return all.bytes() == bytes(0xDD, 0, 0x10, 0, 0, 0, 0, 0, 0,     // FUP
                                    0x2D, 0x01, 0x10,                    // TIP
                                    0xCD, 0x02, 0x10, 0, 0, 0, 0, 0, 0,  // TIP
                                    0x2D, 0x03, 0x10);                   // TIP
    });
}
