// SPDX-License-Identifier: BSL-1.0
#pragma once

// pt_dump --time: the time of a line of a listing, and the times of a summary.

#include "options.hpp"

#include <ptspec/ptspec.hpp>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace pt_dump {

/// Passes an item to the clock.
inline auto add_to(trace::clock& clock, trace::item const& item) -> trace::time {
    bool has_cyc = false;
    if (item.what == trace::item_type::packet) {
        (void)clock.add(item.packet);
        has_cyc = packet::visit(
            []<class Packet>(Packet const&) {
                using namespace packet;
                return Packet::about.cyc_eligible == cyc_rule::yes ||
                       ptspec::one_of<Packet, tsc, tma, mtc, cyc>;
            },
            item.packet);
    } else if (item.what != trace::item_type::unknown && item.what != trace::item_type::end) {
        clock.lose();
    }
    return has_cyc ? clock.now() : clock.now_without_cyc();
}

namespace detail {

inline void append_digits(std::string& out, std::uint64_t value, int base = 10) {
    char digits[24];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value, base).ptr);
}

}  // namespace detail

/// Appends ` time=0xa0008-8+40`, and the nanoseconds where they are known. Before the first TSC,
/// ` relative=0x28`; by the TSC of a guest, ` guest=0xa0008-8+40`; nothing for an absent time.
inline void append_text_time(std::string& out, trace::time const& when,
                             trace_file::conversion const& to_ns) {
    if (when.is_absent()) { return; }
    char text[128];
    auto end = text;
    auto const put = [&](std::string_view letters) { end += letters.copy(end, letters.size()); };
    auto const number = [&](std::uint64_t value, int base = 10) {
        end = std::to_chars(end, text + sizeof text, value, base).ptr;
    };
    put(!when.is_absolute() ? " relative=0x" : when.is_guest ? " guest=0x" : " time=0x");
    number(when.tsc, 16);
    if (!when.is_absolute()) {
        out.append(text, end);
        return;
    }
    put("-");
    number(when.tsc < when.earliest ? 0 : when.tsc - when.earliest);
    put("+");
    if (when.latest == trace::time::unbounded) {
        put("?");
    } else {
        number(when.latest < when.tsc ? 0 : when.latest - when.tsc);
    }
    if (to_ns.is_known() && !when.is_guest) {
        put(" ns=");
        number(to_ns.ns(when.tsc));
    }
    out.append(text, end);
}

/// Adds the same to a JSON object.
template <class Fields>
void append_json_time(Fields fields, trace::time const& when, trace_file::conversion const& to_ns) {
    if (when.is_absent()) { return; }
    fields.hex(!when.is_absolute() ? "relative" : when.is_guest ? "guest" : "time", when.tsc);
    if (!when.is_absolute()) { return; }
    fields.hex("earliest", when.earliest);
    if (when.latest == trace::time::unbounded) {
        fields.nothing("latest");
    } else {
        fields.hex("latest", when.latest);
    }
    if (to_ns.is_known() && !when.is_guest) { fields.number("ns", to_ns.ns(when.tsc)); }
}

/// The times of a trace, and how long it was traced.
///
/// Units:  TSC ticks.
class time_sum {
public:
    explicit time_sum(settings const& how) : clock_{how.clock}, binder_{how.quirks} {}

    template <packet::packet_type Packet>
    void add(Packet const& packet, trace::packet_place where) {
        using namespace packet;
        if constexpr (ptspec::one_of<Packet, tnt_short, tnt_long, tip>) {
            clock_.pass();
            if (!binder_.binds_branches()) [[unlikely]] { bind({packet, where.length}, where); }
        } else if constexpr (ptspec::same_as<Packet, packet::tsc>) {
            add(packet);
        } else if constexpr (ptspec::one_of<Packet, tma, mtc, cyc, cbr, mnt>) {
            (void)clock_.add(packet);
        } else if constexpr (!ptspec::same_as<Packet, pad>) {
            if constexpr (ptspec::same_as<Packet, ovf>) { ++overflows_; }
            (void)clock_.add(packet);
            bind({packet, where.length}, where);
        }
    }
    void add(trace::item const& other) {
        if (!other || other.what == trace::item_type::unknown) { return; }
        pass();
        binder_.restart();
        clock_.lose();
    }
    /// The end of the trace.
    void finish() { pass(); }

    /// The trace has a TSC: its times are known.
    [[nodiscard]] auto has_time() const -> bool { return has_time_; }
    [[nodiscard]] auto first() const -> std::uint64_t { return first_; }
    [[nodiscard]] auto last() const -> std::uint64_t { return last_; }
    [[nodiscard]] auto duration() const -> std::int64_t {
        return static_cast<std::int64_t>(last_ - first_);
    }
    [[nodiscard]] auto traced() const -> std::int64_t { return spent(on); }
    [[nodiscard]] auto untraced() const -> std::int64_t { return spent(off); }
    /// After an overflow or damage.
    [[nodiscard]] auto lost() const -> std::int64_t { return spent(unknown); }
    [[nodiscard]] auto overflows() const -> std::uint64_t { return overflows_; }
    [[nodiscard]] auto missing_mtcs() const -> std::uint64_t { return clock_.missing_mtcs(); }
    [[nodiscard]] auto cycles() const -> std::uint64_t { return clock_.cycles(); }
    /// The mean frequency of the core clock since the first TSC, in 1/10000 of that of the TSC.
    /// Before a TSC that is later than the packets before it allow, the clocks stood still or
    /// tracing was disabled: this time does not count.
    ///
    /// Source: GEN-219, PKT-316.
    [[nodiscard]] auto frequency() const -> std::uint64_t {
        auto const counted = static_cast<std::int64_t>(last_ - first_ - stopped_);
        return counted <= 0
                   ? 0
                   : trace::core_frequency({.cycles = cycles() - cycles_before_,
                                            .tsc_ticks = static_cast<std::uint64_t>(counted)},
                                           10'000);
    }

private:
    enum part : std::uint8_t { on, off, unknown };

    [[nodiscard]] auto spent(part which) const -> std::int64_t {
        return static_cast<std::int64_t>(spent_[which]);
    }
    [[nodiscard]] auto current() const -> part {
        switch (binder_.state().enabled) {
            case trace::tracing::on:
            case trace::tracing::entering: return on;
            case trace::tracing::off: return off;
            case trace::tracing::unknown: break;
        }
        return unknown;
    }
    void bind(packet::any_packet const& which, trace::packet_place where) {
        auto const before = current();
        (void)binder_.add(which, where);
        if (current() != before) [[unlikely]] { pass_as(before); }
    }
    void add(packet::tsc which) {
        auto const before = clock_.now();
        (void)clock_.add(which);
        if (clock_.now().is_guest) { return; }
        auto const after = clock_.now().tsc;
        if (!has_time_) {
            has_time_ = true;
            first_ = last_ = after;
            cycles_before_ = clock_.cycles();
        } else if (after > before.latest) {
            stopped_ += after - before.tsc;
        }
    }
    /// The time up to now belongs to the current part.
    void pass() { pass_as(current()); }
    void pass_as(part which) {
        if (!has_time_) { return; }
        auto const now = clock_.now();
        if (now.is_guest) { return; }  // it is no time of the host
        spent_[which] += now.tsc - last_;
        last_ = now.tsc;
    }

    trace::clock clock_;
    trace::binder binder_;
    bool has_time_ = false;
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t spent_[3] = {};  ///< modulo 2^64: a TSC may be lower than one before
    std::uint64_t overflows_ = 0;
    std::uint64_t cycles_before_ = 0;  ///< the first TSC
    std::uint64_t stopped_ = 0;        ///< while the cycle counter stood still
};

/// For summaries without time: it costs nothing.
struct no_time_sum {
    explicit no_time_sum(settings const&) {}
};

}  // namespace pt_dump
