// SPDX-License-Identifier: BSL-1.0
#pragma once

// The calls of a trace as data of the page.

#include "page.hpp"
#include "../common/calls/walk.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace timeline {

/// Appends the calls of a trace. `name_of(thread, bar)` is the name of a bar.
template <class NameOf>
class call_lanes {
public:
    call_lanes(std::string& out, stream const& of, calls::recorder const& from,
               NameOf const& name_of)
        : out_{out}, of_{of}, from_{from}, name_of_{name_of} {}

    void append() {
        auto const& all = from_.result();
        out_ += '{';
        json::json_fields fields{out_};
        fields.number("instructions", from_.instructions());
        fields.number("gaps", from_.gaps());
        fields.number("resolution", all.resolution());
        fields.number("left_out", from_.left_out());
        fields.number("threads_left_out", from_.threads_left_out());
        fields.begin("lanes");
        out_ += '[';
        auto const end = all.all().end();
        for (auto first = all.all().begin(); first != end;) {
            auto const last = std::find_if(
                first, end, [&](calls::bar const& one) { return one.lane != first->lane; });
            if (out_.back() != '[') { out_ += ','; }
            append_lane({first, last});
            first = last;
        }
        out_ += ']';
        fields.begin("names");
        out_ += '[';
        for (auto const& one : names_) {
            if (out_.back() != '[') { out_ += ','; }
            json::append_json_string(out_, one);
        }
        out_ += "]}";
    }

private:
    using bar = calls::bar;
    using lane_bars = std::vector<bar>;

    template <class Value>
    void add_column(json::json_fields& fields, std::string_view name, lane_bars const& all,
                    Value const& value) {
        column to{fields, out_, name};
        for (auto const& one : all) { to.add(value(one)); }
    }
    void append_lane(lane_bars const& all) {
        auto const by_level = [](bar const& one, bar const& two) { return one.level < two.level; };
        auto const [low, high] = std::minmax_element(all.begin(), all.end(), by_level);
        auto const lowest = low->level;
        auto const thread = from_.threads()[all.front().lane];
        out_ += '{';
        json::json_fields fields{out_};
        fields.string("label", calls::label_of(thread));
        fields.number("levels", high->level - lowest + 1);
        fields.number("bars", all.size());
        add_column(fields, "level", all,
                   [&](bar const& one) { return static_cast<std::uint64_t>(one.level - lowest); });
        add_column(fields, "name", all,
                   [&](bar const& one) { return number_of(name_of_(thread, one)); });
        add_column(fields, "kind", all, [](bar const& one) {
            return static_cast<std::uint64_t>(one.kind) | (one.is_mixed ? 8U : 0U) |
                   (one.is_unsure ? 16U : 0U);
        });
        add_column(fields, "count", all, [](bar const& one) { return one.count; });
        add_column(fields, "instructions", all, [](bar const& one) { return one.instructions; });
        add_places(fields, "offset", "bytes", all,
                   [](calls::moment const& at) { return at.offset; });
        if (of_.is_timed()) {
            add_places(fields, "time", "ticks", all,
                       [this](calls::moment const& at) { return time_of(at); });
        }
        out_ += '}';
    }
    template <class Place>
    void add_places(json::json_fields& fields, std::string_view begins, std::string_view sizes,
                    lane_bars const& all, Place const& place) {
        std::vector<std::uint64_t> first;
        {
            ascending steps{0};
            std::uint64_t at = 0;
            column to{fields, out_, begins};
            for (auto const& one : all) {
                auto const step = steps.step(place(one.begin));
                to.add(step);
                first.push_back(at += step);
            }
        }
        std::size_t i = 0;
        add_column(fields, sizes, all, [&](bar const& one) {
            auto const end = place(one.end);
            auto const begin = first[i++];
            return end > begin ? end - begin : 0;
        });
    }
    /// The time since the first one of the trace. Damaged bytes can be read as a TSC: it is
    /// within the times of the slices around.
    ///
    /// Units:  1/1024 TSC ticks.
    [[nodiscard]] auto time_of(calls::moment const& at) const -> std::uint64_t {
        constexpr auto bits = calls::fraction_bits;
        constexpr std::uint64_t most = std::uint64_t{1} << 53;
        auto const& slices = of_.parts().all();
        auto const index = (at.offset >> bits) / of_.parts().bytes_of_slice();
        auto const first = of_.first_time();
        auto const slice_time = [&](std::uint64_t i) {
            return i < slices.size() ? slices[static_cast<std::size_t>(i)].time : of_.last_time();
        };
        auto const low = index == 0 ? first : slice_time(index - 1);
        auto const high = slice_time(index + 2);
        auto const ticks = from_.first_time() + (at.time >> bits);
        auto const fraction = ticks >= low && ticks < high ? at.time % (1U << bits) : 0;
        return (std::min(std::clamp(ticks, low, high) - first, most) << bits) + fraction;
    }
    auto number_of(std::string name) -> std::uint64_t {
        auto const [at, is_new] = numbers_.try_emplace(std::move(name), names_.size());
        if (is_new) { names_.push_back(at->first); }
        return at->second;
    }

    std::string& out_;
    stream const& of_;
    calls::recorder const& from_;
    NameOf const& name_of_;
    std::vector<std::string> names_{};
    std::unordered_map<std::string, std::uint64_t> numbers_{};
};

}  // namespace timeline
