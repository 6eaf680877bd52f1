// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/output/state.hpp>

#include <support/check_twice.hpp>

using namespace ptspec;
using engine::detail::output_phase;
using engine::detail::output_state;
using access::ia32_rtit_status;

namespace {

/// ToPA output in entry 2 of a table at 1000H, 30H bytes into a region of 4 KB at 20000H.
constexpr auto in_entry_2() -> output_state {
    output_state s;
    s.scheme = cpu::output_scheme::topa;
    s.phase = output_phase::running;
    s.position = {0x1000, 2, 0};
    s.extent.entry = topa::entry{0x2'0000};
    s.extent.end = 0x2'1000;
    s.extent.room = 0xFD0;
    s.region_base = 0x2'0000;
    s.region_size = 0x1000;
    return s;
}

}  // namespace

TEST_CASE("an extent stores its end, and moves by its room") {
    CHECK_TWICE([](auto value) {
        uint8_t bytes[8] = {};
        engine::detail::output_extent extent;
        extent.end = value(uint64_t{0x2'0008});
        extent.room = 3;
        extent.mapped_end = bytes + 8;
        return extent.address() == 0x2'0005 && extent.mapped() == bytes + 5;
    });
}

TEST_CASE("the output MSRs show the table, the index and the offset (OUT-050,051)") {
    CHECK_TWICE([](auto value) {
        auto s = in_entry_2();
        access::msr_state now;
        engine::detail::write_back_position(s, now);
        bool const topa = now.output.base.raw == 0x1000 &&
                          now.output.mask_ptrs.raw == 0x30'0000'017F;
        s.extent.room = 0;  // no extent: the offset of the position counts
        s.position.offset = value(0x1000U);
        engine::detail::write_back_position(s, now);
        return topa && now.output.mask_ptrs.raw == 0x1000'0000'017F;
    });
}

TEST_CASE("entries that were filled directly count for the index, and then for the position") {
    CHECK_TWICE([](auto value) {
        uint8_t const entries[8 * 8] = {};
        auto s = in_entry_2();
        engine::detail::set_entries(s, entries + 16, value(uint64_t{4}));
        bool const set = s.first_entry == nullptr && s.extent.next_entry == entries + 24 &&
                         s.entries_end == entries + 56;
        s.extent.next_entry += 16;
        bool const index = engine::detail::current_index(s) == 4 && s.position.index == 2;
        s.extent.entry = topa::entry{0x5'0000};
        engine::detail::update_position(s);
        bool const updated = s.position.index == 4 && s.region_base == 0x5'0000 &&
                             engine::detail::current_index(s) == 4;
        engine::detail::forget_entries(s);
        s.position.index = 0;
        engine::detail::set_entries(s, entries, 1);
        return set && index && updated && s.first_entry == entries;
    });
}

TEST_CASE("a single range shows only its offset, and a fabric nothing (OUT-021,120)") {
    CHECK_TWICE([](auto value) {
        auto s = in_entry_2();
        access::msr_state now;
        now.output.base.raw = 0x77000;
        now.output.mask_ptrs.raw = 0xFFFF;
        s.scheme = cpu::output_scheme::fabric;
        engine::detail::write_back_position(s, now);
        bool const fabric = now.output.base.raw == 0x77000 && now.output.mask_ptrs.raw == 0xFFFF;
        s.scheme = cpu::output_scheme::single_range;
        s.region_base = value(uint64_t{0x2'0000});
        engine::detail::write_back_position(s, now);
        return fabric && now.output.base.raw == 0x77000 &&
               now.output.mask_ptrs.raw == 0x30'0000'FFFF;
    });
}

TEST_CASE("output that ended keeps the position; an error also sets Error (OUT-005, OUT-080)") {
    CHECK_TWICE([](auto value) {
        auto s = in_entry_2();
        access::msr_state now;
        now.status.raw = value(uint64_t{4});  // TriggerEn
        engine::detail::end_output(s, now, rule::OUT_080);
        bool const ended = s.phase == output_phase::off && s.ended_by == rule::OUT_080 &&
                           now.status.raw == 0 && now.output.mask_ptrs.raw == 0x30'0000'017F &&
                           s.extent.mapped_end == nullptr && !s.can_fill;
        now.output.mask_ptrs.raw = 0x7F;
        engine::detail::write_back_position(s, now);  // off: not written again
        auto other = in_entry_2();
        access::msr_state failed;
        failed.status.raw = 4;
        engine::detail::fail_output(other, failed, rule::OUT_064);
        return ended && now.output.mask_ptrs.raw == 0x7F && other.ended_by == rule::OUT_064 &&
               failed.status.get<ia32_rtit_status::Error>() &&
               !failed.status.get<ia32_rtit_status::TriggerEn>();
    });
}

TEST_CASE("bytes and an entry are disjoint unless they share a byte (OUT-070)") {
    static uint8_t bytes[64];
    for (int entry = 0; entry <= 48; ++entry) {
        for (int place = 0; place <= 40; ++place) {
            bool const overlap = entry < place + 10 && place < entry + 8;
            CHECK(engine::detail::is_disjoint(bytes + entry, bytes + place, 10) == !overlap);
        }
    }
}
