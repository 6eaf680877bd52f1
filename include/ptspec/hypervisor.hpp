// SPDX-License-Identifier: BSL-1.0
#pragma once

// For hypervisors: registers and legality, the effects of accesses and resets, migration, VMX.

#include <ptspec/registers.hpp>
#include <ptspec/cpu/compare.hpp>
#include <ptspec/access/msr_write_sources.hpp>
#include <ptspec/access/lbr.hpp>
#include <ptspec/access/resets.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/access/pmi.hpp>
#include <ptspec/access/image.hpp>
#include <ptspec/vmx/intercepts.hpp>
#include <ptspec/vmx/controls.hpp>
#include <ptspec/vmx/transition.hpp>
#include <ptspec/vmx/usage.hpp>
#include <ptspec/vmx/guest_cpuid.hpp>
#include <ptspec/vmx/unhonourable.hpp>
#include <ptspec/vmx/guest_pt.hpp>
#include <ptspec/vmx/msr_bitmap.hpp>
#include <ptspec/vmx/msr_exits.hpp>
#include <ptspec/vmx/guest_events.hpp>
#include <ptspec/vmx/guest_image.hpp>
#include <ptspec/vmx/shadow.hpp>
#include <ptspec/vmx/world_switch.hpp>
#include <ptspec/vmx/nested.hpp>
#include <ptspec/vmx/output_violation.hpp>
#include <ptspec/vmx/tdx.hpp>
