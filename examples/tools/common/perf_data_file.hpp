// SPDX-License-Identifier: BSL-1.0
#pragma once

// A perf.data file that is being written.

#include "tool.hpp"

#include <ptspec/file/perf_data/writer.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace tool {

namespace perf_data = ptspec::file::perf_data;

/// A perf.data file. An existing one becomes FILE.old when the new one is complete.
class perf_data_file {
public:
    perf_data_file(perf_data::session const& how, std::string path)
        : session_{how}, path_{std::move(path)}, out_{path_}, writer_{session_, sink_} {
        require(writer_.begin());
    }
    perf_data_file(perf_data_file const&) = delete;
    auto operator=(perf_data_file const&) -> perf_data_file& = delete;

    template <class... Arguments>
    void write(Arguments const&... arguments) {
        require(writer_.write(arguments...));
    }
    void write_record(ptspec::byte_view record) { require(writer_.write_record(record)); }
    void append_trace(ptspec::byte_view bytes) { require(writer_.append_trace(bytes)); }
    /// Ends a round of records. What was written can then be read: `size` bytes of `path`.
    void finish_round() {
        require(writer_.finished_round());
        out_.flush();
    }
    [[nodiscard]] auto path() const -> std::string const& { return out_.path(); }
    [[nodiscard]] auto size() const -> std::uint64_t {
        return perf_data::head_size + writer_.data_size();
    }
    void finish() {
        require(writer_.finish());
        auto const head = perf_data::head(session_, writer_.data_size());
        if (!out_.try_rewrite_head({reinterpret_cast<char const*>(head.data()), head.size()})) {
            throw failure{out_.error_text()};
        }
        keep_old();
        if (!out_.try_close()) { throw failure{out_.error_text()}; }
    }

private:
    struct file_sink {
        output& to;
        std::string failure{};

        auto append(ptspec::byte_view bytes) noexcept -> bool {
            bool const is_done = to.try_write(
                {reinterpret_cast<char const*>(bytes.data()), bytes.size()});
            if (!is_done) { failure = to.error_text(); }
            return is_done;
        }
    };

    void require(perf_data::write_result const& done) const {
        if (done) { return; }
        if (!sink_.failure.empty()) { throw failure{sink_.failure}; }
        auto const why = describe(done.error);
        throw failure{"perf.data: " + std::string{why.data(), why.size()}};
    }
    void keep_old() const {
        std::error_code ignored;
        if (std::filesystem::symlink_status(path_, ignored).type() !=
            std::filesystem::file_type::regular) {
            return;
        }
        std::filesystem::rename(path_, path_ + ".old", ignored);
    }

    perf_data::session session_;
    std::string path_;
    output out_;
    file_sink sink_{out_};
    perf_data::writer<file_sink> writer_;
};

}  // namespace tool
