// SPDX-License-Identifier: BSL-1.0

// A program runs on a modelled processor that traces it into a ring of ToPA regions. The trace is
// then read back as a driver does: IA32_RTIT_OUTPUT_BASE and IA32_RTIT_OUTPUT_MASK_PTRS give its
// end, and the oldest byte follows that position. Every branch that is still in the ring must be
// decoded correctly.

#include "standard_output.hpp"

#include <ptspec/ptspec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using namespace ptspec;
namespace action = engine::action;

// The ring is built and checked at compile time: three regions and a link back to the first entry.
constexpr std::uint64_t table_address = 0x1'0000'0000;
constexpr std::uint64_t first_region = 0x2'0000'0000;
constexpr std::uint64_t region_bytes = 0x1'0000;
constexpr std::size_t region_count = 3;
constexpr auto ring = topa::ring(
    table_address, topa::region{.base = first_region, .size = topa::region_size::size_64K},
    topa::region{.base = first_region + region_bytes, .size = topa::region_size::size_64K},
    topa::region{.base = first_region + 2 * region_bytes, .size = topa::region_size::size_64K});

/// A branch: a conditional one is taken or not taken, any other has a target.
struct branch {
    bool is_conditional = false;
    bool taken = false;
    std::uint64_t to = 0;
};

/// Random numbers with a fixed seed.
class random_numbers {
public:
    auto below(std::uint64_t sides) -> std::uint64_t {
        seed_ = seed_ * 6364136223846793005 + 1442695040888963407;
        return (seed_ >> 33) % sides;
    }

private:
    std::uint64_t seed_ = 2026;
};

/// A processor, its program, and the branches that the program executed. Now and then the program
/// executes PTWRITE with the number of branches so far: with this mark a decoder knows its position
/// in the program.
class traced_program {
public:
    static constexpr std::uint64_t events_between_marks = 1000;

    traced_program() : memory_{regions_} {
        for (std::size_t i = 0; i < ring.size(); ++i) {
            store_le64(page_ + 8 * i, ring.entries[i].raw);
        }
    }

    /// Executes this many events. Returns false when a WRMSR or an event fails.
    auto run(std::uint64_t events) -> bool {
        using ctl = reg::ia32_rtit_ctl;
        constexpr auto start = ctl{}.with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true},
                                          ctl::ToPA{true}, ctl::PTWEn{true}, ctl::BranchEn{true});
        bool on = set(reg::ia32_rtit_output_base::address, table_address) &&
                  set(reg::ia32_rtit_output_mask_ptrs::address, 0x7F) &&
                  set(ctl::address, start.raw);
        for (std::uint64_t i = 0; on && i < events; ++i) {
            if (i % events_between_marks == 0) {
                action::ptwrite const mark{.value = branches_.size(), .is_64_bit = true};
                on = !unit_.on(mark, memory_).happened;
            }
            on = on && step();
        }
        return on && set(ctl::address, 0);
    }

    /// The bytes in the ring, the oldest first.
    [[nodiscard]] auto read_out() -> std::vector<std::uint8_t> {
        // These registers hold the end of the trace only after TraceEn is cleared.
        auto const base = unit_.rdmsr(reg::ia32_rtit_output_base::address);
        auto const pointers = unit_.rdmsr(reg::ia32_rtit_output_mask_ptrs::address);
        auto const end = topa::position_in({base.value}, {pointers.value});
        auto const cut = static_cast<std::ptrdiff_t>(end.index * region_bytes + end.offset);
        std::vector<std::uint8_t> bytes{output_ + cut, output_ + sizeof output_};
        if (unit_.total().stored <= sizeof output_) { bytes.clear(); }  // the ring has not wrapped
        bytes.insert(bytes.end(), output_, output_ + cut);
        return bytes;
    }
    [[nodiscard]] auto branches() const -> std::vector<branch> const& { return branches_; }
    [[nodiscard]] auto stored() const -> std::uint64_t { return unit_.total().stored; }

private:
    auto set(std::uint32_t index, std::uint64_t value) -> bool {
        auto const ip = unit_.ip();
        auto const done = unit_.wrmsr({.index = index, .value = value, .at = ip, .next = ip + 2},
                                      memory_);
        return done.what == engine::access_outcome::done;
    }
    /// Executes one event. Returns false when trace could not be stored to memory.
    template <class Event>
    auto execute(Event const& event) -> bool {
        return !unit_.on(event, memory_).happened;
    }
    /// Executes one branch of the program.
    auto step() -> bool {
        auto const here = unit_.ip();
        auto const target = 0x40'0000 + random_.below(0x10'0000);
        switch (random_.below(20)) {
            case 0:
                branches_.push_back({.to = target});
                return execute(action::indirect_jump{target});
            case 1:
            case 2:
                calls_.push_back(here + 5);
                return execute(action::direct_call{here + 5, target});
            case 3: return calls_.empty() || execute_return();
            default: {
                bool const taken = random_.below(3) != 0;
                branches_.push_back({.is_conditional = true, .taken = taken});
                return execute(action::conditional{taken ? target : here + 2, taken});
            }
        }
    }
    /// The options of the kind of processor, with MSRs that are only current while TraceEn is 0.
    static auto options() -> engine::model_options {
        auto how = engine::options_of(engine::model_kind::skylake);
        how.msrs_lag = true;
        return how;
    }
    /// Executes a RET. It is compressed to one TNT bit when the processor still holds the CALL.
    auto execute_return() -> bool {
        auto const to = calls_.back();
        calls_.pop_back();
        bool const compressed = unit_.state().calls.size() != 0;
        branches_.push_back({.is_conditional = compressed, .taken = compressed, .to = to});
        return execute(action::near_return{to});
    }

    std::uint8_t page_[4096] = {};
    std::uint8_t output_[region_count * region_bytes] = {};
    host_region regions_[2] = {{table_address, page_, sizeof page_},
                               {first_region, output_, sizeof output_}};
    host_memory memory_;
    engine::trace_unit<> unit_{cpu::preset::P_FUT, {.cr3 = 0x1000}, 0x40'1000, options()};
    std::vector<branch> branches_;
    std::vector<std::uint64_t> calls_;
    random_numbers random_;
};

/// Compares the decoded branches with the executed ones, from the first mark on.
class comparison {
public:
    explicit comparison(std::vector<branch> const& executed) : executed_{executed} {}

    void operator()(packet::ptw const& mark, trace::packet_place) {
        if (mark.payload() > executed_.size()) {
            ++wrong_;
        } else if (!synced_) {
            synced_ = true;
            next_ = static_cast<std::size_t>(mark.payload());
        } else {
            wrong_ += next_ == mark.payload() ? 0 : 1;
        }
    }
    void operator()(packet::tnt_short const& some, trace::packet_place) {
        auto const all = some.taken();
        for (unsigned i = 0; i < all.count; ++i) {
            check([&](branch const& it) { return it.is_conditional && it.taken == all.taken(i); });
        }
    }
    void operator()(packet::tip const&, trace::packet_place where) {
        check([&](branch const& it) { return !it.is_conditional && it.to == where.ip; });
    }
    void operator()(trace::item const& one) {
        wrong_ += one.what == trace::item_type::damage ? 1 : 0;
    }

    [[nodiscard]] auto recovered() const -> std::uint64_t { return recovered_; }
    /// True when all branches up to the last one were decoded.
    [[nodiscard]] auto is_complete() const -> bool {
        return synced_ && wrong_ == 0 && next_ == executed_.size();
    }

private:
    template <class Agrees>
    void check(Agrees const& agrees) {
        if (!synced_) { return; }
        bool const agreed = next_ < executed_.size() && agrees(executed_[next_]);
        wrong_ += agreed ? 0 : 1;
        ++recovered_;
        ++next_;
    }

    std::vector<branch> const& executed_;
    std::size_t next_ = 0;
    std::uint64_t recovered_ = 0;
    std::uint64_t wrong_ = 0;
    bool synced_ = false;
};

}  // namespace

auto main() -> int {
    constexpr std::uint64_t events = 600'000;
    static traced_program program;
    if (!program.run(events)) {
        std::puts("a WRMSR or an event failed");
        return 1;
    }
    auto const bytes = program.read_out();
    comparison same{program.branches()};
    trace::reader reader{byte_view{bytes}};
    (void)reader.for_each<packet::ptw, packet::tnt_short, packet::tip, trace::item>(same);

    std::printf(
        "A program of %llu branches made %llu bytes of trace; the ring holds the last %zu.\n",
        static_cast<unsigned long long>(program.branches().size()),
        static_cast<unsigned long long>(program.stored()), bytes.size());
    std::printf("Read back: %llu branches, %s.\n",
                static_cast<unsigned long long>(same.recovered()),
                same.is_complete() ? "each as executed" : "NOT as executed");
    return same.is_complete() ? 0 : 1;
}
