// SPDX-License-Identifier: BSL-1.0
#pragma once

// pt_dump --check: the violations of the rules that a stream must obey.

#include "report.hpp"

#include <ptspec/engine/check_options.hpp>
#include <ptspec/trace/check/checker.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pt_dump {

/// The kinds that a name selects; none if there is no such name.
inline auto kinds_of(std::string_view name) -> std::vector<engine::model_kind> {
    using engine::model_kind;
    if (name == "auto") {
        return {model_kind::skylake, model_kind::icelake, model_kind::broadwell, model_kind::atom};
    }
    for (auto const& one : engine::model_kinds) {
        if (name == std::string_view{one.name.data(), one.name.size()}) { return {one.which}; }
    }
    return {};
}

/// Prints the violations of a stream, and notes, which do not count.
class stream_checker {
public:
    static constexpr std::size_t piece_bytes = std::size_t{1} << 20;
    /// Rules hold across PSBs.
    static constexpr bool is_splittable = false;

    stream_checker(settings const& how, output& out) : how_{how}, out_{out}, errata_{how.quirks} {
        auto const kinds = how.kinds.empty() ? kinds_of("auto") : how.kinds;
        found_.reserve(kinds.size());  // the checkers point into it
        for (auto const kind : kinds) {
            found_.push_back({kind});
            checkers_.emplace_back(engine::check_options_of(kind), recorder{&found_.back()});
        }
    }
    stream_checker(stream_checker const&) = delete;
    auto operator=(stream_checker const&) -> stream_checker& = delete;

    void begin(std::string_view name) { append_file(out_, how_, name); }
    [[nodiscard]] auto reader() const -> trace::reader<> { return trace::reader<>{how_.how}; }
    [[nodiscard]] auto reader_after(trace::reader<> const&, trace_file::gap const& which)
        -> trace::reader<> {
        for (auto& one : checkers_) { one.restart(); }
        errata_ = trace::packet_errata{how_.quirks};
        begin_ = which.offset;
        marks_.push_back({which.offset, which, {}});
        return packet_reader_after_gap(how_);
    }
    void tell(trace_file::partial const& which) { marks_.push_back({which.offset, {}, which}); }

    template <class Reader>
    void read(Reader& reader) {
        visit_all(reader, errata_, visitor{*this});
    }

    [[nodiscard]] auto end(std::uint64_t bytes) -> status {
        auto& best = *std::min_element(
            found_.begin(), found_.end(),
            [](findings const& one, findings const& two) { return one.count < two.count; });
        best.first.insert(best.first.end(), best.first_notes.begin(), best.first_notes.end());
        std::sort(best.first.begin(), best.first.end(),
                  [](trace::violation const& one, trace::violation const& two) {
                      return one.offset != two.offset ? one.offset < two.offset
                                                      : one.broken < two.broken;
                  });
        auto next = marks_.begin();
        auto const print_marks = [&](std::uint64_t up_to) {
            for (; next != marks_.end() && next->offset <= up_to; ++next) {
                if (next->missing) { append_gap(out_, how_, *next->missing); }
                if (next->off) { append_partial(out_, how_, *next->off); }
            }
        };
        for (auto const& one : best.first) {
            print_marks(one.offset);
            print(one);
        }
        print_marks(bytes);
        print_end(best, bytes);
        return best.count != 0 ? damaged : is_synced_ ? clean : no_psb;
    }

private:
    static constexpr std::size_t max_printed = 100;

    /// What the file says about the bytes from an offset on.
    struct mark {
        std::uint64_t offset = 0;
        std::optional<trace_file::gap> missing{};
        std::optional<trace_file::partial> off{};
    };
    /// The violations if the processor is of this kind.
    struct findings {
        engine::model_kind kind{};
        std::uint64_t count = 0;
        std::vector<trace::violation> first{};
        std::vector<trace::violation> first_notes{};
    };
    struct recorder {
        findings* to;

        void operator()(trace::violation const& one) const {
            auto& first = one.is_note ? to->first_notes : to->first;
            if (first.size() < max_printed) { first.push_back(one); }
            to->count += one.is_note ? 0 : 1;
        }
    };
    /// Passes everything to all checkers.
    struct visitor {
        stream_checker& to;

        template <packet::packet_type Packet>
        void operator()(Packet const& packet, trace::packet_place where) const {
            where.offset += to.begin_;
            to.is_synced_ = true;
            for (auto& one : to.checkers_) { one(packet, where); }
        }
        void operator()(trace::item other) const {
            other.offset += to.begin_;
            for (auto& one : to.checkers_) { one(other); }
        }
        void pads(unsigned count, trace::packet_place where) const {
            where.offset += to.begin_;
            for (auto& one : to.checkers_) { one.pads(count, where); }
        }
    };

    /// The packet's name; empty for damage.
    static auto name_of(trace::violation const& one) -> std::string_view {
        return one.kind == packet::kind::none ? std::string_view{} : listing::name(one.kind);
    }
    static auto name_of(engine::model_kind kind) -> std::string_view {
        auto const name = engine::info_of(kind).name;
        return {name.data(), name.size()};
    }

    void print(trace::violation const& one) {
        auto& out = out_.text();
        auto const name = name_of(one);
        if (how_.json) {
            out += '{';
            json_fields fields{out};
            fields.number("offset", one.offset);
            if (name.empty()) {
                fields.nothing("packet");
            } else {
                fields.string("packet", name);
            }
            if (one.is_note) { fields.number("note", 1); }
            fields.string("rule", rule_id{one.broken}.letters);
            fields.string("text", listing::text_of(one.broken));
            out += "}\n";
        } else {
            listing::append_offset(out, one.offset);
            (out += ' ') += name.empty() ? "!error" : name;
            out += one.is_note ? " note" : "";
            ((out += ' ') += rule_id{one.broken}.letters) += ": ";
            (out += listing::text_of(one.broken)) += '\n';
        }
        out_.line_done();
    }
    void print_end(findings const& of, std::uint64_t bytes) {
        auto& out = out_.text();
        if (how_.json) {
            out += '{';
            json_fields fields{out};
            fields.number("offset", bytes);
            fields.string("event", "end");
            fields.number("violations", of.count);
            fields.string("kind", name_of(of.kind));
            out += "}\n";
        } else {
            listing::append_offset(out, bytes);
            (out += " !end violations=") += std::to_string(of.count);
            ((out += " kind=") += name_of(of.kind)) += '\n';
        }
        out_.line_done();
    }

    settings const& how_;
    output& out_;
    std::uint64_t begin_ = 0;  ///< offset of the reader's first byte in the trace
    trace::packet_errata errata_;
    std::vector<mark> marks_{};
    std::vector<findings> found_{};
    std::vector<trace::checker<recorder>> checkers_{};
    bool is_synced_ = false;
};

}  // namespace pt_dump
