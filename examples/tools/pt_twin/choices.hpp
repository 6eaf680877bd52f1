// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the packets of a trace do not say.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pt_twin {

/// What may have happened where no packet says so. Each has an answer by evidence; where the bytes
/// contradict it, the other one is tried.
enum class question : std::uint8_t {
    fell,         ///< TraceEn fell before this packet
    os,           ///< a rise of TraceEn changed OS
    user,         ///< a rise of TraceEn changed User
    traced,       ///< the code that set TraceEn is traced
    context,      ///< code outside of the filters is in the context that is traced
    transaction,  ///< a transaction began or ended outside
    cr3,          ///< CR3 changed outside
    vmcs,         ///< the VMCS changed outside
    stop,         ///< the clocks stopped before MTCs that precede a TSC
    guard,        ///< a CYC has no other packet: its counter was about to wrap
    told,         ///< a CYC counts cycles before the last branch of a TNT
    transfer,     ///< packets are those of one transfer
    lost_fall,    ///< TraceEn fell while packets were lost
};
constexpr std::size_t question_count = 13;

/// The answers in one step.
class choices {
public:
    static constexpr unsigned most = 16;  // in a step; later ones have no other answer

    /// The answer to a question of `forgotten`, a bit each, is always no.
    explicit choices(std::uint32_t forgotten) : known_{~forgotten} {}

    /// The answers of the next step with these numbers are the other ones.
    void begin(std::uint32_t others) {
        others_ = others;
        count_ = 0;
        asked_ = 0;
    }
    [[nodiscard]] auto ask(question which, bool evident) -> bool {
        bool const is_known = (known_ >> static_cast<unsigned>(which) & 1) != 0;
        asked_ |= std::uint32_t{1} << static_cast<unsigned>(which);
        if (!is_known || count_ == most) { return is_known && evident; }
        bool const is_other = (others_ >> count_ & 1) != 0;
        ++count_;
        return evident != is_other;
    }
    [[nodiscard]] auto has_asked(question which) const -> bool {
        return (asked_ >> static_cast<unsigned>(which) & 1) != 0;
    }
    [[nodiscard]] auto count() const -> unsigned { return count_; }

private:
    std::uint32_t others_ = 0;
    unsigned count_ = 0;
    std::uint32_t asked_ = 0;
    std::uint32_t known_;
};

}  // namespace pt_twin
