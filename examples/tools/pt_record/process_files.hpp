// SPDX-License-Identifier: BSL-1.0
#pragma once

// What one process executed: its code bytes, its mappings, and its threads.

#include "../common/recorded/recording.hpp"

#include <ptspec/ports/growing_file.hpp>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include <unistd.h>

namespace pt_record {

/// The code bytes that were written to the journal, by page.
class journaled_code {
public:
    enum class result : std::uint8_t { known, added, changed };

    /// Compares bytes with the last ones for their addresses: equal; not known before, at least in
    /// part; or different. Then stores them.
    auto exchange(std::uint64_t address, byte_view bytes) -> result {
        auto found = result::known;
        for (std::size_t i = 0; i < bytes.size();) {
            auto& in = pages_[(address + i) / page_bytes];
            if (!in) { in = std::make_unique<page>(); }
            for (std::size_t at = (address + i) % page_bytes; at < page_bytes && i < bytes.size();
                 ++at, ++i) {
                if (!in->is_known[at]) {
                    found = found == result::changed ? found : result::added;
                } else if (in->bytes[at] != bytes[i]) {
                    found = result::changed;
                }
                in->bytes[at] = bytes[i];
                in->is_known[at] = true;
            }
        }
        return found;
    }

private:
    static constexpr std::size_t page_bytes = 4096;
    struct page {
        std::uint8_t bytes[page_bytes] = {};
        bool is_known[page_bytes] = {};
    };
    std::unordered_map<std::uint64_t, std::unique_ptr<page>> pages_{};
};

/// The journal and the events of a process.
///
/// A record of `PID.code` is the address, 8 bytes; the number of code bytes, 4; the thread that
/// executed them, 4; the size of its trace before, 8; and the bytes, padded with zeros to a
/// multiple of 8. All numbers are little-endian. Where code has changed, the trace shows an
/// interrupt that ends before this size: what precedes it executed the earlier bytes.
///
/// A line of `PID.events` begins with the time in nanoseconds. Then:
///
///   map TID START SIZE OFFSET MAJ:MIN INODE PATH  code of this mapping was executed; all numbers
///                                                 but the first and INODE are hexadecimal
///   fork TID NEWPID NEWTID                        the thread started a thread or a process
///   start TID                                     the thread executes its first instruction
///   exec TID PATH                                 the thread calls execve: unless it fails, the
///                                                 recording of the process ends here
///   exit TID                                      the thread ended
class process_files {
public:
    /// Creates the files of a process. Returns the errno of the first error, or 0.
    auto create(char const* directory, int process) -> int {
        process_ = process;
        auto const journal = journal_.create(path_of{directory, process, "code"}.letters);
        if (!journal) { return journal.error; }
        auto const events = events_.create(path_of{directory, process, "events"}.letters);
        return events.error;
    }
    /// Returns the errno of the first error, or 0.
    [[nodiscard]] auto close() -> int {
        int const journal = journal_.close();
        int const events = events_.close();
        return journal != 0 ? journal : events;
    }
    /// In the child after a fork: the files belong to the parent. What is in the parent's journal
    /// counts as written.
    void abandon() {
        journal_.abandon();
        events_.abandon();
        forget_mappings();
        created_at_ = changed_at_;
    }

    /// Compares code that is about to execute with what is in the journal.
    auto exchange(std::uint64_t address, byte_view bytes) -> journaled_code::result {
        return code_.exchange(address, bytes);
    }
    /// The size of the journal.
    [[nodiscard]] auto journal_size() const -> std::uint64_t { return journal_.size(); }
    /// Writes code that a thread executes to the journal.
    void add_code(std::uint64_t address, byte_view bytes, int thread, std::uint64_t offset) {
        std::uint8_t head[24];
        store_le64(head, address);
        store_le64(head + 8, std::uint64_t{bytes.size()} | static_cast<std::uint64_t>(thread)
                                                               << 32);
        store_le64(head + 16, offset);
        static constexpr std::uint8_t zeros[8] = {};
        (void)journal_.append(byte_view{head});
        (void)journal_.append(bytes);
        (void)journal_.append(byte_view{zeros}.first((8 - bytes.size() % 8) % 8));
    }
    /// Writes the mapping of an address at which code is executed, unless it was written.
    void add_mapping(std::uint64_t address, int thread) {
        if (address >= last_.start && address < last_.end) { return; }
        for (auto const& one : mappings_) {
            if (address >= one.start && address < one.end) {
                last_ = one;
                return;
            }
        }
        read_mapping(address, thread);
    }
    /// The mappings have changed.
    void forget_mappings() {
        mappings_.clear();
        last_ = {};
        changed_at_ = host_nanoseconds();
    }

    std::uint64_t unread_mappings = 0;  ///< /proc/PID/maps could not be read

    /// Writes an event of this moment.
    template <class... Arguments>
    void add_event(char const* format, Arguments... arguments) {
        add_event_at(host_nanoseconds(), format, arguments...);
    }

private:
    [[gnu::format(printf, 3, 4)]] void add_event_at(std::uint64_t time, char const* format, ...) {
        char line[4400];
        int const head = std::snprintf(line, sizeof line, "%llu ",
                                       static_cast<unsigned long long>(time));
        std::va_list arguments;
        va_start(arguments, format);
        int const body = std::vsnprintf(
            line + head, sizeof line - static_cast<std::size_t>(head) - 1, format, arguments);
        va_end(arguments);
        if (body < 0) { return; }
        std::size_t length = std::strlen(line);
        line[length++] = '\n';
        (void)events_.append(byte_view{reinterpret_cast<std::uint8_t const*>(line), length});
    }
    struct mapping {
        std::uint64_t start = 0;
        std::uint64_t end = 0;
        std::uint64_t offset = 0;
        std::uint64_t inode = 0;

        friend auto operator==(mapping const&, mapping const&) -> bool = default;
    };
    /// Writes a mapping, unless it is the last one that was written for its addresses. The first
    /// one has the time at which the process started: a trace with few TSC packets has times that
    /// lag.
    void add_mapping(mapping const& found, int thread, unsigned major, unsigned minor,
                     char const* name) {
        last_ = found;
        mappings_.push_back(found);
        if (std::find(written_.begin(), written_.end(), found) != written_.end()) { return; }
        auto const replaced = std::erase_if(written_, [&](mapping const& one) {
            return one.start < found.end && found.start < one.end;
        });
        written_.push_back(found);
        add_event_at(replaced == 0 ? created_at_ : changed_at_,
                     "map %d %llx %llx %llx %x:%x %llu %s", thread,
                     static_cast<unsigned long long>(found.start),
                     static_cast<unsigned long long>(found.end - found.start),
                     static_cast<unsigned long long>(found.offset), major, minor,
                     static_cast<unsigned long long>(found.inode), name);
    }
    void read_mapping(std::uint64_t address, int thread) {
        char path[64];
        std::snprintf(path, sizeof path, "/proc/%d/maps", process_);
        std::FILE* const maps = std::fopen(path, "re");
        if (maps == nullptr) {
            ++unread_mappings;
            return;
        }
        char line[4400];
        while (std::fgets(line, sizeof line, maps) != nullptr) {
            unsigned long long start = 0;
            unsigned long long end = 0;
            unsigned long long offset = 0;
            unsigned long long inode = 0;
            unsigned major = 0;
            unsigned minor = 0;
            int name_at = 0;
            if (std::sscanf(line, "%llx-%llx %*s %llx %x:%x %llu %n", &start, &end, &offset, &major,
                            &minor, &inode, &name_at) < 6 ||
                address < start || address >= end) {
                continue;
            }
            line[std::strcspn(line, "\n")] = '\0';
            bool const is_named = name_at != 0 && line[name_at] != '\0';
            char const* const name = is_named ? line + name_at : "//anon";
            add_mapping({start, end, offset, inode}, thread, major, minor, name);
            break;
        }
        (void)std::fclose(maps);
    }

    int process_ = 0;
    ports::growing_file journal_{};
    ports::growing_file events_{};
    journaled_code code_{};
    std::vector<mapping> mappings_{};  ///< as they are now
    std::vector<mapping> written_{};
    mapping last_{};
    std::uint64_t created_at_ = host_nanoseconds();
    std::uint64_t changed_at_ = created_at_;
};

}  // namespace pt_record
