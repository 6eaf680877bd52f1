// SPDX-License-Identifier: BSL-1.0
// expect: deleted
// expect: a sink has append(byte_view) -> bool
// one error
#include <ptspec/engine/generator.hpp>

#include <vector>

using namespace ptspec;

void jump(engine::generator& from, std::vector<unsigned char>& to) {
#ifndef SHOULD_FAIL
    byte_buffer out{to.data(), to.size()};
    from.on(engine::action::indirect_jump{0x2000}, out);
#else
    from.on(engine::action::indirect_jump{0x2000}, to);
#endif
}
