// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/perf_event/pmu.hpp>

#include <support/scratch_folder.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace ptspec;
using namespace ptspec::ports::perf_event;
using config::config_member;

namespace {

/// A folder with files of a kernel.
class made_files {
public:
    void put(std::string const& path, std::string const& content) const {
        (void)folder_.write(path, content);
    }
    /// Those of Linux 6.1 on a Skylake.
    void put_pmu() const {
        put("pmus/intel_pt/type", "8\n");
        put("pmus/intel_pt/nr_addr_filters", "2\n");
        put("pmus/intel_pt/max_nonturbo_ratio", "32\n");
        put("pmus/intel_pt/tsc_art_ratio", "270:2\n");
        char const* const formats[][2] = {{"pt", "0"},
                                          {"cyc", "1"},
                                          {"pwr_evt", "4"},
                                          {"fup_on_ptw", "5"},
                                          {"mtc", "9"},
                                          {"tsc", "10"},
                                          {"noretcomp", "11"},
                                          {"ptw", "12"},
                                          {"branch", "13"},
                                          {"mtc_period", "14-17"},
                                          {"cyc_thresh", "19-22"},
                                          {"psb_period", "24-27"}};
        for (auto const& [name, bits] : formats) {
            put(std::string{"pmus/intel_pt/format/"} + name, std::string{"config:"} + bits + "\n");
        }
        char const* const caps[][2] = {{"max_subleaf", "1"},
                                       {"cr3_filtering", "1"},
                                       {"psb_cyc", "1"},
                                       {"ip_filtering", "1"},
                                       {"mtc", "1"},
                                       {"ptwrite", "0"},
                                       {"topa_output", "1"},
                                       {"topa_multiple_entries", "1"},
                                       {"single_range_output", "1"},
                                       {"output_subsys", "0"},
                                       {"payloads_lip", "0"},
                                       {"num_address_ranges", "2"},
                                       {"mtc_periods", "249"},
                                       {"cycle_thresholds", "3fff"},
                                       {"psb_periods", "3f"}};
        for (auto const& [name, number] : caps) {
            put(std::string{"pmus/intel_pt/caps/"} + name, std::string{number} + "\n");
        }
    }
    [[nodiscard]] auto read() -> pmu_result {
        pmus_ = folder_.path("pmus");
        cpuinfo_ = folder_.path("cpuinfo");
        return read_pmu({.pmus = pmus_.c_str(), .cpuinfo = cpuinfo_.c_str()});
    }

private:
    test::scratch_folder folder_{};
    std::string pmus_{};
    std::string cpuinfo_{};
};

}  // namespace

TEST_CASE("the PMU of a kernel has its type, its terms, and what the processor can trace") {
    made_files files;
    files.put_pmu();
    auto const got = files.read();
    REQUIRE(got);
    CHECK(got.pmu.type == 8);
    CHECK(got.pmu.max_filters == 2);
    auto const term_of = [&](config_member one) { return got.pmu.terms[underlying(one)]; };
    CHECK(term_of(config_member::mtc_every).msb == 17);
    CHECK(term_of(config_member::mtc_every).lsb == 14);
    CHECK(term_of(config_member::mtc_every).holds(15));
    CHECK(!term_of(config_member::mtc_every).holds(16));
    CHECK(term_of(config_member::branches).lsb == 13);
    CHECK(got.pmu.pt.is_known);
    CHECK(!term_of(config_member::no_tnt).is_known);
    CHECK(!term_of(config_member::event_trace).is_known);
    auto const& caps = got.pmu.caps;
    CHECK(caps.has_pt());
    CHECK(caps.leaf_14_0_ebx.raw == 0xF);
    CHECK(caps.leaf_14_0_ecx.raw == 7);
    CHECK(caps.leaf_14_1_eax.raw == 0x0249'0002);
    CHECK(caps.leaf_14_1_ebx.raw == 0x003F'3FFF);
    CHECK(caps.leaf_15_ebx.raw == 270);
    CHECK(caps.leaf_15_eax.raw == 2);
    CHECK(caps.platform_info.get<reg::msr_platform_info::MaxNonTurboRatio>() == 32);
}

TEST_CASE("an older kernel lacks files; a file of another form is an error") {
    made_files files;
    files.put("pmus/intel_pt/type", "9\n");
    auto const old = files.read();
    REQUIRE(old);
    CHECK(old.pmu.type == 9);
    CHECK(old.pmu.max_filters == 0);
    for (auto const& [path, content] : {std::pair{"type", "nine\n"},
                                        {"type", "9 10\n"},
                                        {"format/tsc", "config:70\n"},
                                        {"format/tsc", "config1:1\n"},
                                        {"format/tsc", "config:9-3\n"},
                                        {"format/tsc", "config:1,3\n"},
                                        {"caps/mtc", "x\n"},
                                        {"tsc_art_ratio", "270\n"}}) {
        CAPTURE(path);
        CAPTURE(content);
        made_files other;
        other.put("pmus/intel_pt/type", "9\n");
        other.put(std::string{"pmus/intel_pt/"} + path, content);
        CHECK(other.read().result.what == failure::bad_pmu);
    }
    made_files without;
    without.put("pmus/intel_pt/format/tsc", "config:10\n");
    CHECK(without.read().result.what == failure::bad_pmu);
}

TEST_CASE("without the PMU, the reason is in the flags of the processor") {
    made_files files;
    files.put("pmus/msr/type", "1\n");
    files.put("cpuinfo", "flags\t: fpu intel_pt hypervisor\nflags\t: fpu\n");
    CHECK(files.read().result.what == failure::no_pmu);
    files.put("cpuinfo", "flags\t: fpu not_intel_pt hypervisor avx\n");
    CHECK(files.read().result.what == failure::no_intel_pt_in_guest);
    files.put("cpuinfo", "flags\t: fpu intel_ptx_of_a_long_name_with_letters avx\n");
    CHECK(files.read().result.what == failure::no_intel_pt);
    made_files none;
    CHECK(none.read().result.what == failure::no_sysfs);
}
