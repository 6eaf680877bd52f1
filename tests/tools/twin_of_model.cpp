// SPDX-License-Identifier: BSL-1.0
// Traces of random systems, and their twins: what a system did is forgotten, derived from its trace
// by pt_twin, and generated again.
//
//   twin_of_model COUNT SEED [LEAST [FILE]]
//
// tries COUNT seeds from SEED on, and prints those whose traces are not equal; FILE gets the last
// of these traces. Exit status: 0 if LEAST traces are equal, without it if all are.
//
//   twin_of_model --questions COUNT SEED
//
// takes from the derivation each question about what packets do not say, one at a time. Exit
// status: 0 if each is needed by one of the traces.
//
// A mechanism is something that a processor may do, such as to change a mode. Each is drawn with
// its own odds, from never to always.

#include <tools/pt_twin/comparison.hpp>

#include <ptspec/cpu/presets.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace ptspec;
using packet::kind;
namespace action = engine::action;
using ctl = reg::ia32_rtit_ctl;

/// Memory that keeps all bytes.
struct stream {
    using ignores_pmis = stream;

    std::vector<std::uint8_t> bytes{};

    auto load(std::uint64_t) const noexcept -> port_value { return {}; }
    auto store(std::uint64_t, byte_view from) noexcept -> std::size_t {
        bytes.insert(bytes.end(), from.begin(), from.end());
        return from.size();
    }
    auto send(byte_view from) noexcept -> std::size_t { return store(0, from); }
};

/// What may happen, and how often: 0 to 100.
struct odds {
    unsigned toggles = 0;           // TraceEn falls and rises in the kernel
    unsigned toggles_with_psb = 0;  // of the rises
    unsigned toggles_os = 0;        // a rise changes OS
    unsigned ratios = 0;
    unsigned stops = 0;    // the clocks stop
    unsigned moments = 0;  // time passes within actions
    unsigned psbs = 0;
    unsigned interrupts = 0;
    unsigned modes = 0;     // 32-bit processes
    unsigned switches = 0;  // another process
    unsigned transactions = 0;
    unsigned writes = 0;  // PTWRITE
    unsigned losses = 0;
    unsigned vmptrlds = 0;
    unsigned stalls = 0;  // cycles before a branch that completes a TNT
};
constexpr unsigned odds::* mechanisms[] = {
    &odds::toggles, &odds::toggles_with_psb, &odds::toggles_os,   &odds::ratios,
    &odds::stops,   &odds::moments,          &odds::psbs,         &odds::interrupts,
    &odds::modes,   &odds::switches,         &odds::transactions, &odds::writes,
    &odds::losses,  &odds::vmptrlds,         &odds::stalls};

class random_system {
public:
    explicit random_system(std::uint64_t seed)
        : numbers_{seed},
          kind_{engine::model_kinds[roll(5)]},
          unit_{processor(), {}, kernel_ip(), options()} {
        draw_odds(seed);
        configure();
    }
    bool is_cut = false;  ///< the trace ends anywhere
    [[nodiscard]] auto kind_name() const -> std::string {
        return {kind_.name.data(), kind_.name.size()};
    }
    auto trace() -> std::vector<std::uint8_t> {
        unsigned const steps = 100 + static_cast<unsigned>(roll(3000));
        write_ctl(true);
        for (unsigned i = 0; i < steps; ++i) { step(); }
        if (roll(2) == 0) {
            enter_kernel();
            write_ctl(false);
        }
        (void)unit_.drain(memory_);
        auto bytes = memory_.bytes;
        is_cut = roll(4) == 0;
        if (is_cut) { bytes.resize(bytes.size() - roll(bytes.size() / 2 + 1)); }
        return bytes;
    }

private:
    auto roll(std::uint64_t sides) -> std::uint64_t { return sides == 0 ? 0 : numbers_() % sides; }
    auto happens(unsigned percent) -> bool { return roll(100) < percent; }
    static auto kernel_ip() -> std::uint64_t { return 0xFFFF'FFFF'8100'0000; }
    auto options() const -> engine::model_options {
        auto made = kind_.options;
        return made;
    }
    static auto processor() -> cpu::capabilities {
        auto made = cpu::preset::P_FUT;
        made.leaf_14_1_eax.raw = (made.leaf_14_1_eax.raw & ~std::uint32_t{7}) | 4;
        made.vmx_misc = made.vmx_misc.with(reg::ia32_vmx_misc::INTEL_PT{true});
        return made;
    }
    void draw_odds(std::uint64_t seed) {
        if (seed % 4 == 0) {  // one mechanism alone
            odds_.*mechanisms[roll(std::size(mechanisms))] = 1 + static_cast<unsigned>(roll(100));
            return;
        }
        for (auto const one : mechanisms) {
            unsigned const most = seed % 4 == 1 ? 100 : 30;
            odds_.*one = roll(3) == 0 ? 0 : static_cast<unsigned>(roll(most + 1));
        }
        if (seed % 4 == 2) {  // all together
            for (auto const one : mechanisms) { odds_.*one = std::max(odds_.*one, 5U); }
        }
    }
    void configure() {
        unsigned const who = static_cast<unsigned>(roll(4));  // user, kernel, both, both
        bool const os = who != 0;
        bool const user = who != 1;
        bool const tsc = roll(2) == 0;
        bool const mtc = tsc && roll(2) == 0;
        bool const cyc = tsc && roll(2) == 0 && kind_.which != engine::model_kind::broadwell;
        word_ = ctl{}.with(ctl::OS{os}, ctl::User{user}, ctl::BranchEn{true}, ctl::TSCEn{tsc},
                           ctl::MTCEn{mtc}, ctl::CYCEn{cyc}, ctl::ToPA{false});
        if (mtc) { word_ = word_.with(ctl::MTCFreq{wrapped{freq_ = 3 * roll(4)}}); }
        word_ = word_.with(ctl::PSBFreq{wrapped{roll(3)}});
        if (odds_.writes != 0) {
            word_ = word_.with(ctl::PTWEn{true}, ctl::FUPonPTW{roll(2) == 0});
        }
        if (who == 0 ? roll(3) == 0 : roll(4) == 0) {  // filters
            filters_ = 1 + static_cast<unsigned>(roll(2));
        }
        std::uint64_t const base = os && !user                ? kernel_ip()
                                   : who == 0 || roll(2) == 0 ? user_ip()
                                                              : kernel_ip();
        for (unsigned n = 0; n < filters_; ++n) {
            std::uint64_t const from = base + 0x1000 + n * 0x2000;
            write(0x580 + 2 * n, from);
            write(0x581 + 2 * n, from + 0x7FF);
            word_.raw |= std::uint64_t{1} << (32 + 4 * n);
        }
        write(0x560, 0);
        write(0x561, 0x1FF'FFFF);  // a single range of 32 MB
        is_vm_ = roll(4) == 0;
        if (is_vm_) {
            (void)unit_.on(action::vmxon{kernel_ip(), kernel_ip()}, memory_);
            (void)unit_.on(action::vmptrld{kernel_ip(), 0x3000'0000}, memory_);
        }
        code_.cr3 = 0x1000'0000;
        code_.vmx_non_root = is_vm_ && roll(2) == 0;
        code_.cpl = 0;
        processes_[0] = {0x1000'0000, false};
        processes_[1] = {0x2000'0000, odds_.modes != 0};
        (void)unit_.on(action::sequential{kernel_ip()}, memory_);
        (void)unit_.on(action::far_transfer{0, kernel_ip(), code_}, memory_);
    }
    auto user_ip() const -> std::uint64_t { return 0x40'0000; }
    void write(std::uint32_t index, std::uint64_t value) {
        (void)unit_.wrmsr({.index = index, .value = value, .at = unit_.ip(), .next = unit_.ip()},
                          memory_);
    }
    auto takes() -> action::time_within {
        constexpr packet::kind places[] = {
            packet::kind::mode_tsx, packet::kind::mode_exec, packet::kind::fup,
            packet::kind::pip,      packet::kind::tsc,       packet::kind::tma,
            packet::kind::cbr,      packet::kind::psbend,    packet::kind::tip,
            packet::kind::tip_pgd,  packet::kind::tip_pge};
        if (!happens(odds_.moments)) { return {}; }
        std::size_t const count = 1 + roll(3);
        for (std::size_t i = 0; i < count; ++i) {
            moments_[i] = {places[roll(std::size(places))], roll(2) * roll(300),
                           roll(2) == 0 ? action::due_mtc::next : action::due_mtc::none, 0};
        }
        return {moments_, count};
    }
    template <class Action>
    void on(Action const& e) {
        (void)unit_.on(e, memory_, takes());
        art_ = std::max(art_, unit_.state().clocks.art);
    }
    [[nodiscard]] auto in_kernel() const -> bool { return unit_.state().code.cpl == 0; }
    [[nodiscard]] auto target() -> std::uint64_t {
        return (in_kernel() ? kernel_ip() : user_ip()) + roll(0x6000);
    }
    void write_ctl(bool on_now) {
        auto const here = unit_.ip();
        if (on_now) {
            using status = reg::ia32_rtit_status;
            bool const psb = happens(odds_.toggles_with_psb) || is_first_;
            write(status::address, psb ? 0 : std::uint64_t{5} << 32);
            if (!is_first_ && happens(odds_.toggles_os)) {
                word_ = word_.with(ctl::OS{!word_.get<ctl::OS>()});
                if (!word_.get<ctl::OS>() && !word_.get<ctl::User>()) {
                    word_ = word_.with(ctl::User{true});
                }
            }
            is_first_ = false;
        }
        if (!unit_
                 .wrmsr({.index = ctl::address,
                         .value = word_.with(ctl::TraceEn{on_now}).raw,
                         .at = here,
                         .next = here + 2},
                        memory_, takes())
                 .took_effect()) {
            std::puts("the model refuses IA32_RTIT_CTL");
            std::exit(2);
        }
        art_ = std::max(art_, unit_.state().clocks.art);
    }
    void enter_kernel() {
        if (in_kernel()) { return; }
        auto kernel = code_;
        kernel.cpl = 0;
        kernel.cr3 = unit_.state().code.cr3;
        kernel.width = engine::code_width::bits_64;
        auto const here = unit_.ip();
        if (roll(2) == 0) {
            on(action::far_transfer{here, kernel_ip() + roll(0x6000), kernel,
                                    action::far_kind::syscall});
        } else {
            on(action::interrupt{here, kernel_ip() + roll(0x6000), kernel, 0x20});
        }
    }
    void leave_kernel() {
        auto const& next = processes_[current_];
        auto user = code_;
        user.cpl = 3;
        user.cr3 = next.cr3;
        user.width = next.is_32 ? engine::code_width::bits_32 : engine::code_width::bits_64;
        if (unit_.state().code.cr3 != user.cr3) {
            on(action::mov_cr3{unit_.ip(), unit_.ip() + 3, user.cr3});
        }
        on(action::far_transfer{unit_.ip(), user_ip() + roll(0x6000), user,
                                action::far_kind::sysret});
    }
    void branch() {
        for (std::uint64_t i = 1 + roll(8); i != 0; --i) {
            bool const taken = roll(2) == 0;
            if (happens(odds_.stalls)) { on(action::cycles{roll(300)}); }
            on(action::conditional{taken ? target() : unit_.ip() + 2, taken});
        }
    }
    void time_passes() {
        art_ += roll(4);
        tsc_ += roll(1000);
        on(action::elapsed{roll(200), art_, std::max(tsc_, unit_.state().clocks.tsc)});
        tsc_ = unit_.state().clocks.tsc;
    }
    void step() {
        if (roll(4) == 0) { time_passes(); }
        if (happens(odds_.psbs / 10)) { on(action::psb_due{}); }
        if (happens(odds_.ratios / 10)) {
            on(action::ratio{static_cast<std::uint8_t>(8 + roll(40))});
        }
        if (happens(odds_.stops / 10)) {
            on(action::clock_stop{unit_.ip()});
            time_passes();
            on(action::clock_resume{});
        }
        if (happens(odds_.losses / 10)) {
            (void)unit_.on(action::overflow{}, memory_);
            for (std::uint64_t i = roll(4); i != 0; --i) { move(); }
            on(action::overflow_end{unit_.ip()});
        }
        move();
    }
    void move() {
        auto const here = unit_.ip();
        switch (roll(12)) {
            case 0: return in_kernel() ? leave_kernel() : enter_kernel();
            case 1:
            case 2: return on(action::indirect_jump{target()});
            case 3: return on(action::sequential{here + roll(16)});
            case 4:
                if (!in_kernel() || !happens(odds_.toggles)) { break; }
                if (unit_.state().ctl<ctl::TraceEn>()) {
                    write_ctl(false);
                    for (std::uint64_t i = roll(4); i != 0; --i) { time_passes(); }
                    write_ctl(true);
                }
                return;
            case 5:
                if (in_kernel() || !happens(odds_.interrupts)) { break; }
                return enter_kernel();
            case 6:
                if (!happens(odds_.switches)) { break; }
                current_ = static_cast<unsigned>(roll(2));
                return;
            case 7:
                if (in_kernel() || !happens(odds_.transactions)) { break; }
                if (unit_.state().tx_depth == 0) {
                    return on(action::transaction_begin{here, here + 3});
                }
                return roll(2) == 0 ? on(action::transaction_end{here, here + 3})
                                    : on(action::transaction_abort{here, target()});
            case 8:
                if (!happens(odds_.writes)) { break; }
                return on(action::ptwrite{here, here + 4, numbers_(), roll(2) == 0});
            case 9:
                if (!is_vm_ || !in_kernel() || !happens(odds_.vmptrlds)) { break; }
                return on(action::vmptrld{here + 4, 0x3000'0000 + 0x1000 * roll(4)});
            default: break;
        }
        branch();
    }

    struct process {
        std::uint64_t cr3 = 0;
        bool is_32 = false;
    };
    std::mt19937_64 numbers_;
    engine::model_kind_info const& kind_;
    engine::trace_unit<> unit_;
    stream memory_{};
    odds odds_{};
    ctl word_{};
    std::uint64_t freq_ = 0;
    unsigned filters_ = 0;
    bool is_vm_ = false;
    bool is_first_ = true;
    engine::execution_context code_{};
    process processes_[2]{};
    unsigned current_ = 0;
    std::uint64_t art_ = 0x1000;
    std::uint64_t tsc_ = 0x10'0000;
    action::moment moments_[3]{};
};

/// A trace of a random system, compared with its twin.
struct twin_test {
    std::string kind;
    std::vector<std::uint8_t> bytes;
    std::size_t parts = 0;
    pt_twin::comparison found;
    bool is_equal = false;
};
auto run_test(std::uint64_t seed, pt_twin::machine& on, std::uint32_t forgotten) -> twin_test {
    random_system system{seed};
    twin_test made{system.kind_name(), system.trace(), 0, {}, false};
    byte_view const whole{made.bytes.data(), made.bytes.size()};
    auto const parts = pt_twin::read_samples(whole, whole.size());
    pt_twin::derivation::options const how{.forgotten = forgotten};
    auto const with = pt_twin::best_configuration(whole, parts, made.kind, on, how);
    made.parts = parts.size();
    made.found = pt_twin::compare_all(whole, parts, with, made.kind, 1, on, how);
    made.is_equal = made.found.equal == made.found.segments && made.parts == 1 &&
                    (made.found.damaged == 0 || system.is_cut);
    return made;
}

/// Each question with the answer no: the first trace that is then not equal.
auto test_questions(std::uint64_t first, std::uint64_t traces, pt_twin::machine& on) -> bool {
    bool is_good = true;
    for (unsigned which = 0; which != pt_twin::question_count; ++which) {
        std::uint64_t seed = first;
        while (seed != first + traces && run_test(seed, on, std::uint32_t{1} << which).is_equal) {
            ++seed;
        }
        if (seed == first + traces) {
            std::printf("question %u: no trace needs it\n", which);
            is_good = false;
        } else {
            std::printf("question %u: seed %llu needs it\n", which,
                        static_cast<unsigned long long>(seed));
        }
    }
    return is_good;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    bool const asks = count > 1 && std::string_view{arguments[1]} == "--questions";
    int const skipped = asks ? 1 : 0;
    auto const number = [&](int at, std::uint64_t other) {
        at += skipped;
        return count > at ? std::strtoull(arguments[at], nullptr, 10) : other;
    };
    std::uint64_t const traces = number(1, 100);
    std::uint64_t const first = number(2, 1);
    std::uint64_t const least = number(3, traces);
    auto const on = std::make_unique<pt_twin::machine>();
    if (asks) { return test_questions(first, traces, *on) ? 0 : 1; }
    std::uint64_t equal = 0;
    std::uint64_t segments = 0;
    for (std::uint64_t seed = first; seed < first + traces; ++seed) {
        auto const one = run_test(seed, *on, 0);
        segments += one.found.segments;
        equal += one.is_equal;
        if (one.is_equal) { continue; }
        std::printf("seed %llu, kind %s: segments %zu of %zu equal, %zu parts\n%s",
                    static_cast<unsigned long long>(seed), one.kind.c_str(), one.found.equal,
                    one.found.segments, one.parts, one.found.differences.c_str());
        if (std::FILE* const out = count > 4 ? std::fopen(arguments[4], "wb") : nullptr) {
            std::fwrite(one.bytes.data(), 1, one.bytes.size(), out);
            std::fclose(out);
        }
    }
    std::printf("%llu of %llu traces equal, %llu segments\n",
                static_cast<unsigned long long>(equal), static_cast<unsigned long long>(traces),
                static_cast<unsigned long long>(segments));
    return equal >= least ? 0 : 1;
}
