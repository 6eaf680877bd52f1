// SPDX-License-Identifier: BSL-1.0
#pragma once

// What to trace, in words: `user branches tsc mtc=3 psb=8K filter=401000-401FFF`.

#include "tool.hpp"

#include <ptspec/driver.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trace_request {

using namespace ptspec;

inline auto string_of(text from) -> std::string { return {from.data(), from.size()}; }

/// A number without sign or prefix; throws if it is not one.
inline auto number_of(std::string_view text, int base = 16) -> std::uint64_t {
    std::uint64_t value = 0;
    char const* const end = text.data() + text.size();
    auto const got = std::from_chars(text.data(), end, value, base);
    if (text.empty() || got.ec != std::errc{} || got.ptr != end) {
        throw tool::failure{tool::quoted(text) + " is not a number"};
    }
    return value;
}

/// A number of bytes in decimal, with K or M: `64K`.
inline auto bytes_of(std::string_view text) -> std::uint64_t {
    unsigned shift = 0;
    if (!text.empty() && (text.back() == 'K' || text.back() == 'M')) {
        shift = text.back() == 'K' ? 10 : 20;
        text.remove_suffix(1);
    }
    auto const value = number_of(text, 10);
    if (value > low_bits(40)) { throw tool::failure{"more than 2^40 bytes"}; }
    return value << shift;
}

/// Throws the first member of a configuration that the processor refuses, and why.
inline void require(config::config_verdict const& verdict) {
    for (auto const& one : verdict) {
        throw tool::failure{string_of(config::info_of(one.member).name) + ": " +
                            string_of(describe(one.broken))};
    }
    if (verdict.broken != rule::none) { throw tool::failure{string_of(describe(verdict.broken))}; }
}

/// An encoding, or the period that has this length.
template <class Period>
auto period_of(std::string_view text) -> Period {
    bool const is_length = !text.empty() && (text.back() == 'K' || text.back() == 'M');
    if (!is_length) {
        auto const found = Period::try_encoded(number_of(text, 10));
        if (!found) { throw tool::failure{"encodings are 0 to 15"}; }
        return found.period;
    }
    if constexpr (same_as<Period, config::psb_period>) {
        auto const found = Period::try_of_bytes(bytes_of(text));
        if (found) { return found.period; }
    }
    throw tool::failure{tool::quoted(text) + " is no such period; it is 2K, 4K .. 64M"};
}

/// Adds a range of addresses, `A-B` in hexadecimal, both ends inclusive.
inline void add_range(driver::plan_request& to, std::string_view text, reg::addr_cfg how) {
    std::size_t const dash = text.find('-');
    if (dash == std::string_view::npos) { throw tool::failure{"a range is A-B, in hexadecimal"}; }
    std::size_t n = 0;
    while (n < 4 && to.config.addr[n] != reg::addr_cfg::off) { ++n; }
    if (n == 4) { throw tool::failure{"at most 4 address ranges"}; }
    to.config.addr[n] = how;
    to.addr[n] = {{number_of(text.substr(0, dash))}, {number_of(text.substr(dash + 1))}};
}

/// A wanted trace. Throws on an unknown word.
inline auto request_of(std::string_view text) -> driver::plan_request {
    driver::plan_request wanted;
    auto& config = wanted.config;
    for (auto const& word : tool::words_of(text, " ,")) {
        std::size_t const equals = word.find('=');
        std::string const name{word.substr(0, equals)};
        bool const has_value = equals != std::string::npos;
        std::string const value{has_value ? word.substr(equals + 1) : ""};
        bool known = true;
        if (name == "mtc") {
            config.mtc = true;
            if (has_value) { config.mtc_every = period_of<config::mtc_period>(value); }
        } else if (name == "cyc") {
            config.cyc = true;
            if (has_value) { config.cyc_after = period_of<config::cyc_threshold>(value); }
        } else if (name == "psb" && has_value) {
            config.psb_every = period_of<config::psb_period>(value);
        } else if (name == "cr3" && has_value) {
            config.cr3_filter = true;
            wanted.cr3 = number_of(value);
        } else if (name == "filter" && has_value) {
            add_range(wanted, value, reg::addr_cfg::filter);
        } else if (name == "stop" && has_value) {
            add_range(wanted, value, reg::addr_cfg::trace_stop);
        } else if (has_value) {
            known = false;
        } else if (name == "os") {
            config.os = true;
        } else if (name == "user") {
            config.user = true;
        } else if (name == "branches") {
            config.branches = true;
        } else if (name == "nobranches") {
            config.branches = false;
        } else if (name == "noretcomp") {
            config.ret_compression = false;
        } else if (name == "notnt") {
            config.no_tnt = true;
        } else if (name == "tsc") {
            config.tsc = true;
        } else if (name == "ptw") {
            config.ptwrite = true;
        } else if (name == "fup_on_ptw") {
            config.fup_on_ptwrite = true;
        } else if (name == "pwr_evt") {
            config.power_events = true;
        } else if (name == "event") {
            config.event_trace = true;
        } else if (name == "inject") {
            config.inject_psb_pmi = true;
        } else {
            known = false;
        }
        if (!known) { throw tool::failure{tool::quoted(word) + ": no such word; see --help"}; }
    }
    return wanted;
}

}  // namespace trace_request
