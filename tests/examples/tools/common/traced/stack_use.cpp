// SPDX-License-Identifier: BSL-1.0
#include <tools/common/traced/stack_use.hpp>

#include <support/check_twice.hpp>

#include <vector>

using namespace ptspec;
using flow::stack_use;
using traced::stack_load;

namespace {

using bytes = std::vector<std::uint8_t>;

auto load_of(bytes const& code, bool is_64_bit = true) -> stack_load {
    return traced::stack_loads{is_64_bit}.take(byte_view{code});
}
auto use_of(bytes const& code, std::uint64_t branch) -> stack_use {
    return traced::stack_use_at({0x1000, byte_view{code}, true}, branch);
}

}  // namespace

TEST_CASE("a load of RSP from another register than RBP, or from memory, is another stack") {
    CHECK(load_of({0x48, 0x89, 0xF4}) == stack_load::other);        // MOV RSP, RSI
    CHECK(load_of({0x4C, 0x89, 0xEC}) == stack_load::other);        // MOV RSP, R13
    CHECK(load_of({0x48, 0x8B, 0xE6}) == stack_load::other);        // MOV RSP, RSI
    CHECK(load_of({0x48, 0x8B, 0x22}) == stack_load::other);        // MOV RSP, [RDX]
    CHECK(load_of({0x48, 0x87, 0xE6}) == stack_load::other);        // XCHG RSI, RSP
    CHECK(load_of({0x48, 0x87, 0xF4}) == stack_load::other);        // XCHG RSP, RSI
    CHECK(load_of({0x48, 0x94}) == stack_load::other);              // XCHG RAX, RSP
    CHECK(load_of({0x5C}) == stack_load::other);                    // POP RSP
    CHECK(load_of({0x48, 0x8D, 0x24, 0x0B}) == stack_load::other);  // LEA RSP, [RBX+RCX]
    CHECK(load_of({0x89, 0xCC}, false) == stack_load::other);       // MOV ESP, ECX
}

TEST_CASE("a load of RSP from RBP is the frame of the function") {
    CHECK(load_of({0x48, 0x89, 0xEC}) == stack_load::frame);        // MOV RSP, RBP
    CHECK(load_of({0x48, 0x8B, 0xE5}) == stack_load::frame);        // MOV RSP, RBP
    CHECK(load_of({0x48, 0x8D, 0x65, 0xF8}) == stack_load::frame);  // LEA RSP, [RBP-8]
    CHECK(load_of({0xC9}) == stack_load::frame);                    // LEAVE
}

TEST_CASE("pushes, pops and arithmetic load no other RSP, nor do instructions that read it") {
    CHECK(load_of({0x49, 0x89, 0xE4}) == stack_load::none);              // MOV R12, RSP
    CHECK(load_of({0x48, 0x89, 0x27}) == stack_load::none);              // MOV [RDI], RSP
    CHECK(load_of({0x4C, 0x8B, 0x22}) == stack_load::none);              // MOV R12, [RDX]
    CHECK(load_of({0x49, 0x94}) == stack_load::none);                    // XCHG R12, RAX
    CHECK(load_of({0x41, 0x5C}) == stack_load::none);                    // POP R12
    CHECK(load_of({0x48, 0x8D, 0x64, 0x24, 0x08}) == stack_load::none);  // LEA RSP, [RSP+8]
    CHECK(load_of({0x48, 0x83, 0xEC, 0x18}) == stack_load::none);        // SUB RSP, 18H
    CHECK(load_of({0x53}) == stack_load::none);                          // PUSH RBX
    CHECK(load_of({0x48}) == stack_load::none);
    CHECK(load_of({}) == stack_load::none);
}

TEST_CASE("the last load of RSP before a branch says what the code does") {
    // MOV RSP, RSI; POP RBX; RET
    CHECK(use_of({0x48, 0x89, 0xF4, 0x5B, 0xC3}, 0x1004) == stack_use::switches);
    // RET; MOV RSP, RSI
    CHECK(use_of({0xC3, 0x48, 0x89, 0xF4}, 0x1000) == stack_use::keeps);
    // MOV RSP, RBX; LEA RSP, [RBP-8]; RET: the end of a scope of a variable array
    CHECK(use_of({0x48, 0x89, 0xDC, 0x48, 0x8D, 0x65, 0xF8, 0xC3}, 0x1007) == stack_use::keeps);
    // MOV RBX, RSP; MOV RSP, RBX; JMP R11: _dl_runtime_resolve
    CHECK(use_of({0x48, 0x89, 0xE3, 0x48, 0x89, 0xDC, 0x41, 0xFF, 0xE3}, 0x1006) ==
          stack_use::keeps);
    // LEA R10, [RSP+8]; LEA RSP, [R10-8]; RET: a function that aligns its stack
    CHECK(use_of({0x4C, 0x8D, 0x54, 0x24, 0x08, 0x49, 0x8D, 0x62, 0xF8, 0xC3}, 0x1009) ==
          stack_use::keeps);
    // MOV EAX, immediate: its bytes are no instruction
    CHECK(use_of({0xB8, 0x48, 0x89, 0xF4, 0x00, 0xC3}, 0x1005) == stack_use::keeps);
}

TEST_CASE("what follows a RET or JMP has the loads before the jump that leads there") {
    // JE 100A; MOV RSP, RBX; CALL [RDI]; JMP RAX; at 100A NOP; JMP RDI
    bytes const around{0x74, 0x08, 0x48, 0x89, 0xDC, 0xFF, 0x17,
                       0x90, 0xFF, 0xE0, 0x90, 0xFF, 0xE7};
    CHECK(use_of(around, 0x1008) == stack_use::switches);
    CHECK(use_of(around, 0x100B) == stack_use::keeps);
    // MOV RSP, RBX; JE 1008; NOP; RET; NOP; at 1008 JMP RDI
    bytes const shared{0x48, 0x89, 0xDC, 0x74, 0x03, 0x90, 0xC3, 0x90, 0xFF, 0xE7};
    CHECK(use_of(shared, 0x1006) == stack_use::switches);
    CHECK(use_of(shared, 0x1008) == stack_use::switches);
    // NOP; RET; MOV RSP, RBX; RET: entered by a jump table
    bytes const by_table{0x90, 0xC3, 0x48, 0x89, 0xDC, 0xC3};
    CHECK(use_of(by_table, 0x1005) == stack_use::switches);
    // MOV RSP, RBX; RET; JMP RDI: no way is known
    CHECK(use_of({0x48, 0x89, 0xDC, 0xC3, 0xFF, 0xE7}, 0x1004) == stack_use::keeps);
}

TEST_CASE("code that is not there has an unknown use") {
    CHECK(use_of({0x90, 0xC3}, 0x1002) == stack_use::unknown);
    CHECK(use_of({0x90, 0xC3}, 0xFFF) == stack_use::unknown);
    CHECK(use_of({}, 0x1000) == stack_use::unknown);
}
