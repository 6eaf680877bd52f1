// SPDX-License-Identifier: BSL-1.0
#pragma once

// Lists: a line for each report of a walker.

#include "../event_names.hpp"
#include "../tool.hpp"
#include "report.hpp"

#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

namespace reports {

/// Builds lines, and writes many of them at once.
class line_writer {
public:
    explicit line_writer(tool::output& to) : to_{to} {}
    line_writer(line_writer const&) = delete;
    auto operator=(line_writer const&) -> line_writer& = delete;

    auto text(std::string_view what) -> line_writer& {
        what.copy(room(what.size()), what.size());
        next_ += what.size();
        return *this;
    }
    auto hex(std::uint64_t value) -> line_writer& { return text("0x").number(value, 16); }
    auto decimal(std::uint64_t value) -> line_writer& { return number(value, 10); }
    /// A decimal number, with blanks before it.
    auto column(std::size_t width, std::uint64_t value) -> line_writer& {
        digits const made{value, 10};
        auto const size = made.text().size();
        if (size < width) { blank(width - size); }
        return text(made.text());
    }
    auto blank(std::size_t count) -> line_writer& {
        std::memset(room(count), ' ', count);
        next_ += count;
        return *this;
    }
    void end() {
        *room(1) = '\n';
        ++next_;
        if (used() >= most) { flush(); }
    }
    void flush() {
        to_.write({text_.data(), used()});
        next_ = text_.data();
    }

private:
    static constexpr std::size_t most = 65536;

    class digits {
    public:
        digits(std::uint64_t value, int base)
            : end_{std::to_chars(all_, all_ + sizeof all_, value, base).ptr} {}
        [[nodiscard]] auto text() const -> std::string_view { return {all_, end_}; }

    private:
        char all_[20];
        char const* end_;
    };
    auto number(std::uint64_t value, int base) -> line_writer& {
        return text(digits{value, base}.text());
    }
    [[nodiscard]] auto used() const -> std::size_t {
        return static_cast<std::size_t>(next_ - text_.data());
    }
    /// Where the next `count` characters go.
    auto room(std::size_t count) -> char* {
        if (static_cast<std::size_t>(end_ - next_) < count) [[unlikely]] { grow(count); }
        return next_;
    }
    void grow(std::size_t count) {
        auto const before = used();
        text_.resize(2 * (before + count));
        next_ = text_.data() + before;
        end_ = text_.data() + text_.size();
    }

    tool::output& to_;
    std::vector<char> text_ = std::vector<char>(most + 4096);
    char* next_ = text_.data();
    char* end_ = next_ + text_.size();
};

constexpr auto bits_of(flow::code_width width) -> unsigned {
    return width == flow::code_width::bits_64 ? 64 : width == flow::code_width::bits_32 ? 32 : 16;
}
/// What all listings share: gaps.
class listing : public report {
public:
    explicit listing(tool::output& to) : to_{to} {}

    void gap(flow::gap const& one) override {
        if (!is_shown) { return; }
        to_.text("gap ").text(events::name_of_gap(one.why)).text(" offset=").hex(one.offset);
        if (one.broken != rule::none) { to_.text(" rule=").text(rule_id{one.broken}.letters); }
        if (one.has_from) { to_.text(" from=").hex(one.from); }
        if (one.has_to) { to_.text(" to=").hex(one.to); }
        if (flow::has_missing(one.why)) { to_.text(" missing=").hex(one.missing); }
        to_.end();
    }
    void flush() override { to_.flush(); }
    void end() override { to_.flush(); }

protected:
    line_writer to_;
};

class instruction_listing : public listing {
public:
    using listing::listing;

    [[nodiscard]] auto wants() const -> wanted override { return {.instructions = true}; }
    void instruction(flow::executed const& one) override {
        if (!is_shown) { return; }
        to_.hex(one.ip).end();
        ++found.printed;
    }
};
class block_listing : public listing {
public:
    using listing::listing;

    [[nodiscard]] auto wants() const -> wanted override { return {.blocks = true}; }
    void block(flow::executed_block const& one) override {
        if (!is_shown) { return; }
        ++found.printed;
        to_.text("block ").hex(one.ip).text(" ").hex(one.last).text(" n=").decimal(one.count);
        to_.text(" mode=").decimal(bits_of(one.width)).end();
    }
};
class edge_listing : public listing {
public:
    using listing::listing;

    [[nodiscard]] auto wants() const -> wanted override { return {.edges = true}; }
    void gap(flow::gap const& one) override {
        listing::gap(one);
        bool const is_tip = one.why == flow::gap_reason::no_tnt && one.to_is_target;
        if (!is_shown || !is_tip) { return; }
        ++found.printed;
        to_.text("edge - ").hex(one.to).end();
    }
    void edge(flow::edge const& one) override {
        if (!is_shown) { return; }
        ++found.printed;
        to_.text("edge ").hex(one.from).text(" ").hex(one.to);
        if (one.is_asynchronous) { to_.text(" event"); }
        if (transition == vm_transition::entry) { to_.text(" vm-entry"); }
        if (transition == vm_transition::exit) { to_.text(" vm-exit"); }
        if (!one.is_taken) { to_.text(" not-taken"); }
        to_.end();
    }
};
/// Instructions that follow each other in memory, as long as the mode stays.
class run_listing : public listing {
public:
    using listing::listing;

    [[nodiscard]] auto wants() const -> wanted override { return {.blocks = true}; }
    void block(flow::executed_block const& one) override {
        if (one.ip != next_ || one.width != width_ || !is_shown) { end_run(); }
        if (!is_shown) { return; }
        if (count_ == 0) {
            start_ = one.ip;
            width_ = one.width;
        }
        count_ += one.count;
        last_ = one.last;
        next_ = one.ip + one.size;
    }
    void gap(flow::gap const& one) override {
        end_run();
        listing::gap(one);
    }
    void end() override {
        end_run();
        listing::end();
    }

private:
    void end_run() {
        if (count_ == 0) { return; }
        ++found.printed;
        to_.text("run ").hex(start_).text(" ").hex(last_).text(" n=").decimal(count_);
        to_.text(" mode=").decimal(bits_of(width_)).end();
        count_ = 0;
    }

    std::uint64_t start_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t next_ = 0;
    std::uint64_t count_ = 0;
    flow::code_width width_{};
};

}  // namespace reports
