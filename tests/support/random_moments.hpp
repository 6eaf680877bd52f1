// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/action/time.hpp>

#include <cstddef>
#include <cstdint>

namespace ptspec::test {

/// Random time that passes within an action, before any of the packets that may wait for it.
class random_moments {
public:
    /// `roll(n)` is a number below n. With `only_next`, each MTC is of the next count. The moments
    /// are those of one action.
    template <class Roll>
    auto draw(Roll const& roll, bool only_next) -> engine::action::time_within {
        using packet::kind;
        constexpr kind places[] = {kind::mode_tsx, kind::mode_exec, kind::fup,     kind::pip,
                                   kind::vmcs,     kind::tsc,       kind::tma,     kind::cbr,
                                   kind::psbend,   kind::tip,       kind::tip_pgd, kind::tip_pge,
                                   kind::cyc};
        std::size_t const count = roll(100) < 70 ? 0 : static_cast<std::size_t>(1 + roll(3));
        for (std::size_t i = 0; i < count; ++i) {
            auto const mtc = static_cast<engine::action::due_mtc>(only_next ? 2 * roll(2)
                                                                            : roll(3));
            moments_[i] = {places[roll(sizeof places)], roll(300), mtc, 0};
        }
        return {moments_, count};
    }

private:
    engine::action::moment moments_[3] = {};
};

}  // namespace ptspec::test
