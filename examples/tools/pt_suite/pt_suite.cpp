// SPDX-License-Identifier: BSL-1.0

// pt_suite: holds a target against the rules of Intel PT. See `pt_suite --help`.

#include "core_types.hpp"

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/model_kind.hpp>
#include <ptspec/suite.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec;
using namespace pt_suite;

constexpr std::string_view usage = R"(usage: pt_suite [OPTION...] [model]
       pt_suite [OPTION...] cpu N|all
       pt_suite --observe [--as-preset NAME] [--as-kind ROW] [--defect NAME]
       pt_suite --list [--json]
       pt_suite --compare REPORT REPORT

Holds a logical processor with Intel PT against the rules of the catalogue: each check asks the
target about some rules. The target is the model of ptspec, or `cpu N`, a processor of this Linux,
or `cpu all`. A program of your own runs the same checks on another one:
include/ptspec/suite/README.md.

`cpu` is for test machines. It reads CPUID and the MSRs of Intel PT, and writes these MSRs through
/dev/cpu/N/msr, as root. It never sets TraceEn: what needs a trace is skipped. It refuses to start
while another program traces, and keeps perf from it. After each check, and after Ctrl-C, the MSRs
have their values again. If a check does not end, the next start restores them from the journal, and
skips that check. On `all`, a check whose outcome differs between processors of one core type is
`not ok`, with the outcomes. A report has raw addresses.

  --journal FILE       where `cpu` stores the check that runs and the MSRs before it; default
                       /var/lib/pt_suite.journal. It is removed at the end
  --as-preset NAME     the processor that is modelled; default Skylake-X
  --as-kind ROW        hold the target to the bytes of this kind of processor, too: manual,
                       broadwell, skylake, icelake or atom; options of the model may follow, such
                       as skylake,pads=0,psb_step=64
  --observe            print the row of the target by the bytes of its traces, for --as-kind,
                       instead of running checks, and the options that no trace shows
  --only NAME          run only this check; may be repeated
  --skip NAME          do not run this check; may be repeated
  --dangerous NAME     run this check, which may write outside the given pages if a rule is broken
  --runs N             run each check N times, 1 to 1000; default 16
  --defect NAME        give the model a defect, to see what a broken rule looks like: accepts_all,
                       refuses_all, reads_zero, stores_nothing, traces_nothing, never_stops,
                       frozen_pointers, no_interrupt, other_cpuid, wild_cpuid, keeps_trace_en,
                       no_time
  --expect FILE        waive broken rules: lines CHECK RULE REASON; # begins a comment. A waiver
                       whose check runs and does not break the rule is an error of its own
  --json               print JSON, one object a line: the report
  --list               print the checks: name, rules, output scheme, danger
  --compare            print where the outcomes of two reports differ
  -h, --help           print this text

TAP: `ok N - CHECK RULE`, with `# OBSERVED` what the target chooses where the rules leave it open,
or `# SKIP` what is missing; `not ok N - CHECK RULE #` what was expected and seen. `# UNSTEADY`:
repeated runs differ. `# ERROR`: the check failed, not a rule. `# DIFFERS`: see above.

Example:
  $ pt_suite --only ctl-topa --only topa-int --defect no_interrupt
  TAP version 14
  1..2
  ok 1 - ctl-topa REG-024
  not ok 2 - topa-int PRG-063 # bit 55 after TraceEn became 0, MSR 38EH: expected 1H, seen 0H
  # 1 holds, 1 broken, 0 observed, 0 unsteady, 0 skipped, 0 errors

Exit status: 0 no rule is broken, or all that are broken are waived; for --compare, no difference;
for --observe, the row has all bytes; 1 a rule is broken, an outcome is unsteady, a check failed, or
a waiver is not needed; for --compare, a difference; for --observe, no row has all bytes; 2 wrong
usage, a file that cannot be read, or output that cannot be written; 3 nothing could be asked: each
check was skipped, no trace was made, or a processor cannot be asked: no Intel PT, no right, no
device, or another program traces.
)";

// ------------------------------------------------------------------------------------ arguments

struct request {
    std::optional<std::string> preset;
    std::optional<engine::model_options> kind;
    std::vector<std::string> only;
    std::vector<std::string> skip;
    std::vector<std::string> dangerous;
    std::optional<std::string> waivers;
    unsigned runs = 16;
    bool has_runs = false;
    suite::defect wrong = suite::defect::none;
    std::optional<std::string> cpus;  ///< a number, or `all`; nothing: the model
    std::optional<std::string> journal_path;
    bool as_json = false;
    bool lists = false;
    bool observes = false;
};

auto is_check(std::string const& name) -> bool {
    bool found = false;
    suite::for_each_check([&]<class Check>(text) { found |= name == string_of(Check::name); });
    return found;
}
auto checked_name(std::string name) -> std::string {
    if (!is_check(name)) {
        throw tool::failure{"no check " + tool::quoted(name) + "; --list prints them"};
    }
    return name;
}
auto is_dangerous(std::string const& name) -> bool {
    bool found = false;
    suite::for_each_check([&]<class Check>(text) {
        found |= Check::need.is_dangerous && name == string_of(Check::name);
    });
    return found;
}
/// A check that --dangerous may name.
auto dangerous_name(std::string name) -> std::string {
    name = checked_name(std::move(name));
    if (!is_dangerous(name)) {
        throw tool::failure{"the check " + tool::quoted(name) +
                            " is not dangerous; --only runs it"};
    }
    return name;
}
auto has(std::vector<std::string> const& all, std::string const& name) -> bool {
    return std::find(all.begin(), all.end(), name) != all.end();
}

constexpr std::string_view defects[] = {
    "none",           "accepts_all",    "refuses_all",     "reads_zero",   "stores_nothing",
    "traces_nothing", "never_stops",    "frozen_pointers", "no_interrupt", "other_cpuid",
    "wild_cpuid",     "keeps_trace_en", "no_time",
};
static_assert(sizeof defects / sizeof defects[0] == suite::defect_count);

auto defect_of(std::string const& name) -> suite::defect {
    for (unsigned i = 1; i < suite::defect_count; ++i) {
        if (defects[i] == name) { return static_cast<suite::defect>(i); }
    }
    throw tool::failure{"no defect " + tool::quoted(name) + "; --help lists them"};
}
auto preset_of(std::string const& name) -> cpu::capabilities {
    auto const found = cpu::preset::find({name.data(), name.size()});
    if (!found) {
        throw tool::failure{"no processor " + tool::quoted(name) + "; what_if --help lists them"};
    }
    return found->value;
}
auto kind_of(std::string const& row) -> engine::model_options {
    auto const read = suite::read_row({row.data(), row.size()});
    if (read.is_valid) { return read.options; }
    std::string const wrong{read.wrong.data(), read.wrong.size()};
    if (read.wrong.data() == row.data()) {
        throw tool::failure{"no kind " + tool::quoted(wrong) + "; --help lists them"};
    }
    throw tool::failure{"no option of the model with a valid value: " + tool::quoted(wrong)};
}
auto number_of(std::string const& given) -> unsigned {
    unsigned number = 0;
    for (char const letter : given) {
        if (letter < '0' || letter > '9' || number > 1000) {
            number = 0;
            break;
        }
        number = number * 10 + static_cast<unsigned>(letter - '0');
    }
    if (number == 0 || number > 1000) {
        throw tool::failure{"the number of runs is 1 to 1000, not " + tool::quoted(given)};
    }
    return number;
}

// ------------------------------------------------------------------------------------ the list

auto name_of_output(suite::wanted_output output) -> std::string_view {
    switch (output) {
        case suite::wanted_output::none: return "none";
        case suite::wanted_output::any: return "any";
        case suite::wanted_output::single_range: return "single range";
        case suite::wanted_output::topa: return "ToPA";
        case suite::wanted_output::topa_of_many_entries: return "ToPA of many entries";
    }
    return {};
}

void print_list(bool as_json) {
    tool::output out;
    suite::for_each_check([&]<class Check>(text group) {
        auto const name = string_of(Check::name);
        std::string rules;
        for (rule const one : Check::rules) {
            rules += (rules.empty() ? "" : " ") + string_of(one);
        }
        std::string const output{name_of_output(Check::need.output)};
        std::string const danger = Check::need.is_dangerous ? "dangerous" : "";
        std::string line;
        if (as_json) {
            line = "{\"check\":\"" + name + "\",\"group\":\"" + string_of(group) +
                   "\",\"rules\":\"" + rules + "\",\"output\":\"" + output +
                   "\",\"dangerous\":" + (danger.empty() ? "false" : "true") + "}\n";
        } else {
            line = name + ": " + rules + "; output: " + output +
                   (danger.empty() ? "" : "; " + danger) + '\n';
        }
        out.write(line);
    });
    out.close();
}

// ------------------------------------------------------------------------------------ the run

class run {
public:
    explicit run(request const& asked) : asked_{asked} {
        if (asked.waivers) { waivers_ = read_waivers(*asked.waivers); }
        for (auto const& one : waivers_) { (void)checked_name(one.check); }
    }

    auto on_model() -> int {
        auto const preset = asked_.preset.value_or("Skylake-X");
        auto const modelled = preset_of(preset);
        auto const options = asked_.kind ? *asked_.kind : engine::options_of(modelled);
        constexpr std::uint32_t pages = 64;
        auto absent = suite::absence_policy::faults;
        suite::for_each_check([&]<class Check>(text) {
            auto const check = string_of(Check::name);
            if (!is_asked(check)) { return; }
            // Each check has a processor after a cold reset.
            std::vector<std::uint8_t> bytes(pages * suite::given_memory::page_bytes);
            suite::model_target target{modelled, options, bytes.data(), pages, asked_.wrong};
            absent = suite::policy_of(target);
            results_.push_back(ask<Check>(target, suite::capabilities_of(target), absent));
        });
        return print("model " + preset, absent);
    }

    auto on_processors() -> int {
        linux_files const files;
        auto const cpus = processors(files);
        require_access(files, cpus);
        perf_lock const locked{files, online_processors(files)};
        if (!locked.note().empty()) { tool::print_error(locked.note()); }
        journal kept{asked_.journal_path.value_or("/var/lib/pt_suite.journal")};
        auto recovered = recover(kept, files.boot_id(),
                                 [&](unsigned cpu) { return linux_processor{files, cpu}; });
        for (auto const& one : recovered.messages) { tool::print_error(one); }
        tool::print_error("for test machines: writes MSRs of processor " + list_of(cpus) +
                          "; the report has raw addresses; " + what_writes_do(files));
        auto absent = suite::absence_policy::faults;
        std::vector<processor_results> all;
        std::string name = "cpu " + list_of(cpus);
        {
            held_signals const held;
            for (auto const cpu : cpus) {
                if (held.is_pending() || !bail_.empty()) { break; }
                pinned const here{cpu};
                linux_processor device{files, cpu};
                if (all.empty()) { name += " (CPUID.01H:EAX " + hex(device.query(1, 0).eax) + ')'; }
                recovered.head.cpu = cpu;
                msr_target target{device, kept, recovered.head};
                auto const leaves = device.query(0, 0).eax;
                auto const type = leaves >= 0x1A ? device.query(0x1A, 0).eax : 0;
                all.push_back({cpu, core_type_of(type), {}});
                auto const policy = suite::policy_of(target);
                if (policy == suite::absence_policy::ignores) { absent = policy; }
                on_processor(target, policy, recovered.head, held, all.back());
            }
            bool const is_interrupted = held.is_pending();
            // What did not end is skipped until a run is complete.
            if (bail_.empty() && (!is_interrupted || recovered.head.ended_early.empty())) {
                kept.remove();
            }
            if (is_interrupted) {
                tool::print_error(
                    "interrupted: there is no report" +
                    std::string{bail_.empty() ? "; the MSRs are restored" : "; " + bail_});
            }
        }
        results_ = by_core_type(all);
        return print(name, absent);
    }

private:
    /// The processors that `cpu` names.
    [[nodiscard]] auto processors(linux_files const& files) const -> std::vector<unsigned> {
        auto const online = online_processors(files);
        if (online.empty()) { throw not_asked{"no list of processors in /sys: mount it"}; }
        if (asked_.cpus == "all") { return online; }
        auto const wanted = tool::parse_number(*asked_.cpus, 0xFFFF);
        if (!wanted || std::find(online.begin(), online.end(), *wanted) == online.end()) {
            throw tool::failure{"no processor " + tool::quoted(*asked_.cpus) +
                                " is online; there are " + list_of(online)};
        }
        return {static_cast<unsigned>(*wanted)};
    }
    template <class Check, class Target>
    auto ask(Target& target, cpu::capabilities const& caps, suite::absence_policy absent)
        -> result {
        auto const check = string_of(Check::name);
        auto const* const kind = asked_.kind ? &*asked_.kind : nullptr;
        bool const is_named = has(asked_.dangerous, check);
        return {check, Check::rules.ids[0],
                suite::run_check<Check>(target, caps,
                                        {.runs = asked_.runs,
                                         .absent = absent,
                                         .may_be_dangerous = is_named,
                                         .kind = kind})};
    }
    /// Runs the checks that need no trace.
    template <class Target>
    void on_processor(Target& target, suite::absence_policy absent, journal_entry const& head,
                      held_signals const& held, processor_results& to) {
        auto const caps = suite::capabilities_of(target);
        suite::for_each_check([&]<class Check>(text) {
            auto const check = string_of(Check::name);
            if (!is_asked(check) || !bail_.empty() || held.is_pending()) { return; }
            result found{check, Check::rules.ids[0], {.what = suite::outcome::skipped}};
            if (has(head.ended_early, check)) {
                found.more = "it did not end in an earlier run";
            } else if constexpr (Check::need.abilities.empty()) {
                found = ask<Check>(target, caps, absent);
                auto const ended = target.end_check();
                if (!ended.failure.empty()) {
                    found.found = {.what = suite::outcome::error};
                    found.more = ended.failure;
                }
                if (!ended.not_restored.empty()) {
                    bail_ = check + ": MSRs of processor " + std::to_string(to.cpu) +
                            " are not restored: " + ended.not_restored;
                }
            } else {
                auto const memory = target.memory();
                found.found.detail = suite::missing(Check::need, caps, {}, memory.pages);
            }
            to.results.push_back(std::move(found));
        });
    }
    [[nodiscard]] auto is_asked(std::string const& check) const -> bool {
        if (has(asked_.skip, check)) { return false; }
        return asked_.only.empty() || has(asked_.only, check) || has(asked_.dangerous, check);
    }
    /// True if a check ran and says whether its rules hold.
    [[nodiscard]] auto is_decided(std::string const& check) const -> bool {
        for (auto const& one : results_) {
            if (one.check != check) { continue; }
            auto const what = one.found.what;
            return one.differs || what == suite::outcome::holds || what == suite::outcome::broken ||
                   what == suite::outcome::observed;
        }
        return false;
    }
    auto print(std::string const& name, suite::absence_policy absent) -> int {
        tool::output out;
        if (asked_.as_json) {
            out.write(json_head(name, absent));
        } else {
            out.write(printed([&](auto to) {
                suite::print_tap_head(static_cast<unsigned>(results_.size()), to);
            }));
        }
        suite::outcome_counts counts{};
        unsigned number = 0;
        unsigned by_policy = 0;
        unsigned differing = 0;
        bool is_wrong = !bail_.empty();
        for (auto const& one : results_) {
            auto const what = one.found.what;
            differing += one.differs;
            if (!one.differs) { counts.add(what); }
            by_policy += one.found.detail == suite::by_policy;
            waiver* const waived = what == suite::outcome::broken ? waiver_for(waivers_, one)
                                                                  : nullptr;
            if (waived != nullptr) { waived->is_used = true; }
            is_wrong |= one.differs;
            is_wrong |= waived == nullptr &&
                        (what == suite::outcome::broken || what == suite::outcome::unsteady ||
                         what == suite::outcome::error);
            out.write(asked_.as_json ? json_line(one) : tap_line(one, ++number, waived));
        }
        unsigned not_asked = 0;
        for (auto const& one : waivers_) {
            if (one.is_used) { continue; }
            if (!is_decided(one.check)) {
                ++not_asked;
                continue;
            }
            is_wrong = true;
            tool::print_error("a waiver is not needed: " + one.check + ' ' + one.id);
        }
        if (not_asked != 0) {
            tool::print_error("waivers whose check did not run: " + std::to_string(not_asked));
        }
        if (!asked_.as_json) {
            out.write(printed([&](auto to) {
                if (absent == suite::absence_policy::ignores) {
                    suite::print_policy(by_policy, to);
                }
                suite::print_tap_counts(counts, to);
            }));
            out.write(differing == 0 ? "\n" : ", " + std::to_string(differing) + " differ\n");
            if (!bail_.empty()) { out.write("Bail out! " + bail_ + '\n'); }
        }
        if (!bail_.empty()) { tool::print_error(bail_); }
        out.close();
        if (is_wrong) { return 1; }
        return counts[suite::outcome::skipped] == results_.size() ? 3 : 0;
    }

    request const& asked_;
    std::vector<waiver> waivers_;
    std::vector<result> results_{};
    std::string bail_{};  ///< why the run ended early
};

/// Prints the row of the model by its traces.
auto observe(request const& asked) -> int {
    auto const modelled = preset_of(asked.preset.value_or("Skylake-X"));
    constexpr std::uint32_t pages = 8;
    std::vector<std::uint8_t> bytes(pages * suite::given_memory::page_bytes);
    suite::model_target target{modelled, asked.kind.value_or(engine::options_of(modelled)),
                               bytes.data(), pages, asked.wrong};
    auto const found = suite::observe_kind(target, suite::capabilities_of(target));
    tool::output out;
    out.write(printed([&](auto to) { suite::print_observed(found, to); }));
    out.close();
    if (found.traces == 0) { return 3; }
    return found.is_whole() ? 0 : 1;
}

auto compare(tool::command_line& line) -> int {
    std::vector<std::string> paths;
    while (line.next()) {
        if (!line.is_operand()) { line.refuse(); }
        paths.push_back(line.argument());
    }
    if (paths.size() != 2) { throw tool::failure{"--compare takes two reports"}; }
    auto const lines = differences(paths[0], paths[1]);
    tool::output out;
    out.write(lines);
    out.close();
    return lines.empty() ? 0 : 1;
}

/// Refuses an option of the other target.
void require_target_of_options(request const& asked) {
    if (asked.cpus && (asked.preset || asked.wrong != suite::defect::none)) {
        throw tool::failure{"--as-preset and --defect are for the target model"};
    }
    if (!asked.cpus && asked.journal_path) {
        throw tool::failure{"--journal is for the target cpu"};
    }
}

/// Refuses an option with which --observe does nothing.
void require_options_of_observing(request const& asked) {
    if (asked.cpus) {
        throw tool::failure{"--observe is for the target model: on a processor nothing is traced"};
    }
    if (asked.as_json || asked.has_runs || asked.waivers || !asked.only.empty() ||
        !asked.skip.empty() || !asked.dangerous.empty()) {
        throw tool::failure{"--observe runs no checks: it takes --as-preset, --as-kind, --defect"};
    }
}

auto run_tool(tool::command_line& line) -> int {
    request asked;
    bool has_target = false;
    while (line.next()) {
        if (line.is_help()) {
            tool::print(usage);
            return 0;
        }
        if (line.is("--compare")) { return compare(line); }
        if (line.is("--as-preset")) {
            asked.preset = line.value();
            (void)preset_of(*asked.preset);
        } else if (line.is("--as-kind")) {
            asked.kind = kind_of(line.value());
        } else if (line.is("--only")) {
            asked.only.push_back(checked_name(line.value()));
        } else if (line.is("--skip")) {
            asked.skip.push_back(checked_name(line.value()));
        } else if (line.is("--dangerous")) {
            asked.dangerous.push_back(dangerous_name(line.value()));
        } else if (line.is("--runs")) {
            asked.runs = number_of(line.value());
            asked.has_runs = true;
        } else if (line.is("--defect")) {
            asked.wrong = defect_of(line.value());
        } else if (line.is("--expect")) {
            asked.waivers = line.value();
        } else if (line.is("--journal")) {
            asked.journal_path = line.value();
        } else if (line.is("--json")) {
            asked.as_json = true;
        } else if (line.is("--observe")) {
            asked.observes = true;
        } else if (line.is("--list")) {
            asked.lists = true;
        } else if (line.is_operand() && !has_target) {
            has_target = true;
            if (line.argument() == "cpu") {
                if (!line.next() || !line.is_operand()) {
                    throw tool::failure{"cpu needs the number of a processor, or all"};
                }
                asked.cpus = line.argument();
            } else if (line.argument() != "model") {
                throw tool::failure{"no target " + tool::quoted(line.argument()) +
                                    "; there are model, and cpu N"};
            }
        } else {
            line.refuse();
        }
    }
    if (asked.lists) {
        print_list(asked.as_json);
        return 0;
    }
    require_target_of_options(asked);
    if (asked.observes) {
        require_options_of_observing(asked);
        return observe(asked);
    }
    for (auto const& one : asked.only) {
        if (is_dangerous(one) && !has(asked.dangerous, one)) {
            tool::print_error(one + " is dangerous; it runs with --dangerous " + one);
        }
    }
    if (!asked.cpus) { return run{asked}.on_model(); }
    try {
        return run{asked}.on_processors();
    } catch (not_asked const& why) {
        tool::print_error(why.what());
        return 3;
    }
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("pt_suite", count, arguments, run_tool);
}
