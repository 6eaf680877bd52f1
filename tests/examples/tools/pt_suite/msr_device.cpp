// SPDX-License-Identifier: BSL-1.0
#include <tools/pt_suite/msr_device.hpp>

#include <ptspec/access/effect.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/simulate/capabilities_cpuid.hpp>
#include <ptspec/suite.hpp>

#include <support/scratch_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ptspec;
using namespace pt_suite;

namespace {

using ctl = access::ia32_rtit_ctl;

constexpr unsigned index_count = access::last_pt_msr - access::first_pt_msr + 1;

/// The MSRs of a processor, which outlive a process that writes them.
struct msr_memory {
    std::uint64_t values[index_count] = {};

    friend auto operator==(msr_memory const&, msr_memory const&) -> bool = default;
};

/// A processor that obeys the rules, but for what a test makes wrong.
struct fake_device {
    cpu::capabilities const& caps;
    msr_memory& msrs;
    std::uint32_t also_has = 0;   ///< an index that no processor has, and this one does
    std::uint32_t sticks_at = 0;  ///< an MSR that accepts a second value and no third one
    int write_error = 0;          ///< of each write
    unsigned accesses = 0;
    unsigned writes = 0;
    int last_error = 0;
    std::function<void()> at_access{};  ///< before each access

    auto read(std::uint32_t index) -> port_value {
        count();
        if (!has(index)) { return last_error = EIO, port_value{}; }
        return last_error = 0, port_value{true, at(index)};
    }
    auto write(std::uint32_t index, std::uint64_t value) -> bool {
        count();
        ++writes;
        last_error = write_error != 0 ? write_error : EIO;
        if (write_error != 0 || !has(index)) { return false; }
        if (index == sticks_at && at(index) != 0) { return false; }
        if (index != also_has) {
            access::msr_state state;
            for (auto const& one : access::pt_msrs) {
                if (access::exists(caps, one.index)) {
                    access::set_raw(state, one.index, at(one.index.value));
                }
            }
            auto const effect = access::effect_of_write(caps, state, index, value);
            if (!effect) { return false; }
            value = access::value_of(effect.state, index);
        }
        at(index) = value;
        last_error = 0;
        return true;
    }
    [[nodiscard]] auto error() const -> int { return last_error; }
    [[nodiscard]] auto query(std::uint32_t leaf, std::uint32_t subleaf) const -> cpuid_registers {
        return simulate::capabilities_cpuid{caps}.query(leaf, subleaf);
    }

    [[nodiscard]] auto at(std::uint32_t index) const -> std::uint64_t& {
        return msrs.values[index - access::first_pt_msr];
    }

private:
    [[nodiscard]] auto has(std::uint32_t index) const -> bool {
        return access::is_pt_msr(index) && (index == also_has || access::exists(caps, index));
    }
    void count() {
        ++accesses;
        if (at_access) { at_access(); }
    }
};

/// Legal values, another for each MSR, as a driver leaves them that does not trace now.
auto used_msrs(cpu::capabilities const& caps) -> msr_memory {
    msr_memory made;
    for (auto const& one : access::pt_msrs) {
        if (!access::exists(caps, one.index)) { continue; }
        std::uint64_t value = std::uint64_t{one.index.value} << 12;
        if (one.index == ctl::address) { value = 0x240C; }
        if (one.index == access::ia32_rtit_status::address) { value = 0x27; }
        if (one.index == access::ia32_rtit_output_mask_ptrs::address) { value = 0x5'0000'0FFF; }
        made.values[one.index.value - access::first_pt_msr] = value;
    }
    return made;
}

/// A folder for journals.
struct scratch : test::scratch_folder {
    scratch() : scratch_folder{in_memory()} {}
};

template <class Check>
auto run_on(fake_device& device, journal& kept) -> std::pair<suite::finding, bool> {
    msr_target target{device, kept, {.boot = "b00", .cpu = 3}};
    auto const found = suite::run_check<Check>(target, suite::capabilities_of(target),
                                               {.runs = 2, .absent = suite::policy_of(target)});
    auto const ended = target.end_check();
    return {found, ended.failure.empty() && ended.not_restored.empty()};
}

/// Calls `take.template operator()<Check>()` with each check that a target without abilities asks.
void for_each_asked_check(auto take) {
    suite::for_each_check([&]<class Check>(text) {
        if constexpr (Check::need.abilities.empty()) { take.template operator()<Check>(); }
    });
}

/// True if a start after an early end restores all MSRs, and has the name of the check unless the
/// MSRs were as before.
template <class Check>
auto is_restorable(fake_device& device, journal& kept, msr_memory const& before) -> bool {
    bool const is_dirty = device.msrs != before;
    bool const has_name = kept.found() && kept.found()->check == string_of(Check::name) &&
                          kept.found()->cpu == 3;
    auto const recovered = recover(kept, "b00", [&](unsigned) -> fake_device& { return device; });
    return device.msrs == before && (has_name || !is_dirty) &&
           recovered.head.ended_early.size() == (kept.found() ? 1U : 0U);
}

auto one_entry() -> journal_entry {
    return {"b00-1", 5, {"a-b", "c"}, "ctl-topa", {{0x560, 0x1000}, {0x570, 0x240C}}};
}

/// A processor, and the journal of its checks.
struct one_processor {
    cpu::capabilities caps = cpu::preset::skylake_x;
    scratch folder{};
    journal kept{folder.path("j")};
    msr_memory msrs = used_msrs(caps);
    fake_device device{caps, msrs};
};

template <class Call>
auto message_of(Call const& call) -> std::string {
    try {
        call();
    } catch (std::exception const& why) { return why.what(); }
    return {};
}

}  // namespace

TEST_CASE("a check has the same outcome on an MSR device as on the model") {
    unsigned compared = 0;
    for (text const name : suite::few{text{"Skylake-X"}, text{"Broadwell-ULT"}, text{"ArrowLake-P"},
                                      text{"GoldmontPlus"}, text{"P-NONE"}}) {
        auto const caps = cpu::preset::find(name)->value;
        scratch const folder;
        journal kept{folder.path("j")};
        for_each_asked_check([&]<class Check>() {
            auto msrs = used_msrs(caps);
            auto const before = msrs;
            fake_device device{caps, msrs};
            auto const [found, is_good] = run_on<Check>(device, kept);

            std::vector<std::uint8_t> bytes(suite::given_memory::page_bytes);
            auto const options = engine::options_of(caps);
            suite::model_target model{caps, options, bytes.data(), 1};
            auto const modelled = suite::run_check<Check>(model, suite::capabilities_of(model),
                                                          {.runs = 1});
            CAPTURE(std::string{string_of(Check::name)});
            CHECK(is_good);
            CHECK(found == modelled);
            CHECK(msrs == before);
            CHECK(folder.read("j").empty());
            compared += found.what != suite::outcome::skipped;
        });
    }
    CHECK(compared > 100);
}

TEST_CASE("ended at any access, the journal has what restores all MSRs") {
    auto const caps = cpu::preset::arrow_lake_p;
    auto const before = used_msrs(caps);
    scratch const folder;
    unsigned states = 0, dirty = 0, wrong = 0;
    for_each_asked_check([&]<class Check>() {
        // What is left if the program ends here: the MSRs and the journal.
        std::vector<std::pair<msr_memory, std::string>> left;
        auto msrs = before;
        fake_device device{caps, msrs};
        device.at_access = [&] {
            std::pair now{msrs, folder.read("j")};
            if (left.empty() || left.back() != now) { left.push_back(std::move(now)); }
        };
        {
            journal kept{folder.path("j")};
            (void)run_on<Check>(device, kept);
        }
        device.at_access();
        device.at_access = {};
        for (auto const& [values, text] : left) {
            msrs = values;
            journal kept{folder.write("left", text)};
            is_restorable<Check>(device, kept, before) ? ++states : ++wrong;
            dirty += values != before;
        }
    });
    CHECK(wrong == 0);
    CHECK(dirty > 500);
    CHECK(states > dirty);
}

TEST_CASE("a process that is killed leaves the same") {
    auto const caps = cpu::preset::arrow_lake_p;
    auto const before = used_msrs(caps);
    void* const shared = ::mmap(nullptr, sizeof(msr_memory), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    auto& msrs = *new (shared) msr_memory{};
    scratch const folder;
    unsigned kills = 0, dirty = 0, wrong = 0;
    for_each_asked_check([&]<class Check>() {
        for (unsigned number = 1;; number += 61) {
            msrs = before;
            auto const child = ::fork();
            REQUIRE(child >= 0);
            if (child == 0) {
                journal kept{folder.path("j")};
                fake_device device{caps, msrs};
                device.at_access = [&, left = number]() mutable {
                    if (--left == 0) { (void)::raise(SIGKILL); }
                };
                (void)run_on<Check>(device, kept);
                ::_exit(0);
            }
            int status = 0;
            REQUIRE(::waitpid(child, &status, 0) == child);
            if (WIFEXITED(status)) { break; }
            REQUIRE(WTERMSIG(status) == SIGKILL);
            ++kills;
            dirty += msrs != before;
            journal kept{folder.path("j")};
            fake_device device{caps, msrs};
            wrong += !is_restorable<Check>(device, kept, before);
            kept.remove();
        }
    });
    CHECK(wrong == 0);
    CHECK(dirty > 30);
    CHECK(kills > dirty);
    (void)::munmap(shared, sizeof(msr_memory));
}

TEST_CASE_FIXTURE(one_processor,
                  "TraceEn is never written, and nothing without a check in the journal") {
    msr_target target{device, kept, {}};
    CHECK_FALSE(target.write(0x560, 0).is_asked);
    CHECK(target.end_check().failure == "WRMSR of 560H was not made: no check may write it");
    target.note("a-check", {});
    CHECK_FALSE(target.write(ctl::address, 0x2501).is_asked);
    CHECK_FALSE(target.write(0x38F, 0).is_asked);
    CHECK(device.writes == 0);
    CHECK(target.end_check().failure == "WRMSR of 570H was not made: it enables tracing");
    CHECK(target.abilities().empty());
}

TEST_CASE_FIXTURE(one_processor,
                  "while another agent traces nothing is written, not even to restore") {
    msr_target target{device, kept, {}};
    target.note("a-check", {});
    CHECK(target.write(0x560, 0x5000).is_done);
    device.at(ctl::address) |= 1;
    auto const writes = device.writes;
    CHECK_FALSE(target.write(0x560, 0x6000).is_asked);
    auto const ended = target.end_check();
    CHECK(ended.failure == "WRMSR of 560H was not made: another agent traces");
    CHECK(ended.not_restored == "TraceEn is 1: another agent traces");
    CHECK(device.writes == writes);
    CHECK(folder.read("j").find("\ncheck a-check\n") != std::string::npos);
}

TEST_CASE_FIXTURE(one_processor, "a write that the kernel refuses is an error, not a #GP") {
    device.write_error = EPERM;
    msr_target target{device, kept, {}};
    target.note("a-check", {});
    auto const done = target.write(0x560, 0x5000);
    CHECK_FALSE(done.is_asked);
    CHECK_FALSE(done.faulted());
    CHECK(target.end_check().failure == "WRMSR of 560H: Operation not permitted");
    device.write_error = 0;
    target.note("a-check", {});
    CHECK(target.write(0x560, 0x5001).vector == 13);
    CHECK(target.end_check().failure.empty());
}

TEST_CASE_FIXTURE(one_processor,
                  "an MSR that should not exist is restored, and one that cannot be is reported") {
    device.also_has = 0x565;
    device.at(0x565) = 0x77;
    auto const before = msrs;
    auto const [found, is_good] = run_on<suite::checks::unknown_msrs>(device, kept);
    CHECK(found.what == suite::outcome::broken);
    CHECK(is_good);
    CHECK(msrs == before);

    device.also_has = 0;
    device.sticks_at = 0x572;
    device.at(0x572) = 0;
    msr_target target{device, kept, {}};
    target.note("a-check", {});
    CHECK(target.write(0x572, 0x1000).is_done);
    CHECK(target.end_check().not_restored == "572H was 0H and is 1000H");
    CHECK_FALSE(folder.read("j").empty());
}

TEST_CASE_FIXTURE(one_processor, "a check whose journal cannot be written writes no MSR") {
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    auto limit = before;
    limit.rlim_cur = 10;
    auto const handler = std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
    msr_target target{device, kept, {}};
    target.note("a-check", {});
    (void)target.write(0x560, 0x5000);
    (void)::setrlimit(RLIMIT_FSIZE, &before);
    (void)std::signal(SIGXFSZ, handler);
    CHECK(device.writes == 0);
    CHECK(target.end_check().failure.starts_with(kept.path() + ": "));
}

TEST_CASE("a journal is read as it was written") {
    auto const entry = one_entry();
    CHECK(text_of(entry) == "pt_suite journal 1\nboot b00-1\nearly a-b\nearly c\ncpu 5\n"
                            "check ctl-topa\n560 1000\n570 240c\nend\n");
    CHECK(entry_of(text_of(entry), "j") == entry);
    auto const text = text_of(entry);
    for (std::size_t size = 0; size < text.size(); ++size) {
        CHECK_FALSE(entry_of(text.substr(0, size), "j"));
    }
}

TEST_CASE("another file, an MSR of another use and a TraceEn of 1 are no journal") {
    std::pair<char const*, unsigned> const wrong[] = {
        {"hello\n", 1},
        {"pt_suite journal 2\nend\n", 1},
        {"pt_suite journal 1\n1a0 0\nend\n", 2},
        {"pt_suite journal 1\n570 1\nend\n", 2},
        {"pt_suite journal 1\n560 x\nend\n", 2},
        {"pt_suite journal 1\ncpu 0\ncheck A\nend\n", 3},
        {"pt_suite journal 1\ncpu 70000\nend\n", 2},
        {"pt_suite journal 1\nend\nend\n", 3},
    };
    for (auto const& [text, line] : wrong) {
        CHECK(message_of([&] { (void)entry_of(text, "j"); }) ==
              "j: line " + std::to_string(line) + ": not a journal of pt_suite");
    }
}

TEST_CASE("a journal that others can write, a link and one in use are refused") {
    scratch const folder;
    auto const open = [](std::string const& path) {
        return message_of([&] { journal const kept{path}; });
    };
    auto const mine = folder.write("mine", "");
    REQUIRE(::chmod(mine.c_str(), 0666) == 0);
    CHECK(open(mine) == mine + ": another user can write it; --journal FILE names another");
    REQUIRE(::chmod(mine.c_str(), 0600) == 0);
    CHECK(open(mine).empty());
    REQUIRE(::symlink(mine.c_str(), folder.path("link").c_str()) == 0);
    CHECK(open(folder.path("link")).starts_with(folder.path("link") + ": "));
    journal const kept{mine};
    CHECK_THROWS_AS(journal{mine}, not_asked);
    auto const other = folder.write("other", "something else\n");
    CHECK(open(other) == other + ": line 1: not a journal of pt_suite");
    CHECK(folder.read("other") == "something else\n");
}

TEST_CASE("MSRs of before a boot are not written, and the check stays skipped") {
    auto const caps = cpu::preset::skylake_x;
    scratch const folder;
    auto const path = folder.write("j", text_of(one_entry()));
    auto msrs = used_msrs(caps);
    fake_device device{caps, msrs};
    auto const again = [&] {
        journal kept{path};
        return recover(kept, "b00-2", [&](unsigned) -> fake_device& { return device; });
    };
    auto const first = again();
    CHECK(device.accesses == 0);
    CHECK(first.head.ended_early == std::vector<std::string>{"a-b", "c", "ctl-topa"});
    CHECK(first.messages.back() ==
          "the check ctl-topa did not end on processor 5; its MSRs were 560H=1000H 570H=240CH; the "
          "machine was booted since; the check is skipped");
    auto const second = again();
    CHECK(second.head == first.head);
    CHECK(second.messages.back() ==
          "the check ctl-topa did not end in an earlier run; it is skipped");
}

TEST_CASE("a start that cannot restore the MSRs leaves the journal") {
    auto const caps = cpu::preset::skylake_x;
    scratch const folder;
    auto const path = folder.write("j", text_of(one_entry()));
    auto msrs = used_msrs(caps);
    fake_device device{caps, msrs};
    device.at(ctl::address) |= 1;
    journal kept{path};
    auto const run = [&] {
        return message_of([&] {
            (void)recover(kept, "b00-1", [&](unsigned) -> fake_device& { return device; });
        });
    };
    CHECK(run().find("; not restored: TraceEn is 1: another agent traces") != std::string::npos);
    CHECK(device.writes == 0);
    CHECK(folder.read("j") == text_of(one_entry()));
    auto const absent = message_of([&] {
        (void)recover(kept, "b00-1", [](unsigned) -> fake_device& { throw not_asked{"no cpu"}; });
    });
    CHECK(absent == "the check ctl-topa did not end on processor 5; its MSRs were 560H=1000H "
                    "570H=240CH; not restored: no cpu");
    device.at(ctl::address) &= ~std::uint64_t{1};
    CHECK(run().empty());
    CHECK(device.at(0x560) == 0x1000);
}
