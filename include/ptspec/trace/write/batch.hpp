// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/address.hpp>
#include <ptspec/trace/write/state.hpp>

namespace ptspec::trace {

/// A sink of bytes. `append` stores all bytes of its argument, or returns false and stores none.
template <class Sink>
concept packet_sink = requires(Sink& sink, byte_view bytes) {
    { sink.append(bytes) } -> same_as<bool>;
};
/// A sink that also takes up to 16 bytes as a little-endian number. TNTs and TIPs use this
/// overload. A sink that has 16 bytes of room can store both halves of the number, whatever the
/// count, and advance by the count, as `byte_buffer` and `ports::growing_file` do.
template <class Sink>
concept wide_packet_sink = packet_sink<Sink> &&
                           requires(Sink& sink, wide_bits bytes, size_t count) {
                               { sink.append(bytes, count) } -> same_as<bool>;
                           };

namespace detail {

/// A sink without room, for use after an error: no second error follows.
struct full_sink {
    constexpr auto append(byte_view) const noexcept -> bool { return false; }
};
inline constexpr full_sink full{};

/// Returns the sink. For other types the build stops, and the message says what a sink is.
template <class Sink>
constexpr auto checked_sink([[maybe_unused]] Sink& sink) noexcept -> auto& {
    constexpr bool is_sink = packet_sink<Sink>;
    static_assert(is_sink, "a sink has append(byte_view) -> bool, as ptspec::byte_buffer has");
    static_assert(
        wide_packet_sink<Sink> || !requires { sink.append(wide_bits{}, size_t{}); },
        "the second append of a sink is `auto append(ptspec::wide_bits, size_t) -> bool`");
    if constexpr (is_sink) {
        return sink;
    } else {
        return full;
    }
}

/// How the next bytes are aligned by PADs.
struct alignment_of_next {
    size_t whole = 0;   ///< the number of bytes that must stay in one 8-byte word
    size_t head = 0;    ///< the number of bytes that must end at a multiple of 8
    bool ends = false;  ///< align by `head`, not by `whole`
};

/// The number of PADs that `pad_policy::skylake` inserts at `at` before the next bytes. With
/// `after_payload`, the last bytes are a wide payload: the next bytes begin in another word.
///
/// Source: GEN-010.
[[nodiscard]] constexpr auto pads_before(uint64_t at, bool after_payload,
                                         alignment_of_next const& next) noexcept -> unsigned {
    unsigned const over = at % 8;
    unsigned const skipped = after_payload ? (8 - over) % 8 : 0;
    unsigned const place = (over + skipped) % 8;
    if (next.ends) { return skipped + (16 - (place + next.head % 8)) % 8; }
    return place + next.whole > 8 ? skipped + (8 - place) % 8 : skipped;
}

/// The kinds of packets that are aligned in different ways.
enum class placed_as : uint8_t { other, mode, cbr, status, tnt, ip, psb, cyc };

template <class Packet>
[[nodiscard]] constexpr auto placed_as_of() noexcept -> placed_as {
    using namespace packet;
    if (same_as<Packet, mode_tsx> || same_as<Packet, mode_exec>) { return placed_as::mode; }
    if (same_as<Packet, packet::cbr>) { return placed_as::cbr; }
    if (same_as<Packet, pip> || same_as<Packet, vmcs> || same_as<Packet, tsc> ||
        same_as<Packet, tma>) {
        return placed_as::status;
    }
    if (same_as<Packet, tnt_short> || same_as<Packet, tnt_long>) { return placed_as::tnt; }
    if (derived_from<Packet, ip_packet<Packet>>) { return placed_as::ip; }
    if (same_as<Packet, packet::psb>) { return placed_as::psb; }
    return same_as<Packet, packet::cyc> ? placed_as::cyc : placed_as::other;
}

}  // namespace detail

/// Packets that are written all together or not at all, and the writer's state after them.
///
/// Source: as `writer`.
template <class Packets = packet::all>
class packet_batch {
    using code = packet::encoded_wide;

    writer_state state_;
    writer_options const& options_;
    byte_array<writer_state::max_bytes + 16> bytes_{};  // `put` stores 16 bytes
    size_t size_ = 0;
    rule broken_ = rule::none;
    bool cyc_crosses_ = false;  ///< the packet is a CYC that `pad_policy::skylake` does not align
    bool shares_word_ = false;  ///< the last packet may share its word: `pad_policy::broadwell`
    /// MODEs that are held with `pad_policy::skylake`: the next packet decides their place.
    unsigned held_size_ = 0;
    uint8_t held_[32];

    /// Writes a packet, after its CYC if it has one. There is no PAD between the two, except that
    /// `pad_policy::skylake` aligns a TNT and a TIP.PGD without IP separately.
    template <class Packet>
    constexpr void write(Packet const& packet, bool has_cyc = false) noexcept {
        if (broken_ != rule::none) { return; }
        auto const bytes = packet::encode_wide<Packet, Packets>(packet, state_.items);
        if (write_code(bytes, detail::placed_as_of<Packet>(), has_cyc)) {
            state_.record(packet, bytes.length);
        }
    }
    /// The same for an encoded packet. The caller adds the length of `bytes` to `state_.bytes`.
    constexpr auto write_code(code const& bytes, detail::placed_as as, bool has_cyc) noexcept
        -> bool {
        using packet::cyc;
        broken_ = bytes.broken;
        if (broken_ != rule::none) { return false; }
        code time{};
        if (has_cyc) {
            time = packet::encode_wide<cyc, Packets>(cyc::of(state_.cycles), state_.items);
            state_.cycles = 0;
        }
        if (options_.pads != pad_policy::none) [[unlikely]] {
            write_aligned(as, time, bytes);
        } else {
            put(time);
            put(bytes);
            state_.bytes += time.length;
        }
        return true;
    }
    /// Writes a packet after PADs. The caller adds the length of `bytes` to `state_.bytes`.
    constexpr void write_aligned(detail::placed_as as, code const& time,
                                 code const& bytes) noexcept {
        constexpr size_t max_pads = 14;  // to the end of a wide payload, and to the next header
        if (held_size_ + time.length + bytes.length + max_pads > room()) {
            broken_ = rule::PKT_347;
            return;
        }
        if (options_.pads == pad_policy::skylake) { return place(as, time, bytes); }
        bool const shares_word = as == detail::placed_as::mode || as == detail::placed_as::cbr;
        align(time.length + bytes.length, shares_word);
        put(time);
        put(bytes);
        state_.bytes += time.length;
        shares_word_ = shares_word;
    }
    /// Writes PADs up to the next multiple of 8: only if `length` bytes would cross it with
    /// `pad_policy::within_words`, else before each packet that does not share the last word.
    constexpr void align(size_t length, bool shares_word) noexcept {
        uint64_t const at = state_.bytes % 8;
        bool const crosses = at + length > 8;
        if (at == 0 || (options_.pads == pad_policy::within_words && !crosses)) { return; }
        if (options_.pads == pad_policy::broadwell && shares_word && shares_word_ && !crosses) {
            return;
        }
        pad(8 - at);
    }
    /// Places a packet by `pad_policy::skylake`, with the MODEs that were held for it. The caller
    /// adds the length of `bytes` to `state_.bytes`. Source: GEN-010.
    constexpr void place(detail::placed_as as, code time, code const& bytes) noexcept {
        using detail::placed_as;
        bool const is_status = as == placed_as::status;
        bool const is_ip = as == placed_as::ip;
        bool const has_ip = is_ip && bytes.length > 1;
        bool const is_wide_ip = is_ip && bytes.length >= 7;
        if (as == placed_as::mode) {
            hold(time);
            hold(bytes);
            state_.bytes += time.length;
            return;
        }
        if (has_ip) {  // one group with the MODEs before it
            hold(time);
            state_.bytes += time.length;
            time = {};
        } else {
            release_held();
        }
        size_t const group = held_size_ + time.length;
        if (is_wide_ip || is_status) {
            align_head(group + (is_status ? 2 : 1));
        } else if (as == placed_as::psb) {
            align_head(0);
        } else if (as == placed_as::tnt || (is_ip && !has_ip)) {
            align_whole(time.length);
            put(time);
            state_.bytes += time.length;
            time = {};
            align_whole(bytes.length);
        } else if (cyc_crosses_) {
            align_whole(0);
        } else {
            align_whole(group + bytes.length);
        }
        put_held();
        put(time);
        put(bytes);
        state_.bytes += time.length;
        state_.ends_in_payload = is_wide_ip || is_status;
        state_.cycles_at_tnt = 0;
    }
    /// Writes PADs so that the next `length` bytes, the held ones included, do not cross a multiple
    /// of 8.
    constexpr void align_whole(size_t length) noexcept { align_by({.whole = length}); }
    /// Writes PADs so that they end at a multiple of 8.
    constexpr void align_head(size_t length) noexcept { align_by({.head = length, .ends = true}); }
    constexpr void align_by(detail::alignment_of_next const& next) noexcept {
        pad(detail::pads_before(state_.bytes - held_size_, state_.ends_in_payload, next));
        state_.ends_in_payload = false;
    }
    /// Holds bytes that begin a group. If the group becomes too long, writes the held bytes first.
    constexpr void hold(code const& bytes) noexcept {
        if (bytes.length > sizeof held_ - held_size_) { release_held(); }
        copy_bytes(held_ + held_size_, to_le(bytes.bytes).data(), bytes.length);
        held_size_ += bytes.length;
    }
    constexpr void put_held() noexcept {
        copy_bytes(bytes_.data() + size_, held_, held_size_);
        size_ += held_size_;
        held_size_ = 0;
    }
    /// Writes the MODEs that no IP follows, at a multiple of 8.
    constexpr void release_held() noexcept {
        if (held_size_ == 0) { return; }
        align_head(0);
        put_held();
    }
    /// Writes PADs, or sets `broken_` to PKT-347 if the batch has no room for them.
    constexpr void pad(uint64_t const count) noexcept {
        if (count > room()) {
            broken_ = rule::PKT_347;
            return;
        }
        size_ += static_cast<size_t>(count);  // the buffer is zero, and zeros are PADs
        state_.bytes += count;
    }
    /// Stores 16 bytes: the packet, and zeros after it.
    constexpr void put(code const& bytes) noexcept {
        store_le64(bytes_.data() + size_, bytes.bytes.low);
        store_le64(bytes_.data() + size_ + 8, bytes.bytes.high);
        size_ += bytes.length;
    }
    [[nodiscard]] constexpr auto room() const noexcept -> size_t {
        return writer_state::max_bytes - size_;
    }

public:
    constexpr packet_batch(writer_state const& before, writer_options const& options) noexcept
        : state_{before}, options_{options} {}

    /// Ends the batch: nothing may be added after it. Call it before `bytes` and `state`.
    constexpr void finish() noexcept {
        if (options_.pads == pad_policy::skylake) [[unlikely]] { release_held(); }
    }
    [[nodiscard]] constexpr auto bytes() const noexcept -> byte_view {
        return byte_view{bytes_}.first(size_);
    }
    [[nodiscard]] constexpr auto state() const noexcept -> writer_state const& { return state_; }
    /// The rule that a packet broke, or `none`.
    [[nodiscard]] constexpr auto broken() const noexcept -> rule { return broken_; }

    /// Adds core clock cycles that pass between two packets.
    constexpr void advance(uint64_t cycles) noexcept { state_.cycles += cycles; }

    /// Writes the TNT buffer, then the TIPs that were deferred until after it.
    constexpr void flush() noexcept {
        if (state_.tnt.count == 0) { return; }
        // In an open block a decoder could take a short TNT for a BIP.
        bool const is_short = state_.tnt.count <= packet::tnt_short::max_branches &&
                              state_.items == packet::block::none;
        if (is_short) {
            write(packet::tnt_short::of(state_.tnt));
        } else {
            write(packet::tnt_long::of(state_.tnt));
        }
        state_.tnt = {};
        for (unsigned i = 0; i < state_.deferred_count; ++i) {
            uint64_t const ip = state_.deferred[i];
            write(packet::tip::of(state_.form_of(ip, options_.ips), ip));
        }
        state_.deferred_count = 0;
    }

    template <packet::packet_type Packet>
    constexpr void add(Packet const& packet) noexcept {
        flush();
        write(packet,
              Packet::about.cyc_eligible == packet::cyc_rule::yes && state_.cyc_is_due(options_));
    }
    constexpr void add(packet::any_packet const& packet) noexcept {
        if (packet.kind() == packet::kind::none && broken_ == rule::none) {
            broken_ = rule::PKT_015;
        }
        packet::visit<Packets>([this](auto const& one) { this->add(one); }, packet);
    }
    /// A packet with an IP, in the form that the writer selects.
    template <class Packet>
    constexpr void add_ip(packet_ip ip) noexcept {
        flush();  // may change the last IP
        add(Packet::of(state_.form_of(ip.value, options_.ips, same_as<Packet, packet::fup>),
                       ip.value));
    }
    /// Makes the next IP the first one of a context. Source: GEN-011.
    constexpr void begin_context() noexcept { state_.has_context_ip = false; }
    /// PADs up to a multiple of `alignment` bytes.
    constexpr void align_end(unsigned alignment) noexcept {
        release_held();
        state_.ends_in_payload = false;
        pad((alignment - state_.bytes % alignment) % alignment);
    }
    /// A CYC that belongs to no packet.
    constexpr void add_cycles() noexcept {
        flush();
        write(packet::cyc::of(state_.cycles));
        state_.cycles = 0;
    }
    /// A branch, which enters the TNT buffer. The CYC of a TNT is written before its first branch.
    constexpr void branch(bool taken) noexcept {
        if (state_.tnt.count == 0 && state_.cyc_is_due(options_)) {
            cyc_crosses_ = state_.cycles == state_.cycles_at_tnt;
            write(packet::cyc::of(state_.cycles));
            cyc_crosses_ = false;
            state_.cycles = 0;
        }
        state_.add_branch(taken);
        if (state_.tnt.count >= options_.max_branches()) {
            flush();
            state_.cycles_at_tnt = state_.cycles;
        }
    }
    /// A TIP, which is deferred until after the current TNT if the options allow it.
    constexpr void defer(packet_ip ip) noexcept {
        bool const waits = options_.defers_tips && state_.tnt.count != 0 &&
                           !state_.cyc_is_due(options_) &&
                           state_.deferred_count < writer_state::max_deferred;
        if (!waits) { return add_ip<packet::tip>(ip); }
        state_.deferred[state_.deferred_count] = ip.value;
        ++state_.deferred_count;
    }

    /// A PSB+. `before_each(kind)` is called before each of its packets.
    template <class BeforeEach>
    constexpr void add(psb_status const& status, BeforeEach const& before_each) noexcept {
        if (status.tma.has_value && !status.tsc.has_value) {
            broken_ = rule::PKT_135;
            return;
        }
        auto const add_one = [&]<class Packet>(Packet const& packet) {
            before_each(Packet::about.id);
            this->add(packet);
        };
        auto const add_if = [&](auto const& packet) {
            if (packet.has_value) { add_one(packet.value); }
        };
        auto const add_times = [&] {
            add_if(status.tsc);
            add_if(status.tma);
            add_if(status.cbr);
        };
        auto const add_context = [&] {
            bool const before = state_.has_context_ip;
            add_if(status.pip);
            add_if(status.vmcs);
            return before;
        };
        auto const add_exec = [&] { add_if(status.mode_exec); };
        auto const add_fup = [&] {
            if (!status.fup.has_value) { return; }
            before_each(packet::kind::fup);
            add_ip<packet::fup>(status.fup.value);
        };
        add_one(packet::psb{});
        if (options_.in_psb == psb_order::skylake) {
            add_if(status.mode_tsx);
            add_exec();
            add_fup();
            bool const had_ip = add_context();
            add_times();
            // The context of a PSB+ does not change the form of the next IP here. Source: GEN-011.
            if (options_.ips == ip_choice::icelake && !status.vmcs.has_value) {
                state_.has_context_ip = had_ip;
            }
        } else {
            add_times();
            (void)add_context();
            add_if(status.mode_tsx);
            if (options_.in_psb == psb_order::atom) { add_fup(); }
            add_exec();
            if (options_.in_psb != psb_order::atom) { add_fup(); }
        }
        add_one(packet::psbend{});
    }
    constexpr void add(psb_status const& status) noexcept {
        add(status, [](packet::kind) {});
    }
};

}  // namespace ptspec::trace
