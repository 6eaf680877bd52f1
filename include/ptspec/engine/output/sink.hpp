// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/engine/output/output.hpp>
#include <ptspec/trace/write/writer.hpp>

namespace ptspec::engine {

/// Output as the sink of a `trace::writer`. Bytes that a failing port did not accept are kept and
/// written before all later bytes.
///
/// Errors: `append` returns false, and accepts nothing, while the port fails, and for more than
///         `max_bytes` at once. `fault` returns the reason.
/// Source: OUT-001, PKT-347, PRG-180.
template <memory_port Memory>
class output_sink {
public:
    /// The most bytes that a writer appends at once.
    static constexpr size_t max_bytes = trace::writer_state::max_bytes;

    /// All parameters are borrowed and must outlive the sink.
    constexpr output_sink(output& to, access::msr_state& now, Memory& memory) noexcept
        : to_{to}, now_{now}, memory_{memory} {}

    [[nodiscard]] constexpr auto append(byte_view bytes) noexcept -> bool {
        if (bytes.size() > max_bytes || resume()) { return false; }
        keep(bytes.from(write(bytes)));
        return true;
    }
    /// Retries what a port failed to do.
    constexpr auto resume() noexcept -> port_fault {
        if (!fault()) { return {}; }
        if (count_ == 0) {  // all bytes are stored, and loading the next entry failed
            last_ = {.fault = to_.resume(now_, memory_)};
        } else {
            auto const all = byte_view{kept_}.first(count_);
            keep(all.from(write(all)));
        }
        return fault();
    }
    /// The fault that `resume` retries, if there is one.
    [[nodiscard]] constexpr auto fault() const noexcept -> port_fault { return last_.fault; }
    /// The number of bytes kept.
    [[nodiscard]] constexpr auto kept() const noexcept -> size_t { return count_; }
    /// The result of the last write, by `append` or `resume`.
    [[nodiscard]] constexpr auto last() const noexcept -> write_result const& { return last_; }

private:
    constexpr auto write(byte_view bytes) noexcept -> size_t {
        last_ = to_.write(now_, memory_, bytes);
        return last_.taken;
    }
    /// Keeps bytes, which may be a part of the bytes already kept.
    constexpr void keep(byte_view bytes) noexcept {
        for (size_t i = 0; i < bytes.size(); ++i) { kept_.bytes[i] = bytes[i]; }
        count_ = bytes.size();
    }

    output& to_;
    access::msr_state& now_;
    Memory& memory_;
    byte_array<max_bytes> kept_{};
    size_t count_ = 0;
    write_result last_{};
};

}  // namespace ptspec::engine
