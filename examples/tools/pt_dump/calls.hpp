// SPDX-License-Identifier: BSL-1.0
#pragma once

// pt_dump --chrome-trace --calls: the calls of a trace, while its events are read.

#include "options.hpp"
#include "../common/calls/walk.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace pt_dump {

/// The calls of one input. It borrows the settings.
class trace_calls {
public:
    explicit trace_calls(settings const& how)
        : how_{how},
          code_{how.from != nullptr ? traced::traced_code{how.code->all, *how.from}
                                    : traced::traced_code{how.calls->code.images.spans()}},
          walk_{code_, how.clock, trace_file::with_limits({}, how.given, how.from), found_} {}

    /// Without --max-slices, all calls are slices.
    void pass_on_to(calls::recorder::receiver to) {
        constexpr std::size_t batch = std::size_t{1} << 18;
        if (!how_.max_slices) { found_.pass_on_to(std::move(to), batch); }
    }
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
    static constexpr std::size_t any_number = ~std::size_t{0} / 4;

    settings const& how_;
    [[nodiscard]] auto names_of(calls::thread_id thread) const -> traced::symbols const& {
        return how_.from != nullptr ? how_.code->names_of(thread) : how_.calls->code.images.names();
    }

    calls::recorder found_{how_.max_slices.value_or(any_number), {}, [this](auto thread) -> auto& {
                               return names_of(thread);
                           }};
    traced::traced_code code_;
    calls::walk walk_;
};

}  // namespace pt_dump
