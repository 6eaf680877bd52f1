// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/value.hpp>
#include <ptspec/engine/detail/psb.hpp>

/// PTWRITE, and PEBS records that are output to the trace.
///
/// Source: GEN-300, GEN-320..322.
namespace ptspec::engine::detail {

template <class Sink>
constexpr void handle(generator_state& s, action::ptwrite const& e, Sink& sink) noexcept {
    s.ip = e.next;
    auto const enables = s.enables();
    if (!enables.trigger || !enables.context || !enables.filter || !s.ctl<ctl::PTWEn>()) { return; }
    using packet::ptw;
    bool const has_ip = s.ctl<ctl::FUPonPTW>();
    uint64_t const value = e.is_64_bit ? e.value : e.value & low_bits(32);
    put_packets(s, sink, [&](auto& batch) {
        batch.add(ptw{}
                      .with(ptw::PayloadBytes{wrapped{uint64_t{e.is_64_bit}}}, ptw::IP{has_ip})
                      .with_payload(value));
        if (has_ip) { batch.template add_ip<packet::fup>(s.in_packets(e.at)); }
    });
}

/// A group of items, in as many batches as it needs. Source: GEN-320, GEN-321.
template <class Sink>
constexpr void emit_group(generator_state& s, action::pebs_group const& group,
                          Sink& sink) noexcept {
    constexpr size_t items_of_a_batch = 16;
    using packet::bbp;
    using packet::bip;
    size_t emitted = 0;
    do {
        size_t const end = group.count - emitted < items_of_a_batch ? group.count
                                                                    : emitted + items_of_a_batch;
        put_packets(s, sink, [&](auto& batch) {
            if (emitted == 0) {
                batch.add(bbp{}.with(bbp::type{wrapped{uint64_t{group.type}}},
                                     bbp::SZ{group.items_of_4}));
            }
            for (size_t i = emitted; i < end; ++i) {
                auto const& item = group.items[i];
                uint64_t const value = group.items_of_4 ? item.value & low_bits(32) : item.value;
                batch.add(bip{}.with(bip::id{wrapped{uint64_t{item.id}}}).with_payload(value));
            }
        });
        emitted = end;
    } while (emitted < group.count && !s.in_overflow);
}
/// Source: GEN-320..322.
template <class Sink>
constexpr void handle(generator_state& s, action::pebs_record const& e, Sink& sink) noexcept {
    if (!s.trigger_en() || e.count == 0) { return; }
    for (size_t i = 0; i < e.count; ++i) { emit_group(s, e.groups[i], sink); }
    bool const has_ip = s.enables().context;
    put_packets(s, sink, [&](auto& batch) {
        batch.add(packet::bep{}.with(packet::bep::IP{has_ip}));
        if (has_ip) { batch.template add_ip<packet::fup>(s.in_packets(e.ip)); }
    });
}

}  // namespace ptspec::engine::detail
