// SPDX-License-Identifier: BSL-1.0
#pragma once

// The part of a page whose calls are drawn, as options say.

#include "../common/calls/recorder.hpp"
#include "../common/numbers.hpp"
#include "../common/tool.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace timeline {

/// A time since the first one of the page.
class page_time {
public:
    /// `1.5ms`; seconds with a point, or ticks.
    static auto read(std::string_view text) -> std::optional<page_time> {
        auto const end = std::min(text.find_first_not_of("0123456789."), text.size());
        std::string const digits{text.substr(0, end)};
        bool const has_point = digits.find('.') != std::string::npos;
        page_time made;
        made.unit_ = text.substr(end);
        if (made.unit_.empty()) { made.unit_ = has_point ? "s" : "ticks"; }
        constexpr std::string_view units[] = {"s", "ms", "us", "ns", "ticks"};
        bool const is_unit = std::find(std::begin(units), std::end(units), made.unit_) !=
                             std::end(units);
        char* stop = nullptr;
        made.value_ = std::strtod(digits.c_str(), &stop);
        bool const is_number = !digits.empty() && digits != "." && *stop == '\0';
        return is_unit && is_number && made.value_ < 1e16 ? std::optional{made} : std::nullopt;
    }
    [[nodiscard]] auto ticks(std::uint64_t tsc_hz) const -> std::uint64_t {
        if (unit_ == "ticks") { return static_cast<std::uint64_t>(value_); }
        if (tsc_hz == 0) {
            throw tool::failure{"a time in " + unit_ + " needs the frequency of the TSC: --tsc-hz"};
        }
        double const per_second = unit_ == "s"    ? 1
                                  : unit_ == "ms" ? 1e3
                                  : unit_ == "us" ? 1e6
                                                  : 1e9;
        constexpr double most = 1e16;
        auto const found = value_ / per_second * static_cast<double>(tsc_hz);
        return static_cast<std::uint64_t>(std::min(found, most));
    }

private:
    double value_ = 0;
    std::string unit_{};
};

/// What --time, --from and --to say.
struct part {
    bool is_time = false;
    std::optional<page_time> first{};
    std::optional<page_time> last{};
    std::optional<std::uint64_t> from{};  ///< an offset in bytes
    std::optional<std::uint64_t> to{};

    void check() const {
        if (is_time && (from || to)) { throw tool::failure{"give --time, or --from and --to"}; }
    }
    /// The part as a window of TSCs or offsets. `base` is the first TSC of the page.
    [[nodiscard]] auto window(std::uint64_t base, std::uint64_t tsc_hz) const -> calls::window {
        calls::window made;
        made.is_time = is_time;
        if (first) { made.first = base + first->ticks(tsc_hz); }
        if (last) { made.last = base + last->ticks(tsc_hz); }
        if (from) { made.first = *from; }
        if (to) { made.last = *to; }
        return made;
    }
};

/// Takes an option that selects a part. Returns false when it is another option.
inline auto take_part(tool::command_line& line, part& to) -> bool {
    constexpr std::uint64_t any = ~std::uint64_t{0};
    if (line.is("--from")) {
        to.from = tool::number_of(line, "an offset in bytes", any);
    } else if (line.is("--to")) {
        to.to = tool::number_of(line, "an offset in bytes", any);
    } else if (line.is("--time")) {
        auto const text = line.value();
        auto const dash = text.find('-');
        auto const first = text.substr(0, dash);
        auto const last = dash == std::string::npos ? std::string{} : text.substr(dash + 1);
        to.is_time = true;
        to.first = page_time::read(first);
        to.last = page_time::read(last);
        bool const is_right = dash != std::string::npos && text.size() > 1 &&
                              (first.empty() || to.first) && (last.empty() || to.last);
        if (!is_right) {
            throw tool::failure{"--time takes A-B, A- or -B, as in 1.5ms-2ms: s, ms, us, ns or "
                                "ticks"};
        }
    } else {
        return false;
    }
    return true;
}

}  // namespace timeline
