// SPDX-License-Identifier: BSL-1.0
// A program without a C library: far jumps, far returns and IRET in user code. With an argument it
// executes far calls and 32-bit code, too, for which a processor is needed.

namespace {

using word = unsigned long;

auto system_call(word number, word a, word b = 0, word c = 0) -> word {
    word result = number;
    asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

/// Each adds one to the result.
[[gnu::noinline]] auto far_transfers(word sum) -> word {
    asm volatile(R"(
        movl %%cs, %%ecx
        pushq %%rcx
        leaq 1f(%%rip), %%rdx
        pushq %%rdx
        lretq
    1:  incq %0
        subq $16, %%rsp
        movl $2f, (%%rsp)
        movl %%ecx, 4(%%rsp)
        ljmpl *(%%rsp)
    2:  incq %0
        addq $16, %%rsp
        movq %%rsp, %%rdx
        movl %%ss, %%esi
        pushq %%rsi
        pushq %%rdx
        pushfq
        pushq %%rcx
        leaq 3f(%%rip), %%rdx
        pushq %%rdx
        iretq
    3:  incq %0
    )"
                 : "+r"(sum)
                 :
                 : "rcx", "rdx", "rsi", "memory", "cc");
    return sum;
}

/// Adds two. Emulators may not have far calls.
[[gnu::noinline]] auto far_call(word sum) -> word {
    asm volatile(R"(
        movl %%cs, %%ecx
        subq $16, %%rsp
        movl $1f, (%%rsp)
        movl %%ecx, 4(%%rsp)
        lcalll *(%%rsp)
        jmp 2f
    1:  incq %0
        lretl
    2:  incq %0
        addq $16, %%rsp
    )"
                 : "+r"(sum)
                 :
                 : "rcx", "memory", "cc");
    return sum;
}

/// 32-bit code that loops, makes a system call, and returns.
[[gnu::noinline]] auto other_width(word sum) -> word {
    asm volatile(R"(
        subq $32, %%rsp
        movl $1f, (%%rsp)
        movl $0x23, 4(%%rsp)
        movl $3f, far_back(%%rip)
        movl %%cs, %%ecx
        movl %%ecx, far_back + 4(%%rip)
        movq %%rsp, %%r8
        ljmpl *(%%rsp)
        .code32
    1:  movl $5, %%ecx
    2:  incl %%eax
        decl %%ecx
        jnz 2b
        movl %%eax, %%edx
        movl $20, %%eax
        int $0x80
        movl %%edx, %%eax
        ljmpl *%%cs:far_back
        .code64
    3:  movq %%r8, %%rsp
        addq $32, %%rsp
    )"
                 : "+a"(sum)
                 :
                 : "rcx", "rdx", "r8", "memory", "cc");
    return sum;
}

}  // namespace

extern "C" [[noreturn]] void run(word const* stack) {
    word sum = 0;
    for (word i = 0; i < 20; ++i) { sum = far_transfers(sum); }
    if (stack[0] > 1) { sum = other_width(far_call(sum)); }
    if (sum == (stack[0] > 1 ? 67 : 60)) {
        (void)system_call(1, 1, reinterpret_cast<word>("ok\n"), 3);
    }
    (void)system_call(60, sum < 60);
    __builtin_unreachable();
}

asm(R"(
    .bss
far_back:
    .zero 8
    .text
    .globl _start
_start:
    xorl %ebp, %ebp
    movq %rsp, %rdi
    andq $-16, %rsp
    call run
)");
