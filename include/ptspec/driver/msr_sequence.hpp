// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/ports.hpp>
#include <ptspec/reg/rtit_ctl.hpp>
#include <ptspec/base/attribute.hpp>

/// Procedures of a driver over ports: sequences of MSR accesses that stop at the first fault.
namespace ptspec::driver {

// ------------------------------------------------------------------------------------ one access

/// The result of reading an MSR as its register type.
template <class Word>
struct [[nodiscard]] word_read {
    bool has_value = false;  ///< false: the access faulted and `value` is meaningless
    Word value{};

    constexpr explicit operator bool() const noexcept { return has_value; }
};

/// Reads an MSR: `read<reg::ia32_rtit_ctl>(msrs)`.
template <class Word, msr_port Msrs>
    requires requires { Word::address; }
[[nodiscard]] constexpr auto read(Msrs& msrs) noexcept -> word_read<Word> {
    port_value const got = msrs.read(Word::address);
    return {got.has_value, Word{got.value}};
}

/// A register that WRMSR can write.
///
/// Source: REG-203.
template <class Word>
concept writable_msr = requires { Word::address; } && Word::access != row_access::read_only;

/// Writes an MSR. False: the access faulted. A read-only MSR does not compile.
template <msr_port Msrs, writable_msr Word>
[[nodiscard]] constexpr auto write(Msrs& msrs, Word value) noexcept -> bool {
    return msrs.write(Word::address, value.raw);
}

// ------------------------------------------------------------------------------------ a sequence

/// An MSR port that also orders stores: `fence` executes an SFENCE or a stronger instruction, after
/// which other logical processors see the trace.
///
/// Source: PRG-040, PRG-062.
template <class Port>
concept fenced_msr_port = msr_port<Port> && requires(Port& port) { port.fence(); };

/// An access of a procedure that faulted.
struct msr_fault {
    bool happened = false;
    bool is_write = false;
    msr_index index{};    ///< of the MSR
    uint64_t value = 0;   ///< of a write
    unsigned number = 0;  ///< the number of the access in the procedure, from 0

    friend constexpr auto operator==(msr_fault const&, msr_fault const&) -> bool = default;
};

/// Whether the trace unit is enabled after a procedure.
enum class trace_state : uint8_t {
    disabled,
    enabled,
    still_tracing,  ///< the write that clears TraceEn faulted
    unknown,        ///< IA32_RTIT_CTL could not be read
};

/// The state that a value of IA32_RTIT_CTL shows.
[[nodiscard]] constexpr auto trace_state_of(reg::ia32_rtit_ctl ctl) noexcept -> trace_state {
    return ctl.get<reg::ia32_rtit_ctl::TraceEn>() ? trace_state::enabled : trace_state::disabled;
}

/// The result of a procedure. After a failed access the procedure makes no further access, except
/// those that `still_tracing` and the documentation of the procedure name.
struct [[nodiscard]] procedure_result {
    msr_fault fault{};
    trace_state trace = trace_state::unknown;

    constexpr explicit operator bool() const noexcept { return !fault.happened; }
};

namespace detail {
using namespace ptspec::detail;
}  // namespace detail

/// Accesses MSRs through a port until an access faults. After that reads return 0, writes return
/// false, and nothing is accessed. A procedure makes its accesses through one of these and returns
/// `fault()`.
///
/// Errors: `fault()` is the access that faulted; the conversion to bool is true before a fault.
///
/// noinline: an access takes longer than a call. Inlined, the procedures of a driver have 2.6 KB
/// more (g++ 12), or 1.7 KB (clang 19).
template <msr_port Msrs>
class msr_sequence {
public:
    constexpr explicit msr_sequence(Msrs& msrs) noexcept : msrs_{msrs} {}

    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto read(msr_index index) noexcept -> uint64_t {
        if (fault_.happened) { return 0; }
        port_value const got = msrs_.read(index.value);
        if (!got) {
            fault_ = {true, false, index, 0, number_};
            return 0;
        }
        ++number_;
        return got.value;
    }
    template <class Word>
    constexpr auto read() noexcept -> Word {
        return Word{read(Word::address)};
    }
    /// False after a fault.
    PTSPEC_ATTRIBUTE(noinline)
    constexpr auto write(msr_index index, uint64_t value) noexcept -> bool {
        if (fault_.happened) { return false; }
        if (!msrs_.write(index.value, value)) {
            fault_ = {true, true, index, value, number_};
            return false;
        }
        ++number_;
        return true;
    }
    template <writable_msr Word>
    constexpr auto write(Word value) noexcept -> bool {
        return write(Word::address, value.raw);
    }
    constexpr void fence() noexcept
        requires fenced_msr_port<Msrs>
    {
        if (!fault_.happened) { msrs_.fence(); }
    }

    constexpr explicit operator bool() const noexcept { return !fault_.happened; }
    [[nodiscard]] constexpr auto fault() const noexcept -> msr_fault { return fault_; }
    [[nodiscard]] constexpr auto port() noexcept -> Msrs& { return msrs_; }

private:
    Msrs& msrs_;
    msr_fault fault_{};
    unsigned number_ = 0;
};

}  // namespace ptspec::driver

#undef PTSPEC_ATTRIBUTE
