// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <differential/used_trace.hpp>

#include <intel-pt.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

// The executed instructions of a recorded thread, as libipt's instruction flow decoder finds them.
namespace differential::recording {

/// True for INS, OUTS, MOVS, CMPS, STOS, LODS and SCAS with F2H or F3H.
inline auto is_repeated_string(std::uint8_t const* bytes, std::size_t size) -> bool {
    bool repeats = false;
    std::size_t at = 0;
    for (; at < size; ++at) {
        auto const byte = bytes[at];
        bool const is_repeat = byte == 0xF2 || byte == 0xF3;
        bool const is_segment = (byte & 0xE7) == 0x26 || byte == 0x64 || byte == 0x65;
        if (!is_repeat && !is_segment && byte != 0x66 && byte != 0x67) { break; }
        repeats = repeats || is_repeat;
    }
    if (at < size && (bytes[at] & 0xF0) == 0x40) { ++at; }  // REX
    if (!repeats || at >= size) { return false; }
    auto const opcode = bytes[at];
    return (opcode & 0xFC) == 0x6C || (opcode & 0xFC) == 0xA4 || (opcode >= 0xAA && opcode <= 0xAF);
}

/// The count and the hash of executed instructions. The iterations of a repeated string instruction
/// are one instruction.
class instruction_log {
public:
    void add(std::uint64_t ip) {
        ++count_;
        hash_ = (hash_ ^ ip) * 0x100'0000'01B3;
        last_ = ip;
    }
    /// The same, unless it is another iteration of the last instruction: then it returns false.
    auto add(std::uint64_t ip, std::uint8_t const* bytes, std::size_t size) -> bool {
        if (ip == last_ && count_ != 0 && is_repeated_string(bytes, size)) { return false; }
        add(ip);
        return true;
    }
    [[nodiscard]] auto count() const -> std::uint64_t { return count_; }
    [[nodiscard]] auto hash() const -> std::uint64_t { return hash_; }
    auto operator==(instruction_log const& other) const -> bool {
        return count_ == other.count_ && hash_ == other.hash_;
    }

    instruction_log() = default;
    instruction_log(std::uint64_t count, std::uint64_t hash) : count_{count}, hash_{hash} {}

private:
    std::uint64_t count_ = 0;
    std::uint64_t hash_ = 0xCBF2'9CE4'8422'2325;
    std::uint64_t last_ = 0;
};

/// What the decoder needs beside the trace.
struct decoder_settings {
    std::uint8_t mtc_freq = 0;
    std::uint8_t nominal = 0;
    std::uint32_t ratio_numerator = 0;    ///< CPUID.15H EBX
    std::uint32_t ratio_denominator = 0;  ///< CPUID.15H EAX
    pt_cpu cpu{};                         ///< vendor 0: unknown
    bool psb_of_enable_has_fup = false;   ///< a PSB+ before TIP.PGE has FUP or MODE.Exec
};

/// The configuration of libipt, without a trace.
inline auto config_of(decoder_settings const& with) -> pt_config {
    pt_config config;
    pt_config_init(&config);
    config.cpuid_0x15_eax = with.ratio_denominator;
    config.cpuid_0x15_ebx = with.ratio_numerator;
    config.mtc_freq = with.mtc_freq;
    config.nom_freq = with.nominal;
    config.cpu = with.cpu;
    if (with.cpu.vendor != pcv_unknown) { (void)pt_cpu_errata(&config.errata, &config.cpu); }
    if (with.psb_of_enable_has_fup) { config.errata.bdm70 = 1; }  // GEN-176
    return config;
}

/// The result for one thread.
struct reading {
    instruction_log log{};
    std::uint64_t errors = 0;
    std::uint64_t overflows = 0;
    std::vector<std::string> first_errors{};
};

extern "C" inline auto read_code(std::uint8_t* buffer, std::size_t size, pt_asid const*,
                                 std::uint64_t ip, void* context) -> int {
    auto const count = static_cast<code_of_thread*>(context)->read(ip, buffer, size);
    return count == 0 ? -pte_nomap : static_cast<int>(count);
}

/// Decodes a trace, and resynchronises after errors. The first `errors_kept` errors are returned as
/// text. Every instruction is written to `list`, if it is not null.
class flow_reader {
public:
    flow_reader(std::vector<std::uint8_t>& trace, decoder_settings const& with,
                code_pages const& pages, std::uint32_t thread, std::size_t errors_kept,
                std::FILE* list)
        : follows_versions_{pages.has_versions()},
          errors_kept_{errors_kept},
          list_{list},
          used_{follows_versions_ ? ptspec::byte_view{trace} : ptspec::byte_view{}},
          code_{pages, thread, [&](auto const& of) { return used_.when(of); }} {
        if (trace.empty()) { return; }
        auto config = config_of(with);
        config.begin = trace.data();
        config.end = trace.data() + trace.size();
        decoder_ = pt_insn_alloc_decoder(&config);
        auto* const image = decoder_ == nullptr ? nullptr : pt_insn_get_image(decoder_);
        if (image == nullptr) {
            add_error("libipt refuses the configuration");
            return;
        }
        (void)pt_image_set_callback(image, read_code, &code_);
        run();
    }
    flow_reader(flow_reader const&) = delete;
    auto operator=(flow_reader const&) -> flow_reader& = delete;
    ~flow_reader() { pt_insn_free_decoder(decoder_); }

    [[nodiscard]] auto result() const -> reading const& { return made_; }

private:
    bool follows_versions_;
    std::size_t errors_kept_;
    std::FILE* list_;
    used_trace used_;
    code_of_thread code_;
    pt_insn_decoder* decoder_ = nullptr;
    reading made_{};

    [[nodiscard]] auto offset() const -> std::uint64_t {
        std::uint64_t found = 0;
        return pt_insn_get_offset(decoder_, &found) < 0 ? 0 : found;
    }
    void add_error(std::string text) {
        if (made_.errors++ < errors_kept_) { made_.first_errors.push_back(std::move(text)); }
    }
    void add_error(int status, char const* at, std::uint64_t ip) {
        char text[160];
        (void)std::snprintf(text, sizeof text, "offset %" PRIx64 ", ip %" PRIx64 ": %s at %s",
                            offset(), ip, pt_errstr(pt_errcode(status)), at);
        add_error(text);
    }
    void run() {
        std::uint64_t last_sync = 0;
        for (bool is_first = true;; is_first = false) {
            int const status = pt_insn_sync_forward(decoder_);
            if (status == -pte_eos) { return; }
            std::uint64_t sync = 0;
            (void)pt_insn_get_sync_offset(decoder_, &sync);
            if (status < 0) { add_error(status, "a PSB+", 0); }
            if (!is_first && sync <= last_sync) { return; }
            last_sync = sync;
            if (status >= 0 && follow(status)) { return; }
        }
    }
    /// Decodes from a PSB+ to the end of the trace or to an error. Returns false at an error.
    auto follow(int status) -> bool {
        if (follows_versions_) {
            used_.restart(offset());
            code_.advance(used_.now());
        }
        pt_insn next{};
        while (status >= 0) {
            if ((status & pts_event_pending) != 0) {
                pt_event event{};
                status = pt_insn_event(decoder_, &event, sizeof event);
                if (status < 0) { return ended(status, "an event", next.ip); }
                if (event.type == ptev_overflow) { ++made_.overflows; }
                if (follows_versions_) { advance(false); }
                continue;
            }
            next.iclass = ptic_error;
            status = pt_insn_next(decoder_, &next, sizeof next);
            if (next.iclass != ptic_error) { add(next); }
        }
        return ended(status, "an instruction", next.ip);
    }
    auto ended(int status, char const* at, std::uint64_t ip) -> bool {
        if (status == -pte_eos) { return true; }
        add_error(status, at, ip);
        return false;
    }
    void add(pt_insn const& next) {
        if (made_.log.add(next.ip, next.raw, next.size) && list_ != nullptr) {
            (void)std::fprintf(list_, "%" PRIx64 "\n", next.ip);
        }
        if (follows_versions_) {
            advance(next.iclass == ptic_cond_jump || next.iclass == ptic_return);
        }
    }
    void advance(bool may_use_branch) {
        used_.advance(offset(), may_use_branch);
        code_.advance(used_.now());
    }
};

}  // namespace differential::recording
