// SPDX-License-Identifier: BSL-1.0
// Fuzzes the rewriting of traces in place: `keep_part` and `rebase_tsc`.
//
//   byte 0       bit 0 the host's part, bits 2:1 where TraceEn is 1, bit 3 one VMCS, bit 4 shows
//                VM exits, bit 5 changes the TSC of the other side, bits 7:6 windows - 1
//   byte 1       the size of each window but the last
//   8 bytes      the multiplier of the TSC
//   the rest     the trace

#include <memory>
#include <vector>

#include <ptspec/edit/keep_part.hpp>
#include <ptspec/edit/rebase_tsc.hpp>

#include <fuzz/check.hpp>

namespace {

using fuzz::require;
using namespace ptspec;

constexpr uint64_t base_of_vmcs = 0x7000;

struct setting {
    edit::part_options how;
    unsigned windows;
    size_t size;
    byte_view bytes;
};

auto setting_of(fuzz::input from) -> setting {
    setting all{};
    unsigned const choice = from.byte();
    all.size = from.byte();
    all.how.keep = (choice & 1) != 0 ? edit::side::host : edit::side::guest;
    all.how.where = static_cast<edit::traced_in>((choice >> 1 & 3) % 3);
    all.how.vmcs = (choice & 8) != 0 ? base_of_vmcs : edit::part_options::any_vmcs;
    all.how.hides_exits = (choice & 16) == 0;
    all.how.has_other_tsc = (choice & 32) != 0;
    all.how.other_tsc = {.multiplier = from.number(), .offset = 5};
    all.windows = 1 + (choice >> 6);
    all.bytes = from.rest().first(4096);
    return all;
}

/// A trace in windows, each in an allocation of exactly its size.
class owned_trace {
public:
    owned_trace(setting const& what, unsigned count) {
        auto rest = what.bytes;
        for (unsigned i = 0; i < count; ++i) {
            add(i + 1 == count ? rest : rest.first(what.size));
            rest = rest.from(what.size);
        }
    }
    [[nodiscard]] auto all() const -> edit::trace_memory { return {list_.data(), list_.size()}; }
    [[nodiscard]] auto joined() const -> std::vector<uint8_t> {
        std::vector<uint8_t> bytes;
        for (auto const& one : list_) {
            bytes.insert(bytes.end(), one.first, one.first + one.size);
        }
        return bytes;
    }

private:
    void add(byte_view from) {
        auto& to = owned_.emplace_back(std::make_unique<uint8_t[]>(from.size()));
        copy_bytes(to.get(), from.data(), from.size());
        list_.push_back({to.get(), from.size()});
    }

    std::vector<std::unique_ptr<uint8_t[]>> owned_;
    std::vector<byte_window> list_;
};

/// What a trace has, in order: all kinds but PADs.
struct contents {
    std::vector<packet::kind> time;  ///< MTC and CYC
    uint64_t bytes = 0;
    uint64_t damage = 0;
};

auto contents_of(byte_view bytes) -> contents {
    contents found;
    trace::reader from{bytes};
    for (auto it = from.next(); it; it = from.next()) {
        found.damage += it.what == trace::item_type::damage ? 1U : 0U;
        if (it.what != trace::item_type::packet || it.packet.is<packet::pad>()) { continue; }
        found.bytes += it.length;
        if (it.packet.is<packet::mtc>() || it.packet.is<packet::cyc>()) {
            found.time.push_back(it.packet.kind());
        }
    }
    return found;
}

void check_part(setting const& what) {
    owned_trace const one{what, 1};
    owned_trace const many{what, what.windows};
    auto const got = edit::keep_part(one.all(), what.how);
    auto const same = edit::keep_part(many.all(), what.how);
    auto const result = one.joined();
    require(result == many.joined(), "the windows of a trace do not matter");
    require(got.broken == same.broken && got.offset == same.offset && got.kept == same.kept &&
                got.unattributed == same.unattributed && got.left == same.left,
            "nor for the result");
    require(got.hidden <= got.left, "a hidden VM exit is one");
    auto const before = contents_of(what.bytes);
    auto const after = contents_of(byte_view{result});
    require(static_cast<bool>(got) == (before.damage == 0) || got.incomplete != 0,
            "damage is reported");
    if (before.damage != 0) { return; }
    require(after.damage == 0, "packets stay packets");
    require(after.bytes == got.kept, "the bytes of packets are counted");
    require(after.time == before.time, "time goes on");
    if (what.how.keep == edit::side::guest) {
        require(edit::count_vmx_packets(one.all()) == 0, "a guest sees no VMX");
    }
}

void check_tsc(setting const& what) {
    owned_trace const one{what, 1};
    owned_trace const many{what, what.windows};
    auto const before = one.joined();
    auto const got = edit::rebase_tsc(one.all(), what.how.other_tsc);
    auto const same = edit::rebase_tsc(many.all(), what.how.other_tsc);
    auto const result = one.joined();
    require(got.broken == same.broken && got.count == same.count && got.skipped == same.skipped,
            "the windows do not matter");
    require(result == many.joined(), "nor for the bytes");
    require(got.broken == rule::none || result == before, "a refused change changes nothing");
    trace::reader old{byte_view{before}};
    trace::reader now{byte_view{result}};
    for (auto it = old.next(); it; it = old.next()) {
        auto const other = now.next();
        require(other.offset == it.offset && other.packet.kind() == it.packet.kind(),
                "packets keep their places");
        bool const changes = it.packet.is<packet::tsc>() || it.packet.is<packet::tma>();
        require(changes || other.packet == it.packet, "only time changes");
    }
}

/// The same change of a trace that comes in chunks, as from a ring. Without damage nothing differs.
void check_chunks(setting const& what) {
    owned_trace const whole{what, 1};
    owned_trace const same{what, 1};
    auto const expected = edit::rebase_tsc(whole.all(), {.offset = 5});
    auto const window = *same.all().begin();
    edit::chunked_trace<packet::tsc> chunks;
    uint64_t count = 0;
    uint64_t skipped = 0;
    size_t begin = 0;
    size_t end = 0;
    while (end != window.size) {
        end = window.size - end <= what.size ? static_cast<size_t>(window.size) : end + what.size;
        byte_window const chunk[] = {{window.first + begin, end - begin}};
        auto const got = edit::rebase_tsc(chunks, chunk, {.offset = 5});
        require(got.kept_back <= end - begin, "no more than the chunk is kept back");
        count += got.count;
        skipped += got.skipped;
        begin = end - got.kept_back;
        if (what.size == 0) { break; }
    }
    if (what.size == 0 || contents_of(what.bytes).damage != 0) { return; }
    require(same.joined() == whole.joined(), "the chunks of a trace do not matter");
    require(count == expected.count && skipped + (end - begin) >= expected.skipped,
            "all packets are changed");
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    auto const what = setting_of({data, size});
    check_part(what);
    check_tsc(what);
    check_chunks(what);
    return 0;
}
