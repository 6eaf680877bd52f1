// SPDX-License-Identifier: BSL-1.0
// Also tests/engine/scenarios.cpp.
#include <ptspec/engine/detail/transaction.hpp>

#include <support/check_twice.hpp>
#include <support/traced.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

using namespace ptspec;
using test::packets;
using test::traced;
namespace action = engine::action;

TEST_CASE("only the outermost transaction writes MODE.TSX, and nothing without BranchEn") {
    // GEN-007, GEN-250..253, GEN-255
    traced on{"TSX=1"};
    on.does(action::transaction_begin{0x100, 0x105}).does(action::transaction_begin{0x110, 0x115});
    on.does(action::transaction_end{0x120, 0x123}).does(action::transaction_end{0x130, 0x133});
    on.does(action::transaction_end{0x140, 0x143});  // outside a transaction
    CHECK(packets(on) == "MODE.TSX(InTX=1,TXAbort=0), FUP(100), MODE.TSX(InTX=0,TXAbort=0), "
                         "FUP(130)");
    CHECK(on.ip() == 0x143);
    traced aborted{"TSX=1"};
    aborted.does(action::transaction_begin{0x100, 0x105});
    aborted.does(action::conditional{0x200, true});
    aborted.does(action::transaction_abort{0x200, 0x900});
    aborted.does(action::transaction_begin{0x300, 0x305});
    CHECK(packets(aborted) ==
          "MODE.TSX(InTX=1,TXAbort=0), FUP(100), TNT(1), MODE.TSX(InTX=0,TXAbort=1), FUP(200), "
          "TIP(900), MODE.TSX(InTX=1,TXAbort=0), FUP(300)");
    traced off{"TSX=1, BranchEn=0"};
    off.does(action::transaction_begin{0x100, 0x105}).does(action::transaction_abort{0x110, 0x900});
    CHECK(packets(off) == "none");
}

TEST_CASE("an abort ends all nested transactions") {  // GEN-252
    CHECK_TWICE([](auto value) {
        traced on{"OS=0"};
        on.does(action::transaction_begin{0x1000, value(std::uint64_t{0x1003})});
        on.does(action::transaction_begin{0x1003, 0x1006});
        on.does(action::transaction_abort{0x1006, 0x1003});
        bool const ended = on.state().tx_depth == 0;
        std::size_t const before = on.bytes.size();
        on.does(action::transaction_begin{0x1003, 0x1006});
        return ended && on.bytes.size() > before;
    });
}

TEST_CASE("the nesting depth of transactions saturates at 255") {  // GEN-253
    CHECK_TWICE([](auto value) {
        traced on{"OS=0"};
        for (unsigned i = 0; i < 300; ++i) {
            on.does(action::transaction_begin{0x1000, value(std::uint64_t{0x1003})});
        }
        std::size_t const begun = on.bytes.size();
        // One less than the counted depth.
        for (unsigned i = 0; i < 254; ++i) { on.does(action::transaction_end{0x1000, 0x1003}); }
        bool const open = on.bytes.size() == begun;
        on.does(action::transaction_end{0x1000, 0x1003});
        return open && on.bytes.size() > begun;
    });
}
