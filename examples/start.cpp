// SPDX-License-Identifier: BSL-1.0

// Asks whether a WRMSR raises #GP, and why.
//
//   g++ -std=c++20 -Iinclude examples/start.cpp -o start && ./start

#include "standard_output.hpp"

#include <ptspec/registers.hpp>

#include <cstdio>

auto main() -> int {
    using namespace ptspec;
    using ctl = reg::ia32_rtit_ctl;
    auto const wanted = ctl{}.with(ctl::TraceEn{true}, ctl::User{true}, ctl::ToPA{true},
                                   ctl::BranchEn{true}, ctl::PTWEn{true});
    auto const answer = access::check_write(cpu::preset::skylake_x, {}, ctl::address, wanted.raw);
    std::printf("WRMSR(570H, %llXH): %s\n", static_cast<unsigned long long>(wanted.raw),
                answer ? "done" : describe(answer.broken).data());
}
