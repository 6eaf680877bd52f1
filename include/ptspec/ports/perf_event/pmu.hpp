// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/config/perf_config.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/ports/perf_event/detail/small_file.hpp>
#include <ptspec/ports/perf_event/failure.hpp>

/// The PMU `intel_pt` of a kernel: what it can trace, and where its bits are.
namespace ptspec::ports::perf_event {

/// The bits of a term of an event, in `perf_event_attr.config`.
///
/// Source: Linux, Documentation/ABI/testing/sysfs-bus-event_source-devices-format.
struct term {
    uint8_t msb = 0;
    uint8_t lsb = 0;
    bool is_known = false;

    [[nodiscard]] constexpr auto holds(uint64_t number) const noexcept -> bool {
        return is_known && (number & ~low_bits(unsigned{msb} - lsb + 1)) == 0;
    }
};

/// The PMU. `terms` has a term for each member of a configuration, of those without one none.
struct pmu {
    uint32_t type = 0;
    term terms[config::config_member_count] = {};
    term pt{};  ///< says that `branch` is valid
    /// Leaf 14H, the ratio of leaf 15H, MaxNonTurboRatio and the flag Intel PT; others are 0.
    cpu::capabilities caps{};
    unsigned max_filters = 0;  ///< of an event
};

namespace detail {

/// The names of the terms, by members of the configuration.
struct term_name {
    config::config_member member;
    char const* name;
};
inline constexpr term_name term_names[] = {
    {config::config_member::branches, "branch"},
    {config::config_member::ret_compression, "noretcomp"},
    {config::config_member::no_tnt, "notnt"},
    {config::config_member::tsc, "tsc"},
    {config::config_member::mtc, "mtc"},
    {config::config_member::mtc_every, "mtc_period"},
    {config::config_member::cyc, "cyc"},
    {config::config_member::cyc_after, "cyc_thresh"},
    {config::config_member::psb_every, "psb_period"},
    {config::config_member::ptwrite, "ptw"},
    {config::config_member::fup_on_ptwrite, "fup_on_ptw"},
    {config::config_member::power_events, "pwr_evt"},
    {config::config_member::event_trace, "event"},
};

/// Reads the files of a PMU.
class pmu_reader {
public:
    explicit pmu_reader(char const* folder) noexcept : folder_{folder} {}

    [[nodiscard]] auto read() noexcept -> pmu {
        pmu made;
        made.type = static_cast<uint32_t>(number(small_path{folder_, "type"}));
        made.pt = read_term("pt");
        for (auto const& one : term_names) {
            made.terms[underlying(one.member)] = read_term(one.name);
        }
        read_caps(made.caps);
        read_ratios(made.caps);
        made.max_filters = static_cast<unsigned>(optional(small_path{folder_, "nr_addr_filters"}));
        return made;
    }
    [[nodiscard]] auto is_bad() const noexcept -> bool { return is_bad_; }

private:
    auto number(small_path const& path, unsigned base = 10) noexcept -> uint64_t {
        auto const found = number_in(path, base);
        is_bad_ = is_bad_ || !found;
        return found.value;
    }
    /// The number in a file that older kernels do not have: 0.
    auto optional(small_path const& path, unsigned base = 10) noexcept -> uint64_t {
        auto const found = number_in(path, base);
        is_bad_ = is_bad_ || (!found && found.error != ENOENT);
        return found.value;
    }
    /// `config:BIT` or `config:LSB-MSB`.
    auto read_term(char const* name) noexcept -> term {
        small_file const file{small_path{folder_, "format", name}.letters};
        if (file.error() == ENOENT) { return {}; }
        text_reader reader{file.content()};
        uint64_t lsb = 0;
        bool good = file.error() == 0 && reader.take("config:") && reader.take_number(lsb);
        uint64_t msb = lsb;
        if (good && reader.take("-")) { good = reader.take_number(msb); }
        if (!good || !reader.is_at_end() || msb < lsb || msb > 63) {
            is_bad_ = true;
            return {};
        }
        return {static_cast<uint8_t>(msb), static_cast<uint8_t>(lsb), true};
    }
    template <class Field, class Word>
    void read_cap(Word& to, char const* name) noexcept {
        to = to.with(Field{wrapped{optional(small_path{folder_, "caps", name}, 16)}});
    }
    void read_caps(cpu::capabilities& to) noexcept {
        using namespace reg;
        using ebx = cpuid_14h_0_ebx;
        using ecx = cpuid_14h_0_ecx;
        to.leaf_07_0_ebx = to.leaf_07_0_ebx.with(cpuid_07h_0_ebx::INTEL_PT{true});
        read_cap<cpuid_14h_0_eax::MaxSubleaf>(to.leaf_14_0_eax, "max_subleaf");
        read_cap<ebx::CR3FILTER>(to.leaf_14_0_ebx, "cr3_filtering");
        read_cap<ebx::CPSB_CAM>(to.leaf_14_0_ebx, "psb_cyc");
        read_cap<ebx::IPFILT_WRSTPRSV>(to.leaf_14_0_ebx, "ip_filtering");
        read_cap<ebx::MTC>(to.leaf_14_0_ebx, "mtc");
        read_cap<ebx::PTWRITE>(to.leaf_14_0_ebx, "ptwrite");
        read_cap<ebx::PWR_EVT>(to.leaf_14_0_ebx, "power_event_trace");
        read_cap<ebx::EVENT_TRACE>(to.leaf_14_0_ebx, "event_trace");
        read_cap<ebx::TNT_DIS>(to.leaf_14_0_ebx, "tnt_disable");
        read_cap<ecx::TOPAOUT>(to.leaf_14_0_ecx, "topa_output");
        read_cap<ecx::MENTRY>(to.leaf_14_0_ecx, "topa_multiple_entries");
        read_cap<ecx::SNGLRNGOUT>(to.leaf_14_0_ecx, "single_range_output");
        read_cap<ecx::FABRIC>(to.leaf_14_0_ecx, "output_subsys");
        read_cap<ecx::LIP>(to.leaf_14_0_ecx, "payloads_lip");
        read_cap<cpuid_14h_1_eax::RANGECNT>(to.leaf_14_1_eax, "num_address_ranges");
        read_cap<cpuid_14h_1_eax::MTC_PERIODS>(to.leaf_14_1_eax, "mtc_periods");
        read_cap<cpuid_14h_1_ebx::CYC_THRESHOLDS>(to.leaf_14_1_ebx, "cycle_thresholds");
        read_cap<cpuid_14h_1_ebx::PSB_PERIODS>(to.leaf_14_1_ebx, "psb_periods");
    }
    /// `tsc_art_ratio` is NUMERATOR:DENOMINATOR of leaf 15H.
    void read_ratios(cpu::capabilities& to) noexcept {
        using namespace reg;
        to.platform_info = to.platform_info.with(msr_platform_info::MaxNonTurboRatio{
            wrapped{optional(small_path{folder_, "max_nonturbo_ratio"})}});
        small_file const file{small_path{folder_, "tsc_art_ratio"}.letters};
        if (file.error() == ENOENT) { return; }
        text_reader reader{file.content()};
        uint64_t numerator = 0, denominator = 0;
        bool const good = file.error() == 0 && reader.take_number(numerator) && reader.take(":") &&
                          reader.take_number(denominator) && reader.is_at_end();
        is_bad_ = is_bad_ || !good;
        to.leaf_15_ebx = to.leaf_15_ebx.with(cpuid_15h_ebx::Numerator{wrapped{numerator}});
        to.leaf_15_eax = to.leaf_15_eax.with(cpuid_15h_eax::Denominator{wrapped{denominator}});
    }

    char const* folder_;
    bool is_bad_ = false;
};

/// Whether the flags of the first processor in /proc/cpuinfo have a word.
class cpu_flags {
public:
    explicit cpu_flags(char const* path) noexcept {
        int const file = ::open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) { return; }
        char part[512];
        char word[20];
        size_t length = 0;
        ssize_t got = 0;
        while ((got = ::read(file, part, sizeof part)) > 0) {
            for (ssize_t i = 0; i < got; ++i) {
                bool const is_end = part[i] == ' ' || part[i] == '\n' || part[i] == '\t';
                if (is_end) {
                    note({word, length});
                    length = 0;
                } else if (length < sizeof word) {
                    word[length++] = part[i];
                }
            }
        }
        (void)::close(file);
    }

    bool has_intel_pt = false;
    bool has_hypervisor = false;

private:
    void note(text word) noexcept {
        has_intel_pt = has_intel_pt || word == text{"intel_pt"};
        has_hypervisor = has_hypervisor || word == text{"hypervisor"};
    }
};

}  // namespace detail

/// Where a kernel has its files. Others than those of Linux are for tests.
struct kernel_files {
    char const* pmus = "/sys/bus/event_source/devices";
    char const* cpuinfo = "/proc/cpuinfo";
    char const* paranoid = "/proc/sys/kernel/perf_event_paranoid";
};

struct [[nodiscard]] pmu_result {
    trace_result result{};
    perf_event::pmu pmu{};

    constexpr explicit operator bool() const noexcept { return bool{result}; }
};

/// Reads the PMU of the kernel, from /sys/bus/event_source/devices/intel_pt.
///
/// Errors: no_sysfs, no_intel_pt, no_intel_pt_in_guest, no_pmu, bad_pmu.
/// Source: Linux, arch/x86/events/intel/pt.c.
[[nodiscard]] inline auto read_pmu(kernel_files const& from = {}) noexcept -> pmu_result {
    detail::small_path const folder{from.pmus, "intel_pt"};
    if (::access(folder.letters, F_OK) == 0) {
        detail::pmu_reader reader{folder.letters};
        auto const made = reader.read();
        return {{reader.is_bad() ? failure::bad_pmu : failure::none, 0}, made};
    }
    int const error = errno;
    detail::cpu_flags const flags{from.cpuinfo};
    bool const has_pmus = ::access(from.pmus, F_OK) == 0;
    return {{.what = !has_pmus              ? failure::no_sysfs
                     : flags.has_intel_pt   ? failure::no_pmu
                     : flags.has_hypervisor ? failure::no_intel_pt_in_guest
                                            : failure::no_intel_pt,
             .error = error},
            {}};
}

}  // namespace ptspec::ports::perf_event
