// SPDX-License-Identifier: BSL-1.0
#pragma once

// Reads ELF files of x86-64 and 32-bit x86: the segments that are loaded, and the names of
// functions. A file may be malicious: every offset is checked, and parts outside of the file are
// ignored.

#include "../tool.hpp"
#include "function_parts.hpp"

#include <ptspec/base/address.hpp>
#include <ptspec/base/bytes.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace traced {

using namespace ptspec;

/// A PT_LOAD segment, without the bytes that are not in the file.
struct elf_segment {
    std::uint64_t address = 0;
    std::uint64_t offset = 0;  ///< in the file
    byte_view bytes{};
    bool is_executable = false;
};

/// A view of an ELF file. It borrows the bytes.
class elf_file {
public:
    /// Nothing if it is no ELF file of x86.
    static auto read(byte_view bytes) -> std::optional<elf_file> {
        elf_file made{bytes};
        if (!made.read_header()) { return std::nullopt; }
        made.read_segments();
        made.read_sections();
        return made;
    }

    [[nodiscard]] auto segments() const -> std::vector<elf_segment> const& { return segments_; }
    /// The addresses of all segments: of the first byte, and after the last one.
    [[nodiscard]] auto range() const -> std::pair<std::uint64_t, std::uint64_t> {
        if (segments_.empty()) { return {}; }
        std::uint64_t first = ~std::uint64_t{0}, end = 0;
        for (auto const& one : segments_) {
            first = std::min(first, one.address);
            end = std::max(end, one.address + one.bytes.size());
        }
        return {first, end};
    }
    /// Functions, sorted by address, one for each address.
    [[nodiscard]] auto symbols() const -> std::vector<elf_symbol> const& { return symbols_; }
    /// ET_DYN: a PIE or a shared object, which may be loaded at any address.
    [[nodiscard]] auto is_relocatable() const -> bool { return type_ == 3; }
    /// ET_CORE: an image of memory, as /proc/kcore.
    [[nodiscard]] auto is_core() const -> bool { return type_ == 4; }
    /// The build id of the linker; empty: it has none.
    [[nodiscard]] auto build_id() const -> byte_view { return build_id_; }
    /// The address of a symbol of any kind.
    [[nodiscard]] auto address_of(std::string_view name) const -> std::optional<std::uint64_t> {
        for (auto const& table : sections_) {
            if (table.type != symtab) { continue; }
            auto const count = part(table.offset, table.size).size() / symbol_size();
            for (std::uint64_t i = 0; i < count; ++i) {
                if (symbol_name(table, i) != name) { continue; }
                return word(table.offset + i * symbol_size() + (is_wide_ ? 8 : 4));
            }
        }
        return std::nullopt;
    }

private:
    struct section {
        std::uint32_t name = 0;
        std::uint32_t type = 0;
        std::uint64_t address = 0;
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
        std::uint32_t link = 0;
        std::uint64_t entry_size = 0;
        bool is_code = false;
    };
    static constexpr std::uint32_t symtab = 2, rela = 4, nobits = 8, rel = 9, dynsym = 11;
    static constexpr std::size_t max_sections = 65536;

    explicit elf_file(byte_view bytes) : bytes_{bytes} {}

    /// A number of 1 to 8 bytes; 0 outside of the file.
    [[nodiscard]] auto number(std::uint64_t at, unsigned size) const -> std::uint64_t {
        auto const bytes = part(at, size);
        return bytes.size() == size ? load_le(bytes) : 0;
    }
    /// An address or a size: 8 bytes, or 4 in files of 32 bits.
    [[nodiscard]] auto word(std::uint64_t at) const -> std::uint64_t {
        return number(at, is_wide_ ? 8 : 4);
    }
    /// Bytes of the file, without those after its end.
    [[nodiscard]] auto part(std::uint64_t offset, std::uint64_t size) const -> byte_view {
        if (offset >= bytes_.size()) { return {}; }
        auto const rest = bytes_.from(static_cast<std::size_t>(offset));
        return rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(size, rest.size())));
    }
    [[nodiscard]] auto text(section const& in, std::uint64_t at) const -> std::string_view {
        auto const all = part(in.offset, in.size);
        if (in.type == nobits || at >= all.size()) { return {}; }
        auto const* const first = reinterpret_cast<char const*>(all.data() + at);
        std::string_view const rest{first, all.size() - static_cast<std::size_t>(at)};
        return rest.substr(0, std::min<std::size_t>(rest.find('\0'), 4096));
    }

    auto read_header() -> bool {
        constexpr unsigned x86 = 3, x86_64 = 62, little_endian = 1;
        if (number(0, 4) != 0x464C'457F || number(5, 1) != little_endian) { return false; }
        is_wide_ = number(4, 1) == 2;
        type_ = static_cast<unsigned>(number(16, 2));
        auto const machine = number(18, 2);
        return machine == (is_wide_ ? x86_64 : x86) || machine == x86_64;
    }
    void read_segments() {
        auto const table = word(is_wide_ ? 32 : 28);
        auto const size = number(is_wide_ ? 54 : 42, 2);
        auto const count = number(is_wide_ ? 56 : 44, 2);
        for (std::uint64_t i = 0; i < count; ++i) {
            auto const at = table + i * size;
            constexpr std::uint64_t load = 1, note = 4;
            auto const kind = number(at, 4);
            if (kind != load && kind != note) { continue; }
            auto const flags = number(at + (is_wide_ ? 4 : 24), 4);
            auto const offset = word(at + (is_wide_ ? 8 : 4));
            auto const address = word(at + (is_wide_ ? 16 : 8));
            auto const bytes = part(offset, word(at + (is_wide_ ? 32 : 16)));
            if (kind == note) { read_notes(bytes); }
            if (kind == load && !bytes.empty()) {
                segments_.push_back({address, offset, bytes, (flags & 1) != 0});
            }
        }
    }
    /// Notes: the sizes of name and content, a type, the name, and the content, padded to 4 bytes.
    void read_notes(byte_view rest) {
        constexpr std::size_t head = 12, name_size = 4;
        while (rest.size() > head) {
            auto const name = load_le(rest.first(4));
            auto const size = load_le(rest.from(4).first(4));
            auto const type = load_le(rest.from(8).first(4));
            rest = rest.from(head);
            auto const padded_name = (name + 3) & ~std::uint64_t{3};
            auto const padded_size = (size + 3) & ~std::uint64_t{3};
            if (padded_name > rest.size() || padded_size > rest.size() - padded_name) { return; }
            auto const content = rest.from(static_cast<std::size_t>(padded_name));
            constexpr std::uint64_t gnu = 0x55'4E47, build_id = 3;  // "GNU"
            if (name == name_size && load_le(rest.first(name_size)) == gnu && type == build_id) {
                build_id_ = content.first(static_cast<std::size_t>(size));
            }
            rest = content.from(static_cast<std::size_t>(padded_size));
        }
    }
    void read_sections() {
        auto const table = word(is_wide_ ? 40 : 32);
        auto const size = number(is_wide_ ? 58 : 46, 2);
        auto const count = std::min<std::uint64_t>(number(is_wide_ ? 60 : 48, 2), max_sections);
        for (std::uint64_t i = 0; i < count; ++i) {
            auto const at = table + i * size;
            if (at >= bytes_.size()) { break; }
            sections_.push_back(
                {.name = static_cast<std::uint32_t>(number(at, 4)),
                 .type = static_cast<std::uint32_t>(number(at + 4, 4)),
                 .address = word(at + (is_wide_ ? 16 : 12)),
                 .offset = word(at + (is_wide_ ? 24 : 16)),
                 .size = word(at + (is_wide_ ? 32 : 20)),
                 .link = static_cast<std::uint32_t>(number(at + (is_wide_ ? 40 : 24), 4)),
                 .entry_size = word(at + (is_wide_ ? 56 : 36)),
                 .is_code = (word(at + 8) & 4) != 0});
        }
        names_ = static_cast<std::size_t>(number(is_wide_ ? 62 : 50, 2));
        for (auto const& one : sections_) {
            if (one.type == symtab || one.type == dynsym) { read_symbols(one); }
        }
        find_parts(symbols_, 0, [&](called_addresses& called) {
            for (auto const& one : segments_) {
                if (one.is_executable) { called.read(one.bytes, one.address); }
            }
        });
        choose_names();
        read_plt();
        choose_names();
    }
    /// Of several names for an address one is used: that of a function of known size, not weak,
    /// global, with fewer underscores, the longest.
    void choose_names() {
        auto const underscores = [](elf_symbol const& one) {
            return std::min(one.name.find_first_not_of('_'), one.name.size());
        };
        auto const key = [&](elf_symbol const& one) {
            return std::tuple{one.address,    one.size == 0,    one.is_weak,
                              !one.is_global, underscores(one), ~one.name.size()};
        };
        tool::stable_sort(symbols_,
                          [&](auto const& one, auto const& two) { return key(one) < key(two); });
        symbols_.erase(std::unique(symbols_.begin(), symbols_.end(),
                                   [](auto const& one, auto const& two) {
                                       return one.address == two.address;
                                   }),
                       symbols_.end());
    }
    [[nodiscard]] auto section_at(std::uint64_t index) const -> section const* {
        return index < sections_.size() ? &sections_[static_cast<std::size_t>(index)] : nullptr;
    }
    [[nodiscard]] auto name_of(section const& one) const -> std::string_view {
        auto const* const names = section_at(names_);
        return names == nullptr ? std::string_view{} : text(*names, one.name);
    }
    /// The name of symbol `index` of a table.
    [[nodiscard]] auto symbol_name(section const& in, std::uint64_t index) const
        -> std::string_view {
        auto const* const names = section_at(in.link);
        auto const at = in.offset + index * symbol_size();
        return names == nullptr ? std::string_view{} : text(*names, number(at, 4));
    }
    [[nodiscard]] auto symbol_size() const -> std::uint64_t { return is_wide_ ? 24 : 16; }

    /// Whether a label marks the end of a section, or is local to an assembler file.
    static auto is_no_function(std::string_view name) -> bool {
        return name[0] == '.' || name[0] == '$' || name == "etext" || name == "_etext" ||
               name == "__etext";
    }
    void read_symbols(section const& in) {
        auto const count = part(in.offset, in.size).size() / symbol_size();
        std::uint32_t unit = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            auto const at = in.offset + i * symbol_size();
            constexpr unsigned function = 2, source = 4, indirect_function = 10;
            constexpr unsigned global = 1, weak = 2;
            auto const info = number(at + (is_wide_ ? 4 : 12), 1);
            auto const kind = info & 15;
            // The local symbols of a source file follow its name. Those after an empty name were
            // global in their files.
            if (kind == source) { unit = symbol_name(in, i).empty() ? 0 : ++units_; }
            auto const defined_in = number(at + (is_wide_ ? 6 : 14), 2);
            auto const* const in_section = section_at(defined_in);
            bool const is_function = kind == function || kind == indirect_function;
            bool const is_label = kind == 0 && in_section != nullptr && in_section->is_code;
            if ((!is_function && !is_label) || defined_in == 0) { continue; }
            auto const name = symbol_name(in, i);
            if (name.empty() || (is_label && is_no_function(name))) { continue; }
            auto const address = word(at + (is_wide_ ? 8 : 4));
            auto size = word(at + (is_wide_ ? 16 : 8));
            bool const has_size = size != 0;
            // A function of unknown size ends with its section.
            if (!has_size && in_section != nullptr &&
                address - in_section->address < in_section->size) {
                size = in_section->size - (address - in_section->address);
            }
            symbols_.push_back({.address = address,
                                .size = size,
                                .name = std::string{name},
                                .is_weak = info >> 4 == weak,
                                .is_global = info >> 4 == global,
                                .is_label = is_label,
                                .has_size = has_size,
                                .unit = info >> 4 == 0 ? unit : 0});
        }
    }
    /// Names the entries of procedure linkage tables, `NAME@plt`: by the slot of the global offset
    /// table that an entry jumps to, and the relocation of that slot.
    void read_plt() {
        auto const slots = read_relocations();
        std::vector<elf_symbol> made;
        for (auto const& one : sections_) {
            auto const name = name_of(one);
            if (name != ".plt" && name != ".plt.got" && name != ".plt.sec") { continue; }
            auto const code = part(one.offset, one.size);
            constexpr std::uint64_t endbr = 0xFA1E'0FF3;  // ENDBR64; ENDBR32 has FB
            bool const is_short = name == ".plt.got" &&
                                  (load_le(code.first(4)) | 1 << 24) != (endbr | 1 << 24);
            std::size_t const entry = is_short ? 8 : 16;
            for (std::size_t at = 0; at + entry <= code.size(); at += entry) {
                auto const slot = slots.find(slot_of(code.from(at).first(entry), one.address + at));
                if (slot == slots.end()) { continue; }
                made.push_back(
                    {.address = one.address + at, .size = entry, .name = slot->second + "@plt"});
            }
        }
        symbols_.insert(symbols_.end(), made.begin(), made.end());
    }
    /// The address that the JMP of a PLT entry at `address` reads; 0: it has none.
    [[nodiscard]] auto slot_of(byte_view entry, std::uint64_t address) const -> std::uint64_t {
        constexpr std::uint64_t direct = 0x25FF, by_ebx = 0xA3FF;  // JMP [RIP+disp], JMP [EBX+disp]
        for (std::size_t i = 0; i + 6 <= entry.size(); ++i) {
            auto const opcode = load_le(entry.from(i).first(2));
            auto const displacement = load_le(entry.from(i + 2).first(4));
            if (opcode == direct) {
                return is_wide_ ? address + i + 6 + sign_extended(displacement, 32) : displacement;
            }
            if (opcode == by_ebx && !is_wide_) {
                return (global_offset_table_ + displacement) & low_bits(32);
            }
        }
        return 0;
    }
    /// The names of the functions in the global offset table, by the address of the slot.
    auto read_relocations() -> std::map<std::uint64_t, std::string> {
        std::map<std::uint64_t, std::string> made;
        for (auto const& one : sections_) {
            if (name_of(one) == ".got.plt") { global_offset_table_ = one.address; }
            if (one.type != rela && one.type != rel) { continue; }
            auto const* const symbols = section_at(one.link);
            std::uint64_t const word_size = is_wide_ ? 8 : 4;
            std::uint64_t const size = word_size * (one.type == rela ? 3 : 2);
            auto const count = part(one.offset, one.size).size() / size;
            for (std::uint64_t i = 0; i < count; ++i) {
                auto const at = one.offset + i * size;
                auto const info = word(at + word_size);
                auto const index = is_wide_ ? info >> 32 : info >> 8;
                std::string name;
                if (index != 0 && symbols != nullptr && symbols->type == dynsym) {
                    name = symbol_name(*symbols, index);
                } else if (index == 0 && one.type == rela) {
                    name = name_at(word(at + 2 * word_size));
                }
                if (!name.empty()) { made[word(at)] = name; }
            }
        }
        return made;
    }
    /// The name of the function at an address, for IRELATIVE relocations, which have no symbol.
    [[nodiscard]] auto name_at(std::uint64_t address) const -> std::string {
        auto const found = std::lower_bound(
            symbols_.begin(), symbols_.end(), address,
            [](elf_symbol const& one, std::uint64_t value) { return one.address < value; });
        return found == symbols_.end() || found->address != address ? "" : found->name;
    }

    byte_view bytes_;
    bool is_wide_ = false;
    std::uint64_t global_offset_table_ = 0;
    unsigned type_ = 0;
    std::size_t names_ = 0;
    std::uint32_t units_ = 0;  ///< source files that symbols name
    byte_view build_id_{};
    std::vector<section> sections_{};
    std::vector<elf_segment> segments_{};
    std::vector<elf_symbol> symbols_{};
};

}  // namespace traced
