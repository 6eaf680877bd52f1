// SPDX-License-Identifier: BSL-1.0
#pragma once

// A packet's fields as packet_vectors.csv spells them, derived ones included, in its order.

#include <ptspec/packet/any_packet.hpp>

namespace ptspec::test {

/// How a field's value is written.
enum class form : uint8_t {
    decimal,
    hexadecimal,
    branches,    ///< T and N, oldest first; how many is the field before
    suppressed,  ///< an IP that is not there
};

struct named_value {
    text name;
    form how = form::decimal;
    uint64_t value = 0;
};

struct field_list {
    static constexpr unsigned most = 6;
    named_value fields[most];
    unsigned count = 0;

    constexpr auto with(text name, uint64_t value, form how = form::decimal) const noexcept
        -> field_list {
        auto longer = *this;
        longer.fields[longer.count++] = {name, how, value};
        return longer;
    }
    constexpr auto with_hex(text name, uint64_t value) const noexcept -> field_list {
        return with(name, value, form::hexadecimal);
    }
};

/// The fields of each packet type; an object to visit with. IPs are rebuilt behind `last_ip`, and
/// the size of a BIP is that of the packet.
struct fields_of_packet {
    uint64_t last_ip = 0;

    constexpr auto operator()(packet::pad const&) const noexcept -> field_list { return {}; }
    constexpr auto operator()(packet::tracestop const&) const noexcept -> field_list { return {}; }
    constexpr auto operator()(packet::ovf const&) const noexcept -> field_list { return {}; }
    constexpr auto operator()(packet::psb const&) const noexcept -> field_list { return {}; }
    constexpr auto operator()(packet::psbend const&) const noexcept -> field_list { return {}; }

    constexpr auto operator()(packet::tnt_short const& one) const noexcept -> field_list {
        return of_branches(one.taken());
    }
    constexpr auto operator()(packet::tnt_long const& one) const noexcept -> field_list {
        return of_branches(one.taken());
    }

    template <class Packet>
        requires derived_from<Packet, packet::ip_packet<Packet>>
    constexpr auto operator()(Packet const& one) const noexcept -> field_list {
        auto const how = one.template get<typename Packet::IPBytes>();
        auto const out = field_list{}.with("ipbytes", underlying(how));
        return one.has_ip() ? out.with_hex("payload", one.payload()).with_hex("ip", one.ip(last_ip))
                            : out.with("ip", 0, form::suppressed);
    }

    constexpr auto operator()(packet::pip const& one) const noexcept -> field_list {
        using packet::pip;
        return field_list{}.with_hex("cr3", one.get<pip::CR3>()).with("nr", one.get<pip::NR>());
    }
    constexpr auto operator()(packet::mode_exec const& one) const noexcept -> field_list {
        using packet::mode_exec;
        return field_list{}
            .with("csl", one.get<mode_exec::CS_L>())
            .with("csd", one.get<mode_exec::CS_D>())
            .with("iflag", one.get<mode_exec::IF>())
            .with("mode", one.code_bits());
    }
    constexpr auto operator()(packet::mode_tsx const& one) const noexcept -> field_list {
        using packet::mode_tsx;
        return field_list{}
            .with("intx", one.get<mode_tsx::InTX>())
            .with("txabort", one.get<mode_tsx::TXAbort>());
    }
    constexpr auto operator()(packet::cbr const& one) const noexcept -> field_list {
        return field_list{}.with("ratio", one.get<packet::cbr::CoreBusRatio>());
    }
    constexpr auto operator()(packet::tsc const& one) const noexcept -> field_list {
        return field_list{}.with_hex("tsc", one.get<packet::tsc::TSC>());
    }
    constexpr auto operator()(packet::mtc const& one) const noexcept -> field_list {
        return field_list{}.with_hex("ctc", one.get<packet::mtc::CTC>());
    }
    constexpr auto operator()(packet::tma const& one) const noexcept -> field_list {
        using packet::tma;
        return field_list{}.with_hex("ctc", one.get<tma::CTC>()).with_hex("fc", one.get<tma::FC>());
    }
    constexpr auto operator()(packet::cyc const& one) const noexcept -> field_list {
        return field_list{}.with("value", one.value());
    }
    constexpr auto operator()(packet::vmcs const& one) const noexcept -> field_list {
        return field_list{}.with_hex("base", one.get<packet::vmcs::base>());
    }
    constexpr auto operator()(packet::mnt const& one) const noexcept -> field_list {
        return field_list{}.with_hex("payload", one.get<packet::mnt::payload>());
    }
    constexpr auto operator()(packet::ptw const& one) const noexcept -> field_list {
        using packet::ptw;
        return field_list{}
            .with("size", one.get<ptw::PayloadBytes>() == 0 ? 4 : 8)
            .with_hex("payload", one.payload())
            .with("ip", one.get<ptw::IP>());
    }
    constexpr auto operator()(packet::exstop const& one) const noexcept -> field_list {
        return field_list{}.with("ip", one.get<packet::exstop::IP>());
    }
    constexpr auto operator()(packet::mwait const& one) const noexcept -> field_list {
        using packet::mwait;
        return field_list{}
            .with_hex("hints", one.get<mwait::hints>())
            .with_hex("ext", one.get<mwait::ext>());
    }
    constexpr auto operator()(packet::pwre const& one) const noexcept -> field_list {
        using packet::pwre;
        return field_list{}
            .with("hw", one.get<pwre::HW>())
            .with("state", one.get<pwre::state>())
            .with("substate", one.get<pwre::substate>());
    }
    constexpr auto operator()(packet::pwrx const& one) const noexcept -> field_list {
        using packet::pwrx;
        return field_list{}
            .with("last", one.get<pwrx::last>())
            .with("deepest", one.get<pwrx::deepest>())
            .with_hex("reason", one.get<pwrx::reason>());
    }
    constexpr auto operator()(packet::bbp const& one) const noexcept -> field_list {
        return field_list{}
            .with("size", underlying(one.opens()))
            .with("type", one.get<packet::bbp::type>());
    }
    constexpr auto operator()(packet::bip const& one) const noexcept -> field_list {
        return field_list{}
            .with("id", one.get<packet::bip::id>())
            .with_hex("payload", one.payload());
    }
    constexpr auto operator()(packet::bep const& one) const noexcept -> field_list {
        return field_list{}.with("ip", one.get<packet::bep::IP>());
    }
    constexpr auto operator()(packet::cfe const& one) const noexcept -> field_list {
        using packet::cfe;
        return field_list{}
            .with("type", underlying(one.get<cfe::type>()))
            .with_hex("vector", one.get<cfe::vector>())
            .with("ip", one.get<cfe::IP>());
    }
    constexpr auto operator()(packet::evd const& one) const noexcept -> field_list {
        using packet::evd;
        return field_list{}
            .with("type", underlying(one.get<evd::type>()))
            .with_hex("payload", one.get<evd::payload>());
    }
    constexpr auto operator()(packet::trig const& one) const noexcept -> field_list {
        using packet::trig;
        auto const out = field_list{}
                             .with_hex("trbv", one.get<trig::TRBV>())
                             .with("ip", one.get<trig::IP>())
                             .with("icntv", one.get<trig::ICNTV>())
                             .with("mult", one.get<trig::MULT>());
        return one.get<trig::ICNTV>() ? out.with("icnt", one.ICNT()) : out;
    }

private:
    static constexpr auto of_branches(packet::branches which) noexcept -> field_list {
        return field_list{}.with("count", which.count).with("bits", which.bits, form::branches);
    }
};

/// The fields of any packet.
constexpr auto fields_of(packet::any_packet const& one, uint64_t last_ip) noexcept -> field_list {
    return visit(fields_of_packet{last_ip}, one);
}

/// A text that is made while compiling.
struct written_text {
    static constexpr unsigned most = 160;
    char letters[most] = {};
    unsigned length = 0;

    constexpr void put(char letter) noexcept { letters[length++] = letter; }
    constexpr void put(text part) noexcept {
        for (char const letter : part) { put(letter); }
    }
    constexpr void put_number(uint64_t value, unsigned base) noexcept {
        char digits[20] = {};
        unsigned count = 0;
        do {
            auto const digit = static_cast<unsigned>(value % base);
            digits[count++] = static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10);
            value /= base;
        } while (value != 0);
        while (count != 0) { put(digits[--count]); }
    }
    [[nodiscard]] constexpr auto view() const noexcept -> text { return {letters, length}; }
};

/// `name=value` joined by `;`, as in the table.
constexpr auto written(field_list const& list) noexcept -> written_text {
    written_text out;
    for (unsigned i = 0; i < list.count; ++i) {
        auto const& one = list.fields[i];
        if (i != 0) { out.put(';'); }
        out.put(one.name);
        out.put('=');
        switch (one.how) {
            case form::decimal: out.put_number(one.value, 10); break;
            case form::hexadecimal:
                out.put("0x");
                out.put_number(one.value, 16);
                break;
            case form::branches:
                for (uint64_t left = list.fields[i - 1].value; left-- != 0;) {
                    out.put((one.value >> left & 1) != 0 ? 'T' : 'N');
                }
                break;
            case form::suppressed: out.put("suppressed"); break;
        }
    }
    return out;
}

}  // namespace ptspec::test
