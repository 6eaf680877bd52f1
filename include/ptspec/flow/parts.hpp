// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/flow/walk_options.hpp>
#include <ptspec/trace/binder.hpp>
#include <ptspec/trace/packet_errata.hpp>
#include <ptspec/trace/split.hpp>

/// Divides a trace for walkers that run in parallel.
namespace ptspec::flow {

/// A part of a trace. It ends with the PSB+ with which the next part begins: straight code up to
/// the IP of that PSB+ belongs to this part.
struct part {
    byte_view bytes{};
    uint64_t offset = 0;  ///< of the first byte, in bytes from the start of the trace
    /// Where the next part begins, in bytes from the start of this one.
    uint64_t until = walk_options::no_end;

    /// The options for the walker of this part.
    [[nodiscard]] constexpr auto options(walk_options given) const noexcept -> walk_options {
        given.until = until;
        given.continues = offset != 0;
        return given;
    }
};

namespace detail {

/// Reads from a PSB up to the first control flow packet after a later PSB+. Finds whether a reader
/// that begins at the later PSB binds all packets in the same way.
struct split_check {
    uint64_t psb;  ///< the offset of the later PSB
    trace::binder binds;
    trace::binder begins;       ///< at the later PSB
    bool has_branch = false;    ///< since the first PSB: no packet before it is pending
    bool agrees = true;         ///< so far
    bool is_settled = false;    ///< the trace can be cut
    uint64_t psb_plus_end = 0;  ///< of the later PSB+

    constexpr split_check(uint64_t later_psb, cpu::quirk_set quirks) noexcept
        : psb{later_psb}, binds{quirks}, begins{quirks} {}

    template <packet::packet_type Packet>
    constexpr auto operator()(Packet const& packet, trace::packet_place place) noexcept -> bool {
        constexpr bool is_branch = one_of<Packet, packet::tnt_short, packet::tnt_long, packet::tip,
                                          packet::tip_pge, packet::tip_pgd>;
        constexpr bool is_flow = is_branch || same_as<Packet, packet::fup>;
        if (place.offset == psb) {
            agrees = !binds.in_overflow() && !binds.may_have_resumed() && !binds.in_event() &&
                     !binds.is_lost();
        }
        auto const bound = binds.add(packet, place);
        if (place.offset < psb) {
            has_branch |= is_branch;
            return true;
        }
        auto const other = begins.add(packet, place);
        agrees = agrees && bound.to == other.to && bound.broken == rule::none &&
                 other.broken == rule::none && bound.resumed == other.resumed;
        if (psb_plus_end == 0) {
            if (same_as<Packet, packet::psbend>) { psb_plus_end = place.offset + place.length; }
            return !one_of<Packet, packet::ovf, packet::psb> || place.offset == psb;
        }
        if (!is_flow) { return true; }
        is_settled = agrees && has_branch && binds.agrees_with(begins);
        return false;
    }
    constexpr auto operator()(trace::item const& one) const noexcept -> bool {
        return one.what == trace::item_type::synced;  // otherwise there is damage
    }
};

}  // namespace detail

/// The parts of a trace, in order: at most `count`, not empty: `for (auto const& one : parts{trace,
/// 4})`. Walkers that walk one part each, with its `options`, report together the same
/// instructions, blocks, edges, starts, gaps and events as one walker that walks the trace. Counts
/// of parts are added. A `call_stack` is given the edges, starts and gaps of all parts, in order.
/// Times are computed as by a reader that begins with the part.
///
/// A trace is cut only at a PSB that is reached without damage, before which no overflow and no
/// event is pending, and whose PSB+ agrees with the packets before it.
template <class Packets = packet::all>  // a plain class doubles the cost of including flow.hpp
class parts {
public:
    using iterator = trace::part_iterator<parts>;

    /// `quirks` must be the quirks in the options of the walkers.
    constexpr parts(borrowed_bytes whole, size_t count, cpu::quirk_set quirks = {}) noexcept
        : trace_{whole.view()}, count_{count}, quirks_{quirks} {}

    [[nodiscard]] constexpr auto begin() const noexcept -> iterator {
        return {*this, trace_.size(), count_};
    }
    [[nodiscard]] constexpr auto end() const noexcept -> typename iterator::end_of_trace {
        return {};
    }

private:
    friend iterator;

    [[nodiscard]] constexpr auto split_point(size_t from) const noexcept -> size_t {
        for (;;) {
            size_t const here = trace::find_split_point<Packets>(trace_, from);
            if (here == trace_.size() || end_of_psb_plus(here) != 0) { return here; }
            from = here + 1;
        }
    }
    [[nodiscard]] constexpr auto part(size_t begin, size_t end) const noexcept -> flow::part {
        flow::part found{trace_.from(begin), begin};
        if (end == trace_.size()) { return found; }
        found.bytes = found.bytes.first(end_of_psb_plus(end) - begin);
        found.until = end - begin;
        return found;
    }
    /// The end of the PSB+ at a PSB; 0 if the trace cannot be cut there.
    [[nodiscard]] constexpr auto end_of_psb_plus(size_t psb) const noexcept -> size_t {
        size_t const before = trace::find_psb_before(trace_, psb);
        if (before == trace::npos) { return 0; }
        detail::split_check read{psb - before, quirks_};
        byte_view const rest = trace_.from(before);
        trace::reader<trace::no_hook, Packets> from{borrowed_bytes{rest.data(), rest.size()}};
        trace::packet_errata errata{quirks_};
        bool continues = true;
        while (continues) {
            auto const one = errata.next(from);
            continues = one.what == trace::item_type::packet
                            ? packet::visit(
                                  [&](auto const& packet) { return read(packet, one.place()); },
                                  one.packet)
                            : read(one);
        }
        uint64_t const end = read.psb_plus_end;
        return read.is_settled ? before + static_cast<size_t>(end) : 0;
    }

    byte_view trace_;
    size_t count_;
    cpu::quirk_set quirks_;
};

}  // namespace ptspec::flow
