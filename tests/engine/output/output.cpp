// SPDX-License-Identifier: BSL-1.0
// Also tests/engine/hostile.cpp.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/output.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

#include <initializer_list>
#include <type_traits>

using namespace ptspec;
using namespace ptspec::test;
using engine::output;
using engine::restricted_access;
using engine::write_result;
namespace preset = cpu::preset;
namespace bits = ctl_bits;

// ------------------------------------------------------------------------------------ schemes

namespace {

/// A fabric that accepts `room` bytes.
struct small_fabric {
    using ignores_pmis = small_fabric;

    byte_array<64> got{};
    size_t count = 0;
    size_t room = 64;
    size_t others = 0;  ///< memory accesses

    constexpr auto load(uint64_t) noexcept -> port_value {
        ++others;
        return {true, 0};
    }
    constexpr auto store(uint64_t, byte_view bytes) noexcept -> size_t {
        ++others;
        return bytes.size();
    }
    constexpr auto send(byte_view bytes) noexcept -> size_t {
        size_t const taken = bytes.size() < room ? bytes.size() : room;
        for (size_t i = 0; i < taken; ++i) { got.bytes[count + i] = bytes[i]; }
        count += taken;
        room -= taken;
        return taken;
    }
};
static_assert(fabric_port<small_fabric> && memory_port<small_fabric>);

/// A state that violates every rule of memory output.
template <memory_port Memory>
constexpr void make_everything_wrong(tracer<Memory>& one) {
    one.place(0x1'0080, pointers(5, 0xFFFF'FFFF));
    one.how.restricted.smrr_physmask = {0x800};  // all below 4 GB
    one.how.when_restricted = restricted_access::error;
}

}  // namespace

TEST_CASE("FabricEn sends the bytes to the fabric, with and without ToPA (OUT-001,120, PRG-080)") {
    CHECK_TWICE([](auto value) {
        for (uint64_t const topa : {uint64_t{0}, bits::topa}) {
            small_fabric fabric;
            auto one = tracer_on(fabric, preset::P_FUT);
            make_everything_wrong(one);
            if (!one.enable(value(bits::single_range | bits::fabric) | topa)) { return false; }
            auto const done = one.write(first_bytes(40));
            bool const right = done == write_result{.taken = 40, .stored = 40} &&
                               one.is_running() && fabric.count == 40 && fabric.others == 0 &&
                               byte_view{fabric.got}.first(40) == first_bytes(40) &&
                               one.is_at(0x1'0080, pointers(5, 0xFFFF'FFFF)) &&
                               !one.pmi_pending() && !one.fault.happened;
            if (!right || !one.disable()) { return false; }
            if (!one.is_at(0x1'0080, pointers(5, 0xFFFF'FFFF))) { return false; }
        }
        return true;
    });
}

TEST_CASE("bytes that a fabric refuses are sent later, once and in order (OUT-121)") {
    CHECK_TWICE([](auto value) {
        small_fabric fabric;
        fabric.room = value(size_t{5});
        auto one = tracer_on(fabric, preset::P_FUT);
        if (!one.enable(bits::single_range | bits::fabric)) { return false; }
        auto const some = one.write(first_bytes(12));
        bool const first = !some && some.taken == 5 && some.stored == 5 && some.lost == 0 &&
                           some.fault == port_fault{true, 0} && !some.has_address;
        auto const none = one.write(first_bytes(12).from(5));
        bool const second = !none && none.taken == 0 && none.stored == 0;
        one.retry();
        bool const nothing = !one.fault.happened && fabric.count == 5;
        fabric.room = 64;
        auto const rest = one.write(first_bytes(12).from(5));
        return first && second && nothing && rest && rest.taken == 7 && fabric.count == 12 &&
               byte_view{fabric.got}.first(12) == first_bytes(12) && one.is_running();
    });
}

TEST_CASE("without a fabric port the bytes of a fabric are lost (OUT-121)") {
    CHECK_TWICE([](auto value) {
        listed_memory memory;
        auto one = tracer_on(memory, preset::P_FAB);
        if (!one.enable(value(bits::fabric | 4 | 1 << 13))) { return false; }
        return one.write(first_bytes(100)) == write_result{.taken = 100, .lost = 100} &&
               memory.loads == 0 && memory.run_count == 0;
    });
}

TEST_CASE("without FabricEn, ToPA=1 selects a table, ToPA=0 a single range (OUT-001)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}};
        listed_memory memory{words};
        auto one = traced_from(memory, value(A));
        (void)one.write(first_bytes(3));
        bool const through_a_table = memory.loads == 1 && memory.loaded[0] == A &&
                                     memory.runs[0] == stored_run{X, 3};
        listed_memory other{words};
        auto two = tracer_on(other);
        two.place(value(A), 0xFFF);
        (void)two.enable(bits::single_range);
        (void)two.write(first_bytes(3));
        return through_a_table && other.loads == 0 && other.runs[0] == stored_run{A, 3};
    });
}

TEST_CASE("the output scheme is fixed from TraceEn 0->1 until TraceEn 1->0 (OUT-001)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}, {A + 8, A | END}};
        listed_memory memory{words};
        auto one = traced_from(memory, value(A));
        one.now.ctl = {bits::single_range | bits::trace_en};
        (void)one.write(first_bytes(0x1000));
        bool const kept = memory.run_count == 1 && memory.runs[0] == stored_run{X, 0x1000} &&
                          one.is_at(A, 0x7F);
        one.now.ctl = {bits::single_range | bits::topa | bits::trace_en};
        if (!one.disable()) { return false; }
        one.place(Z, 0xFFF);
        (void)one.enable(bits::single_range);
        (void)one.write(first_bytes(2));
        return kept && memory.runs[1] == stored_run{Z, 2} && one.is_at(Z, 0x2'0000'0FFF);
    });
}

TEST_CASE("all schemes store the same bytes, split anywhere (OUT-002, PRG-084)") {
    CHECK_TWICE([](auto value) {
        size_t const count = value(size_t{40});
        auto const packets = first_bytes(count);
        return on_both([&](auto& memory) {
            set_table(memory, A, X, Y, A | END);
            auto one = tracer_on(memory);
            one.place(A, pointers(0, 0xFF0));  // 16 bytes before the end of X
            (void)one.enable_topa();
            (void)one.write(packets);
            bool const topa = holds(memory, X + 0xFF0, packets.first(16)) &&
                              holds(memory, Y, packets.from(16)) && one.disable();
            one.place(Z, pointers(0, 0x70));  // 128 bytes, 16 before the end
            (void)one.enable(bits::single_range);
            (void)one.write(packets);
            return topa && holds(memory, Z + 0x70, packets.first(16)) &&
                   holds(memory, Z, packets.from(16));
        });
    });
}

// ------------------------------------------------------------------------------------ TraceEn

TEST_CASE("an output unit that was not started stores nothing and checks nothing (OUT-008)") {
    CHECK_TWICE([](auto value) {
        listed_memory memory;
        auto one = tracer_on(memory);
        make_everything_wrong(one);
        auto const before = one.now;
        auto const done = one.write(first_bytes(value(size_t{7})));
        one.retry();
        one.out.write_back(one.now);
        one.out.stop(one.now);
        return done == write_result{.taken = 7, .lost = 7} && one.now == before &&
               memory.loads == 0 && memory.run_count == 0 && one.out.ended_by() == rule::none &&
               !one.fault.happened;
    });
}

TEST_CASE("after TraceEn 1->0 the output MSRs are exact and do not change (OUT-005, PRG-083)") {
    CHECK_TWICE([](auto value) {
        return on_both([&](auto& memory) {
            set_table(memory, A, X, Y, A | END);
            auto one = traced_from(memory, A);
            (void)one.write(first_bytes(value(size_t{0x1005})));
            one.out.stop(one.now);
            bool const exact = one.now.output.base.raw == A &&
                               one.now.output.mask_ptrs.raw == pointers(1, 5);
            auto const frozen = one.now;
            auto const done = one.write(first_bytes(3));
            one.out.write_back(one.now);
            one.out.stop(one.now);
            one.retry();
            return exact && done == write_result{.taken = 3, .lost = 3} && one.now == frozen &&
                   holds(memory, Y + 5, byte_array<3>{});
        });
    });
}

TEST_CASE("write_back() updates the output MSRs during tracing (OUT-005)") {
    CHECK_TWICE([](auto value) {
        return on_both([&](auto& memory) {
            set_table(memory, A, X, B | END);
            set_table(memory, B, Y, Z | size_8K);
            auto one = traced_from(memory, A);
            bool right = one.is_at(A, 0x7F);
            (void)one.write(first_bytes(value(size_t{1})));
            right = right && one.is_at(A, pointers(0, 1));
            (void)one.write(first_bytes(0xFFE));
            right = right && one.is_at(A, pointers(0, 0xFFF));
            (void)one.write(first_bytes(1));
            right = right && one.is_at(B, 0x7F);
            (void)one.write(first_bytes(0x1000));
            right = right && one.is_at(B, pointers(1, 0));
            (void)one.write(first_bytes(0x1FFF));
            return right && one.is_at(B, pointers(1, 0x1FFF)) && one.is_running();
        });
    });
    CHECK_TWICE([](auto value) {
        return on_both([&](auto& memory) {
            auto one = tracer_on(memory);
            one.place(X, 0x7F);
            (void)one.enable(bits::single_range);
            (void)one.write(first_bytes(value(size_t{0x7F})));
            bool const right = one.is_at(X, pointers(0, 0x7F));
            (void)one.write(first_bytes(1));
            return right && one.is_at(X, 0x7F);
        });
    });
}

namespace {

/// Writes bytes. TraceEn is cleared and set again after the first `cut` bytes, without a write of
/// other MSRs.
template <memory_port Memory>
constexpr void write_with_a_pause(tracer<Memory>& one, uint64_t ctl, size_t cut, size_t all) {
    (void)one.enable(ctl);
    (void)one.write(first_bytes(cut));
    (void)one.disable();
    (void)one.enable(ctl);
    (void)one.write(first_bytes(all).from(cut));
    (void)one.disable();
}

}  // namespace

TEST_CASE("a trace resumes where it ended, without a write of the output MSRs (OUT-006,130)") {
    auto const body = [](auto value, size_t cut) {
        return on_both([&](auto& memory) {
            set_table(memory, A, X, B | END);
            set_table(memory, B, Y, A | END);
            auto one = tracer_on(memory);
            one.place(value(A), 0x7F);
            write_with_a_pause(one, bits::single_range | bits::topa, cut, 0x2003);
            bool const topa = one.is_at(A, pointers(0, 3)) &&
                              holds(memory, X + 3, first_bytes(0x1000).from(3)) &&
                              holds(memory, Y, first_bytes(0x2000).from(0x1000)) &&
                              holds(memory, X, first_bytes(0x2003).from(0x2000));
            one.place(Z, 0xFFF);
            write_with_a_pause(one, bits::single_range, cut, 0x1001);
            return topa && one.is_at(Z, pointers(31, 1)) &&
                   holds(memory, Z + 1, first_bytes(0x1000).from(1)) &&
                   holds(memory, Z, first_bytes(0x1001).from(0x1000));
        });
    };
    CHECK_TWICE([body](auto value) { return body(value, 0xFFF); });
    for (size_t const cut : {0x0U, 0x1U, 0x807U, 0x808U, 0x809U, 0x1000U, 0x1001U}) {
        CHECK(body(test::unknown{}, cut));
    }
}

TEST_CASE("recovery from an error: TraceEn 0, fix, clear Error, TraceEn 1 (OUT-134)") {
    CHECK_TWICE([](auto value) {
        return on_both([&](auto& memory) {
            set_table(memory, A, X, Y | 2, A | END);
            auto one = traced_from(memory, A);
            (void)one.write(first_bytes(value(size_t{0x1010})));
            bool const found = one.has_failed(rule::OUT_060) && one.sum.lost == 0x10 &&
                               one.is_at(A, pointers(1, 0));
            if (!found || !one.disable()) { return false; }
            set(memory, A + 8, Y);  // the entry that MASK_PTRS selects
            auto const clear = access::effect_of_write(one.of, one.now, 0x571, 0);
            one.now = clear.state;
            (void)one.enable_topa();
            (void)one.write(first_bytes(4));
            return one.is_running() && one.sum.lost == 0 && holds(memory, Y, first_bytes(4));
        });
    });
}

// ------------------------------------------------------------------------------------ single range

TEST_CASE("no MSR shows how often a single range has wrapped (OUT-025,030)") {
    CHECK_TWICE([](auto value) {
        listed_memory memory;
        auto one = tracer_on(memory);
        one.place(X, pointers(0, 5));
        (void)one.enable(bits::single_range);
        one.out.write_back(one.now);
        auto const before = one.now;
        for (unsigned lap = 0; lap < 3; ++lap) {
            (void)one.write(first_bytes(value(size_t{0x80})));
            one.out.write_back(one.now);
            if (one.now != before || !one.is_running()) { return false; }
        }
        return true;
    });
}

TEST_CASE("a device in the single range receives every byte of every lap (OUT-026)") {
    CHECK_TWICE([](auto value) {
        listed_memory device;
        auto one = tracer_on(device);
        one.place(0xFED0'0000, 0x7F);
        (void)one.enable(bits::single_range);
        (void)one.write(first_bytes(value(size_t{0x180})));
        return device.run_count == 3 && device.runs[0] == stored_run{0xFED0'0000, 0x80} &&
               device.runs[1] == device.runs[0] && device.runs[2] == device.runs[0];
    });
}

// ------------------------------------------------------------------------------------ ToPA

TEST_CASE("an entry is read once, when output reaches it (OUT-053,054, PRG-085)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X}, {A + 8, Y}, {A + 16, B | END}, {B, Z}, {B + 8, A | END}};
        listed_memory memory{words};
        auto one = traced_from(memory, value(A));
        bool right = memory.loads == 1 && memory.loaded[0] == A;
        (void)one.write(first_bytes(0xFFF));
        right = right && memory.loads == 1;
        (void)one.write(first_bytes(1));  // X is full
        right = right && memory.loads == 2 && memory.loaded[1] == A + 8 &&
                one.is_at(A, pointers(1, 0));
        (void)one.write(first_bytes(0x1000));  // Y is full
        right = right && memory.loads == 4 && memory.loaded[2] == A + 16 && memory.loaded[3] == B &&
                one.is_at(B, 0x7F);
        (void)one.write(first_bytes(0x1000));  // Z is full
        return right && memory.loads == 6 && memory.loaded[4] == B + 8 && memory.loaded[5] == A &&
               one.is_at(A, 0x7F) && one.is_running() && memory.run_count == 1 &&
               memory.runs[0] == stored_run{X, 0x3000};
    });
}

TEST_CASE("address 0, overlapping regions and a region over its table are legal (OUT-070)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, value(uint64_t{0})}, {A + 8, 0}, {A + 16, A | END}};
        listed_memory memory{words};
        auto one = traced_from(memory, A);
        (void)one.write(first_bytes(0x2001));
        return one.is_running() && memory.run_count == 3 &&
               memory.runs[0] == stored_run{0, 0x1000} && memory.runs[1] == memory.runs[0] &&
               one.is_at(A, pointers(0, 1));
    });
    CHECK_TWICE([](auto value) {  // the written bytes become the next entry
        return on_both([&](auto& memory) {
            set_table(memory, A, A, X, A | END);
            auto one = tracer_on(memory);
            one.place(A, pointers(0, 8));
            (void)one.enable_topa();
            uint8_t next[8] = {};
            store_le64(next, value(Y));
            (void)one.write(next);
            (void)one.write(first_bytes(0xFF0));
            (void)one.write(first_bytes(4));
            return one.is_running() && one.is_at(A, pointers(1, 4)) &&
                   holds(memory, Y, first_bytes(4));
        });
    });
}

TEST_CASE("limits: Size 15, index 1FFFFFFH, the top of 52 bits (OUT-153)") {
    CHECK_TWICE([](auto value) {
        uint64_t const table = value(uint64_t{0xF'FFFF'F000'0000});  // 256 MB below the top
        uint64_t const region = 0xF'FFFF'F800'0000;                  // 128 MB below the top
        word_at const words[] = {{0xF'FFFF'FFFF'FFF8, region | 15 << 6}, {table, X}};
        listed_memory memory{words};
        auto one = tracer_on(memory, preset::P_FUT);
        one.place(table, pointers(0x1FF'FFFF, 0x7FF'FFFE));
        (void)one.enable_topa();
        auto const done = one.write(first_bytes(3));
        return memory.loaded[0] == 0xF'FFFF'FFFF'FFF8 && memory.loaded[1] == table &&
               done.first == 0xF'FFFF'FFFF'FFFE && done.last == X && done.stored == 3 &&
               memory.runs[0] == stored_run{0xF'FFFF'FFFF'FFFE, 2} &&
               memory.runs[1] == stored_run{X, 1} && one.is_at(table, pointers(0, 1));
    });
}

// ------------------------------------------------------------------------------------ pieces

TEST_CASE("put_few() stores up to 16 bytes that fill no region, or nothing (OUT-151,152)") {
    CHECK_TWICE([](auto value) {
        return on_whole([&](auto& memory) {
            constexpr bool in_place =
                std::is_same_v<std::remove_reference_t<decltype(memory)>, host_memory>;
            // The bytes are stored once in both cases.
            auto const takes = [](auto& one, size_t count) {
                bool const taken = one.out.put_few(first_bytes(count));
                if (!taken) { (void)one.write(first_bytes(count)); }
                return taken;
            };
            set_table(memory, A, X, Y, A | END);
            auto one = traced_from(memory, A);
            bool right = !one.out.put_few({}) && takes(one, value(size_t{3})) == in_place &&
                         one.is_at(A, pointers(0, 3)) && holds(memory, X, first_bytes(3)) &&
                         takes(one, value(size_t{16})) == in_place && !takes(one, 17) &&
                         one.is_at(A, pointers(0, 36)) && holds(memory, X + 3, first_bytes(16));
            (void)one.write(first_bytes(0x1000 - 36 - 5));
            right = right && !one.out.put_few(first_bytes(5)) && one.is_at(A, pointers(0, 0xFFB)) &&
                    takes(one, value(size_t{4})) == in_place && !takes(one, 1) &&
                    one.is_at(A, pointers(1, 0)) && holds(memory, X + 0xFFB, first_bytes(4));
            (void)one.write(first_bytes(0x1000));  // END: back to the first entry
            right = right && takes(one, 2) == in_place && one.is_at(A, pointers(0, 2));
            (void)one.disable();
            return right && !one.out.put_few(first_bytes(1));
        });
    });
}

TEST_CASE("a write of no bytes changes nothing (OUT-152)") {
    auto const body = [](auto value) {
        return on_both([&](auto& memory) {
            set_table(memory, A, X | INT, Y | 2, A | END);
            byte_view const nothing = first_bytes(value(size_t{0}));
            auto one = tracer_on(memory);
            bool right = one.write(nothing) == write_result{} && one.write({}) == write_result{};
            one.place(A, pointers(0, 0xFFE));
            (void)one.enable_topa();
            auto now = one.now;
            right = right && one.write(nothing) == write_result{} &&
                    one.write({}) == write_result{} && one.now == now &&
                    one.is_at(A, pointers(0, 0xFFE));
            (void)one.write(first_bytes(1));
            now = one.now;
            right = right && one.write({}) == write_result{} && one.now == now && one.is_running();
            (void)one.write(first_bytes(1));  // the next entry is broken
            now = one.now;
            return right && one.write(nothing) == write_result{} &&
                   one.write({}) == write_result{} && one.now == now &&
                   one.has_failed(rule::OUT_060);
        });
    };
    CHECK_TWICE([body](auto value) { return body(value); });
    CHECK_TWICE([](auto value) {
        small_fabric fabric;
        auto one = tracer_on(fabric, preset::P_FUT);
        (void)one.enable(value(bits::single_range | bits::fabric));
        return one.write({}) == write_result{} && fabric.count == 0;
    });
}

TEST_CASE("an output unit is a value: a copy continues independently") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X | INT}, {A + 8, Y}};
        listed_memory memory{words};
        auto one = tracer_on(memory);
        one.place(value(A), pointers(0, 0xFFE));
        (void)one.enable_topa();
        output copy = one.out;
        auto copied = one.now;
        (void)one.write(first_bytes(3));
        listed_memory other{words};
        auto const done = copy.write(copied, other, first_bytes(1));
        copy.write_back(copied);
        return done.stored == 1 && copied.output.mask_ptrs.raw == pointers(0, 0xFFF) &&
               one.is_at(A, pointers(1, 1));
    });
}

TEST_CASE("an output unit that is restarted has no state of the previous run (OUT-006)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X | INT | STOP}, {B, Y}, {B + 8, B | END}};
        listed_memory memory{words};
        auto one = tracer_on(memory, preset::P_BDW);
        one.how = smrr(0, 0x800);
        one.how.restricted.smrr_physmask = {0xFFFF'F000 | (value(uint64_t{0}) << 11)};
        one.place(A, pointers(0, 0xFFF));
        (void)one.enable_topa();
        (void)one.write(first_bytes(1));
        bool const stopped = one.has_stopped() && one.sum.pmis == 0;
        (void)one.disable();
        one.put(0x571, 0);
        one.place(B, pointers(0, 0xDFF));
        (void)one.enable_topa();
        bool const fresh = one.out.ended_by() == rule::none;
        auto const done = one.write(first_bytes(0x201));
        return stopped && fresh && done.pmis == 0 && done.lost == 0 && one.is_running() &&
               one.is_at(B, 0x7F);
    });
}

TEST_CASE("the address of the next byte is known while output goes to memory (OUT-006, OUT-053)") {
    using engine::output_address;
    CHECK_TWICE([](auto value) {  // after END, from region to region, and after STOP
        word_at const words[] = {{A, X}, {A + 8, Y | STOP}, {A + 16, A | END}};
        listed_memory memory{words};
        auto one = tracer_on(memory);
        bool const off = !one.out.next_address();
        one.place(A, pointers(2, value(uint32_t{0x123})));
        (void)one.enable_topa();
        bool const linked = one.out.next_address() == output_address{true, X};
        (void)one.disable();
        one.place(A, pointers(0, 0xFFD));
        (void)one.enable_topa();
        (void)one.write(first_bytes(2));
        bool const last = one.out.next_address() == output_address{true, X + 0xFFF};
        (void)one.write(first_bytes(1));
        bool const next = one.out.next_address() == output_address{true, Y};
        (void)one.disable();
        one.place(A, pointers(1, 0xFFF));
        (void)one.enable_topa();
        (void)one.write(first_bytes(1));
        return off && linked && last && next && one.has_stopped() && !one.out.next_address();
    });
    CHECK_TWICE([](auto value) {  // not of a fabric, and not after an error
        small_fabric fabric;
        auto one = tracer_on(fabric, preset::P_FUT);
        bool const sends = one.enable(value(bits::fabric));
        word_at const words[] = {{A, 2}};  // a reserved bit
        listed_memory memory{words};
        auto two = tracer_on(memory);
        two.place(A, 0x7F);
        (void)two.enable_topa();
        return sends && !one.out.next_address() && !two.is_running() && !two.out.next_address();
    });
}
