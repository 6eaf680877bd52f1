// SPDX-License-Identifier: BSL-1.0
// Memory ports that fail, and accesses that are retried.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/output.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

using namespace ptspec;
using namespace ptspec::test;
using engine::write_result;
namespace preset = cpu::preset;

namespace {

using fragile = failing_memory<ram>;

constexpr auto fragile_memory() -> fragile {
    fragile made;
    made.inner.base = A;
    return made;
}

}  // namespace

TEST_CASE("an entry that cannot be read is not an error, and is read again (PRG-180)") {
    CHECK_TWICE([](auto value) {  // when TraceEn becomes 1
        auto memory = fragile_memory();
        set_table(memory, A, X, Y, A | END);
        memory.bad_first = value(A + 8);
        memory.bad_last = A + 15;
        tracer<fragile> one{.of = preset::P_SKL, .memory = memory};
        one.place(A, pointers(1, 5));
        (void)one.enable_topa();
        bool const waits = one.fault == port_fault{true, A + 8} && one.is_running() &&
                           one.is_at(A, pointers(1, 5));
        auto const none = one.write(first_bytes(3));
        bool const kept = none == write_result{.fault = {true, A + 8}} &&
                          one.write({}) == write_result{};
        one.retry();
        bool const still = one.fault == port_fault{true, A + 8};
        memory.mend();
        one.retry();
        auto const done = one.write(first_bytes(3));
        return waits && kept && still && !one.fault.happened && done.stored == 3 &&
               done.first == Y + 5 && one.is_at(A, pointers(1, 8));
    });
    CHECK_TWICE([](auto value) {  // after a full region: the byte that fills it is taken
        auto memory = fragile_memory();
        set_table(memory, A, X | INT, Y, A | END);
        memory.bad_first = value(A + 8);
        memory.bad_last = A + 8;
        tracer<fragile> one{.of = preset::P_SKL, .memory = memory};
        one.place(A, pointers(0, 0xFFE));
        (void)one.enable_topa();
        auto const done = one.write(first_bytes(9));
        bool const waits = !done && done.taken == 2 && done.stored == 2 && done.pmis == 1 &&
                           done.fault == port_fault{true, A + 8} && one.is_running() &&
                           one.is_at(A, pointers(1, 0));
        memory.mend();
        auto const rest = one.write(first_bytes(9).from(2));
        return waits && rest && rest.pmis == 0 && rest.first == Y && rest.taken == 7;
    });
    CHECK_TWICE([](auto value) {  // the entry that an END links to: the link was followed
        auto memory = fragile_memory();
        set_table(memory, A, X, B | END);
        set_table(memory, B, Y, A | END);
        memory.bad_first = value(B);
        memory.bad_last = B + 7;
        tracer<fragile> one{.of = preset::P_SKL, .memory = memory};
        one.place(A, pointers(1, 0xFFFF));
        (void)one.enable_topa();
        bool const at_enable = one.fault == port_fault{true, B} && one.is_at(B, 0x7F) &&
                               one.is_running();
        memory.mend();
        set_table(memory, A, 0, 2);  // not read again
        one.retry();
        auto const done = one.write(first_bytes(1));
        return at_enable && !one.fault.happened && done.first == Y && one.is_running();
    });
}

TEST_CASE("TraceEn may be cleared and set while an entry is pending (PRG-180)") {
    CHECK_TWICE([](auto value) {
        auto memory = fragile_memory();
        set_table(memory, A, X, B | END);
        set_table(memory, B, Y, A | END);
        memory.bad_first = value(A + 8);
        memory.bad_last = A + 8;
        tracer<fragile> one{.of = preset::P_SKL, .memory = memory};
        one.place(A, pointers(0, 0xFFF));
        (void)one.enable_topa();
        (void)one.write(first_bytes(2));
        (void)one.disable();
        bool const frozen = one.is_at(A, pointers(1, 0));
        memory.mend();
        one.retry();
        bool const off = one.is_at(A, pointers(1, 0)) && !one.fault.happened;
        (void)one.enable_topa();
        (void)one.write(first_bytes(2).from(1));
        return frozen && off && one.is_at(B, pointers(0, 1)) &&
               holds(memory, Y, first_bytes(2).from(1));
    });
}

TEST_CASE("memory that ends inside a region faults at its end, and no byte is lost (PRG-180)") {
    CHECK_TWICE([](auto value) {
        uint8_t low[0x100] = {};
        uint8_t high[0x100] = {};
        uint8_t table[16] = {};
        host_region const parts[] = {{X, low, 0x100}, {X + 0x180, high, 0x100}, {A, table, 16}};
        host_memory memory{parts};
        set_table(memory, A, X, A | END);
        auto one = traced_from(memory, value(A));
        auto const done = one.write(first_bytes(0x180));
        bool const at_its_end = done.taken == 0x100 && one.is_at(A, pointers(0, 0x100)) &&
                                done.fault == port_fault{true, X + 0x100};
        auto two = tracer_on(memory);
        two.place(A, pointers(0, 0x180));
        (void)two.enable_topa();
        auto const other = two.write(first_bytes(0x180));
        return at_its_end && byte_view{low} == first_bytes(0x100) && other.taken == 0x100 &&
               other.fault == port_fault{true, X + 0x280} && byte_view{high} == first_bytes(0x100);
    });
}

namespace {

/// Guest memory: 4 KB pages, each mapped to another host page. An unmapped page faults.
struct guest_memory {
    using ignores_pmis = guest_memory;

    ram host{A, {}};
    uint64_t host_page[4] = {A, Y, Z, X};  ///< of guest pages 0 to 3
    bool mapped[4] = {true, true, true, true};

    constexpr auto load(uint64_t address) const noexcept -> port_value {
        uint64_t const page = address / 4096;
        if (page >= 4 || !mapped[page]) { return {}; }
        return host.load(host_page[page] + address % 4096);
    }
    constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        size_t done = 0;
        while (done < bytes.size()) {
            uint64_t const page = (address + done) / 4096;
            if (page >= 4 || !mapped[page]) { break; }
            uint64_t const offset = (address + done) % 4096;
            auto const part = bytes.from(done).first(static_cast<size_t>(4096 - offset));
            done += host.store(host_page[page] + offset, part);
        }
        return done;
    }
};

}  // namespace

TEST_CASE("addresses are those of the port: guest-physical if it translates (OUT-009, PRG-180)") {
    CHECK_TWICE([](auto value) {
        guest_memory guest;
        set_table(guest, 0, 0x2000 | size_8K, 0 | END);  // guest pages 2 and 3, with the table in 0
        guest.mapped[3] = false;
        tracer<guest_memory> one{.of = preset::P_ATM, .memory = guest};
        one.place(0, pointers(0, 0xFFE));
        (void)one.enable_topa();
        auto const done = one.write(first_bytes(value(size_t{6})));
        bool const exits = !done && done.taken == 2 && done.fault == port_fault{true, 0x3000} &&
                           one.is_at(0, pointers(0, 0x1000)) && one.is_running();
        guest.mapped[3] = true;  // the host maps the page and resumes
        auto const rest = one.write(first_bytes(6).from(2));
        return exits && rest.taken == 4 && rest.last == 0x3003 &&
               holds(guest.host, Z + 0xFFE, first_bytes(2)) &&
               holds(guest.host, X, first_bytes(6).from(2));
    });
}
