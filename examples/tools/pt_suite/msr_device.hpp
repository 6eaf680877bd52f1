// SPDX-License-Identifier: BSL-1.0
#pragma once

// A logical processor as a target: its MSRs by a device, and CPUID.

#include "journal.hpp"
#include "names.hpp"

#include <ptspec/ports/linux_msr.hpp>
#include <ptspec/suite/target.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace pt_suite {

/// The MSRs and CPUID of a logical processor. After an access that failed `error` is its errno:
/// EIO is a #GP.
template <class D>
concept processor_device = requires(D& device, std::uint32_t index, std::uint64_t value) {
    { device.read(index) } -> same_as<port_value>;
    { device.write(index, value) } -> same_as<bool>;
    { device.error() } -> same_as<int>;
    { device.query(index, index) } -> same_as<cpuid_registers>;
};

/// The MSRs of Intel PT and the indices between them that can be read, and their values.
///
/// Errors: none, and the errno of a read that failed otherwise than by #GP, in `error`.
template <processor_device Device>
auto msrs_of(Device& device, int& error) -> std::vector<msr_value> {
    std::vector<msr_value> made;
    error = 0;
    for (auto index = access::first_pt_msr; index <= access::last_pt_msr; ++index) {
        auto const got = device.read(index);
        if (got) {
            made.push_back({index, got.value});
        } else if (device.error() != EIO) {
            error = device.error();
            return {};
        }
    }
    return made;
}

/// True if TraceEn is 1.
template <processor_device Device>
auto is_tracing(Device& device) -> bool {
    auto const got = device.read(access::ia32_rtit_ctl::address);
    return got && (got.value & 1) != 0;
}

/// Writes the values that MSRs have no longer. What cannot be written is listed as a text, empty if
/// all have their values. While TraceEn is 1, which is another agent's, nothing is written.
template <processor_device Device>
auto restore(Device& device, std::vector<msr_value> const& all) -> std::string {
    std::string wrong;
    if (is_tracing(device)) { return "TraceEn is 1: another agent traces"; }
    for (auto const& one : all) {
        auto now = device.read(one.index);
        if (now && now.value == one.value) { continue; }
        (void)device.write(one.index, one.value);
        now = device.read(one.index);
        if (now && now.value == one.value) { continue; }
        wrong += (wrong.empty() ? "" : ", ") + hex(one.index) + " was " + hex(one.value) +
                 (now ? " and is " + hex(now.value) : " and cannot be read");
    }
    return wrong;
}

/// What a start does with the journal of an earlier one.
struct recovery {
    journal_entry head{};                 ///< of the entries of this start
    std::vector<std::string> messages{};  ///< what did not end, and what was done about it
};

/// Restores the MSRs that a journal has, unless Linux was booted since. The check is one of
/// `ended_early` then. `open` returns a device for a processor.
///
/// Errors: throws `not_asked` if an MSR is not restored, `tool::failure` if the journal cannot be
///         written. The journal stays as it is then.
template <class Open>
auto recover(journal& kept, std::string const& boot, Open open) -> recovery {
    recovery made;
    made.head.boot = boot;
    if (!kept.found()) { return made; }
    auto const& found = *kept.found();
    made.head.ended_early = found.ended_early;
    for (auto const& one : found.ended_early) {
        made.messages.push_back("the check " + one +
                                " did not end in an earlier run; it is skipped");
    }
    if (!found.check.empty()) {
        std::string line = "the check " + found.check + " did not end on processor " +
                           std::to_string(found.cpu) + "; its MSRs were";
        for (auto const& one : found.msrs) { line += ' ' + hex(one.index) + '=' + hex(one.value); }
        bool const is_booted = !boot.empty() && !found.boot.empty() && boot != found.boot;
        if (!is_booted) {
            std::string wrong;
            try {
                auto&& device = open(found.cpu);
                wrong = restore(device, found.msrs);
            } catch (not_asked const& why) { wrong = why.what(); }
            if (!wrong.empty()) { throw not_asked{line + "; not restored: " + wrong}; }
        }
        made.messages.push_back(
            line + (is_booted ? "; the machine was booted since" : "; they are restored") +
            "; the check is skipped");
        made.head.ended_early.push_back(found.check);
    }
    if (!kept.clear(made.head)) { throw tool::failure{kept.path() + ": " + std::strerror(errno)}; }
    return made;
}

/// A logical processor whose MSRs can be written while TraceEn is 0. It never writes a TraceEn of
/// 1, writes only while a check runs, whose name and MSRs are in the journal, and writes nothing
/// while another agent traces. What it refuses, or the device for another reason than a #GP, is not
/// asked, and `end_check` returns it.
template <processor_device Device>
class msr_target {
public:
    msr_target(Device& device, journal& kept, journal_entry head)
        : device_{device}, journal_{kept}, entry_{std::move(head)} {}

    [[nodiscard]] auto query(std::uint32_t leaf, std::uint32_t subleaf) -> cpuid_registers {
        return device_.query(leaf, subleaf);
    }
    /// A page for the addresses that checks write. The processor stores nothing there.
    [[nodiscard]] auto memory() -> suite::given_memory { return {{0x10'0000}, page_, 1}; }
    [[nodiscard]] auto abilities() const -> suite::ability_set { return {}; }

    auto read(std::uint32_t index) -> suite::msr_result {
        auto const got = device_.read(index);
        return got ? suite::msr_result{.is_done = true, .value = got.value}
                   : failed("RDMSR", index);
    }
    auto write(std::uint32_t index, std::uint64_t value) -> suite::msr_result {
        bool const is_ctl = index == access::ia32_rtit_ctl::address;
        if (!is_running_ || !access::is_pt_msr(index)) {
            return refuse(index, "no check may write it");
        }
        if (is_ctl && (value & 1) != 0) { return refuse(index, "it enables tracing"); }
        if (is_tracing(device_)) { return refuse(index, "another agent traces"); }
        return device_.write(index, value) ? suite::msr_result{.is_done = true}
                                           : failed("WRMSR", index);
    }
    /// Stores the name of a check and the MSRs. If that fails nothing is written. An empty name
    /// ends a run: MSRs that the check does not restore, because the processor should not have
    /// them, are restored.
    void note(text name, access::msr_state const&) {
        if (name.size() == 0) { return end_run(); }
        if (!not_restored_.empty()) { return; }
        int error = 0;
        entry_.check.assign(name.data(), name.size());
        entry_.msrs = msrs_of(device_, error);
        if (error != 0) {
            keep("RDMSR: " + std::string{std::strerror(error)});
        } else if (!journal_.write(entry_)) {
            keep(journal_.path() + ": " + std::strerror(errno));
        } else {
            is_running_ = true;
        }
    }

    struct check_end {
        std::string failure{};       ///< why the check was not asked; empty: it was
        std::string not_restored{};  ///< MSRs that have other values now; empty: none
    };
    /// Ends the check of the last `note`, after all of its runs. The journal keeps the check if an
    /// MSR is not restored.
    auto end_check() -> check_end {
        end_run();
        if (not_restored_.empty() && !entry_.check.empty() && !journal_.clear(entry_)) {
            keep(journal_.path() + ": " + std::strerror(errno));
        }
        entry_.check.clear();
        return {std::exchange(failure_, {}), std::exchange(not_restored_, {})};
    }

    // What it is not able to do, by its abilities.
    [[nodiscard]] auto address_of(suite::snippet const&) const -> std::uint64_t { return 0; }
    [[nodiscard]] auto execute(suite::snippet const&, std::uint64_t, std::uint64_t)
        -> suite::snippet_run {
        return {.enabled = not_done(), .disabled = not_done()};
    }
    [[nodiscard]] auto cr3() const -> std::uint64_t { return 0; }
    [[nodiscard]] auto pmi() -> bool { return false; }
    [[nodiscard]] auto xsaves(reg::xsave_pt_state&) -> suite::msr_result { return not_done(); }
    [[nodiscard]] auto xrstors(reg::xsave_pt_state const&) -> suite::msr_result {
        return not_done();
    }
    [[nodiscard]] auto reset(suite::reset_kind) -> bool { return false; }

private:
    void end_run() {
        if (is_running_) { not_restored_ = restore(device_, entry_.msrs); }
        is_running_ = false;
    }
    static auto not_done() -> suite::msr_result { return {.is_asked = false}; }
    void keep(std::string why) {
        if (failure_.empty()) { failure_ = std::move(why); }
    }
    auto failed(char const* what, std::uint32_t index) -> suite::msr_result {
        int const error = device_.error();
        if (error == EIO) { return {.vector = suite::msr_result::general_protection}; }
        keep(what + (" of " + hex(index)) + ": " + std::strerror(error));
        return not_done();
    }
    auto refuse(std::uint32_t index, char const* why) -> suite::msr_result {
        keep("WRMSR of " + hex(index) + " was not made: " + why);
        return not_done();
    }

    Device& device_;
    journal& journal_;
    journal_entry entry_;
    bool is_running_ = false;
    std::string failure_{};
    std::string not_restored_{};
    alignas(4096) std::uint8_t page_[suite::given_memory::page_bytes] = {};
};

}  // namespace pt_suite
