// SPDX-License-Identifier: BSL-1.0
#pragma once

// Intel Processor Trace as constexpr C++20, in reading order.

#include <ptspec/version.hpp>

#include <ptspec/lang.hpp>
#include <ptspec/rule.hpp>
#include <ptspec/raw_bits.hpp>
#include <ptspec/bits.hpp>
#include <ptspec/word.hpp>
#include <ptspec/bytes.hpp>
#include <ptspec/address.hpp>
#include <ptspec/ports.hpp>

#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_status.hpp>
#include <ptspec/reg/rtit_output.hpp>

#include <ptspec/topa/entry.hpp>
#include <ptspec/topa/table.hpp>
#include <ptspec/topa/position.hpp>

#include <ptspec/packet/kind.hpp>
#include <ptspec/packet/packet_word.hpp>
#include <ptspec/packet/pad.hpp>
#include <ptspec/packet/tnt.hpp>
#include <ptspec/packet/ip.hpp>
#include <ptspec/packet/pip.hpp>
#include <ptspec/packet/mode.hpp>
#include <ptspec/packet/tracestop.hpp>
#include <ptspec/packet/cbr.hpp>
#include <ptspec/packet/tsc.hpp>
#include <ptspec/packet/mtc.hpp>
#include <ptspec/packet/tma.hpp>
#include <ptspec/packet/cyc.hpp>
#include <ptspec/packet/vmcs.hpp>
#include <ptspec/packet/ovf.hpp>
#include <ptspec/packet/psb.hpp>
#include <ptspec/packet/mnt.hpp>
#include <ptspec/packet/ptw.hpp>
#include <ptspec/packet/power.hpp>
#include <ptspec/packet/pebs.hpp>
#include <ptspec/packet/event.hpp>
#include <ptspec/packet/trig.hpp>
#include <ptspec/packet/list.hpp>
#include <ptspec/packet/any_packet.hpp>
#include <ptspec/packet/classify.hpp>
#include <ptspec/packet/decode.hpp>
#include <ptspec/packet/encode.hpp>

#include <ptspec/trace/sync.hpp>
#include <ptspec/trace/pieces.hpp>
#include <ptspec/trace/item.hpp>
#include <ptspec/trace/visitor.hpp>
#include <ptspec/trace/tally.hpp>
#include <ptspec/trace/hot_loop.hpp>
#include <ptspec/trace/reader.hpp>
