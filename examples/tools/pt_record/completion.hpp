// SPDX-License-Identifier: BSL-1.0
#pragma once

// Completes a directory of raw output whose processes ended without notice: killed by a signal, or
// by execve in another thread. See thread_state.hpp.

#include "thread_state.hpp"
#include "../common/tool.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace pt_record {

/// The journal of a process, as a file has it.
class written_journal {
public:
    explicit written_journal(std::string const& path) {
        std::ifstream in{path, std::ios::binary};
        bytes_.assign(std::istreambuf_iterator<char>{in}, {});
        for (std::size_t at = 0; at + head_bytes <= bytes_.size();) {
            std::uint64_t const size = load_le64(data(at) + 8) & 0xFFFF'FFFF;
            // Zeros follow the last record of a process that was killed.
            if (size == 0 || size > bytes_.size() - at - head_bytes) { break; }
            at += head_bytes + (size + 7) / 8 * 8;
            records_.push_back(at);
        }
    }
    /// The size without what follows the last record.
    [[nodiscard]] auto size() const -> std::uint64_t {
        return records_.empty() ? 0 : std::min<std::uint64_t>(records_.back(), bytes_.size());
    }
    /// Copies the last bytes for these addresses, as of a size of the journal, to those that are
    /// not known.
    void read(std::uint64_t first, std::uint64_t as_of, std::vector<std::uint8_t>& to,
              std::vector<bool>& is_known) const {
        for (std::size_t i = records_.size(); i-- != 0;) {
            if (records_[i] > as_of) { continue; }
            std::size_t const at = i == 0 ? 0 : records_[i - 1];
            std::uint64_t const address = load_le64(data(at));
            std::uint64_t const size = load_le64(data(at) + 8) & 0xFFFF'FFFF;
            std::uint64_t const begin = std::max(address, first);
            std::uint64_t const end = std::min(address + size, first + to.size());
            for (std::uint64_t byte = begin; byte < end; ++byte) {
                auto const place = static_cast<std::size_t>(byte - first);
                if (is_known[place]) { continue; }
                to[place] = *(data(at) + head_bytes + (byte - address));
                is_known[place] = true;
            }
            if (begin < end && std::ranges::find(is_known, false) == is_known.end()) { return; }
        }
    }

private:
    static constexpr std::size_t head_bytes = 24;

    [[nodiscard]] auto data(std::size_t at) const -> std::uint8_t const* {
        return reinterpret_cast<std::uint8_t const*>(bytes_.data()) + at;
    }
    std::vector<char> bytes_{};
    std::vector<std::size_t> records_{};  ///< the end of each
};

/// Completes the traces of a directory.
class completion {
public:
    explicit completion(std::string directory) : directory_{std::move(directory)} {}

    /// What became complete, and what could not.
    struct result {
        std::uint64_t instructions = 0;  ///< that `progress` does not have
        std::uint64_t unexplained = 0;
        std::uint64_t cut = 0;   ///< traces for whose last blocks the code is missing
        std::uint64_t left = 0;  ///< traces that another run may complete
        int error = 0;           ///< the reason; 0: another version of this program recorded
    };

    /// Completes the traces of all processes that have ended. Throws if the directory cannot be
    /// read.
    auto run() -> result {
        std::vector<std::string> names;
        for (auto const& one : std::filesystem::directory_iterator{directory_}) {
            if (one.path().extension() == ".state") { names.push_back(one.path()); }
        }
        std::ranges::sort(names);
        std::map<std::int64_t, bool> ended;
        for (auto const& name : names) {
            auto const of = read_state(name);
            if (!of) {
                ++done_.left;
                continue;
            }
            auto const [at, is_new] = ended.try_emplace(of->process);
            if (is_new) {
                auto const start = start_of_process(of->process);
                at->second = start == 0 || start != of->process_start;
                if (at->second) { end_files(of->process); }
            }
            if (!at->second) { continue; }  // it still runs
            if (complete(*of)) {
                (void)::unlink(name.c_str());
            } else {
                ++done_.left;
            }
        }
        return done_;
    }

private:
    static auto read_state(std::string const& path) -> std::unique_ptr<thread_state> {
        auto made = std::make_unique<thread_state>();
        std::ifstream in{path, std::ios::binary};
        in.read(reinterpret_cast<char*>(made.get()), sizeof *made);
        bool const is_whole = in.gcount() == sizeof *made && in.peek() == EOF;
        if (!is_whole || made->layout != thread_state::layout_here() || made->current > 1 ||
            made->journals.count > journal_parts::most) {
            return nullptr;
        }
        for (auto const& one : made->copies) {
            if (one.count > trace_copy::max_blocks) { return nullptr; }
        }
        return made;
    }
    [[nodiscard]] auto path(std::int64_t process, char const* kind) const -> std::string {
        return path_of{directory_.c_str(), static_cast<int>(process), kind}.letters;
    }
    [[nodiscard]] auto path(thread_state const& of, char const* kind) const -> std::string {
        return path_of{directory_.c_str(), static_cast<int>(of.process),
                       static_cast<int>(of.thread), kind}
            .letters;
    }
    auto journal_of(std::int64_t process) -> written_journal const& {
        auto& at = journals_[process];
        if (!at) { at = std::make_unique<written_journal>(path(process, "code")); }
        return *at;
    }
    /// Removes the zeros after the journal and the events of a process.
    void end_files(std::int64_t process) {
        std::error_code ignored;
        std::filesystem::resize_file(path(process, "code"), journal_of(process).size(), ignored);
        std::ifstream in{path(process, "events"), std::ios::binary};
        std::string const text{std::istreambuf_iterator<char>{in}, {}};
        std::size_t const last = text.find_last_of('\n', text.find('\0'));
        std::string const whole = text.substr(0, last == std::string::npos ? 0 : last + 1);
        std::filesystem::resize_file(path(process, "events"), whole.size(), ignored);
        std::size_t const line = whole.find_last_of('\n', whole.size() - 2) + 1;
        last_event_[process] = whole.substr(whole.empty() ? 0 : line);
    }
    /// The code of a block; empty if the journals do not have it.
    auto code_of(thread_state const& of, begun_block const& block) -> std::vector<std::uint8_t> {
        std::vector<std::uint8_t> code(block.size());
        std::vector<bool> is_known(code.size());
        std::uint64_t base = 0;
        for (std::size_t i = of.journals.count; i-- != 0;) {
            base = i == 0 ? 0 : of.journals.parts[i - 1].end;
            std::uint64_t const end = i + 1 == of.journals.count ? begun_block::all
                                                                 : of.journals.parts[i].end;
            if (block.journal() <= base) { continue; }
            std::uint64_t const as_of = std::min(block.journal(), end) - base;
            journal_of(of.journals.parts[i].process).read(block.first, as_of, code, is_known);
        }
        if (std::ranges::find(is_known, false) != is_known.end()) { code.clear(); }
        return code;
    }
    /// Executes the blocks that began, and ends the trace. False if it cannot be written.
    auto complete(thread_state const& of) -> bool {
        auto const& from = of.copies[of.current];
        thread_trace trace;
        trace.state = from.state;
        if (auto const opened = trace.file.resume(path(of, "pt").c_str(), from.bytes); !opened) {
            done_.error = opened.error;
            return false;
        }
        auto log = from.logs[from.count % 2];
        if (from.count != 0) { complete(of, from, trace, log); }
        if (int const error = trace.file.close(); error != 0) {
            done_.error = error;
            return false;
        }
        done_.instructions += trace.instructions() - std::min(of.reported, trace.instructions());
        done_.unexplained += trace.state.unexplained;
        settings how;
        if (read_settings(how, (directory_ + "/settings").c_str()) && how.check) {
            if (int const error = log.write(path(of, "log").c_str()); error != 0) {
                done_.error = error;
                ++done_.left;
            }
        }
        if (from.count != 0) { add_exit(of, trace.state); }
        return true;
    }
    void complete(thread_state const& of, trace_copy const& from, thread_trace& trace,
                  instruction_log& log) {
        std::map<std::pair<std::uint64_t, std::uint64_t>, code_block> known;
        for (std::uint64_t i = 0; i < from.count; ++i) {
            auto const& block = from.blocks[i];
            auto const at = known.try_emplace({block.first, block.record});
            auto const code = at.second || i + 1 == from.count ? code_of(of, block)
                                                               : std::vector<std::uint8_t>{};
            if (at.second) {
                at.first->second = emulated::block_of<block_notes>(code, block.first, user_code);
            }
            auto const& whole = at.first->second;
            if (whole.count == 0) {  // its code is not known
                ++done_.cut;
                return trace.finish_at(block.first);
            }
            if (i + 1 < from.count) {
                trace.run(whole, from.blocks[i + 1].first);
            } else if (of.death.is_known == 1) {
                end_by_signal(of.death, whole, code, trace, log);
            } else if (from.in_kernel == from.count && enters_kernel(whole.end.instruction.kind)) {
                log = from.kernel_log;
                trace.finish_in_kernel(whole);
            } else {
                trace.finish_at(block.first);
            }
        }
    }
    /// The thread itself ended its process.
    static void end_by_signal(thread_death const& death, code_block const& whole,
                              std::vector<std::uint8_t> const& code, thread_trace& trace,
                              instruction_log& log) {
        delivered_signal const signal{.at = death.ip,
                                      .is_fault = is_fault(death, whole),
                                      .vector = vector_of(static_cast<int>(death.signal))};
        // The block may have led to itself before a signal from elsewhere: then it is not shown.
        if (!signal.is_fault || signal.at != whole.first) {
            log = death.log;
            log.interrupt(signal.at, signal.is_fault);
        }
        bool const is_part = signal.is_fault && whole.holds(signal.at);
        trace.finish_by(is_part ? part_of_block(code, whole.first, signal.at) : whole, signal);
    }
    /// True if the instruction at which the thread ends raised a fault: only such a one stops in a
    /// block. One that begins a block raised it, too, unless the block led to itself.
    static auto is_fault(thread_death const& death, code_block const& block) -> bool {
        if (vector_of(static_cast<int>(death.signal)) == 0 && death.signal != SIGFPE) {
            return false;
        }
        return block.holds(death.ip);
    }
    /// The exception that Linux reports with a signal; 0 if it reports none, or a divide error.
    static auto vector_of(int signal) -> std::uint8_t {
        switch (signal) {
            case SIGILL: return 6;
            case SIGTRAP: return 3;
            case SIGBUS: return 17;
            case SIGSEGV: return 14;
            default: return 0;
        }
    }
    /// Adds the end of the thread to the events, unless another program executes in its process.
    void add_exit(thread_state const& of, trace_state const& trace) {
        auto const& last = last_event_[of.process];
        if (last.find(" exec ") != std::string::npos) { return; }
        std::uint64_t const known = std::strtoull(last.c_str(), nullptr, 10);
        std::uint64_t const traced = trace.is_timed ? trace.tsc * 1000 / tsc_mhz : 0;
        std::ofstream to{path(of.process, "events"), std::ios::app};
        to << std::max(known, traced) + 1 << " exit " << of.thread << '\n';
        if (!to.flush()) {
            done_.error = errno;
            ++done_.left;
        }
    }

    std::string directory_;
    std::map<std::int64_t, std::unique_ptr<written_journal>> journals_{};
    std::map<std::int64_t, std::string> last_event_{};
    result done_{};
};

}  // namespace pt_record
