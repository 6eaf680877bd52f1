// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/observe.hpp>

#include <support/random_numbers.hpp>
#include <support/suite_sweep.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace {

using namespace ptspec;
using engine::model_options;
using ctl = access::ia32_rtit_ctl;

constexpr auto const& caps = cpu::preset::skylake_x;

/// A model with these options, and what its traces show.
auto observed(model_options const& options, cpu::capabilities const& of = caps,
              suite::defect wrong = suite::defect::none,
              suite::model_target::surroundings const& around = {}) -> suite::observed_kind {
    std::vector<uint8_t> bytes(16 * suite::given_memory::page_bytes);
    suite::model_target target{of, options, bytes.data(), 16, wrong, around};
    return suite::observe_kind(target, of);
}
auto printed(engine::model_kind nearest, model_options const& options) -> std::string {
    std::string made;
    suite::print_row(nearest, options,
                     [&](text piece) { made.append(piece.data(), piece.size()); });
    return made;
}
auto printed(suite::observed_kind const& found) -> std::string {
    return printed(found.nearest, found.options);
}
auto names_in(suite::option_set const& set) -> std::string {
    std::string made;
    suite::print_options(set, [&](text piece) { made.append(piece.data(), piece.size()); });
    return made;
}

suite::snippet const* const all_snippets[] = {&suite::snippets::nothing,
                                              &suite::snippets::branches,
                                              &suite::snippets::many_conditionals,
                                              &suite::snippets::direct,
                                              &suite::snippets::indirect,
                                              &suite::snippets::calls,
                                              &suite::snippets::mismatched_returns,
                                              &suite::snippets::calls_of_next,
                                              &suite::snippets::nested_calls,
                                              &suite::snippets::far_return,
                                              &suite::snippets::interrupt_return,
                                              &suite::snippets::paging,
                                              &suite::snippets::ptwrites,
                                              &suite::snippets::areas,
                                              &suite::snippets::falls_through,
                                              &suite::snippets::transaction,
                                              &suite::snippets::aborted_transaction,
                                              &suite::snippets::call_leaves,
                                              &suite::snippets::quiet_run,
                                              &suite::snippets::long_run};

/// A model which makes one trace after another.
struct traced_model {
    std::vector<uint8_t> bytes;
    suite::model_target target;
    suite::armed<suite::model_target> on;
    bool all_run = true;

    traced_model(cpu::capabilities const& of, model_options const& options)
        : bytes(8 * suite::given_memory::page_bytes),
          target{of, options, bytes.data(), 8},
          on{target, of, rule::none} {}

    /// The bytes of a snippet. With `keeps` PacketByteCnt is as the last one left it. The first 21
    /// bytes from mark 0 on are range 0.
    auto trace(suite::snippet const& code, ctl with, bool keeps) -> std::vector<uint8_t> {
        auto const before = on.state().status;
        uint64_t const first = on.address_of(code) + code.marks[0];
        bool is_run = on.set_usual_output();
        if (keeps) { is_run = is_run && on.set(access::ia32_rtit_status::address, before.raw); }
        if (on.caps().address_ranges() != 0) {
            is_run = is_run && on.set(0x580, first) && on.set(0x581, first + 20);
        }
        is_run = is_run && on.run_and_read(code, with).has_run;
        all_run &= is_run;
        auto const view = on.bytes().view();
        return {view.begin(), view.end()};
    }
};

/// True if the models have the same bytes for all snippets under many values of IA32_RTIT_CTL,
/// most of which the search does not use, nor four of the snippets.
auto have_same_bytes(cpu::capabilities const& of, model_options const& first,
                     model_options const& second) -> bool {
    using reg::addr_cfg;
    traced_model one{of, first};
    traced_model other{of, second};
    auto const usual = one.on.usual_ctl();
    for (auto const with :
         {usual, usual.with(ctl::TSCEn{true}, ctl::PSBFreq{1}),
          usual.with(ctl::TSCEn{true}, ctl::MTCEn{true}, ctl::CYCEn{true}),
          usual.with(ctl::CYCEn{true}, ctl::CycThresh{9}, ctl::DisRETC{true}),
          usual.with(ctl::PTWEn{true}, ctl::FUPonPTW{true}), usual.with(ctl::OS{false}),
          usual.with(ctl::BranchEn{false}), usual.with(ctl::ADDR0_CFG{addr_cfg::filter}),
          usual.with(ctl::ADDR0_CFG{addr_cfg::trace_stop})}) {
        bool const is_possible = access::is_legal(of, with) &&
                                 (with.get<ctl::BranchEn>() || suite::features::mtc.is_met(of));
        if (!is_possible) { continue; }
        for (bool const keeps : {false, true}) {
            for (auto const* const code : all_snippets) {
                if (suite::missing({.code = code}, of, {}, 0).size() != 0) { continue; }
                auto const seen = one.trace(*code, with, keeps);
                if (seen != other.trace(*code, with, keeps)) { return false; }
            }
        }
    }
    CHECK(one.all_run);
    CHECK(other.all_run);
    return true;
}

/// A row that mixes all options that a trace of the suite may show, and some that none does.
auto random_row(test::random_numbers& random) -> model_options {
    auto const coin = [&] { return random.below(2) != 0; };
    auto const one_of = [&](std::initializer_list<unsigned> few) {
        return few.begin()[random.below(few.size())];
    };
    model_options made;
    made.ips = static_cast<trace::ip_choice>(random.below(5));
    made.tnt_capacity = static_cast<uint8_t>(coin() ? one_of({6, 44, 47})
                                                    : 6 + static_cast<unsigned>(random.below(42)));
    made.defers_tips = coin();
    made.pads = static_cast<trace::pad_policy>(random.below(4));
    made.in_psb = static_cast<trace::psb_order>(random.below(3));
    made.end_alignment = static_cast<uint8_t>(coin() ? one_of({0, 8, 16})
                                                     : static_cast<unsigned>(random.below(65)));
    made.has_tsx = coin();
    made.vmcs_needs_context = coin();
    made.vmcs_before_pip = coin();
    made.psb_after_pge = coin();
    made.psb_on_every_enable = random.one_in(4);
    made.psb_before_pge = random.one_in(4);
    made.psb_of_enable_has_fup = coin();
    made.psb_keeps_remainder = coin();
    // Steps are counted from the beginning of a trace: those longer than a trace are not seen.
    made.psb_step = static_cast<uint16_t>(coin() ? one_of({1, 64, 32, 8})
                                                 : 1 + static_cast<unsigned>(random.below(150)));
    made.psb_counts_itself = coin();
    made.pip_for_same_cr3 = coin();
    made.mov_cr3_stops_at_next = coin();
    made.swintr_events = coin();
    made.iret_at_all_returns = coin();
    made.on_ret_mismatch = static_cast<trace::ret_mismatch>(random.below(3));
    made.psb_after_overflow = static_cast<engine::psb_after_ovf>(random.below(3));
    made.psb_before_ovf_fup = coin();
    made.trace_stop_in_overflow = static_cast<engine::stop_in_overflow>(random.below(2));
    made.cycle_counter_bits = static_cast<uint8_t>(
        coin() ? 32 : 10 + static_cast<unsigned>(random.below(30)));
    made.msrs_lag = coin();
    return made;
}

/// A processor whose traces of `calls`, or with TSCEn, are of another row than all others.
class two_models {
public:
    enum class few_are { of_calls, with_tsc };

    two_models(model_options const& most, model_options const& few, few_are which)
        : bytes_(16 * suite::given_memory::page_bytes),
          most_{caps, most, bytes_.data(), 16},
          few_{caps, few, bytes_.data(), 16},
          which_{which} {}

    auto query(uint32_t leaf, uint32_t subleaf) { return most_.query(leaf, subleaf); }
    auto memory() { return most_.memory(); }
    auto abilities() { return most_.abilities(); }
    auto address_of(suite::snippet const& code) { return most_.address_of(code); }
    auto cr3() { return most_.cr3(); }
    void note(text, access::msr_state const&) {}
    auto read(uint32_t index) { return is_few_ ? few_.read(index) : most_.read(index); }
    auto write(uint32_t index, uint64_t value) {
        is_few_ = false;
        (void)few_.write(index, value);
        return most_.write(index, value);
    }
    auto execute(suite::snippet const& code, uint64_t on, uint64_t off) {
        is_few_ = which_ == few_are::of_calls ? &code == &suite::snippets::calls
                                              : ctl{on}.get<ctl::TSCEn>();
        return is_few_ ? few_.execute(code, on, off) : most_.execute(code, on, off);
    }
    auto pmi() { return most_.pmi(); }
    auto xsaves(reg::xsave_pt_state& image) { return most_.xsaves(image); }
    auto xrstors(reg::xsave_pt_state const& image) { return most_.xrstors(image); }
    auto reset(suite::reset_kind kind) { return most_.reset(kind); }

private:
    std::vector<uint8_t> bytes_;
    suite::model_target most_;
    suite::model_target few_;
    few_are which_;
    bool is_few_ = false;
};

}  // namespace

TEST_CASE("each kind is found by its bytes") {
    for (auto const& kind : engine::model_kinds) {
        CAPTURE(std::string{kind.name.data()});
        auto const found = observed(kind.options);
        CHECK(found.is_whole());
        CHECK(found.nearest == kind.which);
        CHECK(printed(found) == kind.name.data());
        CHECK(have_same_bytes(caps, found.options, kind.options));
    }
}

TEST_CASE("rows of no kind are found, and have the same bytes in all traces") {
    struct processor {
        text name;
        cpu::capabilities caps;
    };
    auto with_tsx = cpu::preset::skylake_x;
    with_tsx.leaf_07_0_ebx = with_tsx.leaf_07_0_ebx.with(reg::cpuid_07h_0_ebx::RTM{true});
    processor const all[] = {{"Skylake-X with TSX", with_tsx},
                             {"ArrowLake-P", cpu::preset::find("ArrowLake-P")->value},
                             {"GoldmontPlus", cpu::preset::find("GoldmontPlus")->value},
                             {"Broadwell-ULT", cpu::preset::find("Broadwell-ULT")->value}};
    test::random_numbers random{.state = 2026};
    constexpr unsigned rows = 40;
    unsigned same = 0;
    for (unsigned i = 0; i < rows; ++i) {
        auto const& one = all[i % 4];
        auto const wanted = random_row(random);
        auto const found = observed(wanted, one.caps);
        CAPTURE(std::string{one.name.data()});
        CAPTURE(printed(engine::model_kind::manual, wanted));
        CAPTURE(printed(found));
        CAPTURE(names_in(found.undetermined));
        CHECK(found.is_whole());
        CHECK(found.options.msrs_lag == wanted.msrs_lag);
        bool const is_same = have_same_bytes(one.caps, wanted, found.options);
        WARN(is_same);
        same += is_same;
    }
    CHECK(same >= rows - 2);
}

TEST_CASE("a row is found, whatever the target has generated before") {
    auto const arrow_lake = cpu::preset::find("ArrowLake-P")->value;
    test::random_numbers random{.state = 5};
    for (unsigned i = 0; i < 6; ++i) {
        auto wanted = random_row(random);
        wanted.psb_step = i % 2 == 0 ? 960 : 1;
        auto const found = observed(wanted, arrow_lake, suite::defect::none, {.last_ip = random()});
        CAPTURE(printed(engine::model_kind::manual, wanted));
        CAPTURE(printed(found));
        CHECK(found.is_whole());
        CHECK(have_same_bytes(arrow_lake, wanted, found.options));
    }
}

TEST_CASE("a target whose bytes are of no row is not whole") {
    using suite::defect;
    auto const& skylake = engine::options_of(engine::model_kind::skylake);
    for (auto const wrong :
         {defect::accepts_all, defect::refuses_all, defect::reads_zero, defect::stores_nothing,
          defect::traces_nothing, defect::never_stops, defect::frozen_pointers, defect::no_time}) {
        CAPTURE(static_cast<unsigned>(wrong));
        auto const found = observed(skylake, caps, wrong);
        CHECK_FALSE(found.is_whole());
        bool const is_said = found.problem.what != suite::outcome::holds || found.differing != 0;
        CHECK(is_said);
    }
    // These change no trace.
    for (auto const wrong :
         {defect::no_interrupt, defect::other_cpuid, defect::wild_cpuid, defect::keeps_trace_en}) {
        CHECK(printed(observed(skylake, caps, wrong)) == "skylake");
    }
    auto other = skylake;
    other.ips = trace::ip_choice::shortest;
    two_models target{skylake, other, two_models::few_are::of_calls};
    auto const found = suite::observe_kind(target, caps);
    CHECK_FALSE(found.is_whole());
    CHECK(found.differing == 2);  // of `calls`, with and without DisRETC
    CHECK_FALSE(found.undetermined.empty());
    // All options are found, and one trace differs.
    two_models with_time{skylake, other, two_models::few_are::with_tsc};
    auto const most = suite::observe_kind(with_time, caps);
    CHECK(printed(most) == "skylake");
    CHECK(most.differing == 1);
    CHECK(most.undetermined.empty());
    CHECK_FALSE(most.is_whole());
}

TEST_CASE("what no trace shows is not `seen`, and as the nearest kind has it") {
    auto wanted = engine::options_of(engine::model_kind::icelake);
    wanted.tnt_capacity = 47;
    wanted.psb_step = 96;
    wanted.psb_after_overflow = engine::psb_after_ovf::never;
    auto const found = observed(wanted);
    CHECK(found.is_whole());
    CHECK(printed(found) == "icelake,tnt_capacity=47,psb_step=96");
    for (char const* const name :
         {"vmcs_needs_context", "vmcs_before_pip", "swintr_events", "iret_at_all_returns",
          "psb_after_overflow", "psb_before_ovf_fup", "trace_stop_in_overflow", "drained_at_once",
          "overflow_ends_at"}) {
        CHECK_FALSE(found.seen.has({name, std::strlen(name)}));
    }
    for (char const* const name :
         {"ips", "tnt_capacity", "defers_tips", "pads", "in_psb", "end_alignment", "has_tsx",
          "psb_after_pge", "psb_on_every_enable", "psb_before_pge", "psb_of_enable_has_fup",
          "psb_keeps_remainder", "psb_step", "pip_for_same_cr3", "mov_cr3_stops_at_next",
          "on_ret_mismatch", "msrs_lag"}) {
        CAPTURE(std::string{name});
        CHECK(found.seen.has({name, std::strlen(name)}));
    }
    // The CFEs of a processor with FRED do not depend on its kind.
    for (auto const& one : cpu::preset::all) {
        if (!one.value.has_pt() || !one.value.has_fred()) { continue; }
        CHECK(observed(engine::options_of(one.value), one.value).options.swintr_events);
    }
}

TEST_CASE("a row is printed and read again") {
    auto const read = suite::read_row("skylake,pads=0,psb_step=64");
    CHECK(read.is_valid);
    CHECK(read.nearest == engine::model_kind::skylake);
    CHECK(read.options.pads == trace::pad_policy::none);
    CHECK(read.options.psb_step == 64);
    CHECK(read.options.ips == trace::ip_choice::skylake);
    CHECK(printed(read.nearest, read.options) == "skylake,pads=0,psb_step=64");
    CHECK(suite::read_row("atom").is_valid);
    auto const wrong_in = [](text row) {
        auto const wrong = suite::read_row(row);
        CHECK_FALSE(wrong.is_valid);
        return std::string{wrong.wrong.data(), wrong.wrong.size()};
    };
    CHECK(wrong_in("") == "");
    CHECK(wrong_in("pentium,pads=0") == "pentium");
    CHECK(wrong_in("atom,pad=0") == "pad=0");
    CHECK(wrong_in("atom,pads=4,ips=0") == "pads=4");
    CHECK(wrong_in("atom,pads=") == "pads=");
    CHECK(wrong_in("atom,pads") == "pads");
    CHECK(wrong_in("atom,pads=0x1") == "pads=0x1");
    CHECK(wrong_in("atom,") == "");
    CHECK(wrong_in("atom,psb_step=18446744073709551617") == "psb_step=18446744073709551617");
    test::random_numbers random;
    for (unsigned i = 0; i < 20; ++i) {
        auto const row = printed(engine::model_kind::broadwell, random_row(random));
        auto const again = suite::read_row({row.data(), row.size()});
        CHECK(again.is_valid);
        CHECK(printed(again.nearest, again.options) == row);
    }
}

TEST_CASE("a processor that cannot trace shows nothing") {
    auto const found = observed({}, cpu::preset::P_NONE);
    CHECK(found.traces == 0);
    CHECK_FALSE(found.is_whole());
    CHECK(found.problem.what == suite::outcome::skipped);
    CHECK(found.problem.detail == "the processor lacks Intel PT");
}
