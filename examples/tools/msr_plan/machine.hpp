// SPDX-License-Identifier: BSL-1.0
#pragma once

// The processors over which a procedure runs: MSRs alone, or the modelled trace unit.

#include "wanted.hpp"

#include <ptspec/simulate/fake_processor.hpp>
#include <ptspec/simulate/recording_port.hpp>

#include <map>

namespace msr_plan {

inline auto hex(std::uint64_t value) -> std::string {
    char text[17];
    std::snprintf(text, sizeof text, "%llX", static_cast<unsigned long long>(value));
    return text;
}

/// The value of an MSR: 16 digits if it has more than 32 bits.
inline auto word(std::uint64_t value) -> std::string {
    std::string const digits = hex(value);
    return value >> 32 == 0 ? digits : std::string(16 - digits.size(), '0') + digits;
}

/// The MSRs of a processor without a trace unit: values stay as written, and accesses fault as on
/// the processor.
class plain_msrs {
public:
    plain_msrs(cpu::capabilities const& caps, access::msr_state const& state)
        : caps_{caps}, state_{state} {}

    auto read(std::uint32_t index) noexcept -> port_value {
        if (index == reg::ia32_debugctl::address) { return {true, 0}; }
        auto const got = access::read(caps_, state_, index);
        return {static_cast<bool>(got), got.value};
    }
    auto write(std::uint32_t index, std::uint64_t value) noexcept -> bool {
        auto const done = access::effect_of_write(caps_, state_, index, value);
        why_ = done.verdict.broken;
        if (done.verdict) { state_ = done.state; }
        return static_cast<bool>(done.verdict);
    }
    void fence() noexcept {}
    [[nodiscard]] auto why() const -> rule { return why_; }

private:
    cpu::capabilities caps_;
    access::msr_state state_;
    rule why_ = rule::none;
};

/// Physical memory: the words of tables. Stores of trace are counted, and their bytes dropped.
class sparse_memory {
public:
    using ignores_pmis = sparse_memory;

    void put(phys_addr address, std::uint64_t word) { words_[address.value] = word; }
    void put(buffer const& from) {
        for (std::size_t i = 0; i < from.pages.size(); ++i) {
            for (std::size_t k = 0; k < from.entries[i].size(); ++k) {
                put(from.pages[i].base + 8 * k, from.entries[i][k].raw);
            }
        }
    }
    auto load(std::uint64_t address) noexcept -> port_value {
        auto const at = words_.find(address);
        return {true, at == words_.end() ? 0 : at->second};
    }
    auto store(std::uint64_t, byte_view bytes) noexcept -> std::size_t { return bytes.size(); }
    auto send(byte_view bytes) noexcept -> std::size_t { return bytes.size(); }

private:
    std::map<std::uint64_t, std::uint64_t> words_;
};

using model = simulate::fake_processor<sparse_memory>;

/// The rows of programming.md are about this kind of processor.
inline constexpr auto const& as_manual = engine::options_of(engine::model_kind::manual);

/// An access in the notation of the catalogue; of a read the result only if it is wanted.
inline auto item_of(simulate::logged_access const& one, bool with_result) -> std::string {
    std::string made;
    simulate::print_access(one, [&](text piece) { made += string_of(piece); });
    bool const is_read = one.what == simulate::logged_access::kind::read;
    return is_read && !one.faulted && !with_result ? made.substr(0, made.find("->")) : made;
}

}  // namespace msr_plan
