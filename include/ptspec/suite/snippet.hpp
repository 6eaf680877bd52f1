// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>
#include <ptspec/x86/instruction.hpp>

/// Short pieces of code whose branches are known: what a target executes while it traces.
namespace ptspec::suite {

/// An executed instruction that a trace may show.
///
/// Units:  offsets from the first byte of the snippet.
struct snippet_step {
    uint16_t at = 0;
    uint16_t to = 0;       ///< the instruction that executes next
    uint64_t operand = 0;  ///< of PTWRITE

    friend constexpr auto operator==(snippet_step const&, snippet_step const&) -> bool = default;
};

/// What the processor or the target must have to execute a snippet.
enum class snippet_need : uint32_t {
    none = 0,
    ptwrite = 1,      ///< PTWRITE: CPUID.14H.0:EBX.PTWRITE
    transaction = 2,  ///< RTM: CPUID.07H.0:EBX
    kernel = 4,       ///< CPL 0: it reads and writes CR3
};

/// Code of 64-bit mode that enables tracing, executes a body, and disables it:
///
///     mov eax, edi; mov rdx, rdi; shr rdx, 32; mov ecx, 570h; wrmsr
///     ... the body, which changes RAX, RCX, RDX, R8 to R11 and flags only ...
///     mov eax, esi; mov rdx, rsi; shr rdx, 32; mov ecx, 570h; wrmsr
///     ret
///
/// It is a function of two arguments, in RDI and RSI: the values of IA32_RTIT_CTL. It is position
/// independent, and needs 512 bytes of stack. Between the two WRMSRs exactly the instructions
/// of `steps` execute that can change the flow or have a packet.
struct snippet {
    static constexpr unsigned max_bytes = 480;
    static constexpr unsigned max_steps = 224;
    static constexpr unsigned max_marks = 16;
    static constexpr uint16_t enable_at = 14;  ///< the WRMSR that enables
    static constexpr uint16_t body_at = 16;

    uint8_t bytes[max_bytes] = {};
    uint16_t size = 0;
    uint16_t disable_at = 0;  ///< the WRMSR that disables
    snippet_step steps[max_steps] = {};
    uint16_t step_count = 0;
    uint16_t marks[max_marks] = {};  ///< offsets that a check refers to
    uint16_t mark_count = 0;
    uint32_t needs = 0;  ///< bits of `snippet_need`

    [[nodiscard]] constexpr auto code() const noexcept -> byte_view { return {bytes, size}; }
    [[nodiscard]] constexpr auto needs_the(snippet_need one) const noexcept -> bool {
        return (needs & underlying(one)) != 0;
    }
};

namespace build_error {

void the_snippet_is_too_long();
/// A conditional branch to the next instruction: taken and not taken lead to the same place.
void a_conditional_branch_must_go_elsewhere();

}  // namespace build_error

/// Assembles a snippet, and executes it to find its steps. Each function appends the instructions
/// of its name. A body changes RAX, R8, R9 and ZF, which is 1 at first.
class assembler {
public:
    /// A place in the code, which branches refer to before or after it is bound.
    struct label {
        uint8_t number = 0;
    };

private:
    // The templates precede their uses: clang cannot call one in a constant expression otherwise.
    static constexpr unsigned max_ops = 160;
    static constexpr unsigned max_labels = 96;
    static constexpr unsigned max_depth = 80;

    enum class what : uint8_t {
        set_zf,
        clear_r8,
        count_r8,
        lea,
        push,
        pop,
        jz,
        jnz,
        jmp,
        call,
        ret,
        shown,  ///< no branch, but a packet may show it
    };
    /// An instruction that matters to the execution.
    struct operation {
        what kind = what::shown;
        label to{};
        uint16_t at = 0;
        uint16_t next = 0;
        uint16_t displacement_at = 0;  ///< of four bytes; 0: none
        uint64_t value = 0;
    };

    template <size_t Count>
    constexpr void add(uint8_t const (&bytes)[Count]) noexcept {
        if (made_.size + Count > snippet::max_bytes) { build_error::the_snippet_is_too_long(); }
        for (uint8_t const byte : bytes) { made_.bytes[made_.size++] = byte; }
    }
    constexpr void add_word(uint64_t value, unsigned count) noexcept {
        for (unsigned i = 0; i < count; ++i) { add({static_cast<uint8_t>(value >> 8 * i)}); }
    }
    template <size_t Count>
    constexpr void op(what kind, label to, uint8_t const (&bytes)[Count],
                      uint64_t value = 0) noexcept {
        if (op_count_ == max_ops) { build_error::the_snippet_is_too_long(); }
        uint16_t const at = made_.size;
        add(bytes);
        ops_[op_count_++] = {kind, to, at, made_.size, 0, value};
    }
    template <size_t Count>
    constexpr void relative(what kind, label to, uint8_t const (&opcode)[Count]) noexcept {
        op(kind, to, opcode);
        auto& one = ops_[op_count_ - 1];
        one.displacement_at = made_.size;
        add_word(0, 4);
        one.next = made_.size;
    }

public:
    constexpr assembler() noexcept { load_ctl(0xF8, 0xFA); }

    [[nodiscard]] constexpr auto make_label() noexcept -> label {
        if (label_count_ == max_labels) { build_error::the_snippet_is_too_long(); }
        return {label_count_++};
    }
    /// Gives a label the current offset.
    constexpr void bind(label here) noexcept { places_[here.number] = made_.size; }
    /// Notes the current offset in `marks`.
    constexpr void mark() noexcept {
        if (made_.mark_count == snippet::max_marks) { build_error::the_snippet_is_too_long(); }
        made_.marks[made_.mark_count++] = made_.size;
    }

    constexpr void nops(unsigned count) noexcept {
        for (unsigned i = 0; i < count; ++i) { add({0x90}); }
    }
    /// Bytes that are not executed: INT3.
    constexpr void traps(unsigned count) noexcept {
        for (unsigned i = 0; i < count; ++i) { add({0xCC}); }
    }
    /// XOR EAX, EAX: ZF becomes 1.
    constexpr void set_zf() noexcept { op(what::set_zf, {}, {0x31, 0xC0}); }
    /// XOR R8D, R8D
    constexpr void clear_r8() noexcept { op(what::clear_r8, {}, {0x45, 0x31, 0xC0}); }
    /// INC R8D; CMP R8D, value: ZF is 1 if they are equal.
    constexpr void count_r8(uint8_t value) noexcept {
        op(what::count_r8, {}, {0x41, 0xFF, 0xC0, 0x41, 0x83, 0xF8, value}, value);
    }
    constexpr void jz(label to) noexcept { relative(what::jz, to, {0x0F, 0x84}); }
    constexpr void jnz(label to) noexcept { relative(what::jnz, to, {0x0F, 0x85}); }
    constexpr void jmp(label to) noexcept { relative(what::jmp, to, {0xE9}); }
    constexpr void call(label to) noexcept { relative(what::call, to, {0xE8}); }
    constexpr void pop_rax() noexcept { op(what::pop, {}, {0x58}); }
    constexpr void ret() noexcept { op(what::ret, {}, {0xC3}); }
    /// LEA RAX, [RIP + label]; JMP RAX
    constexpr void jmp_rax(label to) noexcept {
        lea_rax(to);
        op(what::jmp, to, {0xFF, 0xE0});
    }
    /// LEA RAX, [RIP + label]; CALL RAX
    constexpr void call_rax(label to) noexcept {
        lea_rax(to);
        op(what::call, to, {0xFF, 0xD0});
    }
    /// LEA RAX, [RIP + label]; PUSH RAX; RET: a RET to where no CALL came from.
    constexpr void push_ret(label to) noexcept {
        lea_rax(to);
        op(what::push, to, {0x50});
        ret();
    }
    /// A branch over INT3s: the label is bound to the next instruction.
    constexpr void jz_over(label to) noexcept { over(&assembler::jz, to, 1); }
    constexpr void jmp_rax_over(label to, unsigned count = 1) noexcept {
        over(&assembler::jmp_rax, to, count);
    }
    constexpr void jz_over() noexcept { jz_over(make_label()); }
    constexpr void jmp_rax_over(unsigned count = 1) noexcept { jmp_rax_over(make_label(), count); }
    constexpr void push_ret_over() noexcept { over(&assembler::push_ret, make_label(), 1); }
    /// RETFQ to a label, in the same code segment.
    constexpr void far_ret(label to) noexcept {
        add({0x8C, 0xC8, 0x50});  // mov eax, cs; push rax
        lea_rax(to);
        add({0x50});
        op(what::jmp, to, {0x48, 0xCB});
    }
    /// IRETQ to a label, at the same CPL.
    constexpr void iretq(label to) noexcept {
        add({0x49, 0x89, 0xE1});  // mov r9, rsp
        add({0x8C, 0xD0, 0x50});  // mov eax, ss; push rax
        add({0x41, 0x51, 0x9C});  // push r9; pushfq
        add({0x8C, 0xC8, 0x50});  // mov eax, cs; push rax
        lea_rax(to);
        add({0x50});
        op(what::jmp, to, {0x48, 0xCF});
    }
    /// MOV RAX, CR3; MOV CR3, RAX
    constexpr void rewrite_cr3() noexcept {
        add({0x0F, 0x20, 0xD8});
        op(what::shown, {}, {0x0F, 0x22, 0xD8});
        made_.needs |= underlying(snippet_need::kernel);
    }
    /// MOV EAX, imm32; PTWRITE EAX
    constexpr void ptwrite(uint32_t value) noexcept {
        add({0xB8});
        add_word(value, 4);
        op(what::shown, {}, {0xF3, 0x0F, 0xAE, 0xE0}, value);
        made_.needs |= underlying(snippet_need::ptwrite);
    }
    /// MOV RAX, imm64; PTWRITE RAX
    constexpr void ptwrite_64(uint64_t value) noexcept {
        add({0x48, 0xB8});
        add_word(value, 8);
        op(what::shown, {}, {0xF3, 0x48, 0x0F, 0xAE, 0xE0}, value);
        made_.needs |= underlying(snippet_need::ptwrite);
    }
    /// XBEGIN; the label is its fallback address.
    constexpr void xbegin(label fallback) noexcept {
        relative(what::shown, fallback, {0xC7, 0xF8});
        made_.needs |= underlying(snippet_need::transaction);
    }
    constexpr void xend() noexcept { op(what::shown, {}, {0x0F, 0x01, 0xD5}); }
    /// XABORT; the label is the fallback address.
    constexpr void xabort(label fallback) noexcept { op(what::jmp, fallback, {0xC6, 0xF8, 0x01}); }

    /// The snippet: what follows the body is appended, and the body is executed.
    [[nodiscard]] constexpr auto finish() noexcept -> snippet {
        uint16_t const end = made_.size;
        load_ctl(0xF0, 0xF2);
        made_.disable_at = static_cast<uint16_t>(made_.size - 2);
        add({0xC3});
        for (unsigned i = 0; i < op_count_; ++i) {
            auto const& one = ops_[i];
            if (one.displacement_at == 0) { continue; }
            auto const distance = static_cast<uint32_t>(places_[one.to.number] -
                                                        (one.displacement_at + 4));
            for (unsigned byte = 0; byte < 4; ++byte) {
                made_.bytes[one.displacement_at + byte] = static_cast<uint8_t>(distance >>
                                                                               8 * byte);
            }
        }
        execute(end);
        return made_;
    }

private:
    constexpr void over(void (assembler::*branch)(label) noexcept, label to,
                        unsigned count) noexcept {
        (this->*branch)(to);
        traps(count);
        bind(to);
    }
    /// LEA RAX, [RIP + label]
    constexpr void lea_rax(label to) noexcept { relative(what::lea, to, {0x48, 0x8D, 0x05}); }
    /// MOV EAX, r32; MOV RDX, r64; SHR RDX, 32; MOV ECX, 570H; WRMSR
    constexpr void load_ctl(uint8_t low, uint8_t high) noexcept {
        add({0x89, low, 0x48, 0x89, high, 0x48, 0xC1, 0xEA, 0x20});
        add({0xB9, 0x70, 0x05, 0x00, 0x00, 0x0F, 0x30});
    }

    constexpr void add_step(operation const& one, uint16_t to) noexcept {
        if (made_.step_count == snippet::max_steps) { build_error::the_snippet_is_too_long(); }
        made_.steps[made_.step_count++] = {.at = one.at, .to = to, .operand = one.value};
    }
    /// Executes the body, from its first byte to its end.
    constexpr void execute(uint16_t end) noexcept {
        uint16_t stack[max_depth] = {};
        unsigned depth = 0;
        uint32_t r8 = 0;
        bool zf = true;
        uint16_t at = snippet::body_at;
        while (at != end) {
            unsigned next = 0;
            while (next < op_count_ && ops_[next].at < at) { ++next; }
            if (next == op_count_) { return; }
            auto const& one = ops_[next];
            uint16_t const target = places_[one.to.number];
            at = one.next;
            switch (one.kind) {
                case what::set_zf: zf = true; break;
                case what::clear_r8:
                    r8 = 0;
                    zf = true;
                    break;
                case what::count_r8: zf = ++r8 == one.value; break;
                case what::lea: break;
                case what::push: stack[depth++] = target; break;
                case what::pop: --depth; break;
                case what::jz:
                case what::jnz:
                    if (target == at) { build_error::a_conditional_branch_must_go_elsewhere(); }
                    if (zf == (one.kind == what::jz)) { at = target; }
                    add_step(one, at);
                    break;
                case what::call:
                case what::jmp:
                    if (one.kind == what::call) { stack[depth++] = at; }
                    at = target;
                    add_step(one, at);
                    break;
                case what::ret:
                    at = stack[--depth];
                    add_step(one, at);
                    break;
                case what::shown: add_step(one, at); break;
            }
        }
    }

    snippet made_{};
    operation ops_[max_ops] = {};
    unsigned op_count_ = 0;
    uint16_t places_[max_labels] = {};
    uint8_t label_count_ = 0;
};

}  // namespace ptspec::suite
