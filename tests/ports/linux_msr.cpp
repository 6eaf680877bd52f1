// SPDX-License-Identifier: BSL-1.0
#include <ptspec/ports/linux_msr.hpp>
#include <ptspec/reg/rtit_ctl.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>

using namespace ptspec;
using namespace std::string_view_literals;
using reg::ia32_rtit_ctl;

namespace {

/// A sparse file in memory, in place of a device.
class sparse_file {
public:
    sparse_file() : path_{"/proc/self/fd/" + std::to_string(file_)} {}
    sparse_file(sparse_file const&) = delete;
    auto operator=(sparse_file const&) -> sparse_file& = delete;
    ~sparse_file() { (void)::close(file_); }

    void put(uint64_t offset, std::string_view bytes) const {
        auto const count = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        REQUIRE(count == static_cast<ssize_t>(bytes.size()));
    }
    [[nodiscard]] auto get(uint64_t offset, size_t bytes) const -> std::string {
        std::string got(bytes, '?');
        REQUIRE(::pread(file_, got.data(), bytes, static_cast<off_t>(offset)) ==
                static_cast<ssize_t>(bytes));
        return got;
    }
    [[nodiscard]] auto path() const -> char const* { return path_.c_str(); }

private:
    int file_ = ::memfd_create("device", MFD_CLOEXEC);
    std::string path_;
};

constexpr bool has_wide_offsets = sizeof(off_t) == 8;

}  // namespace

TEST_CASE("the 8 bytes at the index of an MSR are its value") {
    sparse_file const device;
    device.put(0x570, "\x09\x21\x00\x00\x00\x00\x00\x80"sv);
    ports::linux_msrs msrs;
    REQUIRE(msrs.open_file(device.path()));
    CHECK(msrs.read(0x570) == port_value{true, 0x8000'0000'0000'2109});
    CHECK(msrs.error() == 0);
    CHECK(driver::read<ia32_rtit_ctl>(msrs).value.get<ia32_rtit_ctl::TraceEn>());
}

TEST_CASE("a write puts the 8 bytes at the index and nothing else") {
    sparse_file const device;
    std::string const other(8, '\xEE');  // the bytes of the neighbours
    device.put(0x568, other + other + other);
    ports::linux_msrs msrs;
    REQUIRE(msrs.open_file(device.path()));
    CHECK(msrs.write(0x570, 0x0102'0304'0506'0708));
    CHECK(device.get(0x568, 24) == other + "\x08\x07\x06\x05\x04\x03\x02\x01" + other);
    msrs.fence();
}

TEST_CASE("a missing device is an error of open(), and each access fails") {
    ports::linux_msrs msrs;
    auto const opened = msrs.open_file("/proc/self/fd/missing");
    CHECK_FALSE(opened);
    CHECK(opened.error == ENOENT);
    CHECK_FALSE(msrs.is_open());
    CHECK_FALSE(msrs.read(0x570));
    CHECK(msrs.error() == EBADF);
    CHECK_FALSE(msrs.write(0x570, 0));
    CHECK(msrs.error() == EBADF);

    ports::linux_cpuid cpuid;
    CHECK(cpuid.open_file("/proc/self/fd/missing").error == ENOENT);
    CHECK(cpuid.query(7, 0) == cpuid_registers{});
    CHECK(cpuid.error() == EBADF);
}

TEST_CASE("a processor that does not exist has no device") {
    ports::linux_msrs msrs;
    ports::linux_cpuid cpuid;
    CHECK_FALSE(msrs.open(4'000'000'000));
    CHECK_FALSE(cpuid.open(4'000'000'000));
}

TEST_CASE("fewer bytes than the access needs are a failed access, and no value") {
    sparse_file const device;
    device.put(0x570, "1234567");
    ports::linux_msrs msrs;
    REQUIRE(msrs.open_file(device.path()));
    CHECK(msrs.read(0x570) == port_value{});
    CHECK(msrs.error() == ENODATA);
    CHECK(msrs.read(0x580) == port_value{});  // nothing at all
    CHECK(msrs.error() == ENODATA);
    CHECK(msrs.read(0x56F));
    CHECK(msrs.error() == 0);

    ports::linux_cpuid cpuid;
    REQUIRE(cpuid.open_file(device.path()));
    CHECK(cpuid.query(0x56F, 0) == cpuid_registers{});
    CHECK(cpuid.error() == ENODATA);
}

TEST_CASE("a device that is opened for reading refuses a write") {
    sparse_file const device;
    device.put(0x570, "12345678");
    ports::linux_msrs msrs;
    REQUIRE(msrs.open_file(device.path(), false));
    CHECK(msrs.read(0x570));
    CHECK_FALSE(msrs.write(0x570, 0));
    CHECK(msrs.error() == EBADF);
    CHECK(device.get(0x570, 8) == "12345678");
}

TEST_CASE("an index in the upper half of all numbers is an offset, or an error") {
    sparse_file const device;
    ports::linux_msrs msrs;
    REQUIRE(msrs.open_file(device.path()));
    if constexpr (has_wide_offsets) {
        device.put(0xC000'0080, "\x01\x0D\x00\x00\x00\x00\x00\x00"sv);
        CHECK(msrs.read(0xC000'0080) == port_value{true, 0xD01});
    } else {
        CHECK_FALSE(msrs.read(0xC000'0080));
        CHECK(msrs.error() == EOVERFLOW);
    }
}

TEST_CASE("the 16 bytes at subleaf << 32 | leaf are EAX, EBX, ECX and EDX") {
    sparse_file const device;
    device.put(0x14, "\x01\x00\x00\x00\x0F\x00\x00\x00\x07\x00\x00\x80\x02\x00\x00\x00"sv);
    ports::linux_cpuid cpuid;
    REQUIRE(cpuid.open_file(device.path()));
    CHECK(cpuid.query(0x14, 0) == cpuid_registers{1, 0xF, 0x8000'0007, 2});
    if constexpr (has_wide_offsets) {
        device.put(0x1'0000'0014,
                   "\x02\x00\x49\x02\xFF\x3F\x3F\x00\x00\x00\x00\x00\x00\x00\x00\x00"sv);
        CHECK(cpuid.query(0x14, 1) == cpuid_registers{0x0249'0002, 0x003F'3FFF, 0, 0});
    } else {
        CHECK(cpuid.query(0x14, 1) == cpuid_registers{});
        CHECK(cpuid.error() == EOVERFLOW);
    }
}

TEST_CASE("a moved port keeps the device, and close() releases it") {
    sparse_file const device;
    device.put(0x570, "12345678");
    ports::linux_msrs first;
    REQUIRE(first.open_file(device.path()));
    ports::linux_msrs second{std::move(first)};
    CHECK(second.read(0x570));
    first = std::move(second);
    CHECK_FALSE(second.is_open());  // NOLINT(bugprone-use-after-move)
    CHECK(first.read(0x570));
    first.close();
    CHECK_FALSE(first.is_open());
    CHECK_FALSE(first.read(0x570));
    CHECK(first.error() == EBADF);
}

TEST_CASE("the path of a device contains the number of the processor") {
    auto const path = [](unsigned cpu, char const* name) {
        return std::string{ports::detail::device_path{cpu, name}.letters};
    };
    CHECK(path(0, "msr") == "/dev/cpu/0/msr");
    CHECK(path(137, "cpuid") == "/dev/cpu/137/cpuid");
    CHECK(path(4'294'967'295, "cpuid") == "/dev/cpu/4294967295/cpuid");
}
