// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace ptspec::test {

/// A new folder, which is removed at the end of its life.
class scratch_folder {
public:
    /// In memory, where fsync is fast, if this machine has such a folder.
    static auto in_memory() -> std::filesystem::path {
        std::error_code none;
        std::filesystem::path const memory{"/dev/shm"};
        bool const is_usable = std::filesystem::is_directory(memory, none) &&
                               ::access(memory.c_str(), W_OK) == 0;
        return is_usable ? memory : std::filesystem::temp_directory_path();
    }

    explicit scratch_folder(
        std::filesystem::path const& parent = std::filesystem::temp_directory_path()) {
        // mkdtemp replaces the last six letters.
        auto name = (parent / "ptspec.XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) { std::perror(name.c_str()), std::abort(); }
        folder_ = name;
    }
    scratch_folder(scratch_folder const&) = delete;
    auto operator=(scratch_folder const&) -> scratch_folder& = delete;
    ~scratch_folder() { std::filesystem::remove_all(folder_); }

    [[nodiscard]] auto path() const -> std::string { return folder_.string(); }
    [[nodiscard]] auto path(std::string const& name) const -> std::string {
        return (folder_ / name).string();
    }
    /// Writes a file, which only its owner may read, and the folders above it. Returns its path.
    auto write(std::string const& name, std::string const& content) const -> std::string {
        auto const whole = folder_ / std::filesystem::path{name}.relative_path();
        std::filesystem::create_directories(whole.parent_path());
        std::ofstream{whole, std::ios::binary} << content;
        (void)::chmod(whole.c_str(), S_IRUSR | S_IWUSR);
        return whole.string();
    }
    /// The content of a file; empty if there is none.
    [[nodiscard]] auto read(std::string const& name) const -> std::string {
        std::ifstream in{folder_ / name, std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }

private:
    std::filesystem::path folder_{};
};

}  // namespace ptspec::test
