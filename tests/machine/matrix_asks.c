// SPDX-License-Identifier: BSL-1.0

// Asks the kernel for Intel PT: matrix_asks NAME CONFIG [FILTER] prints NAME, 0 or an errno,
// and the bytes of the trace of a loop.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile unsigned sum;

static int ask(unsigned long long config, char const* filter, unsigned long long* size) {
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    FILE* const type = fopen("/sys/bus/event_source/devices/intel_pt/type", "r");
    if (type == NULL || fscanf(type, "%u", &attr.type) != 1) { return ENODEV; }
    fclose(type);
    attr.size = sizeof attr;
    attr.config = config;
    attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
    int const file = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (file < 0) { return errno; }
    if (filter != NULL && ioctl(file, PERF_EVENT_IOC_SET_FILTER, filter) != 0) { return errno; }
    long const page = sysconf(_SC_PAGESIZE);
    struct perf_event_mmap_page* const base =
        mmap(NULL, (size_t)(9 * page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) { return errno; }
    base->aux_offset = (unsigned long long)(16 * page);
    base->aux_size = (unsigned long long)(64 * page);
    if (mmap(NULL, base->aux_size, PROT_READ | PROT_WRITE, MAP_SHARED, file,
             (off_t)base->aux_offset) == MAP_FAILED) {
        return errno;
    }
    if (ioctl(file, PERF_EVENT_IOC_ENABLE, 0) != 0) { return errno; }
    for (unsigned i = 0; i < 2000; ++i) { sum += (i & 5) != 0 ? i : 1; }
    if (ioctl(file, PERF_EVENT_IOC_DISABLE, 0) != 0) { return errno; }
    *size = base->aux_head;
    return 0;
}

int main(int argc, char** argv) {
    unsigned long long size = 0;
    if (argc < 3) { return 2; }
    int const error = ask(strtoull(argv[2], NULL, 16), argc > 3 ? argv[3] : NULL, &size);
    printf("%s %d %llu\n", argv[1], error, size);
    return 0;
}
