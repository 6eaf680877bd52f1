// SPDX-License-Identifier: BSL-1.0
// Memory ports that fail, and accesses that are retried.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/output.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

#include <initializer_list>

using namespace ptspec;
using namespace ptspec::test;
using engine::write_result;
namespace preset = cpu::preset;
namespace bits = ctl_bits;

namespace {

using fragile = failing_memory<counting_memory<ram_size>>;

constexpr auto fragile_memory() -> fragile {
    fragile made;
    made.inner.inner.base = A;
    return made;
}

/// Writes bytes as a caller that handles faults must: bytes that were not taken are written again.
/// After a fault it does nothing, calls `resume` or writes no bytes, depending on `manner`.
struct patient {
    tracer<fragile>& one;
    unsigned manner;
    unsigned faults = 0;
    bool right = true;

    constexpr void after_a_fault() {
        ++faults;
        if (manner % 3 == 1) { one.retry(); }
        if (manner % 3 == 2) { right = right && one.write({}) == write_result{}; }
    }
    constexpr void write(byte_view bytes) {
        for (unsigned tries = 0; tries < 8 && !bytes.empty(); ++tries) {
            auto const done = one.write(bytes);
            right = right && done.taken == done.stored + done.lost &&
                    (done || done.taken <= bytes.size()) && (!done || done.taken == bytes.size());
            bytes = bytes.from(done.taken);
            if (!done) { after_a_fault(); }
        }
        right = right && bytes.empty();
    }
};

constexpr size_t failing_bytes = 8 + 0x1000 + 8;

template <memory_port Memory>
constexpr void prepare_failing_course(Memory& memory) {
    set_table(memory, A, X | INT, B | END);
    set_table(memory, B, Y, A | END);
}

/// Writes 8 bytes to X, all of Y (reached through an END) and 8 bytes to X again (through another
/// END). Access number `fails_at`, counted from 1, fails. True if the result is the same as without
/// the failure, and no byte was stored twice.
constexpr auto recovers(uint64_t fails_at, unsigned manner, size_t piece, unsigned faults = 1)
    -> bool {
    auto memory = fragile_memory();
    prepare_failing_course(memory.inner);
    for (auto& count : memory.inner.stores) { count = 0; }
    memory.fails_at = fails_at;
    tracer<fragile> one{.of = preset::P_SKL, .memory = memory};
    one.place(A, pointers(0, 0xFF8));
    (void)one.enable_topa();
    patient writer{.one = one, .manner = manner};
    if (one.fault.happened) { writer.after_a_fault(); }
    for (size_t at = 0; at < failing_bytes; at += piece) {
        writer.write(first_bytes(failing_bytes).from(at).first(piece));
    }
    bool const ends = one.is_running() && one.is_at(A, pointers(0, 8)) && one.sum.lost == 0 &&
                      one.sum.taken == failing_bytes && one.sum.stored == failing_bytes &&
                      one.sum.pmis == 1 && one.sum.first == X + 0xFF8 && one.sum.last == X + 7 &&
                      !one.sum.fault.happened && (manner != 1 || !one.fault.happened);
    auto& inner = memory.inner;
    bool const bytes = holds(inner, X + 0xFF8, first_bytes(8)) &&
                       holds(inner, Y, first_bytes(0x1008).from(8)) &&
                       holds(inner, X, first_bytes(0x1010).from(0x1008));
    for (size_t i = 0; i < ram_size; ++i) {
        uint64_t const address = A + i;
        bool const written = (address >= Y && address < Z) || (address >= X && address < X + 8) ||
                             (address >= X + 0xFF8 && address < Y);
        if (inner.stores[i] != (written ? 1 : 0)) { return false; }
    }
    return ends && bytes && writer.right && writer.faults == faults;
}

}  // namespace

TEST_CASE("a fault at any access loses no byte and stores no byte twice (PRG-180)") {
    // Loads: access 1 at the start, 10 and 11 after X, 4108 and 4109 after Y.
    CHECK_TWICE([](auto value) {
        return recovers(value(uint64_t{1}), 0, 0x2000) && recovers(value(uint64_t{1}), 1, 0x2000);
    });
    CHECK_TWICE([](auto value) {
        return recovers(value(uint64_t{5}), 0, 0x2000) && recovers(value(uint64_t{10}), 0, 0x2000);
    });
    CHECK_TWICE([](auto value) {
        return recovers(value(uint64_t{11}), 0, 0x2000) && recovers(value(uint64_t{11}), 1, 0x2000);
    });
    CHECK_TWICE([](auto value) {
        return recovers(value(uint64_t{4109}), 2, 0x2000) &&
               recovers(value(uint64_t{4000}), 0, 0x2000);
    });
    for (uint64_t at = 1; at < 4120; at += at < 40 || at > 4080 ? 1 : 37) {
        for (unsigned manner = 0; manner < 3; ++manner) {
            for (size_t const piece : {1U, 7U, 8U, 0x1000U, 0x2000U}) {
                CHECK(recovers(at, manner, piece, at > 4117 ? 0 : 1));
            }
        }
    }
}

TEST_CASE("if a store fails, only the bytes before it are taken (PRG-180)") {
    CHECK_TWICE([](auto value) {
        auto memory = fragile_memory();
        set_table(memory, A, X, A | END);
        memory.bad_first = value(X + 0x10);
        memory.bad_last = X + 0x1F;
        auto one = traced_from(memory, A);
        auto const done = one.write(first_bytes(0x30));
        bool const some = !done && done.taken == 0x10 && done.stored == 0x10 && done.lost == 0 &&
                          done.last == X + 0xF && done.fault == port_fault{true, X + 0x10} &&
                          one.is_running() && one.is_at(A, pointers(0, 0x10));
        auto const again = one.write(first_bytes(0x30).from(0x10));
        bool const none = again == write_result{.fault = {true, X + 0x10}} &&
                          one.is_at(A, pointers(0, 0x10));
        one.retry();  // nothing is pending: the caller still has the byte that failed
        bool const idle = !one.fault.happened;
        memory.mend();
        auto const rest = one.write(first_bytes(0x30).from(0x10));
        return some && none && idle && rest && rest.taken == 0x20 &&
               one.is_at(A, pointers(0, 0x30)) && holds(memory, X, first_bytes(0x30));
    });
}

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
    CHECK_TWICE([](auto value) {  // errors of the entry are reported when it is read
        auto memory = fragile_memory();
        set_table(memory, A, X, Y | 2, A | END);
        memory.bad_first = value(A + 8);
        memory.bad_last = A + 8;
        tracer<fragile> one{.of = preset::P_SKL, .memory = memory};
        one.place(A, pointers(0, 0xFFF));
        (void)one.enable_topa();
        (void)one.write(first_bytes(1));
        bool const not_yet = one.is_running();
        memory.mend();
        one.retry();
        bool const failed = one.has_failed(rule::OUT_060) && one.is_at(A, pointers(1, 0));
        auto two = tracer_on(memory);
        two.place(A, pointers(0, 0x1000));
        memory.bad_first = A;
        memory.bad_last = A;
        (void)two.enable_topa();
        bool const undecided = two.is_running() && two.fault == port_fault{true, A};
        memory.mend();
        two.retry();
        return not_yet && failed && undecided && two.has_failed(rule::OUT_064);
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
