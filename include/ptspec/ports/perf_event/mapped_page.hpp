// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>
#include <ptspec/trace/time_conversion.hpp>

#include <linux/perf_event.h>

/// The page that the kernel shares with the reader of an event.
namespace ptspec::ports::perf_event {

using trace::time_conversion;

/// The page and the areas of an event, as they are mapped. A snapshot is an AUX area that the
/// kernel overwrites, and that the reader may only read.
///
/// Units:  sizes are powers of 2, in bytes.
struct mapped_areas {
    perf_event_mmap_page* page = nullptr;
    uint8_t const* data = nullptr;
    size_t data_size = 0;
    uint8_t const* aux = nullptr;
    size_t aux_size = 0;
    bool is_snapshot = false;
};

namespace detail {

template <class Number>
[[nodiscard]] inline auto load_acquire(Number const& from) noexcept -> Number {
    return __atomic_load_n(&from, __ATOMIC_ACQUIRE);
}
inline void store_release(__u64& to, uint64_t value) noexcept {
    __atomic_store_n(&to, value, __ATOMIC_RELEASE);
}

/// The place in an area of a position that counts all bytes.
[[nodiscard]] inline auto place_of(uint64_t position, size_t size) noexcept -> size_t {
    uint64_t const place = position & (size - 1);
    return static_cast<size_t>(place);
}

/// `cap_user_time_zero`, in `capabilities`.
inline constexpr uint64_t has_time_zero = uint64_t{1} << 4;

/// How often a reader tries again while the kernel changes the page.
inline constexpr unsigned max_tries = 1'000'000;

}  // namespace detail

/// The conversion of the TSC to the times of records, read again while the kernel changes it.
/// Unknown if the kernel has none.
///
/// Source: Linux, include/uapi/linux/perf_event.h, `struct perf_event_mmap_page`.
[[nodiscard]] inline auto time_conversion_of(perf_event_mmap_page const& page) noexcept
    -> time_conversion {
    using detail::load_acquire;
    for (unsigned tries = 0; tries != detail::max_tries; ++tries) {
        uint32_t const before = load_acquire(page.lock);
        bool const is_known = (load_acquire(page.capabilities) & detail::has_time_zero) != 0;
        time_conversion const made{.shift = load_acquire(page.time_shift),
                                   .mult = load_acquire(page.time_mult),
                                   .zero = load_acquire(page.time_zero)};
        if (before % 2 == 0 && load_acquire(page.lock) == before) {
            return is_known && made.shift < 64 ? made : time_conversion{};
        }
    }
    return {};
}

}  // namespace ptspec::ports::perf_event
