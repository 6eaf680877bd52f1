// SPDX-License-Identifier: BSL-1.0

// Lists a file: its events, records, streams and decoder configuration, one a line.
//
//   perf_data_list FILE              a perf.data file
//   perf_data_list --prefixes FILE   each prefix of it: its size, the first error, where, and how
//                                    many records were read before it
//   perf_data_list --stream IDX FILE the bytes of a stream, to standard output
//   perf_data_list --recorded FILE   the bytes of all AUXTRACE records and samples, with those that
//                                    they repeat
//
// A line is a word, then NAME=VALUE; numbers are decimal, bytes hexadecimal.

#include <ptspec/file/perf_data/bpf_programs.hpp>
#include <ptspec/file/perf_data/build_ids.hpp>
#include <ptspec/file/perf_data/decoder_config.hpp>
#include <ptspec/file/perf_data/streams.hpp>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using namespace ptspec;
namespace perf_data = ptspec::file::perf_data;

void put(char const* name, std::uint64_t value) { std::printf(" %s=%" PRIu64, name, value); }
void put(char const* name, byte_view bytes) {
    std::printf(" %s=", name);
    for (auto const byte : bytes) { std::printf("%02x", byte); }
}
void put(char const* name, perf_data::thread_id which) {
    std::printf(" %s=%" PRIu32 "/%" PRIu32, name, which.pid, which.tid);
}

void put_result(perf_data::read_status result) {
    if (result) { return; }
    auto const why = describe(result.error);
    std::printf("error why=%u offset=%" PRIu64 " text=\"%.*s\"\n",
                unsigned{underlying(result.error)}, result.offset, static_cast<int>(why.size()),
                why.data());
}

void put_attr(char const* word, perf_data::event_attr const& event) {
    std::printf("%s", word);
    put("offset", event.offset);
    put("type", event.type);
    put("size", event.bytes.size());
    put("config", event.config);
    put("sample_period", event.sample_period);
    put("sample_type", event.sample_type.value().raw);
    put("read_format", event.read_format.value().raw);
    put("flags", event.flags.value().raw);
    put("wakeup", event.wakeup);
    put("bp_type", event.bp_type);
    put("config1", event.config1);
    put("config2", event.config2);
    put("branch_sample_type", event.branch_sample_type);
    put("sample_regs_user", event.sample_regs_user);
    put("sample_stack_user", event.sample_stack_user);
    put("aux_action", event.aux_action);
    put("config4", event.config4);
    std::printf(" ids=");
    for (std::size_t i = 0; i < event.id_count(); ++i) {
        std::printf("%s%" PRIu64, i == 0 ? "" : ",", event.id(i));
    }
}

template <class Record>
using parsed = perf_data::parsed<Record>;

void put_values(parsed<perf_data::comm_record> const& of) {
    put("thread", thread_of(of.value));
    put("name", of.string());
    put("exec", of->is_exec());
}
void put_values(parsed<perf_data::mmap2_record> const& of) {
    put("thread", thread_of(of.value));
    put("addr", of->addr);
    put("len", of->len);
    put("pgoff", of->pgoff);
    put("filename", of.string());
    put("data", of->is_data());
    if (!of->is_mmap2()) { return; }
    put("prot", of->prot);
    put("flags", of->flags);
    put("build_id", byte_view{of->id()});
    auto const inode = of->has_build_id() ? perf_data::mapped_inode{} : of->inode;
    put("maj", inode.dev_major);
    put("min", inode.dev_minor);
    put("ino", inode.ino);
    put("ino_generation", inode.ino_generation);
}
template <perf_data::record_type Type>
void put_values(parsed<perf_data::task_record<Type>> const& of) {
    put("thread", thread_of(of.value));
    put("parent", of->parent());
    put("own_time", of->time);
}
void put_values(parsed<perf_data::lost_record> const& of) {
    put("count", of->lost);
    put("lost_id", of->id);
}
void put_values(parsed<perf_data::lost_samples_record> const& of) {
    put("count", of->lost);
    put("lost_id", 0);
}
void put_values(parsed<perf_data::throttle_record> const& of) {
    put("throttled", of->header.type == perf_data::record_type::throttle);
    put("own_time", of->time);
    put("own_id", of->id);
    put("own_stream_id", of->stream_id);
}
void put_values(parsed<perf_data::aux_record> const& of) {
    put("aux_offset", of->aux_offset);
    put("aux_size", of->aux_size);
    put("flags", of->flags.value().raw);
}
void put_values(parsed<perf_data::itrace_start_record> const& of) {
    put("thread", thread_of(of.value));
}
void put_values(parsed<perf_data::switch_record> const& of) {
    put("out", of->is_out());
    put("preempted", of->is_preempted());
    if (of->has_other()) { put("other", of->other()); }
}
void put_values(parsed<perf_data::ksymbol_record> const& of) {
    put("addr", of->addr);
    put("len", of->len);
    put("kind", underlying(of->ksym_type.value()));
    put("unregistered", of->is_unregistered());
    put("name", of.string());
}
void put_values(parsed<perf_data::bpf_event_record> const& of) {
    put("kind", underlying(of->type.value()));
    put("flags", of->flags);
    put("program", of->id);
    put("tag", byte_view{of->tag});
}
void put_values(parsed<perf_data::text_poke_record> const& of) {
    put("addr", of->addr);
    put("old", code_before(of));
    put("new", code_after(of));
}
void put_values(parsed<perf_data::sample_record> const& of) {
    put("ip", of->ip);
    put("addr", of->addr);
    put("period", of->period);
    put("rest", of.rest);
}
void put_values(parsed<perf_data::auxtrace_info_record> const& of) {
    put("kind", of->type);
    put("words", of->words());
    std::printf(" priv=");
    for (std::uint64_t const word :
         {of->PMU_TYPE, of->TIME_SHIFT, of->TIME_MULT, of->TIME_ZERO, of->CAP_USER_TIME_ZERO,
          of->TSC_BIT, of->NORETCOMP_BIT, of->HAVE_SCHED_SWITCH, of->SNAPSHOT_MODE,
          of->PER_CPU_MMAPS, of->MTC_BIT, of->MTC_FREQ_BITS, of->TSC_CTC_N, of->TSC_CTC_D,
          of->CYC_BIT, of->MAX_NONTURBO_RATIO, of->CAP_EVENT_TRACE}) {
        std::printf("%" PRIu64 ",", word);
    }
    put("filter", of.string());
}
void put_values(parsed<perf_data::auxtrace_record> const& of) {
    put("trace_size", of->size);
    put("trace_offset", of->offset);
    put("reference", of->reference);
    put("idx", of->idx);
    put("tid", of->tid);
    put("cpu", of->cpu);
}
void put_values(parsed<perf_data::auxtrace_error_record> const& of) {
    put("kind", of->type);
    put("code", of->code);
    put("cpu", of->cpu);
    put("thread", thread_of(of.value));
    put("format", of->fmt);
    put("ip", of->ip);
    put("own_time", of->time);
    put("message", of.string());
    put("machine_pid", of->machine_pid);
    put("vcpu", of->vcpu);
}
void put_values(parsed<perf_data::time_conv_record> const& of) {
    put("shift", of->time_shift);
    put("mult", of->time_mult);
    put("zero", of->time_zero);
    if (!of->has_cycles()) { return; }
    put("cycles", of->time_cycles);
    put("mask", of->time_mask);
    put("cap_zero", of->cap_user_time_zero != 0);
    put("cap_short", of->cap_user_time_short != 0);
}
void put_values(parsed<perf_data::id_index_record> const& of) {
    put("count", of->nr);
    std::printf(" entries=");
    for (std::size_t i = 0; i < of->nr; ++i) {
        auto const one = file::load<perf_data::id_index_entry>(of.rest, i);
        std::printf("%" PRIu64 "/%" PRIu64 "/%" PRIu64 "/%" PRIu64 ",", one.id.value(),
                    one.idx.value(), one.cpu.value(), one.tid.value());
    }
}
void put_values(parsed<perf_data::feature_record> const& of) {
    put("feature", of->feat_id);
    put("data", of.rest);
}
void put_values(parsed<perf_data::compressed_record> const& of) { put("data", of.rest); }

/// Prints the values of a record, if it has those.
template <class... Records>
void put_any(perf_data::record const& of) {
    auto const one = [&]<class Record>(Record const*) {
        if (!perf_data::holds<Record>(of)) { return false; }
        auto const read = perf_data::read_as<Record>(of);
        if (read) {
            put_values(read);
        } else {
            put("wrong", underlying(read.result.error));
        }
        return true;
    };
    bool const known = (one(static_cast<Records const*>(nullptr)) || ...);
    if (known) { return; }
    auto const event = perf_data::read_attr(of);
    if (event) {
        put_attr("", event.value);
    } else if (of.type == perf_data::record_type::header_attr) {
        put("wrong", underlying(event.result.error));
    } else {
        put("body", of.body());
    }
}

void put_record(perf_data::record const& of) {
    std::printf("record");
    put("at", of.offset);
    put("type", underlying(of.type));
    put("misc", of.misc);
    put("size", of.bytes.size());
    if (!of.trace.empty()) { put("after", of.trace.size()); }
    using is = perf_data::sample_type;
    auto const has = of.id.has;
    if (has.get<is::TID>()) { put("id_thread", of.id.thread); }
    if (has.get<is::TIME>()) { put("time", of.id.time); }
    if (has.get<is::ID>() || has.get<is::IDENTIFIER>()) { put("id", of.id.id); }
    if (has.get<is::STREAM_ID>()) { put("stream_id", of.id.stream_id); }
    if (has.get<is::CPU>()) { put("id_cpu", of.id.cpu); }
    put_any<perf_data::comm_record, perf_data::mmap2_record, perf_data::fork_record,
            perf_data::exit_record, perf_data::lost_record, perf_data::lost_samples_record,
            perf_data::throttle_record, perf_data::aux_record, perf_data::itrace_start_record,
            perf_data::switch_record, perf_data::ksymbol_record, perf_data::bpf_event_record,
            perf_data::text_poke_record, perf_data::sample_record, perf_data::auxtrace_info_record,
            perf_data::auxtrace_record, perf_data::auxtrace_error_record,
            perf_data::time_conv_record, perf_data::id_index_record, perf_data::feature_record,
            perf_data::compressed_record>(of);
    std::printf("\n");
}

/// The streams of a file, with the memory of their pieces.
struct all_streams {
    std::vector<perf_data::piece> slots;
    perf_data::stream_list list;

    explicit all_streams(perf_data::input const& of)
        : slots(perf_data::count_pieces(of)), list{streams_of(of, slots.data(), slots.size())} {}
};

void list_file(byte_view bytes) {
    auto const of = perf_data::open(bytes);
    if (!of) { return put_result(of.result); }
    std::printf("layout pipe=%d cut=%d\n", of.layout == perf_data::file_layout::pipe, of.is_cut);
    auto events = attrs_of(of);
    while (auto const event = events.next()) {
        put_attr("attr", event);
        std::printf("\n");
    }
    put_result(events.result());

    for (unsigned which = 0; which < 256; ++which) {
        auto const found = feature_of(of, static_cast<perf_data::feature_id>(which));
        if (found.result.error == perf_data::read_error::no_feature) { continue; }
        std::printf("feature");
        put("which", which);
        put("offset", found.offset);
        put("size", found.bytes.size());
        put("wrong", underlying(found.result.error));
        std::printf("\n");
    }
    auto ids = perf_data::build_ids(of);
    while (auto const one = ids.next()) {
        std::printf("build_id");
        put("pid", one.pid);
        put("id", byte_view{one.id()});
        put("filename", one.filename);
        std::printf("\n");
    }
    if (!ids.result()) { std::printf("build_id wrong=%u\n", underlying(ids.result().error)); }
    auto programs = perf_data::bpf_programs(of);
    while (auto const one = programs.next()) {
        std::printf("bpf_program");
        put("number", one.id);
        put("arrays", one.arrays.raw);
        put("size", one.data.size());
        put("code", one.code());
        std::printf(" functions=");
        auto functions = functions_of(one);
        for (auto each = functions.next(); each.address != 0; each = functions.next()) {
            std::printf("%" PRIu64 "/%" PRIu32 "/%zu,", each.address, each.size, each.code.size());
        }
        std::printf("\n");
    }
    if (!programs.result()) {
        std::printf("bpf_program wrong=%u\n", underlying(programs.result().error));
    }
    auto const cpuid = text_feature_of(of, perf_data::feature_id::cpuid);
    if (cpuid) {
        std::printf("cpuid");
        put("string", cpuid.bytes);
        std::printf("\n");
    }

    auto all = perf_data::records(of);
    while (auto const one = all.next()) { put_record(one); }
    put_result(all.result());

    auto const config = decoder_config_of(of);
    if (config) {
        std::printf("config");
        put("ctl", config.ctl.raw);
        put("unknown", config.unknown_config);
        put("event_trace", config.has_event_trace);
        put("shift", config.clock.shift);
        put("mult", config.clock.mult);
        put("zero", config.clock.zero);
        put("n", config.tsc_ctc_n);
        put("d", config.tsc_ctc_d);
        put("ratio", config.max_non_turbo_ratio);
        if (config.model) {
            std::printf(" model=%u,%u,%u", config.model.model.family, config.model.model.model,
                        config.model.model.stepping);
        }
        put("quirks", config.quirks.bits);
        std::printf("\n");
    } else {
        std::printf("no config: ");
        put_result(config.result);
    }

    all_streams const streams{of};
    std::printf("streams");
    put("count", streams.list.size());
    put("pieces", streams.list.needed);
    put("snapshot", streams.list.is_snapshot);
    put("compressed", streams.list.has_compressed);
    put("wrong", underlying(streams.list.result.error));
    std::printf("\n");
    for (auto const one : streams.list) {
        std::size_t i = 0;
        for (auto const& part : one) {
            std::printf("piece");
            put("idx", one.idx());
            put("number", i++);
            put("tid", part.tid);
            put("cpu", part.cpu);
            put("at", part.file_offset);
            put("offset", part.offset);
            put("reference", part.reference);
            put("gap", part.has_gap_before);
            put("recorded", part.recorded.size());
            auto const begin = part.trace.empty() ? part.recorded.end() : part.trace.begin();
            put("begin", static_cast<std::size_t>(begin - part.recorded.begin()));
            put("size", part.trace.size());
            std::printf("\n");
        }
    }
}

/// Reads everything of a file: the number of records before the first error.
void list_prefix(byte_view bytes) {
    auto const of = perf_data::open(bytes);
    auto all = perf_data::records(of);
    std::size_t count = 0;
    while (auto const one = all.next()) { ++count; }
    all_streams const streams{of};
    static_cast<void>(decoder_config_of(of));
    std::printf("prefix size=%zu why=%u offset=%" PRIu64 " records=%zu pieces=%zu wrong=%u\n",
                bytes.size(), unsigned{underlying(all.result().error)}, all.result().offset, count,
                streams.list.piece_count, unsigned{underlying(streams.list.result.error)});
}

/// Where the records of a file are, what was skipped, and where the pieces of streams are.
void list_places(byte_view bytes) {
    auto const of = perf_data::open(bytes);
    auto all = perf_data::records(of);
    while (auto const one = all.next()) {
        std::printf("record at=%" PRIu64 " end=%" PRIu64 "\n", one.offset,
                    one.offset + one.bytes.size() + one.trace.size());
    }
    auto const put_skipped = [](perf_data::skipped_bytes const& skipped,
                                perf_data::read_status result) {
        put("bytes", skipped.bytes);
        put("offset", skipped.offset);
        put("to_end", skipped.to_end);
        put("why", underlying(result.error));
        put("wrong_at", result.offset);
        std::printf("\n");
    };
    std::printf("skipped");
    put_skipped(all.skipped(), all.result());
    all_streams const streams{of};
    for (auto const one : streams.list) {
        for (auto const& part : one) {
            std::printf("piece at=%" PRIu64 " size=%zu\n", part.file_offset, part.recorded.size());
        }
    }
    std::printf("skipped-of-streams");
    put_skipped(streams.list.skipped, streams.list.result);
}

auto content_of(char const* name) -> std::vector<std::uint8_t> {
    std::ifstream file{name, std::ios::binary};
    if (!file) {
        std::fprintf(stderr, "cannot read %s\n", name);
        std::exit(1);
    }
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

auto main(int count, char** arguments) -> int {
    std::vector<std::string> const words(arguments + 1, arguments + count);
    bool const is_places = !words.empty() && words[0] == "--places";
    if (words.empty() ||
        (words[0] == "--stream" ? words.size() != 3 : words.size() > 2 && !is_places)) {
        std::fprintf(stderr, "usage: perf_data_list [--prefixes | --stream IDX | --recorded] FILE\n"
                             "       perf_data_list --places FILE...\n");
        return 2;
    }
    for (std::size_t i = 1; is_places && i < words.size(); ++i) {
        std::printf("file\n");
        list_places(content_of(words[i].c_str()));
    }
    if (is_places) { return 0; }
    auto const all = content_of(words.back().c_str());
    if (words.size() == 1) {
        list_file(all);
    } else if (words[0] == "--prefixes") {
        for (std::size_t size = 0; size <= all.size(); ++size) {
            // A copy of exactly this size, so that a sanitizer sees each byte read after it.
            std::vector<std::uint8_t> const prefix(all.begin(),
                                                   all.begin() + static_cast<std::ptrdiff_t>(size));
            list_prefix(prefix);
        }
    } else if (words[0] == "--recorded") {
        all_streams const streams{perf_data::open(all)};
        for (auto const one : streams.list) {
            for (auto const& part : one) {
                if (part.flags.raw != 0) { continue; }
                std::fwrite(part.recorded.data(), 1, part.recorded.size(), stdout);
            }
        }
    } else if (words[0] == "--stream") {
        all_streams const streams{perf_data::open(all)};
        for (auto const one : streams.list) {
            if (std::to_string(one.idx()) != words[1]) { continue; }
            for (auto const& part : one) {
                std::fwrite(part.trace.data(), 1, part.trace.size(), stdout);
            }
        }
    }
    return 0;
}
