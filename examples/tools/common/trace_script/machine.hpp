// SPDX-License-Identifier: BSL-1.0
#pragma once

// A logical processor that executes a script, and the memory that holds its trace.

#include "print.hpp"
#include "setup.hpp"

#include <ptspec/simulate/ports.hpp>

namespace trace_script {

namespace action = engine::action;

/// The result of a valid event. Otherwise the result is the text that was expected.
inline constexpr string_view valid{};

/// A logical processor with an output region of `Bytes` bytes, a power of two of at least 4096.
template <std::size_t Bytes>
class machine {
public:
    static constexpr std::uint64_t table = region_base + Bytes;

    constexpr machine() : unit_{cpu::capabilities{}} {}

    /// Sets the initial state.
    constexpr void begin(start const& given) {
        unit_ = engine::trace_unit<>{given.of, given.msrs, given.code, given.ip, given.how};
        using pointers = reg::ia32_rtit_output_mask_ptrs;
        first_byte_ = static_cast<std::size_t>(
            given.msrs.output.mask_ptrs.get<pointers::OutputOffset>());
        unit_.conceal(given.hidden);
        unit_.set_clocks(given.clocks);
        auto const size = low_bits(0) | static_cast<std::uint64_t>(size_code()) << 6;
        store_word(table, region_base | size);
        store_word(table + 8, table | 1);
        execute(action::cycles{given.cycles});
        for (std::uint64_t i = 0; i < given.calls; ++i) {
            call(0x1005 + 0x10 * (given.calls - 1 - i));
        }
        for (char const bit : given.pending) {
            execute(action::conditional{unit_.ip(), bit == '1'});
        }
        execute(action::sequential{given.ip});
    }

    /// Executes one event. Returns an empty text, or what was expected instead.
    constexpr auto run(string_view text) -> string_view {
        auto done = cut(text);
        if (!done.expected.empty()) { return done.expected; }
        event_text& e = done.parts;
        if (e.cycle && e.rest.find("task_gate") == string_view::npos) {
            if (*e.cycle < cycle_) { return "a time that is not before the last one"; }
            execute(action::cycles{*e.cycle - cycle_});
            cycle_ = *e.cycle;
        }
        if (auto const expected = read_moments(e.value("takes")); !expected.empty()) {
            return expected;
        }
        for (std::uint64_t i = 0; i < e.times; ++i) {
            takes_ = {moments_, moment_count_};
            auto const expected = execute_event(e);
            if (!expected.empty()) { return expected; }
        }
        if (fault_) { return "a shorter trace: there is no more memory"; }
        return e.unused().empty() ? valid : string_view{"arguments that this event has"};
    }

    /// Prints the packets so far, or `none`. Returns false when the trace has errors.
    template <class Out>
    constexpr auto print_packets(Out& out) const -> bool {
        bool first = true;
        packet_printer<Out> printer{out, event_trace_};
        auto each = [&](auto const& packet, trace::packet_place where) {
            if (!first) { out(text{", "}); }
            first = false;
            printer(packet, where);
        };
        trace::reader from{written(), {.sync = false}};
        bool valid_packets = true;
        for (auto item = from.next(); item; item = from.next()) {
            if (item.what != trace::item_type::packet) {
                valid_packets = false;
                continue;
            }
            packet::visit(
                [&](auto const& packet) {
                    each(packet, trace::packet_place{item.offset, item.ip, item.length});
                },
                item.packet);
        }
        if (first) { out(text{"none"}); }
        return valid_packets;
    }
    /// Prints a field of CTL or STATUS, the value of `shutdown`, or the bits of `pending`. Returns
    /// false for any other name.
    template <class Out>
    constexpr auto print_value(string_view name, Out& out) -> bool {
        if (name == "pending") {
            auto const held = unit_.state().writer.tnt;
            for (unsigned i = 0; i < held.count; ++i) {
                out(held.taken(i) ? text{"1"} : text{"0"});
            }
            if (held.count == 0) { out(text{"none"}); }
            return true;
        }
        if (name == "shutdown") {
            out(unit_.state().shutdown_by != rule::none ? text{"1"} : text{"0"});
            return true;
        }
        auto const& now = unit_.msrs();
        return print_field(now.ctl, name, out) || print_field(now.status, name, out);
    }

    /// The trace in memory.
    [[nodiscard]] constexpr auto written() const -> byte_view {
        auto const count = unit_.total().stored;
        auto const all = byte_view{memory_.bytes}.first(Bytes).from(first_byte_);
        return all.first(count < all.size() ? static_cast<std::size_t>(count) : all.size());
    }
    [[nodiscard]] constexpr auto wrapped_around() const -> bool {
        return unit_.total().stored > Bytes - first_byte_;
    }
    [[nodiscard]] constexpr auto unit() -> engine::trace_unit<>& { return unit_; }

    /// The state between two events, without the bytes of the trace.
    struct moment {
        engine::trace_unit<> unit{cpu::capabilities{}};
        std::uint64_t cycle = 0;
        std::size_t depth = 0;
        std::uint8_t core = 1;
        bool fault = false;
    };
    [[nodiscard]] constexpr auto save() const -> moment {
        return {unit_, cycle_, depth_, core_, fault_};
    }
    /// Goes back to a moment from which the trace has not wrapped around. The program's calls since
    /// then are as they are.
    constexpr void restore(moment const& from) {
        unit_ = from.unit;
        cycle_ = from.cycle;
        depth_ = from.depth;
        core_ = from.core;
        fault_ = from.fault;
    }

private:
    static constexpr std::uint64_t kernel = 0xFFFF'8000'0010'0000;
    static constexpr std::size_t max_calls = 128;

    simulate::memory_model<Bytes + 16> memory_{region_base, {}};
    engine::trace_unit<> unit_;
    std::uint64_t cycle_ = 0;
    std::uint64_t calls_[max_calls] = {};  ///< return addresses of the program
    std::size_t depth_ = 0;
    std::uint8_t core_ = 1;       ///< the C-state of the core
    std::size_t first_byte_ = 0;  ///< of the trace in the region
    static constexpr std::size_t max_moments = 32;
    action::moment moments_[max_moments] = {};
    std::size_t moment_count_ = 0;
    action::time_within takes_{};  ///< of the next action
    bool fault_ = false;
    bool event_trace_ = false;

    static constexpr auto size_code() -> unsigned {
        unsigned code = 0;
        while ((std::size_t{4096} << code) < Bytes) { ++code; }
        return code;
    }
    constexpr void store_word(std::uint64_t address, std::uint64_t word) {
        byte_array<8> bytes;
        store_le64(bytes.data(), word);
        fault_ = memory_.store(address, bytes) != 8;
    }
    template <class Event>
    constexpr void execute(Event const& e) {
        bool const has_moments = takes_.count != 0;
        auto const fault = has_moments ? unit_.on(e, memory_, take_moments())
                                       : unit_.on(e, memory_);
        fault_ = fault_ || fault.happened;
        event_trace_ = event_trace_ || unit_.state().ctl<ptspec::reg::ia32_rtit_ctl::EventEn>();
    }
    constexpr auto take_moments() -> action::time_within {
        auto const taken = takes_;
        takes_ = {};
        return taken;
    }
    /// `TSC@5+MTC,TMA@0`: 5 cycles pass before the TSC, then an MTC falls due; nothing before the
    /// TMA. `+MTC.now` is an MTC of the count that TMA reports.
    constexpr auto read_moments(string_view text) -> string_view {
        constexpr string_view expected =
            "PACKET@cycles, with +MTC or +MTC.now, and at most 32 of them";
        moment_count_ = 0;
        while (!text.empty()) {
            auto item = take_item(text, ',');
            auto const name = item.substr(0, item.find('@'));
            bool is_packet = false;
            action::moment one;
            for (unsigned i = 0; i < packet::kind_count; ++i) {
                auto const of = packet::name_of(static_cast<packet::kind>(i));
                if (name != string_view{of.data(), of.size()}) { continue; }
                one.before = static_cast<packet::kind>(i);
                is_packet = true;
            }
            if (!is_packet || name.size() == item.size()) { return expected; }
            item = item.substr(name.size() + 1);
            auto const plus = item.find('+');
            auto const mtc = plus == string_view::npos ? string_view{} : item.substr(plus);
            auto const cycles = number_in(item.substr(0, plus), 10);
            one.mtc = mtc == "+MTC"       ? action::due_mtc::next
                      : mtc == "+MTC.now" ? action::due_mtc::reported
                                          : action::due_mtc::none;
            bool const is_read = mtc.empty() || one.mtc != action::due_mtc::none;
            if (!cycles || !is_read || moment_count_ == max_moments) { return expected; }
            one.cycles = *cycles;
            moments_[moment_count_++] = one;
        }
        return {};
    }
    template <class Word, class Out>
    static constexpr auto print_field(Word word, string_view name, Out& out) -> bool {
        auto const* const field = print::row_list_of<Word>().field({name.data(), name.size()});
        if (field == nullptr) { return false; }
        auto const& row = field->row;
        print::hex(word.raw >> row.lsb & low_bits(row.msb - row.lsb + 1), out);
        return true;
    }

    // -------------------------------------------------------------------------------- calls

    constexpr void call(std::uint64_t next) {
        if (depth_ < max_calls) { calls_[depth_++] = next; }
        execute(action::direct_call{next, next + 0x1000});
    }
    [[nodiscard]] constexpr auto returns_to() const -> std::uint64_t {
        return depth_ == 0 ? unit_.ip() + 0x10 : calls_[depth_ - 1];
    }
    constexpr void pop() { depth_ -= depth_ != 0 ? 1 : 0; }

    // -------------------------------------------------------------------------------- arguments

    /// A numeric argument, or `other` when it is absent. On an error `expected_` holds what was
    /// expected.
    string_view expected_{};
    constexpr auto number(event_text& e, string_view name, std::uint64_t other,
                          std::uint64_t most = ~std::uint64_t{0}) -> std::uint64_t {
        auto const digits = e.value(name);
        if (digits.empty()) { return other; }
        auto const value = number_in(digits);
        if (!value) { expected_ = "a hexadecimal number as the argument"; }
        if (value.value_or(0) > most) { expected_ = "a smaller number as the argument"; }
        return value.value_or(other);
    }
    constexpr auto vector(event_text& e, std::uint64_t other) -> std::uint8_t {
        return static_cast<std::uint8_t>(number(e, "vector", other, 0xFF));
    }
    constexpr auto at(event_text& e) -> std::uint64_t { return number(e, "at", unit_.ip()); }
    constexpr auto next(event_text& e, std::uint64_t length = 2) -> std::uint64_t {
        return number(e, "next", number(e, "at", unit_.ip()) + length);
    }
    constexpr auto target(event_text const& e, std::uint64_t other) -> std::uint64_t {
        if (!e.has_target) { return other; }
        if (e.target == "kernel") { return kernel; }
        auto const value = number_in(e.target);
        if (!value) { expected_ = "a hexadecimal address or kernel after ->"; }
        return value.value_or(other);
    }
    constexpr auto c_state(event_text& e, string_view name, std::uint8_t other) -> std::uint8_t {
        auto const given = e.value(name);
        if (given.empty()) { return other; }
        auto const value = given[0] == 'C' ? number_in(given.substr(1), 10) : maybe_number{};
        if (!value || *value > 15) { expected_ = "a C-state C0 to C15"; }
        return static_cast<std::uint8_t>(value.value_or(other));
    }
    /// The execution mode after a transfer to a privilege level.
    constexpr auto after(event_text& e, std::uint64_t cpl) -> execution_context {
        auto code = unit_.state().code;
        code.cpl = static_cast<std::uint8_t>(number(e, "CPL", cpl, 3));
        code.IF = number(e, "IF", code.IF ? 1 : 0, 1) != 0;
        code.cr3 = number(e, "CR3", code.cr3);
        auto const mode = e.value("mode");
        if (mode == "16") {
            code.width = engine::code_width::bits_16;
        } else if (mode == "32") {
            code.width = engine::code_width::bits_32;
        } else if (mode == "64") {
            code.width = engine::code_width::bits_64;
        } else if (!mode.empty()) {
            expected_ = "a mode of 16, 32 or 64";
        }
        auto const vmx = e.value("VMX");
        if (!vmx.empty()) { code.vmx_non_root = vmx == "nonroot"; }
        if (!vmx.empty() && vmx != "root" && vmx != "nonroot") { expected_ = "root or nonroot"; }
        return code;
    }

    // -------------------------------------------------------------------------------- events

    constexpr auto execute_event(event_text& e) -> string_view {
        expected_ = {};
        string_view const expected = kind_of(e);
        return !expected_.empty() ? expected_ : expected;
    }
    constexpr auto kind_of(event_text& e) -> string_view {
        auto const kind = e.kind;
        if (kind == "Jcc" || kind == "JMP" || kind == "CALL" || kind == "RET") {
            return near_branch(e);
        }
        if (kind == "any" || kind == "branches" || kind == "PUSH" || kind == "POP" ||
            kind == "NOP" || kind == "fall") {
            return silent(e);
        }
        if (kind == "interrupt" || kind == "NMI" || kind == "fault" || kind == "INT" ||
            kind == "SYSCALL" || kind == "SYSRET" || kind == "IRET" || kind == "ERETU" ||
            kind == "ERETS" || kind == "INIT" || kind == "SIPI") {
            return far_away(e);
        }
        if (kind == "MOV" || kind == "WRMSR" || kind == "STI" || kind == "CLI" ||
            kind == "XBEGIN" || kind == "XEND" || kind == "abort" || kind == "PTWRITE" ||
            kind == "ACM") {
            return instruction(e);
        }
        if (kind == "VM" || kind == "VMPTRLD" || kind == "EENTER" || kind == "ERESUME" ||
            kind == "EEXIT" || kind == "AEX" || kind == "SMI" || kind == "RSM") {
            return transition(e);
        }
        if (kind == "HLT" || kind == "MWAIT" || kind == "wake" || kind == "clock") {
            return power(e);
        }
        return clockwork(e);
    }

    constexpr auto near_branch(event_text& e) -> string_view {
        auto const here = at(e);
        auto const next_ip = next(e, e.kind == "CALL" ? 5 : 2);
        if (e.kind == "Jcc") { return conditionals(e, here, next_ip); }
        if (e.kind == "RET") { return ret(e); }
        bool const nested = e.rest == "rel nested" && e.kind == "CALL";
        bool const direct = e.rest == "rel" || nested;
        if (e.rest.empty() || (!direct && e.rest.find(' ') != string_view::npos)) {
            return "rel or the name of a register";
        }
        auto const to = target(e, here + 0x100);
        if (e.kind == "JMP" && direct) {
            execute(action::direct_jump{to});
        } else if (e.kind == "JMP") {
            execute(action::indirect_jump{to});
        } else {
            auto const back = nested ? 0x505 + 0x10 * depth_ : next_ip;
            if (depth_ < max_calls) { calls_[depth_++] = back; }
            if (direct) {
                execute(action::direct_call{back, nested ? back + 0x100 : to});
            } else {
                execute(action::indirect_call{back, to});
            }
        }
        return valid;
    }
    /// One branch, or several. Each of several goes to the target if there is one.
    constexpr auto conditionals(event_text const& e, std::uint64_t here, std::uint64_t next_ip)
        -> string_view {
        if (e.rest.empty() || e.rest.find_first_not_of("TN") != string_view::npos) {
            return "Jcc T, Jcc N or several letters";
        }
        bool const is_one = e.rest.size() == 1;
        if (is_one && e.rest == "N" && e.has_target) {
            return "no target: the branch is not taken";
        }
        for (char const letter : e.rest) {
            bool const taken = letter == 'T';
            execute(
                action::conditional{taken || !is_one ? target(e, here + 0x10) : next_ip, taken});
        }
        return valid;
    }
    constexpr auto ret(event_text& e) -> string_view {
        bool const matches = e.rest == "compressed" || e.rest == "matching";
        if (!matches && e.rest != "uncompressed" && !e.rest.empty()) {
            return "compressed, uncompressed or matching";
        }
        if (e.rest == "compressed" && unit_.state().calls.size() == 0) { call(unit_.ip() + 0x10); }
        auto const to = target(e, e.rest == "uncompressed" ? returns_to() + 0x10 : returns_to());
        pop();
        execute(action::near_return{to});
        return valid;
    }
    /// Events that produce no packets.
    constexpr auto silent(event_text& e) -> string_view {
        if (e.kind == "fall") {
            if (e.rest != "through" || !e.has_target) { return "fall through->ip"; }
            execute(action::sequential{target(e, 0)});
        } else if (e.kind == "PUSH" || e.kind == "POP" || e.kind == "NOP") {
            if (e.kind == "POP") { pop(); }
            execute(action::sequential{next(e, 1)});
        } else {
            if (e.kind == "any" && e.rest != "branches") { return "any branches"; }
            auto const ip = unit_.ip();
            execute(action::conditional{ip + 0x10, true});
            execute(action::conditional{ip + 0x12, false});
            execute(action::direct_jump{ip + 0x20});
            execute(action::indirect_jump{ip + 0x30});
            execute(action::indirect_call{ip + 0x32, ip + 0x40});
            execute(action::near_return{ip + 0x32});
        }
        return valid;
    }

    constexpr auto far_away(event_text& e) -> string_view {
        auto const here = at(e);
        auto const next_ip = next(e);
        auto const kind = e.kind;
        if (kind == "interrupt" || kind == "NMI") {
            execute(action::interrupt{next_ip, target(e, kernel), after(e, 0),
                                      vector(e, kind == "NMI" ? 2 : 0x20)});
        } else if (kind == "fault") {
            std::uint64_t const usual = e.rest == "#PF" ? 0x0E : e.rest == "#BR" ? 5 : 0x0D;
            execute(action::exception{here, target(e, kernel), after(e, 0), vector(e, usual),
                                      number(e, "cr2", 0)});
        } else if (kind == "INT") {
            return software_interrupt(e, here);
        } else if (kind == "SYSCALL" || kind == "SYSRET" || kind == "IRET" || kind == "ERETU" ||
                   kind == "ERETS") {
            bool const to_user = kind == "SYSRET" || kind == "ERETU";
            auto const cpl = kind == "SYSCALL" ? std::uint64_t{0}
                             : to_user         ? std::uint64_t{3}
                                               : std::uint64_t{unit_.state().code.cpl};
            auto const what = kind == "SYSCALL"  ? action::far_kind::syscall
                              : kind == "IRET"   ? action::far_kind::iret
                              : kind == "SYSRET" ? action::far_kind::sysret
                                                 : action::far_kind::eret;
            execute(action::far_transfer{here, target(e, kernel), after(e, cpl), what});
        } else if (kind == "INIT") {
            if (e.rest != "BSP" && e.rest != "AP") { return "INIT BSP or INIT AP"; }
            auto code = after(e, 0);
            code.cr3 = 0;
            code.real_mode = true;
            execute(action::init{next_ip, target(e, 0xFFFF'FFF0), code, e.rest == "AP"});
        } else {
            execute(action::sipi{target(e, 0), after(e, 0), vector(e, 0)});
        }
        return valid;
    }
    /// INT v, optionally through a task gate, whose packets come at given cycles.
    constexpr auto software_interrupt(event_text& e, std::uint64_t here) -> string_view {
        auto words = e.rest;
        auto const number_of_it = number_in(take_word(words));
        if (!number_of_it || *number_of_it > 0xFF) { return "INT and a vector"; }
        auto code = after(e, 0);
        if (!words.empty()) {
            if (take_word(words) != "task_gate") { return "task_gate"; }
            std::uint64_t last = cycle_;
            while (!words.empty()) {
                auto const word = take_word(words);
                auto const sign = word.find('@');
                auto const name = word.substr(0, sign);
                auto const cycle = sign == string_view::npos ? maybe_number{}
                                                             : number_in(word.substr(sign + 1), 10);
                if (!cycle || *cycle < last) { return "PACKET@cycle, in their order"; }
                action::moment now{.before = packet::kind::tip, .cycles = *cycle - last};
                if (name == "PIP") {
                    now.before = packet::kind::pip;
                    code.cr3 += 0x1000;
                } else if (name == "MODE.Exec" || name == "TIP") {
                    if (name == "MODE.Exec") {
                        now.before = packet::kind::mode_exec;
                        code.width = code.width == engine::code_width::bits_16
                                         ? engine::code_width::bits_32
                                         : engine::code_width::bits_16;
                    }
                } else {
                    return "PIP, MODE.Exec or TIP before @";
                }
                last = *cycle;
                if (moment_count_ == max_moments) { return "at most 32 packets"; }
                moments_[moment_count_++] = now;
            }
            cycle_ = last;
            takes_ = {moments_, moment_count_};
        }
        (void)next(e);
        execute(action::software_interrupt{here, target(e, kernel), code,
                                           static_cast<std::uint8_t>(*number_of_it)});
        return valid;
    }

    constexpr auto instruction(event_text& e) -> string_view {
        auto const here = at(e);
        auto const next_ip = next(e);
        auto const kind = e.kind;
        if (kind == "MOV") {
            if (!starts_with(e.rest, "CR3,")) { return "MOV CR3,value"; }
            auto const text = e.rest.substr(4);
            auto const value = text == "?" ? maybe_number{true, unit_.state().code.cr3 + 0x1000}
                                           : number_in(text);
            if (!value) { return "a hexadecimal number after CR3,"; }
            execute(action::mov_cr3{here, next_ip, *value});
        } else if (kind == "WRMSR") {
            return wrmsr(e, here, next_ip);
        } else if (kind == "STI" || kind == "CLI") {
            execute(action::interrupt_flag{next_ip, kind == "STI"});
        } else if (kind == "XBEGIN") {
            (void)e.value("fallback");
            execute(action::transaction_begin{here, next_ip});
        } else if (kind == "XEND") {
            execute(action::transaction_end{here, next_ip});
        } else if (kind == "abort") {
            execute(action::transaction_abort{here, target(e, here)});
        } else if (kind == "ACM") {
            if (e.rest != "begin" && e.rest != "end") { return "ACM begin or ACM end"; }
            if (e.rest == "begin") {
                execute(action::acm_begin{});
            } else {
                execute(action::acm_end{next_ip});
            }
        } else {
            return ptwrite(e, here, next_ip);
        }
        return valid;
    }
    /// IA32_RTIT_CTL with another TraceEn. OS and User may change where TraceEn rises.
    constexpr auto ctl_with(event_text& e, bool trace_en) -> reg::ia32_rtit_ctl {
        using ctl = reg::ia32_rtit_ctl;
        auto const now = unit_.msrs().ctl;
        if (!trace_en) { return now.with(ctl::TraceEn{false}); }
        return now.with(ctl::TraceEn{true}, ctl::OS{number(e, "OS", now.get<ctl::OS>(), 1) != 0},
                        ctl::User{number(e, "User", now.get<ctl::User>(), 1) != 0});
    }
    /// WRMSR to IA32_RTIT_CTL that changes TraceEn, or to IA32_RTIT_STATUS.
    constexpr auto wrmsr(event_text& e, std::uint64_t here, std::uint64_t next_ip) -> string_view {
        using ctl = reg::ia32_rtit_ctl;
        using status = reg::ia32_rtit_status;
        status zeroed{};
        auto const count = number_in(e.value("PacketByteCnt"));
        auto const enable = number_in(e.value("TraceEn"));
        bool const is_status = count && put_field(zeroed, "PacketByteCnt", *count);
        if (!is_status && (!enable || *enable > 1)) {
            return "WRMSR TraceEn=0, WRMSR TraceEn=1 or WRMSR PacketByteCnt=v";
        }
        auto const word = ctl_with(e, *enable == 1);
        auto const takes = take_moments();
        auto const done =
            is_status
                ? unit_.wrmsr(
                      {.index = status::address, .value = zeroed.raw, .at = here, .next = next_ip},
                      memory_)
                : unit_.wrmsr(
                      {.index = ctl::address, .value = word.raw, .at = here, .next = next_ip},
                      memory_, takes);
        fault_ = fault_ || done.fault.happened;
        return done.took_effect() ? valid : "a value that does not fault";
    }
    constexpr auto ptwrite(event_text& e, std::uint64_t here, std::uint64_t next_ip)
        -> string_view {
        for (std::size_t i = 0; i < e.count; ++i) {
            auto& one = e.arguments[i];
            if (one.name == "at" || one.name == "next") { continue; }
            auto const value = number_in(one.value);
            bool const wide = starts_with(one.name, "R");
            if (!value || (!wide && !starts_with(one.name, "E"))) { break; }
            one.used = true;
            execute(action::ptwrite{here, next_ip, *value, wide});
            return valid;
        }
        return "the name of a register, = and a number";
    }

    constexpr auto transition(event_text& e) -> string_view {
        auto const here = at(e);
        auto const kind = e.kind;
        if (kind == "VM") {
            auto code = after(e, 0);
            if (e.value("VMX").empty()) { code.vmx_non_root = e.rest == "entry"; }
            // The transition may load IA32_RTIT_CTL.
            auto const enable = number(e, "TraceEn", 2, 1);
            action::ctl_load const loads{enable < 2, ctl_with(e, enable == 1)};
            if (e.rest == "exit") {
                execute(action::vm_exit{
                    .from = here, .to = target(e, kernel), .after = code, .loads = loads});
            } else if (e.rest == "entry") {
                execute(action::vm_entry{
                    .at = here, .to = target(e, kernel), .after = code, .loads = loads});
            } else {
                return "VM exit or VM entry";
            }
        } else if (kind == "VMPTRLD") {
            auto const value = number_in(e.rest);
            if (!value) { return "the address of a VMCS"; }
            execute(action::vmptrld{next(e), *value});
        } else if (kind == "EENTER" || kind == "ERESUME" || kind == "EEXIT" || kind == "AEX") {
            auto code = after(e, unit_.state().code.cpl);
            bool const enters = kind == "EENTER" || kind == "ERESUME";
            if (enters && e.rest != "production" && e.rest != "debug") {
                return "production or debug";
            }
            code.inside = !enters                  ? engine::enclave::none
                          : e.rest == "production" ? engine::enclave::production
                                                   : engine::enclave::debug;
            execute(action::enclave_transfer{here, target(e, here + 0x1000), code});
        } else if (kind == "SMI") {
            execute(action::smi{next(e), 0x8000, after(e, 0)});
        } else {
            auto const saved = e.value("TraceEn");
            bool const is_saved = unit_.msrs().smram_trace_en;
            if (!saved.empty() && saved != (is_saved ? "1" : "0")) {
                return "the TraceEn that the last SMI saved";
            }
            execute(action::rsm{target(e, unit_.ip()), after(e, 3)});
        }
        return valid;
    }

    constexpr auto power(event_text& e) -> string_view {
        auto const here = at(e);
        auto const next_ip = next(e, 3);
        if (e.kind == "clock") {
            if (e.rest == "stop") {
                execute(action::clock_stop{next_ip});
            } else if (e.rest == "resume") {
                execute(action::clock_resume{});
            } else {
                return "clock stop or clock resume";
            }
        } else if (e.kind == "HLT") {
            core_ = c_state(e, "core", 1);
            execute(action::halt{here, next_ip});
        } else if (e.kind == "MWAIT") {
            auto words = e.rest;
            auto const hints = words.empty() ? maybe_number{true, 0}
                                             : number_in(take_item(words, ','));
            auto const ext = words.empty() ? maybe_number{true, 0} : number_in(trimmed(words));
            if (!hints || !ext || *hints > 0xFF || *ext > 3) { return "MWAIT hints,ext"; }
            auto const thread = c_state(e, "thread", 1);
            core_ = c_state(e, "core", thread);
            execute(action::mwait{.at = here,
                                  .next = next_ip,
                                  .hints = static_cast<std::uint8_t>(*hints),
                                  .ext = static_cast<std::uint8_t>(*ext),
                                  .thread = {thread, 0}});
        } else {
            bool const by_interrupt = e.rest == "interrupt";
            if (!by_interrupt && e.rest != "store") { return "wake interrupt or wake store"; }
            execute(action::wake{core_, core_,
                                 by_interrupt ? action::wake_reason::interrupt
                                              : action::wake_reason::store});
            if (by_interrupt) {
                execute(action::interrupt{number(e, "next", unit_.ip()), target(e, kernel),
                                          after(e, 0), 0x20});
            }
        }
        return valid;
    }

    constexpr auto clockwork(event_text& e) -> string_view {
        auto const clocks = unit_.state().clocks;
        if (e.kind == "psb" && e.rest == "due") {
            execute(action::psb_due{});
            return valid;
        }
        if (e.kind == "cycles") { return cycles_pass(e); }
        if (e.kind == "callstack") {
            if (e.rest != "lost") { return "callstack lost"; }
            execute(action::return_stack_lost{});
            return valid;
        }
        if (e.kind == "clocks" && e.rest.empty()) {
            auto now = clocks;
            now.art = number(e, "ART", now.art);
            now.tsc = number(e, "TSC", now.tsc);
            now.tsc_at_edge = number(e, "edge", now.tsc);
            now.core_to_bus = static_cast<std::uint8_t>(number(e, "ratio", now.core_to_bus, 0xFF));
            unit_.set_clocks(now);
        } else if (e.kind == "ratio") {
            auto const value = number_in(e.rest);
            if (!value || *value > 0xFF) { return "ratio and two hexadecimal digits"; }
            execute(action::ratio{static_cast<std::uint8_t>(*value)});
        } else if (e.kind == "wrap" && e.rest == "guard") {
            execute(action::cycle_guard{});
        } else if (e.kind == "overflow" && e.rest.empty()) {
            execute(action::sequential{at(e)});
            execute(action::overflow{});
        } else if (e.kind == "resolved" && e.rest.empty()) {
            execute(action::overflow_end{at(e)});
        } else if (e.kind == "ART" && e.rest.empty() && e.has_target) {
            execute(action::elapsed{0, target(e, clocks.art), clocks.tsc});
        } else if (e.kind == "mtc") {
            auto const value = number_in(e.rest);
            if (!value || *value > 0xFF) { return "mtc and two hexadecimal digits"; }
            auto const freq = static_cast<unsigned>(
                unit_.msrs().ctl.get<reg::ia32_rtit_ctl::MTCFreq>());
            // Set the crystal counter to one tick before the value that the packet reports.
            std::uint64_t const high = (clocks.art >> freq | 0xFF) + 1;
            std::uint64_t const art = (high | *value) << freq;
            unit_.set_clocks({art - 1, clocks.tsc, 0, clocks.core_to_bus, clocks.are_off});
            execute(action::elapsed{0, art, clocks.tsc});
        } else {
            return "an event of tests/spec/notation.md, section 3";
        }
        return valid;
    }

    constexpr auto cycles_pass(event_text const& e) -> string_view {
        auto words = e.rest;
        auto const passed = number_in(take_word(words), 10);
        if (!passed || !words.empty()) { return "cycles and a decimal number"; }
        execute(action::cycles{*passed});
        return valid;
    }
};

}  // namespace trace_script
