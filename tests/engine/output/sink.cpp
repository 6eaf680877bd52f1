// SPDX-License-Identifier: BSL-1.0
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/sink.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

using namespace ptspec;
using namespace ptspec::test;
using engine::output_sink;
using engine::write_result;
namespace preset = cpu::preset;

namespace {

using fragile = failing_memory<ram>;

constexpr auto fragile_memory() -> fragile { return {.inner = {A, {}}}; }

}  // namespace

TEST_CASE("a sink sends packets of a trace writer to the output") {
    CHECK_TWICE([](auto value) {
        ram memory{A, {}};
        set_table(memory, A, X, Y, A | END);
        auto one = tracer_on(memory);
        one.place(A, pointers(0, value(uint64_t{0xFFA})));
        (void)one.enable_topa();
        output_sink sink{one.out, one.now, memory};
        bool const empty = sink.kept() == 0;
        trace::writer to{sink};
        bool const right = empty && to.branch(true) == rule::none &&
                           to.put_ip<packet::fup>(0x401000) == rule::none &&
                           to.put(packet::cbr{}) == rule::none;
        constexpr uint8_t wanted[] = {0x06, 0x7D, 0x00, 0x10, 0x40, 0x00,
                                      0x00, 0x00, 0x02, 0x03, 0x00, 0x00};
        return right && !sink.fault() && sink.kept() == 0 &&
               sink.last() == write_result{.taken = 4,
                                           .stored = 4,
                                           .first = Y + 2,
                                           .last = Y + 5,
                                           .has_address = true} &&
               one.is_at(A, pointers(1, 6)) &&
               holds(memory, X + 0xFFA, byte_view{wanted}.first(6)) &&
               holds(memory, Y, byte_view{wanted}.from(6));
    });
}

TEST_CASE("bytes that a port refuses are kept and sent first (PKT-347,PRG-180)") {
    CHECK_TWICE([](auto value) {
        auto memory = fragile_memory();
        set_table(memory, A, X, Y, A | END);
        memory.bad_first = X + 5;
        memory.bad_last = value(X + 5);
        auto one = traced_from(memory, A);
        output_sink sink{one.out, one.now, memory};
        bool const taken = sink.append(first_bytes(9));
        bool const some = sink.kept() == 4 && sink.fault() == port_fault{true, X + 5} &&
                          sink.last().stored == 5 && one.is_at(A, pointers(0, 5));
        bool const refused = !sink.append(first_bytes(12).from(9)) && sink.kept() == 4 &&
                             sink.last().stored == 0;
        memory.bad_first = X + 7;
        memory.bad_last = X + 7;
        bool const still = sink.resume() == port_fault{true, X + 7} && sink.kept() == 2 &&
                           sink.last().stored == 2;
        memory.mend();
        bool const done = sink.append(first_bytes(12).from(9)) && sink.kept() == 0 &&
                          !sink.fault() && !sink.resume();
        return taken && some && refused && still && done && one.is_at(A, pointers(0, 12)) &&
               holds(memory, X, first_bytes(12));
    });
    CHECK_TWICE([](auto value) {  // an entry that cannot be read keeps no byte
        auto memory = fragile_memory();
        set_table(memory, A, X, Y, A | END);
        auto one = traced_from(memory, A);
        one.disable();
        one.place(A, pointers(0, 0xFFC));
        (void)one.enable_topa();
        memory.bad_first = value(A + 8);
        memory.bad_last = A + 15;
        output_sink sink{one.out, one.now, memory};
        bool const full = sink.append(first_bytes(4)) && sink.kept() == 0 &&
                          sink.fault() == port_fault{true, A + 8};
        bool const blocked = !sink.append(first_bytes(1)) && sink.resume() == sink.fault() &&
                             sink.fault();
        memory.mend();
        return full && blocked && !sink.resume() && !sink.fault() && one.is_at(A, pointers(1, 0));
    });
}

TEST_CASE("append() takes up to 384 bytes at once, and no more") {
    CHECK_TWICE([](auto value) {
        auto memory = fragile_memory();
        set_table(memory, A, X, A | END);
        memory.bad_first = X;
        memory.bad_last = value(X);
        auto one = traced_from(memory, A);
        output_sink sink{one.out, one.now, memory};
        uint8_t const bytes[385] = {};
        return !sink.append(bytes) && !sink.fault() && sink.append(byte_view{bytes}.first(384)) &&
               sink.kept() == 384 && sink.fault();
    });
}
