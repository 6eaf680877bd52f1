// SPDX-License-Identifier: BSL-1.0
// Replays MSR accesses of the Linux driver on a trace unit: each must have its recorded outcome.
// The recordings are not part of the project (tests/support/traces.py describes where they are).
// Without them only the sequences below run, whose outcomes follow from the catalogue.
//
// A recording has no packets. Between one enabling WRMSR and the next, the test searches for a
// program (branches, transfers, requested PSBs) with which every access has its recorded outcome.
// Such a program shows that the recorded positions, byte counts, interrupts and STOPs are
// consistent. Each access is checked for legality, rule and full value. The tables are those that
// the recording lists. A table that is not listed has the regions that the driver allocates for
// such a ring, with INT and STOP where interrupts and STOPs were recorded. A processor without a
// preset is built from what the recording of the driver's initialization reads.
#include <support/check_twice.hpp>
#include <support/facts.hpp>
#include <support/msr_sequences.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace ptspec;
using namespace ptspec::test::sequences;
namespace action = engine::action;
namespace preset = cpu::preset;
using ctl = reg::ia32_rtit_ctl;
using status = reg::ia32_rtit_status;

namespace {

/// True if every access of a sequence has its outcome.
constexpr auto go_through(processor& one, std::string_view text) -> bool {
    while (!text.empty()) {
        if (!one.does(cut(text))) { return false; }
    }
    return true;
}
constexpr auto goes_through(
    cpu::capabilities const& of, std::string_view text,
    engine::model_options const& how = engine::options_of(engine::model_kind::manual)) -> bool {
    processor one{of, how};
    return go_through(one, text);
}
/// Executes `count` indirect jumps of 7 bytes of trace each.
constexpr void jump(processor& one, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        one.on(action::indirect_jump{one.unit.ip() ^ 0x1'0000'0000});
    }
}

constexpr std::string_view one_region = R"(
# ToPA 10000000[0] = 20000014
# ToPA 10000000[1] = 10000001
WRMSR(560,10000000); WRMSR(561,7F); WRMSR(571,0); WRMSR(570,210D)
)";
constexpr std::string_view two_regions = R"(
# ToPA 10000000[0] = 20000004
# ToPA 10000000[1] = 20001004
# ToPA 10000000[2] = 10000001
WRMSR(560,10000000); WRMSR(561,7F); WRMSR(571,0); WRMSR(570,210D)
)";

// ------------------------------------------------------------------------------------ recordings

/// A ring buffer of the driver: regions of equal size, or one table per region.
struct ring {
    std::uint64_t pages = 0;
    std::uint64_t region = 0;  ///< bytes of each region
    bool overwrites = false;
    std::uint64_t table = 0;  ///< address of the first table

    [[nodiscard]] auto regions() const -> std::uint64_t { return pages * 0x1000 / region; }
};

/// The final state of a segment of a recording, as far as it is recorded.
struct outcome {
    std::optional<std::uint64_t> pointers{};
    std::optional<std::uint64_t> count{};  ///< PacketByteCnt
    bool interrupts = false;
};

class replay {
public:
    replay(cpu::capabilities const& of, std::string_view text) : now_{of} {
        while (!text.empty()) { all_.push_back(cut(text)); }
    }

    /// The first difference between the recording and the unit; empty if there is none.
    auto run() -> std::string {
        for (std::size_t i = 0; i < all_.size(); ++i) {
            auto const& what = all_[i];
            std::size_t const end = end_of_segment(i);
            if (what.what == kind::ring) { add_ring(what); }
            if (what.enables()) { set_up(i, end); }
            if (!now_.does(what)) { return difference(what); }
            if (what.enables()) { drives_at_ = end_of_handler(i, end); }
            if (i == drives_at_) { drive(i, end); }
            accesses += what.what == kind::rdmsr || what.what == kind::wrmsr ? 1U : 0U;
        }
        return {};
    }
    std::size_t accesses = 0;

private:
    auto difference(statement const& what) -> std::string {
        std::ostringstream out;
        out << std::string{what.text};
        if (what.what == kind::rdmsr) {
            out << ": reads " << std::hex << std::uppercase << now_.value_of(what.index);
        }
        return out.str();
    }
    [[nodiscard]] auto end_of_segment(std::size_t begin) const -> std::size_t {
        std::size_t end = begin + 1;
        while (end < all_.size() && !all_[end].enables()) { ++end; }
        return end;
    }

    /// The end of the interrupt handler that sets TraceEn: it checks again for an interrupt and
    /// enables the counters.
    [[nodiscard]] auto end_of_handler(std::size_t begin, std::size_t end) const -> std::size_t {
        auto const belongs = [](statement const& what) {
            return what.what == kind::comment || what.what == kind::entry ||
                   (what.what == kind::rdmsr && what.index == 0x38E && what.value == 0) ||
                   (what.what == kind::wrmsr && what.index == 0x38F && what.value != 0);
        };
        while (begin + 1 < end && belongs(all_[begin + 1])) { ++begin; }
        return begin;
    }

    // -------------------------------------------------------------------------------- set up

    void add_ring(statement const& what) {
        ring made;
        made.pages = what.values[0];
        made.overwrites = what.overwrites;
        made.region = made.overwrites       ? made.pages * 0x1000
                      : what.values[1] != 0 ? what.values[1]
                                            : made.pages * 0x800;
        rings_.push_back(made);
    }
    auto ring_of(std::uint64_t table) -> ring* {
        for (auto& one : rings_) {
            bool const one_each = !now_.unit.state().caps.has_topa_of_many_entries();
            std::uint64_t const tables = one_each ? one.regions() : 1;
            if (one.table != 0 && table - one.table < tables * 0x1000) { return &one; }
        }
        for (auto& one : rings_) {
            if (one.table == 0) { return one.table = table, &one; }
        }
        return nullptr;
    }
    /// If the byte count is not read, it is derived from the next one that is read, provided that
    /// no PSB is possible in between.
    [[nodiscard]] auto outcome_of(std::size_t begin, std::size_t end) const -> outcome {
        outcome seen;
        std::optional<std::uint64_t> later{};
        for (std::size_t i = begin + 1; i < all_.size(); ++i) {
            auto const& what = all_[i];
            bool const is_after = i >= end;
            bool const is_moved = what.what == kind::wrmsr && (what.index | 1) == 0x561;
            if (what.what == kind::cold_reset || (is_after && (seen.count || is_moved))) { break; }
            if (what.what != kind::rdmsr) { continue; }
            if (what.index == 0x38E) { seen.interrupts |= !is_after && what.value != 0; }
            if (what.index == 0x561) {
                (is_after || seen.pointers ? later : seen.pointers) = what.value;
            }
            if (what.index != 0x571 || !counts() || seen.count) { continue; }
            auto const count = status{what.value}.get<status::PacketByteCnt>();
            if (!is_after) {
                seen.count = count;
            } else if (seen.pointers && later) {
                auto const bytes = linear(*later) - linear(*seen.pointers);
                if (bytes < count) { seen.count = count - bytes; }
                break;
            }
        }
        return seen;
    }
    /// Writes the table that tracing starts with. The driver sets INT and STOP again at each start:
    /// if the segment lists no entry, they are derived from its outcome.
    void set_up(std::size_t begin, std::size_t end) {
        bool is_listed = false;
        for (std::size_t i = begin + 1; i < end; ++i) {
            if (all_[i].what != kind::entry) { continue; }
            (void)now_.does(all_[i]);
            is_listed = true;
        }
        std::uint64_t const table = now_.unit.msrs().output.base.raw;
        bool const is_topa = (all_[begin].value & 0x100) != 0;
        ring const* const of = is_topa && table != 0 ? ring_of(table) : nullptr;
        if (of == nullptr || is_listed) { return; }
        bool const one_each = !now_.unit.state().caps.has_topa_of_many_entries();
        std::uint64_t count = one_each ? 1 : of->regions();
        if (now_.memory.has(table)) {
            count = 0;
            while ((now_.memory.load(table + 8 * count).value & 1) == 0) { ++count; }
        } else {
            std::uint64_t const first = of->table - of->pages * 0x1000;
            std::uint64_t const skipped = one_each ? (table - of->table) / 0x1000 : 0;
            std::uint64_t const size = std::uint64_t{log2(of->region / 0x1000)} << 6;
            for (std::uint64_t i = 0; i < count; ++i) {
                now_.memory.put(table + 8 * i, (first + (skipped + i) * of->region) | size);
            }
            now_.memory.put(table + 8 * count, table | 1);
        }
        auto const seen = outcome_of(begin, end);
        auto const at = topa::position_in({table}, {seen.pointers.value_or(0)});
        bool const stops = seen.pointers && at.offset == region_bytes(at.index);
        auto const filled = stops ? at.index : (at.index + count - 1) % count;
        for (std::uint64_t i = 0; i < count; ++i) {
            auto const plain = now_.memory.load(table + 8 * i).value & ~std::uint64_t{0x14};
            std::uint64_t const marks = one_each ? (of->overwrites ? 0x00U : 0x14U)
                                        : i != filled
                                            ? 0x00U
                                            : (stops ? 0x10U : 0U) | (seen.interrupts ? 4U : 0U);
            now_.memory.put(table + 8 * i, plain | marks);
        }
    }
    static auto log2(std::uint64_t value) -> unsigned {
        unsigned log = 0;
        while (value >> (log + 1) != 0) { ++log; }
        return log;
    }

    // -------------------------------------------------------------------------------- distance

    /// Bytes before a position in the current table or in the single range.
    auto linear(std::uint64_t pointers) const -> std::uint64_t {
        auto const at = topa::position_in(now_.unit.msrs().output.base, {pointers});
        if (!now_.unit.msrs().ctl.get<ctl::ToPA>()) { return at.offset; }
        std::uint64_t sum = at.offset;
        for (std::uint32_t i = 0; i < at.index; ++i) { sum += region_bytes(i); }
        return sum;
    }
    auto region_bytes(std::uint32_t index) const -> std::uint64_t {
        auto const base = now_.unit.msrs().output.base.raw;
        return std::uint64_t{0x1000} << (now_.memory.load(base + 8 * index).value >> 6 & 15);
    }
    auto lap() const -> std::uint64_t {
        auto const msrs = now_.unit.msrs();
        if (!msrs.ctl.get<ctl::ToPA>()) { return (msrs.output.mask_ptrs.raw & 0xFFFF'FFFF) + 1; }
        std::uint64_t sum = 0;
        for (std::uint32_t i = 0; i < 512; ++i) {
            if ((now_.memory.load(msrs.output.base.raw + 8 * i).value & 1) != 0) { break; }
            sum += region_bytes(i);
        }
        return sum;
    }
    [[nodiscard]] static auto count_of(processor const& one) -> std::uint64_t {
        return one.unit.msrs().status.get<status::PacketByteCnt>();
    }
    [[nodiscard]] auto counts() const -> bool {
        return now_.unit.state().caps.leaf_14_0_ebx.get<reg::cpuid_14h_0_ebx::CPSB_CAM>();
    }
    /// Bytes still to be output in the segment. If the last PSB would lie before the current
    /// position, the ring was filled once more.
    [[nodiscard]] auto distance(outcome const& to) const -> std::uint64_t {
        if (!to.pointers) {
            return to.count && *to.count > count_of(now_) ? *to.count - count_of(now_) : 0;
        }
        auto const from = linear(now_.unit.msrs().output.mask_ptrs.raw);
        auto const at = linear(*to.pointers);
        auto const bytes = at >= from ? at - from : at + lap() - from;
        bool const needs_psb = to.count && count_of(now_) + bytes != *to.count;
        return needs_psb && bytes < *to.count ? bytes + lap() : bytes;
    }

    // -------------------------------------------------------------------------------- a program

    /// Searches for a program that gives the accesses up to `end` their outcomes, and runs it.
    void drive(std::size_t begin, std::size_t end) {
        auto const to = outcome_of(begin, end);
        if (is_goal(now_, begin, end)) { return; }
        go_near(to);
        search(begin, end, distance(to));
    }
    [[nodiscard]] auto is_goal(processor one, std::size_t begin, std::size_t end) const -> bool {
        if (one.unit.state().code.cpl != 0) { return false; }
        for (std::size_t i = begin + 1; i < end; ++i) {
            if (all_[i].what != kind::entry && !one.does(all_[i])) { return false; }
        }
        return true;
    }

    static constexpr std::uint64_t near_by = 40;
    static constexpr std::uint64_t a_psb = 80;  ///< a PSB+ is always shorter

    /// Outputs bytes up to shortly before the recorded position. A recorded byte count gives the
    /// position of the last PSB; otherwise the last PSB is output well before.
    void go_near(outcome const& to) {
        auto const period = std::uint64_t{2048} << now_.unit.msrs().ctl.get<ctl::PSBFreq>();
        auto const last = to.count.value_or(0);
        if (distance(to) <= near_by) { return; }
        if (!now_.unit.state().enables().packet()) { go_to(now_, 3, in_range(now_)); }
        if (to.count && count_of(now_) + distance(to) != last) {
            while (distance(to) > last) {
                auto const gap = distance(to) - last;
                bool const comes_by_itself = count_of(now_) + gap >= period;
                if (gap > a_psb && gap < 3 * a_psb && comes_by_itself) {
                    now_.on(action::psb_due{});
                } else if (!put_bytes(gap)) {
                    return;
                }
            }
            now_.on(action::psb_due{});
        }
        bool has_psb = to.count.has_value();
        while (distance(to) > near_by) {
            if (!has_psb && distance(to) < near_by + 2 * a_psb) {
                now_.on(action::psb_due{});
                has_psb = true;
            } else if (!put_bytes(distance(to) - near_by)) {
                return;
            }
        }
    }
    /// Outputs 7 bytes if many are needed, otherwise one. False if no byte was output.
    auto put_bytes(std::uint64_t wanted) -> bool {
        auto const before = now_.unit.total().stored;
        if (wanted > 3 * a_psb && !access::has_filter(now_.unit.msrs())) {
            now_.on(action::indirect_jump{now_.unit.ip() ^ 0x1'0000'0000});
        } else {
            put_tnt(now_);
        }
        return now_.unit.total().stored != before;
    }
    static void put_tnt(processor& one) {
        auto const ip = one.unit.ip();
        for (int i = 0; i < 6; ++i) { one.on(action::conditional{ip, true}); }
    }
    static void go_to(processor& one, std::uint8_t cpl, std::uint64_t ip) {
        auto code = one.unit.state().code;
        code.cpl = cpl;
        one.on(action::far_transfer{.at = one.unit.ip(), .to = ip, .after = code});
    }
    static auto in_range(processor const& one) -> std::uint64_t {
        auto const msrs = one.unit.msrs();
        return access::has_filter(msrs) ? msrs.addr[0].a.raw : 0x40'0000;
    }

    /// One step of a program.
    static void move(processor& one, unsigned which) {
        auto const ip = one.unit.ip();
        auto const is_user = one.unit.state().code.cpl != 0;
        switch (which) {
            case 0: return put_tnt(one);
            case 1: return one.on(action::indirect_jump{ip ^ 0x100});
            case 2: return go_to(one, is_user ? 0 : 3, is_user ? one.kernel : in_range(one));
            case 3: return one.on(action::ratio{8});
            case 4: return one.on(action::indirect_jump{one.unit.msrs().addr[1].a.raw});
            case 5: return one.on(action::indirect_jump{0x7000'0000});
            case 6: {
                auto const clocks = one.unit.state().clocks;
                auto const ticks = std::uint64_t{1} << one.unit.msrs().ctl.get<ctl::MTCFreq>();
                return one.on(action::elapsed{0, clocks.art + ticks, clocks.tsc + ticks});
            }
            default:
                return one.on(
                    action::interrupt{.next = ip, .to = ip, .after = one.unit.state().code});
        }
    }
    static constexpr unsigned moves = 8;

    /// Searches programs breadth-first.
    void search(std::size_t begin, std::size_t end, std::uint64_t to_go) {
        auto const key_of = [](processor const& one) {
            return std::array{one.unit.total().stored, one.unit.msrs().status.raw,
                              std::uint64_t{one.unit.state().code.cpl}};
        };
        constexpr std::size_t most = 3000;
        std::vector<processor> tried{now_};
        std::set<std::array<std::uint64_t, 3>> seen{key_of(now_)};
        auto const limit = now_.unit.total().stored + to_go + near_by;
        for (std::size_t i = 0; i < tried.size() && tried.size() < most; ++i) {
            for (unsigned which = 0; which < moves; ++which) {
                processor next = tried[i];
                move(next, which);
                bool const is_new = next.unit.total().stored <= limit &&
                                    seen.insert(key_of(next)).second;
                if (!is_new) { continue; }
                if (is_goal(next, begin, end)) {
                    now_ = next;
                    return;
                }
                tried.push_back(next);
            }
        }
    }

    processor now_;
    std::vector<statement> all_{};
    std::vector<ring> rings_{};
    std::size_t drives_at_ = ~std::size_t{0};
};

auto content(std::filesystem::path const& path) -> std::string {
    std::ifstream file{path, std::ios::binary};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}
/// The processor of a recording: a preset, or one built from what the driver read.
auto processor_of(std::string const& name) -> std::optional<cpu::capabilities> {
    static std::map<std::string, cpu::capabilities> const known{
        {"broadwell", preset::broadwell},       {"skylake_x", preset::skylake_x},
        {"ice_lake_u", preset::ice_lake_u},     {"tiger_lake", preset::tiger_lake},
        {"arrow_lake_p", preset::arrow_lake_p}, {"arrow_lake_e", preset::arrow_lake_e},
        {"all_features_P_FUT", preset::P_FUT},
    };
    if (auto const found = known.find(name); found != known.end()) { return found->second; }
    auto const facts = test::facts_folder();
    auto const init = facts ? content(*facts / "linux_msr_sequences" / ("00_init." + name + ".txt"))
                            : "";
    if (init.empty()) { return std::nullopt; }
    auto made = preset::P_ATM;
    for (std::string_view rest = init; !rest.empty();) {
        auto const what = cut(rest);
        auto const word = [&](int i) { return static_cast<std::uint32_t>(what.values[i]); };
        if (what.what == kind::cpuid && what.index == 0x15) {
            made.leaf_15_eax = {word(1)};
            made.leaf_15_ebx = {word(2)};
            made.leaf_15_ecx = {word(3)};
        } else if (what.what == kind::cpuid && what.values[0] == 0) {
            made.leaf_14_0_eax = {word(1)};
            made.leaf_14_0_ebx = {word(2)};
            made.leaf_14_0_ecx = {word(3)};
        } else if (what.what == kind::cpuid) {
            made.leaf_14_1_eax = {word(1)};
            made.leaf_14_1_ebx = {word(2)};
        } else if (what.what == kind::rdmsr && what.index == 0x485) {
            made.vmx_misc = {what.value};
        } else if (what.what == kind::rdmsr && what.index == 0xCE) {
            made.platform_info = {what.value};
        }
    }
    return made;
}

}  // namespace

TEST_CASE("without a configurable PSB, STATUS can be written back after each stop") {
    // REG-055, REG-063, PRG-030, PRG-042: PSB 16, CBR 4, PIP 8, PSBEND 2, MODE.Exec 2, TIP.PGE 7,
    // FUP 3, TIP.PGD 1 add up to 2BH, and to as many the second time
    CHECK_TWICE([](auto value) {
        processor one{value(preset::broadwell)};
        return go_through(one, one_region) && go_through(one, R"(
            WRMSR(570,210C); [SFENCE]; RDMSR(560)->10000000; RDMSR(561)->2B0000007F
            RDMSR(571)->2; WRMSR(571,2)
            WRMSR(570,210D); RDMSR(571)->6; WRMSR(571,6) #GP REG-004
            WRMSR(570,210C); RDMSR(561)->560000007F; RDMSR(571)->2; WRMSR(571,2)
            WRMSR(571,100000002) #GP REG-055)");
    });
}

TEST_CASE("STATUS written back keeps the byte count, so no PSB follows; writing 0 causes one") {
    // PRG-030, PRG-031, PRG-042; the second time CBR 4, MODE.Exec 2, TIP.PGE 7 (a full IP), FUP 3,
    // TIP.PGD 1
    CHECK_TWICE([](auto value) {
        processor one{value(preset::skylake_x)};
        return go_through(one, two_regions) && go_through(one, R"(
            WRMSR(570,210C); [SFENCE]; RDMSR(560)->10000000; RDMSR(561)->2B0000007F
            RDMSR(571)->2B00000003; WRMSR(571,2B00000003)
            WRMSR(570,210D); WRMSR(570,210C); RDMSR(561)->3C0000007F
            RDMSR(571)->3C00000003; WRMSR(571,0)
            WRMSR(570,210D); WRMSR(570,210C); RDMSR(561)->670000007F
            RDMSR(571)->2B00000003)");
    });
}

TEST_CASE("registers other than CTL may be written in any order before CTL") {  // PRG-030
    CHECK_TWICE([](auto value) {
        return goes_through(value(preset::skylake_x), R"(
            WRMSR(580,401000); WRMSR(561,7F); WRMSR(581,403FFF); WRMSR(571,0); WRMSR(572,5000)
            WRMSR(560,10000000); WRMSR(570,210D)
            WRMSR(571,0) #GP REG-004; WRMSR(560,10000000) #GP REG-004; WRMSR(580,0) #GP REG-004
            WRMSR(570,210D); WRMSR(570,2109) #GP REG-021; WRMSR(570,210C); WRMSR(580,0))");
    });
}

TEST_CASE("an interrupt raised between acknowledgement and TraceEn = 0 is not lost") {
    // PRG-122, OUT-082, OUT-084
    CHECK_TWICE([](auto value) {
        processor one{value(preset::skylake_x)};
        bool good = go_through(one, two_regions);
        jump(one, 590);  // into the second region
        good = good && go_through(one, R"(
            WRMSR(38F,0); RDMSR(38E)->80000000000000; WRMSR(390,80000000000000))");
        jump(one, 590);  // which becomes full before tracing stops
        return good && go_through(one, R"(
            WRMSR(570,210C); [SFENCE]; RDMSR(560)->10000000; RDMSR(561)->?; RDMSR(571)->?
            WRMSR(570,210D); RDMSR(38E)->80000000000000; WRMSR(390,80000000000000)
            RDMSR(38E)->0; WRMSR(38F,70000000F); [LVTPC unmasked])");
    });
}

TEST_CASE("STOP leaves the offset at the region's size, where enabling fails") {
    // OUT-080, OUT-081, OUT-083, OUT-064, PRG-086
    CHECK_TWICE([](auto value) {
        processor one{value(preset::broadwell)};
        bool const begins = go_through(one, one_region);
        jump(one, 600);
        return begins && go_through(one, R"(
            RDMSR(38E)->80000000000000; WRMSR(570,210C); RDMSR(560)->10000000
            RDMSR(561)->10000000007F; RDMSR(571)->22; WRMSR(571,2)
            WRMSR(570,210D); RDMSR(571)->12; WRMSR(570,210C); WRMSR(571,2)
            WRMSR(561,7F); WRMSR(570,210D); RDMSR(571)->6; WRMSR(570,210C)
            RDMSR(561)->2B0000007F)");
    });
}

TEST_CASE("without tracing in VMX operation, VMXON clears TraceEn and setting it is #GP") {
    // REG-110, REG-121
    CHECK_TWICE([](auto value) {
        processor one{value(preset::broadwell)};
        return go_through(one, one_region) && go_through(one, R"(
            RDMSR(570)->210D; [VMXON]; RDMSR(570)->210C; RDMSR(571)->2; WRMSR(571,2)
            WRMSR(570,210D) #GP REG-121; WRMSR(560,20000000); WRMSR(560,10000000)
            [VMXOFF]; WRMSR(570,210D); RDMSR(570)->210D)");
    });
}

TEST_CASE("the pointers read while TraceEn is 1 may be those at the start of tracing") {
    // REG-011, PRG-034, PRG-103
    CHECK_TWICE([](auto value) {
        engine::model_options how;
        how.msrs_lag = value(true);
        processor one{preset::skylake_x, how};
        return go_through(one, two_regions) && go_through(one, R"(
            RDMSR(560)->10000000; RDMSR(561)->7F; RDMSR(571)->7
            WRMSR(570,210C); RDMSR(561)->2B0000007F; RDMSR(571)->2B00000003)");
    });
}

TEST_CASE("an unreadable statement or a different outcome fails the sequence") {
    CHECK_TWICE([](auto value) {
        auto const passes = [&](std::string_view text) {
            return goes_through(value(preset::skylake_x), text);
        };
        return passes("") && passes("WRMSR(560,1000); RDMSR(560)->1000") &&
               passes("RDMSR(10)->?; WRMSR(38F,0)") && passes("CPUID(15,0)->2 124 0 0") &&
               !passes("CPUID(15,0)->2 125 0 0") && !passes("WRMSR(560,1000); RDMSR(560)->1080") &&
               !passes("WRMSR(560,1000) #GP REG-070") && !passes("WRMSR(560,1001)") &&
               !passes("WRMSR(560,1001) #GP REG-071") && passes("WRMSR(560,1001) #GP REG-070") &&
               passes("RDMSR(584) #GP REG-014") && !passes("RDMSR(584)->0 #GP REG-015") &&
               !passes("RDMSR(560)->0x") && !passes("RDMSR(560)") && !passes("WRMSR(560)") &&
               !passes("WRMSR(g,0)") && !passes("[VMXON") && !passes("VMXON") &&
               !passes("# ToPA 1000[0] = 1x") && !passes("RDMSR(38E)->80000000000000");
    });
}

TEST_CASE("every access of the Linux driver has its recorded outcome") {
    auto const facts = test::facts_folder();
    if (!facts) { return; }
    std::vector<std::filesystem::path> files;
    for (auto const& one : std::filesystem::directory_iterator{*facts / "linux_msr_sequences"}) {
        if (one.path().extension() == ".txt") { files.push_back(one.path()); }
    }
    std::sort(files.begin(), files.end());
    std::size_t accesses = 0;
    for (auto const& path : files) {
        auto const stem = path.stem().string();  // NN_what.processor
        CAPTURE(stem);
        auto const of = processor_of(stem.substr(stem.find('.') + 1));
        REQUIRE(of);
        auto const text = content(path);
        replay run{*of, text};
        CHECK(run.run() == "");
        accesses += run.accesses;
    }
    CHECK(files.size() >= 40);
    CHECK(accesses > 1000);
}
