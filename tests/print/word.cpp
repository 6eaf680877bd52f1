// SPDX-License-Identifier: BSL-1.0
#include <ptspec/print/word.hpp>

#include <support/check_twice.hpp>
#include <support/words.hpp>

#include <cstdint>
#include <sstream>
#include <string>

using namespace ptspec;

namespace {

using ctl = reg::ia32_rtit_ctl;

template <class Word>
constexpr auto brief(Word const& word, unsigned max_phys_addr = 64) {
    return print::written<400>(
        [&](auto& out) { print::word(word, out, {.max_phys_addr = max_phys_addr}); });
}
template <class Word>
constexpr auto full(Word const& word) {
    return print::written<700>([&](auto& out) { print::word(word, out, print::style::full); });
}
template <class Word>
constexpr auto plain(Word const& word, unsigned max_phys_addr = 64) {
    auto how = print::style::plain_hex;
    how.max_phys_addr = max_phys_addr;
    return print::written<700>([&](auto& out) { print::word(word, out, how); });
}

/// A word with rows of every kind and with numbers around the limits of the formats.
///
/// Shape:  32 bits.
/// Source: none.
struct sample : bit_word<sample, uint32_t> {
    struct Count : field<3, 0> {
        static constexpr auto amount(uint64_t encoding) noexcept -> quantity {
            return encoding == 0 ? quantity{} : quantity{encoding, "MHz"};
        }
    };
    struct Base : unbounded<address_field<15, 4>> {};
    struct layout : bit_layout<32, Count, Base, other<23, 16>, reserved<31, 24>> {};
};

}  // namespace

TEST_CASE("the fields that are not 0 are printed from bit 0 up") {
    CHECK_TWICE([](auto value) {
        return brief(ctl{value(uint64_t{0x210D})}) == "TraceEn=1 OS=1 User=1 ToPA=1 BranchEn=1";
    });
}

TEST_CASE("encodings are followed by their names or their amounts (REG-048)") {
    CHECK_TWICE([](auto value) {
        auto const word = ctl{value(uint64_t{0x0021'0508'E70F})};
        return brief(word) ==
               "TraceEn=1 CYCEn=1 OS=1 User=1 ToPA=1 MTCEn=1 TSCEn=1 BranchEn=1 "
               "MTCFreq=3 (8 crystal cycles) CycThresh=1 (1 cycle) PSBFreq=5 (65536 bytes) "
               "ADDR0_CFG=1 (filter) ADDR1_CFG=2 (trace_stop)";
    });
}

TEST_CASE("an encoding without a name or an amount is printed as a number") {
    CHECK_TWICE([](auto value) {
        auto const word = ctl{}.with(ctl::ADDR2_CFG{wrapped{value(uint64_t{3})}},
                                     ctl::ADDR3_CFG{wrapped{value(uint64_t{15})}});
        return brief(word) == "ADDR2_CFG=3 ADDR3_CFG=FH";
    });
    CHECK_TWICE([](auto value) {
        auto const text = full(ctl{value(uint64_t{0})});
        return text ==
               "TraceEn=0 CYCEn=0 OS=0 User=0 PwrEvtEn=0 FUPonPTW=0 FabricEn=0 CR3Filter=0 ToPA=0 "
               "MTCEn=0 TSCEn=0 DisRETC=0 PTWEn=0 BranchEn=0 MTCFreq=0 (1 crystal cycle) "
               "CycThresh=0 PSBFreq=0 (2048 bytes) EventEn=0 ADDR0_CFG=0 (off) ADDR1_CFG=0 (off) "
               "ADDR2_CFG=0 (off) ADDR3_CFG=0 (off) DisTNT=0 InjectPsbPmiOnEnable=0";
    });
}

TEST_CASE("numbers from 10 on are hexadecimal, and addresses always are") {
    CHECK_TWICE([](auto value) {
        return brief(sample{value(9U)}) == "Count=9 (9 MHz)" &&
               brief(sample{value(10U)}) == "Count=AH (10 MHz)" &&
               brief(sample{value(1U)}) == "Count=1 (1 MHz)" &&
               full(sample{value(0U)}) == "Count=0 Base=0H" &&
               brief(sample{value(0x10U)}) == "Base=10H";
    });
    CHECK_TWICE([](auto value) {
        return brief(reg::ia32_rtit_status{value(uint64_t{0x1'F000'0000'0080})}) ==
               "PendToPAPMI=1 PacketByteCnt=1F000H";
    });
}

TEST_CASE("set bits of `other` rows and set reserved bits are printed last") {
    CHECK_TWICE([](auto value) {
        return brief(sample{value(0x8101'0001U)}) ==
                   "Count=1 (1 MHz) other set 10000H reserved set 81000000H" &&
               full(sample{value(0x00FF'0000U)}) == "Count=0 Base=0H other set FF0000H" &&
               brief(sample{value(0x0100'0000U)}) == "reserved set 1000000H";
    });
    CHECK_TWICE([](auto value) {
        return brief(ctl{value(uint64_t{0x8000'0000'0004'0001})}) ==
               "TraceEn=1 reserved set 8000000000040000H";
    });
}

TEST_CASE("a word of zeros prints 0") {
    CHECK_TWICE([](auto value) {
        return brief(ctl{value(uint64_t{0})}) == "0" && brief(sample{value(0U)}) == "0" &&
               full(reg::cpuid_15h_edx{value(0U)}) == "0" &&
               plain(reg::cpuid_15h_edx{value(0U)}) == "0";
    });
}

TEST_CASE("address bits from MAXPHYADDR on are reserved") {
    using base = reg::ia32_rtit_output_base;
    CHECK_TWICE([](auto value) {
        auto const word = base{value(uint64_t{0x80'1234'5680})};
        return brief(word) == "BasePhysAddr=8012345680H" &&
               brief(word, 40) == "BasePhysAddr=8012345680H" &&
               brief(word, 39) == "BasePhysAddr=8012345680H reserved set 8000000000H";
    });
    CHECK_TWICE([](auto value) {
        return plain(base{value(uint64_t{0x80'0000'0001})}, 39) ==
               "BasePhysAddr=8000000000; reserved set 8000000001";
    });
}

TEST_CASE("plain_hex prints every field as bare digits, and reserved bits after a semicolon") {
    CHECK_TWICE([](auto value) {
        return plain(topa::entry{value(uint64_t{0x1234'0104})}) ==
               "END=0 INT=1 STOP=0 Size=4 Base=12340000";
    });
    CHECK_TWICE([](auto value) {
        return plain(topa::entry{value(uint64_t{0x1234'03EA})}) ==
               "END=0 INT=0 STOP=0 Size=F Base=12340000; reserved set 2A";
    });
    CHECK_TWICE([](auto value) {
        return plain(reg::ia32_rtit_output_mask_ptrs{value(uint64_t{0xA'0000'03FF})}) ==
               "LowerMask=7F MaskOrTableOffset=7 OutputOffset=A";
    });
    CHECK_TWICE([](auto value) {
        // plain_hex ignores the bits of `other` rows.
        return plain(sample{value(0x01FF'001AU)}) == "Count=A Base=10; reserved set 1000000" &&
               plain(sample{value(0x01FF'0000U)}) == "Count=0 Base=0; reserved set 1000000";
    });
}

TEST_CASE("an amount has its unit, in the plural except for 1") {
    auto const of = [](uint64_t count, text unit) {
        return print::written<40>([=](auto& out) { print::amount({count, unit}, out); });
    };
    CHECK((of(8, "crystal cycles") == "8 crystal cycles"));
    CHECK((of(1, "crystal cycles") == "1 crystal cycle"));
    CHECK((of(0, "bytes") == "0 bytes"));
    CHECK((of(1, "Hz") == "1 Hz"));
    CHECK((of(10'000'000'000, "Hz") == "10000000000 Hz"));
}

TEST_CASE("fields can be visited one at a time") {
    CHECK_TWICE([](auto value) {
        unsigned seen = 0;
        bool right = true;
        print::for_each_field(sample{value(0xFF0A'BCD7U)}, [&](print::field_value const& field) {
            right = right && (seen == 0 ? field.facts->row.name == text{"Count"} &&
                                              field.encoding == 7 && field.value == 7
                                        : field.facts->row.name == text{"Base"} &&
                                              field.encoding == 0xBCD && field.value == 0xBCD0);
            ++seen;
        });
        return right && seen == 2;
    });
    CHECK_TWICE([](auto value) {
        print::fixed_text<40> out;
        auto const word = ctl{}.with(ctl::MTCFreq{wrapped{value(uint64_t{2})}});
        print::for_each_field(word, [&](print::field_value const& field) {
            if (field.encoding != 0) {
                print::value(field, out);
                print::value(field, out, {.meanings = false});
            }
        });
        return out == "2 (4 crystal cycles)2";
    });
}

TEST_CASE("every field of every word is printed with its value") {
    boost::hana::for_each(test::all_words, [](auto type) {
        using word = typename decltype(type)::type;
        using raw = typename word::raw_type;
        CAPTURE(std::string(name_of<word>().data(), name_of<word>().size()));
        for (std::uint64_t const pattern :
             {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0x9E37'79B9'7F4A'7C15}}) {
            auto const bits = static_cast<raw>(pattern);
            std::string line;
            print::word(
                word{bits}, [&](text piece) { line.append(piece.data(), piece.size()); },
                print::style::plain_hex);
            std::ostringstream expected;
            expected << std::hex << std::uppercase;
            std::uint64_t reserved = 0;
            for (auto const& row : rows_of<word>()) {
                auto const mask = test::ones(row.msb, row.lsb);
                if (row.kind == row_kind::reserved) { reserved |= bits & mask; }
                if (row.kind != row_kind::field) { continue; }
                auto const value = (bits & mask) >> row.lsb;
                expected << (expected.str().empty() ? "" : " ")
                         << std::string(row.name.data(), row.name.size()) << '='
                         << (value << (row.is_address ? row.lowest_address_bit : 0));
            }
            if (reserved != 0) {
                expected << (expected.str().empty() ? "" : "; ") << "reserved set " << reserved;
            }
            CHECK(line == (expected.str().empty() ? "0" : expected.str()));
        }
    });
}
