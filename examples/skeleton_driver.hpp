// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/driver.hpp>

// A driver of Intel PT for one logical processor. It needs no standard library: the same file is
// compiled for a program and for a kernel.
namespace skeleton {

using namespace ptspec;

/// A context that is traced into a ring of its own.
struct context {
    driver::ring ring{};
    driver::ring_reader reader{};
    access::msr_state msrs{};  // while it is switched out
    uint64_t gaps = 0;         // times that the ring was full
};

/// `Consumer` is called as `consumer(context, physical address, bytes)` with new trace, in order.
template <driver::fenced_msr_port Msrs, class Consumer>
class pt_driver {
public:
    pt_driver(Msrs& msrs, Consumer& consumer) : msrs_{msrs}, consumer_{consumer} {}

    /// Prepares a context. Its lists are borrowed. Returns false if this processor cannot trace in
    /// this way.
    template <size_t Regions, size_t Pages>
    auto add(context& one, cpu::capabilities const& caps, config::trace_config const& wanted,
             topa::region const (&regions)[Regions], driver::table_page const (&pages)[Pages])
        -> bool {
        auto const built = driver::build_ring(driver::buffer_recipe::streaming, regions, Regions,
                                              pages, Pages, topa::limits::of(caps));
        if (!built) { return false; }
        one = {.ring = built.ring};
        auto const planned = driver::plan(
            caps, {.config = wanted, .output = driver::output_at_start(one.ring)});
        one.msrs = planned.plan;
        return static_cast<bool>(planned);
    }

    /// Stops the current context and traces another one, or none.
    auto switch_to(context* next) -> bool {
        if (current_ != nullptr) {
            auto const saved = driver::save(msrs_);
            if (!saved) { return false; }
            current_->msrs = saved.state;
            driver::continue_after(read_out(driver::stopped_at(saved.state)), current_->msrs);
        }
        current_ = next;
        return next == nullptr || driver::restore(msrs_, next->msrs);
    }

    /// The handler of the performance-monitoring interrupt.
    template <class UnmaskLvt>
    auto on_pmi(UnmaskLvt&& unmask_lvt) -> driver::pmi_outcome {
        return driver::on_topa_pmi(
                   msrs_, [&](driver::stopped_trace const& now) { return read_out(now).next; },
                   unmask_lvt)
            .outcome;
    }

private:
    auto read_out(driver::stopped_trace const& now) -> driver::drained {
        msrs_.fence();
        auto const result = driver::drain(
            current_->ring, current_->reader, now,
            [&](phys_addr base, uint64_t bytes) { consumer_(*current_, base, bytes); });
        current_->gaps += result.was_stopped ? 1 : 0;
        return result;
    }

    Msrs& msrs_;
    Consumer& consumer_;
    context* current_ = nullptr;
};

}  // namespace skeleton
