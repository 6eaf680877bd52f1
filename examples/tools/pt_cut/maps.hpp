// SPDX-License-Identifier: BSL-1.0
#pragma once

// Replacements for addresses: each value gets a number in the order of first use.

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace pt_cut {

/// A sorted set of values, filled before it is searched.
class value_set {
public:
    void add(std::uint64_t value) {
        if (all_.empty() || all_.back() != value) { all_.push_back(value); }
    }
    void sort() {
        std::sort(all_.begin(), all_.end());
        all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
    }
    [[nodiscard]] auto has(std::uint64_t value) const -> bool {
        return std::binary_search(all_.begin(), all_.end(), value);
    }
    [[nodiscard]] auto has_any(std::uint64_t first, std::uint64_t last) const -> bool {
        auto const found = std::lower_bound(all_.begin(), all_.end(), first);
        return found != all_.end() && *found <= last;
    }
    [[nodiscard]] auto size() const -> std::size_t { return all_.size(); }

private:
    std::vector<std::uint64_t> all_{};
};

/// Maps physical addresses of pages, such as CR3 and VMCS pointers: 1000H, 2000H and so on, except
/// the values of the original.
class page_map {
public:
    explicit page_map(value_set const& originals) : originals_{originals} {}

    auto operator()(std::uint64_t value) -> std::uint64_t {
        auto const [place, is_new] = known_.try_emplace(value, 0);
        if (is_new) {
            do { last_ += 0x1000; } while (originals_.has(last_));
            place->second = last_;
        }
        return place->second;
    }
    [[nodiscard]] auto all() const -> std::map<std::uint64_t, std::uint64_t> const& {
        return known_;
    }

private:
    value_set const& originals_;
    std::map<std::uint64_t, std::uint64_t> known_{};
    std::uint64_t last_ = 0;
};

/// Maps instruction addresses so that compressed IPs stay valid.
///
/// An IP packet with 2, 4 or 6 bytes replaces the low 16, 32 or 48 bits of the last IP. Therefore
/// the high 48 bits of a mapped IP depend only on the high 48 bits of the IP, its high 32 bits on
/// the high 32 bits, and its high 16 bits on the high 16 bits: each prefix has its own numbering of
/// the bits below it. Bit 47 and the bits above it stay as they are in canonical addresses of 48
/// bits, so that 6 bytes can be sign-extended. The last IP after a PSB is 0, therefore the prefix 0
/// stays 0. Different IPs are mapped to different IPs.
///
/// Source: PKT-053..060.
class ip_map {
public:
    static constexpr unsigned page_bits = 12;
    static constexpr unsigned block_bits = 16;

    /// `pages` are the original ones, as IP >> 12. No page is mapped to one of them while others
    /// are left. With `offsets`, the offsets in a page are numbered too.
    ip_map(value_set const& pages, bool offsets) : pages_{pages}, offsets_{offsets} {}

    auto operator()(std::uint64_t ip) -> std::uint64_t {
        if (offsets_) { return mapped(4, ip); }
        std::uint64_t const page = ip >> page_bits;
        if (page != last_page_ || !has_last_) {
            last_mapped_ = mapped(3, page);
            last_page_ = page;
            has_last_ = true;
        }
        return last_mapped_ << page_bits | (ip & 0xFFF);
    }
    /// All pages, as IP >> 12; with `offsets` all IPs.
    [[nodiscard]] auto all() const -> std::map<std::uint64_t, std::uint64_t> const& {
        return known_[offsets_ ? 4 : 3];
    }

private:
    /// The numbers that one prefix has given to the bits below it.
    struct numbering {
        std::uint64_t next = 0;               // the first number that was not considered
        std::vector<std::uint64_t> passed{};  // considered, but used by the original
    };
    struct range {
        std::uint64_t first;
        std::uint64_t last;
    };
    static constexpr unsigned levels = 5;
    /// The number of bits of an IP that a level maps: bits 63:48, 47:32, 31:16, 15:12 and 11:0.
    static constexpr unsigned width[levels] = {16, 16, 16, 4, 12};

    /// The numbers for the bits of a level: those that keep the sign extension and the privilege
    /// level.
    static auto range_of(unsigned level, std::uint64_t prefix, std::uint64_t low) -> range {
        std::uint64_t const most = (std::uint64_t{1} << width[level]) - 1;
        if (level == 0) {  // bits 63:56 are all 0 or all 1 in canonical addresses of 57 bits
            return low == 0         ? range{0, 0}
                   : low == most    ? range{most, most}
                   : low <= 0xFF    ? range{1, 0xFF}
                   : low >= 0xFF00  ? range{0xFF00, most - 1}
                   : low >> 15 != 0 ? range{0x8000, 0xFEFF}
                                    : range{0x100, 0x7FFF};
        }
        bool const is_first = prefix == 0 && level <= 2;  // the prefix of the last IP after a PSB
        if (is_first && low == 0) { return {0, 0}; }
        std::uint64_t const first = is_first ? 1 : 0;
        if (level > 1) { return {first, most}; }
        return low >> 15 != 0 ? range{0x8000, most} : range{first, 0x7FFF};
    }

    /// The original has this prefix, too.
    [[nodiscard]] auto is_original(unsigned level, std::uint64_t prefix) const -> bool {
        constexpr unsigned pages_in_block = 1U << (block_bits - page_bits);
        if (level == 2) {
            auto const first = prefix * pages_in_block;
            return pages_.has_any(first, first + pages_in_block - 1);
        }
        return level == 3 && pages_.has(prefix);
    }

    auto new_number(unsigned level, std::uint64_t mapped_prefix, range const& among)
        -> std::uint64_t {
        auto const key = std::pair{level, mapped_prefix << width[level] | among.first};
        auto& numbers = numberings_[key];
        while (among.first + numbers.next <= among.last) {
            auto const number = among.first + numbers.next++;
            if (!is_original(level, mapped_prefix << width[level] | number)) { return number; }
            numbers.passed.push_back(number);
        }
        auto const number = numbers.passed.back();
        numbers.passed.pop_back();
        return number;
    }

    /// Maps the highest bits of an IP, down to those of a level.
    auto mapped(unsigned level, std::uint64_t bits) -> std::uint64_t {
        if (auto const found = known_[level].find(bits); found != known_[level].end()) {
            return found->second;
        }
        std::uint64_t const prefix = level == 0 ? 0 : bits >> width[level];
        std::uint64_t const low = bits & ((std::uint64_t{1} << width[level]) - 1);
        std::uint64_t const mapped_prefix = level == 0 ? 0 : mapped(level - 1, prefix);
        std::uint64_t const number = new_number(level, mapped_prefix, range_of(level, prefix, low));
        return known_[level][bits] = mapped_prefix << width[level] | number;
    }

    value_set const& pages_;
    bool offsets_;
    bool has_last_ = false;
    std::uint64_t last_page_ = 0;
    std::uint64_t last_mapped_ = 0;
    std::map<std::uint64_t, std::uint64_t> known_[levels]{};
    std::map<std::pair<unsigned, std::uint64_t>, numbering> numberings_{};
};

}  // namespace pt_cut
