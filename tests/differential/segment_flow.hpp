// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <differential/damaged_copy.hpp>
#include <differential/walked.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

// The instructions that a decoder reports for each segment of a trace.
namespace differential::damage {

using namespace recording;

/// The first instruction of a segment.
struct mark {
    std::uint64_t offset = 0;  ///< of a byte of the segment, from the start of the trace
    std::size_t first = 0;     ///< the number of instructions before the IP of the PSB+
    std::size_t straight = 0;  ///< the same, before the straight code up to that IP
};

/// A gap that ends at an IP.
struct resumption {
    std::uint64_t to = 0;
    std::uint64_t start = 0;  ///< where the walk resumes
};

/// All reports of a decoder for a trace.
struct report {
    std::vector<std::uint64_t> ips{};
    std::vector<mark> marks{};
    std::vector<resumption> resumed{};
    std::uint64_t gaps = 0;
    bool is_endless = false;  ///< more than `most` instructions

    void clear() {
        ips.clear();
        marks.clear();
        resumed.clear();
        gaps = 0;
        is_endless = false;
    }
};

/// Passes the reports of a walker to a `report_to` or `logs_to`.
template <class To>
struct segment_sink {
    To& to;

    void instruction(ptspec::flow::executed const& one) { to.instruction(one.ip); }
    void gap(ptspec::flow::gap const& one) { to.gap(one.has_to, one.to); }
    void start(std::uint64_t ip, std::uint32_t) { to.start(ip); }
    /// Called before the reports of each packet, also before those of a PSB+.
    void time(ptspec::trace::time const&) { to.packet(); }
    void event(ptspec::trace::event const& one) {
        if (one.what == ptspec::trace::event_type::psb) { to.begin(one.offset); }
    }
};

/// Stores reports.
struct report_to {
    report& made;
    std::size_t most = ~std::size_t{0};
    std::size_t straight = 0;
    bool is_resuming = false;

    void packet() { straight = made.ips.size(); }
    auto instruction(std::uint64_t ip) -> bool {
        if (made.ips.size() >= most) { return made.is_endless = true, false; }
        made.ips.push_back(ip);
        return true;
    }
    void begin(std::uint64_t offset) { made.marks.push_back({offset, made.ips.size(), straight}); }
    void gap(bool has_to, std::uint64_t ip) {
        ++made.gaps;
        is_resuming = has_to;
        if (has_to) { made.resumed.push_back({ip}); }
    }
    void start(std::uint64_t ip) {
        if (is_resuming) { made.resumed.back().start = ip; }
        is_resuming = false;
    }
};

/// Counts and hashes the instructions of each segment.
struct logs_to {
    std::vector<segment> const& all;
    std::vector<instruction_log> logs = std::vector<instruction_log>(all.size());
    std::size_t now = 0;
    std::uint64_t gaps = 0;

    void packet() {}
    auto instruction(std::uint64_t ip) -> bool {
        logs[now].add(ip);
        return true;
    }
    void begin(std::uint64_t offset) {
        while (now + 1 < all.size() && all[now].end <= offset) { ++now; }
    }
    void gap(bool, std::uint64_t) { ++gaps; }
    void start(std::uint64_t) {}
};

/// Reads traces with ptspec's walker. Decoded code is kept between traces.
class walked_segments {
public:
    walked_segments(code_pages const& pages, std::uint32_t thread) : code_{pages, thread, {}} {}

    template <class To>
    void read(std::vector<std::uint8_t> const& trace, To& to) {
        segment_sink<To> sink{to};
        walker_.next_input(ptspec::borrowed_bytes{trace.data(), trace.size()});
        (void)walker_.run(sink);
    }

private:
    walked_code code_;
    std::vector<ptspec::flow::block> storage_ = std::vector<ptspec::flow::block>(1 << 16);
    ptspec::flow::block_cache cache_{storage_.data(), storage_.size()};
    // As libipt reads: GEN-134.
    ptspec::flow::walker<walked_code> walker_{
        code_, cache_, {.on_ret_mismatch = ptspec::trace::ret_mismatch::keep}};
};

/// Reads traces with libipt's instruction flow decoder, which synchronises after errors.
class decoded_segments {
public:
    decoded_segments(decoder_settings const& with, code_pages const& pages, std::uint32_t thread)
        : config_{config_of(with)}, code_{pages, thread, [](auto const&) { return moment{}; }} {}

    /// Returns false if libipt refuses the configuration.
    template <class To>
    auto read(std::vector<std::uint8_t>& trace, To& to) -> bool {
        config_.begin = trace.data();
        config_.end = trace.data() + trace.size();
        auto* const decoder = pt_insn_alloc_decoder(&config_);
        auto* const image = decoder == nullptr ? nullptr : pt_insn_get_image(decoder);
        if (image == nullptr) { return false; }
        (void)pt_image_set_callback(image, read_code, &code_);
        std::uint64_t last_sync = 0;
        for (bool is_first = true;; is_first = false) {
            int const status = pt_insn_sync_forward(decoder);
            std::uint64_t sync = 0;
            (void)pt_insn_get_sync_offset(decoder, &sync);
            if (status == -pte_eos || (!is_first && sync <= last_sync)) { break; }
            last_sync = sync;
            if (status >= 0) { follow(decoder, status, to); }
            to.gap(false, 0);
        }
        pt_insn_free_decoder(decoder);
        return true;
    }

private:
    pt_config config_;
    code_of_thread code_;

    template <class To>
    static void follow(pt_insn_decoder* decoder, int status, To& to) {
        while (status >= 0) {
            if ((status & pts_event_pending) != 0) {
                pt_event event{};
                status = pt_insn_event(decoder, &event, sizeof event);
                // Only the MODE.Exec of a PSB+, or the TIP.PGE after it, shows that it was read.
                bool const is_mode = event.type == ptev_exec_mode && event.status_update != 0;
                if (status >= 0 && (is_mode || event.type == ptev_enabled)) {
                    std::uint64_t next = 0;  // packet that libipt reads
                    (void)pt_insn_get_offset(decoder, &next);
                    to.begin(next - 1);
                }
                continue;
            }
            pt_insn one{};
            one.iclass = ptic_error;
            status = pt_insn_next(decoder, &one, sizeof one);
            if (one.iclass != ptic_error && !to.instruction(one.ip)) { return; }
        }
    }
};

}  // namespace differential::damage
