// SPDX-License-Identifier: BSL-1.0

// Prints the instructions of a perf.data file as pt_trace does while it records: round by round.
// Each line is `PID/TID IP`, or `PID/TID gap REASON`.

#include "../../examples/tools/pt_trace/live_walk.hpp"
#include "../../examples/tools/common/event_names.hpp"
#include "../../examples/tools/common/tool.hpp"

#include <memory>
#include <string>
#include <vector>

namespace {

using namespace ptspec;
namespace perf_data = file::perf_data;

class lines : public reports::report {
public:
    explicit lines(tool::output& to) : to_{to} {}

    [[nodiscard]] auto wants() const -> reports::wanted override { return {.instructions = true}; }
    void thread(traced::thread_id which) override {
        auto const text = [](std::uint32_t number) {
            return number == traced::no_process ? std::string{"?"} : std::to_string(number);
        };
        name_ = text(which.pid) + "/" + text(which.tid) + " ";
    }
    void instruction(flow::executed const& one) override {
        to_.write(name_ + tool::hex(one.ip) + "\n");
        ++found.printed;
    }
    void gap(flow::gap const& one) override {
        auto const why = events::name_of_gap(one.why);
        to_.write(name_ + "gap " + std::string{why.data(), why.size()} + "\n");
    }

private:
    tool::output& to_;
    std::string name_{"?/? "};
};

auto run_tool(tool::command_line& line) -> int {
    (void)line.next();
    tool::input in{line.argument()};
    trace_file::memory const whole{in, std::string_view{}};
    auto const bytes = whole.bytes();
    auto const part = [&](std::uint64_t from, std::uint64_t end) {
        return std::vector<std::uint8_t>(bytes.data() + from, bytes.data() + end);
    };
    tool::output out;
    std::unique_ptr<pt_trace::live_walk> walk;
    auto all = perf_data::records(perf_data::open(bytes));
    std::uint64_t begin = 0;
    while (auto const one = all.next()) {
        if (one.type == perf_data::record_type::auxtrace_info) {
            walk = std::make_unique<pt_trace::live_walk>(
                part(0, all.offset()), "instructions", traced::code_files{}, out,
                [&](auto&, auto&) { return std::make_unique<lines>(out); });
            begin = all.offset();
        }
        if (one.type == perf_data::record_type::finished_round && walk) {
            walk->add_round(part(begin, all.offset()));
            begin = all.offset();
        }
    }
    if (!walk) { throw tool::failure{"needs an AUXTRACE_INFO record"}; }
    walk->add_round(part(begin, all.offset()));
    bool const is_complete = walk->finish();
    out.close();
    return is_complete ? 0 : 1;
}

}  // namespace

auto main(int count, char** arguments) -> int {
    return tool::run("live_walk", count, arguments, run_tool);
}
