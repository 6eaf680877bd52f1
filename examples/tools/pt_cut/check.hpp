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
    output_check(originals const& values, edit::value_changes const& changes,
                 replacements& replacements, byte_view out)
        : values_{values},
          changes_{changes},
          replacements_{replacements},
          reader_{out, {.sync = false}} {}

    /// Compares the next packet. Call this for each packet of the original.
    void next(trace::item const& original) {
        if (found_) { return; }
        auto const written = reader_.next();
        if (written.what != trace::item_type::packet ||
            written.packet.kind() != original.packet.kind() || written.length != original.length) {
            return report(written, "is not the packet of the original");
        }
        packet::visit([&](auto const& packet) { compare(packet, written, original); },
                      written.packet);
    }
    /// What is wrong, if anything.
    [[nodiscard]] auto end() -> std::optional<std::string> {
        auto const written = reader_.next();
        if (!found_ && written) { report(written, "is not in the original"); }
        return found_;
    }

private:
    template <class Packet>
    void compare(Packet const& packet, trace::item const& written, trace::item const& original) {
        if constexpr (has_ip_field<Packet>) {
            if (packet.has_ip()) { compare_ip(written, original); }
        } else if constexpr (same_as<Packet, packet::pip>) {
            compare_page(written, changes_.cr3, values_.cr3s,
                         packet.template get<packet::pip::CR3>());
        } else if constexpr (same_as<Packet, packet::vmcs>) {
            if (!edit::is_no_vmcs(packet)) {
                compare_page(written, changes_.vmcs, values_.vmcss,
                             packet.template get<packet::vmcs::base>());
            }
        } else if constexpr (same_as<Packet, packet::evd> || same_as<Packet, packet::mnt>) {
            compare_value(written, packet.template get<typename Packet::payload>());
        } else if constexpr (same_as<Packet, packet::ptw> || same_as<Packet, packet::bip>) {
            compare_value(written, packet.payload());
        }
    }

    void compare_ip(trace::item const& written, trace::item const& original) {
        if (written.ip != edit::replaced_ip(original.ip, changes_.ip, replacements_)) {
            return report(written, "has an unexpected IP");
        }
        if (changes_.ip == value_change::map &&
            values_.pages.has(written.ip >> ip_map::page_bits)) {
            report(written,
                   "has an IP in a page of the original: this address space is too full to "
                   "map it; --ip zero removes all IPs");
        }
    }
    void compare_page(trace::item const& written, value_change change, value_set const& all,
                      std::uint64_t page) {
        bool const is_wrong = change == value_change::zero
                                  ? page != 0
                                  : change == value_change::map && all.has(page);
        if (is_wrong) { report(written, "has a physical address of the original"); }
    }
    /// A value of the traced program can be an address, too. Values below 4096 are taken for
    /// numbers.
    void compare_value(trace::item const& written, std::uint64_t value) {
        auto const page = value >> ip_map::page_bits;
        if (page == 0) { return; }
        if (changes_.ip != value_change::keep && values_.pages.has(page)) {
            return report(written,
                          "has a value in a page of the IPs of the original; " + remedy(written));
        }
        if ((changes_.cr3 != value_change::keep && values_.cr3s.has(value & ~low_bits(5))) ||
            (changes_.vmcs != value_change::keep && values_.vmcss.has(value))) {
            report(written, "has a CR3 or VMCS pointer of the original; " + remedy(written));
        }
    }

    static auto name_of(trace::item const& item) -> std::string {
        return std::string{listing::name(item.packet.kind())};
    }
    static auto remedy(trace::item const& item) -> std::string {
        return "--" + name_of(item) + " zero removes it";
    }
    void report(trace::item const& written, std::string const& problem) {
        std::string offset;
        listing::append_offset(offset, written.offset);
        found_ = offset + ' ' + name_of(written) + ' ' + problem;
    }

    originals const& values_;
    edit::value_changes const& changes_;
    replacements& replacements_;
    trace::reader<> reader_;
    std::optional<std::string> found_{};
};

}  // namespace pt_cut
