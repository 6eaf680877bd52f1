// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "../tool.hpp"

#include <ptspec/file/perf_data/read_as.hpp>
#include <ptspec/file/perf_data/reader.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace traced {

using namespace ptspec;

/// Whether a record has a time and a CPU.
inline auto has_place(file::perf_data::record const& one) -> bool {
    using is = file::perf_data::sample_type;
    return one.id.has.get<is::TIME>() && one.id.has.get<is::CPU>();
}
/// Whether it reports lost records.
inline auto is_loss(file::perf_data::record const& one) -> bool {
    namespace perf_data = file::perf_data;
    return bool{perf_data::read_as<perf_data::lost_record>(one)} ||
           bool{perf_data::read_as<perf_data::lost_samples_record>(one)};
}

/// Puts the records of several buffers in the order of time. It borrows their bytes.
class record_order {
public:
    /// Adds a record of a buffer, in the order of that buffer.
    void add(file::perf_data::record const& one) {
        all_.push_back(one);
        if (is_loss(one)) {  // the kernel writes it later, when the buffer has room
            all_.back().id.time = last_times_[one.id.cpu];
        } else if (has_place(one)) {
            last_times_[one.id.cpu] = one.id.time;
        }
    }
    /// Passes the records up to a time to `take(record)`.
    template <class Take>
    void take_up_to(std::uint64_t time, Take const& take) {
        tool::stable_sort(
            all_, [](auto const& one, auto const& two) { return one.id.time < two.id.time; });
        auto next = all_.begin();
        for (; next != all_.end() && next->id.time <= time; ++next) { take(*next); }
        all_.erase(all_.begin(), next);
    }

private:
    std::vector<file::perf_data::record> all_{};
    std::map<std::uint32_t, std::uint64_t> last_times_{};  ///< of the CPUs
};

}  // namespace traced
