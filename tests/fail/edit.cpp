// SPDX-License-Identifier: BSL-1.0
/// Editing traces

#include <ptspec/edit.hpp>

using namespace ptspec;

namespace chunks_of_another_rewriting {
/// These chunks of a trace were read for PIPs; a new TSC offset changes TSCs.
// expect: no matching function for call to
#ifndef SHOULD_FAIL
using changed = packet::tsc;
#else
using changed = packet::pip;
#endif

auto rebase(edit::chunked_trace<changed>& chunks, byte_window const (&chunk)[1]) -> bool {
    return static_cast<bool>(edit::rebase_tsc(chunks, chunk, {.offset = 1}));
}
}  // namespace chunks_of_another_rewriting
