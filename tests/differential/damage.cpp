// SPDX-License-Identifier: BSL-1.0

// Damages recordings of pt_record, and compares the instructions that ptspec's walker and libipt's
// instruction flow decoder report with the executed ones. See `--help`.

#include <differential/damage_figures.hpp>
#include <differential/damaged_copy.hpp>
#include <differential/recorded_directory.hpp>
#include <differential/segment_flow.hpp>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace {

using namespace differential::damage;
using ptspec::test::dice;

constexpr char const* usage = R"(usage: differential_damage [OPTION...] DIR

Damages the largest trace of the recording DIR in many ways, and decodes the damaged copies. What a
whole segment, from a PSB to the next, reports must be what the emulator executed. Of the other
segments, prints which share of the reported instructions executed, and which share of the executed
ones is reported.

  --count N       damaged copies, 1000 by default; each has 8 to 32 segments
  --seed S        another choice of places
  --more          also clears bytes, writes a packet before a PSB, repeats and swaps chunks; the
                  shares of the last two are not compared
  --write N FILE  only writes copy N, and what was whole in it

Exit status: 0 all whole segments are equal, and the shares not below those of libipt by more than
0.001; 1 otherwise; 2 wrong usage.
)";

struct command {
    std::string directory{};
    std::uint64_t count = 1000;
    std::uint64_t seed = 1;
    std::size_t kinds = usual_kinds;
    std::uint64_t only = 0;
    std::string file{};
};

class tester {
public:
    tester(std::vector<std::uint8_t> trace, decoder_settings const& settings,
           code_pages const& code, std::uint32_t thread)
        : trace_{std::move(trace)},
          all_{segments_of(ptspec::byte_view{trace_})},
          ours_{code, thread},
          theirs_{settings, code, thread} {
        if (all_.size() < 40) { throw failure{"fewer than 40 PSBs"}; }
    }

    /// True if ptspec and libipt report the same instructions for each segment of the undamaged
    /// trace.
    auto is_usable() -> bool {
        logs_to theirs{all_};
        ours_.read(trace_, truth_);
        bool const is_read = theirs_.read(trace_, theirs);
        bool good = is_read && truth_.gaps == 0;
        good = good && theirs.logs == truth_.logs;
        std::printf("%zu bytes, %zu segments; libipt: %s\n", trace_.size(), all_.size(),
                    good ? "the same instructions in each" : "OTHER INSTRUCTIONS");
        return good;
    }

    auto test(command const& what, std::uint64_t number) -> row {
        dice const by{what.seed * 0x1'0000'0000 + number};
        name_ = "seed " + std::to_string(what.seed) + ", copy " + std::to_string(number);

        auto const count = static_cast<std::size_t>(8 + by.roll(25));
        first_ = static_cast<std::size_t>(by.roll(all_.size() - count));
        last_ = first_ + count;
        auto const from = all_[first_].begin;
        auto const size = all_[last_].begin - from;
        ptspec::byte_view const window{trace_.data() + from, size + all_[last_].psb_plus};
        copy damaged{window, from};
        clean_.clear();
        read_ours(damaged.bytes(), clean_);
        check(has_truth(), "the walk of the undamaged part is another one");

        damaged.damage(kinds[number % what.kinds], size, by);
        whole_ = whole_segments(damaged, all_, first_, last_);
        if (what.only == number && !what.file.empty()) { write(damaged, what.file); }

        row made{.copies = 1};
        now_ = &made;
        read_ours(damaged.bytes(), ours_of_copy_);
        made.ours = compare(ours_of_copy_, damaged, true);
        made.ours.max_seconds = seconds_;
        check_resumptions();
        timed([&] {
            report_to to{theirs_of_copy_, most()};
            theirs_of_copy_.clear();
            check(theirs_.read(damaged.bytes(), to), "libipt refuses");
        });
        made.theirs = compare(theirs_of_copy_, damaged, false);
        made.theirs.max_seconds = seconds_;
        check(!ours_of_copy_.is_endless, "more than 8 times the executed instructions");
        made.failures = failures_;
        failures_ = 0;
        return made;
    }

private:
    std::vector<std::uint8_t> trace_;
    std::vector<segment> all_;
    walked_segments ours_;
    decoded_segments theirs_;
    logs_to truth_{all_};

    // State for one copy.
    std::string name_{};
    std::size_t first_ = 0;
    std::size_t last_ = 0;
    report clean_{};
    report ours_of_copy_{};
    report theirs_of_copy_{};
    std::vector<whole_segment> whole_{};
    row* now_ = nullptr;
    double seconds_ = 0;
    std::uint64_t failures_ = 0;

    void check(bool holds, std::string const& why) {
        if (holds) { return; }
        ++failures_;
        std::printf("%s: %s\n", name_.c_str(), why.c_str());
    }
    [[nodiscard]] auto most() const -> std::size_t { return 8 * clean_.ips.size() + 100'000; }

    template <class Act>
    void timed(Act const& act) {
        using clock = std::chrono::steady_clock;
        auto const start = clock::now();
        act();
        seconds_ = std::chrono::duration<double>(clock::now() - start).count();
    }
    void read_ours(std::vector<std::uint8_t> const& bytes, report& made) {
        bool const is_clean = &made == &clean_;
        made.clear();
        report_to to{made, is_clean ? ~std::size_t{0} : most()};
        timed([&] { ours_.read(bytes, to); });
    }

    // ------------------------------------------------------------------------------ the truth

    using ips = std::span<std::uint64_t const>;

    /// The executed instructions of a segment. Without `with_straight`, those after its last packet
    /// are not included.
    [[nodiscard]] auto executed(std::size_t number, bool with_straight) const -> ips {
        auto const& next = clean_.marks[number - first_ + 1];
        auto const begin = clean_.marks[number - first_].first;
        auto const end = with_straight ? next.first : next.straight;
        return ips{clean_.ips}.subspan(begin, end - begin);
    }
    [[nodiscard]] auto has_truth() const -> bool {
        if (clean_.marks.size() != last_ - first_ + 1) { return false; }
        for (auto i = first_; i < last_; ++i) {
            instruction_log log;
            for (auto const ip : executed(i, true)) { log.add(ip); }
            if (log != truth_.logs[i]) { return false; }
        }
        return true;
    }
    /// The executed instructions of the segments that have a byte in [begin, end), and of missing
    /// segments between them. Begins with the straight code after the undamaged segment before.
    [[nodiscard]] auto executed_in(copy const& damaged, whole_segment const* before,
                                   std::size_t begin, std::size_t end, std::size_t after) const
        -> std::vector<std::uint64_t> {
        std::vector<std::uint64_t> made;
        auto const append = [&](ips more) { made.insert(made.end(), more.begin(), more.end()); };
        if (before != nullptr && !before->is_continued) {
            auto const straight = executed(before->number, false).size();
            append(executed(before->number, true).subspan(straight));
        }
        std::size_t done = before == nullptr ? first_ : before->number + 1;  // before this one
        auto const append_missing = [&](std::size_t next) {
            for (; done < next; ++done) {
                if (!is_whole(done)) { append(executed(done, true)); }
            }
        };
        for (auto at = begin; at < end; ++at) {
            auto const from = damaged.origin(at);
            if (from == copy::changed || is_in(from, done)) { continue; }
            auto const next = std::upper_bound(
                all_.begin(), all_.end(), from,
                [](std::size_t place, segment const& one) { return place < one.begin; });
            auto const number = static_cast<std::size_t>(next - all_.begin()) - 1;
            append_missing(number);
            append(executed(number, true));
            done = number + 1;
        }
        append_missing(after);
        return made;
    }
    /// Segment `done - 1` has this byte.
    [[nodiscard]] auto is_in(std::size_t from, std::size_t done) const -> bool {
        return done > first_ && from >= all_[done - 1].begin && from < all_[done - 1].end;
    }
    [[nodiscard]] auto is_whole(std::size_t number) const -> bool {
        return std::any_of(whole_.begin(), whole_.end(),
                           [&](whole_segment const& one) { return one.number == number; });
    }

    // ------------------------------------------------------------------------------ comparison

    /// Compares the undamaged segments, and the instructions between them.
    auto compare(report const& got, copy const& damaged, bool is_ours) -> figures {
        figures made{.gaps = got.gaps};
        std::size_t done = 0;
        whole_segment const* before = nullptr;
        auto const take = [&](std::size_t bytes_end, std::size_t after, std::size_t end) {
            auto const bytes_begin = before == nullptr ? 0 : before->end;
            auto const want = executed_in(damaged, before, bytes_begin, bytes_end, after);
            auto const here = ips{got.ips}.subspan(done, end - done);
            made.reported += here.size();
            made.executed += want.size();
            made.common += common_instructions(here, want);
        };
        for (auto const& one : whole_) {
            auto const want = executed(one.number, one.is_continued);
            auto const in_here = [&](mark const& at) {
                return at.offset >= one.begin && at.offset < one.end;
            };
            auto const from = std::find_if(got.marks.begin(), got.marks.end(), in_here);
            auto const begin = from == got.marks.end() ? done : std::max(from->first, done);
            auto const next = std::find_if_not(from, got.marks.end(), in_here);
            auto const end = from == got.marks.end()   ? done
                             : next == got.marks.end() ? got.ips.size()
                                                       : std::max(next->first, begin);
            take(one.begin, one.number, begin);
            auto const here = ips{got.ips}.subspan(begin, end - begin);
            bool const is_equal = here.size() >= want.size() &&
                                  std::equal(want.begin(), want.end(), here.begin()) &&
                                  (!one.is_continued || here.size() == want.size());
            ++made.whole;
            made.equal += is_equal ? 1 : 0;
            if (is_ours && !is_equal) { complain(one, here, want); }
            done = is_equal ? begin + want.size() : end;
            before = &one;
        }
        auto const psb_of_last = damaged.size() - all_[last_].psb_plus;
        auto const last = std::find_if(got.marks.begin(), got.marks.end(),
                                       [&](mark const& at) { return at.offset >= psb_of_last; });
        auto const end = last == got.marks.end() ? got.ips.size() : last->first;
        take(psb_of_last, last_, std::max(end, done));
        return made;
    }
    void complain(whole_segment const& one, ips here, ips want) {
        auto const at = std::mismatch(here.begin(), here.end(), want.begin(), want.end());
        char text[200];
        (void)std::snprintf(
            text, sizeof text,
            "segment at %zX has %zu instructions, not %zu; number %td is %" PRIx64 ", not %" PRIx64,
            one.begin, here.size(), want.size(), at.first - here.begin(),
            at.first == here.end() ? 0 : *at.first, at.second == want.end() ? 0 : *at.second);
        check(false, text);
    }
    /// After a gap that ends at an IP, the walk resumes there.
    void check_resumptions() {
        std::unordered_set<std::uint64_t> const known(clean_.ips.begin(), clean_.ips.end());
        for (auto const& one : ours_of_copy_.resumed) {
            check(one.start == one.to, "a gap ends at another IP");
            ++now_->resumed;
            now_->occurred += known.contains(one.to) ? 1 : 0;
        }
    }
    void write(copy& damaged, std::string const& path) const {
        auto const& bytes = damaged.bytes();
        std::ofstream out{path, std::ios::binary};
        out.write(reinterpret_cast<char const*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
        std::printf("%s: segments %zu to %zu, from byte %zX\n", path.c_str(), first_, last_,
                    all_[first_].begin);
        for (auto const& one : whole_) {
            std::printf("  %zX to %zX is segment %zu%s\n", one.begin, one.end, one.number,
                        one.is_continued ? ", continued" : "");
        }
    }
};

auto run(command const& what) -> bool {
    recorded_directory const all{what.directory};
    std::uint64_t process = 0;
    recorded_thread chosen{};
    std::vector<std::uint8_t> trace;
    for (auto const one : all.processes()) {
        for (auto const& thread : all.threads(one, "")) {
            auto bytes = read_file(thread.trace);
            if (bytes.size() <= trace.size()) { continue; }
            trace = std::move(bytes);
            process = one;
            chosen = thread;
        }
    }
    code_pages const code{all.code(process)};
    if (code.has_versions()) { throw failure{what.directory + ": its code changes"}; }
    trace.resize(size_without_padding(trace));
    if (walk(trace, code, chosen.thread).log != read_log(chosen.log)) {
        throw failure{chosen.trace + ": not the instructions of the log"};
    }
    tester test{std::move(trace), all.settings(), code, chosen.thread};
    if (!test.is_usable()) { return false; }
    if (what.only != 0) { return test.test(what, what.only).failures == 0; }

    row rows[std::size(kinds)];
    for (std::uint64_t i = 1; i <= what.count; ++i) {
        rows[i % what.kinds].add(test.test(what, i));
    }
    print_head();
    row sum;
    bool good = true;
    for (std::size_t i = 0; i < what.kinds; ++i) {
        print(names[i], rows[i]);
        sum.add(rows[i]);
        if (i >= comparable_kinds) { continue; }
        good = good && rows[i].ours.precision() >= rows[i].theirs.precision() - 0.001 &&
               rows[i].ours.recall() >= rows[i].theirs.recall() - 0.001;
    }
    print("all", sum);
    std::printf("%s\n", good && sum.failures == 0 ? "passed" : "FAILED");
    return good && sum.failures == 0;
}

auto wrong_usage() -> int {
    std::fprintf(stderr, "%s", usage);
    return 2;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    command what;
    for (int i = 1; i < count; ++i) {
        std::string_view const argument = arguments[i];
        auto const number = parse_number(i + 1 < count ? arguments[i + 1] : "");
        if (argument == "--help") {
            std::printf("%s", usage);
            return 0;
        }
        if (argument == "--more") {
            what.kinds = std::size(kinds);
        } else if (argument == "--count" && number) {
            what.count = *number;
            ++i;
        } else if (argument == "--seed" && number) {
            what.seed = *number;
            ++i;
        } else if (argument == "--write" && number && i + 2 < count) {
            what.only = *number;
            what.file = arguments[i + 2];
            i += 2;
        } else if (argument.starts_with('-') || !what.directory.empty()) {
            return wrong_usage();
        } else {
            what.directory = argument;
        }
    }
    if (what.directory.empty()) { return wrong_usage(); }
    try {
        return run(what) ? 0 : 1;
    } catch (failure const& why) {
        std::printf("%s\n", why.what());
        return 1;
    }
}
