// SPDX-License-Identifier: BSL-1.0
#pragma once

// pt_dump --chrome-trace --calls: the calls of a trace, while its events are read.

#include "options.hpp"
#include "../common/calls/walk.hpp"

#include <cstddef>
#include <string>

namespace pt_dump {

/// The calls of one input. It borrows the settings.
class trace_calls {
public:
    explicit trace_calls(settings const& how)
        : how_{how},
          code_{how.from != nullptr ? traced::traced_code{how.code->all, *how.from}
                                    : traced::traced_code{how.calls->code.images.spans()}},
          walk_{code_, how.clock, trace_file::with_limits({}, how.given, how.from), found_} {}

    void feed(byte_view bytes) { walk_.feed(bytes); }
    void skip_gap() { walk_.skip_gap(); }
    void finish() { walk_.finish(); }
    [[nodiscard]] auto found() const -> calls::recorder const& { return found_; }
    /// `foo`; `12 x foo`, or `12 calls: foo, ..` with the longest of them; `not known: overflow`.
    [[nodiscard]] auto title_of(calls::bar const& one) const -> std::string {
        auto const thread = found_.threads()[one.lane];
        auto name = how_.from != nullptr ? how_.code->name_of(thread, one)
                                         : calls::name_of(*how_.calls, one);
        if (one.kind == calls::bar_kind::gap) { return "not known: " + name; }
        if (one.count == 1) { return name; }
        auto const count = std::to_string(one.count);
        return one.is_mixed ? count + " calls: " + name + ", .." : count + " x " + name;
    }

private:
    static constexpr std::size_t max_bars = 200'000;

    settings const& how_;
    [[nodiscard]] auto names_of(calls::thread_id thread) const -> traced::symbols const& {
        return how_.from != nullptr ? how_.code->names_of(thread) : how_.calls->code.images.names();
    }

    calls::recorder found_{max_bars, {}, [this](auto thread) -> auto& { return names_of(thread); }};
    traced::traced_code code_;
    calls::walk walk_;
};

}  // namespace pt_dump
