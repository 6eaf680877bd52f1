// SPDX-License-Identifier: BSL-1.0
#pragma once

// The files with the code of a perf.data file.

#include "../trace_file.hpp"
#include "elf.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace traced {

using namespace ptspec;

/// Where the files with code are.
struct code_files {
    std::string root{};               ///< before each path
    std::string vdso{};               ///< the vDSO; empty: by its build id
    bool is_running = false;          ///< the recorded kernel is the running one: it has this vDSO
    std::string kernel{};             ///< a copy of /proc/kcore, or vmlinux
    bool kernel_is_of_start = false;  ///< the copy was made at the begin of the recording
    std::string kallsyms{};           ///< a copy of /proc/kallsyms
    std::string guest_root{};
    std::string guest_kernel{};
    std::string guest_kallsyms{};

    /// The same of guests.
    [[nodiscard]] auto of_guest() const -> code_files {
        return {.root = guest_root, .kernel = guest_kernel, .kallsyms = guest_kallsyms};
    }
    [[nodiscard]] auto has_guest() const -> bool {
        return !guest_root.empty() || !guest_kernel.empty() || !guest_kallsyms.empty();
    }
};

inline auto hex_of(byte_view bytes) -> std::string {
    constexpr char digits[] = "0123456789abcdef";
    std::string made;
    for (auto const byte : bytes) { (made += digits[byte >> 4]) += digits[byte & 15]; }
    return made;
}

/// Whether `wanted` is the path, or its last components.
inline auto is_path(std::string_view path, std::string_view wanted) -> bool {
    return path == wanted || (path.ends_with(wanted) && path.size() > wanted.size() &&
                              path[path.size() - wanted.size() - 1] == '/');
}

/// A file with code.
struct binary {
    std::unique_ptr<trace_file::memory> file{};
    std::vector<std::uint8_t> copy{};  ///< of the vDSO of this process
    std::optional<elf_file> elf{};

    [[nodiscard]] auto bytes() const -> byte_view {
        return file != nullptr ? file->bytes() : byte_view{copy};
    }
};

/// A file with code, and its addresses.
struct module {
    std::string path;
    std::uint64_t address;
    std::uint64_t size;
};

/// Where a part of a file is mapped.
struct mapped_part {
    std::uint64_t start;  ///< the address of the first byte
    std::uint64_t size;
    std::uint64_t offset;  ///< in the file
};

/// Files with code, each read once. Threads may share it.
class binaries {
public:
    explicit binaries(code_files where) : where_{std::move(where)} {}

    /// A file with this build id, in hexadecimal, or with any, if it is empty; nullptr if there is
    /// none, which is reported once.
    auto find(std::string const& path, std::string const& build_id) -> binary const* {
        std::lock_guard const held{lock_};
        auto const [at, is_new] = all_.try_emplace({path, build_id});
        if (is_new) {
            at->second = path == "[vdso]" ? read_vdso(build_id) : read_file(path, build_id);
        }
        return at->second.get();
    }
    /// A file that is used only for its names; nullptr, without a message, if it cannot be read.
    auto find_named(std::string const& path) -> binary const* {
        std::lock_guard const held{lock_};
        auto const [at, is_new] = all_.try_emplace({path, {}});
        if (is_new) { at->second = path.starts_with('/') ? read(where_.root + path) : nullptr; }
        return at->second.get();
    }
    /// Adds the names of the functions of a mapped file, and those of its debugging symbols.
    void add_names(symbols& to, binary const* from, mapped_part const& of) {
        if (from == nullptr || !from->elf) { return; }
        auto const* const debugging = find_symbols(hex_of(from->elf->build_id()));
        auto const moved = load_offset(*from->elf, of);
        if (!moved) { return; }
        to.add(*from->elf, *moved);
        to.add_code(*from->elf, *moved);
        if (debugging != nullptr && debugging->elf) { to.add(*debugging->elf, *moved); }
    }
    /// A mapped file, with all its segments if it is known.
    [[nodiscard]] static auto module_of(std::string const& path, binary const* from,
                                        mapped_part const& of) -> module {
        auto const moved = from != nullptr && from->elf ? load_offset(*from->elf, of)
                                                        : std::nullopt;
        if (!moved) { return {path, of.start, of.size}; }
        auto const [first, end] = from->elf->range();
        return {path, first + *moved, end - first};
    }
    /// Adds the functions that a JIT compiler made, from the file that it writes for perf.
    void add_map(symbols& to, std::uint64_t process) const {
        auto const path = where_.root + map_directory + "/perf-" + std::to_string(process) + ".map";
        try {
            auto const text = tool::read_all(path, std::size_t{1} << 28);
            to.add_map({reinterpret_cast<char const*>(text.data()), text.size()});
        } catch (tool::unreadable const&) { return; }
    }
    [[nodiscard]] auto where() const -> code_files const& { return where_; }

private:
    using owned = std::unique_ptr<binary>;

    /// Where perf expects the maps of JIT compilers.
    static constexpr char const* map_directory = "/tmp";

    /// The load bias: addresses in memory minus addresses in the file.
    [[nodiscard]] static auto load_offset(elf_file const& file, mapped_part const& of)
        -> std::optional<std::uint64_t> {
        for (auto const& one : file.segments()) {
            auto const in_segment = of.offset - one.offset;
            bool const is_in = one.is_executable && of.offset + of.size > one.offset &&
                               (of.offset < one.offset || in_segment < one.bytes.size());
            // The address of the file's byte `offset` is `address + offset - one.offset`.
            if (is_in) { return of.start - (one.address + in_segment); }
        }
        return std::nullopt;
    }
    /// The separate file with the debugging symbols of a file; nullptr: none.
    auto find_symbols(std::string const& build_id) -> binary const* {
        std::lock_guard const held{lock_};
        if (build_id.size() <= 2) { return nullptr; }
        auto const [at, is_new] = all_.try_emplace({{}, build_id});
        if (is_new) {
            at->second = read(where_.root + "/usr/lib/debug/.build-id/" + build_id.substr(0, 2) +
                              "/" + build_id.substr(2) + ".debug");
        }
        return at->second.get();
    }
    static auto read(std::string const& path) -> owned {
        try {
            tool::input in{path};
            if (in.size() == 0) { return nullptr; }
            auto made = std::make_unique<binary>();
            made->file = std::make_unique<trace_file::memory>(in, std::string_view{});
            made->elf = elf_file::read(made->bytes());
            return made;
        } catch (tool::unreadable const&) { return nullptr; }
    }
    /// A file of the cache of perf, as `perf record` and `perf buildid-cache` fill it.
    static auto read_cached(std::string const& build_id, std::string const& name) -> owned {
        char const* const home = std::getenv("HOME");
        if (home == nullptr || build_id.size() <= 2) { return nullptr; }
        auto made = read(std::string{home} + "/.debug/.build-id/" + build_id.substr(0, 2) + "/" +
                         build_id.substr(2) + "/" + name);
        return is_right(made, build_id) ? std::move(made) : nullptr;
    }
    static auto is_right(owned const& one, std::string const& build_id) -> bool {
        return one != nullptr &&
               (build_id.empty() || (one->elf && hex_of(one->elf->build_id()) == build_id));
    }
    auto read_file(std::string const& path, std::string const& build_id) const -> owned {
        auto made = path.starts_with('/') ? read(where_.root + path) : nullptr;  // not //anon
        if (is_right(made, build_id)) { return made; }
        if (auto cached = read_cached(build_id, "elf")) { return cached; }
        if (path.starts_with("//anon") || path.starts_with('[')) {
            tool::print_error(path +
                              ": memory of no file: its code is missing; pt_record --raw, and "
                              "pt_flow of that directory, have it");
            return nullptr;
        }
        bool const is_other = made != nullptr;
        tool::print_error(where_.root + path +
                          (is_other ? ": has another build id than the recorded file, " + build_id
                                    : ": cannot be read") +
                          ": its code is missing");
        return nullptr;
    }
    auto read_vdso(std::string const& build_id) const -> owned {
        if (!where_.vdso.empty()) {
            auto made = read(where_.vdso);
            if (is_right(made, build_id)) { return made; }
        } else if (auto cached = read_cached(build_id, "vdso")) {
            return cached;
        } else if (!build_id.empty() || where_.is_running) {
            auto own = own_vdso();
            if (is_right(own, build_id)) { return own; }
        }
        tool::print_error("[vdso]: is not the recorded one: its code is missing; see --vdso");
        return nullptr;
    }
    /// The vDSO of the running kernel.
    static auto own_vdso() -> owned {
        std::ifstream maps{"/proc/self/maps"};
        std::string line;
        while (std::getline(maps, line)) {
            unsigned long first = 0, end = 0;
            bool const is_vdso = line.ends_with("[vdso]") &&
                                 std::sscanf(line.c_str(), "%lx-%lx", &first, &end) == 2;
            if (!is_vdso) { continue; }
            auto const* const begin = reinterpret_cast<std::uint8_t const*>(first);
            auto made = std::make_unique<binary>();
            made->copy.assign(begin, begin + (end - first));
            made->elf = elf_file::read(made->bytes());
            return made;
        }
        return nullptr;
    }

    code_files where_;
    std::mutex lock_{};
    std::map<std::pair<std::string, std::string>, owned> all_{};
};

}  // namespace traced
