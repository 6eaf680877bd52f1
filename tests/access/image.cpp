// SPDX-License-Identifier: BSL-1.0
#include <ptspec/access/image.hpp>

#include <ptspec/cpu/presets.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using namespace ptspec::access;
namespace preset = ptspec::cpu::preset;

namespace {

/// A state that P-FUT can hold, with a different value in each field.
constexpr auto full() -> msr_state {
    msr_state state;
    state.ctl = {0x0000'2210'0000'210D};
    state.status = {0x0000'0123'0000'0005};
    state.output.base = {0x0000'1234'5678'9000};
    state.output.mask_ptrs = {0x0000'0040'0000'01FF};
    state.cr3_match = {0x0123'4567'89AB'CDE0};
    state.addr[0] = {{0x1000}, {0x1FFF}};
    state.addr[1] = {{0x2000}, {0x2FFF}};
    state.addr[2] = {{0x3000}, {0x3FFF}};
    state.addr[3] = {{0xFFFF'8000'0000'0000}, {0xFFFF'8000'0000'0FFF}};
    state.xss = {0x100};
    state.perf_global_status = {0x0080'0000'0000'0001};
    state.debugctl = {0x0801};
    state.in_vmx_operation = true;
    return state;
}

constexpr uint8_t head[16] = {'P', 'T', 'S', 'T', 'A', 'T', 'E', 0, 1, 0, 0, 0, 152, 0, 0, 0};

/// The offset of a quadword in the image.
constexpr auto at(unsigned quadword) -> size_t { return 16 + 8 * quadword; }

constexpr auto with_quadword(byte_array<image_size> image, unsigned quadword, uint64_t value) {
    store_le64(image.data() + at(quadword), value);
    return image;
}

constexpr auto with_byte(byte_array<image_size> image, size_t place, uint8_t value) {
    image.bytes[place] = value;
    return image;
}

/// True when loading failed by `why` and the state is the default.
constexpr auto fails(load_result const& loaded, access::error why) -> bool {
    return !loaded && loaded.error == why && loaded.state == msr_state{};
}
constexpr auto refuses(load_result const& loaded, rule broken, uint32_t msr) -> bool {
    return fails(loaded, access::error::refused) && loaded.broken == broken && loaded.msr == msr;
}

}  // namespace

TEST_CASE("an image is a header, the MSRs in the documented order, and flags") {
    CHECK_TWICE([](auto value) {
        auto const image = store(value(full()));
        uint64_t const expected[] = {0x0000'2210'0000'210D,
                                     0x0000'0123'0000'0005,
                                     0x0000'1234'5678'9000,
                                     0x0000'0040'0000'01FF,
                                     0x0123'4567'89AB'CDE0,
                                     0x1000,
                                     0x1FFF,
                                     0x2000,
                                     0x2FFF,
                                     0x3000,
                                     0x3FFF,
                                     0xFFFF'8000'0000'0000,
                                     0xFFFF'8000'0000'0FFF,
                                     0x100,
                                     0x0080'0000'0000'0001,
                                     0x0801,
                                     1};
        static_assert(image_size == 152 && sizeof expected == image_size - sizeof head);
        bool same = byte_view{image}.first(16) == byte_view{head};
        for (unsigned i = 0; i < 17; ++i) {
            same = same && load_le64(image.data() + at(i)) == expected[i];
        }
        return same;
    });
}

TEST_CASE("the flags are VMX operation, SMM and the saved TraceEn") {
    CHECK_TWICE([](auto value) {
        auto const flags = [](msr_state const& state) {
            return load_le64(store(state).data() + at(16));
        };
        return flags(msr_state{.in_vmx_operation = value(true)}) == 1 &&
               flags(msr_state{.in_smm = value(true)}) == 2 &&
               flags(msr_state{.smram_trace_en = value(true)}) == 4 && flags(msr_state{}) == 0;
    });
}

TEST_CASE("a saved image loads") {
    CHECK_TWICE([](auto value) {
        auto const image = store(value(full()));
        auto const loaded = load(preset::P_FUT, image);
        return loaded && loaded.error == access::error::none && loaded.broken == rule::none &&
               loaded.msr == 0 && load_result{}.msr == 0 && loaded.state == full();
    });
    CHECK_TWICE([](auto value) {
        msr_state const in_smm{.in_smm = true, .smram_trace_en = value(true)};
        return load(preset::P_NONE, store(value(msr_state{}))).state == msr_state{} &&
               load(preset::P_SKL, store(in_smm)).state == in_smm;
    });
}

TEST_CASE("every prefix of an image is truncated, and extra bytes are wrong_size") {
    CHECK_TWICE([](auto value) {
        auto const image = store(full());
        for (size_t count = 0; count < image_size; ++count) {
            if (!fails(load(preset::P_FUT, {image.data(), value(count)}),
                       access::error::truncated)) {
                return false;
            }
        }
        uint8_t longer[image_size + 1] = {};
        for (size_t i = 0; i < image_size; ++i) { longer[i] = image[i]; }
        return fails(load(preset::P_FUT, longer), access::error::wrong_size);
    });
}

TEST_CASE("other magic numbers and other versions are rejected") {
    CHECK_TWICE([](auto value) {
        auto const image = store(full());
        auto const with = [&](size_t place, uint8_t byte) {
            return load(preset::P_FUT, with_byte(image, place, value(byte)));
        };
        for (size_t i = 0; i < 8; ++i) {
            if (!fails(with(i, 0x80), access::error::not_an_image)) { return false; }
        }
        return fails(with(8, 2), access::error::other_version) &&
               fails(with(8, 0), access::error::other_version) &&
               fails(with(11, 1), access::error::other_version) &&
               fails(with(11, 0x80), access::error::other_version) &&
               fails(with(12, 151), access::error::wrong_size) &&
               fails(with(12, 153), access::error::wrong_size) &&
               fails(with(15, 1), access::error::wrong_size);
    });
}

TEST_CASE("no byte after the end of a short image is read") {
    CHECK_TWICE([](auto value) {
        uint8_t const seven[7] = {value(uint8_t{'P'}), 'T', 'S', 'T', 'A', 'T', 'E'};
        uint8_t const other[8] = {value(uint8_t{'P'}), 'T', 'S', 'T', 'A', 'T', 'E', 1};
        uint8_t const fifteen[15] = {value(uint8_t{'P'}), 'T', 'S', 'T', 'A', 'T', 'E', 0, 2};
        uint8_t const newer[16] = {value(uint8_t{'P'}), 'T', 'S', 'T', 'A', 'T', 'E', 0, 2};
        return fails(load(preset::P_FUT, seven), access::error::truncated) &&
               fails(load(preset::P_FUT, other), access::error::not_an_image) &&
               fails(load(preset::P_FUT, fifteen), access::error::truncated) &&
               fails(load(preset::P_FUT, newer), access::error::other_version);
    });
}

TEST_CASE("unknown or contradictory flags are rejected") {
    CHECK_TWICE([](auto value) {
        auto const with = [&](uint64_t flags) {
            return load(preset::P_FUT, with_quadword(store(msr_state{}), 16, value(flags)));
        };
        return fails(with(8), access::error::unknown_flags) &&
               fails(with(uint64_t{1} << 63), access::error::unknown_flags) &&
               fails(with(4), access::error::unknown_flags) && with(6) && with(7) && with(3);
    });
}

TEST_CASE("a value that the processor cannot hold is refused by the rule of its WRMSR") {
    CHECK_TWICE([](auto value) {
        auto const with = [&](cpu::capabilities const& of, unsigned quadword, uint64_t number) {
            return load(of, with_quadword(store(msr_state{}), quadword, value(number)));
        };
        return refuses(with(preset::P_FUT, 0, 1U << 18), rule::REG_044, 0x570) &&
               refuses(with(preset::P_SKL, 0, 1U << 12), rule::REG_032, 0x570) &&
               refuses(with(preset::P_FUT, 1, 8), rule::REG_052, 0x571) &&
               refuses(with(preset::P_SKL, 1, 0x40), rule::REG_054, 0x571) &&
               refuses(with(preset::P_BDW, 1, uint64_t{1} << 32), rule::REG_055, 0x571) &&
               refuses(with(preset::P_SKL, 2, 0x80'0000'0000), rule::REG_070, 0x560) &&
               refuses(with(preset::P_SKL, 4, 0x10), rule::REG_074, 0x572) &&
               refuses(with(preset::P_SKL, 8, 0x8000'0000'0000), rule::REG_076, 0x583) &&
               refuses(with(preset::P_BDW, 13, 0x100), rule::REG_140, 0xDA0) &&
               refuses(with(preset::P_FAB, 14, uint64_t{1} << 55), rule::REG_204, 0x38E) &&
               refuses(with(preset::P_SKL, 14, uint64_t{1} << 49), rule::REG_006, 0x38E) &&
               refuses(with(preset::P_SKL, 15, 8), rule::REG_006, 0x1D9);
    });
}

TEST_CASE("an MSR that the processor lacks must hold its cold reset value") {
    CHECK_TWICE([](auto value) {
        auto const with = [&](cpu::capabilities const& of, unsigned quadword, uint64_t number) {
            return load(of, with_quadword(store(msr_state{}), quadword, value(number)));
        };
        return refuses(with(preset::P_NONE, 0, 4), rule::REG_001, 0x570) &&
               refuses(with(preset::P_FAB, 2, 0x1000), rule::REG_012, 0x560) &&
               refuses(with(preset::P_FAB, 3, 0xFF), rule::REG_012, 0x561) &&
               refuses(with(preset::P_SRO, 4, 0x1000), rule::REG_013, 0x572) &&
               refuses(with(preset::P_SKL, 9, 1), rule::REG_014, 0x584) &&
               refuses(with(preset::P_SKL, 12, 1), rule::REG_014, 0x587) &&
               with(preset::P_FAB, 3, 0x7F) && with(preset::P_SKL, 8, 1);
    });
}

TEST_CASE("LowerMask reads as ones whatever the image holds (REG-072)") {
    CHECK_TWICE([](auto value) {
        auto const image = with_quadword(store(msr_state{}), 3, value(uint64_t{0x1'0000'0080}));
        return load(preset::P_SKL, image).state.output.mask_ptrs.raw == 0x1'0000'00FF;
    });
}

TEST_CASE("TriggerEn has to follow from TraceEn, Stopped and Error (REG-056)") {
    CHECK_TWICE([](auto value) {
        auto const with = [&](uint64_t ctl, uint64_t status) {
            return load(preset::P_SKL, store(msr_state{.ctl = {value(ctl)}, .status = {status}}));
        };
        return with(0x2109, 4) && with(0x2108, 0) && with(0x2109, 0x10) && with(0x2109, 0x20) &&
               refuses(with(0x2109, 0), rule::REG_056, 0x571) &&
               refuses(with(0x2108, 4), rule::REG_056, 0x571) &&
               refuses(with(0x2109, 0x14), rule::REG_056, 0x571) &&
               refuses(with(0x2109, 0x24), rule::REG_056, 0x571);
    });
}

TEST_CASE("TraceEn 1 in VMX operation is rejected where Intel PT is not allowed there (REG-121)") {
    CHECK_TWICE([](auto value) {
        auto const in_vmx = [&](cpu::capabilities const& of, uint64_t ctl) {
            return load(of, store(msr_state{.ctl = {value(ctl)},
                                            .status = {ctl % 2 == 0 ? 0U : 4U},
                                            .in_vmx_operation = true}));
        };
        return refuses(in_vmx(preset::P_BDW, 0x2109), rule::REG_121, 0x570) &&
               in_vmx(preset::P_BDW, 0x2108) && in_vmx(preset::P_SKL, 0x2109);
    });
}
