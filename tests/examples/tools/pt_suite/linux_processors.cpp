// SPDX-License-Identifier: BSL-1.0
#include <tools/pt_suite/linux_processors.hpp>

#include <support/scratch_folder.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <exception>
#include <string>
#include <vector>

using namespace ptspec;
using namespace pt_suite;

namespace {

/// A folder with files of a kernel.
class fake_root {
public:
    fake_root() { files.root = folder_.path(); }

    void put(std::string const& path, std::string const& text) const {
        (void)folder_.write(path, text);
    }
    /// A device whose MSRs are 0, but bytes of some.
    void put_msrs(unsigned cpu, std::uint32_t index, char low, char next = 0) const {
        std::string bytes(0x600, '\0');
        bytes[index] = low;
        bytes[index + 1] = next;
        put("/dev/cpu/" + std::to_string(cpu) + "/msr", bytes);
    }

    linux_files files{};

private:
    test::scratch_folder folder_{};
};

template <class Call>
auto message_of(Call const& call) -> std::string {
    try {
        call();
    } catch (not_asked const& why) { return why.what(); }
    return {};
}

constexpr auto lockdown = "/sys/kernel/security/lockdown";
constexpr auto allow_writes = "/sys/module/msr/parameters/allow_writes";
constexpr auto pt_mode = "/sys/module/kvm_intel/parameters/pt_mode";

}  // namespace

TEST_CASE("lists of processors") {
    using list = std::vector<unsigned>;
    CHECK(processors_in("0-3,5") == list{0, 1, 2, 3, 5});
    CHECK(processors_in("7") == list{7});
    for (auto const* const wrong : {"", "x", "3-1", "0-", "-1", "0-99999999", "1,,x"}) {
        CHECK(processors_in(wrong).empty());
    }
    CHECK(list_of({0, 1, 2, 3, 5}) == "0-3,5");
    CHECK(list_of({4}) == "4");
    CHECK(list_of({0, 2, 3}) == "0,2-3");
    CHECK(list_of({}).empty());
    fake_root const root;
    CHECK(online_processors(root.files).empty());
    root.put("/sys/devices/system/cpu/online", "0-1\n");
    CHECK(online_processors(root.files) == list{0, 1});
}

TEST_CASE("a kernel that refuses writes of MSRs is named before anything is asked") {
    fake_root const root;
    CHECK(why_not(root.files).empty());
    root.put(lockdown, "[none] integrity confidentiality\n");
    root.put(allow_writes, "default\n");
    root.put(pt_mode, "0\n");
    CHECK(why_not(root.files).empty());
    CHECK(what_writes_do(root.files) ==
          "the kernel logs writes of MSRs, and is tainted by them (flag S)");
    root.put(allow_writes, "on\n");
    CHECK(what_writes_do(root.files) == "the kernel is tainted by writes of MSRs (flag S)");

    root.put(lockdown, "none [integrity] confidentiality\n");
    CHECK(why_not(root.files) ==
          "the kernel is locked down and refuses writes of MSRs (/sys/kernel/security/lockdown: "
          "none [integrity] confidentiality)");
    root.put(lockdown, "none integrity [confidentiality]\n");
    CHECK_FALSE(why_not(root.files).empty());
    root.put(lockdown, "[none] integrity confidentiality\n");
    root.put(allow_writes, "off\n");
    CHECK(why_not(root.files) == "the kernel refuses writes of MSRs: msr.allow_writes is off "
                                 "(/sys/module/msr/parameters/allow_writes)");
    root.put(allow_writes, "on\n");
    root.put(pt_mode, "1\n");
    CHECK(why_not(root.files) ==
          "kvm_intel gives Intel PT to its guests (pt_mode=1): load it without that option");
}

TEST_CASE("a missing device names the module") {
    fake_root const root;
    CHECK(message_of([&] { linux_processor const none{root.files, 0}; }) ==
          root.files.root + "/dev/cpu/0/msr: No such file or directory; `modprobe msr` makes it");
    root.put_msrs(0, 0x560, 0, 0x10);
    linux_processor device{root.files, 0};
    CHECK(device.read(0x560) == port_value{true, 0x1000});
    CHECK(device.write(0x580, 0x1234));
    CHECK(device.read(0x580).value == 0x1234);
    linux_processor reader{root.files, 0, false};
    CHECK_FALSE(reader.write(0x580, 0));
    CHECK(reader.error() == EBADF);
}

TEST_CASE("a processor that traces, any one, stops the start") {
    fake_root const root;
    root.put_msrs(0, 0x570, 8);
    root.put_msrs(1, 0x570, 8);
    CHECK(message_of([&] { require_idle(root.files, {0, 1}); }).empty());
    root.put_msrs(1, 0x570, 9);
    CHECK(message_of([&] { require_idle(root.files, {0, 1}); }) ==
          "TraceEn is 1 on processor 1: another program traces, such as perf record -e intel_pt//");
}

TEST_CASE("where KVM makes writes of IA32_RTIT_CTL fault, it must be unloaded") {
    fake_root const root;
    root.put_msrs(0, 0x485, 0, 0x40);  // IA32_VMX_MISC[14]
    root.put(pt_mode, "0\n");
    CHECK(message_of([&] { require_idle(root.files, {0}); }).empty());
    root.put_msrs(0, 0x485, 0, 0x20);
    CHECK(message_of([&] {
              require_idle(root.files, {0});
          }).starts_with("kvm_intel is loaded, and IA32_RTIT_CTL cannot be written"));
}

TEST_CASE("a signal is held until the MSRs are restored") {
    static std::sig_atomic_t volatile came = 0;
    auto const before = std::signal(SIGTERM, [](int) { came = 1; });
    {
        held_signals const held;
        CHECK_FALSE(held.is_pending());
        (void)std::raise(SIGTERM);
        CHECK(held.is_pending());
        CHECK(came == 0);
    }
    CHECK(came == 1);
    (void)std::signal(SIGTERM, SIG_IGN);
    {
        held_signals const held;
        (void)std::raise(SIGTERM);
        CHECK_FALSE(held.is_pending());
    }
    (void)std::signal(SIGTERM, before);
}
