// SPDX-License-Identifier: BSL-1.0

// pt_dump: lists the packets or the events of Intel PT traces, or summarises them. See `pt_dump
// --help`.

#include "calls.hpp"
#include "check.hpp"
#include "chrome_trace.hpp"
#include "events.hpp"
#include "jobs.hpp"
#include "options.hpp"
#include "streams.hpp"
#include "../common/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace pt_dump;

constexpr std::string_view usage = R"(usage: pt_dump [OPTION...] FILE...

Lists the packets of Intel PT traces, one packet a line, or the events that they describe. FILE is a
raw trace, or a perf.data file, with one or more streams; it may be - for standard input.

What is printed instead of the packets; give one of these:
  --events        what happened, one event a line
  --summary       counts, PSB spacing, errors and the range of IPs
  --check         the violations of the rules that a stream must obey
  --chrome-trace  a timeline in the trace event format, which Perfetto and chrome://tracing open
  --streams       the streams of files, and how they were recorded

Reading:
  --stream N      read only this stream of a file, by its number in --streams
  --winipt        the files are those of the Intel PT driver of Windows, with a stream a thread
  --records FILE, --attr FILE
                  a ring of perf that belongs to a raw trace, the AUX area: the bytes of the data
                  area, and of the struct perf_event_attr. It is read as a perf.data file; --streams
                  has what it says. Times of records need --perf-clock, or a PERF_RECORD_TIME_CONV
  --no-sync       read from the first byte instead of from the first PSB; events then have no IP,
                  and the mode of the code and transactions are unknown, up to the first PSB
  --no-pad        do not list PAD packets
  --strict        report a set reserved bit of TMA as damage
  --hex BYTES     read these bytes, given as pairs of hexadecimal digits; may be repeated
  --cpu FAMILY/MODEL[/STEPPING]
                  the processor, in decimal: packets, events and times allow for its errata. A
                  listing then leaves out bytes that an erratum adds
  --kind K        check also what this kind of processor does: broadwell, skylake, icelake or atom;
                  manual: only what all do; auto, the default: the kind with the fewest violations
  --jobs N        read in up to N threads, 1 to 256; the output is the same. Not with --events,
                  --time and --chrome-trace, which depend on all packets before
  --only root|guest, --vmcs ADDRESS, --cr3 VALUE
                  of a listing or --events only what ran there, as the last PIP or VMCS packet says:
                  in VMX root or non-root operation (NR), with this VMCS, with this CR3. After lost
                  packets nothing is known up to the next one. The last line has left_out, how much
                  was not printed, and unknown, of it where the place is not known. That nothing is
                  there is said on stderr
  --json          print JSON, one object a line

Time, for --time and --chrome-trace. Without --tsc-ratio MTCs give no time, without --non-turbo CYCs
give none until their rate is measured. Of a perf.data file the errata and these numbers are known;
an option replaces what the file says:
  --time          add the time to each line of a listing, and times to a summary
  --mtc-freq N    IA32_RTIT_CTL.MTCFreq; 0 by default
  --cyc-thresh N  IA32_RTIT_CTL.CycThresh; 0 by default
  --ctl VALUE     IA32_RTIT_CTL, in hexadecimal: both, and which packets --calls can expect
  --tsc-ratio B/A CPUID.15H: EBX/EAX
  --non-turbo R   the maximum non-turbo ratio, MSR_PLATFORM_INFO[15:8]
  --tsc-reference TSC
                  a TSC near the trace, for the 8 bits that TSC packets lack
  --begins-in-guest
                  the trace begins in a guest, until a PIP packet shows where code executes
  --guest-tsc OFFSET,MULTIPLIER
                  the TSC offset and multiplier of the guest's VMCS, 0x1000000000000 for none: times
                  of the guest become the host's
  --monotonic     no time is lower than one before it
  --tsc-hz HZ     the frequency of the TSC: gives also nanoseconds
  --perf-clock SHIFT,MULT,ZERO
                  the same by perf's time_shift, time_mult and time_zero: the times of perf

Calls, for --chrome-trace:
  --calls         add the calls of each thread of a perf.data file, whose records name the files
                  with code, or of a raw trace, with code from these options:
  --max-slices N  at most N slices of calls for each stream: where there are more calls, short ones
                  that follow each other are one, `12 x NAME` or `12 calls`. Gaps are not merged
                  with calls, nor threads, which may be more than N
  --binary FILE[@ADDRESS]
                  an ELF file, whose symbols name functions; the address is that of the first byte
                  of a PIE or shared object
  --image FILE@ADDRESS
                  a file with code, at this address: in hexadecimal, as all addresses
  --pages FILE.mem FILE.addr
                  pages of 4096 bytes one after the other, and a text file with a line `0xADDRESS`
                  for each, with ` unmapped` after it if the page is absent
  --symfs DIRECTORY, --vdso FILE, --kernel FILE, --kallsyms FILE, --guest-symfs DIRECTORY,
  --guest-kernel FILE, --guest-kallsyms FILE
                  where the code of a perf.data file is: see pt_flow --help
  --quiet         do not count the gaps of calls on stderr: of each reason, and the addresses
                  without code

  -h, --help      print this text

A line of the listing is `OFFSET name len=N field=value...`; the offset is hexadecimal. Damage is
`OFFSET !error code=... rule=RULE: text`; left=N after the code is the number of bytes of a packet
that the end of the trace cuts off. After other damage, reading continues at the next PSB, `OFFSET
!resync skipped=N`, or ends, `OFFSET !nosync skipped=N`: N bytes from the damage on are not read.
Where bytes are missing, what follows may be read as other packets: damage begins later, or is not
found. A listing does not check the order of packets: see --events and --check.

A file of several streams is read stream by stream, with `# FILE stream N: cpu C` or `tid T (COMM)`
before each. Pieces of a stream that continue each other are read as one. Where bytes are missing
between two pieces, a line is `OFFSET !gap missing=N`, with - for an unknown number, and reading
continues at the next PSB; offsets count only the bytes that are there. `aux=truncated` or
`aux=collision` there are the flags of the AUX record of the kernel that says so; `OFFSET !partial
size=N` is an AUX record with the flag PARTIAL: tracing was off for a while in these bytes, and none
is missing. Snapshots, and AUX area samples (perf record --aux-sample), are read without what they
repeat. A file that is cut or damaged is read up to there; a message then has the byte of the file.
Records that perf compressed are not read: traces are not compressed, but names of threads and AUX
records may be missing. Of a directory of perf, as --kcore makes it, the file `data` is read.

With --streams a line is `stream N` with idx, cpu, tid, bytes, pieces, gaps, recorded (bytes, with
those that snapshots and samples repeat), truncated, collision and partial (AUX records with these
flags), reference (a TSC near the first piece) and comm (the name of the thread). tid is - where the
pieces are of several threads; AUX area samples have the cpu, or the tid, as idx. The line `config`
before it has layout (file or pipe of perf.data, or winipt), snapshot, the enabled packets tsc, mtc
and cyc, and mtc_freq, cyc_thresh, tsc_ratio, non_turbo, cpu, its errata, and perf_clock in the form
of the options. After it, the line `ctl` has IA32_RTIT_CTL as Linux set it for the event: `value`,
and each field by its name in the manual; unknown_config, bits of the event's config that have no
known meaning; and filter, its address filters.

With --events a line is `OFFSET event field=value...`, with the offset of the packet that gave the
event its name. An event that has its IP from a later FUP or TIP is printed when that comes. `-` is
an unknown value, status=1 marks what a PSB+ reports: it happened before.
  branches n bits               conditional branches and compressed returns: T taken, N not taken
  indirect_branch to            an indirect branch, a return that is not compressed, a far transfer
  enabled ip; disabled to       tracing starts at ip; it ends with a branch to `to`
  async_branch ip to            an interrupt, an exception or the like at ip; its handler at `to`
  async_disabled ip to          the same, which ends tracing
  overflow; resumed ip          packets are lost; control flow continues at ip
  trace_stop ip                 TraceStop
  paging cr3 nr ip vm           CR3; nr=1 in VMX non-root operation; vm=entry or vm=exit where nr
                                changes: of a guest
  vmcs base ip                  the current VMCS
  exec_mode mode if ip          64-, 32- or 16-bit code; if: RFLAGS.IF, with event trace
  transaction state ip          begin, commit, abort; in a PSB+ inside, outside
  ptwrite size payload ip       PTWRITE
  mwait hints ext ip; exstop ip; pwre state sub_state hw ip; pwrx last deepest wake ip
                                power events; wake is interrupt, store, hardware or other
  pebs_group group size ip; pebs_item id payload ip; pebs_end ip
                                a PEBS record: groups general, basic, memory, lbr and xmm
  event_data type payload ip; control_flow type vector ip
                                event trace; a type that has no name is a number
  trigger trbv mult icnt ip     TRIG
  frequency ratio               CBR
  maintenance payload           MNT
  psb ip                        a PSB+ ends; ip is - where tracing is off
  !damage packet rule left: text
                                bytes that are no packet, or a packet that violates the rule; left
                                as in the listing
  !note packet rule: text       a note: see --check
  !sync, !resync, !nosync       with skipped: the first PSB, the next PSB after damage, no PSB
  !end events errors resyncs    always the last line

With --time, `time=0xa0008-8+40` is the time in TSC ticks: probably 0xa0008, but up to 8 ticks
earlier or 40 later; `+?` is not limited. Before the first TSC packet, `relative=` stands in place
of `time=`, and counts from 0; `guest=` is a time by the TSC of a guest (--guest-tsc). `ns=` has the
nanoseconds, of the host.

With --summary and --time: the first and the last TSC and the ticks between them, traced, not
traced, and unknown after a loss of packets; cycles of the core clock and its mean frequency, while
it ran and counted, in relation to that of the TSC; MTCs that are missing; overflows.

With --check a line is `OFFSET name RULE: text`, with the first 100 violations in the order of their
offsets; the last line has the number of all. Packets are checked from the first PSB on. With
--jobs, one thread checks. `OFFSET name note RULE: text` is a note, which is no violation: the trace
ends inside of a packet (PKT-255), or CR3 of a PSB+ differs, which missing bytes, an SMI or a VM
exit without PIP may cause (GEN-344).

The timeline of --chrome-trace has a process for each stream: a track with the traced intervals, and
as instants interrupts, overflows, damage, PSBs, PTWRITEs and other rare events; a track with the
values of CR3; counters of branches in every 10 units of time and of the core:bus ratio. The unit is
a microsecond with --tsc-hz or --perf-clock, otherwise 1000 TSC ticks; without TSC packets 1000
bytes. Times do not step back. With --calls, each thread has a track with its calls, as slices with
the number of instructions. Calls between two packets are placed by their number of instructions.
Where tracing was disabled in between, an instruction counts as one tick. Each call is a slice. Up
to 64 threads of a stream, and 255 levels of each, have slices; what is left out or merged is
counted on stderr. In `not known: REASON` it is not known what was executed; that is no damage.

JSON: every object has "offset" (a number, in bytes). A packet has "packet" (its name in the
listing), "len", and its fields with their names in the listing. Fields are numbers, except that
addresses, payloads and counters are strings "0x...", branches are a string of T and N, and `-` in
the listing is null. Other lines have "event" instead of "packet": "sync", "resync" and "nosync"
with "skipped"; "error" with "code", "rule" and "text", and with "left" when the trace ends within a
packet; "unknown" with "len"; "gap" with "missing" and "aux"; "partial" with "size"; "end" with
"packets", "errors" and "resyncs". With several files or streams, {"event":"file","file":NAME}
precedes the objects of each. With --streams, "event" is "config", "ctl" or "stream". With --events,
"event" is the name of the event without !, types and states are strings, and "damage" and "note"
have also "text". With --time there are "time", "relative" or "guest", "earliest", "latest" (null:
not limited) and "ns". With --summary there is one object for each file: "file", "bytes", "packets",
"skipped", "errors" and "resyncs" (numbers), "errors_by_code" (a number for each error), "by_type"
(for each packet an object with "packets" and "bytes"), "psb_spacing" ("min", "mean" and "max" in
bytes) and "ip" ("lowest" and "highest"). The last two are null when the trace has no such value.
With --time also "time": "first" and "last" (null without a TSC; otherwise also "duration",
"traced", "untraced" and "unknown", and "first_ns" and "last_ns" where a clock is given), "cycles",
"frequency" (null when unknown), "missing_mtcs" and "overflows". Bytes of a name that are not UTF-8
are written as \ufffd. With --check an object has "offset", "packet" (null where no packet is),
"rule" and "text", and a note has "note":1; the last one "event":"end", "violations" and "kind".

Example:
  $ pt_dump --no-sync --hex '02 03 18 00'
  00000000 cbr len=4 ratio=24
  00000004 !end packets=1 errors=0 resyncs=0
  $ pt_dump --events --hex '02820282028202820282028202820282 0223 71001000000000 06 2d0020 01'
  00000010 psb ip=-
  00000012 enabled ip=0x1000
  00000019 branches n=1 bits=T
  0000001a indirect_branch to=0x2000
  0000001d disabled to=-
  0000001e !end events=5 errors=0 resyncs=0

Exit status: 0 no damage; 1 damage, which is listed, or with --check a violation; 2 wrong usage, a
file that is empty, has no Intel PT or cannot be read to its end, or output that cannot be written;
3 no PSB. With several files or streams the worst status is returned, in the order 2, 3, 1. A gap is
no damage, but a packet that it cuts is, and so are damaged records of a perf.data file: they are
skipped, and their bytes counted on stderr. It is also 1 if nothing is where --only, --vmcs or --cr3
select, or --calls has no call: stderr has the reason.
)";

/// The status for several files: the worst in the order failed, no_psb, damaged.
auto worse(status one, status two) -> status {
    auto const weight = [](status s) { return s == failed ? 4 : static_cast<int>(s); };
    return weight(one) < weight(two) ? two : one;
}

// ------------------------------------------------------------------------------------------ inputs

/// Passes the next bytes of the trace to the reader of a report.
template <class Report, class Reader>
void feed(Report& report, Reader& reader, byte_view bytes) {
    (void)reader.feed(bytes);
    if constexpr (requires { report.walk(bytes); }) { report.walk(bytes); }
}

template <class Report>
auto dump_bytes(std::vector<std::uint8_t> const& bytes, settings const& how, output& out)
    -> status {
    Report report{how, out};
    report.begin("--hex");
    auto reader = report.reader();
    feed(report, reader, byte_view{bytes});
    reader.finish();
    report.read(reader);
    return report.end(bytes.size());
}

/// Appends up to `most` bytes of the pieces from `next` up to `end`. `rest` is what is left of the
/// piece before `next`. Returns false at the end.
auto append_pieces(std::vector<std::uint8_t>& bytes, std::size_t most, byte_view& rest,
                   trace_file::piece const*& next, trace_file::piece const* end) -> bool {
    std::size_t left = most;
    while (left != 0 && (!rest.empty() || next != end)) {
        if (rest.empty()) {
            rest = next->bytes;
            ++next;
        }
        auto const part = rest.first(left);
        bytes.insert(bytes.end(), part.begin(), part.end());
        rest = rest.from(part.size());
        left -= part.size();
    }
    return left != most;
}

/// Reads a stream in threads, from one gap to the next.
template <class Report>
void read_stream_in_threads(Report& report, trace_file::stream const& from, settings const& how,
                            output& out) {
    auto after_gap = how;
    after_gap.how.sync = true;
    after_gap.is_after_gap = true;
    std::uint64_t offset = 0;
    auto const* const all_end = from.pieces.data() + from.pieces.size();
    auto const* next = from.pieces.data();
    while (next != all_end) {
        bool const has_gap = next->has_gap_before;
        if (has_gap) {
            (void)report.reader_after(report.reader(), {offset, next->missing, next->reason});
        }
        std::uint64_t const begin = offset;
        auto const* end = next;
        do { offset += end++->bytes.size(); } while (end != all_end && !end->has_gap_before);
        byte_view rest;
        auto const more = [&](std::vector<std::uint8_t>& bytes) {
            return append_pieces(bytes, how.jobs * Report::piece_bytes, rest, next, end);
        };
        read_in_threads(report, out, has_gap ? after_gap : how, more, begin);
    }
}

/// Dumps a stream of a file of several. A gap ends the trace; another begins after it.
template <class Report>
auto dump_stream(trace_file::stream const& from, std::string const& file, settings const& how,
                 output& out) -> status {
    Report report{how, out};
    report.begin(file + " stream " + std::to_string(from.number) + ": " + from.label());
    std::uint64_t const size = from.bytes();
    tool::progress bar{size};
    // The bytes of an AUX record with the flag PARTIAL begin within a segment.
    bool const in_threads = Report::is_splittable && how.jobs > 1 && from.partials() == 0;
    if constexpr (Report::is_splittable) {
        if (in_threads) { read_stream_in_threads(report, from, how, out); }
    }
    if (!in_threads) {
        auto reader = report.reader();
        std::uint64_t done = 0;
        auto const read = [&](byte_view all) {
            while (!all.empty()) {
                auto const bytes = all.first(Report::piece_bytes);
                all = all.from(bytes.size());
                feed(report, reader, bytes);
                report.read(reader);
                bar.at(done += bytes.size());
            }
        };
        auto const finish = [&] {
            reader.finish();
            report.read(reader);
        };
        auto const skip = [&](trace_file::gap const& which) {
            finish();
            reader = report.reader_after(reader, which);
        };
        trace_file::for_each_piece(from, read, skip,
                                   [&](trace_file::partial const& which) { report.tell(which); });
        finish();
    }
    auto const result = report.end(size);
    return size == 0 ? clean : result;
}

/// Dumps the streams of a file of several. What cannot be read is reported after the others.
template <class Report>
auto dump_streams(trace_file::container const& file, settings const& how, output& out) -> status {
    bool const is_damaged = file.print_warnings();
    auto const selected = file.selected(how.stream);
    std::optional<calls::process_code> code;
    if (how.calls != nullptr) {
        calls::require_processes(file, *how.calls);
        code.emplace(file, *how.calls);
    }
    status worst = is_damaged ? damaged : clean;
    for (auto const* one : selected) {
        if (one != selected.front()) { ++*how.inputs; }
        auto own = settings_for(how, *one);
        own.from = one;
        own.code = code ? &*code : nullptr;
        own.several = how.several || selected.size() > 1;
        worst = worse(worst, dump_stream<Report>(*one, file.name, own, out));
    }
    if (!file.error.empty()) { out.flush_all(); }
    file.check();
    return worst;
}

template <class Report>
auto dump_file(std::string const& name, settings const& how, output& out) -> status {
    trace_file::opened file{name, how.winipt, how.ring};
    if (!file.is_raw()) { return dump_streams<Report>(file.streams(), how, out); }
    file.check_format();
    if (how.stream) { throw tool::unreadable{file.name() + ": a raw trace has no streams"}; }
    Report report{how, out};
    tool::progress bar{file.size()};
    std::uint64_t size = 0;
    // Appends the next bytes. Returns false at the end.
    auto const more = [&](std::vector<std::uint8_t>& bytes) {
        if (file.at_end()) { return false; }
        std::size_t const before = bytes.size();
        bytes.resize(before + how.jobs * Report::piece_bytes);
        auto const count = file.read(bytes.data() + before, bytes.size() - before);
        bytes.resize(before + count);
        if (size == 0 && count != 0) { report.begin(name); }
        size += count;
        bar.at(size);
        return count != 0;
    };
    auto const read_in_order = [&] {
        auto reader = report.reader();
        for (std::vector<std::uint8_t> piece; more(piece); piece.clear()) {
            feed(report, reader, byte_view{piece});
            report.read(reader);
        }
        reader.finish();
        report.read(reader);
    };
    if constexpr (Report::is_splittable) {
        if (how.jobs > 1) {
            read_in_threads(report, out, how, more);
        } else {
            read_in_order();
        }
    } else {
        read_in_order();
    }
    return report.end(size);
}

/// Like dump_file, but a file that cannot be read is reported, and the next one is read.
template <class Report>
auto try_file(std::string const& name, settings const& how, output& out) -> status {
    try {
        return dump_file<Report>(name, how, out);
    } catch (tool::unreadable const& why) {
        tool::print_error(why.what());
        return failed;
    }
}

/// Lists the streams of a file.
auto try_streams(std::string const& name, settings const& how, output& out) -> status {
    try {
        trace_file::opened file{name, how.winipt, how.ring};
        if (file.is_raw()) {
            throw tool::unreadable{file.name() + ": a raw trace, or no trace: it has no streams"};
        }
        auto const all = file.streams();
        list_streams(all, how, out);
        out.flush_all();
        bool const is_damaged = all.print_warnings();
        all.check();
        return is_damaged ? damaged : clean;
    } catch (tool::unreadable const& why) {
        tool::print_error(why.what());
        return failed;
    }
}

/// Bytes from pairs of hexadecimal digits. Blanks between pairs and a leading 0x are ignored.
auto parse_hex(std::string_view text) -> std::optional<std::vector<std::uint8_t>> {
    std::vector<std::uint8_t> bytes;
    while (true) {
        auto const begin = text.find_first_not_of(" \t\n,");
        if (begin == std::string_view::npos) { break; }
        text.remove_prefix(begin);
        if (text.starts_with("0x") || text.starts_with("0X")) { text.remove_prefix(2); }
        unsigned value = 0;
        auto const end = text.data() + std::min<std::size_t>(2, text.size());
        auto const [stop, error] = std::from_chars(text.data(), end, value, 16);
        if (error != std::errc{} || stop != text.data() + 2) { return std::nullopt; }
        bytes.push_back(static_cast<std::uint8_t>(value));
        text.remove_prefix(2);
    }
    if (bytes.empty()) { return std::nullopt; }
    return bytes;
}

/// Refuses options that do not belong together. `clock_option` is the last one that describes a
/// clock, `given` are the options that select what is printed.
void check_options(settings const& how, std::vector<std::string> const& given, bool has_cpu,
                   std::string const& clock_option) {
    if (given.size() > 1) {
        throw tool::failure{given[0] + " and " + given[1] + " print different things: give one"};
    }
    if (how.time && how.what == form::check) {
        throw tool::failure{"--check prints no times: --time is for the listings and --summary"};
    }
    bool const has_clock = how.time || how.what == form::chrome_trace;
    if (!clock_option.empty() && !has_clock) {
        throw tool::failure{clock_option + " needs --time or --chrome-trace"};
    }
    if (has_cpu && how.what == form::streams) { throw tool::failure{"--cpu is not for --streams"}; }
    if (how.to_ns.perf.mult != 0 && how.to_ns.frequency != 0) {
        throw tool::failure{"--tsc-hz and --perf-clock both convert times: give one"};
    }
    if (how.jobs > 1 && how.is_sequential()) {
        throw tool::failure{
            "--jobs is for packets without times and places: events, times and places "
            "depend on all packets before them"};
    }
    bool const has_events = how.what == form::events || how.what == form::chrome_trace;
    if (has_events && how.how.strict) {
        throw tool::failure{"events ignore reserved bits: --strict is for packets"};
    }
    if (how.what == form::streams && how.jobs > 1) {
        throw tool::failure{"--streams reads no packets: leave out --jobs"};
    }
    bool const is_listing = how.what == form::listing || how.what == form::events;
    if (how.places.is_on() && !is_listing) {
        throw tool::failure{"--only, --vmcs and --cr3 are for a listing and --events"};
    }
    if (how.calls != nullptr && how.what != form::chrome_trace) {
        throw tool::failure{"--calls needs --chrome-trace"};
    }
    if (how.json && how.what == form::chrome_trace) {
        throw tool::failure{"--chrome-trace has its own JSON: leave out --json"};
    }
}

/// Calls `body.operator()<Report>()` with what the settings select.
template <class Body>
auto with_report(settings const& how, Body const& body) -> status {
    switch (how.what) {
        case form::listing: break;
        case form::summary:
            return how.time ? body.template operator()<summariser<time_sum>>()
                            : body.template operator()<summariser<no_time_sum>>();
        case form::check: return body.template operator()<stream_checker>();
        case form::events:
            return how.time ? body.template operator()<event_lister<trace::clock>>()
                            : body.template operator()<event_lister<trace::no_clock>>();
        case form::chrome_trace: return body.template operator()<chrome_tracer>();
        case form::streams: break;  // reads no packets
    }
    return body.template operator()<lister>();
}

/// What is asked of calls and places.
auto request_of(settings const& how) -> tool::walk_request {
    tool::walk_request made;
    made.what = how.calls != nullptr ? "calls" : how.what == form::events ? "events" : "packets";
    made.is_quiet = how.is_quiet;
    bool const has_images = how.calls != nullptr && how.calls->code.has_images;
    made.user_code = has_images ? "give --binary, --image or --pages"
                                : "see --symfs, or --binary of a raw trace";
    made.kernel_code = has_images ? "" : "give --kernel";
    return made;
}

auto run(tool::command_line& line) -> int {
    settings how;
    std::vector<std::string> files;
    std::vector<std::vector<std::uint8_t>> literals;
    std::vector<std::string> given;  // what is printed
    std::string clock_option;
    calls::options code;
    bool has_cpu = false;
    auto const select = [&](form what) {
        if (how.what != what) { given.push_back(line.argument()); }
        how.what = what;
    };
    while (line.next()) {
        if (line.is_operand()) {
            files.push_back(line.argument());
        } else if (line.is_help()) {
            tool::print(usage);
            return clean;
        } else if (line.is("--no-sync")) {
            how.how.sync = false;
        } else if (line.is("--no-pad")) {
            how.pads = false;
        } else if (line.is("--strict")) {
            how.how.strict = true;
        } else if (line.is("--summary")) {
            select(form::summary);
        } else if (line.is("--check")) {
            select(form::check);
        } else if (line.is("--events")) {
            select(form::events);
        } else if (line.is("--chrome-trace")) {
            select(form::chrome_trace);
        } else if (line.is("--streams")) {
            select(form::streams);
        } else if (line.is("--stream")) {
            how.stream = take_stream(line);
        } else if (line.is("--winipt")) {
            how.winipt = true;
        } else if (line.is("--time")) {
            how.time = true;
        } else if (line.is("--cpu")) {
            how.quirks = how.clock.quirks = tool::take_cpu(line);
            has_cpu = how.given.quirks = true;
        } else if (line.is("--kind")) {
            how.kinds = kinds_of(line.value());
            if (how.kinds.empty()) {
                throw tool::failure{
                    "--kind takes auto, manual, broadwell, skylake, icelake or atom"};
            }
        } else if (line.is("--quiet")) {
            how.is_quiet = true;
        } else if (line.is("--json")) {
            how.json = true;
        } else if (line.is("--jobs")) {
            how.jobs = take_jobs(line);
        } else if (line.is("--hex")) {
            auto const bytes = parse_hex(line.value());
            if (!bytes) {
                throw tool::failure{"--hex takes bytes as pairs of hexadecimal digits, like "
                                    "'02 03 18 00'"};
            }
            literals.push_back(*bytes);
        } else if (auto const option = line.argument(); trace_file::take_clock_option(line, how)) {
            clock_option = option;
        } else if (line.is("--max-slices")) {
            how.max_slices = tool::number_of(line, "a number of slices", std::uint64_t{1} << 32, 1);
        } else if (calls::take_option(line, code) || tool::take_place_option(line, how.places) ||
                   trace_file::take_ring_option(line, how.ring)) {
            continue;
        } else {
            line.refuse();
        }
    }
    if (files.empty() && literals.empty()) {
        throw tool::failure{"nothing to read: give a file, - for standard input, or --hex BYTES; "
                            "see --help"};
    }
    code.check();
    if (how.max_slices && !code.is_on) { throw tool::failure{"--max-slices needs --calls"}; }
    how.ring.check();
    how.ring.to_ns = how.to_ns.perf;
    if (how.ring.is_given() && files.size() + literals.size() != 1) {
        throw tool::failure{"--records belongs to one trace"};
    }
    if (code.is_on) { how.calls = &code; }
    check_options(how, given, has_cpu, clock_option);
    bool const for_files = how.stream || how.winipt || how.what == form::streams;
    if (for_files && !literals.empty()) {
        throw tool::failure{"--streams, --stream and --winipt are for files: leave out --hex"};
    }
    how.several = files.size() + literals.size() > 1;
    timeline_state shared;
    unsigned inputs = 0;
    how.shared = &shared;
    tool::walk_summary found;
    how.found = &found;
    how.inputs = &inputs;

    tool::output standard;
    output out{&standard};
    if (how.what == form::chrome_trace) { begin_chrome_trace(out); }
    status worst = clean;
    for (auto const& bytes : literals) {
        ++inputs;
        worst = worse(worst, with_report(how, [&]<class Report>() {
                          return dump_bytes<Report>(bytes, how, out);
                      }));
    }
    for (auto const& file : files) {
        ++inputs;
        if (how.what == form::streams) {
            worst = worse(worst, try_streams(file, how, out));
            continue;
        }
        worst = worse(worst, with_report(how, [&]<class Report>() {
                          return try_file<Report>(file, how, out);
                      }));
    }
    if (how.what == form::chrome_trace) { end_chrome_trace(out, shared); }
    out.flush();
    standard.close();
    if (how.places.is_on() || how.calls != nullptr) {
        found.has_psb = worst != no_psb;
        print_summary(found, request_of(how));
        if (found.printed == 0) { worst = worse(worst, damaged); }
    }
    report_slices(shared);
    if (worst == no_psb) {
        tool::print_error(
            "no PSB to begin at: no Intel PT, or its begin is missing; --no-sync reads "
            "from the first byte");
    }
    return worst;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("pt_dump", count, arguments, run);
}
