// SPDX-License-Identifier: BSL-1.0
#pragma once

// Reading and writing trace.

#include <ptspec/trace/split.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/trace/write/writer.hpp>
#include <ptspec/trace/write/synthetic_psb.hpp>
#include <ptspec/print/packet.hpp>
