// SPDX-License-Identifier: BSL-1.0
// GEN-008, GEN-010: where packets begin.
#include <ptspec/trace/check/placement.hpp>

#include <support/check_twice.hpp>
#include <support/made_stream.hpp>

using namespace ptspec;
using engine::model_kind;
using test::findings_in;
using test::made_stream;

namespace {

/// All packets are in place.
constexpr auto fits(made_stream const& stream, model_kind of) -> bool {
    return findings_in(stream.view(), engine::check_options_of(of)).count == 0;
}
/// Only the packet at the mark is misplaced.
constexpr auto is_misplaced(made_stream const& stream, model_kind of) -> bool {
    auto const got = findings_in(stream.view(), engine::check_options_of(of));
    return got.count == 1 && got.last.broken == rule::GEN_010 && got.last.offset == stream.mark;
}

}  // namespace

// As macros, so that each stream is a constant expression of its own.
#define FITS(of, text)                                                                             \
    CHECK_TWICE(                                                                                   \
        [](auto value) { return fits(value(made_stream{text, model_kind::of}), model_kind::of); })
#define MISPLACED(of, text)                                                                        \
    CHECK_TWICE([](auto value) {                                                                   \
        return is_misplaced(value(made_stream{text, model_kind::of}), model_kind::of);             \
    })

// Each ON of skylake ends 6 bytes after the beginning of a word.

TEST_CASE("skylake: narrow packets do not cross a word (GEN-010)") {
    FITS(skylake, "ON fe fe fe");
    FITS(skylake, "ON 5901 fe");
    MISPLACED(skylake, "ON 00 !fe fe");
    FITS(skylake, "ON fe 00 5901");
    MISPLACED(skylake, "ON fe !5901");
    FITS(skylake, "ON fe 00 CBR");
    MISPLACED(skylake, "ON fe !CBR");
}

TEST_CASE("skylake: wide payloads begin at a word, and what follows after one (GEN-010)") {
    FITS(skylake, "ON 0243000000000000 0000 fe");
    MISPLACED(skylake, "ON 0243000000000000 !fe");
    MISPLACED(skylake, "ON fe !0243000000000000");
    FITS(skylake, "ON fe 00000000000000 1901000000000000");
    FITS(skylake, "ON 00 7d051000000000 0000 01");
    MISPLACED(skylake, "ON !7d051000000000 0000 01");
}

TEST_CASE("skylake: MODEs stand directly before the IP, or alone at a word (GEN-010)") {
    FITS(skylake, "OFF 0000 9921 5901");
    MISPLACED(skylake, "OFF !9921 5901");
    FITS(skylake, "OFF 0000 9921 000000000000 9920 CBR");
    MISPLACED(skylake, "OFF 0000 9921 !9920 CBR");
    // A MODE.TSX of the same event as the TIP.PGE, or of an event before.
    FITS(skylake, "OFF 0000000000 9921 9901 71001000000000");
    FITS(skylake, "OFF 0000 9921 000000 9901 71001000000000");
    MISPLACED(skylake, "OFF 0000 !9921 00 9901 71001000000000");
    FITS(skylake, "OFF 0000 9921 000000 0b 1900000000000000");
    MISPLACED(skylake, "OFF 0000 9921 0000 !0b 1900000000000000");
    // TraceEn fell after it.
    FITS(skylake, "OFF 5901 5902 000000000000 9921 0000000000000000000000000000 PSB CBR 0223");
    FITS(skylake, "ON 00000000000000 9921 7d051000000000 0000 fe");
    MISPLACED(skylake, "ON 0000 !9921 7d051000000000 0000 fe");
}

TEST_CASE("skylake: a CYC and its packet (GEN-010)") {
    FITS(skylake, "ON 0000 0b 2d0020");
    MISPLACED(skylake, "ON !0b 2d0020");
    FITS(skylake, "ON fe 0b fe");
    FITS(skylake, "ON 0b fe");
    MISPLACED(skylake, "ON fe 00 !0b fe");
    FITS(skylake, "ON fe fe fe fe fe fe fe fe 0b 01");
    FITS(skylake, "ON fe fe fe fe fe fe fe fe fe 0b 01");
    MISPLACED(skylake, "ON fe fe fe fe fe fe fe fe fe 00 !0b 01");
}

TEST_CASE("skylake: a CYC and its TNT may cross a word after a full TNT (GEN-010)") {
    FITS(skylake, "ON fe fe fe fe fe fe fe 0b fe 0f02 fe");
    FITS(skylake, "ON fe fe fe fe fe fe fe 0b fe 00 0f02 fe");
    FITS(skylake, "ON fe fe fe fe fe fe fe fe fe 0f02 fe");
    FITS(skylake, "ON fe fe fe fe fe fe fe fe 0f0502 fe");
    MISPLACED(skylake, "ON fe fe fe fe fe fe 2d1010 !0f02 fe");
    MISPLACED(skylake, "ON fe fe fe fe fe fe fe fe fe !0f02 01");
}

TEST_CASE("PADs where TraceEn falls (GEN-010)") {
    FITS(skylake, "ON 00 7d051000000000 0000 01 CBR");
    FITS(skylake, "ON 00 7d051000000000 0000 01 000000000000000000000000000000 CBR");
    MISPLACED(skylake, "ON 00 7d051000000000 0000 01 0000000000000000000000000000 !CBR");
    MISPLACED(skylake, "ON 00 7d051000000000 0000 01 00000000000000 !CBR");
    MISPLACED(skylake, "ON fe fe fe 00000000000000 !fe");
}

TEST_CASE("where a stream begins between words, its words do, too (GEN-010)") {
    MISPLACED(skylake, "060606 ON 00 !fe fe");
    FITS(skylake, "060606 ON 00 7d051000000000 0000 01 00000000000000 CBR");
    FITS(skylake, "060606 ON 00 7d051000000000 0000 01 000000000000000000000000000000 CBR");
    MISPLACED(skylake, "060606 ON 00 7d051000000000 0000 01 0000000000000000 !CBR");
}

TEST_CASE("after a misplaced packet the places are unknown up to the next PSB") {
    FITS(skylake, "OFF");
    MISPLACED(skylake, "ON 00 !fe fe 00 fe 00 fe");
    MISPLACED(skylake, "ON 00 !ON fe fe");
    MISPLACED(skylake, "OFF !9921 PSB CBR 0223 0000 5901");
    CHECK_TWICE([](auto value) {
        auto const stream = value(
            made_stream{"OFF 9921 PSB CBR 0223 00 5901", model_kind::skylake});
        return findings_in(stream.view(), engine::check_options_of(model_kind::skylake)).count == 2;
    });
    CHECK_TWICE([](auto value) {
        auto const stream = value(made_stream{"ON 00 fe fe ON 00 fe fe", model_kind::skylake});
        return findings_in(stream.view(), engine::check_options_of(model_kind::skylake)).count > 1;
    });
}

TEST_CASE("broadwell: each packet in a word of its own (GEN-010)") {
    MISPLACED(broadwell, "ON 000000000000 fe !5901");
    MISPLACED(broadwell, "ON !fe");
}

TEST_CASE("atom: no PADs (GEN-010)") {
    FITS(atom, "ON 06 2d0020 5901 06");
    MISPLACED(atom, "ON 06 00 !5901");
}
