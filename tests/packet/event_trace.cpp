// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/event_trace.hpp>

#include <support/check_twice.hpp>
#include <support/wire.hpp>

using namespace ptspec;
using namespace ptspec::packet;
using test::hex;

TEST_CASE("CFE is 02 13, type, IP and vector (PKT-220)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(value(hex("02 13 01 0E")),
                                cfe{}.with(cfe::type{cfe_type::INTR}, cfe::vector{0x0E})) &&
               test::stands_for(
                   value(hex("02 13 81 03")),
                   cfe{}.with(cfe::type{cfe_type::INTR}, cfe::vector{3}, cfe::IP{true})) &&
               test::stands_for(value(hex("02 13 1F FF")),
                                cfe{}.with(cfe::type{wrapped{31}}, cfe::vector{0xFF}));
    });
}

TEST_CASE("the named types of CFE; all other types also decode (PKT-221)") {
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
        for (unsigned i = 0; i < 256; ++i) {
            auto bytes = value(hex("02 13 00 55"));
            bytes.bytes[2] = static_cast<uint8_t>(i);
            auto const one = decode_as<cfe>(bytes);
            good = good && one && one.length == 4 &&
                   underlying(one.packet.template get<cfe::type>()) == i % 32 &&
                   one.packet.template get<cfe::IP>() == (i >= 128) &&
                   one.packet.template get<cfe::vector>() == 0x55;
        }
        return good;
    });
}

TEST_CASE("SWINTR and SYSCALL are types 0E and 0F, as in the only source") {
    static_assert(underlying(cfe_type::SWINTR) == 0x0E && underlying(cfe_type::SYSCALL) == 0x0F);
}

TEST_CASE("the reserved bits of CFE and EVD are ignored and written as 0 (PKT-003, PKT-340)") {
    CHECK_TWICE([](auto value) {
        auto const event = decode_as<cfe>(value(hex("02 13 7F FF")));
        auto const data = decode_as<evd>(value(hex("02 53 C0 01 00 00 00 00 00 00 80")));
        return event && encode(event.packet) == hex("02 13 1F FF") && data &&
               encode(data.packet) == hex("02 53 00 01 00 00 00 00 00 00 80");
    });
}

TEST_CASE("EVD is 02 53, six bits of type and eight bytes (PKT-225)") {
    CHECK_TWICE([](auto value) {
        return test::stands_for(
                   value(hex("02 53 00 10 32 54 76 98 BA DC FE")),
                   evd{}.with(evd::type{evd_type::PFA}, evd::payload{0xFEDC'BA98'7654'3210})) &&
               test::stands_for(
                   value(hex("02 53 3F 08 07 06 05 04 03 02 01")),
                   evd{}.with(evd::type{wrapped{63}}, evd::payload{0x0102'0304'0506'0708}));
    });
    CHECK_TWICE([](auto value) {
        auto const one = decode_as<evd>(value(hex("02 53 FF 10 32 54 76 98 BA DC FE")));
        return one && underlying(one.packet.template get<evd::type>()) == 63 &&
               one.packet.template get<evd::payload>() == 0xFEDC'BA98'7654'3210;
    });
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

TEST_CASE("a CFE type over 31 and an EVD type over 63 do not fit (PKT-340)") {
    CHECK_TWICE([](auto value) {
        return checked<cfe::type>(value(uint64_t{31})).has_value &&
               !checked<cfe::type>(value(uint64_t{32})).has_value &&
               checked<evd::type>(value(uint64_t{63})).has_value &&
               !checked<evd::type>(value(uint64_t{64})).has_value;
    });
}
