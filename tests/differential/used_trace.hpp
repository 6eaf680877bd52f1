// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <differential/journal.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace differential::recording {

/// The part of a trace that libipt has used, as a moment of the thread.
///
/// libipt reads ahead: its offset is that of the next packet with control flow, while branches of
/// the TNT before it may still be unused.
class used_trace {
public:
    explicit used_trace(ptspec::byte_view trace) : moments_{trace} {}

    [[nodiscard]] auto when(moment_of_record const& of) const -> moment {
        return moments_.when(of);
    }
    /// After libipt synchronised.
    void restart(std::uint64_t offset) {
        offset_ = offset;
        unused_ = 0;
        skip_to(offset);
    }
    /// After an event or an instruction, which may have used a branch of a TNT.
    void advance(std::uint64_t offset, bool may_use_branch) {
        if (offset == offset_) {
            if (may_use_branch && unused_ != 0 && --unused_ == 0) { ++next_; }
            return;
        }
        bool const is_tnt = may_use_branch && next_ < tnts().size() &&
                            tnts()[next_].offset == offset_;
        unused_ = is_tnt ? tnts()[next_].branches - 1 : 0;
        offset_ = offset;
        if (unused_ == 0) { skip_to(offset); }
    }
    [[nodiscard]] auto now() const -> moment {
        return {next_, unused_ == 0 ? 0 : tnts()[next_].branches - unused_, offset_};
    }

private:
    pt_record::trace_moments moments_;
    std::size_t next_ = 0;  ///< the TNT with unused branches, or the next one
    std::uint64_t offset_ = 0;
    unsigned unused_ = 0;

    [[nodiscard]] auto tnts() const -> std::vector<pt_record::trace_moments::tnt> const& {
        return moments_.tnts();
    }
    void skip_to(std::uint64_t offset) {
        while (next_ < tnts().size() && tnts()[next_].offset < offset) { ++next_; }
    }
};

}  // namespace differential::recording
