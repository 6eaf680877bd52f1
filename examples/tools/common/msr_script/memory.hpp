// SPDX-License-Identifier: BSL-1.0
#pragma once

// The physical memory of a script: the words that it put, and zeros.

#include <ptspec/base/ports.hpp>

#include <cstddef>
#include <cstdint>
#include <map>

namespace msr_script {

/// Physical memory as a `memory_port`. Other words are 0, and so is all trace that is stored,
/// because it consists of PADs. Memory use therefore depends only on the number of words that were
/// put.
class physical_memory {
public:
    using ignores_pmis = physical_memory;

    using words = std::map<std::uint64_t, std::uint64_t>;
    /// The limit on words, which bounds the memory use of a script.
    static constexpr std::size_t max_words = std::size_t{1} << 20;

    /// Puts a word at an address that is a multiple of 8. Returns false when the limit is reached.
    [[nodiscard]] auto put(std::uint64_t address, std::uint64_t word) -> bool {
        auto const place = words_.lower_bound(address);
        bool const is_there = place != words_.end() && place->first == address;
        if (!is_there && words_.size() == max_words) { return false; }
        words_.insert_or_assign(place, address, word);
        return true;
    }
    /// The words that were put, by address.
    [[nodiscard]] auto put_words() const -> words const& { return words_; }

    [[nodiscard]] auto load(std::uint64_t address) const -> ptspec::port_value {
        std::uint64_t const low = word_at(address & ~std::uint64_t{7});
        auto const shift = static_cast<unsigned>(8 * (address & 7));
        if (shift == 0) { return {true, low}; }
        std::uint64_t const high = word_at((address & ~std::uint64_t{7}) + 8);
        return {true, low >> shift | high << (64 - shift)};
    }

    /// The fabric takes all bytes.
    auto send(ptspec::byte_view bytes) -> std::size_t { return bytes.size(); }
    /// Stores trace, whose bytes must all be 0, over words that were put.
    auto store(std::uint64_t address, ptspec::byte_view bytes) -> std::size_t {
        if (bytes.empty()) { return 0; }
        std::uint64_t const last = address + (bytes.size() - 1);
        for (auto word = words_.lower_bound(address & ~std::uint64_t{7});
             word != words_.end() && word->first <= last; ++word) {
            clear(*word, address, last);
        }
        return bytes.size();
    }

private:
    [[nodiscard]] auto word_at(std::uint64_t address) const -> std::uint64_t {
        auto const found = words_.find(address);
        return found == words_.end() ? 0 : found->second;
    }
    static void clear(words::value_type& word, std::uint64_t first, std::uint64_t last) {
        for (unsigned i = 0; i < 8; ++i) {
            if (word.first + i >= first && word.first + i <= last) {
                word.second &= ~(std::uint64_t{0xFF} << (8 * i));
            }
        }
    }

    words words_{};
};

static_assert(ptspec::memory_port<physical_memory>);

}  // namespace msr_script
