// SPDX-License-Identifier: BSL-1.0
// The STOP and INT actions of a full region.
#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/output/output.hpp>

#include <support/check_twice.hpp>
#include <support/small_tables.hpp>

#include <initializer_list>

using namespace ptspec;
using namespace ptspec::test;
namespace preset = cpu::preset;
namespace bits = ctl_bits;
namespace flags = status_bits;

namespace {

/// Memory that records the state of the processor when an interrupt is raised.
struct ringing_memory {
    listed_memory inner{};
    access::msr_state const* now = nullptr;
    uint64_t raised = 0;
    uint64_t status = 0;         ///< at the last interrupt
    uint64_t global_status = 0;  ///< at the last interrupt
    uint64_t stored = 0;         ///< bytes of the first run at the last interrupt

    constexpr auto load(uint64_t address) noexcept -> port_value { return inner.load(address); }
    constexpr auto store(uint64_t address, byte_view bytes) noexcept -> size_t {
        return inner.store(address, bytes);
    }
    constexpr void raise() noexcept {
        ++raised;
        status = now->status.raw;
        global_status = now->perf_global_status.raw;
        stored = inner.runs[0].bytes;
    }
};
static_assert(memory_port<ringing_memory> && pmi_port<ringing_memory>);

}  // namespace

TEST_CASE("after a STOP enabling fails unless the pointers are moved (OUT-064,081, PRG-086)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X | STOP}, {A + 8, Y}};
        listed_memory memory{words};
        auto one = tracer_on(memory);
        one.place(value(A), pointers(0, 0xFFF));
        (void)one.enable_topa();
        (void)one.write(first_bytes(1));
        (void)one.disable();
        (void)one.enable_topa();  // Stopped is still set
        bool const silent = one.status(flags::stopped) && one.out.ended_by() == rule::none &&
                            one.is_at(A, pointers(0, 0x1000)) && memory.loads == 1;
        (void)one.disable();
        one.put(0x571, 0);
        (void)one.enable_topa();
        bool const failed = one.has_failed(rule::OUT_064);
        (void)one.disable();
        one.put(0x571, 0);
        one.place(A, pointers(1, 0));
        (void)one.enable_topa();
        return silent && failed && one.is_running();
    });
}

TEST_CASE("the port receives the interrupt after the status is set (OUT-082)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X | INT}, {A + 8, Z}, {A + 16, A | END}};
        ringing_memory memory{.inner = words};
        auto one = tracer_on(memory);
        memory.now = &one.now;
        one.place(value(A), pointers(0, 0xFFE));
        (void)one.enable_topa();
        auto const done = one.write(first_bytes(3));
        return done.pmis == 1 && memory.raised == 1 && memory.stored == 2 &&
               memory.global_status == topa_pmi &&
               (memory.status & (flags::trigger_en | flags::stopped)) == flags::trigger_en;
    });
}

TEST_CASE("STOP takes effect before INT if an entry has both (OUT-083, PRG-087)") {
    auto const body = [](auto value, cpu::capabilities const& of) {
        word_at const words[] = {{A, X | INT | STOP}, {A + 8, A | END}};
        ringing_memory memory{.inner = words};
        auto one = tracer_on(memory, of);
        memory.now = &one.now;
        one.how.pmi_lead_bytes = 0;
        one.place(value(A), pointers(0, 0xFFF));
        (void)one.enable_topa();
        auto const done = one.write(first_bytes(2));
        return done.pmis == 1 && done.stored == 1 && done.lost == 1 && one.has_stopped() &&
               one.pmi_pending() && one.is_at(A, pointers(0, 0x1000)) && memory.raised == 1 &&
               memory.global_status == topa_pmi &&
               (memory.status & (flags::trigger_en | flags::stopped)) == flags::stopped;
    };
    CHECK_TWICE([body](auto value) { return body(value, preset::P_SKL); });
    CHECK_TWICE([body](auto value) { return body(value, preset::P_BDW); });
}

TEST_CASE("PendToPAPMI is set if it is enumerated and CTL enables it (OUT-085,088)") {
    CHECK_TWICE([](auto value) {
        auto without = preset::P_ATM;  // without EBX[6]
        without.leaf_14_0_ebx = {without.leaf_14_0_ebx.raw & ~uint32_t{1 << 6}};
        for (unsigned choice = 0; choice < 4; ++choice) {
            bool const enumerated = (choice & 1) != 0;
            bool const asked = (choice & 2) != 0;
            word_at const words[] = {{A, X | INT}, {A + 8, A | END}};
            listed_memory memory{words};
            auto one = tracer_on(memory, enumerated ? preset::P_ATM : without);
            one.place(value(A), pointers(0, 0xFFF));
            uint64_t const ctl = bits::single_range | bits::topa | (asked ? bits::inject : 0);
            if (!one.enable(ctl)) {  // rejected by the access rules
                if (enumerated) { return false; }
                one.now.ctl = {ctl | bits::trace_en};
                one.now.status = {flags::trigger_en};
                one.fault = one.out.start(one.of, one.now, memory, one.how);
            }
            (void)one.write(first_bytes(1));
            bool const pending = one.status(flags::pend_topa_pmi);
            if (pending != (enumerated && asked) || one.sum.pmis != 1) { return false; }
        }
        return true;
    });
    CHECK_TWICE([](auto value) {  // InjectPsbPmiOnEnable = 0: it does not change
        for (uint64_t const pending : {uint64_t{0}, flags::pend_topa_pmi}) {
            word_at const words[] = {{A, X | INT | STOP}};
            listed_memory memory{words};
            auto one = tracer_on(memory, preset::P_ATM);
            one.put(0x571, value(pending));
            one.place(A, pointers(0, 0xFFF));
            (void)one.enable_topa();
            bool const at_enable = one.pmi_pending();
            (void)one.write(first_bytes(3));
            (void)one.disable();
            if (at_enable || one.sum.pmis != 1 ||
                one.status(flags::pend_topa_pmi) != (pending != 0)) {
                return false;
            }
        }
        return true;
    });
}

TEST_CASE("a pending interrupt is raised again when TraceEn becomes 1 (OUT-086, OUT-087)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X | INT}, {A + 8, Y}, {A + 16, A | END}};
        listed_memory memory{words};
        auto one = tracer_on(memory, preset::P_ATM);
        constexpr uint64_t ctl = bits::single_range | bits::topa | bits::inject;
        one.place(value(A), pointers(0, 0xFFF));
        (void)one.enable(ctl);
        (void)one.write(first_bytes(1));
        bool const kept = one.status(flags::pend_topa_pmi) && one.disable() &&
                          one.status(flags::pend_topa_pmi);
        auto const reset = access::effect_of_write(one.of, one.now, 0x390, topa_pmi);
        one.now = reset.state;
        bool const taken = !one.pmi_pending() && one.status(flags::pend_topa_pmi);
        auto const again = access::effect_of_write(one.of, one.now, 0x570, ctl | bits::trace_en);
        one.now = again.state;
        one.fault = one.out.start(one.of, one.now, memory, one.how);
        auto const done = one.out.write(one.now, memory, first_bytes(1));
        return kept && taken && again.pmi && one.pmi_pending() && done.pmis == 0 &&
               one.status(flags::pend_topa_pmi);
    });
}

TEST_CASE("two regions with INT raise two interrupts and set one bit (OUT-090)") {
    CHECK_TWICE([](auto value) {
        word_at const words[] = {{A, X | INT}, {A + 8, Y | INT}, {A + 16, Z}};
        ringing_memory memory{.inner = words};
        auto one = tracer_on(memory);
        memory.now = &one.now;
        one.place(value(A), pointers(0, 0));
        (void)one.enable_topa();
        auto const done = one.write(first_bytes(0x2000));
        auto const reset = access::effect_of_write(one.of, one.now, 0x390, topa_pmi);
        return done.pmis == 2 && memory.raised == 2 && one.pmi_pending() &&
               one.is_at(A, pointers(2, 0)) && (reset.state.perf_global_status.raw & topa_pmi) == 0;
    });
}
