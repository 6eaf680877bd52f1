// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/raw_bits.hpp>
#include <ptspec/flow/block.hpp>
#include <ptspec/flow/detail/slots.hpp>
#include <ptspec/packet/tnt.hpp>

namespace ptspec::flow {

/// The packet that ends a run.
enum class run_end : uint8_t {
    none,         ///< the last TNT
    tip,          ///< with an IP
    tip_pgd,      ///< without an IP
    tip_pgd_out,  ///< with an IP
    tip_pge,      ///< with an IP; the run has no branches, and starts nowhere
};

/// What the packets say of a run: where it starts, its branches, and how it ends.
struct run_key {
    static constexpr unsigned max_branches = packet::marked_branches::max_count;
    /// Where the table is full, longer runs are cut into runs of so many branches: they come more
    /// often. Coverage of a Python program with 60,000 different runs takes a third fewer
    /// instructions; with 8 or 16 the gain is smaller.
    static constexpr unsigned short_branches = 12;

    uint64_t from = 0;
    uint64_t to = 0;        ///< the IP of the packet that ends it
    uint64_t branches = 0;  ///< as in `packet::marked_branches`; 0: no run
    uint64_t place = 0;     ///< `run_table::place_of`, and `run_end` in bits 2:0

    friend constexpr auto operator==(run_key const& one, run_key const& two) noexcept -> bool {
        // Without a branch for each member: keys are usually equal.
        return ((one.from ^ two.from) | (one.to ^ two.to) | (one.branches ^ two.branches) |
                (one.place ^ two.place)) == 0;
    }
    [[nodiscard]] constexpr auto end() const noexcept -> run_end {
        return static_cast<run_end>(place & 7);
    }
    [[nodiscard]] constexpr auto is_long() const noexcept -> bool {
        return branches >> short_branches > 1;
    }
    /// The first `short_branches` of a long run, as a run that no packet ends.
    [[nodiscard]] constexpr auto start() const noexcept -> run_key {
        unsigned const count = highest_bit(branches);
        return {from, 0, branches >> (count - short_branches), place & ~uint64_t{7}};
    }
    /// What is left after `count` branches, which lead to an IP.
    [[nodiscard]] constexpr auto after(unsigned count, uint64_t ip) const noexcept -> run_key {
        unsigned const left = highest_bit(branches) - count;
        return {ip, to, uint64_t{1} << left | (branches & low_bits(left)), place};
    }
};
/// A run that followed another one, and the bytes of its packets.
struct run_successor {
    static constexpr unsigned max_size = 16;

    wide_bits bytes{};
    uint32_t index = 0;  ///< of the run in the table
    uint16_t id = 0;     ///< `run::id`
    uint8_t size = 0;    ///< of the packets, in bytes; 0: no successor
};

/// The branches from one IP of a packet to the next TIP or TIP.PGD, and their effect: the edges to
/// count, the changes of the return stack, and the next IP.
///
/// Shape:  192 bytes. Cache line 0 has all that a run needs which follows the run that it followed
///         before, the others its key, edges and return addresses.
struct alignas(64) run {
    static constexpr unsigned max_words = 20;
    static constexpr unsigned index_bits = 24;
    static constexpr uint32_t index_mask = (1U << index_bits) - 1;
    static constexpr unsigned max_times = 255;

    run_successor after[2] = {};
    uint64_t next = 0;    ///< the next IP
    uint32_t times = 0;   ///< how often it was repeated since it was counted
    uint16_t id = 1;      ///< another one for each run in this place of the table; not 0
    uint8_t effects = 0;  ///< of the following
    static constexpr uint8_t has_returns = 1;  ///< it changes the return stack
    static constexpr uint8_t clears = 2;       ///< the return stack: it starts or ends tracing
    static constexpr uint8_t ends = 4;         ///< it ends tracing
    static constexpr uint8_t has_target = 8;   ///< `next` is the IP of the packet that ends it
    static constexpr uint8_t has_takes = 16;   ///< `takes` is not 0
    run_key key{};
    uint32_t listed_after = 0;
    uint8_t edges = 0;
    uint8_t pushes = 0;      ///< return addresses that it leaves on the return stack
    uint8_t takes = 0;       ///< return addresses of before that compressed RETs take from it
    uint8_t depth = 0;       ///< the maximum number of its addresses on the return stack
    uint8_t taken = 0;       ///< the branches that it covers
    bool pops = false;       ///< it ends with a RET that is not compressed
    bool is_part = false;    ///< it covers `taken` branches of the key, and not its end
    bool is_listed = false;  ///< `times` may be other than 0
    uint16_t asked = 0;  ///< the mark of a run that was not stored here: `run_table::find_or_place`
    /// Edges from the first word on, return addresses in pairs from the last one on. An edge is its
    /// index in bits 23:0, and in bits 31:24 the number of times that it counts.
    uint32_t words[max_words] = {};

    /// It covers its key, whatever was executed before.
    [[nodiscard]] constexpr auto is_plain() const noexcept -> bool {
        return !is_part && takes == 0;
    }
    /// A return address: first those that it takes, then those that it leaves.
    [[nodiscard]] constexpr auto address(unsigned i) const noexcept -> uint64_t {
        uint32_t const* const pair = words + max_words - 2 * (i + 1);
        return uint64_t{pair[1]} << 32 | pair[0];
    }
    constexpr void set_address(unsigned i, uint64_t to) noexcept {
        uint32_t* const pair = words + max_words - 2 * (i + 1);
        pair[0] = static_cast<uint32_t>(to);
        pair[1] = static_cast<uint32_t>(to >> 32);
    }
    /// Room for this many more words.
    [[nodiscard]] constexpr auto room() const noexcept -> unsigned {
        return max_words - edges - 2U * (pushes + takes);
    }
    /// Adds an edge. `merges`: it counts more times if it is there already, which takes a search.
    /// Returns false if there is no room.
    [[nodiscard]] constexpr auto add(uint32_t index, bool merges) noexcept -> bool {
        for (unsigned i = merges ? edges : 0; i-- > 0;) {
            if ((words[i] & index_mask) == index && words[i] >> index_bits != max_times) {
                words[i] += 1U << index_bits;
                return true;
            }
        }
        if (room() == 0 || index >> index_bits != 0) { return false; }
        words[edges++] = index | 1U << index_bits;
        return true;
    }
};
static_assert(sizeof(run) == 192);

/// What `run_table::find_or_place` has found.
struct run_lookup {
    run* known = nullptr;
    run* place = nullptr;  ///< where to store a run that is not known; nullptr: nowhere
};

/// Runs that were walked, in storage of the caller: `run storage[5461]` is 1 MB. When it is full,
/// runs are replaced; no result depends on its size. A new table is empty, whatever the storage
/// has.
///
/// A run that comes again is only counted; `count_all` counts the edges of all these runs.
class run_table {
public:
    /// Counts nothing.
    struct no_counts {
        constexpr void count(uint32_t, uint64_t) const noexcept {}
    };
    /// Each run fits.
    struct any_run {
        constexpr auto operator()(run const&) const noexcept -> bool { return true; }
    };

    template <size_t Count>
    constexpr explicit run_table(run (&storage)[Count]) noexcept : run_table{storage, Count} {}
    /// `count` is 1 to 2^32 - 1.
    constexpr run_table(run* storage, size_t count) noexcept
        : runs_{storage},
          group_size_{count < max_group_size ? static_cast<uint32_t>(count) : max_group_size},
          group_count_{static_cast<uint32_t>(count / group_size_)},
          count_{group_size_ * group_count_} {
        clear();
    }

    [[nodiscard]] constexpr auto index_of(run const& one) const noexcept -> uint32_t {
        return static_cast<uint32_t>(&one - runs_);
    }
    /// The number of an address space, code size and `block_cache::generation`, in keys.
    [[nodiscard]] constexpr auto place_of(uint32_t space, code_width width,
                                          uint32_t generation) noexcept -> uint64_t {
        // The parts of a place, in one number each.
        uint64_t const code = uint64_t{space} << 32 | generation;
        uint64_t const how = uint64_t{underlying(width)} << 1 | 1;
        place const& last = places_[last_place_];
        bool const is_last = last.code == code && last.how == how;
        return is_last ? last.number : find_place(code, how);
    }
    /// The first run with this key for which `fits(run)` is true, or nullptr.
    template <class Fits = any_run>
    [[nodiscard]] constexpr auto find(run_key const& key, Fits const& fits = {}) noexcept -> run* {
        for (run* one : groups_of(key).both) {
            for (run* const end = one + group_size_; one != end; ++one) {
                if (one->key.branches == key.branches && one->key == key && fits(*one)) {
                    return one;
                }
            }
        }
        return nullptr;
    }
    /// The successor of a run whose packets are the first of these 16 bytes, or nullptr.
    [[nodiscard]] constexpr auto find_after(run const& before, wide_bits bytes) const noexcept
        -> run_successor const* {
        for (run_successor const& one : before.after) {
            wide_bits const mask = first_bytes_mask(one.size);
            uint64_t const differences = ((bytes.low ^ one.bytes.low) & mask.low) |
                                         ((bytes.high ^ one.bytes.high) & mask.high);
            if (differences == 0) { return &one; }
        }
        return nullptr;
    }
    /// The run of a successor, or nullptr if it was replaced, or there is none.
    [[nodiscard]] constexpr auto find(run_successor const& one) noexcept -> run* {
        run& found = runs_[one.index];
        return found.id == one.id ? &found : nullptr;
    }
    /// Adds a successor, in place of the older one. Its packets have `size` bytes, 1 to 16, of
    /// `bytes`.
    constexpr void add_after(run& before, run const& next, wide_bits bytes, size_t size) noexcept {
        wide_bits const mask = first_bytes_mask(static_cast<unsigned>(size));
        before.after[1] = before.after[0];
        before.after[0] = {{bytes.low & mask.low, bytes.high & mask.high},
                           index_of(next),
                           next.id,
                           static_cast<uint8_t>(size)};
    }

    /// Counts a run once more.
    constexpr void repeat(run& one) noexcept {
        if (one.times++ == 0 && !one.is_listed) { list(one); }
    }
    /// Finds a run, or the place for it: one that is free or, for a run that is not long, where it
    /// was asked for before. The first time there is none: so what comes once does not replace what
    /// comes again.
    template <class Fits = any_run>
    [[nodiscard]] constexpr auto find_or_place(run_key const& key, Fits const& fits = {}) noexcept
        -> run_lookup {
        auto const at = groups_of(key);
        auto const mark = static_cast<uint16_t>((key.from ^ key.to ^ key.branches) | 1);
        run* free = nullptr;
        run* asked = nullptr;
        for (run* one : at.both) {
            for (run* const end = one + group_size_; one != end; ++one) {
                if (one->key.branches == key.branches && one->key == key && fits(*one)) {
                    return {one, nullptr};
                }
                if (one->asked == mark) { asked = one; }
                if (one->key.branches == 0) {  // and those after it
                    free = free == nullptr ? one : free;
                    break;
                }
            }
        }
        if (free != nullptr || key.is_long()) { return {nullptr, free}; }
        if (asked == nullptr) {
            uint32_t const way = next_way_++ % (2 * group_size_);
            at.both[way / group_size_][way % group_size_].asked = mark;
        }
        return {nullptr, asked};
    }
    /// Stores a run in a place, perhaps instead of another one, whose edges `sink` counts first.
    template <class Sink>
    constexpr auto insert(run& kept, run const& made, Sink& sink) -> run& {
        count(kept, sink);
        bool const is_listed = kept.is_listed;
        uint32_t const after = kept.listed_after;
        auto id = static_cast<uint16_t>(kept.id + 1);
        if (id == 0) {
            forget_successors();  // an old one would name another run
            id = 1;
        }
        kept = made;
        kept.is_listed = is_listed;
        kept.listed_after = after;
        kept.id = id;
        return kept;
    }
    /// Runs in so many bytes were repeated. Counts their edges before one can have been repeated
    /// too often. `size` is at most `max_bytes`.
    template <class Sink>
    constexpr void add_bytes(size_t size, Sink& sink) {
        bytes_ += size;
        if (bytes_ >= max_bytes) { count_all(sink); }
    }
    static constexpr size_t max_bytes = size_t{1} << 30;
    /// Counts the edges of the runs that were repeated since the last call.
    template <class Sink>
    constexpr void count_all(Sink& sink) {
        bytes_ = 0;
        while (first_listed_ != none) {
            run& one = runs_[first_listed_];
            first_listed_ = one.listed_after;
            one.is_listed = false;
            count(one, sink);
        }
    }
    /// Forgets the runs that `count_all` would count. There are some only after an exception.
    template <class Counts = no_counts>
    constexpr void forget_counts() noexcept {
        Counts ignored{};
        count_all(ignored);
    }
    constexpr void clear() noexcept {
        for (uint32_t i = 0; i < count_; ++i) { runs_[i] = {}; }
        first_listed_ = none;
    }

private:
    static constexpr uint32_t none = 0xFFFF'FFFF;
    static constexpr uint32_t max_group_size = 8;
    static constexpr uint32_t place_count = 8;

    struct place {
        uint64_t code = 0;  ///< address space and generation
        uint64_t how = 0;   ///< code size, and a 1; 0: no place
        uint64_t number = 0;
    };

    struct groups {
        run* both[2];
    };
    /// A run is in one of two groups.
    [[nodiscard]] constexpr auto groups_of(run_key const& key) const noexcept -> groups {
        uint64_t const mixed = (key.from ^ rotated(key.to, 24) ^ rotated(key.branches, 44)) *
                               detail::golden;
        return {
            {group_at(static_cast<uint32_t>(mixed >> 32)), group_at(static_cast<uint32_t>(mixed))}};
    }
    [[nodiscard]] constexpr auto group_at(uint32_t hash) const noexcept -> run* {
        return runs_ + size_t{detail::slot_of(hash, group_count_)} * group_size_;
    }
    static constexpr auto rotated(uint64_t bits, unsigned by) noexcept -> uint64_t {
        return bits << by | bits >> (64 - by);
    }
    constexpr auto find_place(uint64_t code, uint64_t how) noexcept -> uint64_t {
        uint32_t i = 0;
        while (i < place_count && (places_[i].code != code || places_[i].how != how)) { ++i; }
        if (i == place_count) {
            // Numbers are not used twice: runs of a place that is replaced are not found again.
            i = (last_place_ + 1) % place_count;
            places_[i] = {code, how, next_number_++ << 3};
        }
        last_place_ = i;
        return places_[i].number;
    }
    constexpr void forget_successors() noexcept {
        for (uint32_t i = 0; i < count_; ++i) {
            for (auto& one : runs_[i].after) { one = {}; }
        }
    }
    constexpr void list(run& one) noexcept {
        one.is_listed = true;
        one.listed_after = first_listed_;
        first_listed_ = index_of(one);
    }
    template <class Sink>
    static constexpr void count(run& one, Sink& sink) {
        uint64_t const times = one.times;
        if (times == 0) { return; }
        one.times = 0;  // first: `count` may throw
        for (unsigned i = 0; i < one.edges; ++i) {
            uint32_t const word = one.words[i];
            sink.count(word & run::index_mask, times * (word >> run::index_bits));
        }
    }

    run* runs_;
    uint32_t group_size_;
    uint32_t group_count_;
    uint32_t count_;  ///< of runs
    uint32_t first_listed_ = none;
    uint64_t bytes_ = 0;  ///< since `count_all`
    uint32_t next_way_ = 0;
    uint32_t last_place_ = 0;
    uint64_t next_number_ = 0;
    place places_[place_count] = {};
};

}  // namespace ptspec::flow
