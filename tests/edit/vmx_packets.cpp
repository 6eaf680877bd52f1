// SPDX-License-Identifier: BSL-1.0
#include <ptspec/edit/vmx_packets.hpp>

#include <support/check_twice.hpp>
#include <support/made_trace.hpp>

#include <string_view>

using namespace ptspec;
using namespace std::string_view_literals;
using test::made_trace;

TEST_CASE("PIP with NR, VMCS and the events of VM transitions show VMX (GEN-278, PKT-274)") {
    CHECK_TWICE([](auto value) {
        auto const count = [](std::string_view text) {
            made_trace trace{text};
            byte_window const all[] = {
                {trace.bytes, 4}, {trace.bytes + 4, 0}, {trace.bytes + 4, trace.size - 4}};
            return edit::count_vmx_packets(all);
        };
        return count(value("HOST ENTRY EXIT evd:1 evd:2 evd:0 cfe:07 cfe:08 cfe:09 cfe:01"sv)) ==
                   7 &&
               count(value("psb cbr pip0:1000 m64 end pip0:2000 evd:0 cfe:01"sv)) == 0;
    });
}
