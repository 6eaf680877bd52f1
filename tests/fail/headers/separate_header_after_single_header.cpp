// SPDX-License-Identifier: BSL-1.0
/// The single header has all of ptspec: a separate header would define it a second time.
// expect: the single header of ptspec is included already
#include "../../../single_include/ptspec/ptspec.hpp"

#ifdef SHOULD_FAIL
#include <ptspec/base/version.hpp>
#endif
static_assert(ptspec::version.major_version == PTSPEC_VERSION_MAJOR);
