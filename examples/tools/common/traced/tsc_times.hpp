// SPDX-License-Identifier: BSL-1.0
#pragma once

// The times of the TSC packets of a stream. In a trace without MTC and CYC packets, the next TSC is
// the upper bound of a packet's time.

#include "../trace_file.hpp"

#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/reader.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace traced {

using namespace ptspec;

class tsc_times {
public:
    /// Reads the whole stream.
    explicit tsc_times(trace_file::stream const& of) {
        visitor to{trace::clock{trace_file::clock_of(of, {}, {})}, *this};
        for (std::size_t i = 0; i < of.pieces.size();) {
            trace::reader<> from;
            do {
                auto const& bytes = of.pieces[i].bytes;
                (void)from.feed(borrowed_bytes{bytes.data(), bytes.size()});
                read(from, to);
            } while (++i < of.pieces.size() && !of.pieces[i].has_gap_before);
            from.finish();
            read(from, to);
        }
        std::sort(all_.begin(), all_.end());
    }

    /// The first time after this one; `unbounded` if there is none.
    [[nodiscard]] auto next_after(std::uint64_t tsc) const -> std::uint64_t {
        auto const next = std::upper_bound(all_.begin(), all_.end(), tsc);
        return next == all_.end() ? trace::time::unbounded : *next;
    }
    /// Whether each TIP.PGE follows a PSB+ with a TSC, and the stream has no OVF: GEN-162.
    [[nodiscard]] auto is_before_each_pge() const -> bool { return has_pge_ && !has_other_; }

private:
    struct visitor {
        trace::clock clock;
        tsc_times& to;
        bool in_psb_plus = false;
        bool has_tsc = false;
        bool follows_psb_plus = false;  ///< and tracing was off since then

        void operator()(packet::psb const& one, trace::packet_place) {
            (void)clock.add(one);
            in_psb_plus = true;
            has_tsc = false;
        }
        void operator()(packet::tsc const& one, trace::packet_place) {
            (void)clock.add(one);
            has_tsc = true;
            if (!in_psb_plus) { add(); }
        }
        void operator()(packet::pip const& one, trace::packet_place) { (void)clock.add(one); }
        void operator()(packet::psbend const& one, trace::packet_place) {
            (void)clock.add(one);
            // A PIP after the TSC can make it that of a guest.
            if (in_psb_plus && has_tsc) { add(); }
            follows_psb_plus = has_tsc;
            in_psb_plus = false;
        }
        void operator()(packet::tip_pge const&, trace::packet_place) {
            to.has_pge_ = true;
            to.has_other_ = to.has_other_ || !follows_psb_plus;
        }
        void operator()(packet::tip_pgd const&, trace::packet_place) { follows_psb_plus = false; }
        void operator()(packet::ovf const&, trace::packet_place) { to.has_other_ = true; }
        void add() {
            auto const now = clock.now();
            if (now.is_absolute() && !now.is_guest) { to.all_.push_back(now.earliest); }
        }
    };
    static void read(trace::reader<>& from, visitor& to) {
        (void)from.for_each<packet::psb, packet::tsc, packet::pip, packet::psbend, packet::tip_pge,
                            packet::tip_pgd, packet::ovf>(to);
    }

    std::vector<std::uint64_t> all_{};  ///< sorted
    bool has_pge_ = false;
    bool has_other_ = false;  ///< a TIP.PGE without a PSB+ before it, or an OVF
};

}  // namespace traced
