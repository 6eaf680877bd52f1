// SPDX-License-Identifier: BSL-1.0
#pragma once

// Replaces a function of another library in the program whose process this is.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pt_record {

#if defined(__x86_64__)

/// The tables of a loaded program, whose addresses the dynamic linker has relocated.
struct import_tables {
    char const* names = nullptr;
    ElfW(Sym) const* symbols = nullptr;
    ElfW(Rela) const* calls = nullptr;
    std::size_t calls_bytes = 0;
    ElfW(Rela) const* others = nullptr;
    std::size_t others_bytes = 0;

    explicit import_tables(ElfW(Dyn) const* at) {
        for (; at->d_tag != DT_NULL; ++at) {
            switch (at->d_tag) {
                case DT_STRTAB: names = pointer<char const>(at->d_un.d_ptr); break;
                case DT_SYMTAB: symbols = pointer<ElfW(Sym) const>(at->d_un.d_ptr); break;
                case DT_JMPREL: calls = pointer<ElfW(Rela) const>(at->d_un.d_ptr); break;
                case DT_PLTRELSZ: calls_bytes = at->d_un.d_val; break;
                case DT_RELA: others = pointer<ElfW(Rela) const>(at->d_un.d_ptr); break;
                case DT_RELASZ: others_bytes = at->d_un.d_val; break;
                default: break;
            }
        }
    }
    template <class Type>
    static auto pointer(std::uint64_t address) -> Type* {
        return reinterpret_cast<Type*>(address);  // NOLINT: as the dynamic linker has it
    }
    /// Replaces the address in each slot of a function. Returns the number of slots.
    auto replace(ElfW(Rela) const* from, std::size_t bytes, std::uint64_t base, char const* name,
                 std::uint64_t to) const -> unsigned {
        unsigned found = 0;
        for (std::size_t i = 0; from != nullptr && i < bytes / sizeof *from; ++i) {
            auto const type = ELF64_R_TYPE(from[i].r_info);
            if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) { continue; }
            auto const& symbol = symbols[ELF64_R_SYM(from[i].r_info)];
            if (std::strcmp(names + symbol.st_name, name) != 0) { continue; }
            if (store(base + from[i].r_offset, to)) { ++found; }
        }
        return found;
    }
    /// Stores to a slot, which may be read-only.
    static auto store(std::uint64_t slot, std::uint64_t value) -> bool {
        auto const size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
        auto* const page = pointer<void>(slot & ~(size - 1));
        if (::mprotect(page, size, PROT_READ | PROT_WRITE) != 0) { return false; }
        *pointer<std::uint64_t>(slot) = value;
        // The page may hold other slots, which are written later if they are bound lazily.
        return true;
    }
};

/// Calls of `name` by the main program execute `to` from now on. Returns false if it has none.
inline auto replace_import(char const* name, void (*to)()) -> bool {
    struct request {
        char const* name;
        std::uint64_t to;
        bool is_done;
    } wanted{name, reinterpret_cast<std::uint64_t>(to), false};
    auto const visit = [](::dl_phdr_info* program, std::size_t, void* data) -> int {
        auto& of = *static_cast<request*>(data);
        for (unsigned i = 0; i < program->dlpi_phnum; ++i) {
            auto const& part = program->dlpi_phdr[i];
            if (part.p_type != PT_DYNAMIC) { continue; }
            std::uint64_t const base = program->dlpi_addr;
            import_tables const tables{
                import_tables::pointer<ElfW(Dyn) const>(base + part.p_vaddr)};
            if (tables.names == nullptr || tables.symbols == nullptr) { continue; }
            of.is_done = tables.replace(tables.calls, tables.calls_bytes, base, of.name, of.to) +
                             tables.replace(tables.others, tables.others_bytes, base, of.name,
                                            of.to) !=
                         0;
        }
        return 1;  // the first one is the main program
    };
    (void)::dl_iterate_phdr(visit, &wanted);
    return wanted.is_done;
}

#else

inline auto replace_import(char const*, void (*)()) -> bool { return false; }

#endif

}  // namespace pt_record
