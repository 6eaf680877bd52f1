// SPDX-License-Identifier: BSL-1.0
#include <ptspec/engine/generator.hpp>
#include <ptspec/ports/growing_file.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>

using namespace ptspec;

namespace {

/// A file in memory, and its path.
class temporary {
public:
    temporary() = default;
    temporary(temporary const&) = delete;
    auto operator=(temporary const&) -> temporary& = delete;
    ~temporary() { (void)::close(file_); }

    [[nodiscard]] auto path() const -> char const* { return path_.c_str(); }
    [[nodiscard]] auto bytes() const -> std::vector<uint8_t> {
        std::ifstream in{path_, std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }

private:
    int file_ = ::memfd_create("trace", MFD_CLOEXEC);
    std::string path_ = "/proc/self/fd/" + std::to_string(file_);
};

auto numbered(size_t count) -> std::vector<uint8_t> {
    std::vector<uint8_t> all(count);
    for (size_t i = 0; i < count; ++i) { all[i] = static_cast<uint8_t>(i * 7 + i / 251); }
    return all;
}

}  // namespace

TEST_CASE("a growing file has the appended bytes, in order, and no others") {
    temporary const at;
    ports::growing_file file;
    REQUIRE(file.create(at.path(), 4096));
    auto const all = numbered(300'000);
    size_t done = 0;
    for (size_t step = 1; done < all.size(); step = step % 13 + 1) {
        size_t const count = step < all.size() - done ? step : all.size() - done;
        byte_view const part = byte_view{all.data(), all.size()}.from(done).first(count);
        // Both overloads, in turn.
        bool const is_done = step % 2 == 0 ? file.append(part)
                                           : file.append(load_le_wide(part), count);
        REQUIRE(is_done);
        done += count;
        REQUIRE(file.size() == done);
    }
    CHECK(file.close() == 0);
    CHECK(at.bytes() == all);
}

TEST_CASE("a piece that is larger than a window is appended at once") {
    temporary const at;
    ports::growing_file file;
    REQUIRE(file.create(at.path(), 4096));
    auto const all = numbered(50'000);
    REQUIRE(file.append(byte_view{all.data(), 3}));
    REQUIRE(file.append(byte_view{all.data(), all.size()}.from(3)));
    CHECK(file.close() == 0);
    CHECK(at.bytes() == all);
}

TEST_CASE("until it is closed, zeros follow the last byte") {
    temporary const at;
    ports::growing_file file;
    REQUIRE(file.create(at.path(), 4096));
    REQUIRE(file.append(wide_bits{0x0302'01, 0}, 3));
    auto const seen = at.bytes();
    REQUIRE(seen.size() == 4096);
    CHECK(seen[0] == 1);
    CHECK(seen[2] == 3);
    for (size_t i = 3; i < seen.size(); ++i) { REQUIRE(seen[i] == 0); }
    file.abandon();
    CHECK(at.bytes().size() == 4096);
    CHECK_FALSE(file.is_open());
}

TEST_CASE("bytes for which there is no space are refused, and the rest is kept") {
    temporary const at;
    ports::growing_file file;
    REQUIRE(file.create(at.path(), 4096));
    ::rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    ::rlimit const small{10'000, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    auto const all = numbered(20'000);
    size_t done = 0;
    while (file.append(byte_view{all.data(), all.size()}.from(done).first(10))) { done += 10; }
    CHECK(done >= 8180);  // two pages, without a piece
    CHECK(done <= 10'000);
    CHECK(file.error() == EFBIG);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    // It tries again.
    CHECK(file.append(byte_view{all.data(), all.size()}.from(done).first(10)));
    CHECK(file.close() == EFBIG);
    auto expected = all;
    expected.resize(done + 10);
    CHECK(at.bytes() == expected);
}

TEST_CASE("a large window that is refused is no error if a small one is allocated") {
    temporary const at;
    ports::growing_file file;
    REQUIRE(file.create(at.path(), 4096));
    ::rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    ::rlimit const small{20'000, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    auto const all = numbered(12'500);  // the window after 12,288 bytes would end at 28,672
    bool done = true;
    for (size_t i = 0; i < all.size(); i += 10) {
        done = done && file.append(byte_view{all.data(), all.size()}.from(i).first(10));
    }
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK(done);
    CHECK(file.close() == 0);
    CHECK(at.bytes() == all);
}

TEST_CASE("after the program has closed all descriptors the file is opened again by its path") {
    temporary const at;
    ports::growing_file file;
    int const probe = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 512);
    REQUIRE(::close(probe) == 0);
    REQUIRE(file.create(at.path(), 4096));
    auto const all = numbered(30'000);
    REQUIRE(file.append(byte_view{all.data(), 100}));
    REQUIRE(::close(probe) == 0);
    CHECK(file.append(byte_view{all.data() + 100, 19'900}));
    REQUIRE(::close(probe) == 0);
    CHECK(file.append(byte_view{all.data() + 20'000, 10'000}));
    REQUIRE(::close(probe) == 0);
    CHECK(file.error() == 0);
    CHECK(file.close() == 0);
    CHECK(at.bytes() == all);
}

TEST_CASE("a file is resumed after its first bytes, and what followed them is lost") {
    temporary const at;
    auto const all = numbered(30'000);
    for (size_t const first : {size_t{0}, size_t{1}, size_t{4096}, size_t{5000}, size_t{9999}}) {
        ports::growing_file file;
        REQUIRE(file.create(at.path(), 4096));
        REQUIRE(file.append(byte_view{all.data(), first}));
        REQUIRE(file.append(byte_view{all.data(), 3000}));
        REQUIRE(file.close() == 0);
        REQUIRE(file.resume(at.path(), first, 4096));
        CHECK(file.size() == first);
        CHECK(file.append(byte_view{all.data() + first, all.size() - first}));
        CHECK(file.close() == 0);
        CHECK(at.bytes() == all);
    }
    ports::growing_file none;
    CHECK_FALSE(none.resume("/nonexistent/file", 0));
}

TEST_CASE("a descriptor whose number the program uses for another file is left alone") {
    temporary const at;
    temporary const other;
    // Descriptors are taken in order, so that the next one is known.
    int const probe = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 512);
    REQUIRE(probe >= 512);
    REQUIRE(::close(probe) == 0);
    ports::growing_file file;
    REQUIRE(file.create(at.path(), 4096));
    auto const all = numbered(10'000);
    REQUIRE(file.append(byte_view{all.data(), 100}));
    int const foreign = ::open(other.path(), O_RDWR | O_CLOEXEC);
    REQUIRE(::write(foreign, "program", 7) == 7);
    REQUIRE(::dup2(foreign, probe) == probe);
    CHECK(file.append(byte_view{all.data() + 100, all.size() - 100}));
    CHECK(file.close() == 0);
    CHECK(at.bytes() == all);
    CHECK(::write(probe, "s own", 5) == 5);
    auto const kept = other.bytes();
    CHECK(std::string{kept.begin(), kept.end()} == "programs own");
    CHECK(::close(probe) == 0);
    CHECK(::close(foreign) == 0);
}

TEST_CASE("another file at the path is left alone, and the bytes for it are refused") {
    std::string const path = std::filesystem::temp_directory_path() /
                             ("growing_file." + std::to_string(::getpid()));
    int const probe = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 512);
    REQUIRE(::close(probe) == 0);
    ports::growing_file file;
    REQUIRE(file.create(path.c_str(), 4096));
    auto const all = numbered(10'000);
    REQUIRE(file.append(byte_view{all.data(), 100}));
    REQUIRE(::unlink(path.c_str()) == 0);
    std::ofstream{path} << "other";
    REQUIRE(::close(probe) == 0);
    CHECK_FALSE(file.append(byte_view{all.data(), all.size()}));
    CHECK(file.error() == EBADF);
    CHECK(file.close() == EBADF);
    CHECK(std::filesystem::file_size(path) == 5);
    CHECK(::unlink(path.c_str()) == 0);
}

TEST_CASE("a file that cannot be created is an error, and takes no bytes") {
    ports::growing_file file;
    CHECK(file.create("/no such directory/file").error == ENOENT);
    CHECK_FALSE(file.is_open());
    CHECK_FALSE(file.append(wide_bits{1, 0}, 1));
    CHECK(file.size() == 0);
}
