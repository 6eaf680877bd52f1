// SPDX-License-Identifier: BSL-1.0
#include <ptspec/print/rows.hpp>

#include <ptspec/packet/list.hpp>
#include <ptspec/reg/list.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/rtit_status.hpp>
#include <ptspec/reg/xsave.hpp>
#include <ptspec/topa/entry.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;

namespace {

/// The row with this name in a layout.
template <class Type>
constexpr auto row_named(text name) -> print::row_facts {
    for (auto const& one : print::row_list_of<Type>()) {
        if (one.row.name == name) { return one; }
    }
    return {};
}

/// The possible payload sizes of a packet as a mask.
template <class Packet>
constexpr auto sizes_of() -> uint32_t {
    return print::row_list_of<Packet>().last().payload_sizes;
}

enum class wide_enum : uint16_t { low = 3, highest_known = 255, unknown = 256 };

/// A word with encodings of ten bits and of seven bits.
///
/// Shape:  17 bits.
/// Source: none.
struct sample : bit_word<sample, uint32_t> {
    struct Wide : enumerated<9, 0, wide_enum> {};
    struct Seven : enumerated<16, 10, wide_enum> {};
    struct layout : bit_layout<17, Wide, Seven> {};
};

}  // namespace

TEST_CASE("a field is found by its name, rows that are not fields are not") {
    CHECK_TWICE([](auto value) {
        auto const rows = value(print::row_list_of<reg::ia32_rtit_status>());
        auto const* const stopped = rows.field("Stopped");
        return stopped != nullptr && stopped->row.lsb == 5 &&
               rows.field("FilterEn") == rows.first && rows.field("stopped") == nullptr &&
               rows.field("reserved") == nullptr && rows.field("") == nullptr;
    });
    CHECK(print::row_list_of<packet::ptw>().field("payload")->payload_sizes != 0);
}

TEST_CASE("the rows of a word are those of reflection, from bit 0 up") {
    CHECK_TWICE([](auto) {
        auto const rows = print::row_list_of<reg::ia32_rtit_status>();
        auto const reflected = rows_of<reg::ia32_rtit_status>();
        bool same = rows.count == reflected.size() && rows.bits == 64 && !rows.is_packet &&
                    rows.name == text{"ia32_rtit_status"};
        size_t i = 0;
        for (auto const& one : rows) {
            auto const& other = reflected[i++];
            same = same && one.row.name == other.name && one.row.msb == other.msb &&
                   one.row.lsb == other.lsb && one.row.kind == other.kind &&
                   one.row.access == other.access && one.payload_sizes == 0 && one.value == 0;
        }
        return same && rows.last().row.msb == 63 && rows.last().row.kind == row_kind::reserved;
    });
}

TEST_CASE("a state longer than a word also has rows") {
    CHECK_TWICE([](auto) {
        auto const rows = print::row_list_of<reg::xsave_pt_state>();
        return rows.count == 16 && rows.bits == 1024 && !rows.is_packet &&
               rows.first[3].row.name == text{"IA32_RTIT_STATUS"};
    });
}

TEST_CASE("an encoding has the name of its enumerator") {
    CHECK_TWICE([](auto value) {
        auto const config = row_named<reg::ia32_rtit_ctl>("ADDR1_CFG");
        return config.enumerator_count == 16 && config.enumerator(value(uint64_t{0})) == "off" &&
               config.enumerator(value(uint64_t{2})) == "trace_stop" &&
               config.enumerator(value(uint64_t{3})) == "" &&
               config.enumerator(value(uint64_t{15})) == "" &&
               config.enumerator(value(uint64_t{16})) == "";
    });
    CHECK_TWICE([](auto value) {
        auto const type = row_named<packet::cfe>("type");
        return type.enumerator_count == 32 && type.enumerator(value(uint64_t{0x0F})) == "SYSCALL" &&
               type.enumerator(value(uint64_t{0x1F})) == "";
    });
    CHECK_TWICE([](auto value) {
        auto const flag = row_named<reg::ia32_rtit_ctl>("TraceEn");
        return flag.enumerator_count == 0 && flag.enumerator(value(uint64_t{0})) == "";
    });
}

TEST_CASE("only encodings below 256 have names") {
    CHECK_TWICE([](auto value) {
        auto const wide = row_named<sample>("Wide");
        return wide.enumerator_count == 256 && wide.enumerator(value(uint64_t{3})) == "low" &&
               wide.enumerator(value(uint64_t{255})) == "highest_known" &&
               wide.enumerator(value(uint64_t{256})) == "" &&
               row_named<sample>("Seven").enumerator_count == 128;
    });
}

TEST_CASE("the amount of an encoding comes from its field") {
    CHECK_TWICE([](auto value) {
        auto const period = row_named<reg::ia32_rtit_ctl>("PSBFreq").amount_of(value(uint64_t{5}));
        auto const none = row_named<reg::ia32_rtit_ctl>("OS").amount_of(value(uint64_t{1}));
        return period.count == 65536 && period.unit == text{"bytes"} && none.unit.size() == 0;
    });
}

TEST_CASE("an address field reports whether its bits end at MAXPHYADDR") {
    CHECK_TWICE([](auto) {
        return row_named<topa::entry>("Base").ends_at_max_phys_addr &&
               row_named<topa::entry>("Base").row.lowest_address_bit == 12 &&
               !row_named<topa::entry>("Size").ends_at_max_phys_addr;
    });
}

TEST_CASE("fixed rows of a packet have their values") {
    CHECK_TWICE([](auto) {
        return row_named<packet::tip>("Opcode").value == 0x0D &&
               row_named<packet::mode_tsx>("Leaf").value == 1 &&
               row_named<packet::psb>("High").value == 0x8202'8202'8202'8202 &&
               row_named<packet::psb>("Low").value == 0x8202'8202'8202 &&
               row_named<packet::tip>("IPBytes").value == 0;
    });
}

TEST_CASE("the rows of a packet end with its payload and the possible sizes") {
    CHECK_TWICE([](auto) {
        auto const rows = print::row_list_of<packet::ptw>();
        auto const& payload = rows.last();
        return rows.count == 5 && rows.is_packet && rows.name == text{"PTW"} && rows.bits == 80 &&
               payload.row.name == text{"payload"} && payload.row.lsb == 16 &&
               payload.row.msb == 79 && payload.row.kind == row_kind::field &&
               payload.row.access == row_access::plain && !payload.row.is_address &&
               payload.row.lowest_address_bit == 0;
    });
    CHECK_TWICE([](auto) {
        return sizes_of<packet::tip>() == (1U << 0 | 1U << 2 | 1U << 4 | 1U << 6 | 1U << 8) &&
               sizes_of<packet::ptw>() == (1U << 4 | 1U << 8) &&
               sizes_of<packet::bip>() == (1U << 4 | 1U << 8) &&
               sizes_of<packet::trig>() == (1U << 0 | 1U << 2) && sizes_of<packet::cyc>() == 0x3FF;
    });
    CHECK_TWICE([](auto) {
        // The payload of MNT is an ordinary field, and PAD has no payload.
        return sizes_of<packet::mnt>() == 0 && print::row_list_of<packet::mnt>().count == 4 &&
               sizes_of<packet::pad>() == 0 && print::row_list_of<packet::pad>().bits == 8;
    });
}

TEST_CASE("the access of a row is at most two words") {
    CHECK_TWICE([](auto value) {
        return print::access_name(value(row_access::plain)) == text{"read/write"} &&
               print::access_name(value(row_access::write_ignored)) == text{"write ignored"} &&
               print::access_name(value(row_access::forced_1)) == text{"reads 1"} &&
               print::access_name(value(row_access::read_only)) == text{"read only"};
    });
}

namespace {

constexpr auto ends_in_nul(text it) -> bool { return it.data()[it.size()] == 0; }

/// True if all names of the rows of these types end in NUL.
template <class... Types>
constexpr auto names_end_in_nul(type_list<Types...>) -> bool {
    auto const all_of = [](print::row_list const& rows) {
        bool all = ends_in_nul(rows.name);
        for (auto const& one : rows) {
            all = all && ends_in_nul(one.row.name);
            for (unsigned i = 0; i < one.enumerator_count; ++i) {
                all = all && ends_in_nul(one.enumerators[i]);
            }
        }
        return all;
    };
    return (all_of(print::row_list_of<Types>()) && ...);
}

}  // namespace

TEST_CASE("the names of all rows and encodings end in NUL") {
    CHECK(names_end_in_nul(reg::all{}));
    CHECK(names_end_in_nul(packet::all{}));
}
