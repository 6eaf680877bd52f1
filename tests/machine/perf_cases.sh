#!/bin/bash
# SPDX-License-Identifier: BSL-1.0
# Runs inside of the machine, on a Debian root: perf's own tests of Intel PT, and for each case a
# check that such a recording holds what the case is about. perf_test.py reads the files that it
# writes: decoder.txt and misc.txt, and own.txt with lines CASE|ok, failed or skipped|DETAILS.
#
#   perf_cases.sh [CASE]...        only these of our own checks, and none of perf's tests

mkdir -p /usr/lib/perf-core/util && cp -f jitdump.h /usr/lib/perf-core/util/
rm -f jitdump.h
caps=/sys/bus/event_source/devices/intel_pt/caps
if [ $# = 0 ]; then
    perf test -v "Intel PT packet decoder" >decoder.txt 2>&1
    perf test -v "Miscellaneous Intel PT" >misc.txt 2>&1
fi
here=$PWD
cd /tmp || exit 1

say() { echo "$1|$2|$3" >>"$here/own.txt"; }
# check CASE CONDITION DETAILS
check() { if (($2)); then say "$1" ok "$3"; else say "$1" failed "$3"; fi; }
record() { perf record -B -N --no-bpf-event "$@" >/dev/null 2>record.txt; }
# record_with_and_without TERMS: user code with these terms to a.data, without them to b.data.
record_with_and_without() {
    record -o a.data -e "intel_pt/$1/u" uname
    record -o b.data -e intel_pt//u uname
}
# packets FILE NAME: how many packets of a name.
packets() { perf script -i "$1" -D 2>/dev/null | grep -cE "^\.  *[0-9a-f]+: .* $2( |$)"; }
# decoded FILE: sets instructions and those of the kernel, in thousands, and errors. Printing each
# would take minutes.
decoded() {
    read -r instructions in_kernel < <(
        perf script -i "$1" --itrace=i1000i -F ip 2>decode.txt |
            awk 'NF { ++n; if ($1 ~ /^f{8}/) { ++k } } END { print n + 0, k + 0 }')
    errors=$(perf script -i "$1" --itrace=e -F ip 2>&1 | grep -ci "instruction trace error")
}
has() { [ "$(cat "$caps/$1" 2>/dev/null)" = 1 ]; }

own_side_band() {
    if [ "$(nproc)" -lt 2 ]; then say side_band skipped "one processor"; return; fi
    record -o a.data -e intel_pt//u -C 0 -- taskset --cpu-list 1 uname
    local of_uname
    of_uname=$(perf script -i a.data --no-itrace --show-mmap-events -C 1 2>/dev/null |
        grep -cE "MMAP.*(uname|libc)")
    check side_band "of_uname >= 2" "$of_uname maps of uname and libc on processor 1"
}

# Two processes of two threads, traced by thread from when they wait.
own_per_thread() {
    local name=per_thread$1 threads one_by_one
    rm -f record.txt
    cat >threads.c <<'END'
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static volatile unsigned sum, is_go;
static void go(int unused) { is_go = (unsigned)unused; }
static void* work(void* unused) {
    while (!is_go) { usleep(1000); }
    for (unsigned i = 0; i < 20000; ++i) { sum += i & 7; }
    return unused;
}
int main(void) {
    pthread_t other;
    signal(SIGUSR1, go);
    pthread_create(&other, 0, work, 0);
    work(0);
    pthread_join(other, 0);
    return 0;
}
END
    cc -O1 -o threads threads.c -pthread || { say "$name" failed "no program"; return; }
    ./threads & local one=$!
    ./threads & local other=$!
    sleep 0.1
    record -o a.data --per-thread -e "intel_pt//u$1" -vvv -p "$one,$other" & local recorder=$!
    until grep -q "perf record has started" record.txt 2>/dev/null; do sleep 0.1; done
    kill -USR1 $one $other
    wait $one $other $recorder
    decoded a.data
    one_by_one=$(perf script -i a.data --itrace=i1000i -F comm,tid 2>/dev/null |
        awk '$1 == "threads" { ++n[$2] } END { for (i in n) { printf "%d ", n[i] } }')
    threads=$(wc -w <<<"$one_by_one")
    if [ -z "$1" ]; then
        check "$name" "threads == 4 && instructions > 300 && !in_kernel && !errors" \
            "$threads threads with thousands of instructions: $one_by_one, $errors errors"
    else
        check "$name" "threads == 4 && in_kernel > 10" \
            "$threads threads with thousands: $one_by_one, $in_kernel thousand of the kernel"
    fi
}

own_jitdump() {
    cat >jit.c <<'END'
#define _GNU_SOURCE
#include "jitdump.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static uint64_t now(void) {
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return low | (uint64_t)high << 32;
}
int main(void) {
    /* mov $100, %eax; loop: dec %eax; jnz loop; ret */
    uint8_t const code[] = {0xb8, 100, 0, 0, 0, 0xff, 0xc8, 0x75, 0xfc, 0xc3};
    uint8_t* at = mmap(0, 4096, PROT_WRITE | PROT_EXEC, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    char name[64];
    snprintf(name, sizeof name, "jit-%d.dump", getpid());
    FILE* to = fopen(name, "w+");
    struct jitheader head = {JITHEADER_MAGIC, JITHEADER_VERSION, sizeof head, 62, 0, getpid(),
                             now(), JITDUMP_FLAGS_ARCH_TIMESTAMP};
    fwrite(&head, sizeof head, 1, to);
    fflush(to);
    munmap(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(to), 0), 4096);
    memcpy(at, code, sizeof code);
    char const symbol[] = "made_while_running";
    struct jr_code_load load = {{0, sizeof load + sizeof symbol + sizeof code, now()},
                                getpid(), gettid(), (uint64_t)at, (uint64_t)at, sizeof code, 1};
    fwrite(&load, sizeof load, 1, to);
    fwrite(symbol, sizeof symbol, 1, to);
    fwrite(code, sizeof code, 1, to);
    fclose(to);
    return ((int (*)(void))at)();
}
END
    cc -I /usr/lib/perf-core/util -o jit jit.c || { say jitdump failed "no program"; return; }
    record -o b.data -e intel_pt//u ./jit
    perf inject -i b.data -o a.data --jit 2>inject.txt
    decoded a.data
    local inside
    inside=$(perf script -i a.data --itrace=i1i -F ip,sym 2>/dev/null | grep -c made_while_running)
    check jitdump "inside == 202 && !errors" \
        "$inside instructions of 202 in the made function, $errors errors"
}

own_packet_filter() {
    record_with_and_without mtc=0,tsc=0
    local psb mtc tsc with_mtc with_tsc
    psb=$(packets a.data PSB) mtc=$(packets a.data MTC) tsc=$(packets a.data TSC)
    with_mtc=$(packets b.data MTC) with_tsc=$(packets b.data TSC)
    decoded a.data
    check packet_filter \
        "psb && !mtc && !tsc && with_mtc && with_tsc && instructions > 50 && !errors" \
        "$psb PSB, $mtc MTC, $tsc TSC (else $with_mtc, $with_tsc), $instructions thousand \
instructions"
}

own_disable_branch() {
    record_with_and_without branch=0
    local psb branches with_branches
    psb=$(packets a.data PSB) branches=$(packets a.data "(TNT|TIP|FUP)")
    with_branches=$(packets b.data "(TNT|TIP|FUP)")
    check disable_branch "psb && !branches && with_branches > 100" \
        "$psb PSB, $branches TNT, TIP and FUP (else $with_branches)"
}

own_time_cyc() {
    if ! has psb_cyc; then say time_cyc skipped "no CYC"; return; fi
    record_with_and_without cyc
    local cyc without ipc
    cyc=$(packets a.data CYC) without=$(packets b.data CYC)
    decoded a.data
    ipc=$(perf script -i a.data --itrace=b -F ip,ipc 2>/dev/null |
        awk 'match($0, /\(([0-9]+)\/([0-9]+)\)/, n) { i += n[1]; c += n[2] }
             END { printf "%d/%d", i, c }')
    check time_cyc "cyc && !without && instructions > 50 && !errors" \
        "$cyc CYC (else $without), $instructions thousand instructions, instructions/cycles $ipc"
}

own_sample() {
    perf record -B -N --no-bpf-event -o a.data --aux-sample=8192 -c 50000 \
        -e '{intel_pt//u,instructions:u}' uname >/dev/null 2>record.txt
    local samples
    samples=$(perf script -i a.data -D 2>/dev/null | grep -c "AUX sample size")
    [ "$samples" -gt 0 ] || samples=$(perf script -i a.data --no-itrace 2>/dev/null | wc -l)
    decoded a.data
    check sample "samples && instructions > 10 && !errors && !in_kernel" \
        "$samples AUX samples, $instructions thousand instructions, $errors errors"
}

own_kernel_trace() {
    record --kcore -o a.data -e intel_pt//k -m1,512 uname
    decoded a.data/data 2>/dev/null
    check kernel_trace "in_kernel > 100 && in_kernel == instructions && !errors" \
        "$in_kernel thousand instructions of the kernel of $instructions, $errors errors"
}

# A stack names its newest branch first: reversed, it is a part of the sequence of all branches.
own_virtual_lbr() {
    perf record --no-bpf-event -o a.data --aux-sample -c 50000 -e '{intel_pt//,cycles}:u' uname \
        >/dev/null 2>record.txt
    perf script -i a.data --itrace=b -F ip,addr >branches.txt 2>/dev/null
    local stacks entries wrong
    read -r stacks entries wrong < <(
        perf script -i a.data --itrace=L -F ip,brstack 2>/dev/null | awk '
            function plain(x) { sub(/^0x/, "", x); return x }
            FNR == NR { if ($1 != "0" && $3 != "0") { all = all " " $1 ">" $3 }; next }
            { ++stacks; run = ""
              for (i = 2; i <= NF; ++i) {
                  if (split($i, part, "/") < 6) { continue }
                  ++entries
                  run = " " plain(part[1]) ">" plain(part[2]) run
              }
              if (run == "" || !index(all " ", run " ")) { ++wrong } }
            END { print stacks + 0, entries + 0, wrong + 0 }' branches.txt -)
    check virtual_lbr "stacks && entries >= 2 * stacks && !wrong" \
        "$stacks branch stacks of $entries entries, $wrong unlike the decoded branches"
}

own_power_event() {
    if ! has power_event_trace; then say power_event skipped "no power events"; return; fi
    record -o a.data -a -e intel_pt/pwr_evt/u sleep 0.2
    local power events
    power=$(packets a.data "(PWRE|PWRX|EXSTOP|EXSTOP_IP|MWAIT)")
    events=$(perf script -i a.data --itrace=p 2>/dev/null | grep -cE "pwre|pwrx|exstop|mwait")
    check power_event "power && events" \
        "$power packets PWRE, PWRX, EXSTOP and MWAIT; $events events"
}

own_no_tnt() {
    if ! has tnt_disable; then say no_tnt skipped "no DisTNT"; return; fi
    record_with_and_without notnt
    local tnt tip with_tnt
    tnt=$(packets a.data TNT) tip=$(packets a.data TIP) with_tnt=$(packets b.data TNT)
    check no_tnt "!tnt && tip > 10 && with_tnt" "$tnt TNT (else $with_tnt), $tip TIP"
}

own_event_trace() {
    if ! has event_trace; then say event_trace skipped "no event trace"; return; fi
    record -o a.data -e intel_pt/event/u uname
    local cfe evd events
    cfe=$(packets a.data "(CFE|CFE_IP)") evd=$(packets a.data EVD)
    events=$(perf script -i a.data --itrace=I 2>/dev/null | grep -cE "intr|exception|evt")
    decoded a.data
    check event_trace "cfe && events && instructions > 50 && !errors" \
        "$cfe CFE, $evd EVD, $events events, $instructions thousand instructions, $errors errors"
}

if [ $# = 0 ]; then
    set -- side_band per_thread "per_thread k" jitdump packet_filter disable_branch time_cyc \
        sample kernel_trace virtual_lbr power_event no_tnt event_trace
fi
for one in "$@"; do
    begin=$(date +%s)
    own_$one
    echo "own check $one: $(($(date +%s) - begin)) s of the machine's time"
done
exit 0
