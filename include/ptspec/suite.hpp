// SPDX-License-Identifier: BSL-1.0
#pragma once

// Holds a processor, a hypervisor or an emulator against the rules: checks run on a target, which
// is a set of ports, and each says whether its rules hold.

#include <ptspec/suite/checks.hpp>
#include <ptspec/suite/run.hpp>
#include <ptspec/suite/report.hpp>
#include <ptspec/suite/model_target.hpp>
#include <ptspec/suite/observe.hpp>
