// SPDX-License-Identifier: BSL-1.0
#pragma once

// The code of the kernel and of its modules, by time.

#include "binaries.hpp"
#include "kernel_changes.hpp"
#include "symbols.hpp"

#include <ptspec/file/perf_data/bpf_programs.hpp>
#include <ptspec/file/perf_data/decoder_config.hpp>
#include <ptspec/file/perf_data/reader.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace traced {

/// A copy of the kernel's code: of /proc/kcore, or vmlinux.
class kernel_copy : public kernel_changes::base {
public:
    /// `symbol` is at `address` in the recorded kernel: for vmlinux, which was linked for another
    /// address.
    void read(std::string const& path, std::string const& symbol,
              std::optional<std::uint64_t> address, symbols& names) {
        tool::input in{path};
        file_ = std::make_unique<trace_file::memory>(in, std::string_view{});
        auto const found = elf_file::read(file_->bytes());
        if (!found) { throw tool::failure{path + ": is no ELF file of x86"}; }
        std::uint64_t offset = 0;
        is_memory = found->is_core();
        if (!is_memory) {
            auto const linked = found->address_of(symbol.empty() ? "_text" : symbol);
            if (!linked || !address) {
                throw tool::failure{path + ": its address in the recording is not known"};
            }
            offset = *address - *linked;
        }
        for (auto const& one : found->segments()) {
            if (is_memory || one.is_executable) { all_[one.address + offset] = one.bytes; }
        }
        names.add(*found, offset);
    }
    [[nodiscard]] auto at(std::uint64_t address) const -> byte_view override {
        auto next = all_.upper_bound(address);
        if (next == all_.begin()) { return {}; }
        auto const& [start, bytes] = *--next;
        auto const offset = address - start;
        return offset < bytes.size() ? bytes.from(static_cast<std::size_t>(offset)) : byte_view{};
    }
    [[nodiscard]] auto is_empty() const -> bool { return all_.empty(); }

private:
    std::unique_ptr<trace_file::memory> file_{};
    std::map<std::uint64_t, byte_view> all_{};
};

/// The code of the kernel and of its modules. Threads may share it after `open`.
class kernel_code {
public:
    /// Takes a record, in the order of time.
    void take(file::perf_data::record const& one) {
        namespace perf_data = file::perf_data;
        auto const time = one.id.time;
        if (auto const poke = perf_data::read_as<perf_data::text_poke_record>(one)) {
            bool const has_time = one.id.has.get<perf_data::sample_type::TIME>();
            changes_.poke(time, poke->addr, code_before(poke), code_after(poke), has_time);
        } else if (auto const symbol = perf_data::read_as<perf_data::ksymbol_record>(one)) {
            registered_code made;
            made.address = symbol->addr;
            made.size = symbol->len;
            made.name = tool::one_line(string_of(symbol.string()));
            made.is_bpf = symbol->ksym_type == perf_data::ksym_type::bpf;
            symbol->is_unregistered() ? changes_.unregister_code(time, std::move(made))
                                      : changes_.register_code(time, std::move(made));
        } else if (auto const bpf = perf_data::read_as<perf_data::bpf_event_record>(one)) {
            if (bpf->type == perf_data::bpf_event_type::prog_load) {
                changes_.load_program(bpf->id);
            }
        }
    }
    /// A mapping of the kernel, whose name ends with that of a symbol at `pgoff`, or of a module.
    void map(std::string const& path, std::uint64_t address, std::uint64_t size,
             std::uint64_t pgoff) {
        constexpr std::string_view kernel = "[kernel.kallsyms]";
        if (path.starts_with(kernel)) {
            if (address_) { return; }
            symbol_ = path.substr(kernel.size());
            address_ = pgoff;
        } else if (size != 0) {
            modules_[address] = {path, address, size};
        }
    }
    /// Opens the files, after the last record.
    void open(code_files const& where, file::perf_data::input const& of) {
        if (!where.kernel.empty()) { copy_.read(where.kernel, symbol_, address_, names_); }
        if (where.kernel_is_of_start) { copy_.when.last = 0; }
        if (!where.kallsyms.empty()) {
            auto const text = tool::read_all(where.kallsyms, std::size_t{1} << 28);
            names_.add_kallsyms({reinterpret_cast<char const*>(text.data()), text.size()});
        }
        names_.sort();
        read_programs(of);
        changes_.settle(copy_, [this](registered_code const& one) { return code_of(one); });
        is_traced_ = is_kernel_traced(of);
        if (is_traced_) { report_pokes(); }
        list_registered();
        make_eras();
    }

    /// Whether the code is not the same at all times.
    [[nodiscard]] auto changes() const -> bool { return is_traced_ && changes_.has_epochs(); }
    /// The epochs of the ends of a range: `code` is that of all of it.
    [[nodiscard]] auto epochs_in(time_range when) const -> std::pair<std::uint32_t, std::uint32_t> {
        return changes_.epochs_in(when);
    }
    /// The epoch of the last change.
    [[nodiscard]] auto last_epoch() const -> std::uint32_t { return changes_.epochs_in({}).second; }
    [[nodiscard]] auto code(std::uint64_t address, std::uint32_t first, std::uint32_t last)
        -> byte_view {
        std::lock_guard const held{lock_};
        auto const found = changes_.code(address, first, last);
        if (found.empty()) { report_missing(address); }
        return found;
    }
    [[nodiscard]] auto has_code() const -> bool {
        return !copy_.is_empty() || (is_traced_ && !changes_.is_empty());
    }

    // ---------------------------------------------------------------------------------- names

    /// The number of times in which all registered code at an address has one name.
    [[nodiscard]] auto eras() const -> std::uint32_t {
        return static_cast<std::uint32_t>(eras_.size());
    }
    [[nodiscard]] auto era_at(std::uint64_t time) const -> std::uint32_t {
        auto const* const last = last_before(eras_, time);
        return last == nullptr ? 0 : static_cast<std::uint32_t>(last - eras_.data());
    }
    /// The names of an era, or of all: then an address may have several.
    [[nodiscard]] auto names(std::optional<std::uint32_t> which) const -> symbols const& {
        return which && *which < eras_.size() ? *eras_[*which].names : *all_names_;
    }

private:
    struct era {
        std::uint64_t time;
        std::unique_ptr<symbols> names;
    };
    /// The maximum number of names in all eras together. Later code shares the last era.
    static constexpr std::size_t max_names = std::size_t{1} << 18;

    static auto string_of(byte_view from) -> std::string {
        return {reinterpret_cast<char const*>(from.data()), from.size()};
    }
    /// Whether the trace can have code of the kernel.
    static auto is_kernel_traced(file::perf_data::input const& of) -> bool {
        auto const config = file::perf_data::decoder_config_of(of);
        return !config || config.ctl.get<reg::ia32_rtit_ctl::OS>();
    }

    // --------------------------------------------------------------------------- BPF programs

    struct program_code {
        std::uint32_t program;
        byte_view code;
    };
    void read_programs(file::perf_data::input const& of) {
        auto all = file::perf_data::bpf_programs(of);
        while (auto const one = all.next()) {
            auto functions = functions_of(one);
            for (auto each = functions.next(); each.address != 0; each = functions.next()) {
                if (!each.code.empty()) {
                    programs_.insert({{each.address, each.size}, {one.id, each.code}});
                }
            }
        }
        if (!all.result()) {
            auto const why = describe(all.result().error);
            tool::print_error("the code of BPF programs: " + std::string{why.data(), why.size()});
        }
    }
    /// The code of a BPF program with this address and size: of those of several programs, that of
    /// the program whose loading was recorded.
    [[nodiscard]] auto code_of(registered_code const& one) const -> byte_view {
        auto const [first, end] = programs_.equal_range({one.address, one.size});
        if (first == end) { return {}; }
        bool const are_same = std::all_of(
            first, end, [&](auto const& other) { return other.second.code == first->second.code; });
        if (are_same) { return first->second.code; }
        auto const found = std::find_if(
            first, end, [&](auto const& other) { return other.second.program == one.program; });
        return found == end ? byte_view{} : found->second.code;
    }

    // ------------------------------------------------------------------------------ messages

    void report_pokes() const {
        auto const& about = changes_.about();
        if (about.pokes == 0 && about.ignored == 0) { return; }
        if (copy_.is_empty() && about.ignored == 0) { return; }
        std::string text = "the kernel's code: changes (TEXT_POKE): " +
                           std::to_string(about.pokes) +
                           ", places: " + std::to_string(about.places);
        if (about.is_compared) {
            text += about.is_of_start ? about.is_of_end ? "; the copy is of the start or of the end"
                                                        : "; the copy is of the start"
                    : about.is_of_end ? "; the copy is of the end"
                                      : "; the copy is of a time between them";
        }
        auto const number = [&](std::size_t count, char const* what) {
            if (count != 0) { text += "; " + std::to_string(count) + what; }
        };
        number(about.unmatched, copy_.is_memory
                                    ? " places have another state in the copy: their code is "
                                      "missing"
                                    : " places have another state in the file: their code is that "
                                      "of the records");
        number(about.untimed, " places change at an unknown time: their code is missing");
        number(about.ignored, " records are not of the kernel, or too large: they are ignored");
        tool::print_error(text);
    }
    /// Says once for what code is missing. Code that is absent at its time, or not known there, is
    /// not missing.
    void report_missing(std::uint64_t address) {
        if (copy_.is_empty() && !is_no_copy_reported_ && !registered_at(address)) {
            is_no_copy_reported_ = true;
            tool::print_error("the kernel: its code is missing; see --kernel");
        }
        if (auto const* const found = registered_at(address)) {
            bool const is_missing = found->code.empty() && !found->is_in_copy;
            if (is_missing) { report_missing(*found); }
            return;
        }
        auto next = modules_.upper_bound(address);
        if (next == modules_.begin() || copy_.is_empty()) { return; }
        auto const& of = std::prev(next)->second;
        if (address - of.address >= of.size || !copy_.at(address).empty()) { return; }
        say_missing(of.path + ": a module of the kernel that is not in the copy: its code is "
                              "missing; perf record --kcore has it");
    }
    void report_missing(registered_code const& of) {
        auto const size = std::to_string(of.size);
        say_missing(of.name + (of.is_bpf ? ": a BPF program of " + size +
                                               " bytes without code: perf "
                                               "record, as root and with BPF events, has it"
                                         : ": code of " + size +
                                               " bytes out of line that is not in "
                                               "the records: it is missing"));
    }
    void say_missing(std::string const& text) {
        constexpr std::size_t most = 16;
        if (said_.size() > most || !said_.insert(text).second) { return; }
        tool::print_error(said_.size() <= most ? text : "code of more of the kernel is missing");
    }
    /// The code that is registered at an address at some time: of several, one that is missing.
    [[nodiscard]] auto registered_at(std::uint64_t address) const -> registered_code const* {
        auto next = registered_.upper_bound(address);
        if (next == registered_.begin()) { return nullptr; }
        auto const* const found = std::prev(next)->second;
        return found->is_at(address) ? found : nullptr;
    }
    void list_registered() {
        for (auto const& one : changes_.codes()) {
            auto const [at, is_new] = registered_.try_emplace(one.address, &one);
            bool const is_missing = one.code.empty() && !one.is_in_copy;
            if (!is_new && is_missing) { at->second = &one; }
        }
    }

    // ---------------------------------------------------------------------------------- names

    struct named {
        elf_symbol symbol;
        std::uint64_t end;  ///< the time up to which it is registered
    };
    using named_code = std::map<std::uint64_t, named>;

    auto made_names(named_code const& from) const -> std::unique_ptr<symbols> {
        auto made = std::make_unique<symbols>();
        for (auto const& [address, one] : from) { made->add_function(one.symbol); }
        made->sort();
        made->set_others(names_);
        return made;
    }
    /// Whether a name is at an address that another one has.
    static auto contradicts(named_code const& all, elf_symbol const& one) -> bool {
        auto next = all.lower_bound(one.address);
        if (next != all.begin()) {
            auto const& before = std::prev(next)->second.symbol;
            if (one.address - before.address < before.size) { return true; }
        }
        if (next == all.end() || next->first - one.address >= one.size) { return false; }
        auto const& found = next->second.symbol;
        return found.address != one.address || found.size != one.size || found.name != one.name;
    }
    static void add_name(named_code& all, elf_symbol const& one) {
        constexpr std::size_t longest = 512;
        auto const [known, is_new] = all.try_emplace(one.address, named{one, 0});
        auto& found = known->second.symbol;
        constexpr std::string_view between = " or ";
        auto const delimited = [&](std::string const& text) {
            return std::string{between} + text + std::string{between};
        };
        bool const has_it = delimited(found.name).find(delimited(one.name)) != std::string::npos;
        if (is_new || has_it || found.name.size() > longest) { return; }
        found.name += std::string{between} + one.name;
        found.size = std::max(found.size, one.size);
    }
    /// A new era begins where registered code is at an address that had another name in the era.
    void make_eras() {
        named_code now, all;
        std::vector<registered_code const*> codes;
        for (auto const& one : changes_.codes()) { codes.push_back(&one); }
        tool::stable_sort(codes, [](auto* one, auto* two) { return one->begin < two->begin; });
        std::uint64_t begin = 0;
        std::size_t count = 0;
        for (auto const* one : codes) {
            elf_symbol const symbol{.address = one->address, .size = one->size, .name = one->name};
            add_name(all, symbol);
            if (is_traced_ && count < max_names && contradicts(now, symbol)) {
                if (one->begin != begin) { eras_.push_back({begin, made_names(now)}); }
                begin = one->begin;
                count += now.size();
                std::erase_if(now, [&](auto const& other) { return other.second.end <= begin; });
            }
            now.insert_or_assign(one->address, named{symbol, one->end});
        }
        eras_.push_back({begin, made_names(now)});
        all_names_ = made_names(all);
    }

    kernel_copy copy_{};
    std::string symbol_{};
    std::optional<std::uint64_t> address_{};
    std::map<std::uint64_t, module> modules_{};
    kernel_changes changes_{};
    std::multimap<std::pair<std::uint64_t, std::uint32_t>, program_code> programs_{};
    std::map<std::uint64_t, registered_code const*> registered_{};  ///< by address
    symbols names_{};                                               ///< of the copy and of kallsyms
    std::vector<era> eras_{};
    std::unique_ptr<symbols> all_names_{};
    bool is_traced_ = true;
    std::mutex lock_{};  ///< of what follows, and of `changes_`, after `open`
    std::set<std::string> said_{};
    bool is_no_copy_reported_ = false;
};

}  // namespace traced
