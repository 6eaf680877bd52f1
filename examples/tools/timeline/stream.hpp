// SPDX-License-Identifier: BSL-1.0
#pragma once

// Everything that the page shows of one trace.

#include "slices.hpp"
#include "../common/event_fields.hpp"
#include "../common/listing.hpp"
#include "../common/place_filter.hpp"

#include <ptspec/print/text.hpp>
#include <ptspec/base/rule.hpp>
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/events.hpp>
#include <ptspec/trace/packet_counts.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace timeline {

/// How much of each trace is kept.
struct limits {
    std::size_t slices = std::size_t{1} << 15;
    std::size_t listed = 6000;    ///< events of each lane, and changes of each state
    std::size_t contexts = 1000;  ///< different values of CR3
};

/// The limits for each of `streams` traces. The page stays below 5 MB for up to 60 traces.
constexpr auto limits_of(std::size_t streams) -> limits {
    limits one;
    std::size_t const count = streams == 0 ? 1 : streams;
    while (one.slices > 256 && one.slices * count > std::size_t{1} << 15) { one.slices /= 2; }
    one.listed = std::clamp(one.listed / count, std::size_t{24}, one.listed);
    one.contexts = std::clamp(std::size_t{4000} / count, std::size_t{16}, one.contexts);
    return one;
}

/// The changes of a state: the first `limits::listed` of them.
struct changes {
    struct change {
        std::uint64_t offset;
        std::uint64_t time;
        std::uint64_t value;
    };
    std::vector<change> first{};
    std::uint64_t count = 0;
    std::uint64_t now = 0;

    void set(std::uint64_t value, trace::event const& at, std::size_t most) {
        if (value == now && count != 0) { return; }
        now = value;
        count += 1;
        if (first.size() < most) { first.push_back({at.offset, at.when.tsc, value}); }
    }
};

/// An event that the page lists.
struct listed_event {
    trace::event_type what;
    std::uint64_t offset;
    std::uint64_t time;
    std::string ip;    ///< hexadecimal; empty: unknown
    std::string to;    ///< hexadecimal; empty: unknown
    std::string text;  ///< the fields of the packet
};

/// The fields of an event as text, but for its IPs, which the page shows elsewhere.
struct fields_without_ips : listing::text_fields {
    explicit fields_without_ips(std::string& to) : listing::text_fields{to} {}

    void hex(std::string_view name, std::uint64_t value) {
        if (name != "ip" && name != "to") { listing::text_fields::hex(name, value); }
    }
    void nothing(std::string_view name) {
        if (name != "ip" && name != "to") { listing::text_fields::nothing(name); }
    }
};

/// Reads a trace in pieces, and summarises it.
class stream {
public:
    /// Without `sync` it reads from the first byte, not from the first PSB.
    stream(std::string name, trace::clock_options const& how, limits most, bool sync,
           tool::place_filter const& places = {})
        : name_{std::move(name)},
          places_{places},
          most_{most},
          how_{how},
          sync_{sync},
          reader_{trace::clock{how}, how.quirks, {}, {.sync = sync}},
          counter_{trace::reader_options{.sync = sync}},
          slices_{most.slices} {}

    /// Reads the next bytes of the trace, at least one.
    void feed(byte_view bytes) {
        bytes_ += bytes.size();
        (void)counter_.feed(bytes);
        packets_ = counter_.scan(packets_);
        (void)reader_.feed(bytes);
        read();
    }
    /// Counts bytes that are missing here: tracing is unknown up to the next PSB. `reason` are
    /// flags of an AUX record.
    void skip_gap(std::string_view reason) {
        gaps_ += 1;
        places_.lose();
        if (!reason.empty()) { told_gaps_ += 1; }
        end_part();
        counter_ = trace::reader<>{};
        auto clock = reader_.clock();
        clock.lose();
        reader_ = trace::event_reader<trace::clock>{clock, how_.quirks};
        begin_ = bytes_;
        advance(bytes_, last_time_, reader_.clock().cycles());
        trace::event here;
        here.offset = bytes_;
        here.when.tsc = last_time_;
        trace(unknown, here);
    }
    /// Tracing was off for a while in the next bytes.
    void tell_partial() { partials_ += 1; }
    /// Call this after the last byte.
    void finish() {
        end_part();
        advance(bytes_, last_time_, reader_.clock().cycles());
        auto const [first, last] = slices_.finish(bytes_, last_time_);
        first_time_ = first;
        last_time_ = last;
        is_timed_ = reader_.clock().is_absolute() && last > first;
        for (auto& one : events_) { one.time = slices_.time_of(one.time, one.offset, last); }
        for (auto* state : {&tracing_, &context_, &ratio_, &power_}) {
            for (auto& one : state->first) {
                one.time = slices_.time_of(one.time, one.offset, last);
            }
        }
    }

    [[nodiscard]] auto name() const -> std::string const& { return name_; }
    /// The processor or the thread; empty: the trace is a file.
    std::string label{};
    [[nodiscard]] auto bytes() const -> std::uint64_t { return bytes_; }
    [[nodiscard]] auto packets() const -> trace::packet_counts const& { return packets_; }
    [[nodiscard]] auto count(trace::event_type what) const -> std::uint64_t {
        return counts_[static_cast<std::size_t>(what)];
    }
    [[nodiscard]] auto lane_count(std::size_t lane) const -> std::uint64_t {
        return lane_counts_[lane];
    }
    [[nodiscard]] auto conditional_branches() const -> std::uint64_t { return conditional_; }
    [[nodiscard]] auto skipped() const -> std::uint64_t { return skipped_; }
    [[nodiscard]] auto cycles() const -> std::uint64_t { return reader_.clock().cycles(); }
    [[nodiscard]] auto unused_cycs() const -> std::uint64_t {
        return reader_.clock().unused_cycs();
    }
    /// How often the time went back, as after bytes that were misread as a TSC.
    [[nodiscard]] auto times_back() const -> std::uint64_t { return times_back_; }
    /// The gaps of the file, the gaps that an AUX record reports, and the AUX records that say that
    /// tracing was off for a while.
    [[nodiscard]] auto gaps() const -> std::uint64_t { return gaps_; }
    [[nodiscard]] auto told_gaps() const -> std::uint64_t { return told_gaps_; }
    [[nodiscard]] auto partials() const -> std::uint64_t { return partials_; }
    [[nodiscard]] auto has_psb() const -> bool { return packets_.of(packet::kind::psb) != 0; }
    /// The events have times: the trace has a TSC, and time passes.
    [[nodiscard]] auto is_timed() const -> bool { return is_timed_; }
    /// True if only TSC packets give times, because MTCs and CYCs need numbers that are not known.
    /// Between TSC packets the order of events is known, but not their times.
    [[nodiscard]] auto is_only_ordered() const -> bool {
        auto const mtcs = packets_.of(packet::kind::mtc);
        auto const cycs = packets_.of(packet::kind::cyc);
        bool const mtcs_count = mtcs != 0 && how_.tsc_numerator != 0;
        bool const cycs_count = cycs != 0 && unused_cycs() * 2 <= cycs;
        return is_timed_ && mtcs + cycs != 0 && !mtcs_count && !cycs_count;
    }
    /// What --only, --vmcs and --cr3 left out.
    [[nodiscard]] auto places() const -> tool::place_counter const& { return places_; }
    /// The events and branches there.
    [[nodiscard]] auto events_there() const -> std::uint64_t { return taken_; }
    /// Something can be decoded.
    [[nodiscard]] auto is_read() const -> bool { return has_psb() || !sync_; }
    [[nodiscard]] auto first_time() const -> std::uint64_t { return first_time_; }
    [[nodiscard]] auto last_time() const -> std::uint64_t { return last_time_; }
    [[nodiscard]] auto parts() const -> slices const& { return slices_; }
    [[nodiscard]] auto events() const -> std::vector<listed_event> const& { return events_; }
    /// The values of CR3, with bit 0 set in VMX non-root operation. Number N is at N - 1.
    [[nodiscard]] auto contexts() const -> std::vector<std::uint64_t> const& { return contexts_; }
    /// Off 0, on 1, unknown 2.
    [[nodiscard]] auto tracing() const -> changes const& { return tracing_; }
    /// Numbers of `contexts()`; 0 for those beyond the limit.
    [[nodiscard]] auto context() const -> changes const& { return context_; }
    /// The ratio of the core clock to the bus clock.
    [[nodiscard]] auto ratio() const -> changes const& { return ratio_; }
    /// 0: executes; 1: the clock is stopped; otherwise the C-state of PWRE plus 2.
    [[nodiscard]] auto power() const -> changes const& { return power_; }

private:
    using type = trace::event_type;

    enum tracing_state : std::uint8_t { off = 0, on = 1, unknown = 2 };

    void read() {
        for (auto one = reader_.next(); one; one = reader_.next()) {
            one.offset += begin_;
            follow(one.what);
            places_.take(one);
            add(one);
        }
    }
    void follow(type what) {
        bool const is_lost = what == type::damage || what == type::resynced || what == type::lost ||
                             what == type::overflow;
        if (is_lost) { places_.lose(); }
    }
    /// Whether an event is wanted, if it happened in a place.
    auto takes(type what) -> bool {
        bool const is_anywhere = what == type::damage || what == type::note ||
                                 what == type::synced || what == type::resynced ||
                                 what == type::lost || what == type::overflow;
        if (is_anywhere) { return true; }
        bool const is_taken = places_.takes();
        taken_ += is_taken ? 1 : 0;
        return is_taken;
    }
    /// Reads what waits for more bytes.
    void end_part() {
        counter_.finish();
        packets_ = counter_.scan(packets_);
        reader_.finish();
        read();
    }

    /// What passed up to this point belongs to the last event.
    void advance(std::uint64_t offset, std::uint64_t time, std::uint64_t cycles) {
        auto& before = slices_.at(last_offset_);
        if (cycles > last_cycles_) {
            before.cycles += cycles - last_cycles_;
            last_cycles_ = cycles;
        }
        if (tracing_.now == on) {
            if (time > last_time_) { before.on_ticks += time - last_time_; }
            slices_.add_traced(last_offset_, offset);
        }
        last_offset_ = offset > last_offset_ ? offset : last_offset_;
        last_time_ = time;
    }

    void add(trace::event one) {
        set_time(one);
        advance(one.offset, one.when.tsc, one.when.cycles);
        auto& here = slices_.at(one.offset);
        if (!here.has_time && has_time_) {
            here.has_time = true;
            here.time = one.when.tsc;
        }
        counts_[static_cast<std::size_t>(one.what)] += 1;
        switch (one.what) {
            case type::branches: {
                auto const count = takes(type::branches) ? one.branches().count : 0;
                here.conditional += count;
                conditional_ += count;
                return trace(one.enabled == trace::tracing::unknown ? unknown : on, one);
            }
            case type::indirect_branch:
                here.indirect += takes(type::indirect_branch) ? 1 : 0;
                return trace(on, one);
            case type::enabled:
            case type::resumed: trace(on, one); break;
            case type::disabled:
            case type::async_disabled:
            case type::trace_stop: trace(off, one); break;
            case type::psb: trace(one.has_ip ? on : off, one); break;
            case type::overflow:
            case type::damage:
            case type::lost: trace(unknown, one); break;
            case type::paging: set_context(one, here); break;
            case type::frequency:
                ratio_.set(one.packet.as<packet::cbr>().get<packet::cbr::CoreBusRatio>(), one,
                           most_.listed);
                break;
            case type::exstop:
                power_.set(power_.now == 0 ? 1 : power_.now, one, most_.listed);
                break;
            case type::pwre:
                power_.set(one.packet.as<packet::pwre>().get<packet::pwre::state>() + 2, one,
                           most_.listed);
                break;
            case type::pwrx: power_.set(0, one, most_.listed); break;
            default: break;
        }
        skipped_ += one.what == type::synced || one.what == type::resynced || one.what == type::lost
                        ? one.skipped
                        : 0;
        auto const lane = lane_of(one.what);
        if (!takes(one.what)) { return; }
        here.events[static_cast<std::size_t>(lane)] += 1;
        auto& listed = lane_counts_[static_cast<std::size_t>(lane)];
        listed += 1;
        if (listed <= most_.listed) { list(one); }
    }

    /// Events before the first TSC have no time: they get that of the first TSC. Estimates of a
    /// clock may go back by little; a time that goes back by more follows a wrong one.
    void set_time(trace::event& one) {
        constexpr std::uint64_t little = std::uint64_t{1} << 20;
        auto& now = one.when.tsc;
        if (one.when.is_guest) {
            now = last_time_;  // it is no time of the host
            return;
        }
        if (!has_time_) {
            has_time_ = one.when.is_absolute() && now != 0;
            last_time_ = has_time_ ? now : 0;
        }
        if (!has_time_) {
            now = 0;
        } else if (now < last_time_) {
            if (last_time_ - now < little) {
                now = last_time_;
            } else {
                times_back_ += 1;
            }
        }
    }
    void trace(tracing_state now, trace::event const& one) { tracing_.set(now, one, most_.listed); }
    void set_context(trace::event const& one, slice& here) {
        auto const pip = one.packet.as<packet::pip>();
        std::uint64_t const key = pip.get<packet::pip::CR3>() |
                                  (pip.get<packet::pip::NR>() ? 1 : 0);
        auto found = context_numbers_.find(key);
        if (found == context_numbers_.end() && contexts_.size() < most_.contexts) {
            contexts_.push_back(key);
            found = context_numbers_.emplace(key, contexts_.size()).first;
        }
        auto const number = found == context_numbers_.end() ? 0 : found->second;
        if (number != 0) { here.context = static_cast<std::uint32_t>(number); }
        context_.set(number, one, most_.listed);
    }
    void list(trace::event const& one) {
        listed_event next{one.what, one.offset, one.when.tsc, {}, {}, {}};
        if (one.has_ip) { append_hex(next.ip, one.ip); }
        if (one.has_to) { append_hex(next.to, one.to); }
        switch (one.what) {
            case type::damage: {
                auto const text = describe(one.broken);
                next.text = std::string{rule_id{one.broken}.letters} + ": ";
                next.text.append(text.data(), text.size());
                break;
            }
            case type::synced:
            case type::resynced:
            case type::lost: next.text = "skipped=" + std::to_string(one.skipped); break;
            case type::enabled:
            case type::disabled:
            case type::async_branch:
            case type::async_disabled:
            case type::resumed:
            case type::psb:
            case type::unknown: break;
            default: {
                fields_without_ips fields{next.text};
                events::add_fields(fields, one);
                if (!next.text.empty()) { next.text.erase(0, 1); }
                if (one.is_status) { next.text += " (PSB+)"; }
            }
        }
        events_.push_back(std::move(next));
    }
    static void append_hex(std::string& out, std::uint64_t value) {
        char digits[16];
        out.append(digits, std::to_chars(digits, digits + sizeof digits, value, 16).ptr);
    }

    std::string name_;
    tool::place_counter places_;
    limits most_;
    trace::clock_options how_;
    bool sync_;
    trace::event_reader<trace::clock> reader_;
    trace::reader<> counter_;
    std::uint64_t begin_ = 0;  ///< offset of the readers' first byte in the trace
    trace::packet_counts packets_{};
    slices slices_;
    std::uint64_t bytes_ = 0;
    std::uint64_t counts_[event_type_count] = {};
    std::uint64_t lane_counts_[lanes] = {};
    std::uint64_t conditional_ = 0;
    std::uint64_t taken_ = 0;  ///< events in the wanted places
    std::uint64_t skipped_ = 0;
    std::uint64_t gaps_ = 0;
    std::uint64_t told_gaps_ = 0;
    std::uint64_t partials_ = 0;
    bool has_time_ = false;
    bool is_timed_ = false;
    std::uint64_t first_time_ = 0;
    std::uint64_t last_time_ = 0;
    std::uint64_t times_back_ = 0;
    std::uint64_t last_offset_ = 0;
    std::uint64_t last_cycles_ = 0;
    changes tracing_{.now = unknown};
    changes context_{};
    changes ratio_{};
    changes power_{};
    std::vector<std::uint64_t> contexts_{};
    std::map<std::uint64_t, std::size_t> context_numbers_{};
    std::vector<listed_event> events_{};
};

}  // namespace timeline
