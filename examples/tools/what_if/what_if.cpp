// SPDX-License-Identifier: BSL-1.0

// what_if: shows what a processor with Intel PT would do, from the model. See `what_if --help`.

#include "../common/msr_script/statements.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace {

using namespace msr_script;

constexpr std::string_view usage = R"(usage: what_if [--explain] [-e TEXT... | SCRIPT]

Shows what a logical processor with Intel PT would do: whether an access faults and by which rule
of the catalogue, the value of a register after an access, and the errors in a ToPA table. The
script is the text of -e, the file SCRIPT, or standard input (also as -). At a terminal, what_if
without a script prints this text. Statements are separated by ; or newlines, and have at most 4096
characters each. A comment begins with # and ends with the line. Numbers are hexadecimal without
prefix. A statement prints at most one line.

  -e TEXT                   the text of the script; each further -e adds a line
  --explain                 print the text of the rule after each GP, and after each state with
                            Error or Stopped
  -h, --help                print this text

Statements:

  cpu NAME                  select a processor, after a cold reset; names are below. The default
                            is P-FUT
  maxphyaddr N              set MAXPHYADDR, in decimal: 32 to 52
  set REG=V                 put V into a register, without any check. REG is CTL, STATUS, BASE,
                            MASK_PTRS, CR3_MATCH, ADDR0_A to ADDR3_B, GLOBAL_STATUS, DEBUGCTL or
                            VMX_MISC14 (that bit of IA32_VMX_MISC: 0 or 1)
  [A]=V                     put the 64-bit word V at physical address A, a multiple of 8; all
                            other words are 0
  smrr BASE MASK            set IA32_SMRR_PHYSBASE and IA32_SMRR_PHYSMASK
  apic BASE                 set the address of the local APIC's page, or IA32_APIC_BASE
  restricted drop|error     what a trace store to that range does: the data is dropped (default),
                            or Error is set
  pmi_lead N                the PMI of a table's only region is raised N bytes before its end, on
                            a processor without MENTRY; 200 by default
                            These four take effect when TraceEn next rises

  Wxxx=V                    WRMSR of index xxx at CPL 0: ok, or GP and the broken rules, the most
                            specific one first. The MSRs: 560 to 587, 38E, 390, 391, DA0 and 1D9
  Rxxx                      RDMSR: the value, or GP and the broken rules
  scheme single|topa|fabric how each following `enable` sets ToPA and FabricEn
  enable                    WRMSR of CTL with TraceEn set. Before the first `scheme`, ToPA is set
                            if FabricEn is 0. BranchEn, User and OS are set if all three are 0
  disable                   WRMSR of CTL with TraceEn clear
  write N                   N bytes of trace, all PADs, at most 100000000: bytes stored and lost,
                            interrupts, and the first and the last address
  total                     the sums of `write` since TraceEn rose
  XSAVES                    save the Intel PT state: its nine quadwords
  XRSTORS Q0 Q1 ...         restore it: ok, or GP and the rules, first the rule of XRSTORS, then
                            that of the quadword. Up to 16 quadwords; missing ones are 0, except
                            MASK_PTRS, which is 7F
  XRSTORS init              restore its initial configuration
  COLD WARM INIT SMI RSM VMXON VMXOFF
                            this event: ok, shutdown and the rule, or UD for RSM outside of SMM

  state                     the registers, and whether a PSB+ is due or a PMI is pending
  explain                   why Error or Stopped is set: the rule, the table entry, and what the
                            rule requires
  locate                    the current entry of the ToPA table, and the offset in its region
  context cr3 V cpl N [pae] [enclave]
                            ContextEn for code with this CR3 and CPL
  branch IP                 FilterEn after a branch to IP, and TraceStop when IP is in its range
  validate A                check the ToPA table at A, from entry 0 to the first END or STOP: ok,
                            or the rules that its entries break. Entries after the last word that
                            was put there are not read; the first of them breaks OUT-056. Regions
                            in the ranges of smrr and apic break OUT-111 and OUT-113
  encode TOPA_ENTRY F=V ... the entry with these fields: END, INT, STOP, Size (its encoding) and
                            Base (an address)
  decode REG V              the fields of a value, and the rules that writing it after a cold
                            reset breaks. REG is as above except VMX_MISC14, or TOPA_ENTRY
  build START BYTES OFFSET  the output MSRs for a single range

Output begins when a WRMSR, RSM or XRSTORS sets TraceEn, and ends when TraceEn is cleared. `set`
does not start output. MSRs that are not listed here cannot be accessed. A script can put at most
1048576 words into memory.

Example:
  $ what_if -e 'cpu Skylake-X; W570=2109; W570=210D'
  ok
  GP REG-021

Exit status: 0 success, even when the processor faults; 2 an invalid statement (standard error has
its number and the error; no further statement is run), wrong usage, a file that cannot be read, or
output that cannot be written.
)";

// ------------------------------------------------------------------------------------ the program

void print_help() {
    std::string names = "Processors: the profiles of the catalogue, and real processors by name.";
    std::size_t column = 80;
    for (auto const& one : cpu::preset::all) {
        auto const name = string_of(one.name);
        bool const fits = column + 1 + name.size() <= 80;
        names += fits ? " " : "\n  ";
        column = (fits ? column + 1 : 2) + name.size();
        names += name;
    }
    tool::print(std::string{usage} + names + '\n');
}

auto run_tool(tool::command_line& line) -> int {
    session in;
    choose_cpu(in, "P-FUT");
    tool::script_choice choice;
    while (line.next()) {
        if (line.is_help()) {
            print_help();
            return 0;
        }
        if (line.is("--explain")) {
            in.explains = true;
        } else if (!choice.accept(line)) {
            line.refuse();
        }
    }
    if (!choice.is_given() && tool::is_terminal()) {
        print_help();
        return 0;
    }
    tool::output out;
    run_script(in, choice, [&] {
        out.write(in.out);
        in.out.clear();
    });
    out.close();
    return 0;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("what_if", count, arguments, run_tool);
}
