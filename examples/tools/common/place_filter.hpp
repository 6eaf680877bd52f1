// SPDX-License-Identifier: BSL-1.0
#pragma once

// --only, --vmcs and --cr3: what ran in the host or a guest, with a VMCS, with a CR3.

#include "numbers.hpp"

#include <ptspec/trace/binding.hpp>
#include <ptspec/trace/event.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace tool {

/// Selects by what the last PIP and VMCS packets say.
struct place_filter {
    std::optional<bool> non_root{};  ///< PIP.NR
    std::optional<std::uint64_t> vmcs{};
    std::optional<std::uint64_t> cr3{};

    [[nodiscard]] auto is_on() const -> bool { return non_root || vmcs || cr3; }
    /// True if all that is asked is known.
    [[nodiscard]] auto knows(ptspec::trace::execution_state const& now) const -> bool {
        return (now.has_cr3 || !(non_root || cr3)) && (now.has_vmcs || !vmcs);
    }
    [[nodiscard]] auto takes(ptspec::trace::execution_state const& now) const -> bool {
        return knows(now) && (!non_root || *non_root == now.non_root) &&
               (!vmcs || *vmcs == now.vmcs) && (!cr3 || *cr3 == now.cr3);
    }
};

/// Takes one of the options. Returns false when it is another option.
inline auto take_place_option(command_line& line, place_filter& to) -> bool {
    auto const option = line.argument();
    if (line.is("--only")) {
        auto const where = line.value();
        if (where != "root" && where != "guest") { throw failure{"--only takes root or guest"}; }
        to.non_root = where == "guest";
    } else if (line.is("--vmcs")) {
        to.vmcs = parse_address(option, line.value());
    } else if (line.is("--cr3")) {
        to.cr3 = parse_address(option, line.value());
    } else {
        return false;
    }
    return true;
}

/// Where a walk is.
struct walk_place {
    bool is_wanted = true;  ///< by the filter
    bool is_known = true;   ///< what the filter asks
    bool has_nr = false;    ///< `non_root` is known
    bool non_root = false;
};

/// Follows the state along packets or events, and counts what is left out.
class place_counter {
public:
    explicit place_counter(place_filter const& of) : of_{of} {}

    /// Takes a PIP or VMCS packet; other packets change nothing.
    void take(ptspec::trace::event const& one) {
        using ptspec::trace::event_type;
        if (one.what == event_type::paging || one.what == event_type::vmcs) { take(one.packet); }
    }
    void take(ptspec::packet::any_packet const& packet) {
        if (packet.is<ptspec::packet::pip>()) { now_.take(packet.as<ptspec::packet::pip>()); }
        if (packet.is<ptspec::packet::vmcs>()) { now_.take(packet.as<ptspec::packet::vmcs>()); }
    }
    /// Packets are lost: nothing is known up to the next PIP and VMCS.
    void lose() { now_ = {}; }
    [[nodiscard]] auto state() const -> ptspec::trace::execution_state const& { return now_; }
    /// Whether what happens now is wanted. If not, it is counted.
    auto takes() -> bool {
        if (!of_.is_on() || of_.takes(now_)) { return true; }
        ++left_out_;
        unknown_ += of_.knows(now_) ? 0 : 1;
        return false;
    }
    /// What was left out, and how much of it because the place is not known.
    [[nodiscard]] auto left_out() const -> std::uint64_t { return left_out_; }
    [[nodiscard]] auto unknown() const -> std::uint64_t { return unknown_; }

private:
    place_filter of_;
    ptspec::trace::execution_state now_{};
    std::uint64_t left_out_ = 0;
    std::uint64_t unknown_ = 0;
};

}  // namespace tool
