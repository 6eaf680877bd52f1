// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/event_trace.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::packet;

TEST_CASE("the named types of CFE (PKT-221)") {
    struct named {
        cfe_type type;
        unsigned number;
    };
    CHECK_TWICE([](auto value) {
        constexpr named names[] = {
            {cfe_type::INTR, 0x01},     {cfe_type::IRET, 0x02},   {cfe_type::SMI, 0x03},
            {cfe_type::RSM, 0x04},      {cfe_type::SIPI, 0x05},   {cfe_type::INIT, 0x06},
            {cfe_type::VMENTRY, 0x07},  {cfe_type::VMEXIT, 0x08}, {cfe_type::VMEXIT_INTR, 0x09},
            {cfe_type::SHUTDOWN, 0x0A}, {cfe_type::UINTR, 0x0C},  {cfe_type::UIRET, 0x0D}};
        bool good = true;
        for (auto const& one : names) {
            good = good && underlying(one.type) == one.number &&
                   cfe{}.with(cfe::type{value(one.type)}).raw == (0x1302U | one.number << 16);
        }
        return good;
    });
}

TEST_CASE("SWINTR and SYSCALL are types 0E and 0F, as in the only source") {
    static_assert(underlying(cfe_type::SWINTR) == 0x0E && underlying(cfe_type::SYSCALL) == 0x0F);
}

TEST_CASE("the types of EVD: page-fault address, VMX exit qualification and exit reason "
          "(PKT-226)") {
    CHECK_TWICE([](auto value) {
        auto const raw_of = [&](evd_type type) {
            return evd{}.with(evd::type{value(type)}).raw.low;
        };
        return raw_of(evd_type::PFA) == 0x00'5302 && raw_of(evd_type::VMXQ) == 0x01'5302 &&
               raw_of(evd_type::VMXR) == 0x02'5302;
    });
}
