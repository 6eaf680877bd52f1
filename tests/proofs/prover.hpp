// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <z3++.h>

#include <chrono>
#include <cstdint>
#include <string>

/// Symbolic numbers, and claims about them that Z3 proves or refutes.
namespace proofs {

inline auto context() -> z3::context& {
    static z3::context one;
    return one;
}

inline auto constant(uint64_t value, unsigned bits = 64) -> z3::expr {
    return context().bv_val(value, bits);
}

/// A symbolic 64-bit number with the arithmetic of `uint64_t`. `exact` is true if no sum or
/// difference wrapped and every shift was by less than 64.
struct symbol {
    z3::expr number;
    z3::expr exact = context().bool_val(true);

    explicit symbol(uint64_t value) : number{constant(value)} {}
    explicit symbol(char const* name) : number{context().bv_const(name, 64)} {}
    explicit symbol(z3::expr const& bits) : number{bits} {}
    symbol(z3::expr const& bits, z3::expr const& is_exact) : number{bits}, exact{is_exact} {}

    /// Bits `msb` to `lsb` as a bit vector of that width.
    auto bits(unsigned msb, unsigned lsb) const -> z3::expr { return number.extract(msb, lsb); }
};

inline auto operator""_w(unsigned long long value) -> symbol { return symbol{uint64_t{value}}; }

inline auto operator+(symbol const& a, symbol const& b) -> symbol {
    return {a.number + b.number,
            a.exact && b.exact && z3::bvadd_no_overflow(a.number, b.number, false)};
}
inline auto operator-(symbol const& a, symbol const& b) -> symbol {
    return {a.number - b.number,
            a.exact && b.exact && z3::bvsub_no_underflow(a.number, b.number, false)};
}
inline auto operator&(symbol const& a, symbol const& b) -> symbol {
    return {a.number & b.number, a.exact && b.exact};
}
inline auto operator|(symbol const& a, symbol const& b) -> symbol {
    return {a.number | b.number, a.exact && b.exact};
}
inline auto operator<<(symbol const& a, symbol const& b) -> symbol {
    return {z3::shl(a.number, b.number), a.exact && b.exact && z3::ult(b.number, constant(64))};
}
inline auto operator>>(symbol const& a, symbol const& b) -> symbol {
    return {z3::lshr(a.number, b.number), a.exact && b.exact && z3::ult(b.number, constant(64))};
}
inline auto operator^(symbol const& a, symbol const& b) -> symbol {
    return {a.number ^ b.number, a.exact && b.exact};
}
inline auto operator~(symbol const& a) -> symbol { return {~a.number, a.exact}; }

inline auto operator==(symbol const& a, symbol const& b) -> z3::expr {
    return a.number == b.number;
}
inline auto operator<(symbol const& a, symbol const& b) -> z3::expr {
    return z3::ult(a.number, b.number);
}
inline auto operator<=(symbol const& a, symbol const& b) -> z3::expr {
    return z3::ule(a.number, b.number);
}

/// `then` holds for all numbers for which `when` holds.
struct claim {
    std::string text;
    z3::expr when;
    z3::expr then;
};

enum class verdict : uint8_t {
    proved,
    refuted,  ///< there is a counter-example
    vacuous,  ///< no numbers satisfy `when`
    unknown,  ///< the solver timed out
};

struct finding {
    verdict is;
    double milliseconds;
    std::string example;  ///< the numbers of the counter-example
};

inline auto example_in(z3::model const& model) -> std::string {
    std::string text;
    for (unsigned i = 0; i < model.num_consts(); ++i) {
        auto const one = model.get_const_decl(i);
        text += " " + one.name().str() + "=" + model.get_const_interp(one).to_string();
    }
    return text;
}

/// Checks first that `when` is satisfiable, then that no such numbers violate `then`.
inline auto examine(claim const& what) -> finding {
    z3::solver solver{context(), "QF_BV"};
    solver.set("timeout", 60'000U);
    auto const begin = std::chrono::steady_clock::now();
    auto const found = [&](verdict is, std::string const& example = {}) -> finding {
        std::chrono::duration<double, std::milli> const time = std::chrono::steady_clock::now() -
                                                               begin;
        return {is, time.count(), example};
    };
    solver.add(what.when);
    switch (solver.check()) {
        case z3::sat: break;
        case z3::unsat: return found(verdict::vacuous);
        default: return found(verdict::unknown);
    }
    solver.add(!what.then);
    switch (solver.check()) {
        case z3::sat: return found(verdict::refuted, example_in(solver.get_model()));
        case z3::unsat: return found(verdict::proved);
        default: return found(verdict::unknown);
    }
}

}  // namespace proofs
