// SPDX-License-Identifier: BSL-1.0
#pragma once

// Checks that a rewritten trace has the packets of the original, and none of its addresses.

#include "rewrite.hpp"

#include "../common/listing.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pt_cut {

/// Reads the output, and compares it with the original packet by packet.
class output_check {
public:
    output_check(originals const& of, changes const& how, rewriter& by, byte_view out)
        : of_{of}, how_{how}, by_{by}, reader_{out, {.sync = false}} {}

    /// Compares the next packet. Call this for each packet of the original.
    void next(trace::item const& original) {
        if (found_) { return; }
        auto const now = reader_.next();
        if (now.what != trace::item_type::packet || now.packet.kind() != original.packet.kind() ||
            now.length != original.length) {
            return remains(now, "is not the packet of the original");
        }
        packet::visit([&](auto const& packet) { compare(packet, now, original); }, now.packet);
    }
    /// What is wrong, if anything.
    [[nodiscard]] auto end() -> std::optional<std::string> {
        auto const now = reader_.next();
        if (!found_ && now) { remains(now, "is not in the original"); }
        return found_;
    }

private:
    template <class Packet>
    void compare(Packet const& packet, trace::item const& now, trace::item const& original) {
        if constexpr (has_ip_field<Packet>) {
            if (packet.has_ip()) { compare_ip(now, original); }
        } else if constexpr (same_as<Packet, packet::pip>) {
            compare_page(now, how_.cr3, of_.cr3s, page_of(packet));
        } else if constexpr (same_as<Packet, packet::vmcs>) {
            compare_page(now, how_.vmcs, of_.vmcss, page_of(packet));
        } else if constexpr (same_as<Packet, packet::evd> || same_as<Packet, packet::mnt>) {
            compare_value(now, packet.template get<typename Packet::payload>());
        } else if constexpr (same_as<Packet, packet::ptw> || same_as<Packet, packet::bip>) {
            compare_value(now, packet.payload());
        }
    }

    void compare_ip(trace::item const& now, trace::item const& original) {
        if (now.ip != by_.new_ip(original.ip)) { return remains(now, "has an unexpected IP"); }
        if (how_.ip == change::map && of_.pages.has(now.ip >> ip_map::page_bits)) {
            remains(now, "has an IP in a page of the original: this address space is too full to "
                         "map it; --ip zero removes all IPs");
        }
    }
    void compare_page(trace::item const& now, change how, value_set const& all,
                      std::uint64_t page) {
        bool const is_wrong = how == change::zero ? page != 0 && page != no_vmcs
                                                  : how == change::map && all.has(page);
        if (is_wrong) { remains(now, "has a physical address of the original"); }
    }
    /// A value of the traced program can be an address, too. Values below 4096 are taken for
    /// numbers.
    void compare_value(trace::item const& now, std::uint64_t value) {
        auto const page = value >> ip_map::page_bits;
        if (page == 0) { return; }
        if (how_.ip != change::keep && of_.pages.has(page)) {
            return remains(now, "has a value in a page of the IPs of the original; " + remedy(now));
        }
        if ((how_.cr3 != change::keep && of_.cr3s.has(value & ~low_bits(5))) ||
            (how_.vmcs != change::keep && of_.vmcss.has(value))) {
            remains(now, "has a CR3 or VMCS pointer of the original; " + remedy(now));
        }
    }

    static auto name_of(trace::item const& one) -> std::string {
        return std::string{listing::name(one.packet.kind())};
    }
    static auto remedy(trace::item const& one) -> std::string {
        return "--" + name_of(one) + " zero removes it";
    }
    void remains(trace::item const& one, std::string const& what) {
        std::string offset;
        listing::append_offset(offset, one.offset);
        found_ = offset + ' ' + name_of(one) + ' ' + what;
    }

    originals const& of_;
    changes const& how_;
    rewriter& by_;
    trace::reader<> reader_;
    std::optional<std::string> found_{};
};

}  // namespace pt_cut
