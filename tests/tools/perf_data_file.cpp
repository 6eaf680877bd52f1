// SPDX-License-Identifier: BSL-1.0

// Writes a perf.data file with short traces of the program that perf_data.py makes, one a thread.
//
//   perf_data_file KIND PROGRAM FILE [THREADS]
//
// KIND: untimed; tsc, with DisRETC; mtc, with event trace; cyc; filter, with an address filter.

#include <ptspec/file/perf_data/writer.hpp>
#include <ptspec/trace/write/writer.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace ptspec;
namespace perf_data = ptspec::file::perf_data;
using ctl = reg::ia32_rtit_ctl;

/// An open file.
class file_sink {
public:
    explicit file_sink(char const* name) : file_{std::fopen(name, "wb")} {}
    file_sink(file_sink const&) = delete;
    auto operator=(file_sink const&) -> file_sink& = delete;
    ~file_sink() {
        if (file_ != nullptr) { std::fclose(file_); }
    }

    [[nodiscard]] auto append(byte_view bytes) -> bool {
        return file_ != nullptr &&
               std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
    }
    void rewind() {
        if (file_ != nullptr) { std::rewind(file_); }
    }

private:
    std::FILE* file_;
};

struct vector_sink {
    std::vector<std::uint8_t> bytes{};

    [[nodiscard]] auto append(byte_view more) -> bool {
        bytes.insert(bytes.end(), more.begin(), more.end());
        return true;
    }
};

constexpr std::uint64_t main_at = 0x40'1000;
constexpr unsigned mtc_freq = 3;  // an MTC every 8 cycles of the crystal

/// One run of the program from a TSC value on. Between its branches time passes, if it is traced:
/// with TSC packets 2000 ticks, with MTCs 8 cycles of the crystal, with CYCs 200 cycles.
auto run_of_program(ctl how, std::uint64_t tsc) -> std::vector<std::uint8_t> {
    using namespace packet;
    bool const has_tsc = how.get<ctl::TSCEn>();
    bool const has_mtc = how.get<ctl::MTCEn>();
    bool const has_cyc = how.get<ctl::CYCEn>();
    bool const plain_ret = how.get<ctl::DisRETC>();
    vector_sink out;
    trace::writer to{out, trace::writer_options{.cyc = has_cyc}};
    bool right = true;
    auto const check = [&](rule broken) { right = right && broken == rule::none; };

    std::uint64_t crystal = 0x100;
    trace::psb_status status{};
    auto const set_status = [&] {
        if (has_tsc) { status.tsc = packet::tsc{}.with(packet::tsc::TSC{wrapped{tsc}}); }
        if (has_mtc) { status.tma = tma{}.with(tma::CTC{wrapped{crystal}}); }
        status.cbr = cbr{}.with(cbr::CoreBusRatio{40});
        status.mode_exec = mode_exec{}.with(mode_exec::CS_L{true});
    };
    auto const pass_time = [&] {
        check(to.flush());
        if (has_mtc) {
            crystal += 1U << mtc_freq;
            check(to.put(mtc{}.with(mtc::CTC{wrapped{crystal >> mtc_freq}})));
        } else if (has_cyc) {
            to.advance(200);
        } else if (has_tsc) {
            tsc += 2000;
            check(to.put(packet::tsc{}.with(packet::tsc::TSC{wrapped{tsc}})));
        }
    };
    set_status();
    check(to.put(status));
    check(to.put_ip<tip_pge>(main_at));
    pass_time();
    check(to.branch(true));  // JE to 401010H, then CALL 401030H
    if (plain_ret) {
        check(to.indirect(main_at + 0x15));  // RET
    } else {
        check(to.branch(true));
    }
    pass_time();
    check(to.indirect(main_at));  // JMP RAX
    check(to.branch(false));      // JE, then JMP to 401020H
    pass_time();
    check(to.flush());
    check(to.put(tip_pgd::of(ip_bytes::suppressed, 0)));  // SYSCALL
    return right ? out.bytes : std::vector<std::uint8_t>{};
}

auto session_of(std::string const& kind) -> perf_data::session {
    perf_data::session made;
    made.ctl = ctl{}.with(ctl::TraceEn{true}, ctl::User{true}, ctl::ToPA{true}, ctl::BranchEn{true},
                          ctl::TSCEn{kind != "untimed"}, ctl::DisRETC{kind == "tsc"},
                          ctl::MTCEn{kind == "mtc"}, ctl::MTCFreq{mtc_freq},
                          ctl::CYCEn{kind == "cyc"});
    made.caps.leaf_15_eax = {2};
    made.caps.leaf_15_ebx = {160};
    made.caps.platform_info = {20U << 8};
    if (kind == "mtc") {
        made.caps.leaf_14_0_ebx = made.caps.leaf_14_0_ebx.with(
            reg::cpuid_14h_0_ebx::EVENT_TRACE{true});
    }
    if (kind != "untimed") {
        made.clock = perf_data::time_conversion::of_frequency(2'000'000'000);
        made.clock.zero = 1'000'000'000;
    }
    return made;
}

/// The threads of the process: 100, 101 and so on, each begins 20 us after the one before it.
struct made_thread {
    perf_data::thread_id id;
    std::uint64_t begin;  ///< TSC
};
constexpr perf_data::thread_id first{100, 100};
auto thread_of(std::uint32_t number) -> made_thread {
    return {{first.pid, first.tid + number}, 2'000'000 + number * std::uint64_t{40'000}};
}

/// Writes the records of a process with these threads, and the trace of each in two pieces.
auto write_file(file_sink& out, perf_data::session const& session, text program,
                std::uint32_t threads) -> bool {
    using namespace perf_data;
    writer to{session, out};
    bool right = true;
    auto const check = [&](write_result done) { right = right && done; };
    auto const time = [&](std::uint64_t tsc) { return session.clock.time_of(tsc); };
    // The second piece of a trace begins 10 us after the first. With CYCs, from which perf computes
    // all times after the first TSC, it begins when the 600 cycles of the first piece have passed.
    std::uint64_t const distance = session.ctl.get<ctl::CYCEn>() ? 300 : 20'000;

    check(to.begin());
    check(to.write(
        comm_record{.header = {.misc = misc_comm_exec}, .pid = first.pid, .tid = first.tid},
        "first", time(1'000'000)));
    check(to.write(
        mmap2_record{.pid = first.pid,
                     .tid = first.tid,
                     .addr = main_at,
                     .len = 0x1000,
                     .pgoff = 0x1000,
                     .inode = {.dev_major = 8, .dev_minor = 1, .ino = 4711, .ino_generation = 12}},
        program, time(1'000'100)));
    check(to.finished_round());
    for (std::uint32_t i = 1; i < threads; ++i) {
        auto const [id, begin] = thread_of(i);
        check(to.write(fork_record{.pid = id.pid,
                                   .ppid = first.pid,
                                   .tid = id.tid,
                                   .ptid = first.tid,
                                   .time = time(begin - 10'000)}));
        check(to.write(comm_record{.pid = id.pid, .tid = id.tid}, "second-thread-of-100",
                       time(begin - 9'900)));
    }
    for (std::uint32_t i = 0; i < threads; ++i) {
        auto const [id, begin] = thread_of(i);
        std::uint64_t offset = 0;
        for (std::uint64_t const at : {begin, begin + distance}) {
            auto const bytes = run_of_program(session.ctl, at);
            right = right && !bytes.empty();
            byte_view const all{bytes};
            check(to.write(auxtrace_record{
                .size = all.size(), .offset = offset, .reference = at, .idx = i, .tid = id.tid}));
            check(to.append_trace(all.first(5)));
            check(to.append_trace(all.from(5)));
            offset += (all.size() + 7) / 8 * 8;
        }
    }
    std::uint64_t const end = thread_of(threads).begin + 920'000;
    for (std::uint32_t i = 1; i < threads; ++i) {
        auto const id = thread_of(i).id;
        check(to.write(exit_record{.pid = id.pid,
                                   .ppid = first.pid,
                                   .tid = id.tid,
                                   .ptid = first.tid,
                                   .time = time(end)}));
    }
    check(to.write(exit_record{
        .pid = first.pid, .ppid = 1, .tid = first.tid, .ptid = 1, .time = time(end + 100)}));
    check(to.finished_round());
    check(to.finish());
    out.rewind();
    return right && out.append(head(session, to.data_size()));
}

}  // namespace

auto main(int argc, char** argv) -> int {
    if (argc != 4 && argc != 5) { return 2; }
    std::string const kind = argv[1];
    std::string const program = argv[2];
    auto session = session_of(kind);
    std::string const filter = "filter 0x1000/0x22@" + program;
    if (kind == "filter") { session.filter = {filter.data(), filter.size()}; }
    auto const threads = static_cast<std::uint32_t>(argc == 5 ? std::stoul(argv[4]) : 2);
    file_sink out{argv[3]};
    if (write_file(out, session, {program.data(), program.size()}, threads)) { return 0; }
    std::fputs("perf_data_file: cannot write the file\n", stderr);
    return 1;
}
