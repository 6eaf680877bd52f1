// SPDX-License-Identifier: BSL-1.0

// Any bytes as a file of the Intel PT driver of Windows: nothing outside of them is read, and the
// traces follow each other.

#include <ptspec/file/winipt.hpp>

#include <fuzz/check.hpp>

using namespace ptspec;
using namespace ptspec::file::winipt;
using fuzz::require;

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::copy const bytes{{data, size}};
    byte_view const whole{bytes};
    auto all = traces(whole);
    uint64_t next = 8;
    while (auto const one = all.next()) {
        require(one.offset == next, "a trace begins after the one before");
        next = one.offset + 28 + one.ring.size();
        require(next <= size, "a trace ends in the file");
        require(one.ring.empty() || one.ring.begin() == whole.begin() + one.offset + 28,
                "a ring follows its header");
        require(one.older().size() + one.newer().size() == one.ring.size(),
                "two parts of the ring");
        require(one.newer().empty() || one.newer().begin() == one.ring.begin(),
                "the newer part begins the memory");
        require(one.older().empty() || one.older().end() == one.ring.end(),
                "the older part ends the memory");
        unsigned sum = 0;
        for (uint8_t const byte : one.ring) { sum += byte; }
        static_cast<void>(sum);
    }
    require(all.result() || all.result().offset <= size, "an error is inside the file");
    require(!(describe(all.result().error) == "unknown error"), "an error has a sentence");
    require(!all.next(), "the end is the end");
    return 0;
}
