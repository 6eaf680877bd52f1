// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/generator.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace ptspec;
using test::traced;
namespace action = engine::action;

namespace {

/// The IP after one event.
template <class Event>
constexpr auto ip_behind(std::string_view setup, Event const& e) -> std::uint64_t {
    return traced{setup}.does(e).ip();
}
/// True when an event brings a PSB+ at once. One byte is missing from the PSB period before it.
template <class Event>
constexpr auto brings_psb(std::string_view setup, Event const& e, unsigned branches = 0,
                          engine::clocks const& now = {}) -> bool {
    auto from = traced::started(setup);
    using status = reg::ia32_rtit_status;
    from.msrs.status = from.msrs.status.with(status::PacketByteCnt{2047});
    traced on{from};
    on.set_clocks(now);
    for (unsigned i = 0; i < branches; ++i) { on.does(action::conditional{0x1000, true}); }
    on.does(e);
    auto const all = on.packets();
    return std::string_view{all.characters, all.length}.find("PSB,") != std::string_view::npos;
}

}  // namespace

TEST_CASE("the IP after an event is its target or next instruction") {
    CHECK_TWICE([](auto value) {
        std::uint64_t const to = value(std::uint64_t{0x2345});
        bool good = true;
        // Fast path, with CYCs, without TNTs, tracing off.
        for (std::string_view const setup : {"", "CYCEn=1", "DisTNT=1", "TraceEn=0"}) {
            good = good && ip_behind(setup, action::conditional{to, true}) == to &&
                   ip_behind(setup, action::conditional{to, false}) == to &&
                   ip_behind(setup, action::direct_jump{to}) == to &&
                   ip_behind(setup, action::direct_call{0x1005, to}) == to &&
                   ip_behind(setup, action::indirect_jump{to}) == to &&
                   ip_behind(setup, action::indirect_call{0x1005, to}) == to &&
                   ip_behind(setup, action::near_return{to}) == to &&
                   ip_behind(setup, action::sequential{to}) == to &&
                   ip_behind(setup, action::transaction_begin{0x1000, to}) == to &&
                   ip_behind(setup, action::transaction_end{0x1000, to}) == to &&
                   ip_behind(setup, action::transaction_abort{0x1000, to}) == to &&
                   ip_behind(setup, action::init{.next = 0x1000, .to = to}) == to &&
                   ip_behind(setup, action::init{0x1000, to, {}, true}) == to;
        }
        return good;
    });
}

TEST_CASE("a PSB+ that is due follows the next event that writes packets") {  // GEN-006, GEN-163
    CHECK_TWICE([](auto value) {
        std::uint64_t const to = value(std::uint64_t{0x2345});
        bool good = true;
        for (std::string_view const setup : {"", "CYCEn=1", "DisRETC=1", "ADDR0=[0,FFFF] filter"}) {
            good = good && brings_psb(setup, action::indirect_jump{to}) &&
                   brings_psb(setup, action::indirect_call{0x1005, to}) &&
                   brings_psb(setup, action::near_return{to}) &&
                   brings_psb(setup, action::transaction_begin{0x1000, 0x1003}) &&
                   brings_psb(setup, action::far_transfer{.at = 0x1000, .to = to}) &&
                   brings_psb(setup, action::interrupt{.next = 0x1000, .to = to}) &&
                   brings_psb(setup, action::init{0x1000, to, {}, true});
        }
        // A branch that only adds a TNT bit writes no packet until the TNT is full.
        good = good && !brings_psb("", action::conditional{to, true}) &&
               brings_psb("", action::conditional{to, true}, 5) &&
               brings_psb("", action::conditional{to, false}, 5) &&
               !brings_psb("", action::direct_call{0x1005, to}) &&
               brings_psb("deferral=1, DisRETC=1", action::indirect_call{0x1005, to});
        return good;
    });
    CHECK_TWICE([](auto value) {
        std::uint64_t const to = value(std::uint64_t{0x2345});
        engine::clocks stopped;
        stopped.are_off = true;
        return brings_psb("PTWEn=1", action::ptwrite{0x1000, to, 7}) &&
               brings_psb("TSCEn=1", action::clock_resume{}, 0, stopped) &&
               brings_psb("TSCEn=1", action::wake{}, 0, stopped) &&
               brings_psb("CYCEn=1", action::cycles{~std::uint64_t{0}}) &&
               !brings_psb("PwrEvtEn=1", action::halt{0x1000, to}) &&
               brings_psb("MTCEn=1", action::elapsed{0, 0x1000, 0x3000}) &&
               brings_psb("", action::ratio{24});
    });
}

TEST_CASE("a CYC before branches and the end of a transaction can bring a PSB+") {
    // GEN-006, GEN-163
    CHECK_TWICE([](auto value) {
        bool good = true;
        using status = reg::ia32_rtit_status;
        for (bool const ends : {true, false}) {
            auto from = traced::started("CYCEn=1, OS=0");
            from.msrs.status = from.msrs.status.with(status::PacketByteCnt{2038});
            traced on{from};
            // MODE.TSX, FUP
            on.does(action::transaction_begin{0x1000, value(std::uint64_t{0x1003})});
            std::size_t const begun = on.bytes.size();
            if (ends) {
                on.does(action::transaction_end{0x1003, 0x1006});
            } else {
                on.does(action::cycles{3}).does(action::conditional{0x1006, true});
            }
            good = good && on.bytes.size() - begun >= 16;
        }
        return good;
    });
}

TEST_CASE("a scenario of 240 events is a constant expression") {
    static_assert([] {
        traced on{"CPL=0, CYCEn=MTCEn=TSCEn=PTWEn=PwrEvtEn=1, MTCFreq=3"};
        for (std::uint64_t i = 0; i < 20; ++i) {
            on.does(action::conditional{0x1000, i % 3 == 0});
            on.does(action::direct_call{0x1005, 0x2000}).does(action::cycles{i});
            on.does(action::near_return{0x1005}).does(action::indirect_jump{0x3000 + i});
            on.does(action::interrupt{.next = 0x3000, .to = 0x4000, .after = on.state().code});
            on.does(action::far_transfer{.at = 0x4000, .to = 0x3000, .after = on.state().code});
            on.does(action::ptwrite{0x3000, 0x3004, i, true})
                .does(action::elapsed{5, 8 * i, 100 * i});
            on.does(action::mwait{.thread = {6, 0}}).does(action::wake{6, 6});
            on.does(action::mov_cr3{0x3000, 0x3003, i << 12});
        }
        return !on.state().in_overflow && on.bytes.size() > 900;
    }());
    CHECK(true);
}

TEST_CASE("the packets around a PIP determine the event that it belongs to") {  // GEN-246
    // As in a consumer: a PIP after a FUP of the same event applies at the TIP, any other PIP at
    // the next MOV CR3 or far branch.
    struct consumer {
        std::string told{};
        std::uint64_t cr3 = 0;
        bool has_pip = false, is_asynchronous = false;

        void operator()(packet::fup const&) { is_asynchronous = true; }
        void operator()(packet::pip const& p) {
            cr3 = p.get<packet::pip::CR3>();
            has_pip = true;
            if (!is_asynchronous) { told += "code:" + std::to_string(cr3 >> 12) + " "; }
        }
        void operator()(packet::tip const&) {
            told += is_asynchronous ? "event:" : "branch:";
            told += has_pip && is_asynchronous ? std::to_string(cr3 >> 12) + " " : "- ";
            has_pip = is_asynchronous = false;
        }
    };
    traced on{"CPL=0, OS=1"};
    auto other = on.state().code;
    other.cr3 = 0x5000;
    on.does(action::interrupt{.next = 0x1000, .to = 0x2000, .after = other});
    on.does(action::mov_cr3{0x2000, 0x2003, 0x6000}).does(action::indirect_jump{0x2100});
    other.cr3 = 0x7000;
    on.does(action::far_transfer{.at = 0x2100, .to = 0x3000, .after = other});
    consumer reads;
    test::read(on.bytes.written(), reads);
    CHECK(reads.told == "event:5 code:6 branch:- code:7 branch:- ");
}

TEST_CASE("start begins the trace at the next instruction, at any CPL") {
    // GEN-162, GEN-180..182
    using ctl = reg::ia32_rtit_ctl;
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (std::string_view const setup : {"TraceEn=0, CPL=3", "TraceEn=0, CPL=0"}) {
            traced on{setup};
            auto const wanted = on.state().msrs.ctl.with(ctl::OS{true}, ctl::User{true});
            good = good && on.start(wanted, on.bytes);
            on.does(action::indirect_jump{value(std::uint64_t{0x2345})});
            on.stop(on.bytes);
            auto const all = on.packets();
            std::string_view const seen{all.characters, all.length};
            good = good && seen.starts_with("PSB, ") &&
                   seen.ends_with(
                       "PSBEND, MODE.Exec(64), TIP.PGE(1000), TIP(2345), FUP(2345), TIP.PGD()") &&
                   !on.state().ctl<ctl::TraceEn>();
            on.stop(on.bytes);
            good = good && on.packets().length == all.length;
        }
        return good;
    });
}

TEST_CASE("start outside of the traced code shows the code when it is entered") {  // GEN-020
    using ctl = reg::ia32_rtit_ctl;
    traced on{"TraceEn=0, CPL=3, OS=1"};
    auto const only_os = on.state().msrs.ctl.with(ctl::OS{true}, ctl::User{false});
    REQUIRE(on.start(only_os, on.bytes));
    CHECK(test::packets(on).find("TIP.PGE") == std::string::npos);
    auto kernel = on.state().code;
    kernel.cpl = 0;
    on.does(action::far_transfer{0x1000, 0x9000, kernel});
    CHECK(test::packets(on).ends_with("TIP.PGE(9000)"));
}

TEST_CASE("start refuses a value that a WRMSR would refuse, and changes nothing") {
    // REG-044
    using ctl = reg::ia32_rtit_ctl;
    traced on{"TraceEn=0, CPL=3"};
    auto const before = on.state().msrs;
    auto const refused = on.start(ctl{uint64_t{1} << 63}, on.bytes);
    CHECK_FALSE(refused);
    CHECK(refused.broken == rule::REG_044);
    CHECK(on.state().msrs == before);
    CHECK(test::packets(on) == "none");
}
