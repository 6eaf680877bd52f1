// SPDX-License-Identifier: BSL-1.0
#pragma once

// How the code of a kernel changes with time: pokes, and code that is registered and unregistered.

#include "../tool.hpp"
#include "cpu_threads.hpp"

#include <ptspec/base/address.hpp>
#include <ptspec/base/bytes.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace traced {

/// Code that the kernel registers by a KSYMBOL record: a BPF program, or code out of line.
struct registered_code {
    std::uint64_t address = 0;
    std::uint32_t size = 0;
    std::string name{};
    bool is_bpf = false;
    std::uint32_t program = 0;  ///< the id of the BPF program; 0: unknown
    std::uint64_t begin = 0;
    std::uint64_t end = ~std::uint64_t{0};  ///< the time at which it is unregistered
    byte_view code{};                       ///< empty: the file does not have it
    bool is_in_copy = false;                ///< else the copy of the kernel is of another time

    [[nodiscard]] auto is_at(std::uint64_t at) const -> bool { return at - address < size; }
};

/// What the pokes say of the copy of the kernel's code that they change.
struct copy_of_kernel {
    std::size_t pokes = 0;
    std::size_t places = 0;     ///< pokes that overlap are of one place
    std::size_t untimed = 0;    ///< places with a poke that has no time
    std::size_t unmatched = 0;  ///< places at which the copy has none of their states
    std::size_t ignored = 0;    ///< records that cannot be applied
    bool is_of_start = true;    ///< each place has its first state, as far as it is in the copy
    bool is_of_end = true;
    bool is_compared = false;  ///< a place is in the copy
    time_range when{};         ///< in which the copy was made
};

/// The changes of the kernel's code, and the bytes that they leave at each time. The number of
/// changes up to a time is its epoch.
///
/// A byte that a poke covers is known by the records alone: from a poke to the next one by both,
/// which must agree; before the first one by its old bytes; after the last one by its new bytes.
/// Where the copy of the kernel contradicts all of these, the byte is not known. Code is absent
/// before it is added or registered, and after it is removed or unregistered.
class kernel_changes {
public:
    /// Bytes of the kernel that the changes do not cover.
    struct base {
        /// The bytes at an address, to the end of their segment.
        virtual auto at(std::uint64_t address) const -> byte_view = 0;
        /// Whether the bytes are those of the recorded memory. A vmlinux is older: the kernel has
        /// changed it before the first record.
        bool is_memory = false;
        time_range when{};  ///< in which it was copied

    protected:
        ~base() = default;
    };

    // ------------------------------------------------------------- changes, in the order of time

    /// `old_bytes` become `new_bytes`; empty: the code is added, or removed.
    void poke(std::uint64_t time, std::uint64_t address, byte_view old_bytes, byte_view new_bytes,
              bool has_time) {
        auto const size = std::max(old_bytes.size(), new_bytes.size());
        if (!is_kernel(address, size)) { return ignore(); }
        poked const made{bytes_.size(), static_cast<std::uint32_t>(old_bytes.size()),
                         static_cast<std::uint32_t>(new_bytes.size()), owner_of(address), has_time};
        bytes_.insert(bytes_.end(), old_bytes.begin(), old_bytes.end());
        bytes_.insert(bytes_.end(), new_bytes.begin(), new_bytes.end());
        add({has_time ? time : 0, address, static_cast<std::uint32_t>(size), kind::poke,
             static_cast<std::uint32_t>(pokes_.size())});
        pokes_.push_back(made);
    }
    void register_code(std::uint64_t time, registered_code made) {
        if (!is_kernel(made.address, made.size) || made.size > max_registered) { return ignore(); }
        auto const same = alive_.find(made.address);
        if (same != alive_.end()) {
            auto const& known = codes_[same->second];
            if (known.size == made.size && known.name == made.name) { return; }
        }
        auto next = alive_.lower_bound(made.address);
        if (next != alive_.begin() && codes_[std::prev(next)->second].is_at(made.address)) {
            end_of(std::prev(next), time);
        }
        while (next != alive_.end() && next->first - made.address < made.size) {
            next = end_of(next, time);
        }
        made.begin = time;
        add_code(std::move(made));
        alive_[codes_.back().address] = static_cast<std::uint32_t>(codes_.size() - 1);
        unnamed_.push_back(codes_.size() - 1);
    }
    void unregister_code(std::uint64_t time, registered_code gone) {
        if (!is_kernel(gone.address, gone.size) || gone.size > max_registered) { return ignore(); }
        auto const found = alive_.find(gone.address);
        if (found != alive_.end()) {
            end_of(found, time);
        } else if (!known_.contains(gone.address)) {  // it was there before the recording
            add_code(std::move(gone));
            auto& made = codes_.back();
            made.end = time;
            add({time, made.address, made.size, kind::end, last_code()});
        }
    }
    /// The code that was registered since the last call belongs to this BPF program.
    void load_program(std::uint32_t id) {
        for (auto const i : unnamed_) { codes_[i].program = id; }
        unnamed_.clear();
    }

    /// Compares the pokes with a copy, after the last change. `find_code(code)` returns the bytes
    /// of registered code, or none.
    template <class FindCode>
    void settle(base const& copy, FindCode const& find_code) {
        copy_ = &copy;
        tool::stable_sort(changes_,
                          [](auto const& one, auto const& two) { return one.time < two.time; });
        for (auto const& one : changes_) { times_.push_back(one.time); }
        make_chunks();
        about_.when = copy.when;
        compare([](auto const& one) { return one == no_code; });
        for (auto& one : codes_) {
            one.code = find_code(one);
            // The copy has it if it existed all the time in which the copy may have been made.
            bool const was_there = one.begin <= about_.when.first && about_.when.last <= one.end;
            one.is_in_copy = was_there && !copy.at(one.address).empty();
        }
        compare([](auto const& one) { return one != no_code; });
    }

    // ------------------------------------------------------------------------------ the bytes

    /// Whether the code is not the same at all times.
    [[nodiscard]] auto has_epochs() const -> bool { return !times_.empty() && times_.back() != 0; }
    [[nodiscard]] auto is_empty() const -> bool { return changes_.empty(); }
    /// The epochs of the ends of a range.
    [[nodiscard]] auto epochs_in(time_range when) const -> std::pair<std::uint32_t, std::uint32_t> {
        return {epoch_of(when.first), epoch_of(when.last)};
    }
    /// The bytes at an address that are the same from one epoch to another: up to the first that
    /// is not known, at most to the end of a segment of the copy. They stay valid.
    [[nodiscard]] auto code(std::uint64_t address, std::uint32_t first, std::uint32_t last)
        -> byte_view {
        auto const chunk = align_down(address, chunk_size);
        auto const begin = std::lower_bound(chunks_.begin(), chunks_.end(), entry{chunk, 0});
        if (is_full_) { return {}; }
        if (begin == chunks_.end() || begin->chunk != chunk) {
            auto const bytes = copy_->at(address);
            if (begin == chunks_.end()) { return bytes; }
            auto const room = std::min<std::uint64_t>(bytes.size(), begin->chunk - address);
            return bytes.first(static_cast<std::size_t>(room));
        }
        auto const end = std::upper_bound(begin, chunks_.end(), entry{chunk, no_code});
        auto const place = [&](std::uint32_t epoch) {
            auto const at = std::lower_bound(begin, end, entry{chunk, epoch});
            return static_cast<std::uint32_t>(at - begin);
        };
        auto const from = place(first);
        auto const to = place(last);
        auto const [at, is_new] = images_.try_emplace({chunk, from, to});
        if (is_new) { at->second = made_image(chunk, &*begin, end - begin, from, to); }
        auto const& found = *at->second;
        auto const offset = static_cast<std::size_t>(address - chunk);
        std::size_t size = 0;
        while (offset + size < image_size && found.is_known[offset + size]) { ++size; }
        return byte_view{found.bytes.data(), image_size}.from(offset).first(size);
    }

    [[nodiscard]] auto about() const -> copy_of_kernel const& { return about_; }
    [[nodiscard]] auto codes() const -> std::vector<registered_code> const& { return codes_; }

private:
    /// Images have the bytes of a chunk, and those after it that an instruction in it may have.
    static constexpr std::uint64_t chunk_size = 64;
    static constexpr std::size_t image_size = 80;
    static constexpr std::uint32_t no_code = 0xFFFF'FFFF;
    static constexpr std::uint32_t max_registered = std::uint32_t{1} << 24;
    // Limits of memory and work, for crafted files. Above them all code is missing.
    static constexpr std::size_t max_entries = std::size_t{1} << 22;
    static constexpr std::size_t max_images = std::size_t{1} << 20;
    static constexpr std::uint64_t max_steps = std::uint64_t{1} << 30;

    enum class kind : std::uint8_t { poke, begin, end };
    struct change {
        std::uint64_t time;
        std::uint64_t address;
        std::uint32_t size;
        enum kind kind;
        std::uint32_t index;  ///< of the poke, or of the registered code

        [[nodiscard]] auto covers(std::uint64_t at) const -> bool { return at - address < size; }
    };
    struct poked {
        std::size_t place;  ///< of its bytes
        std::uint32_t old_size;
        std::uint32_t new_size;
        std::uint32_t owner;  ///< the registered code that it changes, or `no_code`
        bool is_known;        ///< it has a time, and the copy does not contradict it
    };
    struct entry {
        std::uint64_t chunk;
        std::uint32_t change;

        friend auto operator<=>(entry const&, entry const&) = default;
    };
    struct image {
        std::array<std::uint8_t, image_size> bytes{};
        std::array<bool, image_size> is_known{};
    };
    /// A byte; -1: absent, or not known.
    using maybe_byte = std::int16_t;
    static constexpr maybe_byte none = -1;

    [[nodiscard]] static auto is_kernel(std::uint64_t address, std::uint64_t size) -> bool {
        return address >> 63 != 0 && size != 0 && size - 1 <= ~address;
    }
    void ignore() { ++about_.ignored; }
    void add(change const& one) { changes_.push_back(one); }
    [[nodiscard]] auto last_code() const -> std::uint32_t {
        return static_cast<std::uint32_t>(codes_.size() - 1);
    }
    void add_code(registered_code made) {
        known_.insert(made.address);
        codes_.push_back(std::move(made));
        auto const& one = codes_.back();
        add({one.begin, one.address, one.size, kind::begin, last_code()});
    }
    using alive_place = std::map<std::uint64_t, std::uint32_t>::iterator;
    auto end_of(alive_place which, std::uint64_t time) -> alive_place {
        auto& one = codes_[which->second];
        one.end = time;
        add({time, one.address, one.size, kind::end, which->second});
        return alive_.erase(which);
    }
    [[nodiscard]] auto owner_of(std::uint64_t address) const -> std::uint32_t {
        auto next = alive_.upper_bound(address);
        if (next == alive_.begin()) { return no_code; }
        --next;
        return codes_[next->second].is_at(address) ? next->second : no_code;
    }
    [[nodiscard]] auto epoch_of(std::uint64_t time) const -> std::uint32_t {
        auto const next = std::upper_bound(times_.begin(), times_.end(), time);
        return static_cast<std::uint32_t>(next - times_.begin());
    }
    void give_up() {
        if (!is_full_) {
            tool::print_error("the kernel's code changes too often: all of it is missing");
        }
        is_full_ = true;
    }
    void make_chunks() {
        for (std::size_t i = 0; i < changes_.size(); ++i) {
            auto const& one = changes_[i];
            auto const last = align_down(one.address + (one.size - 1), chunk_size);
            auto chunk = align_down(one.address - (image_size - chunk_size), chunk_size);
            if (chunks_.size() + (last - chunk) / chunk_size >= max_entries) { return give_up(); }
            for (;; chunk += chunk_size) {
                chunks_.push_back({chunk, static_cast<std::uint32_t>(i)});
                if (chunk == last) { break; }
            }
        }
        std::sort(chunks_.begin(), chunks_.end());
    }

    // -------------------------------------------------------------------------- bytes of pokes

    [[nodiscard]] auto old_byte(change const& of, std::uint64_t at) const -> maybe_byte {
        auto const& one = pokes_[of.index];
        auto const offset = at - of.address;
        return one.is_known && offset < one.old_size
                   ? bytes_[one.place + static_cast<std::size_t>(offset)]
                   : none;
    }
    [[nodiscard]] auto new_byte(change const& of, std::uint64_t at) const -> maybe_byte {
        auto const& one = pokes_[of.index];
        auto const offset = at - of.address;
        return one.is_known && offset < one.new_size
                   ? bytes_[one.place + one.old_size + static_cast<std::size_t>(offset)]
                   : none;
    }
    [[nodiscard]] auto copied_byte(std::uint64_t at) const -> maybe_byte {
        auto const bytes = copy_->at(at);
        return bytes.empty() ? none : maybe_byte{bytes[0]};
    }
    /// The byte of registered code, or of the kernel, that no poke has changed.
    [[nodiscard]] auto base_byte(std::uint32_t owner, std::uint64_t at) const -> maybe_byte {
        if (owner == no_code) { return copied_byte(at); }
        auto const& of = codes_[owner];
        auto const offset = at - of.address;
        if (offset < of.code.size()) { return of.code[static_cast<std::size_t>(offset)]; }
        return of.code.empty() && of.is_in_copy ? copied_byte(at) : none;
    }
    /// A byte between two changes that cover it, or before or after all; nullptr: there is none.
    [[nodiscard]] auto byte_between(change const* before, change const* after,
                                    std::uint64_t at) const -> maybe_byte {
        bool const is_before_poke = after != nullptr && after->kind == kind::poke;
        if (before != nullptr && before->kind == kind::poke) {
            auto const byte = new_byte(*before, at);
            return is_before_poke && old_byte(*after, at) != byte ? none : byte;
        }
        if (before != nullptr && before->kind == kind::end) { return none; }
        if (is_before_poke) { return old_byte(*after, at); }
        if (before != nullptr) { return base_byte(before->index, at); }
        return after != nullptr ? none : copied_byte(at);
    }
    /// The bytes of a chunk that do not change from one of its changes to another.
    auto made_image(std::uint64_t chunk, entry const* all, std::ptrdiff_t count, std::uint32_t from,
                    std::uint32_t to) -> std::unique_ptr<image> {
        auto made = std::make_unique<image>();
        if (images_.size() > max_images || steps_ > max_steps) {
            give_up();
            return made;
        }
        auto const for_bytes = [&](std::uint32_t which, auto const& visit) {
            ++steps_;
            auto const& of = changes_[all[which].change];
            auto const last = of.address + (of.size - 1) - chunk;
            auto const end = std::min<std::uint64_t>(last + 1, image_size);
            for (auto i = of.address > chunk ? of.address - chunk : 0; i < end; ++i) {
                visit(of, static_cast<std::size_t>(i));
            }
        };
        // The bytes that some change covers.
        auto const [known, is_new] = covered_.try_emplace(chunk);
        for (std::uint32_t i = 0; is_new && i < count; ++i) {
            for_bytes(i, [&](change const&, std::size_t at) { known->second.set(at); });
        }
        std::array<change const*, image_size> before{}, after{};
        auto left = known->second;
        for (auto i = from; i != 0 && left.any(); --i) {
            for_bytes(i - 1, [&](change const& of, std::size_t at) {
                if (left[at]) { before[at] = &of; }
                left.reset(at);
            });
        }
        left = known->second;
        for (auto i = from; i < count && left.any(); ++i) {
            for_bytes(i, [&](change const& of, std::size_t at) {
                if (left[at]) { after[at] = &of; }
                left.reset(at);
            });
        }
        std::array<maybe_byte, image_size> values{};
        for (std::size_t i = 0; i < image_size; ++i) {
            values[i] = byte_between(before[i], after[i], chunk + i);
        }
        for (auto i = from; i < to; ++i) {
            for_bytes(i, [&](change const& one, std::size_t at) {
                bool const is_same = one.kind == kind::poke &&
                                     old_byte(one, chunk + at) == values[at] &&
                                     new_byte(one, chunk + at) == values[at];
                if (!is_same) { values[at] = none; }
            });
        }
        for (std::size_t i = 0; i < image_size; ++i) {
            made->is_known[i] = values[i] != none;
            made->bytes[i] = static_cast<std::uint8_t>(values[i]);
        }
        return made;
    }

    // ------------------------------------------------------------------------ states of a copy

    /// Pokes of a place, in the order of time.
    using group = std::vector<change const*>;

    /// Compares the places of the pokes whose owner is wanted with their base.
    template <class IsWanted>
    void compare(IsWanted const& is_wanted) {
        std::vector<change const*> all;
        for (auto const& one : changes_) {
            bool const is_poke = one.kind == kind::poke;
            if (is_poke && is_wanted(pokes_[one.index].owner)) { all.push_back(&one); }
        }
        auto const key = [&](change const* of) {
            return std::pair{pokes_[of->index].owner, of->address};
        };
        tool::stable_sort(all, [&](auto* one, auto* two) { return key(one) < key(two); });
        about_.pokes += all.size();
        for (auto first = all.begin(); first != all.end();) {
            auto const begin = (*first)->address;
            auto end = begin + ((*first)->size - 1);  // the last byte
            auto last = first + 1;
            for (; last != all.end() && key(*last).first == key(*first).first &&
                   (*last)->address <= end;
                 ++last) {
                end = std::max(end, (*last)->address + ((*last)->size - 1));
            }
            group of{first, last};
            std::sort(of.begin(), of.end());  // the order of `changes_`
            compare_group(of, begin, static_cast<std::size_t>(end - begin) + 1);
            first = last;
        }
    }
    void compare_group(group const& of, std::uint64_t begin, std::size_t size) {
        ++about_.places;
        bool const has_times = std::all_of(of.begin(), of.end(),
                                           [&](auto* one) { return pokes_[one->index].is_known; });
        if (!has_times) {
            ++about_.untimed;
            for (auto const* one : of) { pokes_[one->index].is_known = false; }
            return;
        }
        auto const owner = pokes_[of.front()->index].owner;
        std::vector<maybe_byte> copied(size), state(size, none);
        for (std::size_t i = 0; i < size; ++i) { copied[i] = base_byte(owner, begin + i); }
        if (std::all_of(copied.begin(), copied.end(), [](auto one) { return one == none; })) {
            return;
        }
        // The state before all.
        std::vector<bool> is_set(size);
        for (auto const* one : of) {
            for (std::size_t i = 0; i < one->size; ++i) {
                auto const at = static_cast<std::size_t>(one->address - begin) + i;
                if (!is_set[at]) { state[at] = old_byte(*one, one->address + i); }
                is_set[at] = true;
            }
        }
        std::size_t wrong = 0;
        auto const differs = [&](std::size_t at) {
            return state[at] != none && copied[at] != none && state[at] != copied[at];
        };
        for (std::size_t i = 0; i < size; ++i) { wrong += differs(i) ? 1 : 0; }
        bool const is_first = wrong == 0;
        std::optional<time_range> when;
        auto const take = [&](std::uint64_t from, std::uint64_t until) {
            if (wrong != 0) { return; }
            if (!when) { when = time_range{from, until}; }
            when->last = until;
        };
        auto const set = [&](change const& one, auto const& byte_of) {
            for (std::size_t i = 0; i < one.size; ++i) {
                auto const at = static_cast<std::size_t>(one.address - begin) + i;
                wrong -= differs(at) ? 1 : 0;
                state[at] = byte_of(one, one.address + i);
                wrong += differs(at) ? 1 : 0;
            }
        };
        take(0, of.front()->time);
        for (std::size_t i = 0; i < of.size(); ++i) {
            auto const& one = *of[i];
            if (i != 0) {  // another change came between, if the state is not the old one
                set(one, [&](auto const& in, auto at) { return old_byte(in, at); });
                take(of[i - 1]->time, one.time);
            }
            set(one, [&](auto const& in, auto at) { return new_byte(in, at); });
            take(one.time, i + 1 == of.size() ? ~std::uint64_t{0} : of[i + 1]->time);
        }
        if (!when) {
            ++about_.unmatched;
            bool const is_older = owner == no_code && !copy_->is_memory;
            for (auto const* one : of) { pokes_[one->index].is_known = is_older; }
            return;
        }
        if (owner != no_code) { return; }
        about_.is_compared = true;
        about_.is_of_start = about_.is_of_start && is_first;
        about_.is_of_end = about_.is_of_end && wrong == 0;
        about_.when.first = std::max(about_.when.first, when->first);
        about_.when.last = std::max(std::min(about_.when.last, when->last), about_.when.first);
    }

    std::vector<change> changes_{};
    std::vector<std::uint64_t> times_{};  ///< of the changes
    std::vector<poked> pokes_{};
    std::vector<std::uint8_t> bytes_{};  ///< of the pokes
    std::vector<registered_code> codes_{};
    std::map<std::uint64_t, std::uint32_t> alive_{};  ///< registered code, by address
    std::set<std::uint64_t> known_{};                 ///< addresses of registered code
    std::vector<std::size_t> unnamed_{};              ///< registered since the last BPF_EVENT
    std::vector<entry> chunks_{};                     ///< the changes of each chunk
    std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>, std::unique_ptr<image>>
        images_{};
    std::unordered_map<std::uint64_t, std::bitset<image_size>> covered_{};  ///< bytes of chunks
    base const* copy_ = nullptr;
    copy_of_kernel about_{};
    std::uint64_t steps_ = 0;
    bool is_full_ = false;
};

}  // namespace traced
