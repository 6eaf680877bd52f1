// SPDX-License-Identifier: BSL-1.0
// Prints the output of `pt_dump --summary`, with libipt as the decoder, to compare the two.
//
//   their_summary FILE
//
// The trace must begin with a PSB and have no damage. Exit status: 0 it has no damage, 1 it has, 2
// the file cannot be read.

#include <support/libipt.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

struct row {
    char const* name;
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
};

/// The rows of the table, in printed order.
row rows[] = {
    {"pad"}, {"tnt.8"},     {"tnt.64"},   {"tip"},  {"tip.pge"}, {"tip.pgd"}, {"fup"},
    {"pip"}, {"mode.exec"}, {"mode.tsx"}, {"stop"}, {"cbr"},     {"tsc"},     {"mtc"},
    {"tma"}, {"cyc"},       {"vmcs"},     {"ovf"},  {"psb"},     {"psbend"},  {"mnt"},
    {"ptw"}, {"exstop"},    {"mwait"},    {"pwre"}, {"pwrx"},
};

constexpr unsigned psb_row = 18;

/// The index in `rows` of a libipt packet. libipt has one type for both MODE packets.
auto row_of(pt_packet const& packet) -> unsigned {
    switch (packet.type) {
        case ppt_pad: return 0;
        case ppt_tnt_8: return 1;
        case ppt_tnt_64: return 2;
        case ppt_tip: return 3;
        case ppt_tip_pge: return 4;
        case ppt_tip_pgd: return 5;
        case ppt_fup: return 6;
        case ppt_pip: return 7;
        case ppt_mode: return packet.payload.mode.leaf == pt_mol_exec ? 8 : 9;
        case ppt_stop: return 10;
        case ppt_cbr: return 11;
        case ppt_tsc: return 12;
        case ppt_mtc: return 13;
        case ppt_tma: return 14;
        case ppt_cyc: return 15;
        case ppt_vmcs: return 16;
        case ppt_ovf: return 17;
        case ppt_psb: return psb_row;
        case ppt_psbend: return 19;
        case ppt_mnt: return 20;
        case ppt_ptw: return 21;
        case ppt_exstop: return 22;
        case ppt_mwait: return 23;
        case ppt_pwre: return 24;
        default: return 25;
    }
}

struct summary {
    std::uint64_t errors = 0;
    std::uint64_t ip = 0;
    std::uint64_t lowest_ip = ~std::uint64_t{0};
    std::uint64_t highest_ip = 0;
    std::uint64_t first_psb = 0;
    std::uint64_t last_psb = 0;
    std::uint64_t nearest = ~std::uint64_t{0};
    std::uint64_t farthest = 0;

    void see(pt_packet const& packet, std::uint64_t offset) {
        row& one = rows[row_of(packet)];
        one.packets += 1;
        one.bytes += packet.size;
        switch (packet.type) {
            case ppt_tip:
            case ppt_tip_pge:
            case ppt_tip_pgd:
            case ppt_fup:
                if (packet.payload.ip.ipc == pt_ipc_suppressed) { return; }
                ip = ptspec::test::libipt_ip_after(packet.payload.ip, ip);
                lowest_ip = std::min(lowest_ip, ip);
                highest_ip = std::max(highest_ip, ip);
                return;
            case ppt_psb:
                ip = 0;
                if (one.packets == 1) {
                    first_psb = offset;
                } else {
                    nearest = std::min(nearest, offset - last_psb);
                    farthest = std::max(farthest, offset - last_psb);
                }
                last_psb = offset;
                return;
            default: return;
        }
    }
};

auto as_printed(std::uint64_t number) -> unsigned long long { return number; }

void print(summary const& all, std::uint64_t bytes) {
    std::uint64_t packets = 0;
    for (row const& one : rows) { packets += one.packets; }
    auto const line = [](char const* name, std::uint64_t value) {
        std::printf("%-12s %12llu\n", name, as_printed(value));
    };
    line("bytes", bytes);
    line("packets", packets);
    line("skipped", 0);
    line("errors", all.errors);
    line("resyncs", 0);
    if (rows[psb_row].packets > 1) {
        std::printf("psb spacing  min %llu, mean %llu, max %llu bytes\n", as_printed(all.nearest),
                    as_printed((all.last_psb - all.first_psb) / (rows[psb_row].packets - 1)),
                    as_printed(all.farthest));
    }
    if (all.lowest_ip <= all.highest_ip) {
        std::printf("ip           0x%llx to 0x%llx\n", as_printed(all.lowest_ip),
                    as_printed(all.highest_ip));
    }
    if (packets != 0) { std::printf("\ntype              packets        bytes\n"); }
    for (row const& one : rows) {
        if (one.packets == 0) { continue; }
        std::printf("%-12s %12llu %12llu\n", one.name, as_printed(one.packets),
                    as_printed(one.bytes));
    }
}

}  // namespace

int main(int argc, char** argv) {
    int const file = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    struct stat about{};
    if (file < 0 || fstat(file, &about) != 0) { return 2; }
    auto const size = static_cast<std::size_t>(about.st_size);
    void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) { return 2; }

    pt_config config;
    pt_config_init(&config);
    config.begin = static_cast<std::uint8_t*>(bytes);
    config.end = config.begin + size;
    pt_packet_decoder* const decoder = pt_pkt_alloc_decoder(&config);
    if (decoder == nullptr) { return 2; }
    summary all;
    pt_packet packet;
    while (pt_pkt_sync_forward(decoder) >= 0) {
        std::uint64_t offset = 0;
        pt_pkt_get_offset(decoder, &offset);
        int length = 0;
        while ((length = pt_pkt_next(decoder, &packet, sizeof packet)) > 0) {
            all.see(packet, offset);
            offset += static_cast<unsigned>(length);
        }
        if (length == -pte_eos) { break; }
        all.errors += 1;
    }
    pt_pkt_free_decoder(decoder);
    print(all, size);
    return all.errors == 0 ? 0 : 1;
}
