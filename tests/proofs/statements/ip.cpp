// SPDX-License-Identifier: BSL-1.0
// IP compression: how an IP is written, and how it is rebuilt.
#include <ptspec/packet/decode.hpp>
#include <ptspec/trace/write/state.hpp>

using namespace ptspec;
using packet::ip_bytes;
using trace::ip_choice;

extern "C" {

uint64_t rebuilt_ip(uint8_t how, uint64_t payload, uint64_t last_ip) {
    return packet::rebuilt_ip(static_cast<ip_bytes>(how), payload, last_ip);
}
uint8_t shortest_form(uint64_t ip, uint64_t last_ip) {
    return static_cast<uint8_t>(packet::shortest_form(ip, last_ip));
}
uint8_t form_of(uint64_t ip, uint64_t last_ip, bool has_last_ip, bool has_context_ip, uint8_t how,
                bool is_fup) {
    trace::writer_state state;
    state.last_ip = last_ip;
    state.has_last_ip = has_last_ip;
    state.has_context_ip = has_context_ip;
    return static_cast<uint8_t>(state.form_of(ip, static_cast<ip_choice>(how), is_fup));
}
/// The IP of a packet in this form, after it was encoded and decoded.
uint64_t ip_of_tip(uint8_t how, uint64_t ip, uint64_t last_ip) {
    return packet::tip::of(static_cast<ip_bytes>(how), ip).ip(last_ip);
}
void compressed_fup(uint64_t ip, uint64_t last_ip, uint64_t (&raw)[2]) {
    auto const made = packet::fup::compressed(ip, last_ip);
    raw[0] = made.raw.low;
    raw[1] = made.raw.high;
}
bool has_ip(uint64_t low, uint64_t high) { return packet::tip_pge{wide_bits{low, high}}.has_ip(); }

}  // extern "C"
