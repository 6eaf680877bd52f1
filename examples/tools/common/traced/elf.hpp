// SPDX-License-Identifier: BSL-1.0
#pragma once

// Reads ELF files of x86-64 and 32-bit x86: the segments that are loaded, and the names of
// functions. A file may be malicious: every offset is checked, and parts outside of the file are
// ignored.

#include "elf_symbol.hpp"

#include <ptspec/base/address.hpp>
#include <ptspec/base/bytes.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
    [[nodiscard]] auto is_64_bit_code() const -> bool { return is_x64_; }
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
        is_x64_ = machine == x86_64;
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
        find_parts(symbols_, [&](called_addresses& called) {
            for (auto const& one : segments_) {
                if (one.is_executable) { called.read(one.bytes, one.address); }
            }
        });
        choose_names(symbols_);
        read_plt();
        choose_names(symbols_);
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
    /// table that an entry jumps to, and the relocation of that slot. Entries have 8, 16 or 32
    /// bytes, and sh_entsize may be 0 or another number: the code says where they begin.
    void read_plt() {
        auto const slots = read_relocations();
        std::vector<elf_symbol> made;
        for (auto const& one : sections_) {
            auto const name = name_of(one);
            bool const is_table = name.starts_with(".plt") || name == ".iplt";
            if (one.type == nobits || !one.is_code || !is_table) { continue; }
            auto const code = part(one.offset, one.size);
            bool is_in = false;  // the last of `made` is the entry before
            for (std::size_t at = 0; at < code.size(); at += plt_alignment) {
                auto const entry = plt_entry_at(code.from(at), one.address + at);
                if (!entry.is_begin) { continue; }
                if (is_in) {
                    made.back().size = std::min(made.back().size,
                                                one.address + at - made.back().address);
                }
                auto const slot = slots.find(entry.slot);
                is_in = slot != slots.end();
                if (!is_in) { continue; }
                made.push_back({.address = one.address + at,
                                .size = std::min<std::uint64_t>(entry.max_size, code.size() - at),
                                .name = slot->second + "@plt"});
            }
        }
        symbols_.insert(symbols_.end(), made.begin(), made.end());
    }
    struct plt_entry {
        bool is_begin = false;
        std::uint64_t slot = 0;
        std::uint64_t max_size = 16;
    };
    static constexpr std::size_t plt_alignment = 8;

    /// What begins at an address of a procedure linkage table. An entry that reads its slot begins
    /// with these instructions; the first entry, which calls the dynamic linker, with another one.
    [[nodiscard]] auto plt_entry_at(byte_view code, std::uint64_t address) const -> plt_entry {
        std::size_t at = 0;
        auto const skip = [&](std::uint64_t wanted, std::size_t size, std::size_t length) {
            auto const rest = code.from(at);
            if (rest.size() >= length && load_le(rest.first(size)) == wanted) { at += length; }
        };
        skip(0xFA1E'0FF3, 4, 4);  // ENDBR64
        skip(0xFB1E'0FF3, 4, 4);  // ENDBR32
        skip(0xBB41, 2, 6);       // MOV R11D, index (mold)
        skip(0xF2, 1, 1);         // BND
        auto const rest = code.from(at);
        constexpr std::size_t length = 6;
        if (rest.size() < length) { return {}; }
        auto const opcode = load_le(rest.first(2));
        auto const value = load_le(rest.from(2).first(4));
        auto const next = address + at + length;
        constexpr std::uint64_t direct = 0x25FF, by_ebx = 0xA3FF;  // JMP [RIP+disp], JMP [EBX+disp]
        if (opcode == direct) { return {true, is_x64_ ? next + sign_extended(value, 32) : value}; }
        if (opcode == by_ebx && !is_x64_) {
            return {true, (global_offset_table_ + value) & low_bits(32)};
        }
        if (is_x64_ && rest.size() > length &&
            load_le(rest.first(3)) == 0x1D'8B4C) {  // MOV R11, [RIP+disp], of retpolines
            auto const displacement = load_le(rest.from(3).first(4));
            return {true, next + 1 + sign_extended(displacement, 32), 32};
        }
        return {};
    }
    /// The names of the functions in the global offset table, by the address of the slot.
    auto read_relocations() -> std::map<std::uint64_t, std::string> {
        std::map<std::uint64_t, std::string> made;
        std::uint64_t got = 0, got_plt = 0;
        for (auto const& one : sections_) {
            auto const name = name_of(one);
            if (name == ".got") { got = one.address; }
            if (name == ".got.plt") { got_plt = one.address; }
        }
        global_offset_table_ = got_plt != 0 ? got_plt : got;  // -z now may leave one
        for (auto const& one : sections_) {
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
                } else if (index == 0) {
                    auto const slot = word(at);
                    name = name_at(one.type == rela ? word(at + 2 * word_size) : word_in(slot));
                }
                if (!name.empty()) { made[word(at)] = name; }
            }
        }
        return made;
    }
    /// The word at an address, without relocations; 0: it is not in the file.
    [[nodiscard]] auto word_in(std::uint64_t address) const -> std::uint64_t {
        for (auto const& one : segments_) {
            auto const at = address - one.address;
            if (at < one.bytes.size()) { return word(one.offset + at); }
        }
        return 0;
    }
    /// The name of the function at an address, for IRELATIVE relocations, which have no symbol.
    [[nodiscard]] auto name_at(std::uint64_t address) const -> std::string {
        auto const found = std::lower_bound(
            symbols_.begin(), symbols_.end(), address,
            [](elf_symbol const& one, std::uint64_t value) { return one.address < value; });
        return found == symbols_.end() || found->address != address ? "" : found->name;
    }

    byte_view bytes_;
    bool is_wide_ = false;  ///< ELFCLASS64
    bool is_x64_ = false;   ///< EM_X86_64; x32 is that with ELFCLASS32
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
