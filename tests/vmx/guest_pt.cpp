// SPDX-License-Identifier: BSL-1.0
#include <ptspec/vmx/guest_pt.hpp>

#include <ptspec/vmx/msr_exits.hpp>

#include <support/a_guest.hpp>
#include <support/check_twice.hpp>

using namespace ptspec;
using test::a_guest;
using vmx::guest_access;
using vmx::guest_pt;

TEST_CASE("with shadow tables the output MSRs are always intercepted (PRG-184)") {
    CHECK_TWICE([](auto value) {
        guest_pt guest = a_guest();
        guest.output = value(vmx::guest_output::shadow);
        (void)on_wrmsr(guest, 0x570, 0x2109);
        auto const how = [&](uint32_t index) { return access_of_guest(guest, index); };
        bool const shadowed = how(0x560) == guest_access::intercept &&
                              how(0x561) == guest_access::intercept &&
                              how(0x571) == guest_access::pass_through;
        guest.output = value(vmx::guest_output::guest_physical);
        return shadowed && how(0x560) == guest_access::pass_through &&
               how(0x561) == guest_access::pass_through;
    });
}
