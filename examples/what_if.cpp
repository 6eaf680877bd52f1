// SPDX-License-Identifier: BSL-1.0

// what_if: asks the model what a processor with Intel PT would do. See `what_if --help`.

#include "common/msr_script/statements.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace {

using namespace what_if;

constexpr std::string_view usage = R"(usage: what_if [--explain] [-e TEXT... | SCRIPT]

Tells what a logical processor with Intel PT would do: whether an access faults and by which rule
of the catalogue, what a register holds afterwards, what is wrong with a table. The script is the
text of -e, the file SCRIPT, or standard input (also as -); at a terminal what_if without a script
prints this text. Its statements are separated by ; or ends of lines, and have at most 4096
characters each. A comment begins with # and ends with the line. Numbers are hexadecimal without
prefix. A statement prints at most one line.

  -e TEXT                   the script itself; each further -e continues it on a new line
  --explain                 below each GP, and each state with Error or Stopped, the rule's text
  -h, --help                this text

Statements:

  cpu NAME                  another processor, after a cold reset; P-FUT until then. Names below
  maxphyaddr N              another MAXPHYADDR, in decimal: 32 to 52
  set REG=V                 put V into a register, without any check. REG is CTL, STATUS, BASE,
                            MASK_PTRS, CR3_MATCH, ADDR0_A to ADDR3_B, GLOBAL_STATUS, DEBUGCTL or
                            VMX_MISC14 (that bit of IA32_VMX_MISC: 0 or 1)
  [A]=V                     put the 64-bit word V at physical address A, a multiple of 8; all
                            other words are 0
  smrr BASE MASK            values of IA32_SMRR_PHYSBASE and IA32_SMRR_PHYSMASK
  apic BASE                 the address of the local APIC's page, or IA32_APIC_BASE
  restricted drop|error     trace into that range is lost (the default), or sets Error
  pmi_lead N                how many bytes before the end of a table's only region its interrupt
                            comes, on a processor without MENTRY; 200 by default
                            These four take effect when TraceEn next rises

  Wxxx=V                    WRMSR of index xxx at CPL 0: ok, or GP and the rules, first the most
                            specific. The MSRs: 560 to 587, 38E, 390, 391, DA0 and 1D9
  Rxxx                      RDMSR: the value, or GP and the rules
  scheme single|topa|fabric what each following `enable` sets ToPA and FabricEn to
  enable                    WRMSR of CTL with TraceEn. Until a scheme is given CTL decides, and gets
                            ToPA where it has neither; it gets BranchEn, User and OS where it has
                            none
  disable                   WRMSR of CTL without TraceEn
  write N                   N bytes of trace, all PADs, at most 100000000: how many were stored and
                            lost, the interrupts, and the first and the last address
  total                     the same of all since TraceEn rose
  XSAVES                    store the state of Intel PT: its nine quadwords
  XRSTORS Q0 Q1 ...         load it: ok, or GP and the rules, first that of XRSTORS, then that of
                            the quadword. Up to 16 quadwords; missing ones are 0, but MASK_PTRS
                            is 7F
  XRSTORS init              load its initial configuration
  COLD WARM INIT SMI RSM VMXON VMXOFF
                            that event: ok, shutdown and the rule, or UD for RSM outside of SMM

  state                     the registers, and whether a PSB+ is due or an interrupt pending
  explain                   why Error or Stopped is set: the rule, the entry of a table, and what
                            the rule demands
  locate                    the current entry of the ToPA table, and the offset in its region
  context cr3 V cpl N [pae] [enclave]
                            ContextEn for code with this CR3 and CPL
  branch IP                 FilterEn after a branch to IP, and TraceStop when it hits a range
  validate A                the ToPA table at A, from entry 0 to the first END or STOP: ok, or the
                            rules that its entries break. Entries after the last word that was
                            put there are not read: the first of them breaks OUT-056. Regions in
                            the ranges of smrr and apic break OUT-111 and OUT-113
  encode TOPA_ENTRY F=V ... the entry with these fields: END, INT, STOP, Size (its code) and Base
                            (an address)
  decode REG V              the fields of a value, and the rules that a write of it after a cold
                            reset breaks. REG as above but for VMX_MISC14, or TOPA_ENTRY
  build START BYTES OFFSET  the output MSRs for a single range

Output begins when a WRMSR, RSM or XRSTORS raises TraceEn, and ends when anything clears it. `set`
does not begin it. Accesses of other MSRs than those named here cannot be read. At most 1048576
words can be put into memory.

Example:
  $ what_if -e 'cpu Skylake-X; W570=2109; W570=210D'
  ok
  GP REG-021

Exit status: 0, whatever the processor did; 2 for a statement that cannot be read (its number and
what is wrong are on standard error, and no further statement is run), wrong usage, a file that
cannot be read, or output that cannot be written.

)";

// ------------------------------------------------------------------------------------ the program

void print_help() {
    std::string names = "Processors: the profiles of the catalogue, and real ones by name.";
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
        } else if (!choice.takes(line)) {
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
