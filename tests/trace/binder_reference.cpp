// SPDX-License-Identifier: BSL-1.0
// The plain binder, which walks binding.csv.
#include <support/reference_binder.hpp>

#include <doctest/doctest.h>

#include <tc_cases.hpp>

#include <cstdio>
#include <set>

using namespace ptspec;

namespace {

auto table() -> reference::binding_table const& {
    static reference::binding_table const read{test::read_csv("tests/spec/binding.csv")};
    return read;
}

constexpr size_t damage = 0;

auto number_of(std::string const& name) -> size_t {
    auto const& names = table().packets;
    auto const found = std::find(names.begin(), names.end(), name);
    REQUIRE_MESSAGE(found != names.end(), name);
    return static_cast<size_t>(found - names.begin());
}

/// A state of the table, with a shortest sequence of packets that leads to it.
struct reached_state {
    reference::slot_values values;
    std::vector<size_t> packets;
};

auto all_states() -> std::vector<reached_state> {
    auto const& slots = table().slots;
    auto const block = std::find(slots.begin(), slots.end(), "block") - slots.begin();
    reference::binder_state first;
    table().bind(first, damage, 0);
    std::vector<reached_state> states{{first.values, {damage}}};
    std::set<reference::slot_values> known{first.values};
    for (size_t i = 0; i < states.size(); ++i) {
        for (size_t packet = 0; packet < table().packets.size(); ++packet) {
            // Only the bytes of a block hold a BIP (PKT-203).
            if (table().packets[packet] == "BIP" &&
                states[i].values[static_cast<size_t>(block)] == 0) {
                continue;
            }
            reference::binder_state after{states[i].values, {}};
            table().bind(after, packet, 0);
            if (!known.insert(after.values).second) { continue; }
            states.push_back({after.values, states[i].packets});
            states.back().packets.push_back(packet);
        }
    }
    return states;
}

/// Offsets are indexes here.
struct sequence {
    char const* packets;   ///< `on`: a PSB+ with FUP and MODE.Exec; `off`: one without
    char const* expected;  ///< violations: `rule@index`
};

auto violations_in(std::string const& packets) -> std::string {
    std::string out;
    reference::binder_state state;
    table().bind(state, damage, 0);
    uint64_t index = 0;
    for (auto const& item : reference::split(packets, ", ")) {
        std::string const group = item == "on"    ? "PSB, CBR, MODE.Exec, FUP, PSBEND"
                                  : item == "off" ? "PSB, CBR, PSBEND"
                                                  : item;
        for (auto const& name : reference::split(group, ", ")) {
            auto const got = table().bind(state, number_of(name), index++);
            if (got.broken.empty()) { continue; }
            out += (out.empty() ? "" : " ") + std::string{got.broken} + "@" +
                   std::to_string(got.offset);
        }
    }
    return out;
}

/// The name of a packet that a case has written in the notation of GEN-002.
auto name_in_table(std::string const& written) -> std::string {
    auto const has = [&](char const* piece) { return written.find(piece) != std::string::npos; };
    return written.substr(0, written.find('(')) + (has("SIPI") ? " SIPI" : "") +
           (has("TXAbort=1") ? " abort" : "") + (has("IP=1") ? " IP" : "");
}

}  // namespace

TEST_CASE("binding.csv has one row for each packet in each state, and no row or value too many") {
    auto const states = all_states();
    std::printf("%zu states\n", states.size());
    for (auto const& row : table().rows) {
        CHECK_MESSAGE(row.is_used, row.place);
        CHECK_MESSAGE((row.origin == reference::of_packet || !row.broken.empty()), row.place);
    }
    for (size_t slot = 0; slot < table().slots.size(); ++slot) {
        std::set<size_t> reached;
        for (auto const& state : states) { reached.insert(state.values[slot]); }
        // Some values exist only while a packet is bound.
        bool const is_transient = table().slots[slot] == "now";
        CHECK_MESSAGE((is_transient || reached.size() == table().values[slot].size()),
                      table().slots[slot]);
    }
}

TEST_CASE("the rows of binding.csv follow from rules of the catalogue") {
    auto const catalogue = test::read_text("tests/spec/packets.md") +
                           test::read_text("tests/spec/tracing.md");
    for (auto const& row : test::read_csv("tests/spec/binding.csv").rows) {
        auto const sources = reference::split(row["source"], ";");
        for (auto const& id : sources) {
            CHECK_MESSAGE(catalogue.find("**" + id + "**") != std::string::npos, row.place);
        }
        CHECK_MESSAGE((row["packet"] == "other" || !sources.empty()), row.place);
        CHECK_MESSAGE((row["broken"].empty() ||
                       std::count(sources.begin(), sources.end(), row["broken"]) == 1),
                      row.place);
    }
}

TEST_CASE("the plain binder accepts the packets of the worked cases of tracing.md") {
    for (auto const& one : test::tc_cases) {
        for (unsigned part = 0; part < one.part_count; ++part) {
            std::string packets;
            for (unsigned i = 0; i < one.parts[part].packet_count; ++i) {
                auto const& written = one.parts[part].packets[i];
                packets += ", " + name_in_table({written.data(), written.size()});
            }
            INFO(std::string(one.id.data(), one.id.size()), packets);
            // Not all setups say whether PacketEn is 1.
            bool const fits_on = violations_in("on" + packets) == "";
            bool const fits_off = violations_in("off, MODE.Exec, TIP.PGE, TIP.PGD" + packets) == "";
            CHECK((fits_on || fits_off));
        }
    }
}

TEST_CASE("the plain binder accepts the typical sequences (PKT-271)") {
    for (char const* const packets : {
             "on, FUP, PIP, MODE.Exec, TIP",
             "on, FUP, TIP.PGD",
             "on, FUP, PIP, TIP.PGD, TraceStop",
             "off, PIP, MODE.Exec, TIP.PGE",
             "on, PIP, MODE.Exec, TIP",
             "on, TIP.PGD",
             "on, PIP, TNT, TIP.PGD, PIP, MODE.Exec, TIP.PGE",
             "on, FUP, TIP.PGD, TSC, TMA, CBR, MODE.Exec, TIP.PGE",
             "on, FUP, PIP, MODE.Exec, TIP, PIP, MODE.Exec, TIP",
             "on, MODE.TSX, FUP, TNT, MODE.TSX, FUP, TIP",
             "on, MODE.TSX abort, FUP, TIP, MODE.TSX abort, FUP, TIP.PGD",
             "on, FUP, PIP, on, MODE.Exec, TIP, TNT",
             "on, PTW, TNT, PTW IP, FUP, TNT",
             "on, MWAIT, PWRE, EXSTOP IP, FUP, TSC, TMA, CBR, PWRX, FUP, TIP",
             "on, OVF, FUP, TNT, OVF, on, FUP, on, TNT",
             "on, OVF, PIP, MODE.Exec, TIP.PGE, TNT",
             "on, BBP, BIP, BBP, BIP, BEP IP, FUP, TIP, BBP, BIP, BEP",
             "on, EVD, CFE, FUP, MODE.Exec, TIP, EVD, CFE IP, FUP, TNT",
             "on, TIP.PGD, MODE.TSX, MODE.TSX abort, TIP.PGE",
             "on, MODE.Exec, FUP, TNT",
             "off, on, TIP.PGE, TNT",
             "on, FUP, CYC, PAD, MNT, PIP, MTC, TIP",
         }) {
        INFO(packets);
        CHECK(violations_in(packets) == "");
    }
}

TEST_CASE(
    "the plain binder finds a violation of each rule at its place (GEN-006, GEN-020, GEN-090, "
    "GEN-100, GEN-101, GEN-105, GEN-125, GEN-170, GEN-172, GEN-176, GEN-227, GEN-235, "
    "GEN-236, GEN-237, GEN-245, GEN-300, GEN-302, GEN-320, GEN-321, GEN-342, PKT-077, "
    "PKT-078, PKT-134, PKT-142, PKT-273)") {
    std::set<std::string> rules;
    for (auto const& one : std::initializer_list<sequence>{
             {"on, PTW IP, on", "GEN-006@6"},
             {"on, PWRE, EXSTOP, on", "GEN-006@7"},
             {"on, TIP.PGD, TraceStop, MTC, TIP.PGE", "GEN-020@8"},
             {"on, TraceStop", "GEN-090@5"},
             {"on, TNT, TIP.PGE", "GEN-100@6"},
             {"off, TIP.PGD", "GEN-101@3"},
             {"on, TIP.PGD, TNT", "GEN-105@6"},
             {"PSB, TNT", "GEN-125@1"},
             {"on, TNT, off", "GEN-170@6"},
             {"PSB, CBR, PTW", "GEN-172@2"},
             {"off, on, TNT", "GEN-176@3"},
             {"on, OVF, TNT", "GEN-227@6"},
             {"on, MODE.Exec, CYC, TNT", "GEN-235@5"},
             {"off, TIP.PGE, TIP.PGD, TIP.PGE", "GEN-236@3"},
             {"on, MODE.Exec, TIP.PGD", "GEN-237@5"},
             {"on, FUP, MODE.Exec, PIP, TIP", "GEN-245@6"},
             {"on, TIP.PGD, PTW, CBR, PTW", "GEN-300@6"},
             {"on, EVD, EVD, TIP", "GEN-302@6"},
             {"on, BEP", "GEN-320@5"},
             {"on, BBP, BIP, TIP", "GEN-321@7"},
             {"off, FUP, TIP", "GEN-342@3"},
             {"on, FUP, PIP, TIP.PGE", "PKT-077@5"},
             {"on, FUP(), TIP", "PKT-078@5"},
             {"on, PSBEND", "PKT-134@5"},
             {"PSB, PSB, PSBEND", "PKT-142@1"},
             {"on, MODE.TSX, MTC, TIP", "PKT-273@5"},
         }) {
        INFO(one.packets);
        CHECK(violations_in(one.packets) == one.expected);
        rules.insert(std::string{one.expected}.substr(0, 7));
    }
    for (auto const& row : table().rows) {
        CHECK_MESSAGE((row.broken.empty() || rules.count(row.broken) == 1), row.place);
    }
}
