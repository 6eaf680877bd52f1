// SPDX-License-Identifier: BSL-1.0
#include <ptspec/simulate/instruction_action.hpp>

#include <support/check_twice.hpp>

#include <ptspec/x86/decode.hpp>

using namespace ptspec;
using simulate::execution;
namespace action = engine::action;

namespace {

constexpr auto ring_0 = [] {
    engine::execution_context made;
    made.cr3 = 0x1000;
    return made;
}();

/// The event of an instruction at 1000 after which `to` executes.
template <size_t Count>
constexpr auto executed(uint8_t const (&bytes)[Count], uint64_t to, uint64_t operand = 0)
    -> execution {
    return {x86::decode({bytes, Count}).instruction, 0x1000, to, ring_0, operand};
}

/// True if `take_action` gives exactly this event.
template <class Event>
constexpr auto gives(execution const& of, Event const& wanted, auto const&... members) -> bool {
    unsigned count = 0;
    bool is_equal = true;
    simulate::take_action(of, [&](auto const& got) {
        ++count;
        if constexpr (same_as<bare_t<decltype(got)>, Event>) {
            is_equal = is_equal && ((got.*members == wanted.*members) && ...);
        } else {
            is_equal = false;
        }
    });
    return count == 1 && is_equal;
}

}  // namespace

TEST_CASE("the events of near branches (GEN-110)") {
    CHECK_TWICE([](auto value) {
        using action::conditional;
        uint8_t const jcc[] = {0x74, 0x10};
        uint8_t const jmp[] = {0xEB, 0x10};
        uint8_t const call[] = {0xE8, 0, 1, 0, 0};
        uint8_t const jmp_rax[] = {0xFF, 0xE0};
        uint8_t const call_rax[] = {0xFF, 0xD0};
        uint8_t const ret[] = {0xC3};
        auto const to = &conditional::to;
        auto const taken = &conditional::taken;
        return gives(executed(jcc, value(uint64_t{0x1012})), conditional{0x1012, true}, to,
                     taken) &&
               gives(executed(jcc, 0x1002), conditional{0x1002, false}, to, taken) &&
               gives(executed(jmp, 0x1012), action::direct_jump{0x1012},
                     &action::direct_jump::to) &&
               gives(executed(call, 0x1105), action::direct_call{0x1005, 0x1105},
                     &action::direct_call::next, &action::direct_call::to) &&
               gives(executed(jmp_rax, 0x9000), action::indirect_jump{0x9000},
                     &action::indirect_jump::to) &&
               gives(executed(call_rax, 0x9000), action::indirect_call{0x1002, 0x9000},
                     &action::indirect_call::next, &action::indirect_call::to) &&
               gives(executed(ret, 0x9000), action::near_return{0x9000}, &action::near_return::to);
    });
}

TEST_CASE("the events of far transfers (GEN-110, GEN-111)") {
    CHECK_TWICE([](auto value) {
        using action::far_kind;
        using action::far_transfer;
        uint8_t const syscall[] = {0x0F, 0x05};
        uint8_t const sysret[] = {0x48, 0x0F, 0x07};
        uint8_t const iret[] = {0x48, 0xCF};
        uint8_t const sysexit[] = {0x48, 0x0F, 0x35};
        uint8_t const eretu[] = {0xF3, 0x0F, 0x01, 0xCA};
        uint8_t const erets[] = {0xF2, 0x0F, 0x01, 0xCA};
        uint8_t const retf[] = {0xCB};
        uint8_t const int_80[] = {0xCD, 0x80};
        auto const far = [&](execution const& of, far_kind kind) {
            return gives(of, far_transfer{0x1000, 0x9000, ring_0, kind}, &far_transfer::at,
                         &far_transfer::to, &far_transfer::after, &far_transfer::kind);
        };
        using interrupt = action::software_interrupt;
        return far(executed(syscall, value(uint64_t{0x9000})), far_kind::syscall) &&
               far(executed(sysret, 0x9000), far_kind::sysret) &&
               far(executed(sysexit, 0x9000), far_kind::sysret) &&
               far(executed(eretu, 0x9000), far_kind::eret) &&
               far(executed(erets, 0x9000), far_kind::eret) &&
               far(executed(retf, 0x9000), far_kind::plain) &&
               far(executed(iret, 0x9000), far_kind::iret) &&
               gives(executed(int_80, 0x9000), interrupt{0x1000, 0x9000, ring_0, 0x80},
                     &interrupt::at, &interrupt::to, &interrupt::after, &interrupt::vector);
    });
}

TEST_CASE("the events of other instructions") {
    CHECK_TWICE([](auto value) {
        uint8_t const ptwrite[] = {0xF3, 0x48, 0x0F, 0xAE, 0xE0};
        uint8_t const mov_cr3[] = {0x0F, 0x22, 0xD8};
        uint8_t const xbegin[] = {0xC7, 0xF8, 0, 1, 0, 0};
        uint8_t const xabort[] = {0xC6, 0xF8, 1};
        uint8_t const hlt[] = {0xF4};
        uint8_t const nop[] = {0x90};
        uint8_t const wrmsr[] = {0x0F, 0x30};
        using write = action::ptwrite;
        return gives(executed(ptwrite, 0x1005, value(uint64_t{0x77})),
                     write{0x1000, 0x1005, 0x77, true}, &write::at, &write::next, &write::value,
                     &write::is_64_bit) &&
               gives(executed(mov_cr3, 0x1003, 0x5000), action::mov_cr3{0x1000, 0x1003, 0x5000},
                     &action::mov_cr3::at, &action::mov_cr3::next, &action::mov_cr3::cr3) &&
               gives(executed(xbegin, 0x1006), action::transaction_begin{0x1000, 0x1006},
                     &action::transaction_begin::at, &action::transaction_begin::next) &&
               gives(executed(xabort, 0x9000), action::transaction_abort{0x1000, 0x9000},
                     &action::transaction_abort::at, &action::transaction_abort::to) &&
               gives(executed(xabort, 0x1003), action::sequential{0x1003},
                     &action::sequential::next) &&
               gives(executed(hlt, 0x1001), action::halt{0x1000, 0x1001}, &action::halt::from,
                     &action::halt::next) &&
               gives(executed(nop, 0x1001), action::sequential{0x1001},
                     &action::sequential::next) &&
               gives(executed(wrmsr, 0x1002), action::sequential{0x1002},
                     &action::sequential::next);
    });
}

TEST_CASE("an instruction that does not lead to the next one was interrupted") {
    CHECK_TWICE([](auto value) {
        uint8_t const nop[] = {0x90};
        uint8_t const jcc[] = {0x74, 0x10};
        uint8_t const jmp[] = {0xEB, 0x10};
        uint8_t const ret[] = {0xC3};
        uint8_t const rep[] = {0xF3, 0xA4};
        return simulate::leads_on(executed(nop, value(uint64_t{0x1001}))) &&
               !simulate::leads_on(executed(nop, 0x9000)) &&
               simulate::leads_on(executed(jcc, 0x1002)) &&
               simulate::leads_on(executed(jcc, 0x1012)) &&
               !simulate::leads_on(executed(jcc, 0x1013)) &&
               simulate::leads_on(executed(jmp, 0x1012)) &&
               !simulate::leads_on(executed(jmp, 0x1002)) &&
               simulate::leads_on(executed(ret, 0x9000)) &&
               simulate::leads_on(executed(rep, 0x1000)) &&
               simulate::leads_on(executed(rep, 0x1002)) &&
               !simulate::leads_on(executed(nop, 0x1000));
    });
}

TEST_CASE("the address behind an instruction wraps outside 64-bit code") {
    CHECK_TWICE([](auto value) {
        execution of;
        of.instruction.length = 2;
        of.at = value(uint64_t{0xFFFF'FFFF});
        bool const is_wide = of.next() == 0x1'0000'0001;
        of.after.width = engine::code_width::bits_32;
        return is_wide && of.next() == 1;
    });
}

namespace {

/// The members of a near branch's event, to compare events of different types.
struct seen_event {
    unsigned type = 0;
    uint64_t to = 0;
    uint64_t next = 0;
    bool taken = false;

    constexpr void operator()(action::conditional const& e) { *this = {1, e.to, 0, e.taken}; }
    constexpr void operator()(action::direct_jump const& e) { *this = {2, e.to, 0, false}; }
    constexpr void operator()(action::direct_call const& e) { *this = {3, e.to, e.next, false}; }
    constexpr void operator()(action::indirect_jump const& e) { *this = {4, e.to, 0, false}; }
    constexpr void operator()(action::indirect_call const& e) { *this = {5, e.to, e.next, false}; }
    constexpr void operator()(action::near_return const& e) { *this = {6, e.to, 0, false}; }
    constexpr void operator()(auto const&) { *this = {7, 0, 0, false}; }

    friend constexpr auto operator==(seen_event const&, seen_event const&) -> bool = default;
};

}  // namespace

TEST_CASE("take_near_action gives what take_action gives, or nothing") {  // GEN-110
    CHECK_TWICE([](auto value) {
        constexpr struct {
            uint8_t bytes[5];
            size_t size;
            uint64_t to;
            unsigned type;  // of seen_event; 0: taken without an event
            bool is_taken;
        } rows[] = {
            {{0x74, 0x10}, 2, 0x1012, 1, true},         // JZ taken
            {{0x74, 0x10}, 2, 0x1002, 1, true},         // not taken
            {{0x74, 0x10}, 2, 0x1003, 0, false},        // interrupted
            {{0xEB, 0x10}, 2, 0x1012, 2, true},         // JMP
            {{0xEB, 0x10}, 2, 0x1002, 0, false},        // interrupted
            {{0xE8, 0, 1, 0, 0}, 5, 0x1105, 3, true},   // CALL
            {{0xE8, 0, 1, 0, 0}, 5, 0x1106, 0, false},  // interrupted
            {{0xFF, 0xE0}, 2, 0x9000, 4, true},         // JMP RAX
            {{0xFF, 0xD0}, 2, 0x9000, 5, true},         // CALL RAX
            {{0xC3}, 1, 0x9000, 6, true},               // RET
            {{0x90}, 1, 0x1001, 0, true},               // NOP
            {{0x90}, 1, 0x9000, 0, false},              // interrupted
            {{0x0F, 0x05}, 2, 0x1002, 0, false},        // SYSCALL
            {{0xCC}, 1, 0x1001, 0, false},              // INT3
            {{0xF3, 0xA4}, 2, 0x1000, 0, false},        // REP MOVSB, once more
        };
        bool good = true;
        for (auto const& row : rows) {
            auto const of = x86::decode(byte_view{row.bytes}.first(row.size)).instruction;
            uint64_t const at = value(uint64_t{0x1000});
            seen_event fast;
            bool const is_taken = simulate::take_near_action(simulate::successors_of(of, at),
                                                             row.to, fast);
            good = good && is_taken == row.is_taken && fast.type == row.type;
            if (row.type == 0) { continue; }
            seen_event slow;
            simulate::take_action({of, at, row.to, {}, 0}, slow);
            good = good && fast == slow;
        }
        return good;
    });
}
