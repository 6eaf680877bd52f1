// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/suite/snippet.hpp>

/// The snippets that checks execute. The comment of each has its marks.
namespace ptspec::suite::snippets {

/// No branch.
inline constexpr snippet nothing = [] {
    assembler a;
    a.nops(4);
    return a.finish();
}();

/// A conditional branch that is taken, one that is not, and an indirect jump to mark 0.
inline constexpr snippet branches = [] {
    assembler a;
    a.set_zf();
    auto const taken = a.make_label();
    a.jz_over(taken);
    a.jnz(taken);
    a.jmp_rax_over();
    a.mark();
    a.nops(1);
    return a.finish();
}();

/// 47 conditional branches: taken, taken, not taken, and so on.
inline constexpr snippet many_conditionals = [] {
    assembler a;
    a.set_zf();
    for (unsigned i = 0; i < 47; ++i) {
        auto const to = a.make_label();
        if (i % 3 == 2) {
            a.bind(to);
            a.jnz(to);
        } else {
            a.jz(to);
            a.traps(1);
            a.bind(to);
        }
    }
    return a.finish();
}();

/// Direct jumps, and a direct call of the next instruction.
inline constexpr snippet direct = [] {
    assembler a;
    auto const one = a.make_label();
    auto const two = a.make_label();
    a.jmp(one);
    a.traps(1);
    a.bind(one);
    a.call(two);
    a.bind(two);
    a.pop_rax();
    return a.finish();
}();

/// Indirect jumps to marks 0 and 1, and a conditional branch that is not taken between them.
inline constexpr snippet indirect = [] {
    assembler a;
    a.set_zf();
    auto const one = a.make_label();
    a.jmp_rax_over(one, 2);
    a.mark();
    a.set_zf();
    a.jnz(one);
    a.jmp_rax_over(2);
    a.mark();
    return a.finish();
}();

/// A direct call to a function that returns to mark 0, and an indirect one to the same, at mark 2,
/// that returns to mark 1.
inline constexpr snippet calls = [] {
    assembler a;
    auto const function = a.make_label();
    auto const end = a.make_label();
    a.call(function);
    a.mark();
    a.call_rax(function);
    a.mark();
    a.jmp(end);
    a.bind(function);
    a.mark();
    a.nops(1);
    a.ret();
    a.bind(end);
    return a.finish();
}();

/// A RET to mark 0 that no call precedes; then a call before mark 1, whose function goes to mark 2
/// by a RET of its own, and from there to mark 1 by another.
inline constexpr snippet mismatched_returns = [] {
    assembler a;
    auto const function = a.make_label();
    auto const end = a.make_label();
    a.push_ret_over();
    a.mark();
    a.call(function);
    a.mark();
    a.jmp(end);
    a.bind(function);
    a.push_ret_over();
    a.mark();
    a.ret();
    a.traps(1);
    a.bind(end);
    a.nops(1);
    return a.finish();
}();

/// Calls of the next instruction: direct, which no RET predicts; then indirect, where the code at
/// mark 0 returns once to itself.
inline constexpr snippet calls_of_next = [] {
    assembler a;
    auto const one = a.make_label();
    auto const two = a.make_label();
    auto const end = a.make_label();
    a.clear_r8();
    a.call(one);
    a.bind(one);
    a.count_r8(2);
    a.jz(two);
    a.mark();
    a.ret();
    a.bind(two);
    a.clear_r8();
    auto const three = a.make_label();
    a.call_rax(three);
    a.bind(three);
    a.mark();
    a.count_r8(2);
    a.jz(end);
    a.ret();
    a.bind(end);
    return a.finish();
}();

/// 66 nested calls of one function, and their returns. All but the last return to mark 0, the last
/// one to mark 1.
inline constexpr snippet nested_calls = [] {
    assembler a;
    auto const function = a.make_label();
    auto const inner = a.make_label();
    auto const end = a.make_label();
    a.clear_r8();
    a.call(function);
    a.mark();
    a.jmp(end);
    a.bind(function);
    a.count_r8(66);
    a.jz(inner);
    a.call(function);
    a.bind(inner);
    a.mark();
    a.ret();
    a.bind(end);
    return a.finish();
}();

/// A call, a far RET to mark 0, and the RET of the call, to mark 1.
inline constexpr snippet far_return = [] {
    assembler a;
    auto const function = a.make_label();
    auto const there = a.make_label();
    auto const end = a.make_label();
    a.call(function);
    a.mark();
    a.jmp(end);
    a.bind(function);
    a.far_ret(there);
    a.traps(1);
    a.bind(there);
    a.mark();
    a.ret();
    a.bind(end);
    return a.finish();
}();

/// A call, an IRETQ to mark 1, and the RET of the call, to mark 0.
inline constexpr snippet interrupt_return = [] {
    assembler a;
    auto const function = a.make_label();
    auto const there = a.make_label();
    auto const end = a.make_label();
    a.call(function);
    a.mark();
    a.jmp(end);
    a.bind(function);
    a.iretq(there);
    a.traps(1);
    a.bind(there);
    a.mark();
    a.ret();
    a.bind(end);
    return a.finish();
}();

/// MOV CR3 with the value that CR3 has, between two branches. Mark 0 follows it.
inline constexpr snippet paging = [] {
    assembler a;
    a.set_zf();
    a.jz_over();
    a.rewrite_cr3();
    a.mark();
    a.set_zf();
    a.jz_over();
    return a.finish();
}();

/// PTWRITE of 4 and of 8 bytes, at marks 0 and 1, after a taken branch.
inline constexpr uint32_t ptwrite_value = 0x1234'5678;
inline constexpr uint64_t ptwrite_value_64 = 0x1122'3344'5566'7788;
inline constexpr snippet ptwrites = [] {
    assembler a;
    a.set_zf();
    a.jz_over();
    a.ptwrite(ptwrite_value);
    a.ptwrite_64(ptwrite_value_64);
    return a.finish();
}();

/// An area, from mark 0 to the jump at mark 4, which checks make a range. Executed are: outside, a
/// conditional branch, and an indirect jump to mark 0; inside, a branch that is not taken, one that
/// is taken to mark 1, and an indirect jump to mark 5; outside, a branch that is not taken, and a
/// direct jump to mark 2; inside, a branch that is taken to mark 6; outside, one that is taken to
/// mark 3; inside, a direct jump to mark 7.
inline constexpr snippet areas = [] {
    assembler a;
    auto const again = a.make_label();
    auto const third = a.make_label();
    auto const outside = a.make_label();
    auto const far_outside = a.make_label();
    auto const end = a.make_label();
    a.set_zf();
    a.jz_over();
    auto const area = a.make_label();
    a.jmp_rax_over(area);
    a.mark();  // 0
    a.set_zf();
    a.jnz(area);
    a.jz_over();
    a.mark();  // 1
    a.jmp_rax(outside);
    a.traps(1);
    a.bind(again);
    a.mark();  // 2
    a.set_zf();
    a.jz(far_outside);
    a.traps(1);
    a.bind(third);
    a.mark();  // 3
    a.nops(1);
    a.mark();  // 4
    a.jmp(end);
    a.traps(1);
    a.bind(outside);
    a.mark();  // 5
    a.set_zf();
    a.jnz(outside);
    a.jmp(again);
    a.traps(1);
    a.bind(far_outside);
    a.mark();  // 6
    a.jz(third);
    a.traps(1);
    a.bind(end);
    a.mark();  // 7
    a.nops(1);
    return a.finish();
}();

/// Falls out of an area from mark 0 to mark 1, and into one from mark 2 to mark 3, whose code then
/// jumps to mark 4.
inline constexpr snippet falls_through = [] {
    assembler a;
    a.set_zf();
    auto const first = a.make_label();
    a.jmp_rax_over(first);
    a.mark();  // 0
    a.set_zf();
    a.jnz(first);
    a.mark();  // 1: the last instruction of the first area begins before it
    a.nops(2);
    a.jnz(first);
    a.mark();  // 2
    a.jz_over();
    a.mark();  // 3
    a.jmp_rax_over();
    a.mark();  // 4
    return a.finish();
}();

/// A transaction that commits, from mark 0 to the XEND at mark 1.
inline constexpr snippet transaction = [] {
    assembler a;
    auto const fallback = a.make_label();
    auto const end = a.make_label();
    a.mark();
    a.xbegin(fallback);
    a.mark();
    a.xend();
    a.jmp(end);
    a.bind(fallback);
    a.nops(1);
    a.bind(end);
    return a.finish();
}();

/// A transaction that aborts: XBEGIN at mark 0, XABORT at mark 1, the fallback address at mark 2.
inline constexpr snippet aborted_transaction = [] {
    assembler a;
    auto const fallback = a.make_label();
    a.mark();
    a.xbegin(fallback);
    a.mark();
    a.xabort(fallback);
    a.traps(1);
    a.bind(fallback);
    a.mark();
    a.nops(1);
    return a.finish();
}();

/// An area from mark 0 to mark 3. Executed are: an indirect jump to mark 0; a call to mark 2, which
/// jumps to mark 4, outside, by an indirect jump; a direct jump back to mark 3; a RET to mark 1;
/// and a direct jump to mark 5, outside.
inline constexpr snippet call_leaves = [] {
    assembler a;
    auto const function = a.make_label();
    auto const outside = a.make_label();
    auto const again = a.make_label();
    auto const end = a.make_label();
    a.jmp_rax_over();
    a.mark();  // 0
    a.call(function);
    a.mark();  // 1
    a.jmp(end);
    a.traps(1);
    a.bind(function);
    a.mark();  // 2
    a.jmp_rax(outside);
    a.traps(1);
    a.bind(again);
    a.mark();  // 3
    a.ret();
    a.traps(1);
    a.bind(outside);
    a.mark();  // 4
    a.jmp(again);
    a.traps(1);
    a.bind(end);
    a.mark();  // 5
    return a.finish();
}();

/// 80 direct jumps, which have no packets, and an indirect one to mark 0: time passes between two
/// packets.
inline constexpr snippet quiet_run = [] {
    assembler a;
    for (unsigned i = 0; i < 80; ++i) {
        auto const next = a.make_label();
        a.jmp(next);
        a.bind(next);
    }
    a.jmp_rax_over();
    a.mark();
    return a.finish();
}();

/// 60 indirect jumps, each to the next: time passes, and packets with an IP follow each other.
inline constexpr snippet long_run = [] {
    assembler a;
    auto const again = a.make_label();
    a.clear_r8();
    a.bind(again);
    for (unsigned i = 0; i < 10; ++i) {
        a.jmp_rax_over(0);
        a.mark();
    }
    a.count_r8(6);
    a.jnz(again);
    return a.finish();
}();

}  // namespace ptspec::suite::snippets
