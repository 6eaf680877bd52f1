// SPDX-License-Identifier: BSL-1.0
// PADs align packets to the addresses at which they are stored, whatever software writes to
// IA32_RTIT_OUTPUT_MASK_PTRS. A judge of its own reads the packets back from memory.
#include <ptspec/engine/unit_image.hpp>

#include <support/check_twice.hpp>
#include <support/random_numbers.hpp>
#include <support/unit_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace ptspec;
using engine::trace_unit;
using packet::kind;
using test::is_done;
using test::machine_memory;
using test::machine_memory_in_place;
using test::regions;
using trace::pad_policy;
namespace action = engine::action;
using ctl = access::ia32_rtit_ctl;
using pointers = access::ia32_rtit_output_mask_ptrs;

namespace {

struct placed {
    kind which{};
    std::uint64_t at = 0;  ///< its address
    std::uint64_t length = 0;
    std::uint64_t pads = 0;  ///< directly before it

    [[nodiscard]] auto end() const -> std::uint64_t { return at + length; }
    [[nodiscard]] auto is_mode() const -> bool {
        return which == kind::mode_exec || which == kind::mode_tsx;
    }
    [[nodiscard]] auto is_ip() const -> bool {
        return which == kind::tip || which == kind::tip_pge || which == kind::tip_pgd ||
               which == kind::fup;
    }
    [[nodiscard]] auto is_status() const -> bool {
        return which == kind::pip || which == kind::vmcs || which == kind::tsc ||
               which == kind::tma;
    }
    /// Its payload has words of its own.
    [[nodiscard]] auto is_wide() const -> bool { return is_status() || (is_ip() && length >= 7); }
};

struct stream {
    std::vector<placed> packets{};
    std::uint64_t end = 0;
    std::uint64_t last_pads = 0;
    bool is_damaged = false;
};
auto stream_at(std::uint64_t start, byte_view bytes) -> stream {
    stream all{.end = start + bytes.size()};
    std::uint64_t pads = 0;
    trace::reader from{bytes, {.sync = false}};
    for (auto it = from.next(); it; it = from.next()) {
        all.is_damaged |= it.what != trace::item_type::packet;
        if (it.packet.kind() == kind::pad) {
            ++pads;
            continue;
        }
        std::uint64_t const at = start + it.offset;
        if (!all.packets.empty()) { all.packets.back().length = at - pads - all.packets.back().at; }
        all.packets.push_back({it.packet.kind(), at, all.end - at, pads});
        pads = 0;
    }
    if (!all.packets.empty()) { all.packets.back().length -= pads; }
    all.last_pads = pads;
    return all;
}

/// What GEN-010 says of *skylake* and *icelake*, without CYC. Empty, or what is wrong.
auto wrong_on_skylake(std::vector<placed> const& all, std::size_t i) -> std::string {
    auto const& one = all[i];
    std::uint64_t const over = one.at % 8;
    std::size_t first = i;  // of the MODEs directly before an IP packet
    while (one.is_ip() && first > 0 && all[first].pads == 0 && all[first - 1].is_mode()) {
        --first;
    }
    auto const& lead = all[first];
    std::uint64_t begin = lead.at - lead.pads;
    if (first > 0 && all[first - 1].is_wide()) { begin = (begin + 7) / 8 * 8; }
    if (lead.at < begin) { return "a packet in the word of a wide payload"; }
    std::uint64_t const pads = lead.at - begin;
    if (one.is_status() && over != 6) { return "a status packet not at 6"; }
    if (one.is_ip() && one.length >= 7 && over != 7) { return "a wide IP not at 7"; }
    if (one.which == kind::psb && over != 0) { return "a PSB not at 0"; }
    if (one.is_mode()) {
        bool const leads = i + 1 < all.size() && all[i + 1].pads == 0 &&
                           (all[i + 1].is_ip() || all[i + 1].is_mode());
        return leads || over == 0 ? "" : "a MODE alone not at 0";
    }
    bool const is_narrow = !one.is_wide() && one.which != kind::psb;
    if (is_narrow && lead.at / 8 != (one.end() - 1) / 8) { return "a narrow packet over a word"; }
    if (is_narrow && pads != 0) {
        if (lead.at % 8 != 0) { return "PADs that do not end at 0"; }
        if (begin % 8 + (one.end() - lead.at) <= 8) { return "PADs that are not needed"; }
    }
    return pads < 8 ? "" : "more PADs than to the next word";
}
/// What GEN-010 says of *broadwell*.
auto wrong_on_broadwell(std::vector<placed> const& all, std::size_t i) -> std::string {
    auto const& one = all[i];
    bool const shares = one.is_mode() || one.which == kind::cbr;
    bool const shared = i > 0 && (all[i - 1].is_mode() || all[i - 1].which == kind::cbr);
    if (shares && shared && one.pads == 0 && one.at / 8 == (one.end() - 1) / 8) { return ""; }
    if (one.at % 8 != 0) { return "a packet not at 0"; }
    return one.pads < 8 ? "" : "more PADs than to the next word";
}
auto wrong_within_words(placed const& one) -> std::string {
    if (one.length <= 8 && one.at / 8 != (one.end() - 1) / 8) { return "a packet over a word"; }
    if (one.length > 8 && one.at % 8 != 0) { return "a long packet not at 0"; }
    std::uint64_t const before = (one.at - one.pads) % 8;
    bool const is_needed = before != 0 && before + one.length > 8;
    return one.pads == (is_needed ? 8 - before : 0) ? "" : "PADs that are not needed, or too many";
}
/// Judges a trace from TraceEn rising to falling. Empty, or what is wrong.
auto judged(engine::model_options const& how, stream const& all) -> std::string {
    if (all.is_damaged || all.packets.empty()) { return "no packets"; }
    auto const& packets = all.packets;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        std::string const wrong = how.pads == pad_policy::skylake ? wrong_on_skylake(packets, i)
                                  : how.pads == pad_policy::broadwell
                                      ? wrong_on_broadwell(packets, i)
                                  : how.pads == pad_policy::within_words
                                      ? wrong_within_words(packets[i])
                                  : packets[i].pads != 0 ? "a PAD"
                                                         : "";
        if (!wrong.empty()) { return wrong + " at packet " + std::to_string(i); }
    }
    std::uint64_t const multiple = how.end_alignment != 0 ? how.end_alignment : 1;
    if (all.end % multiple != 0) { return "an end that is not aligned"; }
    return all.last_pads < multiple ? "" : "too many PADs at the end";
}

struct model {
    std::string name;
    engine::model_options how;
};
/// All kinds of processors, and all policies with other alignments of the end.
auto models() -> std::vector<model> {
    std::vector<model> all;
    for (auto const& one : engine::model_kinds) {
        all.push_back({{one.name.data(), one.name.size()}, one.options});
    }
    for (unsigned policy = 0; policy < 4; ++policy) {
        for (unsigned const end : {0U, 4U, 128U}) {
            engine::model_options how;
            how.pads = static_cast<pad_policy>(policy);
            how.end_alignment = static_cast<std::uint8_t>(end);
            all.push_back({"pads=" + std::to_string(policy) + " end=" + std::to_string(end), how});
        }
    }
    return all;
}

auto write(trace_unit<>& unit, auto& memory, std::uint32_t index, std::uint64_t value) -> bool {
    return is_done(
        unit.wrmsr({.index = index, .value = value, .at = 0x1000, .next = 0x1002}, memory));
}
auto pointers_at(std::uint64_t index, std::uint64_t offset) -> std::uint64_t {
    return offset << 32 | index << 7 | pointers::forced_1_mask();
}

constexpr std::uint64_t ring = 0x2000;  // the two regions, or the single range

/// The bytes from `start` on, in two regions and round.
auto stored_at(machine_memory const& memory, std::uint64_t start, std::uint64_t count)
    -> std::vector<std::uint8_t> {
    std::vector<std::uint8_t> all;
    for (std::uint64_t i = 0; i < count; ++i) {
        all.push_back(memory.trace.bytes[static_cast<std::size_t>((start - regions + i) % ring)]);
    }
    return all;
}

/// Executes something.
template <class Memory>
void execute(trace_unit<>& unit, Memory& memory, test::random_numbers& any) {
    engine::execution_context const kernel{.cr3 = 0x1000};
    switch (any.below(8)) {
        case 0: {
            std::uint64_t const masks[] = {0xFFFF, 0xFFFF'FFFF, 0xFFFF'FFFF'FFFF};
            std::uint64_t const mask = masks[any.below(3)];
            (void)unit.on(action::indirect_jump{any() & mask >> 1U}, memory);
            break;
        }
        case 1: (void)unit.on(action::psb_due{}, memory); break;
        case 2: {
            std::uint64_t const cr3 = any.below(16) << 12U;
            (void)unit.on(action::mov_cr3{.at = 0x1010, .next = 0x1013, .cr3 = cr3}, memory);
            break;
        }
        case 3: {
            auto user = kernel;
            user.cpl = 3;
            (void)unit.on(action::far_transfer{0x1010, 0x7F00'0000'1000, user}, memory);
            (void)unit.on(action::far_transfer{0x7F00'0000'1010, 0x1010, kernel}, memory);
            break;
        }
        default: {
            for (std::uint64_t n = 1 + any.below(8); n != 0; --n) {
                (void)unit.on(action::conditional{0x1010, any.one_in(2)}, memory);
            }
            break;
        }
    }
    if (unit.state().code.cr3 != kernel.cr3) {
        (void)unit.on(action::mov_cr3{.at = 0x1020, .next = 0x1023, .cr3 = kernel.cr3}, memory);
    }
}

/// Several traces; between them software moves the output, or leaves it where it is.
template <class Memory>
auto run(model const& of, bool is_topa, std::uint64_t seed) -> std::string {
    Memory memory;
    test::random_numbers any{seed};
    auto unit = test::off(is_topa ? "CPL=0, OS=1, User=0, TSCEn=MTCEn=1, PSBFreq=0"
                                  : "CPL=0, OS=1, User=0, ToPA=0",
                          of.how);
    if (!is_topa && !write(unit, memory, reg::ia32_rtit_output_base::address, regions)) {
        return "no base";
    }
    std::uint64_t start = 0;
    for (unsigned i = 0; i < 4; ++i) {
        if (i == 0 || any.one_in(2)) {
            std::uint64_t const index = any.below(3);
            std::uint64_t const offset = any.below(4096);
            std::uint64_t const word = is_topa ? pointers_at(index, offset)
                                               : (index % 2 * 4096 + offset) << 32 | (ring - 1);
            if (is_topa && !write(unit, memory, reg::ia32_rtit_output_base::address, test::table)) {
                return "no table";
            }
            if (!write(unit, memory, pointers::address, word)) { return "no pointers"; }
            bool const is_end = is_topa && index == 2;  // a link to the table
            start = regions + (is_end ? 0 : index % 2 * 4096 + offset);
        }
        std::uint64_t const before = unit.total().stored;
        if (!is_done(test::enable(unit, memory))) { return "not enabled"; }
        for (std::uint64_t n = any.below(60); n != 0; --n) { execute(unit, memory, any); }
        if (!is_done(test::disable(unit, memory))) { return "not disabled"; }
        std::uint64_t const count = unit.total().stored - before;
        if (unit.total().lost != 0 || count > ring) { return "too many bytes"; }
        auto const bytes = stored_at(memory, start, count);
        auto const wrong = judged(of.how, stream_at(start, byte_view{bytes}));
        if (!wrong.empty()) { return "trace " + std::to_string(i) + ": " + wrong; }
        start = regions + (start - regions + count) % ring;
        auto const now = unit.msrs().output.mask_ptrs;
        std::uint64_t const at = now.get<pointers::OutputOffset>() +
                                 (is_topa ? now.get<pointers::MaskOrTableOffset>() * 4096 : 0);
        if (regions + at != start) { return "another position"; }
    }
    return {};
}

}  // namespace

TEST_CASE("PADs align packets to their addresses, wherever software moves the output (GEN-010)") {
    for (auto const& of : models()) {
        INFO(of.name);
        for (std::uint64_t seed = 1; seed <= 60; ++seed) {
            INFO("seed ", seed);
            for (bool const is_topa : {true, false}) {
                INFO("ToPA ", is_topa);
                auto const wrong = run<machine_memory>(of, is_topa, seed);
                CHECK(wrong == "");
                CHECK(run<machine_memory_in_place>(of, is_topa, seed) == wrong);
            }
        }
    }
}

namespace {

auto const skylake = engine::options_of(engine::model_kind::skylake);

/// A unit of the kind *skylake* whose output software has moved to an END entry with an offset:
/// the first byte goes to the first region.
struct at_link {
    machine_memory memory{};
    trace_unit<> unit;

    explicit at_link(std::string_view setup = "CPL=0, OS=1") : unit{test::off(setup, skylake)} {
        REQUIRE(write(unit, memory, pointers::address, pointers_at(2, 0x123)));
    }
    [[nodiscard]] auto on_word() const -> ctl { return unit.msrs().ctl.with(ctl::TraceEn{true}); }
    /// What is wrong with the bytes that were stored after the first `before`, from `start` on.
    [[nodiscard]] auto wrong(std::uint64_t start = regions, std::uint64_t before = 0) const
        -> std::string {
        auto const bytes = stored_at(memory, start, unit.total().stored - before);
        return judged(skylake, stream_at(start, byte_view{bytes}));
    }
    [[nodiscard]] auto finish() -> std::string {
        if (!unit.state().ctl<ctl::TraceEn>()) { return "TraceEn is 0"; }
        for (std::uint64_t i = 0; i < 20; ++i) {
            (void)unit.on(action::indirect_jump{0x1234'5678 * i}, memory);
        }
        if (!is_done(test::disable(unit, memory))) { return "not disabled"; }
        return wrong();
    }
};

}  // namespace

TEST_CASE("each operation that sets TraceEn aligns to the address of the first byte (GEN-010)") {
    {
        at_link by_wrmsr;
        CHECK(is_done(test::enable(by_wrmsr.unit, by_wrmsr.memory)));
        CHECK(by_wrmsr.finish() == "");
    }
    {
        at_link by_start;
        CHECK(is_done(by_start.unit.start(by_start.on_word(), by_start.memory)));
        CHECK(by_start.finish() == "");
    }
    {
        at_link by_entry{"CPL=0, OS=1, VMX=root"};
        (void)by_entry.unit.on(
            action::vm_entry{
                .at = 0x1000, .to = 0x2000, .after = {}, .loads = {true, by_entry.on_word()}},
            by_entry.memory);
        CHECK(by_entry.finish() == "");
    }
    {
        at_link by_exit{"CPL=0, OS=1, VMX=nonroot"};
        action::moment const none[1] = {};
        (void)by_exit.unit.on(
            action::vm_exit{
                .from = 0x1000, .to = 0x2000, .after = {}, .loads = {true, by_exit.on_word()}},
            by_exit.memory, action::time_within{none, 0});
        CHECK(by_exit.finish() == "");
    }
    // RSM, and the end of an ACM.
    auto const check_resumed = [](std::uint32_t offset, auto const& leave, auto const& resume) {
        at_link from;
        auto& unit = from.unit;
        REQUIRE(write(unit, from.memory, pointers::address, pointers_at(0, offset)));
        CHECK(is_done(test::enable(unit, from.memory)));
        (void)unit.on(leave, from.memory);
        REQUIRE(write(unit, from.memory, pointers::address, pointers_at(2, 0x123)));
        std::uint64_t const before = unit.total().stored;
        (void)unit.on(resume, from.memory);
        CHECK(unit.state().template ctl<ctl::TraceEn>());
        (void)unit.on(action::indirect_jump{0x7654'3210}, from.memory);
        CHECK(is_done(test::disable(unit, from.memory)));
        CHECK(from.wrong(regions, before) == "");
    };
    check_resumed(0x800, action::smi{.next = 0x1010, .to = 0x8'0000}, action::rsm{.to = 0x1010});
    check_resumed(0x801, action::acm_begin{}, action::acm_end{.next = 0x1010});
    {
        at_link by_xrstors;
        auto& unit = by_xrstors.unit;
        REQUIRE(write(unit, by_xrstors.memory, pointers::address, pointers_at(0, 0x811)));
        CHECK(is_done(test::enable(unit, by_xrstors.memory)));
        auto image = unit.xsaves(0x1010, 0x1014, by_xrstors.memory).image;
        CHECK(by_xrstors.wrong(regions + 0x811) == "");
        // The same context with another position.
        image = image.with(
            access::xsave_pt_state::IA32_RTIT_OUTPUT_MASK_PTRS{wrapped{pointers_at(2, 0x123)}});
        std::uint64_t const before = unit.total().stored;
        CHECK(is_done(unit.xrstors(image, 0x1020, 0x1024, by_xrstors.memory)));
        (void)unit.on(action::indirect_jump{0x7654'3210}, by_xrstors.memory);
        CHECK(is_done(test::disable(unit, by_xrstors.memory)));
        CHECK(by_xrstors.wrong(regions, before) == "");
    }
    {
        at_link by_undoing;
        auto& [memory, unit] = by_undoing;
        CHECK(is_done(test::enable(unit, memory)));
        (void)unit.on(action::indirect_jump{0x1111'2222}, memory);
        CHECK(is_done(unit.xsaves_that_faults(0x1030, memory)));
        (void)unit.on(action::indirect_jump{0x7654'3210}, memory);
        CHECK(is_done(test::disable(unit, memory)));
        auto const bytes = stored_at(memory, regions, unit.total().stored);
        std::size_t middle = 0;
        for (auto const& one : stream_at(regions, byte_view{bytes}).packets) {
            if (middle == 0 && one.which == kind::tip_pgd) {
                middle = static_cast<std::size_t>(one.end() - regions);
            }
        }
        middle = (middle + 15) / 16 * 16;
        REQUIRE((middle != 0 && middle < bytes.size()));
        byte_view const all{bytes};
        CHECK(judged(skylake, stream_at(regions, all.first(middle))) == "");
        CHECK(judged(skylake, stream_at(regions + middle, all.from(middle))) == "");
    }
}

TEST_CASE("a unit that begins with TraceEn = 1 aligns to the address of its first byte (GEN-010)") {
    machine_memory memory;
    auto from = test::traced::started("CPL=0, OS=1");
    from.msrs.output.base = {test::table};
    from.msrs.output.mask_ptrs = {pointers_at(2, 0x125)};
    trace_unit<> unit{from.of, from.msrs, from.code, from.ip, skylake};
    (void)unit.on(action::indirect_jump{0x7654'3210}, memory);
    (void)unit.on(action::psb_due{}, memory);
    CHECK(is_done(test::disable(unit, memory)));
    auto const bytes = stored_at(memory, regions, unit.total().stored);
    CHECK(judged(skylake, stream_at(regions, byte_view{bytes})) == "");
}

TEST_CASE("an image has the alignment of its position (GEN-010)") {
    at_link moves;
    auto& unit = moves.unit;
    CHECK(is_done(test::enable(unit, moves.memory)));
    for (std::uint64_t i = 0; i < 30; ++i) {
        (void)unit.on(action::indirect_jump{0x1234'5678 * i}, moves.memory);
        auto const loaded = engine::load<1024>(unit.state().caps, engine::store(unit).view(),
                                               skylake);
        REQUIRE(loaded);
        unit = loaded.unit;
    }
    CHECK(moves.finish() == "");
}

TEST_CASE("after STOP or an error, and new pointers, the next trace is aligned (GEN-010)") {
    for (bool const stops : {true, false}) {
        INFO("STOP ", stops);
        at_link again;
        auto& [memory, unit] = again;
        memory.put(0, topa::entry{(stops ? test::STOP.raw : 0) | regions});
        if (!stops) { memory.put(1, topa::entry{2}); }  // a reserved bit
        REQUIRE(write(unit, memory, pointers::address, pointers_at(0, 0xF03)));
        CHECK(is_done(test::enable(unit, memory)));
        for (std::uint64_t i = 0; i < 99; ++i) {
            (void)unit.on(action::indirect_jump{0x1234'5678 * i}, memory);
        }
        CHECK(is_done(test::disable(unit, memory)));
        using status = access::ia32_rtit_status;
        auto const why = unit.msrs().status;
        CHECK((stops ? why.get<status::Stopped>() : why.get<status::Error>()));
        CHECK(unit.total().lost != 0);
        REQUIRE(write(unit, memory, status::address, 0));
        REQUIRE(write(unit, memory, pointers::address, pointers_at(0, 0x205)));
        std::uint64_t const before = unit.total().stored;
        CHECK(is_done(test::enable(unit, memory)));
        (void)unit.on(action::indirect_jump{0x7654'3210}, memory);
        CHECK(is_done(test::disable(unit, memory)));
        CHECK(again.wrong(regions + 0x205, before) == "");
    }
}

TEST_CASE("with packets in the buffer the next one is aligned to where it will be (GEN-010)") {
    auto how = skylake;
    how.drained_at_once = 3;
    machine_memory memory;
    auto unit = test::off("CPL=0, OS=1", how);
    REQUIRE(write(unit, memory, pointers::address, pointers_at(1, 0xFE9)));
    CHECK(is_done(test::enable(unit, memory)));
    for (std::uint64_t i = 0; i < 50; ++i) {
        (void)unit.on(action::indirect_jump{0x1234'5678 * i}, memory);
        auto const loaded = engine::load<1024>(unit.state().caps, engine::store(unit).view(), how);
        REQUIRE(loaded);
        unit = loaded.unit;
    }
    CHECK(unit.buffered().size() > 100);
    CHECK(is_done(test::disable(unit, memory)));
    std::uint64_t const start = regions + 0x1FE9;
    auto const bytes = stored_at(memory, start, unit.total().stored);
    CHECK(judged(how, stream_at(start, byte_view{bytes})) == "");
}

namespace {

/// A fabric that records what it gets.
struct recording_fabric : machine_memory {
    std::vector<std::uint8_t> got{};

    auto send(byte_view bytes) -> std::size_t {
        got.insert(got.end(), bytes.begin(), bytes.end());
        return bytes.size();
    }
};

}  // namespace

TEST_CASE("to a fabric each trace is aligned to its first byte (GEN-010, OUT-120)") {
    recording_fabric memory;
    auto unit = test::off("CPL=0, OS=1, ToPA=0, FabricEn=1", skylake);
    for (std::uint64_t const offset : {0x3U, 0x77U}) {
        memory.got.clear();
        REQUIRE(write(unit, memory, pointers::address, pointers_at(0, offset)));
        CHECK(is_done(test::enable(unit, memory)));
        (void)unit.on(action::indirect_jump{0x7654'3210}, memory);
        CHECK(is_done(test::disable(unit, memory)));
        CHECK(judged(skylake, stream_at(0, byte_view{memory.got})) == "");
    }
}

namespace {

/// A table that cannot be read at first.
struct slow_memory : machine_memory {
    bool is_ready = false;

    [[nodiscard]] auto load(std::uint64_t address) const -> port_value {
        return is_ready ? machine_memory::load(address) : port_value{};
    }
};

}  // namespace

TEST_CASE("if the entry cannot be read, OutputOffset decides where packets are (GEN-010)") {
    slow_memory memory;
    auto unit = test::off("CPL=0, OS=1", skylake);
    REQUIRE(write(unit, memory, pointers::address, pointers_at(1, 0x123)));
    auto const access = test::enable(unit, memory);
    CHECK((access.fault.happened && unit.total().stored == 0));
    memory.is_ready = true;
    CHECK(!unit.drain(memory).happened);
    (void)unit.on(action::indirect_jump{0x7654'3210}, memory);
    CHECK(is_done(test::disable(unit, memory)));
    std::uint64_t const start = regions + 0x1123;
    auto const bytes = stored_at(memory, start, unit.total().stored);
    CHECK(judged(skylake, stream_at(start, byte_view{bytes})) == "");
}

TEST_CASE(
    "a generator without output counts from the OutputOffset that software writes (GEN-010)") {
    test::traced unit{"kind=skylake, CPL=0, OS=1, TraceEn=0"};
    for (std::uint64_t const offset : {0x3U, 0x45U}) {
        unit.bytes = byte_buffer{unit.room};
        unit.writes(pointers::address, pointers_at(0, offset), 0x1000, 0x1002);
        unit.writes(ctl::address, unit.msrs().ctl.with(ctl::TraceEn{true}).raw, 0x1002, 0x1004);
        unit.does(action::indirect_jump{0x7654'3210});
        unit.writes(ctl::address, unit.msrs().ctl.with(ctl::TraceEn{false}).raw, 0x1004, 0x1006);
        CHECK(judged(skylake, stream_at(offset, unit.bytes.written())) == "");
    }
}

TEST_CASE("PSBs stand where they do without earlier traces (GEN-012)") {
    auto const second = [](bool has_first) {
        at_link one;
        auto& [memory, unit] = one;
        if (has_first) {
            REQUIRE(write(unit, memory, pointers::address, pointers_at(0, 0x5)));
            CHECK(is_done(test::enable(unit, memory)));
            for (std::uint64_t i = 0; i < 40; ++i) {
                (void)unit.on(action::indirect_jump{0x1234'5678 * i}, memory);
            }
            CHECK(is_done(test::disable(unit, memory)));
            REQUIRE(write(unit, memory, access::ia32_rtit_status::address, 0));
        }
        REQUIRE(write(unit, memory, pointers::address, pointers_at(0, 0x10)));
        std::uint64_t const before = unit.total().stored;
        CHECK(is_done(test::enable(unit, memory)));
        for (std::uint64_t i = 0; i < 800; ++i) {
            (void)unit.on(action::indirect_jump{0x1234'5678 * i}, memory);
        }
        CHECK(is_done(test::disable(unit, memory)));
        return stored_at(memory, regions + 0x10, unit.total().stored - before);
    };
    auto const alone = second(false);
    CHECK(alone.size() > 6000);
    // The clocks stand still, and nothing else differs.
    CHECK((alone == second(true)));
}
