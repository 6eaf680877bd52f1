// SPDX-License-Identifier: BSL-1.0
#pragma once

// The two forms of output of pt_dump: a listing or a summary, each as text or as JSON.

#include "options.hpp"
#include "time.hpp"
#include "../common/tool.hpp"
#include "../common/listing.hpp"
#include "../common/json.hpp"

#include <ptspec/ptspec.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace pt_dump {

using json::append_json_string;
using json::json_fields;

enum status : std::uint8_t { clean = 0, damaged = 1, failed = tool::failed, no_psb = 3 };

/// Buffered text for standard output.
class output {
public:
    /// Without a target, text is kept until another output writes it.
    explicit output(tool::output* to = nullptr) : to_{to} {}

    auto text() -> std::string& { return text_; }
    void line_done() {
        if (text_.size() >= 1 << 16 && to_ != nullptr) { flush(); }
    }
    /// Writes the text that another output has kept.
    void write(output& other) {
        flush();
        text_.swap(other.text_);
        flush();
    }
    void flush() {
        to_->write(text_);
        text_.clear();
    }
    /// The same, before a message on standard error.
    void flush_all() {
        flush();
        to_->flush();
    }

private:
    std::string text_{};
    tool::output* to_;
};

// ------------------------------------------------------------------------------------------- JSON

/// Appends the object of one item, without its end.
inline void append_json_item(std::string& out, trace::item const& item,
                             listing::totals const& sofar) {
    using trace::item_type;
    out += '{';
    json_fields fields{out};
    fields.number("offset", item.what == item_type::lost && !sofar.synced ? 0 : item.offset);
    switch (item.what) {
        case item_type::packet:
            fields.string("packet", listing::name(item.packet.kind()));
            fields.number("len", item.length);
            packet::visit(listing::fields_of{fields, item.ip}, item.packet);
            break;
        case item_type::unknown:
            fields.string("event", "unknown");
            fields.number("len", item.length);
            break;
        case item_type::synced:
        case item_type::resynced:
        case item_type::lost:
            fields.string("event", item.what == item_type::synced     ? "sync"
                                   : item.what == item_type::resynced ? "resync"
                                                                      : "nosync");
            fields.number("skipped", item.skipped);
            break;
        case item_type::damage:
            fields.string("event", "error");
            fields.string("code", listing::error_name(item.error));
            if (item.error == packet::error::truncated) { fields.number("left", item.skipped); }
            fields.string("rule", rule_id{item.broken}.letters);
            fields.string("text", listing::text_of(item.broken));
            break;
        case item_type::end:
        case item_type::need_input:
            fields.string("event", "end");
            fields.number("packets", sofar.packets);
            fields.number("errors", sofar.errors);
            fields.number("resyncs", sofar.resyncs);
            break;
    }
}

// ------------------------------------------------------------------------------------ reports

/// Appends the name of one of several files.
inline void append_file(output& out, settings const& how, std::string_view name) {
    if (!how.several) { return; }
    if (how.json) {
        out.text() += '{';
        json_fields fields{out.text()};
        fields.string("event", "file");
        fields.string("file", name);
        out.text() += "}\n";
    } else {
        out.text().append("# ").append(tool::one_line(name)) += '\n';
    }
}

/// Appends the line of a gap: `OFFSET !gap missing=N`.
inline void append_gap(output& out, settings const& how, trace_file::gap const& which) {
    auto const add = [&](auto fields) {
        if (which.missing) {
            fields.number("missing", *which.missing);
        } else {
            fields.nothing("missing");
        }
        if (!which.reason.empty()) { fields.string("aux", which.reason); }
    };
    if (how.json) {
        out.text() += '{';
        json_fields fields{out.text()};
        fields.number("offset", which.offset);
        fields.string("event", "gap");
        add(fields);
        out.text() += "}\n";
    } else {
        listing::append_offset(out.text(), which.offset);
        out.text() += " !gap";
        add(listing::text_fields{out.text()});
        out.text() += '\n';
    }
    out.line_done();
}

/// Appends the line of an AUX record with the flag PARTIAL: `OFFSET !partial size=N`.
inline void append_partial(output& out, settings const& how, trace_file::partial const& which) {
    if (how.json) {
        out.text() += '{';
        json_fields fields{out.text()};
        fields.number("offset", which.offset);
        fields.string("event", "partial");
        fields.number("size", which.size);
        out.text() += "}\n";
    } else {
        listing::append_offset(out.text(), which.offset);
        out.text() += " !partial";
        listing::text_fields{out.text()}.number("size", which.size);
        out.text() += '\n';
    }
    out.line_done();
}

/// A reader of packets that begins after a gap: at the next PSB.
inline auto packet_reader_after_gap(settings const& how) -> trace::reader<> {
    auto options = how.how;
    options.sync = true;
    return trace::reader<>{options};
}

/// Passes the packets and other items to a visitor.
template <class Reader, class Visitor>
void visit_all(Reader& reader, trace::packet_errata& errata, Visitor visitor) {
    if (!errata.is_needed()) {
        (void)reader.for_each(visitor);
        return;
    }
    for (auto item = errata.next(reader); item; item = errata.next(reader)) {
        auto const where = item.place();
        bool const is_packet = item.what == trace::item_type::packet;
        if constexpr (requires { visitor.pads(1U, where); }) {
            if (is_packet && item.packet.kind() == packet::kind::pad) {
                visitor.pads(1U, where);
                continue;
            }
        }
        if (is_packet) {
            packet::visit([&](auto const& packet) { visitor(packet, where); }, item.packet);
        } else {
            visitor(item);
        }
    }
}

/// Prints every item as a line.
class lister {
public:
    /// How many bytes a thread reads at a time. Their listing is about twenty times as large.
    static constexpr std::size_t piece_bytes = std::size_t{1} << 17;
    static constexpr bool is_splittable = true;

    lister(settings const& how, output& out, std::uint64_t begin = 0)
        : how_{how},
          out_{out},
          begin_{begin},
          totals_{.synced = how.is_after_gap},
          clock_{how.clock},
          errata_{how.quirks},
          places_{how.places} {}

    void begin(std::string_view name) { append_file(out_, how_, name); }
    [[nodiscard]] auto reader() const -> trace::reader<> { return trace::reader<>{how_.how}; }

    template <class Reader>
    void read(Reader& reader) {
        for (auto item = errata_.next(reader); item; item = errata_.next(reader)) {
            item.offset += begin_;
            if (how_.time) { time_ = add_to(clock_, item); }
            if (how_.places.is_on() && !is_in_place(item)) { continue; }
            totals_.count(item);
            bool const hidden = !how_.pads && item.what == trace::item_type::packet &&
                                item.packet.kind() == packet::kind::pad;
            if (!hidden) { print(item); }
        }
    }

    /// Continues with another reader after a gap. `begin` of the reader is the end of the gap.
    [[nodiscard]] auto reader_after(trace::reader<> const&, trace_file::gap const& which)
        -> trace::reader<> {
        append_gap(out_, how_, which);
        begin_ = which.offset;
        totals_.synced = true;  // a missing PSB is reported with its offset
        errata_ = trace::packet_errata{how_.quirks};
        clock_.lose();
        places_.lose();
        return packet_reader_after_gap(how_);
    }

    void tell(trace_file::partial const& which) { append_partial(out_, how_, which); }

    /// Adds the totals of the next segment of the trace.
    void add(lister const& next) { totals_.add(next.totals_); }

    [[nodiscard]] auto end(std::uint64_t bytes) -> status {
        print({.what = trace::item_type::end, .offset = bytes});
        bool const has_packets = totals_.packets + places_.left_out() != 0;
        how_.found->bytes += bytes;
        how_.found->printed += totals_.packets;
        how_.found->elsewhere += places_.left_out();
        return totals_.errors != 0 ? damaged : has_packets ? clean : no_psb;
    }

private:
    /// Follows the place. What is no packet is printed anyway.
    auto is_in_place(trace::item const& item) -> bool {
        if (item.what != trace::item_type::packet) {
            if (item.what != trace::item_type::unknown) { places_.lose(); }
            return true;
        }
        if (item.packet.kind() == packet::kind::ovf) { places_.lose(); }
        places_.take(item.packet);
        return places_.takes();
    }
    void print(trace::item const& item) {
        auto& out = out_.text();
        bool const has_rule = item.what == trace::item_type::damage && !how_.json;
        (how_.json ? append_json_item : listing::append_item)(out, item, totals_);
        if (has_rule) { listing::text_fields{out}.string("rule", rule_id{item.broken}.letters); }
        if (how_.time && item) {
            how_.json ? append_json_time(json_fields{out}, time_, how_.to_ns)
                      : append_text_time(out, time_, how_.to_ns);
        }
        if (!item && how_.places.is_on()) {
            auto const add = [&](auto fields) {
                fields.number("left_out", places_.left_out());
                fields.number("unknown", places_.unknown());
            };
            how_.json ? add(json_fields{out}) : add(listing::text_fields{out});
        }
        if (has_rule) { (out += ": ") += listing::text_of(item.broken); }
        out += how_.json ? "}\n" : "\n";
        out_.line_done();
    }

    settings const& how_;
    output& out_;
    std::uint64_t begin_;  ///< offset of the reader's first byte in the trace
    listing::totals totals_{};
    trace::clock clock_;
    trace::packet_errata errata_;
    tool::place_counter places_;
    trace::time time_{};
};

/// Counts packets, and prints a summary. `Times` is `time_sum` or `no_time_sum`.
template <class Times>
class summariser {
public:
    static constexpr std::size_t piece_bytes = std::size_t{1} << 20;
    static constexpr bool is_splittable = true;

    summariser(settings const& how, output& out, std::uint64_t begin = 0)
        : how_{how}, out_{out}, begin_{begin}, errata_{how.quirks}, times_{how} {}

    void begin(std::string_view name) { name_ = name; }
    [[nodiscard]] auto reader() const -> trace::reader<> { return trace::reader<>{how_.how}; }

    template <class Reader>
    void read(Reader& reader) {
        visit_all(reader, errata_, visitor{*this});
    }

    /// Continues with another reader after a gap.
    [[nodiscard]] auto reader_after(trace::reader<> const&, trace_file::gap const& which)
        -> trace::reader<> {
        begin_ = which.offset;
        gaps_ += 1;
        is_after_gap_ = psbs() != 0;
        errata_ = trace::packet_errata{how_.quirks};
        if constexpr (is_timed) { times_.add({.what = trace::item_type::resynced}); }
        return packet_reader_after_gap(how_);
    }

    void tell(trace_file::partial const&) { partials_ += 1; }

    /// Adds the counts of the next segment of the trace.
    void add(summariser const& next) {
        if (next.psbs() != 0) {
            next_psb(next.first_psb_, psbs() == 0);
            last_psb_ = next.last_psb_;
            nearest_ = std::min(nearest_, next.nearest_);
            farthest_ = std::max(farthest_, next.farthest_);
        }
        sum_ += next.sum_;
        for (unsigned i = 0; i < std::size(by_code_); ++i) { by_code_[i] += next.by_code_[i]; }
        skipped_ += next.skipped_;
        lowest_ip_ = std::min(lowest_ip_, next.lowest_ip_);
        highest_ip_ = std::max(highest_ip_, next.highest_ip_);
    }

    [[nodiscard]] auto end(std::uint64_t bytes) -> status {
        if constexpr (is_timed) { times_.finish(); }
        how_.json ? print_json(bytes) : print_text(bytes);
        return sum_.errors != 0 ? damaged : sum_.total() != 0 ? clean : no_psb;
    }

private:
    static constexpr bool is_timed = std::is_same_v<Times, time_sum>;

    struct visitor {
        summariser& to;

        template <packet::packet_type Packet>
        void operator()(Packet const& packet, trace::packet_place where) const {
            to.sum_.add(Packet::about.id, where.length);
            if constexpr (is_timed) { to.times_.add(packet, where); }
            if constexpr (requires { packet.has_ip(); }) {
                if (packet.has_ip()) {
                    to.lowest_ip_ = std::min(to.lowest_ip_, where.ip);
                    to.highest_ip_ = std::max(to.highest_ip_, where.ip);
                }
            } else if constexpr (std::is_same_v<Packet, packet::psb>) {
                to.count_psb(to.begin_ + where.offset);
            }
        }
        void operator()(trace::item const& other) const {
            to.sum_.add(other);
            if (other.what == trace::item_type::damage) {
                to.by_code_[static_cast<unsigned>(other.error)] += 1;
            }
            to.skipped_ += other.skipped;
            if constexpr (is_timed) { to.times_.add(other); }
        }
    };

    void count_psb(std::uint64_t offset) {
        next_psb(offset, psbs() == 1);
        last_psb_ = offset;
    }
    /// Counts the distance to a PSB from the one before it, unless a gap is between them.
    void next_psb(std::uint64_t offset, bool is_first) {
        if (is_first) {
            first_psb_ = offset;
        } else if (is_after_gap_) {
            first_psb_ += offset - last_psb_;
            separated_ += 1;
        } else {
            count_spacing(offset - last_psb_);
        }
        is_after_gap_ = false;
    }
    void count_spacing(std::uint64_t bytes) {
        nearest_ = std::min(nearest_, bytes);
        farthest_ = std::max(farthest_, bytes);
    }

    [[nodiscard]] auto psbs() const -> std::uint64_t { return sum_.of(packet::kind::psb); }
    [[nodiscard]] auto mean_spacing() const -> std::uint64_t {
        return (last_psb_ - first_psb_) / spacings();
    }
    [[nodiscard]] auto spacings() const -> std::uint64_t {
        return psbs() == 0 ? 0 : psbs() - 1 - separated_;
    }

    void print_text(std::uint64_t bytes) {
        auto& out = out_.text();
        auto const line = [&](std::string_view name, std::uint64_t value) {
            char buffer[80];
            std::snprintf(buffer, sizeof buffer, "%-12.*s %12llu\n", static_cast<int>(name.size()),
                          name.data(), static_cast<unsigned long long>(value));
            out += buffer;
        };
        if (how_.several) { out.append("# ").append(tool::one_line(name_)) += '\n'; }
        line("bytes", bytes);
        line("packets", sum_.total());
        line("skipped", static_cast<std::uint64_t>(skipped_));
        line("errors", sum_.errors);
        for (auto const why : codes) {
            if (count(why) != 0) {
                line(std::string{"  "}.append(listing::error_name(why)), count(why));
            }
        }
        line("resyncs", sum_.resyncs);
        if (gaps_ != 0) { line("gaps", gaps_); }
        if (partials_ != 0) { line("partial", partials_); }
        char buffer[120];
        if (spacings() != 0) {
            std::snprintf(buffer, sizeof buffer,
                          "psb spacing  min %llu, mean %llu, max %llu bytes\n",
                          static_cast<unsigned long long>(nearest_),
                          static_cast<unsigned long long>(mean_spacing()),
                          static_cast<unsigned long long>(farthest_));
            out += buffer;
        }
        if (lowest_ip_ <= highest_ip_) {
            std::snprintf(buffer, sizeof buffer, "ip           0x%llx to 0x%llx\n",
                          static_cast<unsigned long long>(lowest_ip_),
                          static_cast<unsigned long long>(highest_ip_));
            out += buffer;
        }
        if constexpr (is_timed) { print_times(out); }
        if (sum_.total() != 0) { out += "\ntype              packets        bytes\n"; }
        for (unsigned i = 0; i < packet::kind_count; ++i) {
            if (sum_.packets[i] == 0) { continue; }
            auto const name = listing::name(static_cast<packet::kind>(i));
            std::snprintf(buffer, sizeof buffer, "%-12.*s %12llu %12llu\n",
                          static_cast<int>(name.size()), name.data(),
                          static_cast<unsigned long long>(sum_.packets[i]),
                          static_cast<unsigned long long>(sum_.bytes[i]));
            out += buffer;
        }
    }

    void print_json(std::uint64_t bytes) {
        auto& out = out_.text();
        out += '{';
        json_fields fields{out};
        fields.string("file", name_);
        fields.number("bytes", bytes);
        fields.number("packets", sum_.total());
        fields.number("skipped", skipped_);
        fields.number("errors", sum_.errors);
        fields.number("resyncs", sum_.resyncs);
        if (gaps_ != 0) { fields.number("gaps", gaps_); }
        if (partials_ != 0) { fields.number("partial", partials_); }
        fields.open("errors_by_code");
        for (auto const why : codes) {
            if (count(why) != 0) { fields.number(listing::error_name(why), count(why)); }
        }
        out += '}';
        fields.open("by_type");
        for (unsigned i = 0; i < packet::kind_count; ++i) {
            if (sum_.packets[i] == 0) { continue; }
            fields.open(listing::name(static_cast<packet::kind>(i)));
            fields.number("packets", sum_.packets[i]);
            fields.number("bytes", sum_.bytes[i]);
            out += '}';
        }
        out += '}';
        if (spacings() != 0) {
            fields.open("psb_spacing");
            fields.number("min", nearest_);
            fields.number("mean", mean_spacing());
            fields.number("max", farthest_);
            out += '}';
        } else {
            fields.nothing("psb_spacing");
        }
        if (lowest_ip_ <= highest_ip_) {
            fields.open("ip");
            fields.hex("lowest", lowest_ip_);
            fields.hex("highest", highest_ip_);
            out += '}';
        } else {
            fields.nothing("ip");
        }
        if constexpr (is_timed) { add_times(fields); }
        out += "}\n";
    }

    void print_times(std::string& out) const {
        char buffer[160];
        auto const line = [&](char const* name, char const* unit, auto value) {
            std::snprintf(buffer, sizeof buffer, "%-12s %12lld%s\n", name,
                          static_cast<long long>(value), unit);
            out += buffer;
        };
        if (times_.has_time()) {
            std::snprintf(buffer, sizeof buffer, "tsc          0x%llx to 0x%llx\n",
                          static_cast<unsigned long long>(times_.first()),
                          static_cast<unsigned long long>(times_.last()));
            out += buffer;
            if (how_.to_ns.is_known()) {
                std::snprintf(buffer, sizeof buffer, "time         %llu to %llu ns\n",
                              static_cast<unsigned long long>(how_.to_ns.ns(times_.first())),
                              static_cast<unsigned long long>(how_.to_ns.ns(times_.last())));
                out += buffer;
            }
            line("duration", " ticks", times_.duration());
            line("  traced", " ticks", times_.traced());
            line("  not traced", " ticks", times_.untraced());
            line("  unknown", " ticks", times_.lost());
        }
        line("cycles", "", times_.cycles());
        if (times_.frequency() != 0) {
            std::snprintf(buffer, sizeof buffer, "frequency    %7llu.%04llu of the TSC's\n",
                          static_cast<unsigned long long>(times_.frequency() / 10'000),
                          static_cast<unsigned long long>(times_.frequency() % 10'000));
            out += buffer;
        }
        line("missing mtcs", "", times_.missing_mtcs());
        line("overflows", "", times_.overflows());
    }
    void add_times(json_fields& fields) const {
        fields.open("time");
        if (times_.has_time()) {
            fields.hex("first", times_.first());
            fields.hex("last", times_.last());
            if (how_.to_ns.is_known()) {
                fields.number("first_ns", how_.to_ns.ns(times_.first()));
                fields.number("last_ns", how_.to_ns.ns(times_.last()));
            }
            fields.number("duration", times_.duration());
            fields.number("traced", times_.traced());
            fields.number("untraced", times_.untraced());
            fields.number("unknown", times_.lost());
        } else {
            fields.nothing("first");
            fields.nothing("last");
        }
        fields.number("cycles", times_.cycles());
        if (times_.frequency() != 0) {
            fields.begin("frequency");
            char buffer[40];
            std::snprintf(buffer, sizeof buffer, "%llu.%04llu",
                          static_cast<unsigned long long>(times_.frequency() / 10'000),
                          static_cast<unsigned long long>(times_.frequency() % 10'000));
            out_.text() += buffer;
        } else {
            fields.nothing("frequency");
        }
        fields.number("missing_mtcs", times_.missing_mtcs());
        fields.number("overflows", times_.overflows());
        out_.text() += '}';
    }

    static constexpr packet::error codes[] = {packet::error::bad_opcode, packet::error::bad_packet,
                                              packet::error::truncated};

    /// The number of errors with this name in the listing.
    [[nodiscard]] auto count(packet::error why) const -> std::uint64_t {
        auto const plain = by_code_[static_cast<unsigned>(why)];
        return why == packet::error::bad_packet
                   ? plain + by_code_[static_cast<unsigned>(packet::error::reserved)]
                   : plain;
    }

    settings const& how_;
    output& out_;
    std::uint64_t begin_;  ///< offset of the reader's first byte in the trace
    std::string name_{};
    trace::packet_counts sum_{};
    std::uint64_t by_code_[5] = {};
    std::int64_t skipped_ = 0;
    std::uint64_t lowest_ip_ = ~std::uint64_t{0};
    std::uint64_t highest_ip_ = 0;
    std::uint64_t gaps_ = 0;
    std::uint64_t partials_ = 0;
    bool is_after_gap_ = false;    ///< no PSB since the last gap, but some before it
    std::uint64_t separated_ = 0;  ///< pairs of PSBs that a gap separates
    std::uint64_t last_psb_ = 0;
    std::uint64_t first_psb_ = 0;
    std::uint64_t nearest_ = ~std::uint64_t{0};
    std::uint64_t farthest_ = 0;
    trace::packet_errata errata_;
    [[no_unique_address]] Times times_;
};

}  // namespace pt_dump
