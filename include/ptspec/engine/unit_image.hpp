// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/access/image.hpp>
#include <ptspec/engine/trace_unit.hpp>

/// Serialises a `trace_unit` to bytes, for storage or migration to another processor.
namespace ptspec::engine {

using access::error;

/// The format version that `store` writes.
inline constexpr uint32_t unit_image_version = 1;

namespace detail {

/// Serialises the state of a unit other than its MSRs. Saving and loading share one list of
/// members.
struct unit_codec {
    /// Calls `each` with every number that has a fixed offset in an image, and with the greatest
    /// valid value of the number unless every value of its type is valid.
    template <class Unit, class Each>
    static constexpr void visit(Unit& unit, Each& each) noexcept {
        each(unit.state_.ip);
        visit_code(unit.state_.code, each);
        visit_packets(unit.state_.writer, each);
        visit_view(unit, each);
        each(unit.state_.clocks.art);
        each(unit.state_.clocks.tsc);
        each(unit.state_.clocks.tsc_at_edge);
        each(unit.state_.clocks.core_to_bus);
        each(unit.state_.clocks.are_off);
        each(unit.state_.concealment.non_root);
        each(unit.state_.concealment.exits);
        each(unit.state_.concealment.entries);
        each(unit.state_.vmcs);
        each(unit.state_.tx_depth);
        each(unit.state_.in_acm);
        each(unit.state_.trace_en_after_acm);
        each(unit.state_.shutdown_by);
        each(unit.total_.stored);
        each(unit.total_.lost);
        each(unit.total_.pmis);
    }
    template <class Code, class Each>
    static constexpr void visit_code(Code& code, Each& each) noexcept {
        each(code.cr3);
        each(code.cs_base);
        each(code.cpl, 3);
        each(code.width, underlying(code_width::bits_64));
        each(code.real_mode);
        each(code.virtual_8086);
        each(code.pae);
        each(code.IF);
        each(code.inside, underlying(enclave::production));
        each(code.vmx_non_root);
    }
    /// Omits the open block: none is open between two operations.
    template <class State, class Each>
    static constexpr void visit_packets(State& state, Each& each) noexcept {
        each(state.last_ip);
        each(state.has_last_ip);
        each(state.has_context_ip);
        each(state.ends_in_payload);
        each(state.tnt.count);
        each(state.tnt.bits);
        each(state.cycles);
        each(state.cycles_at_tnt);
        each(state.bytes);
        each(state.deferred_count, trace::writer_state::max_deferred);
        for (auto& ip : state.deferred) { each(ip); }
    }
    template <class Unit, class Each>
    static constexpr void visit_view(Unit& unit, Each& each) noexcept {
        each(unit.state_.view.mode);
        each(unit.state_.view.pip);
        each(unit.state_.view.in_tx);
        each(unit.state_.view.psb_requested);
        each(unit.state_.view.count_start);
        each(unit.state_.in_overflow);
        each(unit.state_.overflow_requested);
        each(unit.state_.deferred_ovf, underlying(deferred_ovf::ovf_and_trace_stop));
    }

    /// Writes each number as 8 bytes.
    struct writer {
        uint8_t* next;

        constexpr void operator()(auto const& number, auto...) noexcept {
            store_le64(next, static_cast<uint64_t>(number));
            next += sizeof(uint64_t);
        }
    };
    /// Reads numbers of 8 bytes each. The caller must check the size first.
    struct reader {
        uint8_t const* from;
        bool all_possible = true;

        template <class Number>
        constexpr void operator()(Number& number,
                                  uint64_t max_value = greatest<Number>()) noexcept {
            uint64_t const value = load_le64(from);
            from += sizeof value;
            all_possible = all_possible && value <= max_value;
            if (value <= max_value) { number = static_cast<Number>(value); }
        }
        template <class Number>
        static constexpr auto greatest() noexcept -> uint64_t {
            return same_as<Number, bool> ? 1 : low_bits(8 * sizeof(Number));
        }
    };
    struct counter {
        size_t count = 0;

        constexpr void operator()(auto const&...) noexcept { ++count; }
    };

    /// The part of an image before the numbers of `unit_codec::visit`.
    struct front {
        static constexpr uint64_t magic = 0x0000'5449'4E55'5450;  ///< the letters PTUNIT
        static constexpr size_t msrs_at = 16;
        static constexpr size_t size = msrs_at + access::image_size + 5 * sizeof(uint64_t);

        access::ia32_rtit_ctl ctl_at_start{};
        rule ended_by = rule::none;
        uint8_t flushing = 0;  ///< the pending action: 1 `flush`, 2 `save`, 0 neither
        uint8_t calls = 0;
        uint64_t bytes = 0;

        template <class Self, class Each>
        static constexpr void visit(Self& self, Each& each) noexcept {
            each(self.ctl_at_start.raw);
            each(self.ended_by);
            each(self.flushing, 2);
            each(self.calls, trace::return_stack::max_count);
            each(self.bytes);
        }
    };

    /// The size of an image without calls and without buffered bytes.
    template <size_t Depth>
    static constexpr auto min_bytes() noexcept -> size_t {
        trace_unit<Depth> unit{cpu::capabilities{}};
        counter numbers;
        visit(unit, numbers);
        return front::size + numbers.count * sizeof(uint64_t);
    }

    template <size_t Depth>
    static constexpr auto store(trace_unit<Depth> unit, uint8_t* const image) noexcept -> size_t {
        copy_bytes(image + front::msrs_at, access::store(unit.msrs()).data(), access::image_size);
        using pending = typename trace_unit<Depth>::pending_action;
        uint8_t const flushing = unit.pending_ == pending::save    ? 2
                                 : unit.pending_ == pending::flush ? 1
                                                                   : 0;
        front const first{unit.ctl_at_start_, unit.output_.ended_by(), flushing,
                          static_cast<uint8_t>(unit.state_.calls.size()), unit.queue_.size()};
        writer numbers{image + front::msrs_at + access::image_size};
        front::visit(first, numbers);
        visit(unit, numbers);
        for (unsigned i = 0; i < unit.state_.calls.size(); ++i) { numbers(unit.state_.calls[i]); }
        for (; !unit.queue_.empty(); unit.queue_.drop(unit.queue_.front().size())) {
            copy_bytes(numbers.next, unit.queue_.front().data(), unit.queue_.front().size());
            numbers.next += unit.queue_.front().size();
        }
        auto const size = static_cast<size_t>(numbers.next - image);
        store_le64(image, front::magic);
        store_le64(image + 8, uint64_t{size} << 32 | unit_image_version);
        return size;
    }

    /// Loads the image into a new unit, which has the MSRs of the image already.
    template <size_t Depth>
    static constexpr auto load(byte_view image, trace_unit<Depth>& unit) noexcept -> access::error {
        front first;
        reader numbers{image.data() + front::msrs_at + access::image_size};
        front::visit(first, numbers);
        visit(unit, numbers);
        bool const is_on = unit.state_.msrs.ctl.template get<access::ia32_rtit_ctl::TraceEn>();
        auto const& written = unit.state_.writer;
        bool const are_branches = written.tnt.count < unit.state_.write_options.max_branches() &&
                                  written.tnt.bits <= low_bits(written.tnt.count);
        if (!numbers.all_possible || !are_branches || (first.flushing != 0 && is_on)) {
            return access::error::out_of_range;
        }
        byte_view const calls = image.from(min_bytes<Depth>());
        if (first.bytes > calls.size() ||
            calls.size() - first.bytes != first.calls * sizeof(uint64_t)) {
            return access::error::wrong_size;
        }
        for (size_t i = 0; i < first.calls; ++i) {
            unit.state_.calls.push(load_le64(calls.data() + i * sizeof(uint64_t)));
        }
        if (!unit.queue_.append(calls.from(first.calls * sizeof(uint64_t)))) {
            return access::error::no_room;
        }
        unit.ctl_at_start_ = first.ctl_at_start;
        unit.output_ = output{first.ended_by};
        bool const has_ended = first.ended_by != rule::none;
        unit.output_active_ = has_ended && (is_on || first.flushing != 0);
        using pending = typename trace_unit<Depth>::pending_action;
        unit.pending_ = first.flushing == 2   ? pending::save
                        : first.flushing == 1 ? pending::flush
                        : is_on && !has_ended ? pending::start_output
                                              : pending::none;
        start_period(unit.state_, unit.state_.view.count_start);
        refresh_cache(unit.state_);
        return access::error::none;
    }
};

}  // namespace detail

/// The serialised form of a unit.
template <size_t Depth>
struct unit_image {
    /// The maximum size in bytes.
    static constexpr size_t max_bytes = detail::unit_codec::min_bytes<Depth>() +
                                        sizeof(uint64_t) * trace::return_stack::max_count + Depth;

    byte_array<max_bytes> bytes{};
    size_t size = 0;

    [[nodiscard]] constexpr auto view() const noexcept -> byte_view {
        return byte_view{bytes}.first(size);
    }
};

/// Serialises a unit, except the capabilities and `model_options`, which `load` takes as arguments,
/// and `generator_state::ctl_load_verdict`.
///
/// Shape: a header of 16 bytes: `PTUNIT` and two zero bytes, then the version and the size in
///        bytes, 4 bytes each. Then the image of the MSRs from `access::store`, 8 bytes for each
///        number, 8 bytes for each entry of the return stack, oldest first, and the buffered bytes.
///        All numbers are little-endian.
template <size_t Depth>
[[nodiscard]] constexpr auto store(trace_unit<Depth> const& unit) noexcept -> unit_image<Depth> {
    unit_image<Depth> image;
    image.size = detail::unit_codec::store(unit, image.bytes.data());
    return image;
}

/// A deserialised unit, or why the image was rejected.
template <size_t Depth>
struct unit_load {
    access::error error = access::error::none;
    rule broken = rule::none;  ///< for `refused`: the rule that the value breaks
    msr_index msr{};           ///< for `refused`: the MSR
    trace_unit<Depth> unit;    ///< a unit after a cold reset on an error

    constexpr explicit operator bool() const noexcept { return error == access::error::none; }
};

/// Deserialises a unit and checks that the processor `caps` can hold its MSRs. The bytes are
/// untrusted.
///
/// Output continues at the position in the MSRs: the current ToPA entry is read again.
///
/// Errors: those of `access::load` for the MSRs, and those of `access::error` for the other state.
template <size_t Depth = 1024>
[[nodiscard]] constexpr auto load(cpu::capabilities const& caps, byte_view image,
                                  model_options const& options) noexcept -> unit_load<Depth> {
    using detail::unit_codec;
    using front = unit_codec::front;
    trace_unit<Depth> const none{caps, {}, 0, options};
    auto const fails = [&](access::error error) {
        return unit_load<Depth>{.error = error, .unit = none};
    };
    if (image.size() < 8) { return fails(access::error::truncated); }
    if (load_le64(image.data()) != front::magic) { return fails(access::error::not_an_image); }
    if (image.size() < front::msrs_at) { return fails(access::error::truncated); }
    uint64_t const form = load_le64(image.data() + 8);
    if ((form & low_bits(32)) != unit_image_version) { return fails(access::error::other_version); }
    uint64_t const size = form >> 32;
    if (size < unit_codec::min_bytes<Depth>()) { return fails(access::error::wrong_size); }
    if (image.size() < size) { return fails(access::error::truncated); }
    if (image.size() > size) { return fails(access::error::wrong_size); }

    auto const msrs = access::load(caps, image.from(front::msrs_at).first(access::image_size));
    if (!msrs) { return {msrs.error, msrs.broken, msrs.msr, none}; }
    uint64_t const ctl = load_le64(image.data() + front::msrs_at + access::image_size);
    auto const index = access::ia32_rtit_ctl::address;
    if (rule const broken = access::broken_rule_of_value(caps, index, ctl); broken != rule::none) {
        return {access::error::refused, broken, index, none};
    }
    unit_load<Depth> loaded{.unit = {caps, msrs.state, {}, 0, options}};
    loaded.error = unit_codec::load(image, loaded.unit);
    return loaded ? loaded : fails(loaded.error);
}
/// The same, with the options of the processor's kind.
template <size_t Depth = 1024>
[[nodiscard]] constexpr auto load(cpu::capabilities const& caps, byte_view image) noexcept
    -> unit_load<Depth> {
    return load<Depth>(caps, image, options_of(caps));
}

}  // namespace ptspec::engine
