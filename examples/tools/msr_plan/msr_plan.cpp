// SPDX-License-Identifier: BSL-1.0

// msr_plan: prints the MSR accesses of a driver procedure. See `msr_plan --help`.

#include "rows.hpp"

#include <ptspec/config/check_config.hpp>
#include <ptspec/driver/switch_context.hpp>
#include <ptspec/driver/detect.hpp>
#include <ptspec/driver/pause.hpp>
#include <ptspec/print/word.hpp>
#include <ptspec/reg/list.hpp>

namespace {

using namespace msr_plan;

constexpr std::string_view usage =
    R"(usage: msr_plan [--cpu NAME] [--run] [--bare] PROCEDURE [TRACE] [BUFFER]
       msr_plan --setup TEXT --operation TEXT

Prints the MSR accesses that a procedure of ptspec's driver/ makes, one a line and in order:
`WRMSR(index,value)`, `RDMSR(index)`, `[action]`. All numbers are hexadecimal.

  --cpu NAME                the processor, such as Skylake-X; the default is P-FUT
  --run                     run it on the modelled trace unit: also what each RDMSR returned, and
                            `->#GP` where an access faulted
  --bare                    leave out the comments in parentheses
  --setup, --operation      a row as in tests/spec/notation.md, section 4: print what its column
                            `expected` holds, on one line
  -h, --help                print this text

Procedures: detect enable disable flush pause resume save restore switch restart recover pmi

TRACE is one argument: words separated by blanks or commas, among them os or user. The default is
"os user tsc".
  os user branches nobranches noretcomp notnt tsc ptw fup_on_ptw pwr_evt event inject
  mtc[=N] cyc[=N] psb=N     N is the encoding, in decimal; psb=8K is a length
  cr3=X filter=A-B stop=A-B address ranges include both ends

BUFFER is one of these; the default is ring=16x64K.
  ring=NxSIZE               N regions that are read while they are filled
  circular=NxSIZE stop=NxSIZE interrupt=NxSIZE
  range=SIZE fabric

What the processor refuses is replaced with the nearest that it has, and a comment says so.

Example:
  $ msr_plan --cpu Skylake-X --bare enable "user branches tsc mtc=3" ring=16x64K
  WRMSR(571,0)
  WRMSR(560,10000000)
  WRMSR(561,7F)
  WRMSR(570,E709)
  $ msr_plan --setup "R0,R1 16 KB, R1 STOP, tracing" --operation "fill all; Stopped; read out"
  stored=8000; lost=0; PMI=0; data=[20000000,20008000); Stopped=1; data=[0,8000)

Exit status: 0 success; 1 the processor cannot trace; 2 wrong usage.
)";

/// The name of an MSR, and with `fields` the fields of its value.
template <class Word>
auto comment_of(std::string const& name, std::uint64_t value, bool with_fields) -> std::string {
    std::string fields;
    if (with_fields) {
        print::word(Word{value}, [&](text piece) { fields += string_of(piece); });
    }
    return " (" + name + (fields.empty() ? "" : ": " + fields) + ")";
}

auto comment_of(simulate::logged_access const& one, bool with_fields) -> std::string {
    std::string made;
    using range = reg::ia32_rtit_addr;
    for (unsigned n = 0; n < range::count; ++n) {
        std::string const name = "IA32_RTIT_ADDR" + std::to_string(n);
        for (auto const end : {reg::range_end::a, reg::range_end::b}) {
            if (one.index != range::address(n, end)) { continue; }
            return " (" + name + (end == reg::range_end::a ? "_A)" : "_B)");
        }
    }
    auto const look = [&]<class Word>() {
        if constexpr (requires { std::uint32_t{Word::address}; }) {
            if (!made.empty() || one.index != Word::address) { return; }
            auto name = string_of(name_of<Word>());
            for (char& letter : name) {
                letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 32) : letter;
            }
            made = comment_of<Word>(name, one.value, with_fields);
        }
    };
    [&]<class... Words>(type_list<Words...>) {
        (look.template operator()<Words>(), ...);
    }(reg::all{});
    return made;
}

struct wish {
    cpu::capabilities caps{};
    driver::plan_request request{};
    msr_plan::buffer to{};
    access::msr_state plan{};
    bool runs = false;
    bool bare = false;
};

template <class Port>
void run_procedure(std::string const& name, Port& to, wish const& with) {
    auto const ctl = with.plan.ctl;
    if (name == "enable") {
        (void)driver::enable(to, with.plan);
    } else if (name == "disable") {
        (void)driver::disable(to);
    } else if (name == "flush") {
        (void)driver::flush(to, ctl);
    } else if (name == "pause") {
        (void)driver::pause(to, ctl);
    } else if (name == "resume") {
        (void)driver::resume(to, ctl);
    } else if (name == "save") {
        (void)driver::save(to);
    } else if (name == "restore") {
        (void)driver::restore(to, with.plan);
    } else if (name == "switch") {
        auto const saved = driver::save(to);
        to.note("switch");
        (void)driver::restore(to, saved.state);
    } else if (name == "restart") {
        (void)driver::restart(to, with.plan);
    } else if (name == "recover") {
        (void)driver::recover(to, ctl);
    } else if (name == "pmi") {
        (void)driver::on_topa_pmi(
            to,
            [&](driver::stopped_trace const&) {
                to.note("drain");
                return driver::pmi_decision{};
            },
            [&] { to.note("unmask LVT"); });
    } else {
        throw tool::failure{tool::quoted(name) + ": no such procedure; --help lists them"};
    }
}

/// True for a procedure that begins while tracing runs.
auto needs_trace(std::string const& name) -> bool {
    return name != "enable" && name != "restore" && name != "resume";
}

template <class Port>
auto list_of(Port const& log, wish const& with) -> std::string {
    std::string text;
    for (auto const& one : log) {
        using kind = simulate::logged_access::kind;
        bool const is_write = one.what == kind::write;
        bool const is_access = is_write || one.what == kind::read;
        text += item_of(one, with.runs);
        if (is_access && !with.bare) { text += comment_of(one, is_write || with.runs); }
        text += '\n';
    }
    return text;
}

auto procedure(std::string const& name, wish const& with) -> std::string {
    if (name == "detect") {
        sparse_memory memory;
        simulate::no_tap tap;
        model cpu{with.caps, memory, tap, {}, 0x1000, as_manual};
        simulate::recording_port<model, 64> to{cpu};
        (void)driver::detect(cpu, to);
        return list_of(to, with);
    }
    if (!with.runs) {
        auto state = with.plan;
        if (!needs_trace(name)) {
            state = {};
            if (name == "resume") { state = with.plan; }
            state.ctl = state.ctl.with(reg::ia32_rtit_ctl::TraceEn{false});
        }
        if (name == "pmi") { state.perf_global_status = {std::uint64_t{1} << 55}; }
        plain_msrs msrs{with.caps, state};
        simulate::recording_port<plain_msrs, 128> to{msrs};
        run_procedure(name, to, with);
        return list_of(to, with);
    }
    sparse_memory memory;
    memory.put(with.to);
    simulate::no_tap tap;
    model cpu{with.caps, memory, tap, {}, 0x1000, as_manual};
    if (name != "enable" && name != "restore") {
        (void)driver::enable(cpu, with.plan);
        for (std::uint64_t i = 0; i < 100; ++i) {
            (void)cpu.on(engine::action::indirect_jump{0x1000 + 0x1111 * i});
        }
    }
    if (name == "resume") { (void)driver::pause(cpu, with.plan.ctl); }
    if (name == "pmi") {
        (void)cpu.write(reg::ia32_perf_global_status_set::address, std::uint64_t{1} << 55);
    }
    simulate::recording_port<model, 128> to{cpu};
    run_procedure(name, to, with);
    return list_of(to, with);
}

/// What the processor refuses, as comments.
auto refusals_of(driver::plan_result const& planned) -> std::string {
    std::string text;
    auto const say = [&](std::string const& what) { text += "(" + what + ")\n"; };
    auto const id = [](rule which) { return string_of(rule_id{which}.view()); };
    for (auto const& one : planned.config) {
        say(string_of(config::info_of(one.member).name) + " is refused, " + id(one.broken) + ": " +
            string_of(describe(one.broken)));
    }
    if (planned.broken != rule::none) { say("the output MSRs are refused, " + id(planned.broken)); }
    using change = driver::plan_change;
    if (planned.changes.has(change::range_clamped)) {
        say("a range is clamped to canonical addresses");
    }
    if (planned.changes.has(change::range_empty)) { say("a range has no canonical address"); }
    if (planned.changes.has(change::cr3_truncated)) { say("the low bits of CR3 are not compared"); }
    bool const is_one_page = single_range::mask_of(planned.plan.output.mask_ptrs) < 4096;
    for (unsigned bit = 0; bit < 8; ++bit) {
        auto const one = static_cast<config::config_advice>(1U << bit);
        bool const is_met = one == config::config_advice::range_of_one_page && is_one_page;
        if (planned.config.advice.has(one) && !is_met) { say(string_of(describe(one))); }
    }
    return text;
}

auto run_tool(tool::command_line& line) -> int {
    std::optional<std::string> row_setup;
    std::optional<std::string> operation;
    std::vector<std::string> operands;
    wish with;
    with.caps = cpu::preset::find("P-FUT")->value;
    while (line.next()) {
        if (line.is_help()) {
            tool::print(usage);
            return 0;
        }
        if (line.is("--cpu")) {
            auto const name = line.value();
            auto const found = cpu::preset::find({name.data(), name.size()});
            if (!found) {
                throw tool::failure{"no such processor: " + tool::quoted(name) +
                                    "; what_if --help lists them"};
            }
            with.caps = found->value;
        } else if (line.is("--run")) {
            with.runs = true;
        } else if (line.is("--bare")) {
            with.bare = true;
        } else if (line.is("--setup")) {
            row_setup = line.value();
        } else if (line.is("--operation")) {
            operation = line.value();
        } else if (line.is_operand()) {
            operands.push_back(line.argument());
        } else {
            line.refuse();
        }
    }
    if (row_setup || operation) {
        if (!operation || !operands.empty()) {
            throw tool::failure{"a row has --setup, --operation, and no procedure"};
        }
        tool::print(run_row(row_setup.value_or(""), *operation) + "\n");
        return 0;
    }
    if (operands.empty()) { throw tool::failure{"needs a procedure; --help lists them"}; }
    if (operands.size() > 3) {
        throw tool::failure{"takes PROCEDURE, TRACE and BUFFER, not also " +
                            tool::quoted(operands[3])};
    }
    with.request = request_of(operands.size() > 1 ? operands[1] : "os user tsc");
    if (!with.caps.has_pt()) {
        tool::print("(this processor has no Intel PT)\n");
        return 1;
    }
    with.to = buffer_of(operands.size() > 2 ? operands[2] : "ring=16x64K", with.caps);
    with.request.config.output = with.to.scheme;
    with.request.output = with.to.start;
    auto const planned = driver::plan(with.caps, with.request);
    if (planned.config.broken != rule::none) {
        tool::print("(tracing is impossible)\n");
        return 1;
    }
    with.plan = planned.plan;
    std::string const refusals = with.bare ? "" : refusals_of(planned);
    tool::print(refusals + procedure(operands[0], with));
    return 0;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("msr_plan", count, arguments, run_tool);
}
