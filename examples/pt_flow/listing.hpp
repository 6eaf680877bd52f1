// SPDX-License-Identifier: BSL-1.0
#pragma once

// What pt_flow prints: a line for each report of a walker.

#include "../common/tool.hpp"

#include <ptspec/flow.hpp>

#include <charconv>

namespace pt_flow {

using namespace ptspec;

/// Builds a line, and writes it.
class line_writer {
public:
    explicit line_writer(tool::output& to) : to_{to} {}

    auto text(std::string_view what) -> line_writer& {
        for (char const letter : what) { line_[size_++] = letter; }
        return *this;
    }
    auto hex(std::uint64_t value) -> line_writer& { return text("0x").number(value, 16); }
    auto decimal(std::uint64_t value) -> line_writer& { return number(value, 10); }
    void end() {
        line_[size_++] = '\n';
        to_.write({line_, size_});
        size_ = 0;
    }

private:
    auto number(std::uint64_t value, int base) -> line_writer& {
        auto const made = std::to_chars(line_ + size_, line_ + sizeof line_, value, base);
        size_ = static_cast<std::size_t>(made.ptr - line_);
        return *this;
    }

    tool::output& to_;
    char line_[256];  // the longest has half of that
    std::size_t size_ = 0;
};

constexpr auto bits_of(flow::code_width width) -> unsigned {
    return width == flow::code_width::bits_64 ? 64 : width == flow::code_width::bits_32 ? 32 : 16;
}
constexpr auto name_of(flow::gap_reason why) -> std::string_view {
    using enum flow::gap_reason;
    switch (why) {
        case none: return "none";
        case overflow: return "overflow";
        case damage: return "damage";
        case missing_code: return "missing-code";
        case no_instruction: return "no-instruction";
        case wrong_turn: return "wrong-turn";
        case endless_loop: return "endless-loop";
        case no_target: return "no-target";
    }
    return "";
}

/// What all listings share: gaps.
struct listing {
    line_writer to;
    std::uint64_t gaps = 0;
    std::uint64_t walk_offset = 0;  ///< of the walk in the stream

    void print(flow::gap const& one) {
        ++gaps;
        to.text("gap ").text(name_of(one.why)).text(" offset=").hex(walk_offset + one.offset);
        if (one.broken != rule::none) { to.text(" rule=").text(rule_id{one.broken}.letters); }
        if (one.has_from) { to.text(" from=").hex(one.from); }
        if (one.has_to) { to.text(" to=").hex(one.to); }
        if (one.why == flow::gap_reason::missing_code) { to.text(" missing=").hex(one.missing); }
        to.end();
    }
};

struct instruction_listing : listing {
    void instruction(flow::executed const& one) { to.hex(one.ip).end(); }
    void gap(flow::gap const& one) { print(one); }
    void end() {}
};
struct block_listing : listing {
    void block(flow::executed_block const& one) {
        to.text("block ").hex(one.ip).text(" ").hex(one.last).text(" n=").decimal(one.count);
        to.text(" mode=").decimal(bits_of(one.width)).end();
    }
    void gap(flow::gap const& one) { print(one); }
    void end() {}
};
struct edge_listing : listing {
    void edge(flow::edge const& one) {
        to.text("edge ").hex(one.from).text(" ").hex(one.to);
        if (one.is_asynchronous) { to.text(" event"); }
        if (!one.is_taken) { to.text(" not-taken"); }
        to.end();
    }
    void gap(flow::gap const& one) { print(one); }
    void end() {}
};
/// Instructions that follow each other in memory, as long as the mode stays.
struct run_listing : listing {
    std::uint64_t start = 0;
    std::uint64_t last = 0;
    std::uint64_t next = 0;
    std::uint64_t count = 0;
    flow::code_width width{};

    void block(flow::executed_block const& one) {
        if (count != 0 && (one.ip != next || one.width != width)) { end(); }
        if (count == 0) {
            start = one.ip;
            width = one.width;
        }
        count += one.count;
        last = one.last;
        next = one.ip + one.size;
    }
    void gap(flow::gap const& one) {
        end();
        print(one);
    }
    void end() {
        if (count == 0) { return; }
        to.text("run ").hex(start).text(" ").hex(last).text(" n=").decimal(count);
        to.text(" mode=").decimal(bits_of(width)).end();
        count = 0;
    }
};

}  // namespace pt_flow
