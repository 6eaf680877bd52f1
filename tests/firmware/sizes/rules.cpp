// SPDX-License-Identifier: BSL-1.0
// without: this processor
// without: a multiple of
// without: must not be
// Code that uses rules and their ids, but no sentences, does not contain the sentences.

#include <ptspec/ptspec.hpp>

using namespace ptspec;

auto of_wrmsr(cpu::capabilities const& of, access::msr_state const& now, uint64_t value) noexcept
    -> rule {
    return access::check_write(of, now, 0x570, value).broken;
}
auto of_packet(byte_view in) noexcept -> rule { return packet::decode(in).broken; }
auto of_trace(trace::reader<>& from) noexcept -> rule { return from.next().broken; }
auto of_entry(topa::entry which) noexcept -> rule { return topa::broken_rule(which, {}, {}); }
auto of_config(config::trace_config const& wanted, cpu::capabilities const& of) noexcept -> rule {
    return config::check(of, wanted).violations[0].broken;
}
auto of_output(cpu::capabilities const& of, access::msr_state const& now,
               host_memory& memory) noexcept -> rule {
    return engine::explain(of, now, memory).ended_by;
}
auto of_unit(engine::trace_unit<>& unit, host_memory& memory) noexcept -> rule {
    return unit.on(engine::action::indirect_jump{0x1000}, memory).happened ? rule::none
                                                                           : unit.ended_by();
}
auto id_of(rule which) noexcept -> rule_id { return rule_id{which}; }
