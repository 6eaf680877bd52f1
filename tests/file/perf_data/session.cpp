// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/session.hpp>

#include <support/check_twice.hpp>
#include <support/streams.hpp>

#include <cstddef>
#include <cstdint>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using ctl = reg::ia32_rtit_ctl;
using test::bytes;

namespace {

/// A session with TSC packets and a clock of 1 ns.
constexpr auto timed_session() -> session {
    session made;
    made.ctl = ctl{}.with(ctl::TSCEn{true}, ctl::BranchEn{true}, ctl::User{true});
    made.clock = {.shift = 0, .mult = 1, .zero = 0};
    return made;
}

constexpr auto check_of(std::uint16_t shift, std::uint32_t mult) -> error {
    auto changed = timed_session();
    changed.clock.shift = shift;
    changed.clock.mult = mult;
    return check(changed);
}

constexpr char letters[5000] = {};

/// `size` letters without NUL.
template <std::size_t Size>
struct long_name {
    char characters[Size]{};

    constexpr long_name() {
        for (auto& letter : characters) { letter = 'x'; }
    }
    [[nodiscard]] constexpr auto first(std::size_t count) const -> text {
        return {characters, count};
    }
};
constexpr long_name<4097> longest{};

}  // namespace

TEST_CASE("a file is timed if it has TSC packets and a clock") {
    CHECK_TWICE([](auto value) {
        auto without_tsc = timed_session();
        without_tsc.ctl = without_tsc.ctl.with(ctl::TSCEn{value(false)});
        auto without_clock = timed_session();
        without_clock.clock.mult = value(std::uint32_t{0});
        return is_timed(timed_session()) && !is_timed(without_tsc) && !is_timed(without_clock) &&
               !is_timed(session{});
    });
}

TEST_CASE("check refuses clocks with which perf divides by zero") {
    CHECK_TWICE([](auto value) {
        return check_of(value(std::uint16_t{0}), 20) == error::none &&       // 50 MHz
               check_of(value(std::uint16_t{0}), 21) == error::bad_clock &&  // 47.6 MHz
               check_of(value(std::uint16_t{32}), 0xFFFF'FFFF) == error::none &&
               check_of(value(std::uint16_t{33}), 0xFFFF'FFFF) == error::bad_clock &&
               check_of(value(std::uint16_t{0xFFFF}), 1) == error::bad_clock;
    });
    CHECK_TWICE([](auto value) {
        session untimed;
        untimed.clock.shift = value(std::uint16_t{64});
        return check(untimed) == error::none;  // the clock is not used
    });
}

TEST_CASE("check refuses filters that do not fit or have a NUL") {
    CHECK_TWICE([](auto value) {
        auto changed = timed_session();
        changed.filter = longest.first(value(std::size_t{4095}));
        auto const fits = check(changed);
        changed.filter = longest.first(value(std::size_t{4096}));
        auto const too_long = check(changed);
        changed.filter = {letters, value(std::size_t{~std::size_t{0}})};
        auto const huge = check(changed);
        changed.filter = {"filter 1/2@/a\0b", 15};
        return fits == error::none && too_long == error::name_too_long &&
               huge == error::name_too_long && check(changed) == error::nul_in_name;
    });
}

TEST_CASE("the records of an opened event have a time, in a timed file only, and its id") {
    CHECK_TWICE([](auto value) {
        auto made = timed_session();
        using is = sample_type;
        auto const all = is{}.with(is::TID{true}, is::TIME{true}, is::IDENTIFIER{true});
        auto const with = [&](is members, bool has_ids = true, uint32_t size = 128) {
            auto changed = made;
            changed.attr.size = size;
            changed.attr.sample_type = members;
            changed.attr.flags = attr_flags{}.with(attr_flags::sample_id_all{has_ids});
            return check(changed);
        };
        bool const timed = with(value(all)) == error::none &&
                           with(all.with(is::CPU{true})) == error::none &&
                           with(all.with(is::TIME{false})) == error::bad_attr &&
                           with(all.with(is::IDENTIFIER{false})) == error::bad_attr &&
                           with(all.with(is::TID{false})) == error::bad_attr &&
                           with(all, false) == error::bad_attr &&
                           with(all, true, 136) == error::bad_attr;
        made.clock = {};
        return timed && with(all) == error::bad_attr &&
               with(all.with(is::TIME{false})) == error::none;
    });
}

TEST_CASE("each error has a sentence") {
    for (std::uint8_t i = 0; i <= 11; ++i) {
        CHECK(!(describe(static_cast<error>(i)) == "unknown error"));
    }
    CHECK(describe(error::none) == "nothing is wrong");
    CHECK(describe(static_cast<error>(12)) == "unknown error");
}

TEST_CASE("the head of a timed file") {
    CHECK_TWICE([](auto value) {
        auto const got = head(timed_session(), value(std::uint64_t{0x1122'3344'5566'7788}));
        auto const wanted = test::join(
            // perf_file_header: magic, its size, the size of an attribute
            bytes('P', 'E', 'R', 'F', 'I', 'L', 'E', '2'),  //
            bytes(104, 0, 0, 0, 0, 0, 0, 0),                //
            bytes(144, 0, 0, 0, 0, 0, 0, 0),
            // the sections of attributes and data
            bytes(112, 0, 0, 0, 0, 0, 0, 0),  //
            bytes(144, 0, 0, 0, 0, 0, 0, 0),  //
            bytes(0, 1, 0, 0, 0, 0, 0, 0),    //
            bytes(0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11),
            // no event types, no features
            byte_array<16>{}, byte_array<32>{},
            // the id
            bytes(1, 0, 0, 0, 0, 0, 0, 0),
            // perf_event_attr: type, size, config (TSCEn), sample_period
            bytes(8, 0, 0, 0, 128, 0, 0, 0),      //
            bytes(0x00, 0x04, 0, 0, 0, 0, 0, 0),  //
            bytes(1, 0, 0, 0, 0, 0, 0, 0),
            // sample_type: IP, TID, TIME, IDENTIFIER; read_format
            bytes(0x07, 0x00, 0x01, 0, 0, 0, 0, 0), byte_array<8>{},
            // exclude_kernel, exclude_hv; mmap, comm, task; sample_id_all, mmap2; comm_exec
            bytes(0x60, 0x23, 0x84, 0x01, 0, 0, 0, 0),
            // the other members, and the section of ids
            byte_array<80>{}, bytes(104, 0, 0, 0, 0, 0, 0, 0), bytes(8, 0, 0, 0, 0, 0, 0, 0));
        static_assert(wanted.size() == 256);
        return got == wanted;
    });
}

TEST_CASE("the head of a file that is not timed has no TIME") {
    CHECK_TWICE([](auto value) {
        session without;
        without.ctl = ctl{}.with(ctl::TSCEn{true}, ctl::BranchEn{true}, ctl::OS{true});
        without.pmu_type = value(std::uint32_t{0xA4A3'A2A1});
        auto const got = head(without, 0);
        byte_view const attr = byte_view{got}.from(112);
        return attr.first(4) == byte_view{bytes(0xA1, 0xA2, 0xA3, 0xA4)} &&
               attr.from(24).first(8) == byte_view{bytes(0x03, 0x00, 0x01, 0, 0, 0, 0, 0)} &&
               attr.from(40).first(1) == byte_view{bytes(0x50)};  // exclude_user, exclude_hv
    });
}

TEST_CASE("the head has the configuration as perf writes it") {
    CHECK_TWICE([](auto value) {
        auto changed = timed_session();
        changed.ctl = value(ctl{}.with(ctl::TraceEn{true}, ctl::ToPA{true}, ctl::CYCEn{true},
                                       ctl::MTCEn{true}, ctl::MTCFreq{3}, ctl::DisRETC{true},
                                       ctl::PSBFreq{3}));
        auto const got = head(changed, 0);
        // pt without branch, CYC, MTC with period 3, noretcomp, PSB period 3
        return byte_view{got}.from(120).first(8) == byte_view{bytes(3, 0xCA, 0, 3, 0, 0, 0, 0)};
    });
}
