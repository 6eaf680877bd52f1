// SPDX-License-Identifier: BSL-1.0

// Compares the checks that `regmap` generates for other languages with the library.
//
//   regmap_checks LIBRARY COUNT
//
// LIBRARY is a shared library with two functions around the generated checks:
//
//   uint32_t test_write(uint64_t const* words, uint64_t ctl, uint32_t in_vmx, uint32_t msr,
//                       uint64_t value);
//   uint32_t test_entry(uint64_t const* words, uint64_t table, uint32_t index, uint64_t entry);
//
// `words` are the capabilities in the order of `words_of` below. COUNT writes and COUNT / 4 ToPA
// entries are compared: uniformly random values, and values that are legal except for a few bits,
// on all presets, on variants of them and on random capabilities. Prints the number of each rule
// and the first disagreements. Exit status 1: the two disagree.

#include <ptspec/access/check.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/topa/entry.hpp>

#include <support/random_numbers.hpp>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include <dlfcn.h>

namespace {

using namespace ptspec;
using reg::ia32_rtit_ctl;

using words = std::array<std::uint64_t, 11>;
using write_test = std::uint32_t (*)(std::uint64_t const*, std::uint64_t, std::uint32_t,
                                     std::uint32_t, std::uint64_t);
using entry_test = std::uint32_t (*)(std::uint64_t const*, std::uint64_t, std::uint32_t,
                                     std::uint64_t);

auto words_of(cpu::capabilities const& of) -> words {
    return {of.leaf_07_0_ebx.raw,     of.leaf_0d_1_eax.raw, of.leaf_0d_1_ecx.raw,
            of.leaf_14_0_eax.raw,     of.leaf_14_0_ebx.raw, of.leaf_14_0_ecx.raw,
            of.leaf_14_1_eax.raw,     of.leaf_14_1_ebx.raw, of.leaf_80000008_eax.raw,
            of.perf_capabilities.raw, of.vmx_misc.raw};
}

void set_word(cpu::capabilities& to, std::size_t which, std::uint64_t value) {
    auto const low = static_cast<std::uint32_t>(value);
    switch (which) {
        case 0: to.leaf_07_0_ebx = {low}; return;
        case 1: to.leaf_0d_1_eax = {low}; return;
        case 2: to.leaf_0d_1_ecx = {low}; return;
        case 3: to.leaf_14_0_eax = {low}; return;
        case 4: to.leaf_14_0_ebx = {low}; return;
        case 5: to.leaf_14_0_ecx = {low}; return;
        case 6: to.leaf_14_1_eax = {low}; return;
        case 7: to.leaf_14_1_ebx = {low}; return;
        case 8: to.leaf_80000008_eax = {low}; return;
        case 9: to.perf_capabilities = {value}; return;
        default: to.vmx_misc = {value}; return;
    }
}

struct random_bits : ptspec::test::random_numbers {
    auto next() -> std::uint64_t { return (*this)(); }
    auto bit() -> std::uint64_t { return std::uint64_t{1} << below(64); }
};

class comparison {
public:
    comparison(write_test write, entry_test entry) : write_{write}, entry_{entry} {
        for (auto const& one : cpu::preset::all) { presets_.push_back(one.value); }
    }

    void writes(std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            if (i % 32 == 0) {
                caps_ = any_processor();
                now_.ctl = {random_.one_in(4) ? 0 : near_legal()};
                now_.in_vmx_operation = random_.one_in(4);
            }
            auto const msr = any_msr();
            auto const value = msr == ia32_rtit_ctl::address ? any_ctl() : any_value();
            auto const given = words_of(caps_);
            auto const expected = access::check_write(caps_, now_, msr, value).broken;
            auto const got = write_(given.data(), now_.ctl.raw, now_.in_vmx_operation ? 1 : 0, msr,
                                    value);
            if (differs(expected, got)) {
                std::printf("WRMSR %" PRIX32 "H, %" PRIX64 "H, CTL %" PRIX64 "H, VMX %d", msr,
                            value, now_.ctl.raw, int{now_.in_vmx_operation});
                report(given, expected, got);
            }
        }
    }

    void entries(std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            if (i % 32 == 0) { caps_ = any_processor(); }
            auto const raw = any_entry();
            auto const base = raw & ~low_bits(12);
            auto const table = random_.one_in(2) ? base : random_.next() & ~low_bits(12);
            auto const index = static_cast<std::uint32_t>(random_.below(4));
            auto const given = words_of(caps_);
            auto const expected = topa::broken_rule(topa::entry{raw}, {table, index},
                                                    topa::limits::of(caps_));
            auto const got = entry_(given.data(), table, index, raw);
            if (differs(expected, got)) {
                std::printf("entry %" PRIX64 "H, table %" PRIX64 "H, index %" PRIu32, raw, table,
                            index);
                report(given, expected, got);
            }
        }
    }

    auto finish() const -> int {
        for (auto const& [which, count] : counts_) {
            std::printf("%s %" PRIu64 "\n", rule_id{which}.letters, count);
        }
        std::printf("%" PRIu64 " disagreements\n", disagreements_);
        return disagreements_ == 0 ? 0 : 1;
    }

private:
    auto any_processor() -> cpu::capabilities {
        auto one = presets_[random_.below(presets_.size())];
        switch (random_.below(8)) {
            case 0:  // random words
                for (std::size_t i = 0; i < words{}.size(); ++i) {
                    set_word(one, i, random_.next());
                }
                break;
            case 1:  // nearly everything
                for (std::size_t i = 0; i < words{}.size(); ++i) {
                    set_word(one, i, i == 8 ? 0x3934 : ~(random_.one_in(2) ? random_.bit() : 0));
                }
                break;
            case 2:
            case 3:
            case 4: {  // a variant
                for (auto flips = random_.below(4) + 1; flips != 0; --flips) {
                    auto const which = random_.below(words{}.size());
                    set_word(one, which,
                             words_of(one)[which] ^ random_.bit() ^
                                 std::uint64_t{1} << random_.below(16));
                }
                break;
            }
            default: break;
        }
        return one;
    }

    auto any_msr() -> std::uint32_t {
        constexpr std::uint32_t others[] = {reg::ia32_perf_global_status::address,
                                            reg::ia32_perf_global_status_reset::address,
                                            reg::ia32_perf_global_status_set::address,
                                            reg::ia32_xss::address,
                                            reg::ia32_debugctl::address,
                                            0x10,
                                            0x55F,
                                            0x588};
        switch (random_.below(8)) {
            case 0: return others[random_.below(8)];
            case 1:
            case 2: return 0x560 + static_cast<std::uint32_t>(random_.below(0x28));
            default: return ia32_rtit_ctl::address;
        }
    }

    /// One of the encodings of a bitmap.
    auto listed(std::uint32_t bitmap) -> std::uint64_t {
        for (;;) {
            auto const encoding = random_.below(16);
            if ((bitmap >> encoding & 1) != 0) { return encoding; }
        }
    }
    /// A value of IA32_RTIT_CTL that is often legal.
    auto near_legal() -> std::uint64_t {
        using ctl = ia32_rtit_ctl;
        ctl value{random_.next() & access::writable_ctl_mask(caps_)};
        value = value.with(ctl::MTCFreq{wrapped{listed(caps_.mtc_periods())}},
                           ctl::CycThresh{wrapped{listed(caps_.cyc_thresholds())}},
                           ctl::PSBFreq{wrapped{listed(caps_.psb_periods())}});
        std::uint64_t const ranges = 3 * (value.raw >> 32 & value.raw >> 33 & 0x1111);
        return value.raw & ~(ranges << 32);
    }
    auto any_ctl() -> std::uint64_t {
        switch (random_.below(8)) {
            case 0: return random_.next();
            case 1: return random_.next() & access::writable_ctl_mask(caps_);
            case 2: return now_.ctl.raw;
            case 3: return now_.ctl.raw ^ random_.bit();
            case 4: return near_legal() ^ random_.bit();
            case 5: return near_legal() ^ random_.bit() ^ random_.bit();
            default: return near_legal();
        }
    }
    auto any_value() -> std::uint64_t {
        auto const bits = random_.next();
        switch (random_.below(8)) {
            case 0: return bits;
            case 1: return bits & random_.next() & random_.next();
            case 2: return random_.bit();
            case 3: return bits >> random_.below(64);
            case 4: return ~(bits >> random_.below(64));
            case 5: return 0;
            case 6: return now_.ctl.raw;
            default: return (bits & low_bits(caps_.max_phys_addr().bits) & ~low_bits(7));
        }
    }
    auto any_entry() -> std::uint64_t {
        using entry = topa::entry;
        auto const size = random_.below(16);
        auto const below = low_bits(caps_.max_phys_addr().bits + (random_.one_in(8) ? 1 : 0));
        entry const made = entry{}.with(
            entry::END{random_.one_in(4)}, entry::INT{random_.one_in(8)},
            entry::STOP{random_.one_in(8)}, entry::Size{wrapped{size}},
            entry::Base{
                wrapped{random_.next() & below & ~low_bits(static_cast<unsigned>(12 + size))}});
        switch (random_.below(8)) {
            case 0: return random_.next();
            case 1:
            case 2: return made.raw ^ random_.bit();
            default: return made.raw;
        }
    }

    auto differs(rule expected, std::uint32_t got) -> bool {
        ++counts_[expected];
        if (got == underlying(expected)) { return false; }
        return ++disagreements_ <= 20;
    }
    static void report(words const& given, rule expected, std::uint32_t got) {
        std::printf(": %s, not %s; capabilities", rule_id{expected}.letters,
                    rule_id{static_cast<rule>(got)}.letters);
        for (auto const word : given) { std::printf(" %" PRIX64, word); }
        std::printf("\n");
    }

    write_test write_;
    entry_test entry_;
    std::vector<cpu::capabilities> presets_;
    cpu::capabilities caps_{};
    access::msr_state now_{};
    random_bits random_{};
    std::map<rule, std::uint64_t> counts_;
    std::uint64_t disagreements_ = 0;
};

}  // namespace

auto main(int count, char** arguments) -> int {
    auto* const library = count == 3 ? ::dlopen(arguments[1], RTLD_NOW) : nullptr;
    auto* const write = library != nullptr ? ::dlsym(library, "test_write") : nullptr;
    auto* const entry = library != nullptr ? ::dlsym(library, "test_entry") : nullptr;
    if (write == nullptr || entry == nullptr) {
        std::fprintf(stderr, "usage: regmap_checks LIBRARY COUNT\n");
        return 2;
    }
    comparison both{reinterpret_cast<write_test>(write), reinterpret_cast<entry_test>(entry)};
    auto const writes = std::strtoull(arguments[2], nullptr, 10);
    both.writes(writes);
    both.entries(writes / 4);
    return both.finish();
}
