// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/read_as.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using ptspec::file::load;
using test::bytes;
using test::join;
using test::letters;
using test::perf_record;
using test::u16;
using test::u32;
using test::u64;

namespace {

/// A record at byte 0x40 of a file, as a reader gives it: without an end.
constexpr auto record_of(byte_view all) -> record {
    record made;
    made.type = static_cast<record_type>(load_le(all.first(4)));
    made.misc = static_cast<uint16_t>(load_le(all.from(4).first(2)));
    made.offset = 0x40;
    made.bytes = all;
    made.content = all;
    return made;
}

constexpr auto is(byte_view some, byte_view others) -> bool { return some == others; }

/// True if the record is read with all its bytes, and is too short with one less.
template <class Record, class Bytes>
constexpr auto needs_all(Bytes const& all) -> bool {
    auto const cut = read_as<Record>(record_of(byte_view{all}.first(all.size() - 1)));
    return read_as<Record>(record_of(all)) &&
           cut.result == read_status{read_error::record_too_short, 0x40};
}

/// True if the record is of this thread.
template <class Record>
constexpr auto is_of(parsed<Record> const& got, thread_id wanted) -> bool {
    return got && thread_of(got.value) == wanted;
}

}  // namespace

TEST_CASE("COMM") {
    CHECK_TWICE([](auto value) {
        auto const all = value(
            perf_record(3, 0x2000, join(u32(0x11), u32(0x22), letters("bash"), u32(0))));
        auto const got = read_as<comm_record>(record_of(all));
        auto const fork = value(perf_record(3, 0, join(u32(0x11), u32(0x22))));
        auto const without = read_as<comm_record>(record_of(fork));
        return is_of(got, {0x11, 0x22}) && is(got.string(), letters("bash")) && got->is_exec() &&
               without && without.string().empty() && !without->is_exec() &&
               needs_all<comm_record>(fork);
    });
}

TEST_CASE("MMAP") {
    CHECK_TWICE([](auto value) {
        auto const fixed = join(u32(0xFFFF'FFFF), u32(1), u64(0xFFFF'FFFF'B960'0000), u64(0x2000),
                                u64(0x3000));
        auto const all = value(perf_record(1, 1, join(fixed, letters("[kernel]"), u64(0))));
        auto const got = read_as<mmap2_record>(record_of(all));
        auto const data = value(perf_record(1, 0x2001, fixed));
        // A MMAP2 bit has no meaning in it.
        auto const odd = read_as<mmap2_record>(record_of(value(perf_record(1, 0x4001, fixed))));
        return is_of(got, {0xFFFF'FFFF, 1}) && got->addr == 0xFFFF'FFFF'B960'0000 &&
               got->len == 0x2000 && got->pgoff == 0x3000 &&
               is(got.string(), letters("[kernel]")) && !got->is_data() && !got->is_mmap2() &&
               got->inode.ino == 0 && got->id().size() == 0 && odd && !odd->has_build_id() &&
               odd->id().size() == 0 && read_as<mmap2_record>(record_of(data))->is_data() &&
               needs_all<mmap2_record>(data);
    });
}

TEST_CASE("MMAP2, with an inode and with a build id") {
    CHECK_TWICE([](auto value) {
        auto const begin = join(u32(1), u32(2), u64(3), u64(4), u64(5));
        auto const inode = value(perf_record(
            10, 2, join(begin, u32(8), u32(9), u64(10), u64(11), u32(5), u32(2), letters("/a"))));
        auto const got = read_as<mmap2_record>(record_of(inode));
        bool right = is_of(got, {1, 2}) && got->is_mmap2() && got->addr == 3 && got->len == 4 &&
                     got->pgoff == 5 && got->inode.dev_major == 8 && got->inode.dev_minor == 9 &&
                     got->inode.ino == 10 && got->inode.ino_generation == 11 && got->prot == 5 &&
                     got->flags == 2 && !got->has_build_id() && got->id().size() == 0 &&
                     is(got.string(), letters("/a"));

        auto const id = letters("0123456789abcdefghij");
        auto const built = value(
            perf_record(10, 0x4002, join(begin, bytes(16, 0xAA, 0xBB, 0xCC), id, u32(5), u32(2))));
        auto const with_id = read_as<mmap2_record>(record_of(built));
        auto const found = with_id->id();
        right = right && with_id && with_id->has_build_id() && is(found, byte_view{id}.first(16)) &&
                with_id->prot == 5 && with_id->flags == 2;
        // A size of more than 20 bytes is not believed.
        auto const large = value(
            perf_record(10, 0x4002, join(begin, bytes(21, 0, 0, 0), id, u32(5), u32(2))));
        auto const whole = read_as<mmap2_record>(record_of(large))->id();
        return right && is(whole, id) && needs_all<mmap2_record>(built);
    });
}

TEST_CASE("FORK and EXIT") {
    CHECK_TWICE([](auto value) {
        auto const rest = join(u32(1), u32(2), u32(3), u32(4), u64(0x1'0000'0005));
        auto const fork = value(perf_record(7, 0, rest));
        auto const exit = value(perf_record(4, 0, rest));
        auto const got = read_as<fork_record>(record_of(fork));
        auto const ended = read_as<exit_record>(record_of(exit));
        return is_of(got, {1, 3}) && got->parent() == thread_id{2, 4} &&
               got->time == 0x1'0000'0005 && is_of(ended, {1, 3}) &&
               ended->parent() == thread_id{2, 4} && ended->time == 0x1'0000'0005 &&
               !read_as<exit_record>(record_of(fork)) && needs_all<fork_record>(fork) &&
               needs_all<exit_record>(exit);
    });
}

TEST_CASE("AUX, ITRACE_START, LOST and THROTTLE") {
    CHECK_TWICE([](auto value) {
        auto const aux = value(perf_record(11, 0, join(u64(0x1000), u64(0x2000), u64(9))));
        auto const got = read_as<aux_record>(record_of(aux));
        bool right = got && got->aux_offset == 0x1000 && got->aux_size == 0x2000 &&
                     got->flags == aux_flags{9} && needs_all<aux_record>(aux);

        auto const start = value(perf_record(12, 0, join(u32(5), u32(6))));
        right = right && is_of(read_as<itrace_start_record>(record_of(start)), {5, 6}) &&
                needs_all<itrace_start_record>(start);

        auto const lost = value(perf_record(2, 0, join(u64(7), u64(8))));
        auto const samples = value(perf_record(13, 0, u64(9)));
        auto const got_lost = read_as<lost_record>(record_of(lost));
        auto const got_samples = read_as<lost_samples_record>(record_of(samples));
        right = right && got_lost->id == 7 && got_lost->lost == 8 && got_samples->lost == 9 &&
                needs_all<lost_record>(lost) && needs_all<lost_samples_record>(samples);

        auto const throttle = value(perf_record(5, 0, join(u64(1), u64(2), u64(3))));
        auto const unthrottle = value(perf_record(6, 0, join(u64(1), u64(2), u64(3))));
        auto const got_throttle = read_as<throttle_record>(record_of(throttle));
        auto const got_unthrottle = read_as<throttle_record>(record_of(unthrottle));
        return right && got_throttle->header.type == record_type::throttle &&
               got_throttle->time == 1 && got_throttle->id == 2 && got_throttle->stream_id == 3 &&
               got_unthrottle && got_unthrottle->header.type == record_type::unthrottle &&
               needs_all<throttle_record>(throttle) && needs_all<throttle_record>(unthrottle);
    });
}

TEST_CASE("SWITCH and SWITCH_CPU_WIDE") {
    CHECK_TWICE([](auto value) {
        auto const in = value(perf_record(14, 0));
        auto const out = value(perf_record(14, 0x2000));
        auto const preempted = value(perf_record(15, 0x6000, join(u32(1), u32(2))));
        auto const odd = value(perf_record(14, 0x4000));
        auto const got = read_as<switch_record>(record_of(preempted));
        return !read_as<switch_record>(record_of(in))->is_out() &&
               read_as<switch_record>(record_of(out))->is_out() &&
               !read_as<switch_record>(record_of(out))->is_preempted() &&
               !read_as<switch_record>(record_of(out))->has_other() && got->is_out() &&
               got->is_preempted() && got->has_other() && got->other() == thread_id{1, 2} &&
               !read_as<switch_record>(record_of(odd))->is_preempted() &&
               needs_all<switch_record>(preempted);
    });
}

TEST_CASE("SAMPLE: the members of fixed size") {
    CHECK_TWICE([](auto value) {
        using kind = sample_type;
        auto const all = value(perf_record(9, 2, join(u64(1), u64(2), u32(3), u32(4), u64(5))));
        auto of = record_of(all);
        of.event = kind{}.with(kind::IDENTIFIER{true}, kind::IP{true}, kind::TID{true},
                               kind::RAW{true});
        auto const got = read_as<sample_record>(of);
        auto short_of = of;
        short_of.content = of.content.first(8 + 23);
        return got && got->ip == 2 && got->period == 0 && is(got.rest, u64(5)) &&
               !read_as<sample_record>(short_of);
    });
}

TEST_CASE("SAMPLE: ADDR precedes PERIOD, with the members of `sample_id` between them") {
    CHECK_TWICE([](auto value) {
        using kind = sample_type;
        auto const all = value(perf_record(9, 2, join(u64(1), u64(2), u64(3), u64(4), u64(5))));
        auto of = record_of(all);
        of.event = kind{}.with(kind::IP{true}, kind::TIME{true}, kind::ADDR{true},
                               kind::STREAM_ID{true}, kind::PERIOD{true});
        auto const got = read_as<sample_record>(of);
        return got && got->ip == 1 && got->addr == 3 && got->period == 5 && got.rest.empty();
    });
}

TEST_CASE("AUXTRACE_INFO: the quadwords that the record has") {
    CHECK_TWICE([](auto value) {
        auto const ten = join(u32(1), u32(0), u64(6), u64(31), u64(32), u64(33), u64(34), u64(35),
                              u64(36), u64(37), u64(38), u64(39));
        auto const old = value(perf_record(70, 0, ten));
        auto const got = read_as<auxtrace_info_record>(record_of(old));
        bool right = got && got->type == 1 && got->words() == 10 && got->PMU_TYPE == 6 &&
                     got->TIME_SHIFT == 31 && got->TIME_MULT == 32 && got->TIME_ZERO == 33 &&
                     got->CAP_USER_TIME_ZERO == 34 && got->TSC_BIT == 35 &&
                     got->NORETCOMP_BIT == 36 && got->HAVE_SCHED_SWITCH == 37 &&
                     got->SNAPSHOT_MODE == 38 && got->PER_CPU_MMAPS == 39 && got->MTC_BIT == 0 &&
                     got->CYC_BIT == 0 && got.string().empty();

        auto const more = join(ten, u64(40), u64(41), u64(42), u64(43), u64(44), u64(45));
        auto const newest = value(
            perf_record(70, 0, join(more, u64(8), letters("filter 0"), u64(0), u64(1))));
        auto const all = read_as<auxtrace_info_record>(record_of(newest));
        right = right && all && all->MTC_BIT == 40 && all->MTC_FREQ_BITS == 41 &&
                all->TSC_CTC_N == 42 && all->TSC_CTC_D == 43 && all->CYC_BIT == 44 &&
                all->MAX_NONTURBO_RATIO == 45 && is(all.string(), letters("filter 0")) &&
                all->CAP_EVENT_TRACE == 1 && all->words() == 20;

        auto const plain = value(perf_record(70, 0, join(more, u64(0), u64(1))));
        auto const without = read_as<auxtrace_info_record>(record_of(plain));
        right = right && without && without.string().empty() && without->CAP_EVENT_TRACE == 1;

        // The filter needs its NUL, and a length is not believed.
        auto const cut = value(perf_record(70, 0, join(more, u64(8), letters("filter 0"))));
        auto const huge = value(perf_record(70, 0, join(more, u64(~uint64_t{0}), u64(0))));
        return right && !read_as<auxtrace_info_record>(record_of(cut)) &&
               !read_as<auxtrace_info_record>(record_of(huge));
    });
}

TEST_CASE("AUXTRACE_INFO: a part of a quadword does not count") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_record(70, 0, join(u32(1), u32(0), u64(6), bytes(31))));
        auto const got = read_as<auxtrace_info_record>(record_of(all));
        return got && got->words() == 1 && got->PMU_TYPE == 6 && got->TIME_SHIFT == 0;
    });
}

TEST_CASE("AUXTRACE_INFO: a record that is only made has no quadwords") {
    CHECK_TWICE([](auto value) {
        return auxtrace_info_record{.type = value(auxtrace_intel_pt)}.words() == 0 &&
               auxtrace_info_record{.header = {.size = value(uint16_t{15})}}.words() == 0 &&
               auxtrace_info_record{.header = {.size = value(uint16_t{24})}}.words() == 1;
    });
}

TEST_CASE("AUXTRACE_INFO of another trace has only its type") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_record(70, 0, join(u32(3), u32(0), u64(6))));
        auto const got = read_as<auxtrace_info_record>(record_of(all));
        return got && got->type == 3 && got->words() == 1 && got->PMU_TYPE == 0;
    });
}

TEST_CASE("AUXTRACE") {
    CHECK_TWICE([](auto value) {
        auto const all = value(perf_record(
            71, 0, join(u64(0x1000), u64(0x2000), u64(0x3000), u32(4), u32(5), u32(6), u32(0))));
        auto const got = read_as<auxtrace_record>(record_of(all));
        return got && got->size == 0x1000 && got->offset == 0x2000 && got->reference == 0x3000 &&
               got->idx == 4 && got->tid == 5 && got->cpu == 6 && needs_all<auxtrace_record>(all);
    });
}

TEST_CASE("AUXTRACE_ERROR in its three formats") {
    CHECK_TWICE([](auto value) {
        auto const head = [](unsigned format) {
            return join(u32(1), u32(2), u32(3), u32(4), u32(5), u32(format), u64(0x1234));
        };
        byte_array<64> message{{'l', 'o', 's', 't'}};
        auto const old = value(perf_record(72, 0, join(head(0), message)));
        auto const timed = value(perf_record(72, 0, join(head(1), u64(77), message)));
        auto const guest = value(
            perf_record(72, 0, join(head(2), u64(77), message, u32(8), u32(9))));
        auto const first = read_as<auxtrace_error_record>(record_of(old));
        auto const second = read_as<auxtrace_error_record>(record_of(timed));
        auto const third = read_as<auxtrace_error_record>(record_of(guest));
        return first && first->type == 1 && first->code == 2 && first->cpu == 3 &&
               is_of(first, {4, 5}) && first->ip == 0x1234 && first->time == 0 &&
               is(first.string(), letters("lost")) && second->time == 77 &&
               is(second.string(), letters("lost")) && second->vcpu == 0 &&
               third->machine_pid == 8 && third->vcpu == 9 && third->fmt == 2;
    });
}

TEST_CASE("AUXTRACE_ERROR: the message has 64 bytes, and members of another format are 0") {
    CHECK_TWICE([](auto value) {
        auto const head = [](unsigned format) {
            return join(u32(1), u32(2), u32(3), u32(4), u32(5), u32(format), u64(0x1234));
        };
        byte_array<64> message{};
        for (auto& byte : message.bytes) { byte = 'm'; }
        auto const one = value(perf_record(72, 0, join(head(1), u64(77), message, u32(8), u32(9))));
        auto const none = value(perf_record(72, 0, join(head(0), message, u64(~uint64_t{0}))));
        auto const timed = read_as<auxtrace_error_record>(record_of(one));
        auto const old = read_as<auxtrace_error_record>(record_of(none));
        return timed && timed->time == 77 && is(timed.string(), message) &&
               timed->machine_pid == 0 && timed->vcpu == 0 && old && old->time == 0 &&
               is(old.string(), message) && old->msg[0] == 'm' && old->msg[63] == 'm' &&
               timed->msg[63] == 'm' && old->machine_pid == 0 &&
               needs_all<auxtrace_error_record>(value(perf_record(72, 0, head(0))));
    });
}

TEST_CASE("TIME_CONV, old and new") {
    CHECK_TWICE([](auto value) {
        auto const three = join(u64(31), u64(1000), u64(7));
        auto const old = value(perf_record(79, 0, three));
        auto const all = value(
            perf_record(79, 0, join(three, u64(8), u64(9), bytes(0, 1), u32(0), u16(0))));
        auto const part = value(perf_record(79, 0, join(three, u64(8), u64(9), bytes(1))));
        auto const between = read_as<time_conv_record>(record_of(part));
        auto const unpadded = value(perf_record(79, 0, join(three, u64(8), u64(9), bytes(0, 1))));
        auto const third = read_as<time_conv_record>(record_of(unpadded));
        auto const first = read_as<time_conv_record>(record_of(old));
        auto const second = read_as<time_conv_record>(record_of(all));
        return first && first->time_shift == 31 && first->time_mult == 1000 &&
               first->time_zero == 7 && !first->has_cycles() && second && second->has_cycles() &&
               second->time_cycles == 8 && second->time_mask == 9 &&
               second->cap_user_time_zero == 0 && second->cap_user_time_short == 1 && between &&
               !between->has_cycles() && between->time_zero == 7 && between->time_cycles == 0 &&
               third && third->has_cycles() && third->time_mask == 9 &&
               third->cap_user_time_short == 1 && needs_all<time_conv_record>(old);
    });
}

TEST_CASE("ID_INDEX: as many entries as the record has room for") {
    CHECK_TWICE([](auto value) {
        auto const entries = join(u64(1), u64(2), u64(3), u64(4), u64(5), u64(6), u64(7), u64(8));
        auto const all = value(perf_record(69, 0, join(u64(2), entries)));
        auto const got = read_as<id_index_record>(record_of(all));
        auto const three = value(perf_record(69, 0, join(u64(3), entries)));
        auto const huge = value(perf_record(69, 0, join(u64(uint64_t{1} << 59), entries)));
        id_index_entry const first = load<id_index_entry>(got.rest, 0);
        id_index_entry const second = load<id_index_entry>(got.rest, 1);
        return got && got->nr == 2 && first.id == 1 && second.id == 5 && second.idx == 6 &&
               second.cpu == 7 && second.tid == 8 && !read_as<id_index_record>(record_of(three)) &&
               !read_as<id_index_record>(record_of(huge));
    });
}

TEST_CASE("KSYMBOL") {
    CHECK_TWICE([](auto value) {
        auto const fixed = join(u64(0xFFFF'FFFF'C000'1000), u32(77), u16(2));
        auto const all = value(
            perf_record(17, 1, join(fixed, u16(1), letters("bpf_prog"), u64(0))));
        auto const got = read_as<ksymbol_record>(record_of(all));
        auto const added = value(perf_record(17, 1, join(fixed, u16(0))));
        return got && got->addr == 0xFFFF'FFFF'C000'1000 && got->len == 77 &&
               got->ksym_type == ksym_type::ool && got->is_unregistered() &&
               is(got.string(), letters("bpf_prog")) &&
               !read_as<ksymbol_record>(record_of(added))->is_unregistered() &&
               needs_all<ksymbol_record>(added);
    });
}

TEST_CASE("BPF_EVENT") {
    CHECK_TWICE([](auto value) {
        auto const all = value(
            perf_record(18, 1, join(u16(2), u16(3), u32(4), letters("TAGofBPF"))));
        auto const got = read_as<bpf_event_record>(record_of(all));
        return got && got->type == bpf_event_type::prog_unload && got->flags == 3 && got->id == 4 &&
               got->tag[0] == 'T' && got->tag[7] == 'F' && got.rest.empty() &&
               needs_all<bpf_event_record>(all);
    });
}

TEST_CASE("TEXT_POKE: the old bytes, the new, and padding") {
    CHECK_TWICE([](auto value) {
        auto const head = join(u64(0xFFFF'FFFF'8100'0000), u16(2), u16(3));
        auto const all = value(perf_record(20, 1, join(head, letters("ONnew"), bytes(0, 0, 0))));
        auto const got = read_as<text_poke_record>(record_of(all));
        auto const cut = value(perf_record(20, 1, join(head, letters("ONnew"))));
        auto const huge = value(
            perf_record(20, 1, join(u64(1), u16(0xFFFF), u16(0xFFFF), letters("bytes"))));
        auto const none = value(perf_record(20, 1, join(u64(1), u16(0), u16(0))));
        auto const nothing = read_as<text_poke_record>(record_of(none));
        return got && got->addr == 0xFFFF'FFFF'8100'0000 && got->old_len == 2 &&
               got->new_len == 3 && is(code_before(got), letters("ON")) &&
               is(code_after(got), letters("new")) && got.rest.size() == 5 &&
               needs_all<text_poke_record>(cut) &&
               read_as<text_poke_record>(record_of(huge)).result ==
                   read_status{read_error::record_too_short, 0x40} &&
               nothing && code_before(nothing).empty() && code_after(nothing).empty() &&
               needs_all<text_poke_record>(none);
    });
}

TEST_CASE("HEADER_ATTR: the size of the attributes is that in the file") {
    CHECK_TWICE([](auto value) {
        auto const attr = join(u32(6), u32(72), u64(0x2401), u64(1), u64(0x1'0087), u64(4),
                               u64(0x4'0000), u32(0), u32(0), u64(11), u64(12));
        auto const all = value(perf_record(64, 0, join(attr, u64(124), u64(125))));
        auto const got = read_attr(record_of(all));
        bool right = got && got->offset == 0x48 && got->bytes.size() == 72 && got->type == 6 &&
                     got->config == 0x2401 && got->sample_period == 1 &&
                     got->sample_type.value().raw == 0x1'0087 &&
                     got->read_format.value().raw == 4 && got->flags == attr_flags{0x4'0000} &&
                     got->id_count() == 2 && got->id(0) == 124 && got->id(1) == 125 &&
                     got->config1 == 11 && got->config2 == 12 && got->config3 == 0;
        // Size 0 means the first version.
        auto const old = value(perf_record(
            64, 0, join(u32(6), u32(0), u64(1), u64(1), u64(2), u64(3), u64(4), u64(5), u64(6))));
        auto const first = read_attr(record_of(old));
        right = right && first && first->bytes.size() == 64 && first->id_count() == 0;
        event_attr ids;
        ids.id_bytes = {all.data(), value(size_t{71})};
        right = right && ids.id_count() == 8;
        auto const large = value(perf_record(
            64, 0, join(u32(6), u32(65), u64(1), u64(1), u64(2), u64(3), u64(4), u64(5), u64(6))));
        auto const small = value(perf_record(
            64, 0, join(u32(6), u32(63), u64(1), u64(1), u64(2), u64(3), u64(4), u64(5), u64(6))));
        return right && !read_attr(record_of(large)) && !read_attr(record_of(small)) &&
               read_attr(record_of(byte_view{old}.first(old.size() - 1))).result ==
                   read_status{read_error::record_too_short, 0x40} &&
               read_attr(record_of(byte_view{old}.first(12))).result ==
                   read_status{read_error::record_too_short, 0x40} &&
               read_attr(record{}).result.error == read_error::other_record_type;
    });
}

TEST_CASE("HEADER_FEATURE, COMPRESSED and COMPRESSED2") {
    CHECK_TWICE([](auto value) {
        auto const feature = value(perf_record(80, 0, join(u64(9), letters("data"))));
        auto const got = read_as<feature_record>(record_of(feature));
        bool right = got && got->feat_id == 9 && is(got.rest, letters("data"));
        auto const one = value(perf_record(81, 0, letters("zstd")));
        auto const two = value(perf_record(83, 0, join(u64(5), letters("zstd2"), bytes(0, 0, 0))));
        auto const bad = value(perf_record(83, 0, join(u64(9), letters("zstd2"), bytes(0, 0, 0))));
        right = right && is(read_as<compressed_record>(record_of(one)).rest, letters("zstd")) &&
                is(read_as<compressed_record>(record_of(two)).rest, letters("zstd2")) &&
                read_as<compressed_record>(
                    record_of(value(perf_record(83, 0, join(u64(4), letters("zstd"))))))
                        .rest.size() == 4 &&
                !read_as<compressed_record>(record_of(bad));
        return right && is_compressed(record_type::compressed) &&
               is_compressed(record_type::compressed2) && !is_compressed(record_type::auxtrace);
    });
}

TEST_CASE("a record of another type, or none, is no such value") {
    CHECK_TWICE([](auto value) {
        auto const fork = value(perf_record(7, 0, join(u32(1), u32(2), u32(3), u32(4), u64(5))));
        auto const got = read_as<comm_record>(record_of(fork));
        return got.result == read_status{read_error::other_record_type, 0x40} &&
               !holds<comm_record>(record_of(fork)) && holds<fork_record>(record_of(fork)) &&
               !holds<fork_record>(record{}) && !record{} &&
               is(record_of(fork).body(), byte_view{fork}.from(8));
    });
}
