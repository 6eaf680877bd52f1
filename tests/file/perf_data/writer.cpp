// SPDX-License-Identifier: BSL-1.0
#include <ptspec/file/perf_data/writer.hpp>

#include <support/check_twice.hpp>
#include <support/little_endian.hpp>

#include <cstddef>
#include <cstdint>

using namespace ptspec;
using namespace ptspec::file::perf_data;
using ctl = reg::ia32_rtit_ctl;
using test::bytes;
using test::join;
using test::u16;
using test::u32;
using test::u64;

namespace {

constexpr auto timed_session() -> session {
    session made;
    made.ctl = ctl{}.with(ctl::TSCEn{true}, ctl::BranchEn{true}, ctl::User{true});
    made.clock = {.shift = 31, .mult = 0x4000'0000, .zero = 0x1'0000'0007};
    made.caps.leaf_15_eax = {2};
    made.caps.leaf_15_ebx = {0xA8};
    made.caps.platform_info = {0x18U << 8};
    made.caps.leaf_14_0_ebx = {0x80};
    made.pmu_type = 9;
    return made;
}

/// The bytes of an AUXTRACE_INFO without filter.
constexpr std::size_t info_size = 16 + 18 * 8;

/// Where a file is written to.
struct room {
    byte_array<12'000> all{};
    byte_buffer buffer{all.bytes};
};

/// The bytes that `body(writer)` writes after `begin`, and whether it returned true.
struct outcome {
    byte_array<5000> all{};
    std::size_t size = 0;
    bool right = false;

    template <class Bytes>
    [[nodiscard]] constexpr auto is(Bytes const& wanted) const -> bool {
        return right && byte_view{all}.first(size) == byte_view{wanted};
    }
};

template <class Body>
constexpr auto written(session const& of, Body const& body) -> outcome {
    room file;
    writer to{of, file.buffer};
    outcome got;
    bool const begun{to.begin()};
    auto const before = file.buffer.size();
    got.right = begun && body(to);
    auto const all = file.buffer.written().from(before);
    got.size = all.size();
    copy_bytes(got.all.bytes, all.data(), all.size());
    got.right = got.right && to.data_size() == file.buffer.size() - 256;
    return got;
}

/// The same for one record, with its name and time.
template <class... Record>
constexpr auto written_record(session const& of, Record const&... record) -> outcome {
    return written(of, [&](auto& to) { return bool{to.write(record...)}; });
}

/// Room for `size` bytes after `begin`.
struct small_room {
    byte_array<1000> all{};
    std::size_t size = 0;
    std::size_t limit = 1000;
    unsigned calls = 0;

    [[nodiscard]] constexpr auto append(byte_view more) noexcept -> bool {
        ++calls;
        if (more.size() > limit - size) { return false; }
        copy_bytes(all.bytes + size, more.data(), more.size());
        size += more.size();
        return true;
    }
};

/// Counts bytes without reading them.
struct counting_sink {
    std::uint64_t size = 0;

    [[nodiscard]] constexpr auto append(byte_view more) noexcept -> bool {
        size += more.size();
        return true;
    }
};

struct long_name {
    char characters[4096]{};

    constexpr long_name() {
        for (auto& letter : characters) { letter = 'x'; }
    }
    [[nodiscard]] constexpr auto first(std::size_t count) const -> text {
        return {characters, count};
    }
};
constexpr long_name longest{};

constexpr comm_record named{.header = {.misc = 0x2000}, .pid = 0x1111, .tid = 0x2222};

constexpr mmap2_record mapped{
    .pid = 0x11,
    .tid = 0x12,
    .addr = 0x5555'4444'3000,
    .len = 0x2000,
    .pgoff = 0x1000,
    .inode = {.dev_major = 8, .dev_minor = 1, .ino = 0x1'2345'6789, .ino_generation = 77}};

}  // namespace

// ------------------------------------------------------------------------------------ begin

TEST_CASE("a file begins with the head for size 0 and AUXTRACE_INFO") {
    CHECK_TWICE([](auto value) {
        room file;
        auto const of = value(timed_session());
        writer to{of, file.buffer};
        bool const begun{to.begin()};
        auto const wanted = join(head(of, 0),
                                 // header, type and reserved
                                 u32(70), u16(0), u16(160), u32(1), u32(0),
                                 // PMU type; time shift, mult, zero and their capability
                                 u64(9), u64(31), u64(0x4000'0000), u64(0x1'0000'0007), u64(1),
                                 // TSC bit, NoRETComp bit
                                 u64(0x400), u64(0x800),
                                 // have sched_switch, snapshot mode, per-cpu mmaps
                                 u64(0), u64(0), u64(0),
                                 // MTC bit, MTC freq bits, TSC:CTC ratio, CYC bit
                                 u64(0x200), u64(0x3'C000), u64(0xA8), u64(2), u64(2),
                                 // max non-turbo ratio, length of the filter, event trace
                                 u64(0x18), u64(0), u64(1));
        return begun && file.buffer.written() == byte_view{wanted} && to.data_size() == info_size;
    });
}

TEST_CASE("a file that is not timed has a conversion of 1 ns and no capability for it") {
    CHECK_TWICE([](auto value) {
        auto of = timed_session();
        of.ctl = value(ctl{}.with(ctl::BranchEn{true}));
        room file;
        writer to{of, file.buffer};
        bool const begun{to.begin()};
        auto const wanted = join(u64(9), u64(0), u64(1), u64(0), u64(0), u64(0x400));
        return begun &&
               file.buffer.written().from(256 + 16).first(wanted.size()) == byte_view{wanted};
    });
}

TEST_CASE("a filter follows its length, padded to 8 bytes with at least one NUL") {
    CHECK_TWICE([](auto value) {
        bool right = true;
        for (std::size_t const length : {value(std::size_t{7}), value(std::size_t{8})}) {
            auto of = timed_session();
            of.filter = {"abcdefgh", length};
            room file;
            writer to{of, file.buffer};
            right = right && to.begin();
            auto const end = file.buffer.written().from(256 + 16 + 16 * 8);
            auto const seven = join(u64(7), bytes('a', 'b', 'c', 'd', 'e', 'f', 'g', 0), u64(1));
            auto const eight = join(u64(8), bytes('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'), u64(0),
                                    u64(1));
            right = right && end == (length == 7 ? byte_view{seven} : byte_view{eight});
            auto const size = file.buffer.written().from(256 + 6).first(2);
            right = right && size == byte_view{u16(info_size + (length == 7 ? 8 : 16))};
        }
        return right;
    });
}

TEST_CASE("begin writes nothing for a bad session, and nothing a second time") {
    CHECK_TWICE([](auto value) {
        auto of = timed_session();
        of.clock.shift = value(std::uint16_t{40});
        room file;
        writer bad{of, file.buffer};
        bool right = bad.begin().error == error::bad_clock && file.buffer.size() == 0;
        of = timed_session();
        of.filter = longest.first(value(std::size_t{4096}));
        writer longer{of, file.buffer};
        right = right && longer.begin().error == error::name_too_long && file.buffer.size() == 0;
        of.filter = longest.first(value(std::size_t{4095}));
        writer to{of, file.buffer};
        right = right && to.begin() && to.data_size() == info_size + 4096 &&
                file.buffer.size() == 256 + info_size + 4096;
        return right && to.begin().error == error::not_begun &&
               file.buffer.size() == 256 + info_size + 4096;
    });
}

TEST_CASE("nothing is written before begin") {
    CHECK_TWICE([](auto value) {
        room file;
        writer to{timed_session(), file.buffer};
        return to.write(comm_record{}, "a").error == error::not_begun &&
               to.write(mmap2_record{}, "").error == error::not_begun &&
               to.write(fork_record{}).error == error::not_begun &&
               to.write(exit_record{}).error == error::not_begun &&
               to.write(auxtrace_record{.size = value(std::uint64_t{8})}).error ==
                   error::not_begun &&
               to.append_trace({}).error == error::not_begun &&
               to.finished_round().error == error::not_begun &&
               to.finish().error == error::not_begun && file.buffer.size() == 0 &&
               to.data_size() == 0;
    });
}

// ------------------------------------------------------------------------------------ records

TEST_CASE("COMM") {
    CHECK_TWICE([](auto value) {
        return written_record(timed_session(), value(named), "name",
                              std::uint64_t{0x3333'4444'5555})
            .is(join(u32(3), u16(0x2000), u16(48), u32(0x1111), u32(0x2222),
                     bytes('n', 'a', 'm', 'e', 0, 0, 0, 0),
                     // the end that sample_type requires: pid, tid, time, id
                     u32(0x1111), u32(0x2222), u64(0x3333'4444'5555), u64(1)));
    });
    CHECK_TWICE([](auto value) {
        auto changed = value(named);
        changed.header.misc = 0;
        return written_record(session{}, changed, "name")
            .is(join(u32(3), u16(0), u16(40), u32(0x1111), u32(0x2222),
                     bytes('n', 'a', 'm', 'e', 0, 0, 0, 0), u32(0x1111), u32(0x2222), u64(1)));
    });
}

TEST_CASE("the name in a COMM is cut after 15 bytes") {
    CHECK_TWICE([](auto value) {
        auto const wanted = join(
            u32(3), u16(0), u16(48), u64(0),
            bytes('x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 'x', 0),
            u64(0), u64(1));
        bool right = true;
        for (unsigned const size : {15U, 16U, 4096U}) {
            auto const name = longest.first(value(size));
            right = right && written_record(session{}, comm_record{}, name).is(wanted);
        }
        return right;
    });
}

TEST_CASE("an empty name is a NUL") {
    CHECK_TWICE([](auto value) {
        return written_record(session{}, comm_record{.pid = value(1U)}, "")
            .is(join(u32(3), u16(0), u16(40), u32(1), u32(0), u64(0), u32(1), u32(0), u64(1)));
    });
}

TEST_CASE("FORK ends with the thread that forked, EXIT with the one that ends") {
    CHECK_TWICE([](auto value) {
        auto const child = value(0x11U);
        auto const middle = join(u16(0), u16(56), u32(0x11), u32(0x33), u32(0x22), u32(0x44),
                                 u64(0x5555'6666'7777));
        return written_record(timed_session(), fork_record{.pid = child,
                                                           .ppid = 0x33,
                                                           .tid = 0x22,
                                                           .ptid = 0x44,
                                                           .time = 0x5555'6666'7777})
                   .is(join(u32(7), middle, u32(0x33), u32(0x44), u64(0x5555'6666'7777), u64(1))) &&
               written_record(timed_session(), exit_record{.pid = child,
                                                           .ppid = 0x33,
                                                           .tid = 0x22,
                                                           .ptid = 0x44,
                                                           .time = 0x5555'6666'7777})
                   .is(join(u32(4), middle, u32(0x11), u32(0x22), u64(0x5555'6666'7777), u64(1)));
    });
    CHECK_TWICE([](auto value) {
        return written_record(session{},
                              fork_record{.pid = value(1U), .ppid = 3, .tid = 2, .ptid = 4})
            .is(join(u32(7), u16(0), u16(48), u32(1), u32(3), u32(2), u32(4), u64(0), u32(3),
                     u32(4), u64(1)));
    });
}

TEST_CASE("MMAP2") {
    CHECK_TWICE([](auto value) {
        return written_record(timed_session(), value(mapped), "/bin/cat", std::uint64_t{0x99})
            .is(join(u32(10), u16(2), u16(72 + 16 + 24), u32(0x11), u32(0x12),
                     u64(0x5555'4444'3000), u64(0x2000), u64(0x1000), u32(8), u32(1),
                     u64(0x1'2345'6789), u64(77), u32(5), u32(2),
                     bytes('/', 'b', 'i', 'n', '/', 'c', 'a', 't'), u64(0),  //
                     u32(0x11), u32(0x12), u64(0x99), u64(1)));
    });
    CHECK_TWICE([](auto value) {
        auto changed = value(mapped);
        changed.prot = prot_read | prot_write | prot_exec;
        changed.flags = 1;
        auto const got = written_record(session{}, changed, "//anon");
        byte_view const all = byte_view{got.all}.first(got.size);
        return got.right && got.size == 72 + 8 + 16 &&
               all.from(64).first(24) ==
                   byte_view{join(u32(7), u32(1), bytes('/', '/', 'a', 'n', 'o', 'n', 0, 0),
                                  u32(0x11), u32(0x12))};
    });
}

TEST_CASE("MMAP2 with a build id has its size and bytes in place of device and inode") {
    CHECK_TWICE([](auto value) {
        std::uint8_t id[21] = {};
        for (unsigned i = 0; i < sizeof id; ++i) {
            id[i] = static_cast<std::uint8_t>(value(i) + 0xA0);
        }
        auto const size_of = [&](std::size_t size, unsigned stored) {
            auto const got = written_record(
                timed_session(), with_build_id(mapped, byte_view{id}.first(size)), "/bin/cat");
            byte_view const all = byte_view{got.all}.first(got.size);
            bool right = got.right && all.from(4).first(2) == byte_view{u16(0x4002)} &&
                         all.from(40).first(4) == byte_view{u32(stored)};
            for (unsigned i = 0; i < 20; ++i) {
                right = right && all[44 + i] == (i < stored ? 0xA0 + i : 0);
            }
            return right && all.from(32).first(8) == byte_view{u64(0x1000)} &&
                   all.from(64).first(4) == byte_view{u32(5)};
        };
        return size_of(20, 20) && size_of(16, 16) && size_of(5, 5) && size_of(21, 20);
    });
}

TEST_CASE("a file name has at most 4095 bytes") {
    CHECK_TWICE([](auto value) {
        auto const fits = written_record(timed_session(), mmap2_record{},
                                         longest.first(value(std::size_t{4095})));
        auto const too_long = written(timed_session(), [&](auto& to) {
            return to.write(mmap2_record{}, longest.first(value(std::size_t{4096}))).error ==
                   error::name_too_long;
        });
        auto const huge = written(timed_session(), [&](auto& to) {
            return to.write(mmap2_record{}, {"", value(~std::size_t{0})}).error ==
                   error::name_too_long;
        });
        byte_view const all = byte_view{fits.all}.first(fits.size);
        return fits.right && fits.size == 72 + 4096 + 24 &&
               all.from(6).first(2) == byte_view{u16(72 + 4096 + 24)} && all[72 + 4094] == 'x' &&
               all[72 + 4095] == 0 && too_long.right && too_long.size == 0 && huge.right &&
               huge.size == 0;
    });
}

TEST_CASE("a NUL in a name is refused") {
    CHECK_TWICE([](auto value) {
        auto const got = written(timed_session(), [&](auto& to) {
            bool right = true;
            for (unsigned const size : {1U, 3U}) {
                text const name{"\0b\0", value(size)};
                right = right && to.write(comm_record{}, name).error == error::nul_in_name &&
                        to.write(mmap2_record{}, name).error == error::nul_in_name;
            }
            return right;
        });
        return got.right && got.size == 0;
    });
}

namespace {

/// A session with records of the kernel: threads, times, processors and ids.
constexpr auto opened_session() -> session {
    using is = sample_type;
    auto made = timed_session();
    made.attr.size = uint32_t{128};
    made.attr.config = uint64_t{0x402};
    made.attr.sample_type = is{}.with(is::TID{true}, is::TIME{true}, is::CPU{true},
                                      is::IDENTIFIER{true});
    made.attr.flags = attr_flags{}.with(attr_flags::sample_id_all{true},
                                        attr_flags::context_switch{true});
    return made;
}
/// A quadword of AUXTRACE_INFO.
constexpr auto info_word(session const& of, std::size_t number) -> uint64_t {
    room file;
    writer to{of, file.buffer};
    bool const begun{to.begin()};
    return begun ? load_le64(file.buffer.written().from(256 + 16 + 8 * number).data()) : 99;
}

}  // namespace

TEST_CASE(
    "records of an opened event are written whole, and those of the writer have its members") {
    CHECK_TWICE([](auto value) {
        auto const kernel = value(
            test::perf_record(14, 0, join(u32(5), u32(6), u64(1000), u64(3), u64(1))));
        auto const got = written(opened_session(), [&](auto& to) {
            return bool{to.write_record(kernel)} &&
                   bool{to.write(exit_record{.pid = 5, .tid = 6, .ptid = 6, .time = 9})} &&
                   to.write_record(byte_view{kernel}.first(32)).error == error::bad_record &&
                   to.write_record({}).error == error::bad_record &&
                   to.write_record(join(kernel, u64(1))).error == error::bad_record &&
                   to.write_record(
                         test::perf_record(14, 0, join(u32(5), u32(6), u64(1000), u64(3), u64(2))))
                           .error == error::bad_record &&
                   to.write_record(test::perf_record(70, 0, u64(1))).error == error::bad_record;
        });
        auto const exits = test::perf_record(4, 0,
                                             join(u32(5), u32(0), u32(6), u32(6), u64(9), u32(5),
                                                  u32(6), u64(9), u64(0xFFFF'FFFF), u64(1)));
        return got.is(join(kernel, exits));
    });
    CHECK_TWICE([](auto value) {  // no event was opened
        room file;
        writer to{timed_session(), file.buffer};
        bool const begun{to.begin()};
        auto const kernel = value(test::perf_record(14, 0, join(u32(5), u32(6), u64(1), u64(3))));
        return begun && to.write_record(kernel).error == error::bad_attr;
    });
}

TEST_CASE("the head has the attributes of an opened event, AUXTRACE_INFO how it was opened") {
    CHECK_TWICE([](auto value) {
        auto made = value(opened_session());
        auto const front = head(made, 0);
        bool const has_attr = load_le64(byte_view{front}.from(112 + 8).data()) == 0x402;
        bool const of_thread = info_word(made, 7) == 2 && info_word(made, 9) == 0;
        made.is_system_wide = made.is_per_cpu = true;
        bool const of_cpus = info_word(made, 7) == 3 && info_word(made, 9) == 1;
        made.attr.flags = attr_flags{}.with(attr_flags::sample_id_all{true});
        return has_attr && of_thread && of_cpus && info_word(made, 7) == 0;
    });
}

TEST_CASE("FINISHED_ROUND is a header") {
    CHECK_TWICE([](auto value) {
        return written(value(session{}), [](auto& to) { return bool{to.finished_round()}; })
            .is(join(u32(68), u16(0), u16(8)));
    });
}

// ------------------------------------------------------------------------------------ traces

TEST_CASE("an AUXTRACE is followed by the bytes and PADs up to a multiple of 8") {
    CHECK_TWICE([](auto value) {
        auto const got = written(timed_session(), [&](auto& to) {
            auto const trace = value(bytes(0x02, 0x82, 0x19, 0x55, 0x66));
            byte_view const all{trace};
            bool right{to.write(auxtrace_record{.size = 5,
                                                .offset = 0x1'0000'0010,
                                                .reference = 0x7766'5544'3322'1100,
                                                .idx = 3,
                                                .tid = 0x88})};
            right = right && to.append_trace(all.first(2)) && to.append_trace({}) &&
                    to.append_trace(all.from(2));
            return right && to.finish();
        });
        return got.is(join(u32(71), u16(0), u16(48), u64(8), u64(0x1'0000'0010),
                           u64(0x7766'5544'3322'1100), u32(3), u32(0x88), u32(0xFFFF'FFFF), u32(0),
                           bytes(0x02, 0x82, 0x19, 0x55, 0x66, 0, 0, 0)));
    });
}

TEST_CASE("a piece of a timed file has a reference: without one perf ends with SIGSEGV") {
    CHECK_TWICE([](auto value) {
        auto const refused = written(timed_session(), [&](auto& to) {
            return to.write(auxtrace_record{.size = value(std::uint64_t{8})}).error ==
                   error::no_reference;
        });
        auto const one = auxtrace_record{.reference = value(std::uint64_t{1})};
        auto const taken = written(timed_session(), [&](auto& to) { return bool{to.write(one)}; });
        auto const untimed = written(session{},
                                     [&](auto& to) { return bool{to.write(auxtrace_record{})}; });
        return refused.right && refused.size == 0 && taken.right && untimed.right;
    });
}

TEST_CASE("the next record writes the PADs, too") {
    CHECK_TWICE([](auto value) {
        auto const got = written(session{}, [&](auto& to) {
            return to.write(auxtrace_record{.size = 1, .cpu = value(2U)}) &&
                   to.append_trace(bytes(0x99)) &&
                   to.write(auxtrace_record{.size = 8, .offset = 8}) &&
                   to.append_trace(u64(0x1122)) && to.finished_round() && to.finish();
        });
        return got.is(join(u32(71), u16(0), u16(48), u64(8), u64(0), u64(0), u32(0), u32(0), u32(2),
                           u32(0), bytes(0x99, 0, 0, 0, 0, 0, 0, 0),  //
                           u32(71), u16(0), u16(48), u64(8), u64(8), u64(0), u32(0), u32(0),
                           u32(0xFFFF'FFFF), u32(0), u64(0x1122),  //
                           u32(68), u16(0), u16(8)));
    });
}

TEST_CASE("an empty trace has no bytes") {
    CHECK_TWICE([](auto value) {
        auto const got = written(session{}, [&](auto& to) {
            return to.write(auxtrace_record{.size = value(std::uint64_t{0})}) &&
                   to.append_trace({}) &&
                   to.append_trace(bytes(0)).error == error::too_many_bytes && to.finish();
        });
        return got.right && got.size == 48;
    });
}

TEST_CASE("no record is written before the trace is complete, and no byte after it") {
    CHECK_TWICE([](auto value) {
        auto const got = written(session{}, [&](auto& to) {
            bool right = to.append_trace(bytes(1)).error == error::too_many_bytes &&
                         to.write(auxtrace_record{.size = value(std::uint64_t{2})}) &&
                         to.append_trace(bytes(1));
            right = right && to.write(comm_record{}, "").error == error::trace_unfinished &&
                    to.write(auxtrace_record{}).error == error::trace_unfinished &&
                    to.finished_round().error == error::trace_unfinished &&
                    to.finish().error == error::trace_unfinished &&
                    to.append_trace(bytes(2, 3)).error == error::too_many_bytes;
            return right && to.append_trace(bytes(2)) &&
                   to.append_trace(bytes(3)).error == error::too_many_bytes && to.finish();
        });
        return got.right && got.size == 48 + 8 &&
               byte_view{got.all}.from(48).first(8) == byte_view{bytes(1, 2, 0, 0, 0, 0, 0, 0)};
    });
}

TEST_CASE("a trace that makes the file larger than 2^63 - 1 bytes is refused") {
    CHECK_TWICE([](auto value) {
        auto const got = written(session{}, [&](auto& to) {
            bool right = true;
            constexpr std::uint64_t limit = std::uint64_t{1} << 63;
            for (std::uint64_t const size :
                 {~std::uint64_t{0}, ~std::uint64_t{6}, ~std::uint64_t{7}, limit, limit - 1,
                  limit - 256 - info_size - 48 - 7}) {
                right = right &&
                        to.write(auxtrace_record{.size = value(size)}).error == error::too_large;
            }
            return right;
        });
        auto const most = written(session{}, [&](auto& to) {
            std::uint64_t const size = (std::uint64_t{1} << 63) - 256 - info_size - 48 - 8;
            return bool{to.write(auxtrace_record{.size = value(size)})};
        });
        return got.right && got.size == 0 && most.right && most.size == 48;
    });
}

TEST_CASE("PADs that are not written yet count as part of the file") {
    CHECK_TWICE([](auto value) {
        auto const size_of_second = [&](std::uint64_t pads) {
            return (std::uint64_t{1} << 63) - 256 - info_size - (48 + 1) - pads - 48 - 8;
        };
        auto const got = written(session{}, [&](auto& to) {
            return to.write(auxtrace_record{.size = value(std::uint64_t{1})}) &&
                   to.append_trace(bytes(1)) &&
                   to.write(auxtrace_record{.size = size_of_second(6)}).error == error::too_large &&
                   to.write(auxtrace_record{.size = size_of_second(7)});
        });
        return got.right && got.size == 48 + 8 + 48;
    });
}

TEST_CASE("a record that makes the file larger than 2^63 - 1 bytes is refused") {
    CHECK_TWICE([](auto value) {
        // The trace in one view: only a 64-bit program can have it.
        if (sizeof(std::size_t) < 8) { return value(true); }
        counting_sink file;
        writer to{session{}, file};
        std::uint64_t const room_left = value(std::uint64_t{8 + 7});
        std::uint64_t const size = (std::uint64_t{1} << 63) - 256 - info_size - 48 - 1 - room_left;
        std::uint8_t const first = 0;
        bool const right = to.begin() && to.write(auxtrace_record{.size = size}) &&
                           to.append_trace({&first, static_cast<std::size_t>(size)}) &&
                           to.write(exit_record{}).error == error::too_large;
        return right && to.finished_round() && to.finished_round().error == error::too_large &&
               file.size == to.data_size() + 256;
    });
}

// ------------------------------------------------------------------------------------ the sink

TEST_CASE("a record that the sink refuses can be repeated, and nothing of it was written") {
    CHECK_TWICE([](auto value) {
        small_room file;
        file.limit = value(std::size_t{256 + info_size - 1});
        writer to{timed_session(), file};
        bool right = to.begin().error == error::sink_refused && file.size == 0;
        ++file.limit;
        right = right && to.begin() && file.size == 256 + info_size;

        file.limit = file.size + 48 + 3 - 1;
        right = right && to.write(auxtrace_record{.size = 3, .reference = 1}) &&
                to.append_trace(bytes(1, 2, 3)).error == error::sink_refused &&
                file.size == 256 + info_size + 48;
        file.limit = file.size + 3 + 4;
        right = right && to.append_trace(bytes(1, 2, 3)) &&
                to.finish().error == error::sink_refused && file.size == file.limit - 4;
        // The PADs are written first, and only once.
        file.limit = file.size + 5 + 39;
        right = right && to.write(comm_record{}, "a").error == error::sink_refused &&
                file.size == 256 + info_size + 48 + 8;
        file.limit += 48;
        right = right && to.write(comm_record{}, "a") && to.finish() &&
                file.size == 256 + info_size + 48 + 8 + 48;
        return right && to.data_size() == file.size - 256;
    });
}

TEST_CASE("a record is one call of the sink") {
    CHECK_TWICE([](auto value) {
        small_room file;
        writer to{timed_session(), file};
        bool const right = to.begin() && to.write(comm_record{.pid = value(1U), .tid = 1}, "") &&
                           to.write(fork_record{}) && to.write(exit_record{}) &&
                           to.write(mmap2_record{}, "/bin/cat") && to.finished_round();
        return right && file.calls == 6;
    });
}
