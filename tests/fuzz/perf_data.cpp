// SPDX-License-Identifier: BSL-1.0

// Any bytes as a perf.data file: nothing outside of them is read, every error has a place, streams
// contain exactly the bytes of records, and what is no record is counted. The two halves also as
// snapshots of one ring, and the first bytes as the header of one record: all others are read.

#include <ptspec/file/perf_data/bpf_programs.hpp>
#include <ptspec/file/perf_data/build_ids.hpp>
#include <ptspec/file/perf_data/event_reader.hpp>

#include <fuzz/check.hpp>

#include <vector>

namespace {

using namespace ptspec;
using namespace ptspec::file::perf_data;
using fuzz::require;

struct whole_file {
    byte_view bytes;

    void contains(byte_view part) const {
        require(part.empty() || (part.begin() >= bytes.begin() && part.end() <= bytes.end()),
                "a view is inside the file");
    }
    void contains(read_status result) const {
        require(result || result.offset <= bytes.size(), "an error is inside the file");
        require(!result || result.offset == 0, "no error has no place");
        require(!(describe(result.error) == "unknown error"), "an error has a sentence");
    }
};

template <class Record>
auto members_of(whole_file of, record const& from) -> parsed<Record> {
    auto const got = read_as<Record>(from);
    of.contains(got.result);
    of.contains(got.rest);
    of.contains(got.string());
    require(holds<Record>(from) == (got.result.error != read_error::other_record_type),
            "a record of the right type has the members, or is too short");
    return got;
}

void check_record(whole_file of, record const& one) {
    of.contains(one.bytes);
    of.contains(one.trace);
    require(one.bytes.begin() == of.bytes.begin() + one.offset, "a record begins at its offset");
    require(one.content.size() >= 8 && one.content.begin() == one.bytes.begin() &&
                one.content.size() <= one.bytes.size(),
            "the content is the begin of the record");
    static_cast<void>(members_of<comm_record>(of, one));
    require(members_of<mmap2_record>(of, one)->id().size() <= 20, "a build id has 20 bytes");
    static_cast<void>(members_of<fork_record>(of, one));
    static_cast<void>(members_of<exit_record>(of, one));
    static_cast<void>(members_of<lost_record>(of, one));
    static_cast<void>(members_of<lost_samples_record>(of, one));
    static_cast<void>(members_of<throttle_record>(of, one));
    static_cast<void>(members_of<aux_record>(of, one));
    static_cast<void>(members_of<itrace_start_record>(of, one));
    static_cast<void>(members_of<switch_record>(of, one));
    static_cast<void>(members_of<ksymbol_record>(of, one));
    static_cast<void>(members_of<bpf_event_record>(of, one));
    auto const poke = members_of<text_poke_record>(of, one);
    require(code_before(poke).size() == poke->old_len && code_after(poke).size() == poke->new_len &&
                code_before(poke).size() + code_after(poke).size() == poke.rest.size(),
            "the old and the new bytes are there");
    static_cast<void>(members_of<sample_record>(of, one));
    static_cast<void>(members_of<auxtrace_info_record>(of, one));
    auto const piece = members_of<auxtrace_record>(of, one);
    require(piece->size == 0 || piece->size == one.trace.size(), "the trace has its size");
    static_cast<void>(members_of<tracing_data_record>(of, one));
    static_cast<void>(members_of<auxtrace_error_record>(of, one));
    static_cast<void>(members_of<time_conv_record>(of, one));
    auto const index = members_of<id_index_record>(of, one);
    for (size_t i = 0; i < index->nr; ++i) {
        require(index.rest.size() >= (i + 1) * sizeof(id_index_entry), "each entry is there");
        static_cast<void>(ptspec::file::load<id_index_entry>(index.rest, i));
    }
    static_cast<void>(members_of<feature_record>(of, one));
    static_cast<void>(members_of<build_id_record>(of, one));
    static_cast<void>(members_of<compressed_record>(of, one));
    auto const event = read_attr(one);
    of.contains(event.result);
    of.contains(event->bytes);
    of.contains(event->id_bytes);
}

void check_events(whole_file of, input const& file) {
    auto events = attrs_of(file);
    uint64_t last = 0;
    while (auto const event = events.next()) {
        of.contains(event.bytes);
        of.contains(event.id_bytes);
        require(event.bytes.size() >= 64, "attributes have 64 bytes or more");
        require(event.offset > last || last == 0, "each event is after the one before");
        last = event.offset;
        uint64_t sum = 0;
        for (size_t i = 0; i < event.id_count(); ++i) { sum += event.id(i); }
        static_cast<void>(sum);
    }
    require(bool{events.result()}, "open has read all events");
}

void check_build_ids(whole_file of, input const& file) {
    auto all = build_ids(file);
    while (auto const one = all.next()) {
        of.contains(one.filename);
        require(one.id().size() <= 20, "a build id has at most 20 bytes");
    }
    of.contains(all.result());
}

void check_bpf_programs(whole_file of, input const& file) {
    auto all = bpf_programs(file);
    while (auto const one = all.next()) {
        of.contains(one.data);
        auto functions = functions_of(one);
        for (auto function = functions.next(); function.address != 0; function = functions.next()) {
            of.contains(function.code);
            require(function.code.empty() || function.code.size() == function.size,
                    "a function has all its code, or none");
        }
    }
    of.contains(all.result());
}

void check_streams(whole_file of, input const& file) {
    size_t const count = count_pieces(file);
    std::vector<piece> slots(count);
    if (count != 0) {
        require(streams_of(file, slots.data(), count - 1).result.error ==
                        read_error::too_few_slots ||
                    streams_of(file, slots.data(), count - 1).needed <= count,
                "one slot less is too few");
    }
    auto const list = streams_of(file, slots.data(), slots.size());
    of.contains(list.result);
    require(list.needed <= count, "the number of pieces");
    size_t pieces = 0;
    for (auto const one : list) {
        require(one.size() != 0, "a stream has a piece");
        for (auto const& part : one) {
            ++pieces;
            require(part.idx == one.idx(), "a stream has one idx");
            require(part.flags.raw == 0 || part.flags.raw == 4 || (part.flags.raw & ~9U) == 0,
                    "flags of AUX records that tell something");
            of.contains(part.recorded);
            of.contains(part.trace);
            require(part.trace.empty() || (part.trace.begin() >= part.recorded.begin() &&
                                           part.trace.end() <= part.recorded.end()),
                    "a piece is a part of its record");
        }
    }
    require(pieces == list.piece_count, "each piece is in one stream");
}

/// The events of all streams end, and lie in the bytes of their pieces.
void check_all_events(input const& file, decoder_config const& config) {
    std::vector<piece> slots(count_pieces(file));
    for (auto const one : streams_of(file, slots.data(), slots.size())) {
        uint64_t size = 0;
        for (auto const& part : one) { size += part.trace.size(); }
        event_reader events{one, config};
        while (auto const& found = events.next()) {
            require(found.offset <= size, "an event is in the stream");
        }
        require(events.gaps() <= one.size(), "a gap is before a piece");
    }
}

void check_snapshots(byte_view one, byte_view two) {
    auto const found = find_new_bytes(one, two);
    require(found.begin <= two.size() && found.dropped <= one.size(),
            "the new bytes are in the snapshot");
    auto const kept = one.first(one.size() - found.dropped);
    if (found.continues) {
        require(found.dropped <= 7, "PADs are at most 7");
        for (uint8_t const byte : one.from(kept.size())) { require(byte == 0, "PADs are 0"); }
        for (size_t i = 1; found.begin != two.size() && i <= found.begin && i <= kept.size(); ++i) {
            require(two[found.begin - i] == kept[kept.size() - i],
                    "the bytes before new ones are those of the other snapshot");
        }
    } else {
        require(found.begin == two.size() || trace::find_psb(two, found.begin) == found.begin,
                "other new bytes begin at a PSB");
    }
}

/// Records of which one gets another header.
void check_damage(byte_view from) {
    constexpr unsigned count = 8;
    if (from.size() < 10) { return; }
    std::vector<uint8_t> made{'P', 'E', 'R', 'F', 'I', 'L', 'E', '2', 16, 0, 0, 0, 0, 0, 0, 0};
    std::vector<uint64_t> begins;
    auto const put = [&](uint64_t number, unsigned size) {
        for (unsigned i = 0; i < size; ++i) { made.push_back(uint8_t(number >> 8 * i)); }
    };
    unsigned const which = from[8] % count;
    for (unsigned i = 0; i < count; ++i) {
        begins.push_back(made.size());
        bool const is_trace = (from[9] >> i & 1) != 0;
        unsigned const words = is_trace ? 5 : i % 4 + 1;
        put(is_trace ? 71 : 3, 4);
        put((8 + words * 8) << 16, 4);
        put(is_trace ? 16 : ~uint64_t{0}, 8);
        for (unsigned word = 1; word < words; ++word) { put(~uint64_t{0}, 8); }
        if (is_trace) { put(0x8202'8202'8202'8202, 8), put(0x8202'8202'8202'8202, 8); }
    }
    begins.push_back(made.size());
    auto const at = begins[which];
    for (unsigned i = 0; i < 8; ++i) { made[at + i] = from[i]; }
    byte_view const bytes{made.data(), made.size()};
    // Nothing contradicts a size with which another record, or the end, follows.
    for (unsigned i = which + 2; i <= count; ++i) {
        bool const is_trace = load_le(bytes.from(at).first(4)) == 71;
        auto const trace = is_trace ? load_le(bytes.from(at + 8).first(8)) : 0;
        if (at + load_le(bytes.from(at + 6).first(2)) + trace == begins[i]) { return; }
    }
    auto all = records(open({made.data(), made.size()}));
    std::vector<uint64_t> found;
    while (auto const one = all.next()) { found.push_back(one.offset); }
    for (unsigned i = 0; i < count; ++i) {
        bool is_found = i == which;
        for (auto const one : found) { is_found = is_found || one == begins[i]; }
        require(is_found, "each intact record is read");
    }
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::copy const bytes{{data, size}};
    whole_file const of{bytes};
    auto const file = open(bytes);
    of.contains(file.result);
    if (file) {
        check_events(of, file);
        check_build_ids(of, file);
        check_bpf_programs(of, file);
        for (unsigned i = 0; i < 256; ++i) {
            auto const found = feature_of(file, static_cast<feature_id>(i));
            of.contains(found.bytes);
            auto const text = text_feature_of(file, static_cast<feature_id>(i));
            of.contains(text.bytes);
        }
    }
    auto all = records(file);
    uint64_t next = file.data_begin;
    uint64_t skipped = 0;
    while (auto const one = all.next()) {
        require(one.offset >= next, "a record begins after the one before");
        skipped += one.offset - next;
        next = one.offset + one.bytes.size() + one.trace.size();
        check_record(of, one);
    }
    of.contains(all.result());
    if (file) {
        require(!all.result() || next == file.data_end, "without an error all was read");
        auto const damage = all.skipped();
        skipped += damage.to_end ? all.offset() - next : file.data_end - next;
        require(damage.bytes == skipped, "each byte is in a record or counted");
        require(!damage || damage.offset + damage.bytes <= file.data_end, "damage is in the file");
        require(!damage || !all.result(), "damage is an error");
    }

    check_streams(of, file);
    auto const config = decoder_config_of(file);
    of.contains(config.result);
    require(config.clock.shift < 64, "times can be computed");
    check_all_events(file, config);
    static_cast<void>(config.clock.time_of(~uint64_t{0}));

    byte_view const whole{bytes};
    check_damage(whole);
    fuzz::copy const first{whole.first(size / 2)};
    fuzz::copy const second{whole.from(size / 2)};
    check_snapshots(first, second);
    return 0;
}
