// SPDX-License-Identifier: BSL-1.0
// A program without a C library that dies, or waits to be killed, in the way that the letter of its
// argument names. It prints "ready" before.

namespace {

using word = unsigned long;

auto system_call(word number, word a = 0, word b = 0, word c = 0, word d = 0) -> word {
    word result = number;
    register word r10 asm("r10") = d;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(a), "S"(b), "d"(c), "r"(r10)
                 : "rcx", "r11", "memory");
    return result;
}

constexpr word write_call = 1;
constexpr word sigaction_call = 13;
constexpr word pause_call = 34;
constexpr word nanosleep_call = 35;
constexpr word getpid_call = 39;
constexpr word fork_call = 57;
constexpr word execve_call = 59;
constexpr word exit_call = 60;
constexpr word kill_call = 62;
constexpr word exit_group_call = 231;

word volatile sink = 0;
word volatile other_is_ready = 0;

/// Branches, calls and returns, so that bits wait in the TNT and RETs are compressed.
[[gnu::noinline]] auto work(word n) -> word {
    for (word i = 0; i < n; ++i) { sink = sink + (i % 3 == 0 ? i : 2 * i); }
    return sink;
}
[[gnu::noinline]] auto nested(word n) -> word { return n == 0 ? work(5) : nested(n - 1) + n; }

void wait_for_other() {
    while (other_is_ready == 0) { asm volatile("pause"); }
}
/// A string instruction keeps the number of instructions low.
[[noreturn]] void spin() {
    static unsigned char bytes[1 << 14];
    for (;;) {
        (void)nested(7);
        void* to = bytes;
        word count = sizeof bytes;
        asm volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(count) : "memory");
    }
}
[[noreturn]] void pause_forever() {
    for (;;) { (void)system_call(pause_call); }
}
void store_to_null() {
    asm volatile("movl $1, %%eax; xorl %%edx, %%edx; incl %%eax; movl %%eax, (%%rdx); incl %%eax"
                 :
                 :
                 : "rax", "rdx", "memory");
}

[[noreturn]] void say_and_end(int) {
    (void)system_call(write_call, 1, reinterpret_cast<word>("got it\n"), 7);
    (void)system_call(exit_group_call, 5);
    __builtin_unreachable();
}
/// SIGHUP, SIGINT and SIGTERM end the program.
void handle_signals() {
    struct {
        void (*handler)(int) = say_and_end;
        word flags = 0x0400'0000;  // SA_RESTORER, which the kernel requires
        void (*restorer)(int) = say_and_end;
        word mask = 0;
    } const action;
    constexpr word signals[] = {1, 2, 15};
    for (word const which : signals) {
        (void)system_call(sigaction_call, which, reinterpret_cast<word>(&action), 0, 8);
    }
}

extern "C" [[noreturn]] void other_thread(word letter) {
    (void)nested(3);
    other_is_ready = 1;
    if (letter == 'P') { pause_forever(); }
    if (letter != 'S') {  // until the other thread waits
        word const time[2] = {0, 300'000'000};
        (void)system_call(nanosleep_call, reinterpret_cast<word>(time));
        (void)work(100);
    }
    if (letter == 'X') { (void)system_call(exit_group_call, 7); }
    if (letter == 'F') { store_to_null(); }
    spin();
}

/// Starts a thread that executes `other_thread`.
void start_thread(word letter) {
    static word stack[4096];
    stack[4094] = letter;
    constexpr word flags = 0x100 | 0x200 | 0x400 | 0x800 | 0x1'0000 | 0x4'0000;
    word result = 56;
    asm volatile(R"(
        syscall
        testq %%rax, %%rax
        jnz 1f
        xorl %%ebp, %%ebp
        movq (%%rsp), %%rdi
        call other_thread
    1:
    )"
                 : "+a"(result)
                 : "D"(flags), "S"(&stack[4094]), "d"(0)
                 : "rcx", "r11", "memory");
}

}  // namespace

extern "C" [[noreturn]] void run(word const* stack) {
    (void)nested(9);
    auto const letter = stack[0] < 2 ? 'e' : *reinterpret_cast<char const*>(stack[2]);
    if (letter == 'g') { handle_signals(); }
    (void)system_call(write_call, 1, reinterpret_cast<word>("ready\n"), 6);
    (void)work(11);
    switch (letter) {
        case 's': store_to_null(); break;                            // in a block
        case 'f': asm volatile("jmp *%0" : : "r"(0x1000ul)); break;  // at the first instruction
        case 'i': asm volatile("incl %%eax; ud2" : : : "rax"); break;
        case 'd': asm volatile("xorl %%ecx, %%ecx; divl %%ecx" : : : "rax", "rcx", "rdx"); break;
        case 't': asm volatile("int3"); break;
        case 'h': asm volatile("hlt"); break;
        case 'a': (void)system_call(kill_call, system_call(getpid_call), 6); break;  // SIGABRT
        case 'k': (void)system_call(kill_call, system_call(getpid_call), 9); break;  // SIGKILL
        case 'u': spin();
        case 'x': {  // executes `sh -c 'exit 9'`
            char const* const words[] = {"sh", "-c", "exit 9", nullptr};
            (void)system_call(execve_call, reinterpret_cast<word>("/bin/sh"),
                              reinterpret_cast<word>(words));
            break;
        }
        case 'g':
        case 'p': pause_forever();
        case 'c':  // a child dies, and then its parent
            if (system_call(fork_call) == 0) { store_to_null(); }
            (void)system_call(61, ~0ul, 0, 0);  // wait4
            (void)work(50);
            asm volatile("ud2");
            break;
        case 'P':  // another thread waits in the kernel
            start_thread('P');
            wait_for_other();
            (void)work(20'000);
            store_to_null();
            break;
        case 'S':  // another thread executes
            start_thread('S');
            wait_for_other();
            (void)work(2000);
            store_to_null();
            break;
        case 'X':  // another thread ends the process
            start_thread('X');
            pause_forever();
        case 'F':  // another thread raises a fault
            start_thread('F');
            pause_forever();
        default: break;
    }
    (void)system_call(exit_call, letter == 'e' ? 0 : 99);
    __builtin_unreachable();
}

asm(R"(
    .globl _start
_start:
    xorl %ebp, %ebp
    movq %rsp, %rdi
    andq $-16, %rsp
    call run
)");
