// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <differential/flow.hpp>
#include <differential/recording.hpp>
#include <support/scratch_folder.hpp>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Recordings of programs without an emulator, to test their check.
namespace differential::recording::samples {

namespace engine = ptspec::engine;
namespace action = engine::action;
namespace machine_code = ptspec::test::machine_code;
namespace programs_of_test = ptspec::test::programs;
using bytes = std::vector<std::uint8_t>;

/// The files of a recording.
using recording = std::map<std::string, bytes>;

inline auto bytes_of(std::string_view text) -> bytes { return {text.begin(), text.end()}; }

inline auto log_of(instruction_log const& log) -> bytes {
    char text[80];
    (void)std::snprintf(text, sizeof text, "instructions %" PRIu64 " hash %016" PRIx64 "\n",
                        log.count(), log.hash());
    return bytes_of(text);
}
inline void add_thread(recording& to, std::uint64_t process, std::uint64_t thread, bytes trace,
                       instruction_log const& log) {
    auto const name = std::to_string(process) + "." + std::to_string(thread);
    to[name + ".pt"] = std::move(trace);
    to[name + ".log"] = log_of(log);
}
inline void add_code(recording& to, std::uint64_t process,
                     std::vector<code_record> const& journal) {
    auto& file = to[std::to_string(process) + ".code"];
    for (auto const& record : journal) { append(file, record); }
}
/// The signature of a processor of this kind: libipt works around its errata.
inline auto cpu_of(engine::model_kind which) -> std::string {
    constexpr unsigned models[] = {0, 0x3D, 0x5E, 0x7E, 0x7A};
    auto const model = models[static_cast<unsigned>(which)];
    if (model == 0) { return {}; }
    return "cpu_family=6\ncpu_model=" + std::to_string(model) + "\ncpu_stepping=3\n";
}
inline void add_settings(recording& to, engine::model_kind_info const& of) {
    to["settings"] = bytes_of("kind=" + std::string{of.name.data(), of.name.size()} +
                              "\nmtc_freq=3\nratio_numerator=2\nratio_denominator=1\n"
                              "nominal=24\nret_compression=1\n" +
                              cpu_of(of.which));
}

inline void write(recording const& made, std::string const& path) {
    for (auto const& [name, content] : made) {
        std::ofstream file{path + "/" + name, std::ios::binary};
        file.write(reinterpret_cast<char const*>(content.data()),
                   static_cast<std::streamsize>(content.size()));
    }
}

/// The code of a random program, in overlapping records.
inline auto journal_of(machine_code::code const& program, std::uint32_t thread,
                       ptspec::test::dice& from) -> std::vector<code_record> {
    using machine_code::code;
    std::vector<code_record> made;
    for (auto const base : code::bases) {
        bytes whole(code::functions * code::page);
        (void)program.read(base, whole.data(), whole.size());
        for (std::size_t at = 0; at < whole.size();) {
            auto const left = whole.size() - at;
            auto const size = std::min<std::size_t>(left, 1 + from.roll(200));
            auto const first = whole.begin() + static_cast<std::ptrdiff_t>(at);
            made.push_back(
                {base + at, thread, {}, {first, first + static_cast<std::ptrdiff_t>(size)}});
            at += std::min<std::size_t>(left, 1 + from.roll(size));
        }
    }
    return made;
}

/// Random programs that are traced completely, each in its own process.
inline auto programs(engine::model_kind_info const& of, unsigned count) -> recording {
    recording made;
    add_settings(made, of);
    for (std::uint32_t i = 1; i <= count; ++i) {
        ptspec::test::dice from{i};
        auto plan = machine_code::random_plan(from, of);
        plan.with.os = true;
        plan.with.user = true;
        plan.with.cr3_filter = false;
        plan.with.mtc_freq = plan.with.mtc_en ? 3 : 0;
        plan.with.range_kind[0] = 0;
        plan.with.range_kind[1] = 0;
        plan.overflows = false;
        plan.how.drained_at_once = ~std::size_t{0};
        plan.how.overflow_ends_at = 0;
        machine_code::code const program{from};
        machine_code::machine one{plan, program, from};
        one.run(3000);
        if (!one.succeeded() || one.executed().size() != 1) { continue; }
        instruction_log log;
        for (auto const ip : flow::as_libipt_reads(one.executed()[0]).ips) {
            std::uint8_t code[15] = {};
            auto const size = program.read(ip, code, sizeof code);
            (void)log.add(ip, code, size);
        }
        add_thread(made, i, i, one.trace(), log);
        add_code(made, i, journal_of(program, i, from));
    }
    return made;
}

/// A thread that calls a routine in a loop, and rewrites the routine before many of the calls.
class rewriter {
public:
    rewriter(engine::model_kind_info const& of, std::uint32_t thread, std::uint64_t seed)
        : of_{of}, numbers_{seed} {
        start(thread);
    }
    void run(unsigned iterations) {
        for (unsigned i = 0; i < iterations; ++i) {
            call(direct_call, [&] { on(action::direct_call{indirect_call, routine}); });
            call(indirect_call, [&] { on(action::indirect_call{jump, routine}); });
            step(jump, action::conditional{direct_call, true});
        }
    }
    /// The child of a fork: the same state, with a new trace.
    [[nodiscard]] auto fork(std::uint32_t thread) const -> rewriter {
        auto child = *this;
        child.start(thread);
        child.journal_.clear();
        return child;
    }
    void add_record(code_record record) { journal_.push_back(std::move(record)); }

    /// Ends the trace, and adds it to a recording.
    void finish(recording& to, std::uint32_t process) {
        namespace reg = ptspec::reg;
        (void)unit_.wrmsr({.index = reg::ia32_rtit_ctl::address,
                           .value = 0,
                           .at = direct_call,
                           .next = direct_call + 2},
                          memory_);
        add_thread(to, process, thread_, memory_.stream, log_);
        add_code(to, process, journal_);
    }

private:
    static constexpr std::uint64_t direct_call = 0x40'0000;
    static constexpr std::uint64_t indirect_call = direct_call + 5;
    static constexpr std::uint64_t jump = direct_call + 7;
    static constexpr std::uint64_t routine = 0x40'1FF8;  // crosses a page

    engine::model_kind_info of_;
    std::mt19937_64 numbers_;
    std::uint32_t thread_ = 0;
    machine_code::recorder memory_{};
    engine::trace_unit<> unit_{ptspec::cpu::preset::P_FUT};
    std::vector<code_record> journal_{};
    std::vector<bytes> body_{{0xC3}};
    instruction_log log_{};

    void start(std::uint32_t thread) {
        namespace reg = ptspec::reg;
        thread_ = thread;
        ptspec::access::msr_state now;
        now.output.base = {0x100'0000};
        now.output.mask_ptrs = {0xFF'FFFF};
        auto how = of_.options;
        how.on_ret_mismatch = ptspec::trace::ret_mismatch::clear;
        memory_ = {};
        log_ = {};
        unit_ = engine::trace_unit<>{
            ptspec::cpu::preset::P_FUT, now, {.cr3 = 0x1000}, direct_call, how};
        programs_of_test::setting with{};
        with.os = true;
        with.user = true;
        with.branch_en = true;
        (void)unit_.wrmsr({.index = reg::ia32_rtit_ctl::address,
                           .value = with.word(),
                           .at = direct_call - 2,
                           .next = direct_call},
                          memory_);
        if (!journal_.empty()) { return; }
        constexpr auto displacement = static_cast<std::uint8_t>((routine - indirect_call) & 0xFF);
        record(direct_call,
               {0xE8, displacement, (routine - indirect_call) >> 8, 0, 0, 0xFF, 0xD0, 0x75, 0xF7});
        record(routine, {0xC3});
    }
    template <class Event>
    void on(Event const& e) {
        (void)unit_.on(e, memory_);
    }
    template <class Event>
    void step(std::uint64_t ip, Event const& e) {
        log_.add(ip);
        on(e);
    }
    void record(std::uint64_t address, bytes code) {
        auto const offset = unit_.total().stored + unit_.buffered().size();
        journal_.push_back(
            {address, thread_, {offset, unit_.state().writer.tnt.count}, std::move(code)});
    }
    void rewrite() {
        static bytes const some[] = {{0x90},       {0x0F, 0x1F, 0x40, 0x00}, {0x75, 0x00},
                                     {0xF3, 0xA4}, {0x48, 0x89, 0xD8},       {0xEB, 0x00}};
        body_.clear();
        for (auto count = numbers_() % 9; count != 0; --count) {
            body_.push_back(some[numbers_() % std::size(some)]);
        }
        body_.push_back({0xC3});
        bytes all;
        for (auto const& one : body_) { all.insert(all.end(), one.begin(), one.end()); }
        record(routine, all);
    }
    template <class Call>
    void call(std::uint64_t at, Call const& enter) {
        if (numbers_() % 3 != 0) { rewrite(); }
        log_.add(at);
        enter();
        auto ip = routine;
        for (auto const& one : body_) {
            auto const next = ip + one.size();
            switch (one[0]) {
                case 0x75: step(ip, action::conditional{next, numbers_() % 2 != 0}); break;
                case 0xEB: step(ip, action::direct_jump{next}); break;
                case 0xC3:
                    step(ip, action::near_return{at == direct_call ? indirect_call : jump});
                    break;
                default: step(ip, action::sequential{next});
            }
            ip = next;
        }
    }
};

inline auto rewritten_code(engine::model_kind_info const& of, unsigned iterations) -> recording {
    recording made;
    add_settings(made, of);
    rewriter one{of, 10, 1};
    one.run(iterations);
    one.finish(made, 10);
    return made;
}

/// A process that forks: parent and child rewrite the same routine.
inline auto forked(engine::model_kind_info const& of) -> recording {
    recording made;
    add_settings(made, of);
    rewriter parent{of, 10, 1};
    parent.run(100);
    auto child = parent.fork(20);
    parent.add_record({20, 10, {}, {}});
    parent.run(101);
    child.run(100);
    parent.finish(made, 10);
    child.finish(made, 20);
    made["10.events"] = bytes_of("0.1 start 10\n0.2 fork 10 20 20\n0.3 exit 10 0\n");
    return made;
}

using named = std::vector<std::pair<char const*, recording>>;

/// Recordings that the check must refuse.
inline auto damaged() -> named {
    auto const good = rewritten_code(engine::model_kinds[0], 400);
    named all;
    auto const change = [&](char const* what, auto const& act) {
        all.emplace_back(what, good);
        act(all.back().second);
    };
    auto const put = [&](char const* what, std::string const& file, std::string_view text) {
        change(what, [&](recording& it) { it[file] = bytes_of(text); });
    };
    auto const edit = [&](char const* what, auto const& act) {
        change(what, [&](recording& it) {
            auto journal = pt_record::read_journal(ptspec::byte_view{it["10.code"]}).all;
            act(journal);
            it["10.code"].clear();
            add_code(it, 10, journal);
        });
    };
    change("another hash", [](recording& it) { it["10.10.log"].end()[-2] ^= 1; });
    change("another count", [](recording& it) { it["10.10.log"][13] ^= 1; });
    for (auto const* file : {"10.10.log", "10.10.pt", "10.code", "settings"}) {
        change("a missing file", [&](recording& it) { it.erase(file); });
    }
    put("an empty log", "10.10.log", "");
    put("a malformed log", "10.10.log", "instructions many hash few");
    put("an empty trace", "10.10.pt", "");
    put("an empty journal", "10.code", "");
    put("malformed settings", "settings", "kind\n");
    put("an unknown kind", "settings", "kind=fast\n");
    put("a number out of range", "settings", "mtc_freq=16\n");
    put("a malformed event", "10.events", "1 fork 10 x\n");
    put("a malformed name", "10.x.pt", "");
    put("a process without code", "11.11.pt", "");
    change("half a journal", [](recording& it) { it["10.code"].resize(it["10.code"].size() / 2); });
    change("half a trace", [](recording& it) { it["10.10.pt"].resize(it["10.10.pt"].size() / 2); });
    change("other bytes in the trace", [](recording& it) {
        auto& trace = it["10.10.pt"];
        std::fill_n(trace.begin() + static_cast<std::ptrdiff_t>(trace.size() / 2), 8, 0xFF);
    });
    change("random journal", [](recording& it) {
        std::mt19937_64 numbers{1};
        for (auto& byte : it["10.code"]) { byte = static_cast<std::uint8_t>(numbers()); }
    });
    change("random trace", [](recording& it) {
        std::mt19937_64 numbers{1};
        for (auto& byte : it["10.10.pt"]) { byte = static_cast<std::uint8_t>(numbers()); }
    });
    edit("another instruction", [](auto& journal) { journal[0].bytes[7] = 0xEB; });
    edit("one version is wrong", [](auto& journal) { journal[300].bytes = {0x90, 0xC3}; });
    edit("versions without moments", [](auto& journal) {
        for (auto& record : journal) { record.when = {}; }
    });
    edit("one version is too late", [](auto& journal) { journal[200].when = journal[201].when; });
    return all;
}

/// Unusual recordings that are right.
inline auto odd() -> named {
    auto const good = rewritten_code(engine::model_kinds[0], 400);
    named all;
    all.emplace_back("PADs after the trace", good);
    all.back().second["10.10.pt"].resize(good.at("10.10.pt").size() + 100);
    all.emplace_back("an incomplete record", good);
    auto& journal = all.back().second["10.code"];
    append(journal, {0x1000, 10, {1, 0}, bytes(64)});
    journal.resize(journal.size() - 9);
    all.emplace_back("unknown settings", good);
    all.back().second["settings"] = bytes_of("later=x\n\nkind=manual\n");
    all.emplace_back("an empty trace", good);
    add_thread(all.back().second, 10, 11, {}, {});
    return all;
}

}  // namespace differential::recording::samples
