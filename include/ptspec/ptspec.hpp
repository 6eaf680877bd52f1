// SPDX-License-Identifier: BSL-1.0
#pragma once

// Intel Processor Trace as constexpr C++20: all headers, in reading order.

#include <ptspec/version.hpp>

#include <ptspec/lang.hpp>
#include <ptspec/rule.hpp>
#include <ptspec/raw_bits.hpp>
#include <ptspec/bits.hpp>
#include <ptspec/word.hpp>
#include <ptspec/bytes.hpp>
#include <ptspec/address.hpp>
#include <ptspec/ports.hpp>
#include <ptspec/host_memory.hpp>

#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/reg/rtit_status.hpp>
#include <ptspec/reg/rtit_output.hpp>
#include <ptspec/reg/rtit_cr3_match.hpp>
#include <ptspec/reg/rtit_addr.hpp>
#include <ptspec/reg/rtit_trigger.hpp>
#include <ptspec/reg/xsave.hpp>
#include <ptspec/reg/cpuid.hpp>
#include <ptspec/reg/cpuid_14h.hpp>
#include <ptspec/reg/perf.hpp>
#include <ptspec/reg/pebs.hpp>
#include <ptspec/reg/lbr.hpp>
#include <ptspec/reg/smrr.hpp>
#include <ptspec/reg/apic.hpp>
#include <ptspec/reg/vmx.hpp>
#include <ptspec/reg/list.hpp>

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
#include <ptspec/packet/event_trace.hpp>
#include <ptspec/packet/trig.hpp>
#include <ptspec/packet/list.hpp>
#include <ptspec/packet/any_packet.hpp>
#include <ptspec/packet/classify.hpp>
#include <ptspec/packet/decode.hpp>
#include <ptspec/packet/encode.hpp>

#include <ptspec/cpu/quirks.hpp>
#include <ptspec/cpu/periods.hpp>
#include <ptspec/cpu/capabilities.hpp>
#include <ptspec/cpu/enumerated_quirks.hpp>
#include <ptspec/cpu/preset_rows.hpp>
#include <ptspec/cpu/presets.hpp>
#include <ptspec/cpu/compare.hpp>

#include <ptspec/topa/address_math.hpp>
#include <ptspec/topa/single_range.hpp>
#include <ptspec/topa/entry.hpp>
#include <ptspec/topa/position.hpp>
#include <ptspec/topa/table.hpp>
#include <ptspec/topa/site.hpp>
#include <ptspec/topa/builders.hpp>
#include <ptspec/topa/regions_for_pages.hpp>
#include <ptspec/topa/set_int_and_stop.hpp>
#include <ptspec/topa/restricted.hpp>
#include <ptspec/topa/walk.hpp>
#include <ptspec/topa/validate.hpp>

#include <ptspec/access/legal.hpp>
#include <ptspec/access/trigger.hpp>
#include <ptspec/access/msr_state.hpp>
#include <ptspec/access/check.hpp>
#include <ptspec/access/enables.hpp>
#include <ptspec/access/effect.hpp>
#include <ptspec/access/paths.hpp>
#include <ptspec/access/lbr.hpp>
#include <ptspec/access/resets.hpp>
#include <ptspec/access/xsave.hpp>
#include <ptspec/access/pmi.hpp>
#include <ptspec/access/image.hpp>

#include <ptspec/config/nearest.hpp>
#include <ptspec/config/trace_config.hpp>
#include <ptspec/config/check_config.hpp>
#include <ptspec/config/perf_config.hpp>

#include <ptspec/print/text.hpp>
#include <ptspec/print/rows.hpp>
#include <ptspec/print/word.hpp>
#include <ptspec/print/packet.hpp>

#include <ptspec/trace/psb_search.hpp>
#include <ptspec/trace/input.hpp>
#include <ptspec/trace/item.hpp>
#include <ptspec/trace/visitor.hpp>
#include <ptspec/trace/packet_counts.hpp>
#include <ptspec/trace/fast/opcode_info.hpp>
#include <ptspec/trace/fast/decode_loop.hpp>
#include <ptspec/trace/fast/count_loop.hpp>
#include <ptspec/trace/fast/count_lanes.hpp>
#include <ptspec/trace/reader_state.hpp>
#include <ptspec/trace/reader.hpp>
#include <ptspec/trace/split.hpp>
#include <ptspec/trace/write/state.hpp>
#include <ptspec/trace/write/batch.hpp>
#include <ptspec/trace/write/encode_table.hpp>
#include <ptspec/trace/write/writer.hpp>

#include <ptspec/engine/output/options.hpp>
#include <ptspec/engine/output/result.hpp>
#include <ptspec/engine/output/state.hpp>
#include <ptspec/engine/output/regions.hpp>
#include <ptspec/engine/output/output.hpp>
#include <ptspec/engine/output/sink.hpp>
#include <ptspec/engine/output/explain.hpp>
#include <ptspec/engine/event/execution_context.hpp>
#include <ptspec/engine/event/branch.hpp>
#include <ptspec/engine/event/events.hpp>
#include <ptspec/engine/model_options.hpp>
#include <ptspec/engine/byte_queue.hpp>
#include <ptspec/engine/packets/enables.hpp>
#include <ptspec/engine/packets/clocks.hpp>
#include <ptspec/engine/packets/return_stack.hpp>
#include <ptspec/engine/packets/state.hpp>
#include <ptspec/engine/packets/psb.hpp>
#include <ptspec/engine/packets/control_transfer.hpp>
#include <ptspec/engine/packets/branches.hpp>
#include <ptspec/engine/packets/msr_access.hpp>
#include <ptspec/engine/packets/vmx_smm.hpp>
#include <ptspec/engine/packets/generator.hpp>
#include <ptspec/engine/access_result.hpp>
#include <ptspec/engine/trace_unit.hpp>
#include <ptspec/engine/unit_image.hpp>

#include <ptspec/vmx/controls.hpp>
#include <ptspec/vmx/tdx.hpp>
