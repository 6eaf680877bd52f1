// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/unit_image.hpp>

#include <support/check_twice.hpp>
#include <support/unit_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace ptspec;
using access::ia32_rtit_ctl;
using access::ia32_rtit_status;
using access::error;
using engine::trace_unit;
using test::machine_memory;
namespace action = engine::action;

namespace {

/// Two equal units: `moves` is saved and loaded before every operation, `stays` is not.
template <std::size_t Depth = 1024>
struct twins {
    machine_memory memory;
    machine_memory other_memory = memory;
    trace_unit<Depth> stays;
    trace_unit<Depth> moves = stays;
    bool all_loaded = true;

    constexpr explicit twins(
        std::string_view setup,
        engine::model_options const& how = engine::options_of(engine::model_kind::manual),
        machine_memory const& with = machine_memory{})
        : memory{with}, stays{test::off<Depth>(setup, how)} {}

    constexpr void move() {
        auto const image = engine::store(moves);
        auto const loaded = engine::load<Depth>(moves.state().caps, image.view(),
                                                moves.state().options);
        all_loaded = all_loaded && loaded && engine::store(loaded.unit).view() == image.view();
        moves = loaded.unit;
    }
    /// Runs an operation on both units.
    template <class Operation>
    constexpr auto both(Operation const& does) -> twins& {
        does(stays, memory);
        move();
        does(moves, other_memory);
        return *this;
    }
    template <class Event>
    constexpr auto on(Event const& e) -> twins& {
        return both([&](auto& unit, auto& to) { (void)unit.on(e, to); });
    }
    constexpr auto enable() -> twins& {
        return both([](auto& unit, auto& to) { (void)test::enable(unit, to); });
    }
    constexpr auto disable() -> twins& {
        return both([](auto& unit, auto& to) { (void)test::disable(unit, to); });
    }
    constexpr void fail(bool fails) { memory.fails = other_memory.fails = fails; }

    /// True if state and output of both units are equal, and there is output.
    [[nodiscard]] constexpr auto are_same() -> bool {
        return all_loaded && stays.total().stored != 0 && stays.msrs() == moves.msrs() &&
               stays.total() == moves.total() && memory.trace.bytes == other_memory.trace.bytes &&
               memory.interrupts == other_memory.interrupts &&
               stays.ended_by() == moves.ended_by() && stays.ip() == moves.ip() &&
               stays.state().code == moves.state().code &&
               stays.state().calls == moves.state().calls &&
               stays.state().clocks == moves.state().clocks &&
               stays.state().concealment == moves.state().concealment &&
               stays.state().shutdown_by == moves.state().shutdown_by &&
               stays.state().in_overflow == moves.state().in_overflow &&
               stays.is_flushing() == moves.is_flushing() &&
               stays.buffered().size() == moves.buffered().size();
    }
};

constexpr engine::execution_context user{
    .cr3 = 0x5000, .cpl = 3, .width = engine::code_width::bits_32};

/// A unit with every part of its image in use.
constexpr auto full() -> trace_unit<> {
    engine::model_options how;
    how.drained_at_once = 0;
    auto unit = test::off("CPL=0, PwrEvtEn=1, MTCEn=1", how);
    machine_memory memory;
    (void)test::enable(unit, memory);
    (void)unit.on(action::direct_call{0x1010, 0x2000}, memory);
    (void)unit.on(action::elapsed{7, 3, 0x456}, memory);
    (void)unit.on(action::conditional{0x2010, true}, memory);
    (void)unit.drain(memory, 3);
    return unit;
}
constexpr auto with_number(engine::unit_image<1024> image, std::size_t at, std::uint64_t value)
    -> engine::unit_image<1024> {
    store_le64(image.bytes.data() + at, value);
    return image;
}
constexpr std::size_t front = 16 + access::image_size;
constexpr std::size_t numbers = front + 5 * 8;

template <std::size_t Depth>
constexpr auto fails(engine::unit_load<Depth> const& loaded, access::error why) -> bool {
    return !loaded && loaded.error == why &&
           loaded.unit.state().code == engine::execution_context{} && loaded.unit.ip() == 0 &&
           loaded.unit.buffered().empty() && loaded.unit.state().calls.size() == 0 &&
           loaded.unit.total() == engine::totals{};
}

}  // namespace

TEST_CASE("a unit moved before every operation writes the same trace") {
    CHECK_TWICE([](auto value) {  // branches, calls, modes, transactions, CR3s
        twins<> both{"CPL=0, OS=1, User=1"};
        both.enable().on(action::direct_call{0x1010, value(std::uint64_t{0x2000})});
        both.on(action::conditional{0x2010, true}).on(action::near_return{0x1010});
        both.on(action::indirect_call{0x1020, 0x7FFF'0000'1234}).on(action::indirect_jump{0x3000});
        both.on(action::transaction_begin{0x3000, 0x3003});
        both.on(action::far_transfer{.at = 0x3010, .to = 0x40'0000, .after = user});
        both.on(action::interrupt{.next = 0x40'0010, .to = 0x8000, .after = {.cr3 = 0x5000}});
        both.on(action::mov_cr3{0x8000, 0x8003, 0x6000}).on(action::psb_due{});
        return both.on(action::conditional{0x8010, false}).disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // calls in calls
        twins<> both{"CPL=0"};
        both.enable().on(action::direct_call{0x1010, value(std::uint64_t{0x2000})});
        both.on(action::direct_call{0x2010, 0x3000}).on(action::direct_call{0x3010, 0x4000});
        both.on(action::near_return{0x3010}).on(action::near_return{0x2010});
        both.on(action::near_return{0x1010});
        return both.stays.state().writer.tnt.count == 3 && both.disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // time, sleep and power
        twins<> both{"CPL=0, CYCEn=1, MTCEn=1, TSCEn=1, PwrEvtEn=1, CycThresh=4, PSBFreq=5"};
        both.enable().on(action::elapsed{value(std::uint64_t{5}), 100, 300});
        both.on(action::ratio{24}).on(action::conditional{0x2010, true});
        both.on(action::mwait{.at = 0x2010, .next = 0x2013, .hints = 0x20, .thread = {3, 0}});
        both.on(action::elapsed{50, 180, 600})
            .on(action::wake{3, 3})
            .on(action::elapsed{9, 190, 630});
        return both.on(action::indirect_jump{0x3000})
            .on(action::cycle_guard{})
            .disable()
            .are_same();
    });
    CHECK_TWICE([](auto value) {  // deferred TIPs, long TNTs
        engine::model_options how;
        how.defers_tips = value(true);
        how.tnt_capacity = 47;
        twins<> both{"CPL=0, DisRETC=1", how};
        both.enable().on(action::conditional{0x2010, true}).on(action::indirect_jump{0x3000});
        both.on(action::indirect_jump{0x4000}).on(action::conditional{0x4010, false});
        for (std::uint64_t i = 0; i < 9; ++i) { both.on(action::indirect_jump{0x5000 + i}); }
        return both.disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // VMX, SMM, modules
        twins<> both{"CPL=0, OS=1"};
        both.both([](auto& unit, auto&) { unit.conceal({.exits = true, .entries = true}); });
        both.enable().on(action::vmptrld{0x1010, value(std::uint64_t{0x7000})});
        both.on(action::vm_entry{.at = 0x1010, .to = 0x2000, .after = {.vmx_non_root = true}});
        both.on(action::psb_due{}).on(action::vm_exit{.from = 0x2010, .to = 0x1020});
        both.on(action::smi{.next = 0x1020, .to = 0x8'0000}).on(action::rsm{.to = 0x1020});
        both.on(action::acm_begin{})
            .on(action::conditional{0x1030, true})
            .on(action::acm_end{0x1040});
        return both.on(action::indirect_jump{0x3000}).disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // a pending PSB+, events, the interrupt flag
        twins<> both{"CPL=0, EventEn=1, InjectPsbPmiOnEnable=1"};
        both.enable().on(action::overflow{}).on(action::psb_due{});
        both.on(action::overflow_end{value(std::uint64_t{0x2000})});
        both.on(action::interrupt_flag{0x2001, true}).on(action::conditional{0x2010, true});
        return both.disable().are_same();
    });
}

TEST_CASE("state that is visible only later is moved, too") {
    CHECK_TWICE([](auto value) {  // the current VMCS, and what a VMM conceals
        twins<> both{"VMX=root, CPL=0, OS=1"};
        both.both([](auto& unit, auto&) { unit.conceal({.non_root = true}); }).enable();
        both.on(action::vmptrld{0x1010, value(std::uint64_t{0x7000})}).on(action::psb_due{});
        both.on(action::vm_entry{.at = 0x1010, .to = 0x2000, .after = {.vmx_non_root = true}});
        return both.on(action::psb_due{}).disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // the nesting depth of transactions
        twins<> both{"CPL=0"};
        both.enable().on(action::transaction_begin{0x1010, value(std::uint64_t{0x1013})});
        both.on(action::transaction_begin{0x1020, 0x1023});
        both.on(action::transaction_end{0x1030, 0x1033})
            .on(action::transaction_end{0x1040, 0x1043});
        return both.disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // that a PIP was written, and a later one was lost
        engine::model_options how;
        how.drained_at_once = value(std::size_t{4});
        twins<> both{"CPL=0, OS=1", how};
        both.enable().on(action::overflow{}).on(action::mov_cr3{0x1010, 0x1013, 0x7000});
        for (unsigned i = 0; i < 12; ++i) { both.on(action::indirect_jump{0x2000}); }
        bool const loses = both.stays.state().in_overflow && both.moves.state().in_overflow;
        return loses && both.on(action::overflow_end{0x2000}).disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // that a transaction was reported
        engine::model_options how;
        how.has_tsx = value(true);
        twins<> both{"CPL=0", how};
        both.enable().on(action::transaction_begin{0x1010, 0x1013});
        return both.on(action::overflow{}).on(action::overflow_end{0x1020}).disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // when a PSB is due, if the count is compared at multiples
        engine::model_options how;
        how.psb_step = value(std::uint16_t{64});
        twins<> both{"CPL=0", how};
        both.both([](auto& unit, auto& to) {
            std::uint64_t const count = std::uint64_t{2000} << 32;
            (void)unit.wrmsr(
                {.index = ia32_rtit_status::address, .value = count, .at = 0x1000, .next = 0x1002},
                to);
        });
        both.enable();
        for (unsigned i = 0; i < 24; ++i) { both.on(action::indirect_jump{0x2000ULL << i}); }
        bool const had_psb = both.stays.msrs().status.get<ia32_rtit_status::PacketByteCnt>() < 200;
        return had_psb && both.are_same();
    });
    CHECK_TWICE([](auto value) {  // that the processor shut down
        twins<> both{"CPL=0"};
        both.enable().on(action::smi{.next = 0x1010, .to = 0x8'0000}).enable();
        both.on(action::rsm{.to = 0x1010}).on(action::sequential{value(std::uint64_t{0x8'0010})});
        return both.stays.state().shutdown_by == rule::REG_102 && both.disable().are_same();
    });
}

TEST_CASE("a unit moved before every operation loses the same packets and reports it") {
    CHECK_TWICE([](auto value) {  // a buffer that fills, and drains slowly
        engine::model_options how;
        how.drained_at_once = value(std::size_t{4});
        twins<384> both{"CPL=0, PSBFreq=5, MTCEn=1", how};
        both.enable();
        for (std::uint64_t i = 1; i <= 6; ++i) { both.on(action::elapsed{0, 80 * i, 300 * i}); }
        bool const loses = both.stays.state().in_overflow;
        return loses && both.disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // branches during an overflow
        twins<> both{"CPL=0"};
        both.enable().on(action::overflow{}).on(action::conditional{0x2000, value(true)});
        both.on(action::overflow_end{0x2000}).on(action::conditional{0x2010, false});
        return both.stays.state().writer.tnt.count == 1 && both.disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // a TraceStop during an overflow
        twins<> both{"CPL=0, ADDR0=[2000,2fff] stop"};
        both.enable().on(action::overflow{});
        both.on(action::indirect_jump{value(std::uint64_t{0x2000})});
        bool const stopped = !both.stays.state().enables().trigger;
        both.on(action::overflow_end{0x2000});
        return stopped && both.disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // tracing that starts in a TraceStop range while the port fails
        twins<> both{"CPL=0, ADDR0=[1002,1002] stop"};
        both.fail(value(true));
        both.enable().on(action::indirect_jump{0x2000});
        both.fail(false);
        return both.on(action::indirect_jump{0x3000}).disable().are_same();
    });
    CHECK_TWICE([](auto value) {  // a port that fails while tracing ends
        twins<> both{"CPL=0, InjectPsbPmiOnEnable=1"};
        both.enable().on(action::conditional{0x2010, true});
        both.fail(value(true));
        both.on(action::indirect_jump{0x2000});
        both.both([](auto& unit, auto& to) {
            (void)unit.wrmsr(
                {.index = ia32_rtit_ctl::address, .value = 0, .at = 0x1100, .next = 0x1102}, to);
        });
        bool const waits = both.stays.is_flushing() && both.moves.is_flushing();
        both.on(action::mov_cr3{0x2000, 0x2003, 0x9000});
        both.fail(false);
        return waits && both.on(action::mov_cr3{0x2000, 0x2003, 0x9000}).are_same() &&
               both.stays.total().lost == 0 && !both.stays.is_flushing();
    });
    CHECK_TWICE([](auto value) {  // XSAVES in between
        twins<> both{"CPL=0"};
        both.enable().fail(value(true));
        both.both([](auto& unit, auto& to) { (void)unit.xsaves(0x1100, 0x1104, to); }).fail(false);
        access::xsave_pt_state images[2];
        std::size_t count = 0;
        both.both(
            [&](auto& unit, auto& to) { images[count++] = unit.xsaves(0x1100, 0x1104, to).image; });
        return images[0] == images[1] && both.are_same() &&
               images[0].get<access::xsave_pt_state::IA32_RTIT_CTL>().get<ia32_rtit_ctl::TraceEn>();
    });
}

TEST_CASE("INT, STOP and errors of a moved unit occur at the same bytes, and persist") {
    using status = ia32_rtit_status;
    auto const run = [](machine_memory const& with) {
        twins<> both{"CPL=0, InjectPsbPmiOnEnable=1, PSBFreq=5", {}, with};
        both.enable();
        for (std::uint64_t i = 0; i < 1000; ++i) {
            both.on(action::indirect_jump{0x1234'5678'9ABC'DEF0 + (i << 48)});
        }
        return both;
    };
    auto both = run(machine_memory{test::INT, test::STOP});
    CHECK(both.are_same());
    CHECK(both.moves.msrs().status.get<status::Stopped>());
    CHECK(both.moves.msrs().status.get<status::PendToPAPMI>());
    CHECK(both.moves.msrs().ctl.get<ia32_rtit_ctl::TraceEn>());
    CHECK(both.moves.ended_by() == rule::OUT_080);
    CHECK(both.other_memory.interrupts == 1);
    CHECK(both.disable().are_same());

    both = run(machine_memory{{}, topa::entry{2}});
    CHECK(both.are_same());
    CHECK(both.moves.msrs().status.get<status::Error>());
    CHECK(both.moves.ended_by() == rule::OUT_060);
    CHECK(both.disable().are_same());
}

TEST_CASE("load() accepts the image of a unit that traced on the same processor") {  // REG-055
    for (auto const& one : cpu::preset::all) {
        std::string const name{one.name.data(), one.name.size()};
        CAPTURE(name);
        trace_unit<> unit{one.value, {.cr3 = 0x1000}, 0x1000};
        machine_memory memory;
        auto const is_taken = [&] {
            return engine::load(one.value, engine::store(unit).view()).error ==
                       access::error::none &&
                   access::load(one.value, byte_view{access::store(unit.msrs())}).error ==
                       access::error::none;
        };
        using topa_scheme = reg::cpuid_14h_0_ecx::TOPAOUT;
        bool const topa = one.value.leaf_14_0_ecx.get<topa_scheme>();
        bool const range = one.value.leaf_14_0_ecx.get<reg::cpuid_14h_0_ecx::SNGLRNGOUT>();
        std::uint64_t const word = topa ? 0x210D : range ? 0x200D : 0x204D;
        (void)unit.wrmsr({.index = 0x560,
                          .value = topa ? test::table : test::regions,
                          .at = 0x1000,
                          .next = 0x1002},
                         memory);
        (void)unit.wrmsr(
            {.index = 0x561, .value = topa ? 0x7FU : 0xFFFU, .at = 0x1000, .next = 0x1002}, memory);
        (void)unit.wrmsr(
            {.index = ia32_rtit_ctl::address, .value = word, .at = 0x1000, .next = 0x1002}, memory);
        CHECK(unit.state().enables().packet() == one.value.has_pt());
        for (std::uint64_t i = 0; i < 20; ++i) {
            (void)unit.on(action::indirect_jump{i << 40}, memory);
        }
        CHECK(is_taken());
        (void)unit.wrmsr(
            {.index = ia32_rtit_ctl::address, .value = word - 1, .at = 0x1000, .next = 0x1002},
            memory);
        CHECK(is_taken());
    }
}

TEST_CASE("an image is a header, the image of the MSRs, numbers, calls and bytes") {
    CHECK_TWICE([](auto value) {
        auto unit = full();
        auto const image = engine::store(value(unit));
        auto const msrs = access::store(unit.msrs());
        constexpr std::uint8_t head[] = {'P', 'T', 'U', 'N', 'I', 'T', 0, 0, 1, 0, 0, 0};
        auto const calls = image.view().from(image.size - unit.buffered().size() - 8);
        bool same = load_le64(calls.data()) == 0x1010;
        for (std::size_t i = 0; i < unit.buffered().size(); ++i) {
            same = same && calls[8 + i] == unit.buffered()[i];
        }
        return same && unit.state().calls.size() == 1 && !unit.buffered().empty() &&
               image.view().first(12) == byte_view{head} &&
               load_le64(image.bytes.data() + 8) == (std::uint64_t{image.size} << 32 | 1) &&
               image.view().from(16).first(access::image_size) == byte_view{msrs};
    });
}

TEST_CASE("every prefix of an image is truncated, and extra bytes are a wrong size") {
    CHECK_TWICE([](auto value) {
        auto const image = engine::store(full());
        auto const of = full().state().caps;
        for (std::size_t count = 0; count < image.size; ++count) {
            if (!fails(engine::load(of, image.view().first(value(count))),
                       access::error::truncated)) {
                return false;
            }
        }
        // Seven bytes of the signature are truncated; eight wrong bytes are not an image.
        std::uint8_t const seven[] = {'P', 'T', 'U', 'N', 'I', 'T', 0};
        std::uint8_t const eight[] = {'P', 'T', 'U', 'N', 'I', 'T', 0, value(std::uint8_t{1})};
        if (!fails(engine::load(of, byte_view{seven}), access::error::truncated) ||
            !fails(engine::load(of, byte_view{eight}), access::error::not_an_image) ||
            !engine::unit_image<1024>{}.view().empty()) {
            return false;
        }
        byte_view const more{image.bytes.data(), image.size + 1};
        return fails(engine::load(of, more), access::error::wrong_size) &&
               engine::load(of, image.view()).error == access::error::none;
    });
}

TEST_CASE("a wrong signature, version or size is rejected") {
    CHECK_TWICE([](auto value) {
        auto const image = engine::store(full());
        auto const of = full().state().caps;
        auto const with = [&](std::size_t place, std::uint8_t byte) {
            auto changed = image;
            changed.bytes.bytes[place] = value(byte);
            return engine::load(of, changed.view());
        };
        for (std::size_t i = 0; i < 8; ++i) {
            if (!fails(with(i, 0x80), access::error::not_an_image)) { return false; }
        }
        // A size too small for the numbers.
        auto less = with_number(image, 8, (std::uint64_t{numbers} << 32) | 1);
        less.size = numbers;
        auto const head = with_number(image, 8, value(std::uint64_t{2}));
        return fails(with(8, 2), access::error::other_version) &&
               fails(with(11, 0x80), access::error::other_version) &&
               fails(engine::load(of, head.view().first(16)), access::error::other_version) &&
               fails(with(16, 'Q'), access::error::not_an_image) &&
               fails(engine::load(of, less.view()), access::error::wrong_size);
    });
}

TEST_CASE("values that a unit cannot have are rejected") {
    CHECK_TWICE([](auto value) {
        auto const image = engine::store(full());
        auto const of = full().state().caps;
        auto const with = [&](std::size_t at, std::uint64_t number) {
            return engine::load(of, with_number(image, at, value(number)).view());
        };
        auto const refuses = [&](std::size_t at, std::uint64_t number, rule why,
                                 std::uint32_t msr) {
            auto const loaded = with(at, number);
            return fails(loaded, access::error::refused) && loaded.broken == why &&
                   loaded.msr == msr;
        };
        auto const is_impossible = [&](std::size_t at, std::uint64_t number) {
            auto const loaded = with(at, number);
            return fails(loaded, access::error::out_of_range) && loaded.msr == 0;
        };
        return refuses(16 + 16, 1U << 18, rule::REG_044, 0x570) &&  // CTL
               refuses(front, 1U << 18, rule::REG_044, 0x570) &&    // CTL of output
               is_impossible(front + 8, 0x1'0000) &&                // a rule
               is_impossible(front + 16, 1) &&                      // flushing, with TraceEn
               is_impossible(front + 16, 3) && is_impossible(front + 24, 65) &&
               is_impossible(numbers + 24, 4) &&  // CPL
               is_impossible(numbers + 40, 2) &&  // real mode
               fails(with(front + 24, 2), access::error::wrong_size) &&
               fails(with(front + 24, 0), access::error::wrong_size) &&
               fails(with(front + 32, 1), access::error::wrong_size) &&
               fails(with(front + 32, ~std::uint64_t{0}), access::error::wrong_size) &&
               with(numbers, ~std::uint64_t{0}).unit.ip() == ~std::uint64_t{0};
    });
    CHECK_TWICE([](auto value) {  // more branches than fit a TNT, or more bits than branches
        auto const image = engine::store(full());
        auto const of = full().state().caps;
        // After the IP, the execution context, last IP and three flags: one branch, taken.
        std::size_t const count = numbers + 8 * 15;
        engine::model_options how;
        how.tnt_capacity = 47;
        auto const with = [&](std::uint64_t branches, std::uint64_t bits,
                              engine::model_options const& under) {
            auto const changed = with_number(image, count, value(branches));
            return engine::load(of, with_number(changed, count + 8, bits).view(), under);
        };
        return load_le64(image.bytes.data() + count) == 1 && with(5, 0x1F, {}) &&
               with(46, low_bits(46), how) && with(0, 0, {}) &&
               fails(with(6, 0, {}), access::error::out_of_range) &&
               fails(with(5, 0x20, {}), access::error::out_of_range) &&
               fails(with(47, 0, how), access::error::out_of_range);
    });
    CHECK_TWICE([](auto value) {  // if nothing is traced, the TNT buffer is discarded
        auto const unit = test::off("CPL=0");
        auto const image = with_number(engine::store(unit), numbers + 8 * 15,
                                       value(std::uint64_t{2}));
        auto const loaded = engine::load(unit.state().caps, image.view());
        return loaded && loaded.unit.state().writer.tnt.count == 0;
    });
}

TEST_CASE("load() into a smaller buffer fails only if the bytes do not fit") {
    CHECK_TWICE([](auto value) {
        auto unit = full();
        machine_memory memory;
        bool const fits = static_cast<bool>(
            engine::load<384>(unit.state().caps, engine::store(unit).view(), unit.state().options));
        for (std::uint64_t i = 0; i < 60; ++i) {
            (void)unit.on(action::indirect_jump{value(0x1234'5678'9ABC'DEF0 + (i << 48))}, memory);
        }
        return fits && unit.buffered().size() > 384 &&
               fails(engine::load<384>(unit.state().caps, engine::store(unit).view(),
                                       unit.state().options),
                     access::error::no_room);
    });
}

TEST_CASE("an image with any byte changed is rejected, or gives a working unit") {
    auto const image = engine::store(full());
    auto const of = full().state().caps;
    engine::model_options const how = full().state().options;
    unsigned taken = 0, refused = 0;
    for (std::size_t at = 0; at < image.size; ++at) {
        for (unsigned const byte : {0U, 1U, 2U, 3U, 6U, 0x40U, 0x41U, 0x7FU, 0x80U, 0xFFU}) {
            auto changed = image;
            changed.bytes.bytes[at] = static_cast<std::uint8_t>(byte);
            auto loaded = engine::load(of, changed.view(), how);
            if (!loaded) {
                ++refused;
                continue;
            }
            ++taken;
            auto& unit = loaded.unit;
            machine_memory memory;
            (void)unit.on(action::near_return{0x1010}, memory);
            (void)unit.on(action::elapsed{3, 0x200, 0x600}, memory);
            (void)unit.on(action::psb_due{}, memory);
            for (std::uint64_t i = 0; i < 50; ++i) {
                (void)unit.on(action::conditional{0x1020, i % 3 == 0}, memory);
                (void)unit.on(action::indirect_jump{i << 40}, memory);
            }
            (void)unit.wrmsr(
                {.index = ia32_rtit_ctl::address, .value = 0, .at = 0x1100, .next = 0x1102},
                memory);
            if (!engine::load(of, engine::store(unit).view(), how)) {
                FAIL("the unit cannot be saved and loaded, byte " << at << ": " << byte);
            }
        }
    }
    CHECK(taken > 1'000);
    CHECK(refused > 1'000);
}
