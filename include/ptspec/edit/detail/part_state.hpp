// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/trace/psb_plus.hpp>

/// What `keep_part` keeps track of.
namespace ptspec::edit::detail {

/// Whose code executes.
enum class world : uint8_t {
    unknown,
    host,
    guest,
    other_guest,
};

/// A packet of the original.
struct part_packet {
    packet::any_packet which{};
    uint64_t at = 0;       ///< its offset
    uint64_t last_ip = 0;  ///< before it
    uint64_t ip = 0;       ///< the last IP after it
};

/// A FUP that begins a compound event, and the TIP.PGD that ends it if it is a VM exit.
struct exit_event {
    bool has_fup = false;  ///< since then only PIP, VMCS, MODE.Exec and timing packets
    bool has_pgd = false;
    uint64_t ip = 0;
    uint64_t last_ip = 0;  ///< before the FUP
    uint64_t fup_at = 0;   ///< offsets in the result
    uint64_t fup_end = 0;
    uint64_t pgd_at = 0;
};

/// The IP and mode of a PSB+ that came while tracing was off in the result. They are not in it yet.
struct start_point {
    bool is_known = false;
    uint64_t ip = 0;
    uint64_t mode = 0;
};

/// The current PSB+.
struct current_psb_plus {
    bool is_open = false;
    bool is_decided = false;  ///< it is known whose PSB+ it is
    trace::psb_plus reported{};
};

}  // namespace ptspec::edit::detail
