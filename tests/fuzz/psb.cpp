// SPDX-License-Identifier: BSL-1.0
// Fuzzes the search for PSBs against a search that tests every offset.
//
//   byte 0..5    where searches begin: three numbers of two bytes, modulo the size plus 20
//   byte 6..13   the sizes of chunks, one byte each; FFH means 4096
//   byte 14..    a description of the bytes to search: see `build`

#include <vector>

#include <ptspec/trace/psb_search.hpp>

#include <fuzz/check.hpp>
#include <fuzz/naive.hpp>

namespace {

using fuzz::require;
using namespace ptspec;

/// Builds bytes from a short description, where n is the low digit of a byte: 0n n pairs 02 82; 1n
/// the byte 82, then n pairs; 2n n bytes 02; 3n n bytes 82; 4n n times 256 zeros. Any other byte is
/// copied.
auto build(fuzz::input from) -> std::vector<uint8_t> {
    std::vector<uint8_t> out;
    auto const repeat = [&](unsigned count, uint8_t byte) { out.insert(out.end(), count, byte); };
    while (!from.is_empty() && out.size() < 12000) {
        uint8_t const what = from.byte();
        unsigned const count = what % 16U;
        switch (what / 16) {
            case 1: out.push_back(0x82); [[fallthrough]];
            case 0:
                for (unsigned i = 0; i < count; ++i) {
                    out.push_back(0x02);
                    out.push_back(0x82);
                }
                break;
            case 2: repeat(count, 0x02); break;
            case 3: repeat(count, 0x82); break;
            case 4: repeat(count * 256, 0x00); break;
            default: out.push_back(what); break;
        }
    }
    return out;
}

/// All PSBs that a search in chunks finds.
auto found_in_pieces(byte_view in, std::vector<size_t> const& sizes) -> std::vector<size_t> {
    std::vector<size_t> found;
    trace::psb_search search;
    size_t begin = 0;
    for (size_t const size : sizes) {
        fuzz::copy const piece{in.from(begin).first(size)};
        size_t at = 0;
        while (search.feed(byte_view{piece}.from(at))) {
            require(search.end() >= -1, "a PSB ends at most one byte before the chunk");
            auto const end = static_cast<size_t>(static_cast<int64_t>(begin + at) + search.end());
            found.push_back(end - trace::psb_bytes);
            search = {};
            at = end > begin ? end - begin : 0;
        }
        if (begin + piece.size() == in.size()) {
            if (search.finish()) {
                auto const end = static_cast<int64_t>(begin + at) + search.end();
                found.push_back(static_cast<size_t>(end) - trace::psb_bytes);
            }
            return found;
        }
        begin += piece.size();
    }
    require(false, "the chunks contain all bytes");
    return found;
}

}  // namespace

extern "C" auto LLVMFuzzerTestOneInput(uint8_t const* data, size_t size) -> int {
    fuzz::input from{data, size};
    size_t places[3];
    for (size_t& place : places) { place = from.byte() * size_t{256} + from.byte(); }
    std::vector<size_t> sizes;
    for (unsigned i = 0; i < 8; ++i) {
        size_t const one = from.byte();
        sizes.push_back(one == 255 ? 4096 : one);
    }
    fuzz::copy const bytes{build(from)};
    byte_view const in = bytes;
    auto const psbs = naive::psbs(in);

    std::vector<size_t> walked;
    for (size_t at = trace::find_psb(in); at != trace::npos; at = trace::find_psb(in, at + 1)) {
        walked.push_back(at);
    }
    require(walked == psbs, "find_psb finds every PSB, forwards");

    walked.clear();
    for (size_t at = trace::find_psb_before(in, in.size()); at != trace::npos;
         at = trace::find_psb_before(in, at)) {
        walked.insert(walked.begin(), at);
    }
    require(walked == psbs, "find_psb_before finds every PSB, backwards");

    for (size_t place : places) {
        place %= in.size() + 20;
        size_t next = trace::npos;
        size_t previous = trace::npos;
        for (size_t const psb : psbs) {
            if (psb >= place && next == trace::npos) { next = psb; }
            if (psb < place) { previous = psb; }
        }
        require(trace::find_psb(in, place) == next, "find_psb returns the first PSB from here on");
        require(trace::find_psb_before(in, place) == previous,
                "find_psb_before returns the last PSB before here");
    }

    sizes.push_back(in.size());
    require(found_in_pieces(in, sizes) == psbs, "a search in chunks finds every PSB");
    return 0;
}
