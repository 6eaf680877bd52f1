// SPDX-License-Identifier: BSL-1.0
// expect: a_run_time_number_needs_wrapped_or_checked
#include <ptspec/topa/entry.hpp>

using ptspec::topa::entry;

#ifndef SHOULD_FAIL
auto at(uint64_t base) -> entry { return entry{}.with(entry::Base{ptspec::wrapped{base}}); }
#else
auto at(uint64_t base) -> entry { return entry{}.with(entry::Base{base}); }
#endif
