// SPDX-License-Identifier: BSL-1.0
#include <tools/common/draw/svg.hpp>

#include <ptspec/packet/list.hpp>
#include <ptspec/reg/list.hpp>
#include <ptspec/topa/entry.hpp>

#include <support/check_twice.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace ptspec;

namespace {

struct string_writer {
    std::string written;

    void operator()(text piece) { written.append(piece.data(), piece.size()); }
};

auto drawn(print::row_list const& of, draw::svg_drawing how = {}) -> std::string {
    string_writer out;
    draw::svg_diagram(of, out, how);
    return out.written;
}
template <class Type>
auto drawn(draw::svg_drawing how = {}) -> std::string {
    return drawn(print::row_list_of<Type>(), how);
}

/// The text after the title, with a new line before each top-level element.
template <class Type>
auto elements(draw::svg_drawing how = {}) -> std::string {
    how.standalone = false;
    auto const picture = drawn<Type>(how);
    std::string out;
    std::size_t from = picture.find("</title>") + 8;
    while (from < picture.size()) {
        std::size_t end = picture.size();
        for (std::string_view const last : {"</title>", "/>", "</text>", "</g>"}) {
            if (auto const at = picture.find(last, from); at != std::string::npos) {
                end = std::min(end, at + last.size());
            }
        }
        out += "\n" + picture.substr(from, end - from);
        from = end;
    }
    return out + "\n";
}

/// The text before the elements.
template <class Type>
auto head(draw::svg_drawing how = {}) -> std::string {
    auto const picture = drawn<Type>(how);
    return picture.substr(0, picture.find("</title>") + 8);
}

/// A word with every kind of box.
///
/// Shape:  40 bits.
/// Source: none.
struct sample : bit_word<sample, uint64_t> {
    struct Plain : field<3, 0> {};
    struct A_longer_name : flag<4> {};
    struct Status : read_only<flag<38>> {};
    struct Split : field<37, 29> {};
    struct At_the_edge : flag<39> {};
    struct layout : bit_layout<40, Plain, A_longer_name, other<20, 5>, reserved<28, 21>, Split,
                               Status, At_the_edge> {};
};

/// A packet with every kind of box.
///
/// Shape:  6 or 8 bytes.
/// Source: none.
struct sample_packet : packet::packet_word<sample_packet, 4, packet::payload_of<2, 4>> {
    static constexpr packet::facts about{.id = packet::kind::pad, .name = "A<B"};

    struct Opcode : fixed<5, 0, 0x2A> {};
    struct Selector_ : selects_payload<flag<6>> {};
    struct Bits : flag<7> {};
    struct Bytes : fixed<23, 8, 0x0102> {};
    struct layout : bit_layout<32, Opcode, Selector_, Bits, Bytes, reserved<31, 24>> {};
};

}  // namespace

TEST_CASE("special characters of HTML are escaped") {
    CHECK_TWICE([](auto value) {
        return print::written<60>([&](auto& out) {
                   draw::escaped(value(text{"a<b>&\"c'"}), out);
               }) == "a&lt;b&gt;&amp;&quot;c&#39;" &&
               print::written<60>([&](auto& out) { draw::escaped(value(text{"abc"}), out); }) ==
                   "abc" &&
               print::written<60>([&](auto& out) { draw::escaped(value(text{""}), out); }) == "" &&
               print::written<60>([&](auto& out) { draw::escaped(value(text{"<"}), out); }) ==
                   "&lt;";
    });
    // Characters after the end of the text are not read.
    constexpr auto one_letter = print::written<60>([](auto& out) {
        char const letters[] = {'a'};
        draw::escaped(text{letters, 1}, out);
    });
    CHECK((one_letter == "a"));
}

TEST_CASE("a word is drawn with boxes, numbers, names and leaders") {
    CHECK(elements<sample>() == R"(
<text class="number" x="11" y="9">39</text>
<text class="number" x="33" y="9">38</text>
<text class="number" x="47" y="9" text-anchor="start">37</text>
<text class="number" x="173" y="9" text-anchor="end">32</text>
<g><title>At_the_edge, bit 39, read/write</title>
<rect class="field" x="0" y="13" width="22" height="28"/>
</g>
<g><title>Status, bit 38, read only</title>
<rect class="field owned" x="22" y="13" width="22" height="28"/>
</g>
<g><title>Split, bits 37:29, read/write</title>
<rect class="field" x="44" y="13" width="132" height="28"/>
<text x="110" y="31">Split[8:3]</text>
</g>
<path d="M11 41v29h6"/>
<text x="20" y="74" text-anchor="start">At_the_edge</text>
<path d="M33 41v12h6"/>
<text x="42" y="57" text-anchor="start">Status</text>
<text class="number" x="3" y="96" text-anchor="start">31</text>
<text class="number" x="63" y="96" text-anchor="end">29</text>
<text class="number" x="69" y="96" text-anchor="start">28</text>
<text class="number" x="239" y="96" text-anchor="end">21</text>
<text class="number" x="245" y="96" text-anchor="start">20</text>
<text class="number" x="591" y="96" text-anchor="end">5</text>
<text class="number" x="605" y="96">4</text>
<text class="number" x="619" y="96" text-anchor="start">3</text>
<text class="number" x="701" y="96" text-anchor="end">0</text>
<g><title>Split, bits 37:29, read/write</title>
<rect class="field" x="0" y="100" width="66" height="28"/>
<text x="33" y="118">Split</text>
</g>
<g><title>reserved, bits 28:21</title>
<rect class="reserved" x="66" y="100" width="176" height="28"/>
<text x="154" y="118" class="quiet">reserved</text>
</g>
<g><title>other, bits 20:5</title>
<rect class="other" x="242" y="100" width="352" height="28"/>
<text x="418" y="118" class="quiet">other</text>
</g>
<g><title>A_longer_name, bit 4, read/write</title>
<rect class="field" x="594" y="100" width="22" height="28"/>
</g>
<g><title>Plain, bits 3:0, read/write</title>
<rect class="field" x="616" y="100" width="88" height="28"/>
<text x="660" y="118">Plain</text>
</g>
<path d="M605 128v12h-6"/>
<text x="596" y="144" text-anchor="end">A_longer_name</text>
</svg>
)");
}

TEST_CASE("a word can be drawn in shorter lines") {
    auto const all = elements<sample>({.bits_per_line = 16});
    CHECK(all.substr(all.find("\n<text class=\"number\" x=\"3\" y=\"145\"")) == R"(
<text class="number" x="3" y="145" text-anchor="start">15</text>
<text class="number" x="239" y="145" text-anchor="end">5</text>
<text class="number" x="253" y="145">4</text>
<text class="number" x="267" y="145" text-anchor="start">3</text>
<text class="number" x="349" y="145" text-anchor="end">0</text>
<g><title>other, bits 20:5</title>
<rect class="other" x="0" y="149" width="242" height="28"/>
<text x="121" y="167" class="quiet">other</text>
</g>
<g><title>A_longer_name, bit 4, read/write</title>
<rect class="field" x="242" y="149" width="22" height="28"/>
</g>
<g><title>Plain, bits 3:0, read/write</title>
<rect class="field" x="264" y="149" width="88" height="28"/>
<text x="308" y="167">Plain</text>
</g>
<path d="M253 177v12h-6"/>
<text x="244" y="193" text-anchor="end">A_longer_name</text>
</svg>
)");
}

TEST_CASE("a packet is drawn in bytes, and a long name is compressed into its box") {
    CHECK(elements<sample_packet>() == R"(
<text class="number" x="64" y="9">7</text>
<text class="number" x="108" y="9">6</text>
<text class="number" x="152" y="9">5</text>
<text class="number" x="196" y="9">4</text>
<text class="number" x="240" y="9">3</text>
<text class="number" x="284" y="9">2</text>
<text class="number" x="328" y="9">1</text>
<text class="number" x="372" y="9">0</text>
<text class="number" x="36" y="31" text-anchor="end">0</text>
<g><title>Bits, 0.7</title>
<rect class="field" x="42" y="13" width="44" height="28"/>
<text x="64" y="31">Bits</text>
</g>
<g><title>Selector_, 0.6</title>
<rect class="field" x="86" y="13" width="44" height="28"/>
<text x="108" y="31" textLength="40" lengthAdjust="spacingAndGlyphs">Selector_</text>
</g>
<g><title>Opcode, 0.0..0.5</title>
<rect class="fixed" x="130" y="13" width="264" height="28"/>
<text x="152" y="31">1</text>
<text x="196" y="31">0</text>
<text x="240" y="31">1</text>
<text x="284" y="31">0</text>
<text x="328" y="31">1</text>
<text x="372" y="31">0</text>
</g>
<text class="number" x="36" y="59" text-anchor="end">1..2</text>
<g><title>Bytes, 1.0..2.7</title>
<rect class="fixed" x="42" y="41" width="352" height="28"/>
<text x="218" y="59">02H 01H</text>
</g>
<text class="number" x="36" y="87" text-anchor="end">3</text>
<g><title>reserved, 3.0..3.7</title>
<rect class="reserved" x="42" y="69" width="352" height="28"/>
<text x="218" y="87" class="quiet">reserved</text>
</g>
<text class="number" x="36" y="115" text-anchor="end">4..7</text>
<g><title>payload, 4.0..7.7</title>
<rect class="field" x="42" y="97" width="352" height="28"/>
<text x="218" y="115">payload (2 or 4 bytes)</text>
</g>
</svg>
)");
}

namespace {

/// Labels that exactly fit on one level, and labels that exactly do not.
///
/// Shape:  32 bits.
/// Source: none.
struct exact : bit_word<exact, uint32_t> {
    struct Twelve_more_ : flag<11> {};
    struct Two : flag<16> {};
    struct One : flag<22> {};
    struct Twelve_long_ : flag<24> {};
    struct layout : bit_layout<32, other<10, 0>, Twelve_more_, other<15, 12>, Two, other<21, 17>,
                               One, other<23>, Twelve_long_, other<31, 25>> {};
};

/// A label that extends past the right edge.
///
/// Shape:  3 bits.
/// Source: none.
struct narrow : bit_word<narrow, uint32_t> {
    struct Nine_long : flag<0> {};
    struct layout : bit_layout<3, Nine_long, other<2, 1>> {};
};

/// A name that fits exactly with two pixels on both sides, and one that does not fit by one pixel.
///
/// Shape:  28 bits.
/// Source: none.
struct exact_names : bit_word<exact_names, uint32_t> {
    struct a_name_of_forty_eight_letters_is_just_as_long_as : field<15, 0> {};
    struct a_name_of_thirty_six_letters_is_not_ : field<27, 16> {};
    struct layout : bit_layout<28, a_name_of_forty_eight_letters_is_just_as_long_as,
                               a_name_of_thirty_six_letters_is_not_> {};
};

/// The single digits in a drawing, from left to right and top to bottom.
auto digits_in(std::string const& picture) -> std::string {
    std::string digits;
    for (std::size_t at = 0; at + 2 < picture.size(); ++at) {
        bool const alone = picture[at] == '>' && picture[at + 2] == '<';
        if (alone && (picture[at + 1] == '0' || picture[at + 1] == '1')) {
            digits += picture[at + 1];
        }
    }
    return digits;
}

}  // namespace

TEST_CASE("the bits of fixed rows are at their positions") {
    // The bit numbers 1 and 0 come first, and each byte follows its own number.
    CHECK(digits_in(drawn<packet::exstop>()) == "10"
                                                "0"
                                                "00000010"
                                                "1"
                                                "1100010");
    CHECK(digits_in(drawn<packet::mode_tsx>()) == "10"
                                                  "0"
                                                  "10011001"
                                                  "1"
                                                  "001");
}

TEST_CASE("lines of bytes have their numbers, and rows are at their positions") {
    auto const picture = drawn<reg::xsave_pt_state>();
    CHECK(picture.find(">72..79</text>") != std::string::npos);
    CHECK(picture.find(">120..127</text>") != std::string::npos);
    CHECK(picture.find("<title>reserved, 120.0..127.7</title>") != std::string::npos);
}

TEST_CASE("labels share a level if there are nine pixels between them") {
    auto const all = elements<exact>();
    CHECK(all.substr(all.find("<path")) == R"(<path d="M165 41v12h-6"/>
<text x="156" y="57" text-anchor="end">Twelve_long_</text>
<path d="M209 41v29h-6"/>
<text x="200" y="74" text-anchor="end">One</text>
<path d="M341 41v12h-6"/>
<text x="332" y="57" text-anchor="end">Two</text>
<path d="M451 41v12h-6"/>
<text x="442" y="57" text-anchor="end">Twelve_more_</text>
</svg>
)");
}

TEST_CASE("a name is inside its box if there are two pixels on both sides") {
    auto const all = elements<exact_names>();
    CHECK(all.find("y=\"31\">a_name_of_forty_eight_letters") != std::string::npos);
    CHECK(all.find("text-anchor=\"start\">a_name_of_thirty_six_letters") != std::string::npos);
}

TEST_CASE("rows without a name show their kind if there is room") {
    auto const quiet = [](std::string const& picture) {
        return picture.find("class=\"quiet\"") != std::string::npos;
    };
    CHECK(!quiet(drawn<topa::entry>({.standalone = false})));
    CHECK(quiet(drawn<reg::ia32_rtit_output_base>({.standalone = false})));
}

TEST_CASE("the head has the size, the title and the font") {
    CHECK(head<sample>({.standalone = false}) ==
          "<svg class=\"ptspec\" role=\"img\" width=\"705\" height=\"150\" "
          "viewBox=\"-.5 -.5 705 150\" text-anchor=\"middle\" font-size=\"12\" "
          "font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace\">"
          "<title>sample</title>");
    auto const size_of = [](std::string const& what) {
        auto const from = what.find("width");
        return what.substr(from, what.find(" viewBox") - from);
    };
    CHECK(size_of(head<sample>({.bits_per_line = 16})) == "width=\"353\" height=\"199\"");
    CHECK(size_of(head<sample_packet>()) == "width=\"395\" height=\"126\"");
    CHECK(size_of(head<topa::end_entry>()) == "width=\"705\" height=\"112\"");
    CHECK(size_of(head<reg::ia32_rtit_output_base>()) == "width=\"705\" height=\"91\"");
    CHECK(size_of(head<narrow>()) == "width=\"136\" height=\"63\"");
    // A label to the right of the last line makes the drawing wider.
    CHECK(size_of(head<reg::ia32_rtit_ctl>({.bits_per_line = 16})) ==
          "width=\"407\" height=\"473\"");
}

TEST_CASE("a title from the caller is escaped") {
    CHECK(drawn<topa::entry>({.title = "a<b", .standalone = false}).find("<title>a&lt;b</title>") !=
          std::string::npos);
    CHECK(drawn<sample_packet>().find("<title>A&lt;B</title>") != std::string::npos);
}

TEST_CASE("a standalone drawing has its namespace and its colours") {
    auto const picture = drawn<topa::entry>();
    CHECK(picture.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ptspec\" ", 0) == 0);
    auto const style = std::string{"<title>entry</title><style>.ptspec{color:#1f2328;background:"
                                   "#fff}@media(prefers-color-scheme:dark){.ptspec{color:#e6edf3;"
                                   "background:#0d1117}}"} +
                       [] {
                           std::string rules;
                           draw::svg_style(
                               [&](text piece) { rules.append(piece.data(), piece.size()); });
                           return rules;
                       }() +
                       "</style><text ";
    CHECK(picture.find(style) != std::string::npos);
    auto const part = drawn<topa::entry>({.standalone = false});
    CHECK(part.find("style") == std::string::npos);
    CHECK(part.find("xmlns") == std::string::npos);
}

TEST_CASE("the style sheet has a rule for every class and colours for light and dark mode") {
    constexpr auto rules = print::written<800>([](auto& out) { draw::svg_style(out); });
    std::string_view const all{rules.characters, rules.length};
    for (std::string_view const name : {"number", "quiet", "owned", "reserved", "other", "fixed"}) {
        CHECK(all.find(".ptspec ." + std::string{name} + "{") != std::string_view::npos);
    }
    CHECK(all.find("stroke:currentColor") != std::string_view::npos);
    CHECK(all.find("url(") == std::string_view::npos);
    CHECK(!rules.is_truncated);
}

TEST_CASE("a drawing can be a constant expression") {
    constexpr auto picture = print::written<1500>(
        [](auto& out) { draw::svg_diagram<packet::pad>(out, {.standalone = false}); });
    CHECK(std::string(picture.characters, picture.length) ==
          drawn<packet::pad>({.standalone = false}));
    CHECK(!picture.is_truncated);
}

// ------------------------------------------------------------------------------------ laws

namespace {

/// The open elements at the end of a drawing, or `?` if an element is closed that is not open.
auto open_elements(std::string const& picture) -> std::string {
    std::vector<std::string> open;
    for (std::size_t at = picture.find('<'); at != std::string::npos; at = picture.find('<', at)) {
        auto const end = picture.find('>', at);
        if (end == std::string::npos) { return "?"; }
        auto const tag = picture.substr(at + 1, end - at - 1);
        auto const name = tag.substr(0, tag.find_first_of(" />", tag[0] == '/' ? 1 : 0));
        if (tag[0] == '/') {
            if (open.empty() || "/" + open.back() != name) { return "?"; }
            open.pop_back();
        } else if (tag.back() != '/') {
            open.push_back(name);
        }
        at = end;
    }
    return open.empty() ? "" : open.back();
}

auto number_after(std::string const& text, std::string const& what, std::size_t from) -> unsigned {
    return static_cast<unsigned>(std::stoul(text.substr(text.find(what, from) + what.size())));
}

void check_picture(print::row_list const& rows) {
    auto const picture = drawn(rows, {.standalone = false});
    CHECK(open_elements(picture) == "");
    for (auto const& one : rows) {
        if (one.row.kind == row_kind::field) {
            CHECK(picture.find(">" + std::string(one.row.name.data(), one.row.name.size())) !=
                  std::string::npos);
        }
    }
    // Boxes are adjacent from the left edge to the right edge.
    unsigned const edge = !draw::drawn_in_bytes(rows) ? 0 : rows.bits > 800 ? 54 : 42;
    unsigned x = edge;
    unsigned y = 0;
    for (auto at = picture.find("<rect"); at != std::string::npos;
         at = picture.find("<rect", at + 1)) {
        if (auto const top = number_after(picture, " y=\"", at); top != y) {
            y = top;
            x = edge;
        }
        CHECK(number_after(picture, " x=\"", at) == x);
        x += number_after(picture, " width=\"", at);
    }
    CHECK(x == number_after(picture, " width=\"", 0) - 1);
}

template <class... Types>
auto layouts_of(type_list<Types...> /*types*/) -> std::vector<print::row_list> {
    return {print::row_list_of<Types>()...};
}

}  // namespace

TEST_CASE("every word is drawn completely with all names") {
    auto words = layouts_of(reg::all{});
    words.push_back(print::row_list_of<topa::entry>());
    words.push_back(print::row_list_of<topa::end_entry>());
    for (auto const& word : words) {
        CAPTURE(std::string(word.name.data(), word.name.size()));
        check_picture(word);
    }
}

TEST_CASE("every packet is drawn completely with all names") {
    for (auto const& packet : layouts_of(packet::all{})) {
        CAPTURE(std::string(packet.name.data(), packet.name.size()));
        check_picture(packet);
    }
}
