// SPDX-License-Identifier: BSL-1.0
#include <ptspec/suite/snippets.hpp>

#include <support/check_twice.hpp>
#include <support/skip.hpp>

#include <ptspec/x86/decode.hpp>

#include <string>
#include <vector>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

using namespace ptspec;
using suite::snippet;

struct named_snippet {
    std::string name;
    snippet const* code;
};
auto all_snippets() -> std::vector<named_snippet> {
    namespace snippets = suite::snippets;
    return {{"nothing", &snippets::nothing},
            {"branches", &snippets::branches},
            {"many_conditionals", &snippets::many_conditionals},
            {"direct", &snippets::direct},
            {"indirect", &snippets::indirect},
            {"calls", &snippets::calls},
            {"mismatched_returns", &snippets::mismatched_returns},
            {"calls_of_next", &snippets::calls_of_next},
            {"nested_calls", &snippets::nested_calls},
            {"far_return", &snippets::far_return},
            {"interrupt_return", &snippets::interrupt_return},
            {"paging", &snippets::paging},
            {"ptwrites", &snippets::ptwrites},
            {"areas", &snippets::areas},
            {"falls_through", &snippets::falls_through},
            {"transaction", &snippets::transaction},
            {"aborted_transaction", &snippets::aborted_transaction},
            {"call_leaves", &snippets::call_leaves},
            {"quiet_run", &snippets::quiet_run},
            {"long_run", &snippets::long_run}};
}

/// True if an instruction is in the steps of a snippet.
auto has_step(x86::instruction_class kind) -> bool {
    using enum x86::instruction_class;
    return kind != other && kind != wrmsr;
}

#if defined(__x86_64__) && defined(__linux__)

struct stepped {
    bool is_traced = false;
    std::vector<suite::snippet_step> steps;
};

/// Executes the bytes of a snippet on this processor, an instruction at a time, with NOPs in place
/// of its WRMSRs. The steps are those of the addresses that the processor reports.
auto execute_here(snippet const& code) -> stepped {
    constexpr std::size_t page = 4096;
    void* const mapped = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                              -1, 0);
    if (mapped == MAP_FAILED) { return {}; }
    auto* const bytes = static_cast<uint8_t*>(mapped);
    for (unsigned i = 0; i < code.size; ++i) { bytes[i] = code.bytes[i]; }
    for (unsigned const at : {unsigned{snippet::enable_at}, unsigned{code.disable_at}}) {
        bytes[at] = bytes[at + 1] = 0x90;
    }
    (void)mprotect(mapped, page, PROT_READ | PROT_EXEC);
    auto const function = reinterpret_cast<void (*)(uint64_t, uint64_t)>(mapped);
    auto const base = reinterpret_cast<uint64_t>(mapped);
    pid_t const child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) { _exit(3); }
        (void)raise(SIGSTOP);
        function(0, 0);
        _exit(0);
    }
    stepped got;
    int status = 0;
    uint64_t last = 0;
    bool has_ended = false;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        user_regs_struct registers{};
        if (ptrace(PTRACE_GETREGS, child, nullptr, &registers) != 0) { break; }
        uint64_t const at = registers.rip - base;
        if (last != 0 && !has_ended) {
            auto const decoded = x86::decode({code.bytes + last, code.size - last});
            if (has_step(decoded.instruction.kind) && last < code.disable_at) {
                got.steps.push_back(
                    {.at = static_cast<uint16_t>(last), .to = static_cast<uint16_t>(at)});
            }
        }
        has_ended |= last == code.disable_at;
        last = at < code.size && at >= snippet::body_at ? at : 0;
        if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) { break; }
        auto const request = has_ended ? PTRACE_CONT : PTRACE_SINGLESTEP;
        if (ptrace(request, child, nullptr, nullptr) != 0) { break; }
    }
    got.is_traced = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!WIFEXITED(status)) {
        (void)ptrace(PTRACE_KILL, child, nullptr, nullptr);
        (void)waitpid(child, &status, 0);
    }
    (void)munmap(mapped, page);
    return got;
}

#endif

}  // namespace

TEST_CASE("each step of a snippet is an instruction that a trace may show") {
    for (auto const& one : all_snippets()) {
        CAPTURE(one.name);
        auto const& code = *one.code;
        CHECK((one.name == "nothing") == (code.step_count == 0));
        for (unsigned i = 0; i < code.step_count; ++i) {
            auto const at = code.steps[i].at;
            auto const decoded = x86::decode({code.bytes + at, code.size - size_t{at}});
            CHECK(static_cast<bool>(decoded));
            CHECK(has_step(decoded.instruction.kind));
            CHECK(at >= snippet::body_at);
            CHECK(code.steps[i].to < code.disable_at);
        }
    }
}

#if defined(__x86_64__) && defined(__linux__)

// The steps come from `assembler`, which executes its own list of instructions; here the bytes
// execute.
TEST_CASE("the snippets execute on this processor as their steps say") {
    std::string not_here;
    unsigned executed = 0;
    for (auto const& one : all_snippets()) {
        CAPTURE(one.name);
        auto const& code = *one.code;
        using need = suite::snippet_need;
        // CR3 needs CPL 0. PTWRITE is not executed where CPUID lacks it, nor is RTM; and a
        // single step aborts a transaction.
        if (code.needs_the(need::kernel) || code.needs_the(need::ptwrite) ||
            code.needs_the(need::transaction)) {
            not_here += " " + one.name;
            continue;
        }
        auto const got = execute_here(code);
        if (!got.is_traced) {
            test::skip("single steps of a child process", "ptrace failed");
            return;
        }
        ++executed;
        REQUIRE(got.steps.size() == code.step_count);
        for (unsigned i = 0; i < code.step_count; ++i) {
            CHECK(got.steps[i].at == code.steps[i].at);
            CHECK(got.steps[i].to == code.steps[i].to);
        }
    }
    CHECK(executed == 16);
    CHECK(not_here == " paging ptwrites transaction aborted_transaction");
}

#endif
