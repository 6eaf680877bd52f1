// SPDX-License-Identifier: BSL-1.0
#pragma once

// The traces in a file: one raw trace, the streams of a perf.data file, or those of the Intel PT
// driver of Windows.

#include "numbers.hpp"
#include "perf_ring.hpp"
#include "raw_trace.hpp"
#include "tool.hpp"

#include <ptspec/file/perf_data/decoder_config.hpp>
#include <ptspec/file/perf_data/streams.hpp>
#include <ptspec/file/winipt.hpp>
#include <ptspec/trace/clock.hpp>
#include <ptspec/trace/time_conversion.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace trace_file {

using namespace ptspec;

// ------------------------------------------------------------------------------------ streams

/// How a stream was recorded. Unknown numbers are 0.
struct recording {
    bool is_known = false;  ///< the members below are valid
    std::optional<reg::ia32_rtit_ctl> ctl{};
    std::uint64_t unknown_config = 0;  ///< bits of the event's config that have no known meaning
    std::string filter{};              ///< the address filters of the event
    bool has_tsc = false;              ///< the packets that are enabled
    bool has_mtc = false;
    bool has_cyc = false;
    bool is_snapshot = false;
    trace::clock_options clock{};  ///< with the quirks of the processor
    bool has_model = false;
    cpu::cpu_model model{};
    trace::time_conversion to_ns{};

    friend auto operator==(recording const& one, recording const& two) -> bool {
        auto const& a = one.clock;
        auto const& b = two.clock;
        return one.is_known == two.is_known && one.ctl == two.ctl && one.filter == two.filter &&
               one.unknown_config == two.unknown_config && one.has_tsc == two.has_tsc &&
               one.has_mtc == two.has_mtc && one.has_cyc == two.has_cyc &&
               one.is_snapshot == two.is_snapshot && one.model == two.model &&
               one.to_ns == two.to_ns && a.mtc_freq == b.mtc_freq && a.cyc_thresh == b.cyc_thresh &&
               a.max_non_turbo_ratio == b.max_non_turbo_ratio &&
               a.tsc_numerator == b.tsc_numerator && a.tsc_denominator == b.tsc_denominator;
    }
};

/// Bytes that the file lacks.
struct gap {
    std::uint64_t offset = 0;                ///< of the first byte after it, in the stream
    std::optional<std::uint64_t> missing{};  ///< bytes, if their number is known
    std::string_view reason{};               ///< flags of an AUX record; empty: none says it
};

/// Bytes in which tracing was off for a while, as an AUX record says. None is missing.
struct partial {
    std::uint64_t offset = 0;  ///< in the stream
    std::uint64_t size = 0;
};

/// Bytes of a stream. Those of consecutive pieces without a gap continue each other.
struct piece {
    byte_view bytes{};
    bool has_gap_before = false;
    std::optional<std::uint64_t> missing{};       ///< bytes in the gap
    std::string_view reason{};                    ///< of the gap
    std::optional<std::uint64_t> partial_size{};  ///< a `partial` begins here
    bool is_record = true;                        ///< not a part of the record before it
};

/// A stream: its offsets count the bytes of its pieces.
struct stream {
    std::size_t number = 0;  ///< in the file, from 0 on
    std::uint32_t idx = 0;   ///< as perf numbers it
    std::optional<std::uint32_t> cpu{};
    std::optional<std::uint64_t> tid{};  ///< unless the pieces are of several threads
    std::vector<std::uint64_t> tids{};   ///< of several threads
    std::string comm{};                  ///< the name of the thread; empty: unknown
    std::uint64_t reference = 0;         ///< TSC near the first piece; 0: unknown
    std::uint64_t recorded = 0;          ///< bytes, with those that a snapshot repeats
    std::vector<piece> pieces{};
    recording how{};

    [[nodiscard]] auto bytes() const -> std::uint64_t {
        std::uint64_t sum = 0;
        for (auto const& one : pieces) { sum += one.bytes.size(); }
        return sum;
    }
    [[nodiscard]] auto gaps() const -> std::size_t {
        return count([](piece const& one) { return one.has_gap_before; });
    }
    /// The number of gaps that AUX records with this flag report.
    [[nodiscard]] auto gaps_with(std::string_view flag) const -> std::size_t {
        return count([&](piece const& one) { return one.reason.find(flag) != one.reason.npos; });
    }
    [[nodiscard]] auto partials() const -> std::size_t {
        return count([](piece const& one) { return one.partial_size.has_value(); });
    }
    /// AUXTRACE records or samples.
    [[nodiscard]] auto records() const -> std::size_t {
        return count([](piece const& one) { return one.is_record; });
    }
    /// The processor or the thread that was traced: `cpu 0`, `tid 7 (bash)`.
    [[nodiscard]] auto label() const -> std::string {
        std::string text;
        if (cpu) { text = "cpu " + std::to_string(*cpu); }
        if (tid) { (text += text.empty() ? "tid " : ", tid ") += std::to_string(*tid); }
        for (std::size_t i = 0; !cpu && i < tids.size() && i <= 3; ++i) {
            text += i == 0  ? "tids " + std::to_string(tids[i])
                    : i < 3 ? ", " + std::to_string(tids[i])
                            : " and " + std::to_string(tids.size() - 3) + " more";
        }
        if (!comm.empty()) { ((text += " (") += comm) += ')'; }
        return text.empty() ? "stream " + std::to_string(number) : text;
    }

private:
    template <class Test>
    [[nodiscard]] auto count(Test const& test) const -> std::size_t {
        return static_cast<std::size_t>(std::count_if(pieces.begin(), pieces.end(), test));
    }
};

/// Which options a command line gave, of those that may be 0.
struct given_options {
    bool mtc_freq = false;
    bool cyc_thresh = false;
    bool quirks = false;
    std::optional<reg::ia32_rtit_ctl> ctl{};
};

/// The clock of a stream: what the command line gave, and the rest from the file.
inline auto clock_of(stream const& from, trace::clock_options said, given_options given)
    -> trace::clock_options {
    auto const& file = from.how.clock;
    if (!given.mtc_freq) { said.mtc_freq = file.mtc_freq; }
    if (!given.cyc_thresh) { said.cyc_thresh = file.cyc_thresh; }
    if (!given.quirks) { said.quirks = file.quirks; }
    if (said.max_non_turbo_ratio == 0) { said.max_non_turbo_ratio = file.max_non_turbo_ratio; }
    if (said.tsc_numerator == 0) {
        said.tsc_numerator = file.tsc_numerator;
        said.tsc_denominator = file.tsc_denominator;
    }
    said.tsc_age = trace::tsc_age_of(said.tsc_numerator, said.tsc_denominator);
    if (said.tsc_reference == 0) { said.tsc_reference = from.reference; }
    return said;
}

/// Calls `read(bytes)` for the pieces of a stream in order, `skip(gap)` where bytes are missing
/// before the next one, and `tell(partial)` before bytes in which tracing was off for a while.
template <class Read, class Skip, class Tell>
void for_each_piece(stream const& of, Read const& read, Skip const& skip, Tell const& tell) {
    std::uint64_t offset = 0;
    for (auto const& one : of.pieces) {
        if (one.has_gap_before) { skip(gap{offset, one.missing, one.reason}); }
        if (one.partial_size) { tell(partial{offset, *one.partial_size}); }
        if (!one.bytes.empty()) { read(one.bytes); }
        offset += one.bytes.size();
    }
}

// ------------------------------------------------------------------------------------ memory

/// All bytes of a file: mapped, or read when it is a pipe.
class memory {
public:
    /// `head` are the bytes that were read already.
    memory(tool::input& from, std::string_view head) {
        bool const is_whole = from.size() != 0 && from.offset() == head.size();
        if (!is_whole || !map(from)) { read(from, head); }
    }
    explicit memory(std::vector<std::uint8_t> bytes)
        : made_{std::move(bytes)}, size_{made_.size()} {}
    memory(memory const&) = delete;
    auto operator=(memory const&) -> memory& = delete;
    ~memory() {
        if (mapped_ != MAP_FAILED) { (void)::munmap(mapped_, size_); }
    }

    [[nodiscard]] auto bytes() const -> byte_view {
        return {mapped_ != MAP_FAILED ? static_cast<std::uint8_t const*>(mapped_)
                : owned_ != nullptr   ? owned_.get()
                                      : made_.data(),
                size_};
    }

private:
    struct deleter {
        void operator()(std::uint8_t* which) const { std::free(which); }
    };

    /// A file that another program shortens, or that cannot be read, ends the tool.
    static void on_bus_error(int /*signal*/) {
        constexpr std::string_view what = ": the file cannot be read, or was changed\n";
        (void)!::write(STDERR_FILENO, tool::name.data(), tool::name.size());
        (void)!::write(STDERR_FILENO, what.data(), what.size());
        std::_Exit(tool::failed);
    }
    auto map(tool::input const& from) -> bool {
        if (from.size() > SIZE_MAX) { return false; }
        size_ = static_cast<std::size_t>(from.size());
        mapped_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, from.descriptor(), 0);
        if (mapped_ == MAP_FAILED) { return false; }
        (void)std::signal(SIGBUS, on_bus_error);
        return true;
    }
    /// Reads all bytes of a pipe. `realloc` moves large blocks without copying them.
    void read(tool::input& from, std::string_view head) {
        std::size_t room = std::size_t{1} << 20;
        owned_.reset(static_cast<std::uint8_t*>(std::malloc(room)));
        if (!owned_) { throw std::bad_alloc{}; }
        std::memcpy(owned_.get(), head.data(), head.size());
        size_ = head.size();
        while (!from.at_end()) {
            if (size_ == room) {
                room *= 2;
                auto* const moved = std::realloc(owned_.get(), room);
                if (moved == nullptr) { throw std::bad_alloc{}; }
                (void)owned_.release();
                owned_.reset(static_cast<std::uint8_t*>(moved));
            }
            size_ += from.read(owned_.get() + size_, room - size_);
        }
    }

    void* mapped_ = MAP_FAILED;
    std::unique_ptr<std::uint8_t, deleter> owned_{};
    std::vector<std::uint8_t> made_{};
    std::size_t size_ = 0;
};

// ------------------------------------------------------------------------------------ containers

/// The streams of a file, and its bytes, which it owns.
struct container {
    std::unique_ptr<memory> from{};
    std::string name{};    ///< of the file
    std::string layout{};  ///< "file" or "pipe" of perf.data, or "winipt"
    std::vector<stream> streams{};
    /// Why not all of the file could be read, and where; empty: all was read.
    std::string error{};
    /// What is missing although all streams were read; or empty.
    std::string warning{};
    /// The damaged records that were skipped; or empty.
    std::string damage{};

    /// The stream that a command line selects, or all streams.
    [[nodiscard]] auto selected(std::optional<std::uint64_t> which) const
        -> std::vector<stream const*> {
        std::vector<stream const*> found;
        for (auto const& one : streams) {
            if (!which || *which == one.number) { found.push_back(&one); }
        }
        if (which && found.empty()) {
            std::string const why = error.empty() ? "" : "; " + error;
            throw tool::unreadable{name + ": has no stream " + std::to_string(*which) +
                                   "; --streams of pt_dump lists them" + why};
        }
        return found;
    }
    /// Prints what is missing although the file was read to its end. Returns whether it is damaged:
    /// then the exit status is not 0.
    auto print_warnings() const -> bool {
        for (auto const* const one : {&warning, &damage}) {
            if (!one->empty()) { tool::print_error(name + ": " + *one); }
        }
        return !damage.empty();
    }
    /// Throws the error of a file that was read in part.
    void check() const {
        if (!error.empty()) { throw tool::unreadable{name + ": " + error}; }
    }
};

/// How a perf.data file was recorded.
inline auto recording_of(ptspec::file::perf_data::decoder_config const& config) -> recording {
    using ctl = reg::ia32_rtit_ctl;
    recording made;
    if (!config) { return made; }
    made.is_known = true;
    // Linux sets TraceEn when it has set the rest.
    made.ctl = config.ctl.with(ctl::TraceEn{true});
    made.unknown_config = config.unknown_config;
    made.filter = {reinterpret_cast<char const*>(config.filter.data()), config.filter.size()};
    made.has_tsc = config.ctl.get<ctl::TSCEn>();
    made.has_mtc = config.ctl.get<ctl::MTCEn>();
    made.has_cyc = config.ctl.get<ctl::CYCEn>();
    made.is_snapshot = config.info.SNAPSHOT_MODE != 0;
    made.clock = ptspec::file::perf_data::clock_options_of(config);
    made.has_model = bool{config.model};
    made.model = config.model.model;
    made.to_ns = config.clock;
    return made;
}

namespace detail {

namespace perf_data = ptspec::file::perf_data;
namespace winipt = ptspec::file::winipt;

template <class Result>
auto text_of(Result const& result) -> std::string {
    auto const why = describe(result.error);
    return "byte " + std::to_string(result.offset) + ": " + std::string{why.data(), why.size()};
}

/// The names of threads, as the last COMM record of each gives them. A thread without one has the
/// name of its parent.
class thread_names {
public:
    explicit thread_names(perf_data::input const& of) {
        auto all = perf_data::records(of);
        while (auto const one = all.next()) {
            if (auto const comm = perf_data::read_as<perf_data::comm_record>(one)) {
                auto const name = comm.string();
                names_[comm->tid] = {reinterpret_cast<char const*>(name.data()), name.size()};
            } else if (auto const fork = perf_data::read_as<perf_data::fork_record>(one)) {
                auto const parent = names_.find(fork->ptid);
                if (parent != names_.end()) { names_.emplace(fork->tid, parent->second); }
            } else if (perf_data::is_compressed(one.type) && !compressed_) {
                compressed_ = one.offset;
            } else if (one.type == perf_data::record_type{} || underlying(one.type) >= 128) {
                if (unknown_++ == 0) { first_unknown_ = one.offset; }
            }
        }
        result_ = all.result();
        skipped_ = all.skipped();
    }
    [[nodiscard]] auto of(std::uint64_t tid) const -> std::string {
        auto const found = names_.find(tid);
        return found == names_.end() ? "" : tool::one_line(found->second);
    }
    [[nodiscard]] auto result() const -> perf_data::read_status { return result_; }
    [[nodiscard]] auto skipped() const -> perf_data::skipped_bytes { return skipped_; }
    /// Records of types that perf has never used, as damage makes them; empty: there are none.
    [[nodiscard]] auto unknown() const -> std::string {
        return unknown_ == 0 ? ""
                             : std::to_string(unknown_) +
                                   " records of unknown types were ignored, the first at " +
                                   tool::hex(first_unknown_);
    }
    /// The offset of the first compressed record.
    [[nodiscard]] auto compressed() const -> std::optional<std::uint64_t> { return compressed_; }

private:
    std::map<std::uint64_t, std::string> names_{};
    std::optional<std::uint64_t> compressed_{};
    perf_data::read_status result_{};
    perf_data::skipped_bytes skipped_{};
    std::uint64_t unknown_ = 0;
    std::uint64_t first_unknown_ = 0;
};

inline constexpr char const* no_intel_pt = "no Intel PT in this file";

/// Why a file cannot be read, in plain words where it has no traces.
inline auto perf_text_of(perf_data::read_status why) -> std::string {
    using enum perf_data::read_error;
    switch (why.error) {
        case no_auxtrace_info:
            return std::string{no_intel_pt} + ": perf recorded other events; " + text_of(why);
        case not_intel_pt: return std::string{no_intel_pt} + ": " + text_of(why);
        default: return text_of(why);
    }
}

/// The flags with which an AUX record reports a gap.
inline auto reason_of(perf_data::aux_flags flags) -> std::string_view {
    using perf_data::aux_flags;
    bool const is_truncated = flags.get<aux_flags::TRUNCATED>();
    if (!flags.get<aux_flags::COLLISION>()) { return is_truncated ? "truncated" : ""; }
    return is_truncated ? "truncated,collision" : "collision";
}

inline void add_piece(stream& to, perf_data::piece const& next, perf_data::piece const* before,
                      bool is_snapshot) {
    piece made{.bytes = next.trace,
               .has_gap_before = next.has_gap_before,
               .reason = reason_of(next.flags),
               .is_record = next.flags.raw == 0};
    bool const has_offset = !is_snapshot && !next.is_sample;
    std::uint64_t const end = before == nullptr ? 0 : before->offset + before->trace.size();
    if (next.has_gap_before && has_offset && next.offset > end) {
        made.missing = next.offset - end;
    }
    if (next.flags.get<perf_data::aux_flags::PARTIAL>()) { made.partial_size = next.aux_size; }
    if (made.is_record) { to.recorded += next.recorded.size(); }
    to.pieces.push_back(made);
}

/// The threads of the pieces, each once.
inline auto tids_of(perf_data::stream const& of) -> std::vector<std::uint64_t> {
    std::vector<std::uint64_t> found;
    for (auto const& one : of) {
        if (one.tid != perf_data::no_tid) { found.push_back(one.tid); }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

inline void read_perf_data(container& to) {
    auto const in = perf_data::open(to.from->bytes());
    to.layout = in.layout == perf_data::file_layout::file ? "file" : "pipe";
    if (!in) {
        to.error = text_of(in.result);
        return;
    }
    std::vector<perf_data::piece> slots(perf_data::count_pieces(in));
    auto const found = perf_data::streams_of(in, slots.data(), slots.size());
    auto const config = perf_data::decoder_config_of(in);
    thread_names const names{in};
    auto const how = recording_of(config);
    for (perf_data::stream const of : found) {
        stream made;
        made.number = to.streams.size();
        made.idx = of.idx();
        if (of.cpu() != perf_data::no_cpu) { made.cpu = of.cpu(); }
        if (of.tid() != perf_data::no_tid) {
            made.tid = of.tid();
        } else {
            made.tids = tids_of(of);
        }
        if (made.tid) { made.comm = names.of(*made.tid); }
        made.reference = of[0].reference;
        made.how = how;
        made.pieces.reserve(of.size());
        for (std::size_t i = 0; i < of.size(); ++i) {
            add_piece(made, of[i], i == 0 ? nullptr : &of[i - 1], found.is_snapshot);
        }
        to.streams.push_back(std::move(made));
    }
    // The first error in this order: the traces, how to read them, the names.
    auto const fatal = [](perf_data::read_status result, perf_data::skipped_bytes const& damage) {
        return damage && !damage.to_end ? perf_data::read_status{} : result;
    };
    auto const of_streams = fatal(found.result, found.skipped);
    auto const of_names = fatal(names.result(), names.skipped());
    auto const wrong = !of_streams ? of_streams : !config.result ? config.result : of_names;
    if (!wrong) {
        to.error = perf_text_of(wrong);
    } else if (to.streams.empty()) {
        to.error = no_intel_pt;
    }
    auto const& damage = names.skipped() ? names.skipped() : found.skipped;
    // Damage up to the end is the error.
    bool const is_error = damage.to_end && damage.offset + damage.bytes == in.data_end;
    if (damage && !is_error) { to.damage = text_of(damage, 0); }
    auto const unknown = names.unknown();
    if (!unknown.empty()) { to.damage += (to.damage.empty() ? "" : "; ") + unknown; }
    if (found.unplaced != 0) {
        to.warning = std::to_string(found.unplaced) +
                     " AUX records report missing trace, but do not name the stream";
    } else if (names.compressed()) {
        to.warning = "byte " + std::to_string(*names.compressed()) +
                     ": compressed records are not read: names of threads, and AUX records that "
                     "report a loss, may be missing";
    }
}

inline void read_winipt(container& to) {
    to.layout = "winipt";
    auto all = winipt::traces(to.from->bytes());
    while (auto const one = all.next()) {
        stream made;
        made.number = to.streams.size();
        made.idx = static_cast<std::uint32_t>(made.number);
        made.tid = one.thread_id;
        made.how.is_known = true;
        made.how.has_tsc = made.how.has_mtc = one.timing_settings != winipt::timing::none;
        made.how.has_cyc = one.timing_settings == winipt::timing::cyc;
        if (one.mtc_frequency <= 15) {
            made.how.clock.mtc_freq = static_cast<std::uint8_t>(one.mtc_frequency);
        }
        made.how.clock.tsc_numerator = one.tsc_ratio;
        made.how.clock.tsc_denominator = one.tsc_ratio == 0 ? 0 : 1;
        // The ring continues at its start. If it was never full, the first piece has no PSB.
        made.pieces = {{.bytes = one.older()}, {.bytes = one.newer()}};
        made.recorded = made.bytes();
        to.streams.push_back(std::move(made));
    }
    if (!all.result()) {
        to.error = text_of(all.result());
    } else if (to.streams.empty()) {
        to.error = no_intel_pt;
    }
}

}  // namespace detail

// ------------------------------------------------------------------------------------ opening

/// The file with the records of a directory that perf wrote, as with --kcore; otherwise the path.
inline auto file_in(std::string const& path) -> std::string {
    std::error_code ignored;
    std::string const data = path + "/data";
    bool const is_perf = path != "-" && std::filesystem::is_directory(path, ignored) &&
                         std::filesystem::is_regular_file(data, ignored);
    return is_perf ? data : path;
}

/// A file opened for reading. Its first bytes show whether it is a perf.data file or a raw trace. A
/// file of the driver of Windows begins with no such bytes: `is_winipt` says that it is one.
class opened {
public:
    /// With a ring of perf beside it, a raw trace is a stream.
    opened(std::string const& path, bool is_winipt, ring_files const& ring = {})
        : input_{ring.is_given() ? path : file_in(path)}, is_winipt_{is_winipt}, ring_{ring} {
        head_size_ = input_.read(head_, sizeof head_);
        if (!ring.is_given()) { return; }
        if (is_winipt) { throw tool::failure{"--winipt has no --records"}; }
        tool::require_raw_trace(path, {reinterpret_cast<std::uint8_t const*>(head_), head_size_});
    }

    /// Throws if the file cannot be a trace, in plain words: it is empty or an ELF file.
    void check_format() const {
        constexpr std::string_view elf = "\x7F"
                                         "ELF";
        std::string const why = head_size_ == 0           ? "it is empty"
                                : head().starts_with(elf) ? "it is an ELF file"
                                                          : "";
        if (!why.empty()) {
            throw tool::unreadable{name() + ": " + detail::no_intel_pt + ": " + why};
        }
    }
    /// True for a file that `read` reads, false for one that `streams` reads.
    [[nodiscard]] auto is_raw() const -> bool {
        return !is_winipt_ && !ring_.is_given() &&
               !tool::is_perf_data({reinterpret_cast<std::uint8_t const*>(head_), head_size_});
    }
    /// The streams of the file. Call this once.
    [[nodiscard]] auto streams() -> container {
        container made;
        made.from = whole();
        made.name = input_.name();
        if (ring_.is_given()) {
            auto ring = data_of_ring(made.from->bytes(), ring_);
            made.from = std::make_unique<memory>(std::move(ring.bytes));
            detail::read_perf_data(made);
            made.layout = "ring";
            if (!ring.error.empty()) { made.error = ring.error; }
            if (!ring.damage.empty()) { made.damage = ring.damage; }
            if (!ring.warning.empty()) { made.warning = ring.warning; }
            bool const has_gap = ring.is_overwritten && !made.streams.empty();
            if (has_gap) { mark_overwritten(made.streams[0].pieces[0]); }
            return made;
        }
        is_winipt_ ? detail::read_winipt(made) : detail::read_perf_data(made);
        return made;
    }

    /// All bytes. Call this instead of `read`.
    [[nodiscard]] auto whole() -> std::unique_ptr<memory> {
        return std::make_unique<memory>(input_, head());
    }

    // These do the same as those of `tool::input`.
    auto read(void* to, std::size_t size) -> std::size_t {
        std::size_t const ready = std::min(size, head_size_ - used_);
        if (ready != 0) { std::memcpy(to, head_ + used_, ready); }
        used_ += ready;
        if (ready == size || input_.at_end()) { return ready; }
        return ready + input_.read(static_cast<char*>(to) + ready, size - ready);
    }
    [[nodiscard]] auto at_end() const -> bool { return used_ == head_size_ && input_.at_end(); }
    [[nodiscard]] auto name() const -> std::string const& { return input_.name(); }
    [[nodiscard]] auto size() const -> std::uint64_t { return input_.size(); }
    [[nodiscard]] auto is(std::string const& path) const -> bool { return input_.is(path); }

private:
    static void mark_overwritten(piece& first) {
        first.has_gap_before = true;
        first.missing.reset();
        first.reason = "overwritten";
    }
    [[nodiscard]] auto head() const -> std::string_view { return {head_, head_size_}; }

    tool::input input_;
    bool is_winipt_;
    ring_files ring_;
    char head_[8] = {};
    std::size_t head_size_ = 0;
    std::size_t used_ = 0;
};

}  // namespace trace_file
