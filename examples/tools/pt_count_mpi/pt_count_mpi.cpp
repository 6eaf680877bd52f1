// SPDX-License-Identifier: BSL-1.0

// pt_count_mpi: counts the packets of traces with the processes of an MPI job. See `pt_count_mpi
// --help`.

#include "../common/tool.hpp"
#include "../common/json.hpp"
#include "../common/listing_names.hpp"

#include <ptspec/trace.hpp>

#include <mpi.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec;

constexpr std::string_view usage = R"(usage: pt_count_mpi [--json] FILE...
       mpirun -n N pt_count_mpi [--json] FILE...

Counts the packets of raw Intel PT traces in N processes, which can run on several computers. Each
file is split at PSBs into N parts of about the same size; each process reads one part of each file.
All processes must find the files under the same names, with the same contents. The counts are those
of `pt_dump --summary`.

  --json       print JSON, one object a line
  -h, --help   print this text

For each file it prints the bytes, the packets, the errors, the resyncs after them, and the packets
and bytes of each type of packet. With several files, `# FILE` precedes the counts of each, and the
sum follows after `# total`. JSON: "file", "bytes", "packets", "errors" and "resyncs" (numbers) and
"by_type" (for each packet an object with "packets" and "bytes"); the sum has "files", their number,
in place of "file".

Example:
  $ printf 'psb\ncbr ratio=24\n' | pt_asm -o a.pt; mpirun -n 2 pt_count_mpi a.pt | head -4
  bytes                  20
  packets                 2
  errors                  0
  resyncs                 0

Exit status: 0 success, also where a trace has damage; 2 wrong usage, a file that is empty or that
some process cannot read, or output that cannot be written; 3 a trace has no PSB.
)";

// --------------------------------------------------------------------------------------------- MPI

/// MPI from here to the end of the scope.
class session {
public:
    session() {
        MPI_Init(nullptr, nullptr);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
    }
    session(session const&) = delete;
    auto operator=(session const&) -> session& = delete;
    ~session() { MPI_Finalize(); }

    [[nodiscard]] auto rank() const -> unsigned { return static_cast<unsigned>(rank_); }
    [[nodiscard]] auto size() const -> unsigned { return static_cast<unsigned>(size_); }
    [[nodiscard]] auto is_first() const -> bool { return rank_ == 0; }

    /// Runs the body in each process. If it throws in one, returns false in all; the first process
    /// prints the message of the lowest rank.
    template <class Body>
    [[nodiscard]] auto agree(Body const& body) const -> bool {
        std::string error;
        try {
            body();
        } catch (std::exception const& why) { error = why.what(); }
        int const mine = error.empty() ? size_ : rank_;
        int failed = 0;
        MPI_Allreduce(&mine, &failed, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (failed == size_) { return true; }
        error.resize(max_bytes_of_message);
        MPI_Bcast(error.data(), max_bytes_of_message, MPI_CHAR, failed, MPI_COMM_WORLD);
        error.resize(error.find('\0'));
        if (is_first()) {
            tool::print_error((failed == 0 ? "" : "rank " + std::to_string(failed) + ": ") + error);
        }
        return false;
    }

    /// The numbers of the first process, in all.
    void broadcast(std::vector<std::uint64_t>& numbers) const {
        MPI_Bcast(numbers.data(), static_cast<int>(numbers.size()), MPI_UINT64_T, 0,
                  MPI_COMM_WORLD);
    }
    /// Adds the counts of all processes, in the first one.
    void sum(std::vector<trace::packet_counts>& counts) const {
        constexpr std::size_t fields = sizeof(trace::packet_counts) / sizeof(std::uint64_t);
        static_assert(sizeof(trace::packet_counts) == (2 * packet::kind_count + 4) * 8,
                      "the counts are 64-bit numbers only");
        std::vector<trace::packet_counts> all(counts.size());
        MPI_Reduce(counts.data(), all.data(), static_cast<int>(counts.size() * fields),
                   MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
        counts = all;
    }

private:
    static constexpr int max_bytes_of_message = 1024;

    int rank_ = 0;
    int size_ = 1;
};

// ------------------------------------------------------------------------------------------- files

/// The bytes of a file in memory, read when they are used.
class mapped_file {
public:
    mapped_file(std::string const& path, std::uint64_t size)
        : size_{static_cast<std::size_t>(size)} {
        int const file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (file >= 0) { data_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0); }
        int const why = errno;
        if (file >= 0) { (void)::close(file); }
        if (data_ == MAP_FAILED) { throw tool::unreadable{path + ": " + std::strerror(why)}; }
    }
    mapped_file(mapped_file const&) = delete;
    auto operator=(mapped_file const&) -> mapped_file& = delete;
    ~mapped_file() { ::munmap(data_, size_); }

    [[nodiscard]] auto bytes() const -> byte_view {
        return {static_cast<std::uint8_t const*>(data_), size_};
    }

private:
    void* data_ = MAP_FAILED;
    std::size_t size_;
};

/// Where the parts of a file begin; the last one ends at the end of the file. There are `count`
/// parts; those that are not needed are empty.
auto parts_of(std::string const& path, std::uint64_t size, unsigned count)
    -> std::vector<std::uint64_t> {
    mapped_file const file{path, size};
    std::vector<std::uint64_t> begins{0};
    for (byte_view const part : trace::split{file.bytes(), count}) {
        begins.push_back(begins.back() + part.size());
    }
    begins.resize(count + std::size_t{1}, size);
    return begins;
}

auto size_of(std::string const& path) -> std::uint64_t {
    tool::input file{path};
    if (file.size() != 0) { return file.size(); }
    throw tool::unreadable{path + ": is empty, or is not a regular file"};
}

/// Counts the packets of a part of a file.
auto count_part(std::string const& path, std::uint64_t begin, std::uint64_t end)
    -> trace::packet_counts {
    constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 20;
    trace::packet_counts sum;
    if (begin == end) { return sum; }
    tool::input file{path};
    file.seek(begin);
    trace::reader<> reader;
    std::vector<std::uint8_t> piece;
    while (begin != end) {
        piece.resize(static_cast<std::size_t>(std::min(end - begin, piece_bytes)));
        if (file.read(piece.data(), piece.size()) != piece.size()) {
            throw tool::unreadable{path + ": has become shorter"};
        }
        begin += piece.size();
        (void)reader.feed(byte_view{piece});
        sum = reader.scan(sum);
    }
    reader.finish();
    return reader.scan(sum);
}

// ------------------------------------------------------------------------------------------ output

void append_text(std::string& out, std::uint64_t bytes, trace::packet_counts const& of) {
    char buffer[80];
    auto const line = [&](char const* name, std::uint64_t value) {
        std::snprintf(buffer, sizeof buffer, "%-12s %12llu\n", name,
                      static_cast<unsigned long long>(value));
        out += buffer;
    };
    line("bytes", bytes);
    line("packets", of.total());
    line("errors", of.errors);
    line("resyncs", of.resyncs);
    if (of.total() != 0) { out += "\ntype              packets        bytes\n"; }
    for (unsigned i = 0; i < packet::kind_count; ++i) {
        if (of.packets[i] == 0) { continue; }
        auto const name = listing::name(static_cast<packet::kind>(i));
        std::snprintf(buffer, sizeof buffer, "%-12.*s %12llu %12llu\n",
                      static_cast<int>(name.size()), name.data(),
                      static_cast<unsigned long long>(of.packets[i]),
                      static_cast<unsigned long long>(of.bytes[i]));
        out += buffer;
    }
}

void append_json(json::json_fields& fields, std::string& out, std::uint64_t bytes,
                 trace::packet_counts const& of) {
    fields.number("bytes", bytes);
    fields.number("packets", of.total());
    fields.number("errors", of.errors);
    fields.number("resyncs", of.resyncs);
    fields.open("by_type");
    for (unsigned i = 0; i < packet::kind_count; ++i) {
        if (of.packets[i] == 0) { continue; }
        fields.open(listing::name(static_cast<packet::kind>(i)));
        fields.number("packets", of.packets[i]);
        fields.number("bytes", of.bytes[i]);
        out += '}';
    }
    out += "}}\n";
}

struct settings {
    bool help = false;
    bool json = false;
    std::vector<std::string> files{};
};

void print(settings const& how, std::vector<std::uint64_t> const& sizes,
           std::vector<trace::packet_counts> const& counts) {
    std::string out;
    bool const several = how.files.size() > 1;
    std::uint64_t bytes = 0;
    trace::packet_counts total;
    for (std::size_t i = 0; i < how.files.size(); ++i) {
        bytes += sizes[i];
        total += counts[i];
        if (how.json) {
            json::json_fields fields{out += '{'};
            fields.string("file", how.files[i]);
            append_json(fields, out, sizes[i], counts[i]);
        } else {
            if (several) { out.append("# ").append(tool::one_line(how.files[i])) += '\n'; }
            append_text(out, sizes[i], counts[i]);
        }
    }
    if (several && how.json) {
        json::json_fields fields{out += '{'};
        fields.number("files", how.files.size());
        append_json(fields, out, bytes, total);
    } else if (several) {
        append_text(out += "# total\n", bytes, total);
    }
    tool::print(out);
}

// --------------------------------------------------------------------------------------------- run

auto parse(tool::command_line& line) -> settings {
    settings how;
    while (line.next()) {
        if (line.is_operand()) {
            how.files.push_back(line.argument());
        } else if (line.is_help()) {
            how.help = true;
            return how;
        } else if (line.is("--json")) {
            how.json = true;
        } else {
            line.refuse();
        }
    }
    if (how.files.empty()) { throw tool::failure{"nothing to read: give files"}; }
    return how;
}

auto run(tool::command_line& line) -> int {
    session const all;
    settings how;
    if (!all.agree([&] { how = parse(line); })) { return tool::failed; }
    std::vector<std::uint64_t> files{how.files.size()};
    all.broadcast(files);
    bool const have_same_files = all.agree([&] {
        if (files[0] != how.files.size()) { throw tool::failure{"has other files than rank 0"}; }
    });
    if (!have_same_files) { return tool::failed; }
    if (how.help) {
        if (all.is_first()) { tool::print(usage); }
        return 0;
    }

    std::vector<std::uint64_t> sizes;
    bool const have_sizes = all.agree([&] {
        for (auto const& file : how.files) { sizes.push_back(size_of(file)); }
    });
    if (!have_sizes) { return tool::failed; }
    auto first_sizes = sizes;
    all.broadcast(first_sizes);

    auto const count = all.size();
    std::vector<std::uint64_t> begins(how.files.size() * (count + std::size_t{1}));
    bool const have_parts = all.agree([&] {
        auto to = begins.begin();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            if (sizes[i] != first_sizes[i]) {
                throw tool::failure{how.files[i] + ": its size is not that at rank 0"};
            }
            if (!all.is_first()) { continue; }
            auto const parts = parts_of(how.files[i], sizes[i], count);
            to = std::copy(parts.begin(), parts.end(), to);
        }
    });
    if (!have_parts) { return tool::failed; }
    all.broadcast(begins);

    std::vector<trace::packet_counts> counts;
    bool const have_counts = all.agree([&] {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            auto const* const mine = begins.data() + i * (count + std::size_t{1}) + all.rank();
            counts.push_back(count_part(how.files[i], mine[0], mine[1]));
        }
    });
    if (!have_counts) { return tool::failed; }
    all.sum(counts);
    std::vector<std::uint64_t> status{0};  // the same in all processes
    if (all.is_first()) {
        print(how, sizes, counts);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            if (counts[i].total() != 0) { continue; }
            tool::print_error(how.files[i] + ": no PSB to begin at");
            status[0] = 3;
        }
    }
    all.broadcast(status);
    return static_cast<int>(status[0]);
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("pt_count_mpi", count, arguments, run);
}
