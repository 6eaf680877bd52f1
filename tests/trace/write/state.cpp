// SPDX-License-Identifier: BSL-1.0
#include <ptspec/trace/write/state.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using packet::ip_bytes;
using trace::ip_choice;
using trace::psb_status;
using trace::writer_options;
using trace::writer_state;

TEST_CASE("the default options are those of processors without extensions") {
    CHECK_TWICE([](auto value) {
        writer_options const how = value(writer_options{});
        return how.ips == ip_choice::as_processors && how.tnt_capacity == 6 && !how.defers_tips &&
               how.pads == trace::pad_policy::none && !how.cyc && how.cyc_threshold == 0 &&
               how.max_branches() == 6 && writer_options{.tnt_capacity = 47}.max_branches() == 47;
    });
}

TEST_CASE("the initial writer_state is empty") {
    CHECK_TWICE([](auto value) {
        auto const now = value(writer_state{});
        return now.last_ip == 0 && !now.has_last_ip && now.items == packet::block::none &&
               now.tnt.count == 0 && now.tnt.bits == 0 && now.cycles == 0 && now.bytes == 0 &&
               now.deferred_count == 0;
    });
}

TEST_CASE("the TNT buffer has the youngest branch in bit 0 (PKT-039)") {
    CHECK_TWICE([](auto value) {
        writer_state now;
        now.add_branch(value(true));
        bool const one = now.tnt == packet::branches{1, 1};
        now.add_branch(false);
        bool const two = now.tnt == packet::branches{2, 2};
        now.add_branch(true);
        return one && two && now.tnt == packet::branches{3, 5};
    });
}

TEST_CASE(
    "has_last_ip is true after an IP, and false after PSB and OVF (PKT-059..061,GEN-174,229)") {
    CHECK_TWICE([](auto value) {
        writer_state now;
        now.record(packet::tip{}, 1);
        bool const none = !now.has_last_ip && now.last_ip == 0 && now.bytes == 1;
        now.record(packet::fup::of(ip_bytes::update_32, value(uint64_t{0x401000})), 5);
        bool const one = now.has_last_ip && now.last_ip == 0x401000 && now.bytes == 6;
        now.record(packet::tip{}, 1);
        now.record(packet::cbr{}, 4);
        bool const still = now.has_last_ip && now.last_ip == 0x401000;
        now.record(packet::ovf{}, 2);
        bool const lost = !now.has_last_ip && now.last_ip == 0x401000;
        now.record(packet::tip_pge::of(ip_bytes::update_16, 0x2000), 3);
        bool const again = now.has_last_ip && now.last_ip == 0x402000;
        now.record(packet::psb{}, 16);
        return none && one && still && lost && again && !now.has_last_ip && now.last_ip == 0 &&
               now.bytes == 32;
    });
}

TEST_CASE("a block is open after its BBP until another packet ends it (PKT-205)") {
    CHECK_TWICE([](auto value) {
        writer_state now;
        now.record(value(packet::bbp{}), 3);
        bool const open = now.items == packet::block::items_of_8;
        now.record(packet::bip{}, 9);
        bool const still = now.items == packet::block::items_of_8;
        now.record(packet::ovf{}, 2);
        return open && still && now.items == packet::block::none;
    });
}

TEST_CASE("without a last IP the form is sign_48 or full (PKT-055,057,064,065)") {
    CHECK_TWICE([](auto value) {
        constexpr auto hardware = ip_choice::as_processors;
        writer_state now = value(writer_state{});
        bool const first = now.form_of(0, hardware) == ip_bytes::sign_48 &&
                           now.form_of(0x7FFF'FFFF'FFFF, hardware) == ip_bytes::sign_48 &&
                           now.form_of(0x8000'0000'0000, hardware) == ip_bytes::full &&
                           now.form_of(0xFFFF'8000'0000'0000, hardware) == ip_bytes::sign_48 &&
                           now.form_of(0xFFFF'7FFF'FFFF'FFFF, hardware) == ip_bytes::full &&
                           now.form_of(0x1000, ip_choice::shortest) == ip_bytes::update_16;
        now.has_last_ip = true;
        now.last_ip = 0xFFFF'7FFF'0000'0000;
        return first && now.form_of(0xFFFF'7FFF'0000'FFFF, hardware) == ip_bytes::update_16 &&
               now.form_of(0xFFFF'7FFF'0001'0000, hardware) == ip_bytes::update_32 &&
               now.form_of(0xFFFF'7FFE'0001'0000, hardware) == ip_bytes::update_48 &&
               now.form_of(0xFFFF'8000'0001'0000, hardware) == ip_bytes::sign_48 &&
               now.form_of(0xFFFE'7FFF'0000'0000, hardware) == ip_bytes::full;
    });
}

TEST_CASE("a CYC is due when the cycle count reaches the threshold (GEN-211,212)") {
    CHECK_TWICE([](auto value) {
        auto const due = [&](uint8_t threshold, uint64_t cycles) {
            writer_state now;
            now.cycles = cycles;
            return now.cyc_is_due({.cyc = value(true), .cyc_threshold = threshold});
        };
        writer_state ready;
        ready.cycles = 1;
        return !due(0, 0) && due(0, 1) && !due(1, 0) && due(1, 1) && !due(2, 1) && due(2, 2) &&
               !due(15, 0x3FFF) && due(15, 0x4000) && !due(64, ~uint64_t{0} >> 1) &&
               due(64, uint64_t{1} << 63) && due(255, uint64_t{1} << 63) && !ready.cyc_is_due({});
    });
}

TEST_CASE("a psb_status contains the packets that were set") {
    CHECK_TWICE([](auto value) {
        psb_status const none{};
        psb_status const some{.cbr = packet::cbr{}, .fup = value(uint64_t{5})};
        return !none.tsc.has_value && !none.tma.has_value && !none.cbr.has_value &&
               !none.pip.has_value && !none.vmcs.has_value && !none.mode_tsx.has_value &&
               !none.mode_exec.has_value && !none.fup.has_value && some.cbr.has_value &&
               some.fup.has_value && some.fup.value == 5 && !some.tsc.has_value;
    });
}

TEST_CASE("the kinds of processor select the form of an IP (GEN-011)") {
    CHECK_TWICE([](auto value) {
        writer_state near_by;
        near_by.last_ip = value(uint64_t{0x40'1000});
        near_by.has_last_ip = near_by.has_context_ip = true;
        auto other = near_by;
        other.has_context_ip = false;
        auto const form = [](writer_state const& now, ip_choice how, uint64_t ip, bool is_fup) {
            return now.form_of(ip, how, is_fup);
        };
        constexpr uint64_t ip = 0x40'1234;
        constexpr uint64_t far_ip = 0xFFFF'8000'0000'0000;
        constexpr uint64_t odd_ip = 0x1234'8000'0000'0000;  // not canonical
        return form(near_by, ip_choice::broadwell, ip, false) == ip_bytes::sign_48 &&
               form(near_by, ip_choice::skylake, ip, false) == ip_bytes::update_16 &&
               form(near_by, ip_choice::skylake, ip, true) == ip_bytes::sign_48 &&
               form(other, ip_choice::skylake, ip, false) == ip_bytes::sign_48 &&
               form(near_by, ip_choice::skylake, 0x41'1234, false) == ip_bytes::update_32 &&
               form(near_by, ip_choice::skylake, far_ip, false) == ip_bytes::sign_48 &&
               form(near_by, ip_choice::skylake, odd_ip, false) == ip_bytes::full &&
               form(near_by, ip_choice::icelake, ip, false) == ip_bytes::update_16 &&
               form(near_by, ip_choice::icelake, ip, true) == ip_bytes::full &&
               form(other, ip_choice::icelake, ip, false) == ip_bytes::full &&
               form(near_by, ip_choice::icelake, far_ip, false) == ip_bytes::full;
    });
}

TEST_CASE("PIP, VMCS, TSC and MODE.Exec begin a new context for IPs; CBR does not (GEN-011)") {
    CHECK_TWICE([](auto value) {
        auto const kept = [&](auto const& which) {
            writer_state now;
            now.record(packet::tip::of(ip_bytes::full, value(uint64_t{0x1000})), 9);
            now.record(which, 2);
            return now.has_context_ip;
        };
        return !kept(packet::pip{}) && !kept(packet::vmcs{}) && !kept(packet::tsc{}) &&
               !kept(packet::mode_exec{}) && !kept(packet::psb{}) && kept(packet::cbr{}) &&
               kept(packet::mode_tsx{}) && kept(packet::mtc{}) && kept(packet::tip_pgd{});
    });
}
