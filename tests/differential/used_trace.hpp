// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <differential/journal.hpp>

#include <ptspec/trace/reader.hpp>

#include <algorithm>
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
    explicit used_trace(ptspec::byte_view trace) {
        ptspec::trace::reader from{trace};
        for (auto item = from.next(); item; item = from.next()) {
            if (item.what != ptspec::trace::item_type::packet) { continue; }
            ptspec::packet::visit(
                [&](auto const& one) {
                    if constexpr (requires { one.taken().count; }) {
                        tnts_.push_back({item.offset, one.taken().count});
                    }
                },
                item.packet);
        }
    }

    /// When a record was made. A trace may have CYCs and PADs between the end of the trace at that
    /// moment and the TNT that contains its branches.
    [[nodiscard]] auto when(moment_of_record const& of) const -> moment {
        auto const next = std::lower_bound(
            tnts_.begin(), tnts_.end(), of.offset,
            [](tnt const& one, std::uint64_t offset) { return one.offset < offset; });
        return {static_cast<std::size_t>(next - tnts_.begin()), of.branches, of.offset};
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
        bool const is_tnt = may_use_branch && next_ < tnts_.size() &&
                            tnts_[next_].offset == offset_;
        unused_ = is_tnt ? tnts_[next_].branches - 1 : 0;
        offset_ = offset;
        if (unused_ == 0) { skip_to(offset); }
    }
    [[nodiscard]] auto now() const -> moment {
        return {next_, unused_ == 0 ? 0 : tnts_[next_].branches - unused_, offset_};
    }

private:
    struct tnt {
        std::uint64_t offset;
        unsigned branches;
    };
    std::vector<tnt> tnts_{};
    std::size_t next_ = 0;  ///< the TNT with unused branches, or the next one
    std::uint64_t offset_ = 0;
    unsigned unused_ = 0;

    void skip_to(std::uint64_t offset) {
        while (next_ < tnts_.size() && tnts_[next_].offset < offset) { ++next_; }
    }
};

}  // namespace differential::recording
