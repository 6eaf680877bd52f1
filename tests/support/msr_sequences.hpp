// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/cpu/presets.hpp>
#include <ptspec/engine/trace_unit.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

// Sequences of MSR accesses as text, and a processor that executes them.
//
// Statements end with the line or with `;`. Numbers are hexadecimal, `?` is any value:
//   WRMSR(idx,value)   RDMSR(idx)->value   CPUID(leaf,sub)->a b c d   [VMXON]   [VMXOFF]
// An access followed by ` #GP RULE` faults. Other words in brackets are ignored, and so are
// comments, which begin with `#` and end with the line, except these:
//   # ToPA table[i] = entry     the contents of a table
//   # event: .. aux=N pages writable|overwrite watermark=N ..     a ring of N (decimal) pages
//   ## S3 ..     a cold reset
namespace ptspec::test::sequences {

using std::string_view;

enum class kind : std::uint8_t {
    unreadable,
    wrmsr,
    rdmsr,
    cpuid,
    vmxon,
    vmxoff,
    cold_reset,
    entry,
    ring,
    comment
};

/// A statement. The meaning of its numbers depends on its kind.
struct statement {
    kind what = kind::unreadable;
    string_view text{};
    std::uint64_t index = 0;       ///< MSR, CPUID leaf (the subleaf is `values[0]`), or index of a
                                   ///< table entry
    std::uint64_t value = 0;       ///< value of an MSR or an entry
    std::uint64_t values[5] = {};  ///< CPUID registers; pages and watermark in bytes of a ring
    bool any = false;              ///< `?`: any value matches
    bool overwrites = false;       ///< ring in overwrite mode
    string_view broken{};          ///< the rule by which it faults

    /// A WRMSR that sets TraceEn.
    [[nodiscard]] constexpr auto enables() const -> bool {
        return what == kind::wrmsr && index == 0x570 && broken.empty() && (value & 1) != 0;
    }
};

/// Reads tokens from the front of a text.
struct cursor {
    string_view rest;
    bool good = true;

    constexpr auto accept(string_view word) -> bool {
        bool const is_there = rest.substr(0, word.size()) == word;
        if (is_there) { rest.remove_prefix(word.size()); }
        return is_there;
    }
    constexpr void expect(string_view word) { good = accept(word) && good; }
    constexpr void skip_to(string_view word) {
        auto const at = rest.find(word);
        good = good && at != string_view::npos;
        rest.remove_prefix(at == string_view::npos ? rest.size() : at + word.size());
    }
    constexpr auto number(unsigned base = 16) -> std::uint64_t {
        std::uint64_t value = 0;
        std::size_t count = 0;
        for (; count < rest.size(); ++count) {
            char const c = rest[count];
            bool const is_letter = base == 16 && c >= 'A' && c <= 'F';
            if ((c < '0' || c > '9') && !is_letter) { break; }
            value = value * base + static_cast<unsigned>(is_letter ? c - 'A' + 10 : c - '0');
        }
        rest.remove_prefix(count);
        good = good && count != 0 && count <= 16;
        return value;
    }
};

constexpr auto read_comment(statement& made, cursor from) -> bool {
    made.what = kind::comment;
    if (from.accept("## S3")) {
        made.what = kind::cold_reset;
    } else if (from.accept("# ToPA ")) {
        made.what = kind::entry;
        made.values[0] = from.number();
        from.expect("[");
        made.index = from.number();
        from.expect("] = ");
        made.value = from.number();
        from.good = from.good && from.rest.empty();
    } else if (from.accept("# event:")) {
        // If the driver rejected the event, there is no ring.
        bool const is_refused = from.rest.find("-> -") != string_view::npos;
        made.what = is_refused ? kind::comment : kind::ring;
        from.skip_to(" aux=");
        made.values[0] = from.number(10);
        from.expect(" pages ");
        made.overwrites = from.accept("overwrite");
        if (!made.overwrites) { from.expect("writable"); }
        from.expect(" watermark=");
        made.values[1] = from.number(10);
    }
    return from.good;
}
constexpr auto read_access(statement& made, cursor from) -> bool {
    bool const is_wrmsr = from.accept("WRMSR(");
    bool const is_cpuid = !is_wrmsr && from.accept("CPUID(");
    if (!is_wrmsr && !is_cpuid) { from.expect("RDMSR("); }
    made.what = is_wrmsr ? kind::wrmsr : is_cpuid ? kind::cpuid : kind::rdmsr;
    made.index = from.number();
    if (is_wrmsr) {
        from.expect(",");
        made.value = from.number();
        from.expect(")");
    } else if (is_cpuid) {
        from.expect(",");
        made.values[0] = from.number();
        from.expect(")->");
        for (std::size_t i = 1; i < 5; ++i) {
            if (i != 1) { from.expect(" "); }
            made.values[i] = from.number();
        }
    } else {
        from.expect(")");
        if (from.accept("->")) {
            made.any = from.accept("?");
            if (!made.any) { made.value = from.number(); }
        } else {
            from.good = from.good && from.rest.substr(0, 4) == " #GP";
        }
    }
    if (from.accept(" #GP ")) {
        made.broken = from.rest;
        from.rest = {};
    }
    return from.good && from.rest.empty();
}

/// Takes the next statement from a text that is not empty.
constexpr auto cut(string_view& text) -> statement {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) {
        text.remove_prefix(1);
    }
    bool const is_comment = !text.empty() && text.front() == '#';
    auto const end = text.find_first_of(is_comment ? "\n" : "\n;");
    auto const line = text.substr(0, end);
    text.remove_prefix(end == string_view::npos ? text.size() : end + 1);

    statement made;
    made.text = line;
    bool good = true;
    if (line.empty() || is_comment) {
        good = read_comment(made, {line});
    } else if (line.front() == '[') {
        good = line.back() == ']';
        made.what = line == "[VMXON]"    ? kind::vmxon
                    : line == "[VMXOFF]" ? kind::vmxoff
                                         : kind::comment;
    } else {
        good = read_access(made, {line});
    }
    if (!good) { made.what = kind::unreadable; }
    return made;
}

/// The memory for trace output: tables can be read, stored trace is discarded, and PMIs are
/// counted. Words that were not put read as 0.
class table_memory {
public:
    constexpr auto load(std::uint64_t address) const noexcept -> port_value {
        for (std::size_t i = 0; i < count_; ++i) {
            if (words_[i].address == address) { return {true, words_[i].value}; }
        }
        return {true, 0};
    }
    constexpr auto store(std::uint64_t, byte_view from) const noexcept -> std::size_t {
        return from.size();
    }
    constexpr void raise() noexcept { ++raised; }

    constexpr void put(std::uint64_t address, std::uint64_t value) {
        for (std::size_t i = 0; i < count_; ++i) {
            if (words_[i].address == address) {
                words_[i].value = value;
                return;
            }
        }
        if (count_ < most) { words_[count_++] = {address, value}; }
    }
    [[nodiscard]] constexpr auto has(std::uint64_t address) const -> bool {
        for (std::size_t i = 0; i < count_; ++i) {
            if (words_[i].address == address) { return true; }
        }
        return false;
    }

    std::uint64_t raised = 0;  ///< PMIs that are not acknowledged yet

private:
    struct word {
        std::uint64_t address = 0;
        std::uint64_t value = 0;
    };
    static constexpr std::size_t most = 64;
    word words_[most] = {};
    std::size_t count_ = 0;
};

/// A processor in kernel mode, and its memory.
struct processor {
    static constexpr std::uint64_t kernel = 0xFFFF'FFFF'8100'0000;

    explicit constexpr processor(
        cpu::capabilities const& of,
        engine::model_options const& how = engine::options_of(engine::model_kind::manual))
        : unit{of, {.cr3 = 0x1000}, kernel, how} {}

    table_memory memory{};
    engine::trace_unit<> unit;

    template <class Event>
    constexpr void on(Event const& e) {
        (void)unit.on(e, memory);
    }

    /// Executes an access. Returns false when the result differs from the statement.
    constexpr auto does(statement const& what) -> bool {
        auto const here = unit.ip();
        switch (what.what) {
            case kind::unreadable: return false;
            case kind::wrmsr: return check_wrmsr(what, here);
            case kind::rdmsr: return check_rdmsr(what);
            case kind::cpuid: return check_cpuid(what);
            case kind::vmxon: on(engine::action::vmxon{here, here + 4}); break;
            case kind::vmxoff: on(engine::action::vmxoff{here + 3}); break;
            case kind::cold_reset: unit.cold_reset(unit.state().code, here); break;
            case kind::entry: memory.put(what.values[0] + 8 * what.index, what.value); break;
            case kind::ring:
            case kind::comment: break;
        }
        return true;
    }
    /// The value of RDMSR, or of an MSR outside of Intel PT that the processor has.
    [[nodiscard]] constexpr auto value_of(std::uint64_t index) -> std::uint64_t {
        if (index == 0x485) { return unit.state().caps.vmx_misc.raw; }
        if (index == 0xCE) { return unit.state().caps.platform_info.raw; }
        return unit.rdmsr(static_cast<std::uint32_t>(index)).value;
    }

private:
    constexpr auto check_wrmsr(statement const& what, std::uint64_t here) -> bool {
        using outcome = engine::access_outcome;
        auto const index = static_cast<std::uint32_t>(what.index);
        auto const done = unit.wrmsr(
            {.index = index, .value = what.value, .at = here, .next = here + 2}, memory);
        if (!what.broken.empty()) {
            return done.what == outcome::general_protection && is(done.broken, what.broken);
        }
        if (index == 0x390) { memory.raised = 0; }
        return done.what == (access::is_covered_msr(index) ? outcome::done : outcome::not_covered);
    }
    constexpr auto check_rdmsr(statement const& what) -> bool {
        auto const index = static_cast<std::uint32_t>(what.index);
        if (!what.broken.empty()) { return is(unit.rdmsr(index).verdict.broken, what.broken); }
        bool const is_raised = index != 0x38E || (memory.raised != 0) == (what.value != 0);
        return is_raised && (what.any || value_of(index) == what.value);
    }
    [[nodiscard]] constexpr auto check_cpuid(statement const& what) const -> bool {
        auto const& of = unit.state().caps;
        auto const is = [&](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
            return what.values[1] == a && what.values[2] == b && what.values[3] == c &&
                   what.values[4] == 0;
        };
        if (what.index == 0x15) {
            return is(of.leaf_15_eax.raw, of.leaf_15_ebx.raw, of.leaf_15_ecx.raw);
        }
        return what.index == 0x14 &&
               (what.values[0] == 0
                    ? is(of.leaf_14_0_eax.raw, of.leaf_14_0_ebx.raw, of.leaf_14_0_ecx.raw)
                    : is(of.leaf_14_1_eax.raw, of.leaf_14_1_ebx.raw, of.leaf_14_1_ecx.raw));
    }
    static constexpr auto is(rule why, string_view id) -> bool {
        rule_id const named{why};
        auto const text = named.view();
        return why != rule::none && string_view{text.data(), text.size()} == id;
    }
};

}  // namespace ptspec::test::sequences
