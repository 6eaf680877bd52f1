// SPDX-License-Identifier: BSL-1.0
// Reads traces with libipt 2.0.5, writes their packets with the writer, which selects the form of
// each IP itself, and reads the result with libipt: the packets and IPs must be the same, except
// for PADs.
//
//   writer [--packets N] [--seed S] [FILE...]   the traces in the files, and at least N packets of
//                                               random ones (two million)
//
// Exit status: 0 no difference, 1 a difference, 2 wrong usage or a file that cannot be read.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include <ptspec/engine/model_kind.hpp>
#include <ptspec/trace/psb_search.hpp>
#include <ptspec/trace/write/writer.hpp>

#include <differential/streams.hpp>
#include <support/libipt.hpp>

namespace {

using namespace ptspec;
using streams::buffer;
using streams::chance;

/// A packet as libipt reads it, and the last IP after it.
struct seen {
    pt_packet packet;
    uint64_t ip;
};

auto has_ip(pt_packet const& which) -> bool {
    return which.type == ppt_tip || which.type == ppt_tip_pge || which.type == ppt_tip_pgd ||
           which.type == ppt_fup;
}

/// The packets that libipt reads, up to the end or its first error, without PADs.
auto read_by_libipt(buffer& in) -> std::vector<seen> {
    pt_config config;
    pt_config_init(&config);
    config.begin = in.data();
    config.end = in.data() + in.size();
    pt_packet_decoder* const decoder = pt_pkt_alloc_decoder(&config);
    if (decoder == nullptr || pt_pkt_sync_set(decoder, 0) < 0) { std::abort(); }
    std::vector<seen> all;
    seen one{};
    while (true) {
        std::memset(&one.packet, 0, sizeof one.packet);
        if (pt_pkt_next(decoder, &one.packet, sizeof one.packet) < 0) { break; }
        if (has_ip(one.packet)) { one.ip = test::libipt_ip_after(one.packet.payload.ip, one.ip); }
        if (one.packet.type == ppt_psb) { one.ip = 0; }
        if (one.packet.type != ppt_pad) { all.push_back(one); }
    }
    pt_pkt_free_decoder(decoder);
    return all;
}

/// Removes the end of the trace from the first packet that only one of the two decodes.
void cut(buffer& in) {
    pt_config config;
    pt_config_init(&config);
    config.begin = in.data();
    config.end = in.data() + in.size();
    pt_packet_decoder* const decoder = pt_pkt_alloc_decoder(&config);
    if (decoder == nullptr || pt_pkt_sync_set(decoder, 0) < 0) { std::abort(); }
    size_t at = 0;
    pt_packet packet;
    while (true) {
        auto const ours = packet::decode(byte_view{in}.from(at));
        int const status = pt_pkt_next(decoder, &packet, sizeof packet);
        if (!ours || status < 0 || static_cast<unsigned>(status) != ours.length()) { break; }
        at += ours.length();
    }
    pt_pkt_free_decoder(decoder);
    in.resize(at);
}

/// A sink that grows.
struct growing {
    buffer bytes{};

    auto append(byte_view more) -> bool {
        bytes.insert(bytes.end(), more.data(), more.data() + more.size());
        return true;
    }
};

void check(rule broken) {
    if (broken == rule::none) { return; }
    std::printf("the writer refuses a packet that was read: %u\n", static_cast<unsigned>(broken));
    std::exit(1);
}

/// Writes a packet. The writer selects the form of an IP.
template <class Writer, class Packet>
auto give(Writer& to, Packet const& which, uint64_t ip) -> rule {
    if constexpr (derived_from<Packet, packet::ip_packet<Packet>>) {
        if (which.has_ip()) { return to.template put_ip<Packet>(ip); }
    }
    return to.put(which);
}

auto rewritten(buffer const& in, trace::writer_options how) -> buffer {
    growing out;
    trace::writer to{out, how};
    uint64_t ip = 0;
    for (size_t at = 0; at < in.size();) {
        auto const got = packet::decode(byte_view{in}.from(at));
        ip = packet::last_ip_after(got.packet, ip);
        check(packet::visit([&](auto const& which) { return give(to, which, ip); }, got.packet));
        at += got.length();
    }
    check(to.flush());
    return out.bytes;
}

auto is_the_same(seen one, seen two) -> bool {
    if (one.packet.type != two.packet.type || one.ip != two.ip) { return false; }
    if (has_ip(one.packet)) {
        return (one.packet.payload.ip.ipc == pt_ipc_suppressed) ==
               (two.packet.payload.ip.ipc == pt_ipc_suppressed);
    }
    if (one.packet.type == ppt_pwre) {  // PKT-185: libipt reads a reserved bit as HW
        one.packet.payload.pwre.hw = two.packet.payload.pwre.hw;
    }
    if (one.packet.type == ppt_mwait) {  // PKT-183: libipt reads reserved bits as hints
        one.packet.payload.mwait.hints &= 0xFF;
        one.packet.payload.mwait.ext &= 3;
    }
    return std::memcmp(&one.packet.payload, &two.packet.payload, sizeof one.packet.payload) == 0;
}

/// The counts of a run.
struct packet_counts {
    uint64_t packets = 0;
    uint64_t ips = 0;
    uint64_t shorter = 0;  ///< IPs that were written in another form than they were read
};

void compare(buffer& in, char const* name, trace::writer_options how, packet_counts& sum) {
    auto const before = read_by_libipt(in);
    buffer out = rewritten(in, how);
    auto const after = read_by_libipt(out);
    for (size_t i = 0; i < before.size() || i < after.size(); ++i) {
        if (i >= before.size() || i >= after.size() || !is_the_same(before[i], after[i])) {
            std::printf("%s: packet %zu of %zu is not the same, or not there\n", name, i,
                        before.size());
            std::exit(1);
        }
        if (has_ip(before[i].packet)) {
            ++sum.ips;
            sum.shorter += before[i].packet.payload.ip.ipc != after[i].packet.payload.ip.ipc ? 1U
                                                                                             : 0U;
        }
    }
    sum.packets += before.size();
}

void compare_all_ways(buffer& in, char const* name, packet_counts& sum) {
    if (!in.empty()) { cut(in); }
    if (in.empty()) { return; }
    for (auto const ips : {trace::ip_choice::as_processors, trace::ip_choice::shortest}) {
        for (auto const pads : {trace::pad_policy::none, trace::pad_policy::within_words,
                                trace::pad_policy::broadwell, trace::pad_policy::skylake}) {
            compare(in, name, {.ips = ips, .pads = pads}, sum);
        }
    }
    for (auto const& of : engine::model_kinds) {
        auto const& how = of.options;
        if (how.ips <= trace::ip_choice::shortest) { continue; }  // as above
        compare(in, name, {.ips = how.ips, .tnt_capacity = how.tnt_capacity, .pads = how.pads},
                sum);
    }
}

auto read_file(char const* path) -> buffer {
    std::ifstream in{path, std::ios::binary};
    buffer all{std::istreambuf_iterator<char>{in}, {}};
    if (!in || all.empty()) {
        std::fprintf(stderr, "%s: cannot be read, or is empty\n", path);
        std::exit(2);
    }
    size_t const begin = trace::find_psb(all);
    if (begin == trace::npos) { return {}; }
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(begin));
    return all;
}

void print(char const* what, packet_counts const& sum) {
    std::printf("%s: %" PRIu64 " packets, %" PRIu64 " IPs, %" PRIu64 " of them in another form\n",
                what, sum.packets, sum.ips, sum.shorter);
}

}  // namespace

auto main(int count, char** arguments) -> int {
    uint64_t wanted = 2'000'000;
    uint64_t seed = 1;
    packet_counts files;
    for (int i = 1; i < count; ++i) {
        std::string_view const name{arguments[i]};
        if (name == "--packets" && i + 1 < count) {
            wanted = std::strtoull(arguments[++i], nullptr, 0);
        } else if (name == "--seed" && i + 1 < count) {
            seed = std::strtoull(arguments[++i], nullptr, 0);
        } else if (name.substr(0, 2) == "--") {
            std::fprintf(stderr, "usage: writer [--packets N] [--seed S] [FILE...]\n");
            return 2;
        } else {
            buffer in = read_file(arguments[i]);
            compare_all_ways(in, arguments[i], files);
        }
    }
    print("files", files);

    chance random{seed};
    packet_counts sum;
    buffer in;
    uint64_t ip = 0;
    while (sum.packets < wanted) {
        in.clear();
        if (random.flag()) { streams::put_psb(in); }
        while (in.size() < 4096) {
            if (random.flag()) {  // a TIP with a full IP close to the one before
                ip ^= random.number();
                streams::put(in, {0xCD});
                streams::put_number(in, ip, 8);
            } else {  // without packets unknown to libipt 2.0: blocks, CFE, EVD and TRIG
                streams::put_packet(in, random, random.below(26));
            }
        }
        compare_all_ways(in, "random", sum);
    }
    print("random", sum);
    return sum.ips != 0 && sum.shorter != 0 ? 0 : 1;
}
