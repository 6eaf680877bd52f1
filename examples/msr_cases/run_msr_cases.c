/* SPDX-License-Identifier: BSL-1.0 */

/* Executes the test cases that `regmap --cases msr_cases.h` writes, and restores the MSRs. */

#include "run_msr_cases.h"
#include "msr_cases.h"

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof((array)[0])))
#define MSRS COUNT(ptspec_case_msrs)
#define BOTH(halves, name) ((uint64_t)(halves)->name##_high << 32 | (halves)->name##_low)

enum { OUTPUT_BASE = 0x560, OUTPUT_MASK_PTRS = 0x561, CTL = 0x570, STATUS = 0x571 };

static uint32_t numbers[PTSPEC_NUMBERS];
static char line[512];
static unsigned used;

static void add(const char *text)
{
    while (*text != '\0' && used + 1 < sizeof(line)) {
        line[used++] = *text++;
    }
    line[used] = '\0';
}

static void add_hex(const char *before, uint64_t value)
{
    char digits[18] = {0};
    unsigned i = sizeof(digits) - 2;

    digits[i] = 'H';
    do {
        digits[--i] = "0123456789ABCDEF"[value & 15];
        value >>= 4;
    } while (value != 0);
    add(before);
    add(digits + i);
}

static unsigned report(int pass)
{
    target_report(pass, line);
    used = 0;
    return pass ? 0 : 1;
}

static uint32_t cpuid_word(uint32_t leaf, uint32_t subleaf, uint32_t which)
{
    uint32_t registers[4];

    target_cpuid(leaf, subleaf, registers);
    return registers[which];
}

/* Reads the numbers of the conditions. A leaf that does not exist counts as 0. */
static void enumerate(void)
{
    const int has_pt = (cpuid_word(7, 0, 1) >> 25 & 1) != 0;
    uint32_t widths, i;

    for (i = 0; i < COUNT(ptspec_number_places); ++i) {
        const unsigned *place = ptspec_number_places[i];
        const uint32_t first = place[0] & 0x80000000U;
        const uint32_t last = cpuid_word(first, 0, 0);
        const int is_leaf = (last & 0xFFFF0000U) == first && last >= place[0];
        const int is_subleaf = place[0] != 0x14 || (has_pt && cpuid_word(0x14, 0, 0) >= place[1]);

        numbers[i] = is_leaf && is_subleaf ? cpuid_word(place[0], place[1], place[2]) : 0;
    }
    widths = numbers[PTSPEC_NUMBER_CPUID_80000008H_EAX];
    numbers[PTSPEC_NUMBER_MAXPHYADDR] = (widths & 0xFF) != 0 ? widths & 0xFF : 36;
    numbers[PTSPEC_NUMBER_LINEAR_BITS] = (widths >> 8 & 0xFF) != 0 ? widths >> 8 & 0xFF : 48;
}

static int is_for_this_processor(const struct ptspec_case *row)
{
    unsigned i, met = 0;

    for (i = 0; i < PTSPEC_CONDITIONS; ++i) {
        const struct ptspec_condition *one = &row->conditions[i];
        const uint32_t number = numbers[one->number] & one->mask;
        met += number >= one->least && number <= one->most ? 1U : 0U;
    }
    return met == PTSPEC_CONDITIONS;
}

/* Clears TraceEn. False if it stays 1: then a row could let output go anywhere. */
static int stop_tracing(void)
{
    uint64_t ctl = 0;

    (void)target_wrmsr_safe(CTL, 0);
    return target_rdmsr_safe(CTL, &ctl) != 0 || (ctl & 1) == 0;
}

/* Output stays in the two pages, whether the processor takes the base for a range of 128 bytes or
 * for a table: the entries of the first page are the second page, and END. */
static int prepare(const struct ptspec_case *row)
{
    const int topa = ((row->ctl != 0 ? row->ctl : row->value_low) & 0x100) != 0;
    const uint64_t base = target_pages_address + (topa ? PTSPEC_TABLE_OFFSET : PTSPEC_RANGE_OFFSET);
    unsigned i;

    for (i = 0; i < 512; ++i) {
        target_pages[i] = target_pages_address + (i % 2 == 0 ? 4096 : 1);
    }
    return target_wrmsr_safe(STATUS, PTSPEC_STATUS_BEFORE) == 0 &&
           target_wrmsr_safe(OUTPUT_BASE, base) == 0 &&
           target_wrmsr_safe(OUTPUT_MASK_PTRS, 0x7F) == 0 &&
           (row->ctl == 0 || target_wrmsr_safe(CTL, row->ctl) == 0);
}

static unsigned execute(const struct ptspec_case *row)
{
    const struct ptspec_case_msr *msr;
    const uint64_t reads = BOTH(row, reads);
    uint64_t value = BOTH(row, value);
    uint64_t before = 0, after = 0, own;
    int is_ready, has_before, has_after, faults, changed, pass;

    for (msr = ptspec_case_msrs; msr->msr != row->msr; ++msr) {}
    own = BOTH(msr, own);
    value += (row->flags & PTSPEC_IN_PAGE) != 0 ? target_pages_address : 0;
    is_ready = (row->flags & PTSPEC_OUTPUT) == 0 || prepare(row);
    has_before = is_ready && target_rdmsr_safe(row->msr, &before) == 0;
    faults = is_ready && target_wrmsr_safe(row->msr, value) != 0;
    has_after = is_ready && target_rdmsr_safe(row->msr, &after) == 0;
    /* While TraceEn is 1 the processor may change the MSRs other than IA32_RTIT_CTL. */
    changed = (row->ctl == 0 || row->msr == CTL) && ((before ^ after) & ~own) != 0;
    pass = row->expected == PTSPEC_READS    ? !faults && has_after && ((reads ^ after) & ~own) == 0
           : row->expected == PTSPEC_FAULTS ? faults && has_before && has_after && !changed
                                            : faults && !has_before && !has_after;
    add("WRMSR ");
    add(msr->name);
    add_hex(" = ", value);
    if (row->ctl != 0) {
        add_hex(" after IA32_RTIT_CTL = ", row->ctl);
    }
    if (row->expected == PTSPEC_READS) {
        add_hex(" must not fault, then read ", reads);
    } else {
        add(row->expected == PTSPEC_ABSENT ? " must raise #GP, and RDMSR too" : " must raise #GP");
    }
    if (!is_ready) {
        add("; NOT EXECUTED: a WRMSR that prepares it faults");
    } else if (!pass) {
        add(!faults ? "; SEEN: no fault" : "; SEEN: #GP");
        add(faults && changed ? ", but a new value" : "");
        if (has_before && has_after) {
            add_hex(", read ", before);
            add_hex(" before and ", after);
        }
        add(has_before && has_after ? " after" : ", and RDMSR faults");
    }
    add("; ");
    add(row->rule);
    return report(pass);
}

unsigned run_msr_cases(void)
{
    uint64_t saved[MSRS];
    int exists[MSRS];
    unsigned failures = 0, left_out = 0, i, j;

    enumerate();
    for (i = 0; i < MSRS; ++i) {
        exists[i] = target_rdmsr_safe(ptspec_case_msrs[i].msr, &saved[i]) == 0;
        if (exists[i] && ptspec_case_msrs[i].msr == CTL && (saved[i] & 1) != 0) {
            add("nothing is executed: Intel PT is in use, TraceEn is 1");
            return report(0);
        }
    }
    for (i = 0; i < COUNT(ptspec_case_lists); ++i) {
        for (j = 0; j < ptspec_case_lists[i].count; ++j) {
            const struct ptspec_case *row = &ptspec_case_lists[i].rows[j];
            if (!is_for_this_processor(row)) {
                continue;
            }
            if ((row->flags & PTSPEC_OUTPUT) != 0 && target_pages == 0) {
                ++left_out;
            } else {
                failures += execute(row);
            }
            if (!stop_tracing()) {
                add("the tests end: TraceEn stays 1 after a WRMSR of 0; " PTSPEC_REG_022);
                return failures + report(0);
            }
        }
    }
    for (i = MSRS; i-- > 0;) {
        if (exists[i] && target_wrmsr_safe(ptspec_case_msrs[i].msr, saved[i]) != 0) {
            add("not restored: ");
            add(ptspec_case_msrs[i].name);
            failures += report(0);
        }
    }
    add_hex("rows left out because target_pages is null: ", left_out);
    return failures + report(1);
}
