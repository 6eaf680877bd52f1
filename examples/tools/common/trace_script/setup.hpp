// SPDX-License-Identifier: BSL-1.0
#pragma once

// The text of a setup, which changes the initial state of pt_model.

#include "script.hpp"
#include "start.hpp"

#include <ptspec/print/rows.hpp>

namespace trace_script {

/// Sets a field of a word by its name.
template <class Word>
constexpr auto put_field(Word& word, string_view name, std::uint64_t value) -> bool {
    auto const* const field = print::row_list_of<Word>().field({name.data(), name.size()});
    if (field == nullptr) { return false; }
    auto const& row = field->row;
    std::uint64_t const mask = low_bits(row.msb - row.lsb + 1);
    if (value > mask) { return false; }
    word.raw = (word.raw & ~(mask << row.lsb)) | value << row.lsb;
    return true;
}

/// Sets a range `[A,B] filter` or `[A,B] stop`.
constexpr auto put_range(start& to, std::size_t n, string_view text) -> bool {
    auto const close = text.find(']');
    auto const comma = text.find(',');
    if (text.empty() || text.front() != '[' || close == string_view::npos ||
        comma == string_view::npos || comma > close) {
        return false;
    }
    auto const a = number_in(trimmed(text.substr(1, comma - 1)));
    auto const b = number_in(trimmed(text.substr(comma + 1, close - comma - 1)));
    auto const kind = trimmed(text.substr(close + 1));
    if (!a || !b || (kind != "filter" && kind != "stop")) { return false; }
    to.set_range(n, *a, *b, kind == "filter" ? reg::addr_cfg::filter : reg::addr_cfg::trace_stop);
    return true;
}

/// The largest value of an item that is not a register field.
constexpr auto largest(string_view name) -> std::uint64_t {
    if (name == "CPL") { return 3; }
    if (name == "callstack") { return 0x3F; }
    if (name == "CS") { return 0xFFFF; }
    if (name == "OutputOffset") { return 0xFFF; }
    for (string_view const flag :
         {"FilterEn", "IF", "PAE", "real", "v86", "LIP", "SMM", "TSX", "SGX", "deferral"}) {
        if (name == flag) { return 1; }
    }
    return ~std::uint64_t{0};
}

/// Applies an item that is not a range. Returns an empty text, or what was expected.
constexpr auto put_named(start& to, string_view name, string_view text) -> string_view {
    using status = reg::ia32_rtit_status;
    if (name == "VMX") {
        if (text != "root" && text != "nonroot" && text != "off") { return "root, nonroot or off"; }
        to.msrs.in_vmx_operation = text != "off";
        to.code.vmx_non_root = text == "nonroot";
        return {};
    }
    if (name == "conceal") {
        to.hidden = {};
        while (!text.empty()) {
            auto const name_of_one = take_item(text, '+');
            bool const all = name_of_one == "all";
            if (!all && name_of_one != "none" && name_of_one != "nonroot" &&
                name_of_one != "exits" && name_of_one != "entries") {
                return "all, none, or some of nonroot+exits+entries";
            }
            to.hidden.non_root = to.hidden.non_root || all || name_of_one == "nonroot";
            to.hidden.exits = to.hidden.exits || all || name_of_one == "exits";
            to.hidden.entries = to.hidden.entries || all || name_of_one == "entries";
        }
        return {};
    }
    if (name == "kind") {
        for (auto const& one : engine::model_kinds) {
            if (string_view{one.name.data(), one.name.size()} != text) { continue; }
            to.how = one.options;
            return {};
        }
        return "manual, broadwell, skylake, icelake or atom";
    }
    if (name == "LP") {
        to.two_processors = text == "A+B";
        return to.two_processors ? string_view{} : "A+B";
    }
    if (name == "pending") {
        for (char const bit : text) {
            if (bit != '0' && bit != '1') { return "TNT bits, 0 and 1"; }
        }
        to.pending = text;
        return text.size() > 46 ? "at most 46 TNT bits" : string_view{};
    }
    if (name == "mode") {
        if (text != "16" && text != "32" && text != "64") { return "16, 32 or 64"; }
        to.code.width = text == "16"   ? engine::code_width::bits_16
                        : text == "32" ? engine::code_width::bits_32
                                       : engine::code_width::bits_64;
        return {};
    }
    if (name == "cycles") {
        auto const passed = number_in(text, 10);
        to.cycles = passed.value_or(0);
        return passed ? string_view{} : "a decimal number of cycles";
    }
    auto const number = number_in(text);
    if (!number) { return "a hexadecimal number"; }
    std::uint64_t const value = *number;
    bool const flag = value != 0;
    if (value > largest(name)) { return "a smaller value"; }
    if (name == "FilterEn") { return to.filter_en = flag, string_view{}; }
    if (name == "CPL") { return to.code.cpl = static_cast<std::uint8_t>(value), string_view{}; }
    if (name == "CR3") { return to.code.cr3 = value, string_view{}; }
    if (name == "CR3_MATCH") { return to.msrs.cr3_match = {value}, string_view{}; }
    if (name == "IP") { return to.ip = value, string_view{}; }
    if (name == "IF") { return to.code.IF = flag, string_view{}; }
    if (name == "PAE") { return to.code.pae = flag, string_view{}; }
    if (name == "real") { return to.code.real_mode = flag, string_view{}; }
    if (name == "v86") { return to.code.virtual_8086 = flag, string_view{}; }
    if (name == "CS") { return to.code.cs_base = value << 4, string_view{}; }
    if (name == "CSbase") { return to.code.cs_base = value, string_view{}; }
    if (name == "LIP") {
        to.of.leaf_14_0_ecx = to.of.leaf_14_0_ecx.with(reg::cpuid_14h_0_ecx::LIP{flag});
        return {};
    }
    if (name == "SMM") { return to.msrs.in_smm = flag, string_view{}; }
    if (name == "SGX") { return {}; }
    if (name == "callstack") { return to.calls = value, string_view{}; }
    if (name == "ART") { return to.clocks.art = value, string_view{}; }
    if (name == "TNT") {
        to.how.tnt_capacity = value == 0x47 ? 47 : 6;
        return value == 0x47 || value == 6 ? string_view{} : "a TNT capacity, 6 or 47";
    }
    string_view const option = name == "TSX"        ? "has_tsx"
                               : name == "deferral" ? "defers_tips"
                                                    : name;
    if (engine::set_option(to.how, {option.data(), option.size()}, value) ||
        put_field(to.msrs.ctl, name, value) ||
        (name == "OutputOffset" && put_field(to.msrs.output.mask_ptrs, name, value)) ||
        (name != "TriggerEn" && name != "ContextEn" &&
         put_field<status>(to.msrs.status, name, value))) {
        return {};
    }
    return "a field of IA32_RTIT_CTL or IA32_RTIT_STATUS, or another name of "
           "tests/spec/notation.md, "
           "section 3, and a value that fits";
}

/// Parses one item: `NAME=value`, `A=B=value` or `ADDRn=[A,B] kind`.
constexpr auto put_item(start& to, string_view item) -> string_view {
    if (starts_with(item, "ADDR") && item.size() > 6 && item[5] == '=') {
        auto const n = static_cast<unsigned char>(item[4]) - '0';
        bool const is_range = n >= 0 && n < 4 &&
                              put_range(to, static_cast<std::size_t>(n), trimmed(item.substr(6)));
        return is_range ? string_view{} : "ADDRn=[A,B] filter or ADDRn=[A,B] stop";
    }
    auto const last = item.rfind('=');
    if (last == string_view::npos) { return "NAME=value"; }
    auto const value = trimmed(item.substr(last + 1));
    auto names = item.substr(0, last);
    while (!names.empty()) {
        auto const expected = put_named(to, take_item(names, '='), value);
        if (!expected.empty()) { return expected; }
    }
    return {};
}

/// Parses a whole setup.
struct read_start {
    start made{};
    problem wrong{};
};
constexpr auto read_setup(string_view setup, std::uint64_t table) -> read_start {
    read_start done{base_state(table), {}};
    auto rest = trimmed(setup);
    while (!rest.empty()) {
        auto const item = take_item(rest, ',');
        if (auto const expected = put_item(done.made, item); !expected.empty()) {
            return {done.made, {true, 0, expected, item}};
        }
    }
    derive_status(done.made);
    return done;
}

}  // namespace trace_script
