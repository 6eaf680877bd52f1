// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <utility>

namespace ptspec::test {

/// A source of decisions, at random or from the input of a fuzzer. `roll(n)` returns a number below
/// n.
class dice {
public:
    using source = std::function<std::uint64_t(std::uint64_t)>;

    explicit dice(source from) : from_{std::move(from)} {}
    /// The same decisions everywhere for a seed. Copies draw from one generator.
    explicit dice(std::uint64_t seed)
        : from_{[random = std::make_shared<std::mt19937_64>(seed)](std::uint64_t sides) {
              return (*random)() % sides;
          }} {}
    [[nodiscard]] auto roll(std::uint64_t sides) const -> std::uint64_t { return from_(sides); }
    [[nodiscard]] auto chance(unsigned percent) const -> bool { return roll(100) < percent; }
    template <std::size_t Count>
    [[nodiscard]] auto one_of(std::uint64_t const (&values)[Count]) const -> std::uint64_t {
        return values[roll(Count)];
    }

private:
    source from_;
};

}  // namespace ptspec::test
