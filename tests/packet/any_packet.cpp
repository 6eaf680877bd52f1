// SPDX-License-Identifier: BSL-1.0
#include <ptspec/packet/any_packet.hpp>

#include <support/check_twice.hpp>
#include <support/packet_samples.hpp>
#include <support/reference_decoder.hpp>

#include <type_traits>

using namespace ptspec;
using namespace ptspec::packet;
using test::all_contexts;
using test::hex;

namespace {

template <class... Packets>
constexpr auto kind_of_each(type_list<Packets...>) -> bool {
    return ((any_packet{Packets{}, 1}.kind() == Packets::about.id) && ...);
}

/// True if is<Packet>() holds only for the packet's own type.
template <class... Packets>
constexpr auto is_one_only(any_packet const& packet, type_list<Packets...>) -> bool {
    return ((packet.is<Packets>() == (Packets::about.id == packet.kind())) && ...) &&
           (unsigned{packet.is<Packets>()} + ...) == 1;
}

/// True if a visitor was called with the type that packets.csv names for a packet.
constexpr auto is_named_for = []<class Packet>(Packet const&, kind which) -> bool {
    return ptspec::name_of<Packet>() == test::row_of(which).cpp_name;
};

/// The block context after a packet, from the column of packets.csv.
constexpr auto expected_block_after(kind id, test::hex_bytes const& bytes, block before) -> block {
    switch (test::row_of(id).block) {
        case test::packet_block::keeps: return before;
        case test::packet_block::clears: return block::none;
        case test::packet_block::sets: break;
    }
    return bytes.bytes[2] >= 0x80 ? block::items_of_4 : block::items_of_8;
}

}  // namespace

TEST_CASE("any_packet is at most 24 bytes and trivially copyable") {
    static_assert(sizeof(any_packet) <= 24);
    static_assert(std::is_trivially_copyable_v<any_packet>);
}

TEST_CASE("a default-constructed any_packet is no packet") {
    CHECK_TWICE([](auto value) {
        auto const packet = value(any_packet{});
        unsigned visited = 0;
        visit([&](auto const&) { ++visited; }, packet);
        return packet.kind() == kind::none && name_of(packet.kind()) == "no packet" &&
               packet.length() == 0 && packet.raw() == wide_bits{} && !packet.template is<pad>() &&
               packet != any_packet{pad{}} && visited == 0;
    });
}

TEST_CASE("a packet may have only its kind") {
    CHECK_TWICE([](auto value) {
        packet::any_packet const one = packet::any_packet::of_kind(value(packet::kind::ptw));
        return one.kind() == packet::kind::ptw && one.length() == 0 && one.raw() == wide_bits{};
    });
}

TEST_CASE("an any_packet is made from its parts") {
    CHECK_TWICE([](auto value) {
        any_packet const one{kind::cbr, value(wide_bits{0x18'0302, 0}), 4};
        return one == any_packet{cbr{0x18'0302}} && one.kind() == kind::cbr && one.length() == 4 &&
               one.raw() == wide_bits{0x18'0302, 0};
    });
}

TEST_CASE("an any_packet has the kind, the length and the bytes of its packet") {
    static_assert(kind_of_each(all{}));
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            for (auto const items : all_contexts) {
                if (!sample.stands_in(items)) { continue; }
                auto const packet = decode(sample.bytes, {.block = items}).packet;
                good = good && packet.kind() == sample.id &&
                       packet.length() == sample.bytes.size() &&
                       packet.raw() == sample.bytes.number() && is_one_only(packet, all{});
            }
        }
        return good;
    });
}

TEST_CASE("an any_packet contains no bytes after its packet") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            if (!sample.stands_in(block::none)) { continue; }
            auto longer = sample.bytes;
            while (longer.size() < 16) { longer = longer.and_then(0xFF); }
            good = good && decode(longer).packet.raw() == sample.bytes.number();
        }
        return good;
    });
}

TEST_CASE("the length of a packet follows from its bits; for BIP it follows from the block") {
    static_assert(!std::is_constructible_v<any_packet, bip>);
    static_assert(std::is_constructible_v<any_packet, tip>);
    CHECK_TWICE([](auto value) {
        return any_packet{value(tip::of(ip_bytes::full, 1))}.length() == 9 &&
               any_packet{value(cyc::of(1, 4))}.length() == 4 &&
               any_packet{value(psb{})}.length() == 16 &&
               any_packet{value(ptw{}.with(ptw::PayloadBytes{1}))}.length() == 10 &&
               any_packet{value(bip{}), 9}.length() == 9;
    });
}

TEST_CASE("as() returns the same packet, for narrow and wide packets") {
    CHECK_TWICE([](auto value) {
        auto const narrow = value(pip{}.with(pip::CR3{0x1000}, pip::NR{true}));
        auto const wide = value(evd{}.with(evd::payload{~uint64_t{0}}));
        return any_packet{narrow}.template as<pip>() == narrow &&
               any_packet{wide}.template as<evd>() == wide &&
               any_packet{wide}.raw() == wide_bits{0xFFFF'FFFF'FF00'5302, 0xFF'FFFF};
    });
}

TEST_CASE("any_packets are equal if bytes, kind and length are equal") {
    CHECK_TWICE([](auto value) {
        auto const one = value(any_packet{bip{}, 5});
        return one == any_packet{bip{}, 5} && one != any_packet{bip{}, 9} &&
               one != any_packet{bip{}.with(bip::id{1}), 5} &&
               any_packet{mode_exec{}} != any_packet{mode_exec{uint64_t{0x0199}}} &&
               any_packet{tnt_short{uint64_t{0}}, 1} != any_packet{pad{}, 1};
    });
}

TEST_CASE("visit calls with the right type and bits and returns the visitor's result") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            auto const items = sample.a_context();
            auto const packet = decode(sample.bytes, {.block = items}).packet;
            good = good &&
                   visit([&](auto const& one) { return is_named_for(one, sample.id); }, packet) &&
                   visit([](auto const& one) { return to_wide(one.raw); }, packet) ==
                       sample.bytes.number();
        }
        return good;
    });
}

TEST_CASE("visit calls a void visitor exactly once") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            unsigned calls = 0;
            bool named = false;
            visit(
                [&](auto const& one) {
                    ++calls;
                    named = is_named_for(one, sample.id);
                },
                any_packet{decode(sample.bytes, {.block = sample.a_context()}).packet});
            good = good && calls == 1 && named;
        }
        return good;
    });
    static_assert(std::is_void_v<decltype(visit([](auto const&) {}, any_packet{}))>);
}

TEST_CASE("a packet that is not in the list is not visited") {
    CHECK_TWICE([](auto value) {
        using few = type_list<mtc, tsc>;
        unsigned calls = 0;
        visit<few>([&](auto const&) { ++calls; }, value(any_packet{pad{}}));
        visit<few>([&](auto const&) { ++calls; }, value(any_packet{tsc{}}));
        auto const nine = [](auto const&) { return 9; };
        return calls == 1 && visit<few>(nine, value(any_packet{pad{}})) == 0 &&
               visit<few>(nine, value(any_packet{mtc{}})) == 9;
    });
}

// ------------------------------------------------------------------------------------ context

TEST_CASE("block_after gives the context after each packet, typed or not (PKT-205, PKT-206)") {
    CHECK_TWICE([](auto value) {
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            for (auto const before : all_contexts) {
                if (!sample.stands_in(before)) { continue; }
                auto const packet = decode(sample.bytes, {.block = before}).packet;
                auto const after = expected_block_after(sample.id, sample.bytes, before);
                good = good && block_after(packet, before) == after &&
                       visit([=](auto const& one) { return block_after(one, before); }, packet) ==
                           after;
            }
        }
        return good;
    });
}

TEST_CASE("a BBP opens a block, also inside another block, and BEP closes it (PKT-205, PKT-206)") {
    CHECK_TWICE([](auto value) {
        // BBP with items of 4, an item, BBP with items of 8, an item, MTC, BEP. After these the BIP
        // byte is a TNT.short.
        auto const bytes = value(hex("026381 0C11223344 026304 0C11223344"));
        auto const more = value(hex("55667788 5980 0233 0C"));
        test::hex_bytes const parts[] = {bytes, more};
        uint8_t all_bytes[48] = {};
        size_t count = 0;
        for (auto const& part : parts) {
            for (size_t i = 0; i < part.size(); ++i) { all_bytes[count++] = part.bytes[i]; }
        }
        kind const expected[] = {kind::bbp, kind::bip, kind::bbp,      kind::bip,
                                 kind::mtc, kind::bep, kind::tnt_short};
        block now = block::none;
        size_t at = 0;
        bool good = true;
        for (auto const id : expected) {
            auto const one = decode(byte_view{all_bytes, count}.from(at), {.block = now});
            good = good && one && one.packet.kind() == id;
            now = block_after(one.packet, now);
            at += one.length();
        }
        return good && at == count && now == block::none;
    });
}

TEST_CASE("only IP packets and PSB change the last IP (PKT-059..061, PKT-068)") {
    CHECK_TWICE([](auto value) {
        uint64_t const before = value(uint64_t{0xFFFF'FFFF'8123'4567});
        bool good = true;
        for (unsigned i = 0; i < test::packet_sample_count; ++i) {
            auto const sample = value(test::packet_samples[i]);
            auto const items = sample.a_context();
            auto const expected = reference::last_ip_after(
                reference::decode(sample.bytes.data(), sample.bytes.size(), underlying(items),
                                  false, before),
                before);
            auto const packet = decode(sample.bytes, {.block = items}).packet;
            good = good && last_ip_after(packet, before) == expected &&
                   visit([=](auto const& one) { return last_ip_after(one, before); }, packet) ==
                       expected;
        }
        return good;
    });
}

TEST_CASE("PSB sets the last IP to 0 and OVF keeps it (PKT-060, PKT-061)") {
    CHECK_TWICE([](auto value) {
        uint64_t const before = value(uint64_t{0x1234'5678'9ABC});
        auto const after_psb = last_ip_after(psb{}, before);
        auto const after_ovf = last_ip_after(ovf{}, before);
        auto const next = tip::of(ip_bytes::update_16, 0x1000);
        return after_psb == 0 && next.ip(after_psb) == 0x1000 && after_ovf == before &&
               next.ip(after_ovf) == 0x1234'5678'1000;
    });
}
