// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/code_segment.hpp>
#include <ptspec/flow/code.hpp>
#include <ptspec/flow/branch_kind.hpp>
#include <ptspec/trace/return_stack.hpp>
#include <ptspec/x86/decode.hpp>

/// Straight runs of code, decoded once.
namespace ptspec::flow {

using cpu::code_width;

/// The width of code in 16, 32 or 64 bits.
[[nodiscard]] constexpr auto width_of(unsigned bits) noexcept -> code_width {
    return bits == 16   ? code_width::bits_16
           : bits == 32 ? code_width::bits_32
                        : code_width::bits_64;
}
using x86::instruction_class;

/// True for a near CALL whose return may be compressed.
///
/// Source: GEN-132.
[[nodiscard]] constexpr auto is_pushing_call(instruction_class kind, uint64_t target,
                                             uint64_t after) noexcept -> bool {
    return kind == instruction_class::indirect_call ||
           (kind == instruction_class::direct_call && trace::pushes_return(target, after));
}

/// The key of a block: where it begins, and how it is decoded.
struct block_key {
    uint64_t ip = 0;
    uint32_t space = 0;
    code_width width = code_width::bits_64;

    friend constexpr auto operator==(block_key const&, block_key const&) -> bool = default;
};

/// Instructions that follow each other in memory. Only the last one has a class other than
/// `instruction_class::other`: it may branch, have a packet or end tracing.
///
/// Shape:  64 bytes. IPs are in the form of packet IPs.
struct alignas(64) block {
    static constexpr unsigned max_instructions = 32;

    block_key key{};
    uint64_t target = 0;       ///< of a direct branch
    uint64_t lengths[2] = {};  ///< 4 bits an instruction, the first in the low bits
    uint32_t slot_after = 0;   ///< places in the cache
    uint32_t slot_target = 0;
    uint16_t size = 0;  ///< in bytes
    uint8_t count = 0;  ///< instructions; 0: no block
    uint8_t last_length = 0;
    instruction_class kind = instruction_class::other;  ///< of the last instruction
    flow::branch_kind branch = flow::branch_kind::none;
    bool pushes = false;  ///< a CALL whose return may be compressed: GEN-132

    /// The address after the block.
    [[nodiscard]] constexpr auto end() const noexcept -> uint64_t {
        uint64_t const after = key.ip + size;
        return key.width == code_width::bits_64 ? after : after & low_bits(32);
    }
    /// The address of the last instruction.
    [[nodiscard]] constexpr auto last() const noexcept -> uint64_t {
        return key.ip + size - last_length;
    }
    [[nodiscard]] constexpr auto length_of(unsigned i) const noexcept -> uint8_t {
        return lengths[i / 16] >> i % 16 * 4 & 15;
    }
    /// The number of instructions before an IP of the block; 0 if no instruction begins at it.
    [[nodiscard]] constexpr auto count_before(uint64_t ip) const noexcept -> unsigned {
        uint64_t at = key.ip;
        unsigned i = 0;
        for (; i < count && at < ip; ++i) { at += length_of(i); }
        return at == ip ? i : 0;
    }
};

/// Why a block has not been decoded.
enum class block_error : uint8_t {
    none,
    missing_code,    ///< the bytes of the page at `missing` are absent
    no_instruction,  ///< no processor executes the bytes
};
struct decoded_block {
    block made{};
    block_error error = block_error::none;
    uint64_t missing = 0;  ///< a linear address
};

/// How the IPs of packets relate to linear addresses.
struct ip_form {
    cpu::ip_payload payload = cpu::ip_payload::linear;
    uint64_t cs_base = 0;  ///< outside of 64-bit code

    [[nodiscard]] constexpr auto linear_of(uint64_t ip, code_width width) const noexcept
        -> uint64_t {
        return cpu::linear_of_packet_ip(payload, segment(width), ip);
    }
    /// The target of a direct branch, as a packet would have it.
    [[nodiscard]] constexpr auto target_of(x86::instruction const& instruction, uint64_t ip,
                                           code_width width) const noexcept -> uint64_t {
        if (width == code_width::bits_64) { return x86::target_of(instruction, ip, width); }
        uint64_t const offset = cpu::offset_of_packet_ip(payload, segment(width), ip);
        return cpu::packet_ip_of_offset(payload, segment(width),
                                        x86::target_of(instruction, offset, width));
    }

    /// The target of a RET to an address that a CALL pushed, perhaps in wider code.
    ///
    /// Source: GEN-137.
    [[nodiscard]] constexpr auto popped(uint64_t pushed, code_width width) const noexcept
        -> uint64_t {
        if (width == code_width::bits_64) { return pushed; }
        uint64_t const offset = cpu::offset_of_packet_ip(payload, segment(width), pushed);
        return cpu::packet_ip_of_offset(payload, segment(width),
                                        offset & trace::popped_bits(width));
    }

private:
    [[nodiscard]] constexpr auto segment(code_width width) const noexcept -> cpu::code_segment {
        return {cs_base, width == code_width::bits_64};
    }
};

namespace detail {

using namespace ptspec::detail;

/// Decodes an instruction that may continue in another page.
template <code_source Code, same_as<block_key> Key>
[[nodiscard]] constexpr auto decode_across(Code& code, byte_view here, uint64_t address, Key key,
                                           uint64_t& missing) -> x86::decoded {
    auto const first = x86::decode(here, key.width);
    if (first.error != x86::decode_error::truncated) { return first; }
    byte_array<x86::instruction::max_bytes> bytes{};
    copy_bytes(bytes.data(), here.data(), here.size());
    byte_view const more = code.code(address + here.size(), key.space);
    if (more.empty()) {
        missing = address + here.size();
        return first;
    }
    size_t const room = x86::instruction::max_bytes - here.size();
    size_t const count = more.size() < room ? more.size() : room;
    copy_bytes(bytes.data() + here.size(), more.data(), count);
    auto const whole = x86::decode({bytes.data(), here.size() + count}, key.width);
    if (whole.error == x86::decode_error::truncated) { missing = address + here.size() + count; }
    return whole;
}

}  // namespace detail

/// Decodes the block at an IP. It ends at the first instruction of another class than `other`,
/// where the source has no more bytes, or after 32 instructions.
///
/// Errors: `block_error`, of the first instruction.
/// Source: GEN-110, GEN-111, GEN-132.
template <code_source Code>
[[nodiscard]] constexpr auto decode_block(Code& code, block_key key, ip_form const& form)
    -> decoded_block {
    decoded_block got;
    block& made = got.made;
    made.key = key;
    uint64_t const address = form.linear_of(key.ip, key.width);
    byte_view const bytes = code.code(address, key.space);
    if (bytes.empty()) { return {{}, block_error::missing_code, address}; }
    while (made.count < block::max_instructions && made.size < bytes.size()) {
        uint64_t const ip = made.end();
        byte_view const here = bytes.from(made.size);
        uint64_t missing = 0;
        auto const one = detail::decode_across(code, here, address + made.size, key, missing);
        if (!one) {
            if (made.count != 0) { break; }  // the next block reports it
            bool const is_absent = one.error == x86::decode_error::truncated;
            return {
                {}, is_absent ? block_error::missing_code : block_error::no_instruction, missing};
        }
        made.lengths[made.count / 16] |= uint64_t{one.instruction.length} << made.count % 16 * 4;
        made.count += 1;
        made.size = static_cast<uint16_t>(made.size + one.instruction.length);
        made.last_length = one.instruction.length;
        if (one.instruction.kind == instruction_class::other) { continue; }
        made.kind = one.instruction.kind;
        made.branch = branch_kind_of(one.instruction);
        if (x86::is_direct(one.instruction)) {
            made.target = form.target_of(one.instruction, ip, key.width);
        }
        made.pushes = is_pushing_call(made.kind, made.target, made.end());
        break;
    }
    return got;
}

}  // namespace ptspec::flow
