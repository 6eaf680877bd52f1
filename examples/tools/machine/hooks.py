#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Inserts the calls of machine_calls.h into the sources of QEMU.

    hooks.py SOURCE       changes SOURCE; files that are as they should be are left
    hooks.py --self-test

Each call is placed by the name of a function and by a line in it. Where the function is absent, or
does not have that line exactly once, nothing is changed, and the message names it: another version
of QEMU needs other places. The original of each changed file stays beside it. Exit status: 0, 1
(not as expected), 2 (wrong usage).
"""

import dataclasses
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TARGET = "target/i386"
MARK = "/* ptspec */"
ORIGINAL = ".without-ptspec"
SYMBOLS = "plugins/qemu-plugins.symbols"


class Unexpected(Exception):
    """The source is not as expected: the file and the function are in the text."""


@dataclasses.dataclass
class Call:
    """`text` in a function: before or after the line that matches `line`, or at an end of the
    body. A function of None is the whole file."""
    file: str
    function: str
    text: str
    before: str = ""
    after: str = ""
    at: str = ""  # "begin" or "end"


CALLS = [
    Call(f"{TARGET}/tcg/sysemu/misc_helper.c", "helper_wrmsr",
         "if (machine_wrmsr(env, val, GETPC())) { return; }", before=r"switch \("),
    Call(f"{TARGET}/tcg/sysemu/misc_helper.c", "helper_rdmsr",
         "if (machine_rdmsr(env, GETPC())) { return; }", before=r"switch \("),
    Call(f"{TARGET}/tcg/misc_helper.c", "helper_cpuid",
         "machine_cpuid(env, &eax, &ebx, &ecx, &edx);", before=r"env->regs\[R_EAX\] = eax;"),
    Call(f"{TARGET}/tcg/misc_helper.c", "helper_rdpmc",
         "machine_rdpmc(env, GETPC());", after=r"cpu_svm_check_intercept_param\(.*;"),
    Call(f"{TARGET}/tcg/seg_helper.c", "do_interrupt_all",
         "machine_interrupt(env, intno, is_int, is_hw);",
         after=r"CPUX86State \*env = &cpu->env;"),
    Call(f"{TARGET}/tcg/sysemu/smm_helper.c", "do_smm_enter",
         "machine_event(env, MACHINE_SMI);", before=r"qemu_log_mask\(CPU_LOG_INT, .*enter.*"),
    Call(f"{TARGET}/tcg/sysemu/smm_helper.c", "helper_rsm",
         "machine_event(env, MACHINE_RSM);", before=r"sm_state = env->smbase \+ 0x8000;"),
    Call(f"{TARGET}/cpu.c", "x86_cpu_reset", "machine_event(env, MACHINE_POWER_ON);", at="end"),
    Call(f"{TARGET}/helper.c", "do_cpu_init", "machine_event(env, MACHINE_INIT);",
         after=r"CPUX86State \*env = &cpu->env;"),
    Call(f"{TARGET}/helper.c", "do_cpu_sipi", "machine_event(env, MACHINE_SIPI);", at="end"),
    # Processors execute in turn on one thread, each until the next timer expires. If a timer has
    # expired already, the budget is 0: the timer runs first, so that the processor has its turn.
    Call("accel/tcg/tcg-accel-ops-icount.c", "icount_prepare_for_run",
         """if (cpu->icount_budget == 0 && CPU_NEXT(first_cpu)) {
    qemu_mutex_lock_iothread();
    icount_notify_aio_contexts();
    qemu_mutex_unlock_iothread();
    cpu->icount_budget = icount_get_limit();
}
cpu->icount_budget = machine_turn(cpu->icount_budget);""",
         after=r"cpu->icount_budget = icount_get_limit\(\);"),
    Call("accel/tcg/cpu-exec-common.c", "cpu_loop_exit_noexc",
         "machine_event(cpu->env_ptr, MACHINE_LEFT_BLOCK);", at="begin"),
    # Traced code executes in blocks of one instruction while it is logged; only it is logged.
    Call("accel/tcg/cpu-exec.c", "curr_cflags",
         """if (qemu_loglevel_mask(CPU_LOG_EXEC) &&
    (((CPUArchState *)cpu->env_ptr)->hflags & MACHINE_TRACED)) {
    cflags |= CF_NO_GOTO_TB | 1;
}""", before=r"return cflags;"),
    Call("accel/tcg/cpu-exec.c", "log_cpu_exec",
         "if (!(tb->flags & MACHINE_TRACED)) { return; }", at="begin"),
    Call("hw/i386/x86.c", "cpu_get_tsc",
         "if (1) { return machine_tsc_of(cpus_get_elapsed_ticks()); }", at="begin"),
    Call("hw/intc/apic_common.c", "apic_next_timer", "d = machine_apic_ticks(d);",
         after=r"d = \(current_time - s->initial_count_load_time\) >> s->count_shift;"),
    Call("hw/intc/apic_common.c", "apic_next_timer",
         "s->next_time = s->initial_count_load_time + (machine_apic_time(d) << s->count_shift);",
         before=r"s->timer_expiry = s->next_time;"),
    Call("hw/intc/apic_common.c", "apic_get_current_count", "d = machine_apic_ticks(d);",
         before=r"if \(s->lvt\[APIC_LVT_TIMER\] & APIC_LVT_TIMER_PERIODIC\)"),
    Call(f"{TARGET}/tcg/translate.c", "disas_insn",
         """if (machine_has_ptwrite() && ((modrm >> 3) & 7) == 4 && (prefixes & PREFIX_REPZ) &&
    !(prefixes & (PREFIX_LOCK | PREFIX_DATA))) {
    ot = dflag == MO_64 ? MO_64 : MO_32;
    gen_update_cc_op(s);
    gen_update_eip_cur(s);
    gen_ldst_modrm(env, s, modrm, ot, OR_TMP0, 0);
    gen_helper_machine_ptwrite(cpu_env, s->T0, tcg_constant_i32(1 << ot));
    s->base.is_jmp = DISAS_EOB_NEXT;
    break;
}""", after=r"case 0x1ae:\n\s*modrm = x86_ldub_code\(env, s\);"),
]
# Text at the end of files.
APPENDED = {
    f"{TARGET}/helper.h": "DEF_HELPER_3(machine_ptwrite, void, env, tl, i32)\n",
    f"{TARGET}/tcg/sysemu/meson.build":
        "i386_softmmu_ss.add(when: ['CONFIG_TCG', 'CONFIG_SOFTMMU'],\n"
        "                    if_true: files('machine_qemu.c'))\n",
    "hw/intc/apic.c": """
void machine_apic_pmi(DeviceState *apic)
{
    APICCommonState *s = APIC(apic);
    uint32_t const entry = s->lvt[APIC_LVT_PERFORM];
    s->lvt[APIC_LVT_PERFORM] = entry | APIC_LVT_MASKED;
    if (!(entry & APIC_LVT_MASKED)) {
        s->lvt[APIC_LVT_PERFORM] = entry;
        apic_local_deliver(s, APIC_LVT_PERFORM);
        s->lvt[APIC_LVT_PERFORM] = entry | APIC_LVT_MASKED;
    }
}
""",
}
EXPORTED = ["machine_register", "machine_state_layout", "machine_state", "machine_current",
            "machine_memory", "machine_code", "machine_tsc", "machine_pmi", "machine_set_traced"]
COPIED = {"machine_hooks.h": "include/machine_hooks.h",
          "machine_calls.h": "include/machine_calls.h",
          "machine_qemu.c": f"{TARGET}/tcg/sysemu/machine_qemu.c"}


def body_of(text, call):
    """The range of the body of a function, in a file whose functions end with a brace in column
    1."""
    found = list(re.finditer(rf"^(?:[\w*]+[ *]+)+{call.function}\([^;{{]*\)\n\{{\n", text, re.M))
    if len(found) > 1:  # other definitions, for other builds: the longest is meant
        found = [max(found, key=lambda one: text.index("\n}\n", one.end() - 1) - one.end())]
    if not found:
        raise Unexpected(f"{call.file}: no function {call.function}")
    return found[0].end(), text.index("\n}\n", found[0].end() - 1) + 1


def place_of(text, call):
    begin, end = body_of(text, call)
    if call.at:
        return begin if call.at == "begin" else end
    line = call.before or call.after
    found = list(re.finditer(rf"^[ \t]*{line}.*\n", text[begin:end], re.M))
    if len(found) != 1:
        raise Unexpected(f"{call.file}: {call.function} has {len(found)} times: {line}")
    return begin + (found[0].start() if call.before else found[0].end())


def insert(files, call):
    text = files[call.file]
    place = place_of(text, call)
    added = "".join(f"    {line}\n" for line in f"{call.text} {MARK}".splitlines())
    files[call.file] = text[:place] + added + text[place:]


def with_include(text):
    """Includes machine_calls.h after the last include of the file's head."""
    last = [one.end() for one in re.finditer(r"^#include .*\n", text, re.M)]
    if not last:
        raise Unexpected("no #include")
    # Not among those that depend on the target, which may be inside of #if.
    depth, place = 0, 0
    for line in re.finditer(r"^.*\n", text, re.M):
        depth += line[0].startswith("#if") - line[0].startswith("#endif")
        if depth == 0 and line[0].startswith("#include"):
            place = line.end()
    return text[:place] + '#include "machine_calls.h"\n' + text[place:]


def changed_files(source):
    """The new text of each file, made from its original."""
    names = {call.file for call in CALLS} | set(APPENDED) | {SYMBOLS}
    files = {}
    for name in sorted(names):
        original = source / (name + ORIGINAL)
        try:
            file = original if original.exists() else source / name
            files[name] = file.read_text(encoding="utf-8")
        except OSError as error:
            raise Unexpected(f"{error.filename}: not there") from error
        if MARK in files[name]:
            raise Unexpected(f"{name}: has calls already, and no original beside it")
    before = dict(files)
    for call in CALLS:
        insert(files, call)
    for name in {call.file for call in CALLS} | {"hw/intc/apic.c"}:
        files[name] = with_include(files[name])
    for name, text in APPENDED.items():
        files[name] += text
    symbols = files[SYMBOLS]
    if symbols.count("};") != 1:
        raise Unexpected(f"{SYMBOLS}: not one list")
    files[SYMBOLS] = symbols.replace("};", "".join(f"  {name};\n" for name in EXPORTED) + "};")
    return before, files


def write_if_new(file, text):
    """Leaves a file that has this text, so that it is not compiled again."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def change(source):
    before, files = changed_files(source)  # all or nothing
    for name, text in files.items():
        write_if_new(source / (name + ORIGINAL), before[name])
        write_if_new(source / name, text)
    for name, to in COPIED.items():
        write_if_new(source / to, (HERE / name).read_text(encoding="utf-8"))


def self_test():
    """Each thing that may be other than expected is found, and nothing is written then."""
    body = "void f(int a)\n{\n    int b = 0;\n    switch (a) {\n    }\n}\n"
    call = Call("x.c", "f", "hook();", before=r"switch \(")
    cases = [  # source, call, part of the new text, or of the message
        (body, call, "    hook(); /* ptspec */\n    switch (a)"),
        (body, dataclasses.replace(call, before="", after="int b = 0;"),
         "int b = 0;\n    hook();"),
        (body, dataclasses.replace(call, before="", at="begin"), "{\n    hook();"),
        (body, dataclasses.replace(call, before="", at="end"), "    hook(); /* ptspec */\n}\n"),
        (body, dataclasses.replace(call, function="g"), "no function g"),
        (body, dataclasses.replace(call, before="while"), "f has 0 times: while"),
        (body.replace("int b = 0;", "switch (b) {}"), call, "f has 2 times"),
    ]
    failures = 0
    for source, one, part in cases:
        files = {"x.c": source}
        try:
            insert(files, one)
            result = files["x.c"]
        except Unexpected as error:
            result = str(error)
        if part not in result:
            print(f"expected {part!r}, got {result!r}")
            failures += 1
    with tempfile.TemporaryDirectory() as folder:
        try:
            change(pathlib.Path(folder))
            print("an empty folder is accepted")
            failures += 1
        except Unexpected:
            failures += len(list(pathlib.Path(folder).iterdir()))
    print(f"{len(cases) + 1} cases, {failures} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        change(pathlib.Path(arguments[0]))
    except Unexpected as error:
        print(f"hooks.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
