// SPDX-License-Identifier: BSL-1.0
/// Headers of ptspec are included already: the single header would define them a second time.
// expect: include either those or the single header
#include <ptspec/base/version.hpp>

#ifdef SHOULD_FAIL
#include "../../../single_include/ptspec/ptspec.hpp"
#endif
static_assert(ptspec::version.major_version == PTSPEC_VERSION_MAJOR);
