// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/output/explain.hpp>
#include <ptspec/base/host_memory.hpp>

#include <support/random_tables.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Compares the engine's output with the byte-by-byte reference model on the same set-up.
namespace ptspec::test {

/// How often interesting events occurred.
struct twin_counts {
    uint64_t errors = 0;
    uint64_t stops = 0;
    uint64_t interrupts = 0;
    uint64_t drops = 0;
    uint64_t advances = 0;
    uint64_t faults = 0;
    uint64_t in_place = 0;
    uint64_t bytes = 0;
    uint64_t rules[256] = {};
};

namespace detail {

/// A digest of all stored bytes, with their addresses and order.
struct store_log {
    uint64_t count = 0;
    uint64_t hash = 0;

    void add(uint64_t address, uint8_t value) {
        ++count;
        hash = (hash ^ (address << 8 | value)) * 0x9E37'79B9'7F4A'7C15;
        hash ^= hash >> 29;
    }
    friend auto operator==(store_log const&, store_log const&) -> bool = default;
};

/// Memory that holds only accessed pages; other pages are 0. As a port it fails like the memory of
/// the reference model: in given pages until they are healed, and at accesses with given numbers.
class page_memory {
public:
    using ignores_pmis = page_memory;

    store_log stores{};
    uint64_t loads = 0;
    reference::memory faults;  ///< only for its list of faults

    /// Resets to the initial state, with these words.
    void reset(std::vector<reference::placed_word> const& words) {
        stores = {};
        loads = 0;
        faults.failing_pages.clear();
        faults.failing_accesses.clear();
        faults.accesses = 0;
        can_fail_ = false;
        firsts_.clear();
        bytes_.clear();
        for (auto const& placed : words) {
            uint8_t word[8];
            store_le64(word, placed.word);
            put(placed.address, byte_view{word});
        }
    }
    void plan(std::vector<reference::fault_plan> const& plans) {
        reference::add_faults(faults, plans);
        can_fail_ = !plans.empty();
    }

    auto load(uint64_t address) -> port_value {
        ++loads;
        if (!works(address)) { return {}; }
        return {true, load_le64(page_of(address) + address % page_size)};
    }
    auto store(uint64_t address, byte_view bytes) -> size_t {
        size_t count = bytes.size();
        if (can_fail_) {
            for (count = 0; count < bytes.size() && works(address + count);) { ++count; }
        }
        put(address, bytes.first(count));
        for (size_t i = 0; i < count; ++i) { stores.add(address + i, bytes[i]); }
        return count;
    }

    void heal() { faults.heal(); }

    static constexpr uint64_t page_size = 4096;

    [[nodiscard]] auto firsts() const -> std::vector<uint64_t> const& { return firsts_; }
    auto page_of(uint64_t address) -> uint8_t* {
        uint64_t const first = address & ~(page_size - 1);
        if (last_ >= firsts_.size() || firsts_[last_] != first) {
            auto const at = std::find(firsts_.begin(), firsts_.end(), first);
            last_ = static_cast<size_t>(at - firsts_.begin());
            if (at == firsts_.end()) {
                firsts_.push_back(first);
                bytes_.resize(bytes_.size() + page_size);
            }
        }
        return bytes_.data() + last_ * page_size;
    }

private:
    std::vector<uint64_t> firsts_;
    std::vector<uint8_t> bytes_;
    size_t last_ = 0;
    bool can_fail_ = false;

    auto works(uint64_t address) -> bool { return !can_fail_ || faults.works(address); }
    void put(uint64_t address, byte_view bytes) {
        while (!bytes.empty()) {
            uint64_t const offset = address % page_size;
            auto const part = bytes.first(static_cast<size_t>(page_size - offset));
            copy_bytes(page_of(address) + offset, part.data(), part.size());
            address += part.size();
            bytes = bytes.from(part.size());
        }
    }
};
static_assert(memory_port<page_memory> && !mapped_memory_port<page_memory>);

inline auto capabilities_of(reference::output_setup const& setup) -> cpu::capabilities {
    cpu::capabilities of;
    of.leaf_14_0_ebx = {setup.inject_capable ? 0x7FU : 0x3FU};
    of.leaf_14_0_ecx = {setup.many_entries ? 0xFU : 0xDU};
    of.leaf_80000008_eax = {0x3000U | setup.max_phys_addr};
    return of;
}

/// The engine with its memory and results.
template <memory_port Memory>
struct engine_side {
    Memory& memory;
    access::msr_state now{};
    engine::output out{};
    std::vector<topa::phys_range> spans{};
    engine::output_options how{};
    uint64_t lost = 0;
    uint64_t pmis = 0;

    auto start(reference::output_setup const& setup) -> port_fault {
        now.ctl = {setup.ctl};
        now.status = {setup.status};
        now.status = now.status.with(
            access::ia32_rtit_status::TriggerEn{access::trigger_en(now.ctl, now.status)});
        now.output.base = {setup.base};
        now.output.mask_ptrs = {setup.mask_ptrs};
        now.perf_global_status = {setup.global_status};
        for (auto const& range : setup.ranges) { spans.push_back({range.first, range.last}); }
        how.restricted.smrr_physbase = {setup.smrr_base};
        how.restricted.smrr_physmask = {setup.smrr_mask};
        how.restricted.extra = spans.data();
        how.restricted.extra_count = spans.size();
        how.when_restricted = setup.restricted_is_error ? engine::restricted_access::error
                                                        : engine::restricted_access::drop;
        how.pmi_lead_bytes = static_cast<uint32_t>(setup.lead);
        return out.start(capabilities_of(setup), now, memory, how);
    }
    auto write(byte_view bytes) -> engine::write_result {
        auto const done = out.write(now, memory, bytes);
        lost += done.lost;
        pmis += done.pmis;
        return done;
    }
    auto matches(reference::machine const& reference) -> bool {
        out.write_back(now);
        uint64_t const ended = reference.error_rule != 0 ? reference.error_rule
                                                         : reference.stop_rule;
        return now.ctl.raw == reference.ctl && now.status.raw == reference.status &&
               now.output.base.raw == reference.base &&
               now.output.mask_ptrs.raw == reference.mask_ptrs &&
               now.perf_global_status.raw == reference.global_status &&
               underlying(out.ended_by()) == ended && pmis == reference.pmis;
    }
};

/// The expected result of a write without fault.
inline auto expected_result(reference::packet_counts const& packet_counts, uint64_t pmis)
    -> engine::write_result {
    return {.taken = static_cast<size_t>(packet_counts.taken),
            .stored = packet_counts.stored,
            .lost = packet_counts.lost,
            .pmis = pmis,
            .first = packet_counts.first,
            .last = packet_counts.last,
            .has_address = packet_counts.placed};
}

/// The reference model, which writes byte by byte and logs its stores.
struct reference_side {
    reference::machine machine;
    store_log stores{};
    uint64_t lost = 0;
    uint64_t dropped = 0;
    uint64_t fills = 0;

    auto write(byte_view bytes) -> reference::packet_counts {
        reference::packet_counts packet_counts;
        for (size_t i = 0; i < bytes.size(); ++i) {
            bool const by_table = machine.on() && machine.topa();
            auto const byte = machine.write_byte(bytes[i]);
            packet_counts.add(byte);
            if (byte.what == reference::outcome::stored) { stores.add(byte.address, bytes[i]); }
            if (byte.what == reference::outcome::dropped) { ++dropped; }
            if (by_table && machine.offset() == 0) { ++fills; }
        }
        lost += packet_counts.lost;
        return packet_counts;
    }
};

/// A part of the byte stream that `trace_byte` defines.
inline auto stream() -> std::vector<uint8_t> const& {
    static std::vector<uint8_t> const bytes = [] {
        std::vector<uint8_t> made(251 + 0x1'0000);
        for (size_t i = 0; i < made.size(); ++i) { made[i] = reference::trace_byte(i); }
        return made;
    }();
    return bytes;
}
inline auto stream_from(uint64_t at, uint64_t count) -> byte_view {
    return byte_view{stream()}
        .from(static_cast<size_t>(at % 251))
        .first(static_cast<size_t>(count));
}

/// A copy of the pages that can be written in place. Adjacent pages form one region.
class mapped_pages {
public:
    /// Takes the pages that were accessed, with their initial contents.
    void reset(std::vector<uint64_t> const& firsts,
               std::vector<reference::placed_word> const& words) {
        firsts_ = firsts;
        std::sort(firsts_.begin(), firsts_.end());
        bytes_.assign(firsts_.size() * page_memory::page_size, 0);
        regions_ = regions_without({});
        auto here = memory();
        for (auto const& placed : words) {
            uint8_t word[8];
            store_le64(word, placed.word);
            (void)here.store(placed.address, word);
        }
    }
    [[nodiscard]] auto memory() const -> host_memory { return {regions_.data(), regions_.size()}; }
    /// The same memory without the pages that fail.
    auto failing_memory(std::vector<reference::fault_plan> const& plans) -> host_memory {
        some_regions_ = regions_without(plans);
        return {some_regions_.data(), some_regions_.size()};
    }
    [[nodiscard]] auto same_as(page_memory& other) const -> bool {
        for (size_t i = 0; i < firsts_.size(); ++i) {
            auto const* const theirs = other.page_of(firsts_[i]);
            auto const* const ours = bytes_.data() + i * page_memory::page_size;
            if (!std::equal(ours, ours + page_memory::page_size, theirs)) { return false; }
        }
        return true;
    }

private:
    std::vector<uint64_t> firsts_;
    std::vector<uint8_t> bytes_;
    std::vector<host_region> regions_;
    std::vector<host_region> some_regions_;

    auto regions_without(std::vector<reference::fault_plan> const& plans)
        -> std::vector<host_region> {
        std::vector<host_region> regions;
        for (size_t i = 0; i < firsts_.size(); ++i) {
            bool fails = false;
            for (auto const& plan : plans) {
                fails = fails || (plan.whole_page && plan.value == firsts_[i]);
            }
            if (fails) { continue; }
            auto* const first = bytes_.data() + i * page_memory::page_size;
            bool const follows = !regions.empty() &&
                                 regions.back().base + regions.back().size == firsts_[i];
            if (follows) {
                regions.back().size += page_memory::page_size;
            } else {
                regions.push_back({firsts_[i], first, page_memory::page_size});
            }
        }
        return regions;
    }
};

/// A memory in which some pages are missing until it is healed.
struct healing_memory {
    using ignores_pmis = healing_memory;

    host_memory now;
    host_memory whole;

    auto load(uint64_t address) -> port_value { return now.load(address); }
    auto store(uint64_t address, byte_view bytes) -> size_t { return now.store(address, bytes); }
    auto window(uint64_t address) -> byte_window { return now.window(address); }
    void heal() { now = whole; }
};
static_assert(mapped_memory_port<healing_memory>);

/// Passes bytes to a unit until it has taken all of them. Faults are healed after two attempts
/// without progress. `variant` selects what is done between two attempts.
template <memory_port Memory>
class retrying_writer {
public:
    retrying_writer(engine_side<Memory>& unit, uint64_t variant) : unit_{unit}, manner_{variant} {}

    void write(byte_view bytes) {
        while (!bytes.empty()) {
            auto const done = unit_.write(bytes);
            stored += done.stored;
            bytes = bytes.from(done.taken);
            if (done) { continue; }
            after_a_fault(done.taken != 0);
        }
    }
    /// Resumes until no access is pending.
    void finish() {
        while (unit_.out.retry(unit_.now, unit_.memory).happened) { after_a_fault(false); }
    }
    void after_a_fault(bool moved) {
        ++faults;
        attempts_without_progress_ = moved ? 0 : attempts_without_progress_ + 1;
        if (attempts_without_progress_ == 2) { unit_.memory.heal(); }
        uint64_t const choice = (manner_ + faults) % 3;
        if (choice == 1) { (void)unit_.out.retry(unit_.now, unit_.memory); }
        if (choice == 2) { (void)unit_.write({}); }
    }

    uint64_t faults = 0;
    uint64_t stored = 0;

private:
    engine_side<Memory>& unit_;
    uint64_t manner_;
    unsigned attempts_without_progress_ = 0;
};

}  // namespace detail

/// Runs the engine and the reference model on many set-ups.
class output_twins {
public:
    twin_counts seen{};

    /// A description of the first difference, or null. `variant` varies the handling of faults.
    auto difference(reference::output_setup const& setup, uint64_t variant) -> char const* {
        detail::reference_side reference{reference::machine_of(setup)};
        (void)reference.machine.enable();
        memory_.reset(setup.words);
        detail::engine_side<detail::page_memory> unit{memory_};
        if (unit.start(setup).happened) { return "an unexpected fault"; }
        if (!unit.matches(reference.machine)) { return "the registers after TraceEn rose"; }
        uint64_t at = 0;
        expected_.clear();
        for (uint64_t const count : setup.writes) {
            auto const bytes = detail::stream_from(at, count);
            at += count;
            uint64_t const pmis = reference.machine.pmis;
            auto const packet_counts = reference.write(bytes);
            expected_.push_back(
                detail::expected_result(packet_counts, reference.machine.pmis - pmis));
            if (unit.write(bytes) != expected_.back()) { return "the result of a write"; }
            if (!unit.matches(reference.machine)) { return "the registers after a write"; }
        }
        if (memory_.stores != reference.stores) { return "the bytes that were stored"; }
        loads_ = memory_.loads;
        if (loads_ > 2 * reference.fills + 2) { return "more loads than there are entries"; }
        if (!explains(setup, unit, reference.machine)) { return "the explanation"; }
        note(reference, at);

        if (auto const what = in_place(setup, reference)) { return what; }
        if (auto const what = in_pieces(setup, reference, variant)) { return what; }
        return with_faults(setup, reference, variant);
    }

private:
    detail::page_memory memory_;
    detail::page_memory other_;
    detail::mapped_pages mapped_;
    std::vector<engine::write_result> expected_;  ///< of each write
    uint64_t loads_ = 0;

    /// `explain` must agree with the unit. The check is skipped when the entry in memory has
    /// changed since it was read.
    static auto explains(reference::output_setup const& setup,
                         detail::engine_side<detail::page_memory>& unit,
                         reference::machine const& reference) -> bool {
        rule const why = unit.out.ended_by();
        if (why == rule::none) { return true; }
        uint64_t const at = reference.base + 8 * reference.index();
        bool const was_read = why != rule::OUT_061 && why != rule::OUT_071 && why != rule::OUT_091;
        if (reference.topa() && was_read && unit.memory.load(at).value != reference.entry) {
            return true;
        }
        auto const expected = engine::explain(detail::capabilities_of(setup), unit.now, unit.memory,
                                              unit.how);
        return expected.ended_by == why && expected.has_place == reference.topa() &&
               (!expected.has_place ||
                (expected.at ==
                 topa::position{reference.base, static_cast<uint32_t>(reference.index())}));
    }

    auto in_place(reference::output_setup const& setup, detail::reference_side const& reference)
        -> char const* {
        mapped_.reset(memory_.firsts(), setup.words);
        auto memory = mapped_.memory();
        detail::engine_side<host_memory> unit{memory};
        if (unit.start(setup).happened) { return "a fault in place"; }
        uint64_t at = 0;
        for (size_t i = 0; i < expected_.size(); ++i) {
            auto const count = setup.writes[i];
            if (unit.write(detail::stream_from(at, count)) != expected_[i]) {
                return "the result of a write in place";
            }
            at += count;
        }
        if (!unit.matches(reference.machine) || unit.lost != reference.lost) {
            return "the registers after writing in place";
        }
        ++seen.in_place;
        return mapped_.same_as(memory_) ? nullptr : "the bytes that were written in place";
    }

    /// Writes byte by byte where bytes are few, otherwise in pieces of a size that `variant`
    /// selects.
    auto in_pieces(reference::output_setup const& setup, detail::reference_side const& reference,
                   uint64_t variant) -> char const* {
        other_.reset(setup.words);
        detail::engine_side<detail::page_memory> unit{other_};
        (void)unit.start(setup);
        uint64_t at = 0;
        for (uint64_t const count : setup.writes) {
            auto const bytes = detail::stream_from(at, count);
            size_t const piece = count < 500 ? 1 : static_cast<size_t>(1 + variant % 61);
            at += count;
            for (size_t i = 0; i < bytes.size(); i += piece) {
                (void)unit.write(bytes.from(i).first(piece));
            }
        }
        bool const same = unit.matches(reference.machine) && unit.lost == reference.lost &&
                          other_.stores == reference.stores && other_.loads == loads_;
        return same ? nullptr : "writing in pieces";
    }

    auto with_faults(reference::output_setup const& setup, detail::reference_side const& reference,
                     uint64_t variant) -> char const* {
        if (setup.faults.empty()) { return nullptr; }
        other_.reset(setup.words);
        other_.plan(setup.faults);
        if (!ends_the_same(setup, reference, variant, other_)) { return "the end after faults"; }
        if (other_.stores != reference.stores) {
            return "the bytes that were stored despite faults";
        }

        mapped_.reset(memory_.firsts(), setup.words);
        detail::healing_memory mapped{mapped_.failing_memory(setup.faults), mapped_.memory()};
        if (!ends_the_same(setup, reference, variant, mapped)) {
            return "the end after faults in place";
        }
        return mapped_.same_as(memory_) ? nullptr : "the bytes that were written despite faults";
    }

    template <memory_port Memory>
    auto ends_the_same(reference::output_setup const& setup,
                       detail::reference_side const& reference, uint64_t variant, Memory& memory)
        -> bool {
        detail::engine_side<Memory> unit{memory};
        detail::retrying_writer<Memory> writer{unit, variant};
        if (unit.start(setup).happened) { writer.after_a_fault(false); }
        uint64_t at = 0;
        for (uint64_t const count : setup.writes) {
            writer.write(detail::stream_from(at, count));
            at += count;
        }
        writer.finish();
        seen.faults += writer.faults != 0 ? 1 : 0;
        return unit.matches(reference.machine) && unit.lost == reference.lost;
    }

    void note(detail::reference_side const& reference, uint64_t bytes) {
        auto const& machine = reference.machine;
        seen.errors += machine.error_rule != 0 ? 1 : 0;
        seen.stops += machine.stop_rule != 0 ? 1 : 0;
        seen.interrupts += machine.pmis != 0 ? 1 : 0;
        seen.drops += reference.dropped != 0 ? 1 : 0;
        seen.advances += reference.fills != 0 ? 1 : 0;
        seen.bytes += bytes;
        ++seen.rules[machine.error_rule % 1000 % 256];
        ++seen.rules[machine.stop_rule % 1000 % 256];
        seen.rules[0] = 0;
    }
};

}  // namespace ptspec::test
