// SPDX-License-Identifier: BSL-1.0
// Every public function of ptspec.hpp, wrapped in a C function that firmware could call. Nothing
// here runs: tests/checks/freestanding.py inspects the object file and links it only with
// memory.cpp, and .ci/targets compiles it for many targets.
//
// Templates that are instantiated for each row or packet are selected by index.

#include <ptspec/ptspec.hpp>

using namespace ptspec;
using packet::block;

namespace {

/// Words of every shape.
using words =
    type_list<reg::ia32_rtit_ctl, reg::ia32_rtit_status, reg::ia32_rtit_output_base,
              reg::ia32_rtit_output_mask_ptrs, reg::ia32_rtit_cr3_match, reg::cpuid_14h_1_ebx,
              reg::ia32_x2apic_lvt_pmi, reg::ia32_xss, topa::entry, topa::end_entry>;

/// Calls `body.operator()<Type>()` for one type of a list.
template <class Body, class... Types>
void for_type(type_list<Types...> /*types*/, unsigned index, Body const& body) noexcept {
    unsigned i = 0;
    ((i++ == index ? body.template operator()<Types>() : void()), ...);
}

/// Calls `body.operator()<Word>()` for a register or table entry, or for a packet if `index` is
/// larger.
template <class Body>
void for_word(unsigned index, Body const& body) noexcept {
    for_type(words{}, index, body);
    for_type(packet::all{}, index - static_cast<unsigned>(words::size), body);
}

template <class Word>
auto word_of(wide_bits const& bits) noexcept -> Word {
    return Word{from_wide<typename Word::raw_type>(bits)};
}

template <class Word>
void write_bits(Word const& word, wide_bits& out) noexcept {
    out = to_wide(word.raw);
}

template <class Packet, unsigned Most>
auto write_bytes(packet::encoded<Most> const& from, uint8_t* to) noexcept -> rule {
    for (unsigned i = 0; i < from.length; ++i) { to[i] = from.bytes[i]; }
    return from.broken;
}

}  // namespace

// -------------------------------------------------------------------------------- lang, rule, bits

extern "C" {

auto fw_popcount(uint64_t value) noexcept -> unsigned { return popcount(value); }
auto fw_highest_bit(uint64_t value) noexcept -> unsigned { return highest_bit(value); }
auto fw_lowest_bit(uint64_t value) noexcept -> unsigned { return lowest_bit(value); }
auto fw_hide_from_optimizer(size_t value) noexcept -> size_t { return hide_from_optimizer(value); }
auto fw_low_bits(unsigned count) noexcept -> uint64_t { return low_bits(count); }
auto fw_same_text(text const& one, text const& two) noexcept -> bool { return one == two; }
auto fw_text_sum(text const& of) noexcept -> unsigned {
    unsigned sum = 0;
    for (char const one : of) { sum += static_cast<unsigned char>(one); }
    return sum + static_cast<unsigned>(of.size()) + (of.data() == nullptr ? 1U : 0U);
}

void fw_sentence(rule which, text& out) noexcept { out = describe(which); }
auto fw_rule_id(rule which, char* out) noexcept -> size_t {
    rule_id const id{which};
    text const view = id.view();
    for (size_t i = 0; i < view.size(); ++i) { out[i] = view.data()[i]; }
    return view.size();
}

auto fw_wide_same(wide_bits const& a, wide_bits const& b) noexcept -> bool { return a == b; }
void fw_wide_mix(wide_bits& a, wide_bits const& b) noexcept { a = (a & b) | ~(a | b); }

// -------------------------------------------------------------------------------- words

auto fw_get(unsigned word, unsigned row, wide_bits const& bits) noexcept -> uint64_t {
    uint64_t out = 0;
    for_word(word, [&]<class Word>() {
        for_type(typename Word::layout::rows{}, row, [&]<class Row>() {
            if constexpr (Row::kind == row_kind::field) {
                out = static_cast<uint64_t>(word_of<Word>(bits).template get<Row>());
            }
        });
    });
    return out;
}

void fw_with(unsigned word, unsigned row, uint64_t number, wide_bits& bits) noexcept {
    for_word(word, [&]<class Word>() {
        for_type(typename Word::layout::rows{}, row, [&]<class Row>() {
            if constexpr (Row::kind == row_kind::field) {
                write_bits(word_of<Word>(bits).with(Row{wrapped{number}}), bits);
            }
        });
    });
}

auto fw_with_checked(unsigned word, unsigned row, uint64_t number, wide_bits& bits) noexcept
    -> bool {
    bool fits = false;
    for_word(word, [&]<class Word>() {
        for_type(typename Word::layout::rows{}, row, [&]<class Row>() {
            if constexpr (Row::kind == row_kind::field) {
                if (auto const value = checked<Row>(number)) {
                    write_bits(word_of<Word>(bits).with(value.field), bits);
                    fits = true;
                }
            }
        });
    });
    return fits;
}

void fw_masks(unsigned word, unsigned width, wide_bits const& bits, wide_bits* out) noexcept {
    for_word(word, [&]<class Word>() {
        out[0] = to_wide(Word::reserved_mask(width));
        out[1] = to_wide(Word::write_ignored_mask());
        out[2] = to_wide(Word::forced_1_mask());
        out[3] = to_wide(word_of<Word>(bits).reserved_bits_set(width));
    });
}

auto fw_same_word(unsigned word, wide_bits const& one, wide_bits const& two) noexcept -> bool {
    bool same = false;
    for_word(word, [&]<class Word>() { same = word_of<Word>(one) == word_of<Word>(two); });
    return same;
}

auto fw_row(unsigned word, size_t row, row_info& out) noexcept -> size_t {
    size_t count = 0;
    for_word(word, [&]<class Word>() {
        auto const rows = rows_of<Word>();
        count = rows.size();
        if (row < count) { out = rows[row]; }
    });
    return count;
}

auto fw_ctl_start(uint64_t frequency) noexcept -> uint64_t {
    using ctl = reg::ia32_rtit_ctl;
    return ctl{}
        .with(ctl::TraceEn{true}, ctl::OS{true}, ctl::User{true}, ctl::ToPA{true},
              ctl::BranchEn{true}, ctl::MTCFreq{3}, ctl::PSBFreq{wrapped{frequency}},
              ctl::ADDR0_CFG{reg::addr_cfg::filter}, ctl::CycThresh{constant<5>})
        .raw;
}

// -------------------------------------------------------------------------------- bytes, addresses

auto fw_view(uint8_t const* data, size_t size, size_t from, size_t count) noexcept -> uint64_t {
    byte_view const whole{data, size};
    auto const part = whole.from(from).first(count);
    uint64_t sum = part.size() + (part.empty() ? 1U : 0U) + (part == whole ? 2U : 0U);
    for (uint8_t const byte : part) { sum += byte; }
    return sum + (part.data() == data ? 1U : 0U);
}

auto fw_append_bytes(uint8_t* room, size_t size, uint8_t const* data, size_t count) noexcept
    -> size_t {
    byte_buffer out{room, size};
    bool const written = out.append({data, count}) && out.append({data, count});
    return written ? out.room() : out.size() + out.written().size();
}

void fw_copy_bytes(uint8_t* to, uint8_t const* from, size_t count) noexcept {
    copy_bytes(to, from, count);
}
void fw_copy_few_bytes(uint8_t* to, uint8_t const* from, size_t count) noexcept {
    copy_few_bytes(to, from, count);
}

auto fw_same_arrays(byte_array<16> const& one, byte_array<16> const& two) noexcept -> bool {
    return one == two && one[3] == two.data()[3] && one.size() == 16;
}

auto fw_load(uint8_t const* data, size_t size) noexcept -> uint64_t {
    return load_le({data, size}) ^ load_le64(data);
}
void fw_load_wide(uint8_t const* data, size_t size, wide_bits& out) noexcept {
    out = load_le_wide({data, size});
}
void fw_first_bytes(wide_bits const& bits, unsigned count, wide_bits& out) noexcept {
    out = first_bytes(bits, count);
}

auto fw_address(uint64_t address, uint64_t size, unsigned width) noexcept -> uint64_t {
    return (is_aligned(address, size) ? 1U : 0U) + (is_power_of_two(size) ? 2U : 0U) +
           (is_canonical(address, width) ? 4U : 0U) +
           (max_phys_addr{width}.contains(address) ? 8U : 0U) + align_down(address, size) +
           sign_extended(address, width);
}
auto fw_same_width(max_phys_addr const& one, max_phys_addr const& two) noexcept -> bool {
    return one == two;
}

// -------------------------------------------------------------------------------- models of ports

void fw_memory_load(simulate::memory_model<256> const& memory, uint64_t address,
                    port_value& out) noexcept {
    out = memory.load(address);
}
auto fw_memory_store(simulate::memory_model<256>& memory, uint64_t address, uint8_t const* data,
                     size_t size) noexcept -> size_t {
    return memory.store(address, {data, size});
}
auto fw_msr(simulate::msr_model<8>& msrs, uint32_t index, uint64_t value, port_value& out) noexcept
    -> bool {
    out = msrs.read(index);
    return msrs.write(index, value);
}
void fw_cpuid(simulate::cpuid_model<8> const& leaves, uint32_t leaf,
              cpuid_registers& out) noexcept {
    out = leaves.query(leaf, 0);
}
auto fw_same_answers(cpuid_registers const& a, cpuid_registers const& b, port_value const& c,
                     port_value const& d) noexcept -> bool {
    return a == b && c == d && c;
}
auto fw_same_faults(port_fault const& a, port_fault const& b) noexcept -> bool {
    return a == b && a.happened;
}
void fw_pmi(simulate::pmi_model& interrupts) noexcept { interrupts.raise(); }

auto fw_host_memory_size() noexcept -> size_t { return sizeof(host_memory); }
void fw_host_memory(host_memory& out, host_region const* regions, size_t count) noexcept {
    out = host_memory{regions, count};
}
void fw_host_memory_of_two(host_memory& out, host_region const (&regions)[2]) noexcept {
    out = host_memory{regions};
}
void fw_host_window(host_memory& memory, uint64_t address, byte_window& out) noexcept {
    out = memory.window(address);
}
void fw_host_load(host_memory& memory, uint64_t address, port_value& out) noexcept {
    out = memory.load(address);
}
auto fw_host_store(host_memory& memory, uint64_t address, uint8_t const* data, size_t size) noexcept
    -> size_t {
    return memory.store(address, {data, size});
}

// -------------------------------------------------------------------------------- address math

auto fw_address_math(uint64_t a, uint64_t b, uint64_t c, uint64_t d, unsigned which) noexcept
    -> uint64_t {
    using namespace address_math;
    switch (which) {
        case 0: return index_in(a);
        case 1: return offset_in(a);
        case 2: return mask_in(a);
        case 3: return pointers_of(a, b);
        case 4: return non_contiguous_bits(a);
        case 5: return store_address(a, b, c);
        case 6: return offset_after(a, b, c);
        case 7: return region_bytes(a);
        case 8: return misalignment(a, b);
        case 9: return address_math::table_pointer(a, b);
        case 10: return next_index(a);
        default: return index_after(a, b, c, d);
    }
}

// -------------------------------------------------------------------------------- ToPA

auto fw_entry(uint64_t raw, topa::place const& at, topa::limits const& of) noexcept -> rule {
    return topa::broken_rule(topa::entry{raw}, at, of);
}
auto fw_entry_rules(unsigned which, uint64_t raw, topa::place const& at, topa::limits const& of,
                    rule* out) noexcept -> size_t {
    size_t count = 0;
    auto const found = [&](rule one) { out[count++] = one; };
    switch (which) {
        case 0: topa::find_broken_rules_of_base(topa::entry{raw}, at.table, of.width, found); break;
        case 1: topa::find_broken_rules(topa::entry{raw}, of.width, found); break;
        default: topa::find_broken_rules(topa::entry{raw}, at, of, found); break;
    }
    return count;
}
auto fw_same_places(topa::place const& a, topa::place const& b, topa::limits const& c,
                    topa::limits const& d) noexcept -> bool {
    return a == b && c == d;
}
auto fw_link(uint64_t next) noexcept -> uint64_t { return topa::link_to(next).raw; }
auto fw_entry_for(topa::region const& which) noexcept -> uint64_t {
    return topa::entry_for(which).raw + topa::bytes_in(which.size);
}
auto fw_same_regions(topa::region const& a, topa::region const& b, topa::violation const& c,
                     topa::violation const& d) noexcept -> bool {
    return a == b && c == d;
}

auto fw_check_table_base(uint64_t base, unsigned width) noexcept -> rule {
    return topa::check_table_base(base, {width});
}
void fw_write_table(topa::limits const& of, uint64_t base, topa::region const* regions,
                    size_t count, uint64_t next, topa::entry* to, topa::violation& out) noexcept {
    out = topa::write_table(of, base, regions, count, next == 0 ? topa::no_link : topa::link(next),
                            to);
}
auto fw_tables(unsigned which, topa::table_site const& at, uint64_t next,
               topa::region const* regions, topa::table<3>& out, topa::violation& why) noexcept
    -> bool {
    auto const put = [&](auto const& made) {
        for (size_t i = 0; i < made.table.size(); ++i) { out.entries[i] = made.table.entries[i]; }
        why = made.violated;
        return static_cast<bool>(made);
    };
    switch (which) {
        case 0: return put(topa::try_linked(at, next, regions[0], regions[1]));
        case 1: return put(topa::try_ring(at, regions[0], regions[1]));
        case 2: return put(topa::try_single_entry(at, regions[0]));
        case 3: return put(topa::try_stop_on_full(at, regions[0], regions[1], regions[2]));
        case 4: return put(topa::try_interrupt_on_full(at, regions[0], regions[1]));
        default: return put(topa::try_interrupt_and_stop(at, regions[0], regions[1], regions[2]));
    }
}
auto fw_chain(topa::table_site const& one, topa::table_site const& two, topa::region const* regions,
              topa::tables<3, 2>& out, topa::violation& why) noexcept -> size_t {
    auto const made = topa::try_chain(topa::table_at(one, regions[0], regions[1]),
                                      topa::table_at(two, regions[2]));
    why = made.violated;
    if (made) { out = made.tables; }
    return made.number;
}
auto fw_same_tables(topa::tables<3, 2> const& one, topa::tables<3, 2> const& two) noexcept -> bool {
    return one == two && one.get<0>() == two.get<0>() && one.get<1>().size() == 2;
}
void fw_constant_tables(topa::table<3>* out, topa::tables<2, 2>& chain) noexcept {
    constexpr topa::region one{.base = 0x1'0010'0000, .size = topa::region_size::size_1M};
    constexpr topa::region two{.base = 0x1'0020'0000};
    constexpr topa::table_site at{0x1'0000'0000};
    constexpr topa::table<2> alone = topa::single_entry(at, one);
    constexpr topa::tables<2, 2> both = topa::chain(topa::table_at(at, one),
                                                    topa::table_at(0x2'0000'0000, two));
    out[0] = topa::linked(at, 0x2'0000'0000, one, two);
    out[1] = topa::ring(at, one, two);
    out[2] = {alone.entries[0], alone.entries[1], {}};
    out[3] = topa::stop_on_full(at, one, two, two);
    out[4] = topa::interrupt_on_full(at, one, two);
    out[5] = topa::interrupt_and_stop(at, one, two, two);
    chain = both;
}

void fw_largest_region(uint64_t base, uint64_t most, topa::region& out) noexcept {
    out = topa::largest_region(base, most);
}
void fw_cover(uint64_t const* pages, size_t count, unsigned width, topa::region* to,
              topa::page_regions& out) noexcept {
    out = topa::regions_for_pages(pages, count, {width}, [&](topa::region one) { *to++ = one; });
}
auto fw_same_covers(topa::page_regions const& a, topa::page_regions const& b) noexcept -> bool {
    return a == b && a;
}

void fw_stretch(topa::restricted_memory const& of, uint64_t address,
                topa::address_run& out) noexcept {
    out = of.run_from(address);
}
auto fw_touches(topa::output_hazards const& around, uint64_t address, uint64_t bytes) noexcept
    -> unsigned {
    return (around.restricted.touches(address, bytes) ? 1U : 0U) +
           (topa::touches(around.apic, address, bytes) ? 2U : 0U) +
           (around.restricted.is_empty() ? 4U : 0U);
}

auto fw_single_range(uint64_t base, uint64_t pointers, uint64_t more, uint64_t& out) noexcept
    -> rule {
    using namespace single_range;
    ia32_rtit_output_base const where{base};
    ia32_rtit_output_mask_ptrs const at{pointers};
    out = mask_of(at) + trace_store_phys_addr(where, at).value + bytes_left(at) +
          advanced(at, more).raw;
    return broken_rule(where, at);
}
auto fw_single_range_rules(uint64_t base, uint64_t pointers, single_range::region const& wanted,
                           unsigned width, rule* out) noexcept -> size_t {
    size_t count = 0;
    auto const found = [&](rule one) { out[count++] = one; };
    single_range::find_broken_rules(single_range::ia32_rtit_output_base{base},
                                    single_range::ia32_rtit_output_mask_ptrs{pointers}, found);
    single_range::find_broken_rules(wanted, {width}, found);
    return count;
}
auto fw_build_single_range(single_range::region const& wanted, unsigned width,
                           uint64_t* out) noexcept -> rule {
    auto const made = single_range::build(wanted, {width});
    out[0] = made.base.raw;
    out[1] = made.pointers.raw;
    return made ? rule::none : made.broken;
}

void fw_position(uint64_t base, uint64_t pointers, topa::position& out) noexcept {
    out = topa::position_in(topa::ia32_rtit_output_base{base},
                            topa::ia32_rtit_output_mask_ptrs{pointers});
}
auto fw_position_numbers(topa::position const& at, uint64_t raw) noexcept -> uint64_t {
    topa::entry const current{raw};
    return topa::base_of(at).raw + topa::mask_ptrs_of(at).raw + topa::table_pointer(at).value +
           topa::trace_store_phys_addr(at, current).value + topa::bytes_left(at, current);
}
void fw_position_after(topa::position& at, uint64_t raw, uint64_t bytes) noexcept {
    auto const linked = topa::follow_end(topa::entry{raw});
    at = linked == at ? linked
         : bytes == 0 ? topa::next_entry(at)
                      : topa::advanced(at, topa::entry{raw}, bytes);
}

}  // extern "C"

namespace {

/// Memory, a fabric and interrupts that are defined elsewhere.
struct hooked_memory {
    bool (*read)(uint64_t, uint64_t*);
    size_t (*write)(uint64_t, uint8_t const*, size_t);
    uint8_t* (*map)(uint64_t, uint64_t*);
    size_t (*give)(uint8_t const*, size_t);
    void (*interrupt)();

    auto load(uint64_t address) const noexcept -> port_value {
        port_value out;
        out.has_value = read(address, &out.value);
        return out;
    }
    auto store(uint64_t address, byte_view bytes) const noexcept -> size_t {
        return write(address, bytes.data(), bytes.size());
    }
    auto window(uint64_t address) const noexcept -> byte_window {
        byte_window out;
        out.first = map(address, &out.size);
        return out;
    }
    auto send(byte_view bytes) const noexcept -> size_t { return give(bytes.data(), bytes.size()); }
    void raise() const noexcept { interrupt(); }
};
static_assert(mapped_memory_port<hooked_memory> && fabric_port<hooked_memory>);
static_assert(pmi_port<hooked_memory>);

}  // namespace

extern "C" {

void fw_arrive(hooked_memory& memory, topa::position const& where, topa::limits const& of,
               topa::restricted_memory const& around, topa::loaded_entry* out) noexcept {
    out[0] = topa::load_entry(memory, where, of, around);
    out[1] = topa::load_first_entry(memory, where, of, around);
    if (out[0]) { out[1].where = out[0].where; }
}
auto fw_distance(hooked_memory& memory, topa::position const& from, topa::position const& to,
                 topa::limits const& of, topa::distance& out) noexcept -> bool {
    out = topa::bytes_between(memory, from, to, of);
    return static_cast<bool>(out);
}
auto fw_walk(hooked_memory& memory, uint64_t table, uint64_t most, uint64_t* to,
             topa::table_walk& out) noexcept -> size_t {
    size_t count = 0;
    out = topa::for_each_entry(
        memory, table, most, [&](topa::place, topa::entry current) { to[count++] = current.raw; });
    return count;
}
void fw_shape(hooked_memory& memory, uint64_t first, topa::chain_shape& out) noexcept {
    out = topa::shape_of_chain(memory, first);
}
void fw_validate(hooked_memory& memory, uint64_t table, topa::limits const& of, topa::violation* to,
                 topa::table_walk& out, topa::chain_walk& chain) noexcept {
    out = topa::validate(memory, table, of, [&](topa::violation one) { *to++ = one; });
    chain = topa::validate_chain(memory, table, of, [&](topa::violation one) { *to++ = one; });
}
auto fw_warnings(uint64_t raw, topa::place const& at, topa::output_hazards const& around,
                 rule* out) noexcept -> size_t {
    size_t count = 0;
    topa::find_warnings(topa::entry{raw}, at, around, [&](rule one) { out[count++] = one; });
    return count;
}

// -------------------------------------------------------------------------------- packets

void fw_facts(packet::kind which, packet::facts& facts, text& name) noexcept {
    facts = packet::facts_of(which);
    name = packet::name_of(which);
}

void fw_classify(uint8_t byte, block items, packet::opcode_byte* out) noexcept {
    out[0] = packet::classify_first(byte, items);
    out[1] = packet::classify_ext(byte);
    out[2] = packet::classify_ext2(byte);
    out[3].what = out[0] == out[1] ? out[2].what : out[0].what;
}

void fw_decode(uint8_t const* data, size_t size, block items, bool strict,
               packet::decoded& out) noexcept {
    out = packet::decode({data, size}, {items, strict});
}

auto fw_decode_to_visitor(uint8_t const* data, size_t size, block items, wide_bits& out) noexcept
    -> unsigned {
    unsigned total = 0;
    auto const result = packet::decode({data, size}, {items, false},
                                       [&](auto const& packet, unsigned length) {
                                           write_bits(packet, out);
                                           total = length;
                                       });
    return result ? total : 0;
}

auto fw_decode_as(unsigned index, uint8_t const* data, size_t size, block items,
                  wide_bits& out) noexcept -> unsigned {
    unsigned length = 0;
    for_type(packet::all{}, index, [&]<class Packet>() {
        if (auto const got = packet::decode_as<Packet>({data, size}, {items, false})) {
            write_bits(got.packet, out);
            length = got.length;
        }
    });
    return length;
}

auto fw_encode_any(packet::any_packet const& from, block items, uint8_t* out) noexcept -> rule {
    auto const bytes = packet::encode(from, items);
    return write_bytes<packet::any_packet>(bytes, out);
}

auto fw_encode(unsigned index, wide_bits const& bits, block items, uint8_t* out) noexcept -> rule {
    rule broken = rule::none;
    for_type(packet::all{}, index, [&]<class Packet>() {
        broken = write_bytes<Packet>(packet::encode(word_of<Packet>(bits), items), out);
    });
    return broken;
}

void fw_encode_wide(unsigned index, wide_bits const& bits, block items,
                    packet::encoded_wide& out) noexcept {
    for_type(packet::all{}, index,
             [&]<class Packet>() { out = packet::encode_wide(word_of<Packet>(bits), items); });
}

void fw_grow(byte_buffer& out, uint8_t byte) noexcept {
    *out.end() = byte;
    out.grow(1);
}
auto fw_append_number(byte_buffer& out, wide_bits const& bytes, size_t count) noexcept -> bool {
    return out.append(bytes, count);
}
void fw_to_le(wide_bits const& number, byte_array<16>& out) noexcept { out = to_le(number); }
auto fw_append(unsigned index, wide_bits const& bits, block items, byte_buffer& out) noexcept
    -> rule {
    rule broken = rule::none;
    for_type(packet::all{}, index,
             [&]<class Packet>() { broken = packet::append(out, word_of<Packet>(bits), items); });
    return broken;
}
auto fw_append_any(packet::any_packet const& from, block items, byte_buffer& out) noexcept -> rule {
    return packet::append(out, from, items);
}

void fw_any_packet(unsigned index, wide_bits const& bits, packet::any_packet& out) noexcept {
    for_type(packet::all{}, index, [&]<class Packet>() {
        auto const packet = word_of<Packet>(bits);
        if constexpr (same_as<Packet, packet::bip>) {
            out = packet::any_packet{packet, 5};
        } else {
            out = packet;
        }
    });
}
auto fw_is(unsigned index, packet::any_packet const& any, wide_bits& out) noexcept -> bool {
    bool is = false;
    for_type(packet::all{}, index, [&]<class Packet>() {
        is = any.is<Packet>();
        if (is) { write_bits(any.as<Packet>(), out); }
    });
    return is;
}
auto fw_any_numbers(packet::any_packet const& any, packet::any_packet const& other) noexcept
    -> uint64_t {
    return underlying(any.kind()) + any.length() + any.raw().low + (any == other ? 1U : 0U);
}
auto fw_visit(packet::any_packet const& any) noexcept -> uint64_t {
    return packet::visit([](auto const& one) { return uint64_t{one.head_bytes}; }, any);
}
auto fw_context_after(packet::any_packet const& any, uint64_t last_ip, block items) noexcept
    -> uint64_t {
    return packet::last_ip_after(any, last_ip) + underlying(packet::block_after(any, items));
}

/// The payload of packets that have one, and their length.
auto fw_payload(unsigned index, uint64_t payload, block items, wide_bits& bits) noexcept
    -> uint64_t {
    uint64_t out = 0;
    for_type(packet::all{}, index, [&]<class Packet>() {
        auto const packet = word_of<Packet>(bits);
        if constexpr (requires { packet.payload(); }) {
            out = packet.payload();
            write_bits(packet.with_payload(payload), bits);
        }
        out += Packet::length_of(packet.raw, items);
    });
    return out;
}

// -------------------------------------------------------------------------------- single packets

auto fw_ip(packet::ip_bytes how, uint64_t payload, uint64_t last_ip) noexcept -> uint64_t {
    return packet::rebuilt_ip(how, payload, last_ip) +
           underlying(packet::shortest_form(payload, last_ip));
}
void fw_ip_packets(packet::ip_bytes how, uint64_t ip, uint64_t last_ip, wide_bits* out) noexcept {
    using namespace packet;
    for_type(type_list<tip, tip_pge, tip_pgd, fup>{}, underlying(how) % 4U, [&]<class Packet>() {
        auto const one = Packet::of(how, ip);
        auto const two = Packet::compressed(ip, last_ip);
        write_bits(one, out[0]);
        write_bits(two, out[1]);
        out[2].low = one.has_ip() ? one.ip(last_ip) : two.ip(last_ip);
    });
}
void fw_branches(packet::branches const& which, unsigned index, wide_bits* out) noexcept {
    using namespace packet;
    auto const one = tnt_short::of(which);
    auto const two = tnt_long::of(which);
    write_bits(one, out[0]);
    write_bits(two, out[1]);
    out[2].low = one.taken().taken(index) && two.taken() == which ? 1 : 0;
}
auto fw_cyc(uint64_t count, unsigned bytes, wide_bits& out) noexcept -> uint64_t {
    auto const one = packet::cyc::of(count, bytes);
    write_bits(one, out);
    return one.value() + one.length();
}
auto fw_other_packets(uint64_t bits) noexcept -> uint64_t {
    using namespace packet;
    return mode_exec{bits}.code_bits() + underlying(bbp{bits}.opens()) + trig{bits}.ICNT();
}

// -------------------------------------------------------------------------------- traces

auto fw_find_psb(uint8_t const* data, size_t size, size_t from) noexcept -> size_t {
    return trace::find_psb({data, size}, from);
}
auto fw_find_psb_before(uint8_t const* data, size_t size, size_t before) noexcept -> size_t {
    return trace::find_psb_before({data, size}, before);
}
auto fw_search(trace::psb_search& search, uint8_t const* data, size_t size) noexcept -> int64_t {
    return search.feed({data, size}) || search.finish() ? search.end() : -2;
}

}  // extern "C"

namespace {

/// A hook of the caller, and a visitor of some packet types.
struct hook {
    unsigned (*answer)(uint8_t const*, size_t);
    auto operator()(byte_view bytes) const noexcept -> unsigned {
        return answer(bytes.data(), bytes.size());
    }
};
using hooked = trace::reader<hook>;

struct visitor {
    uint64_t sum = 0;
    auto operator()(packet::tip const& packet, trace::packet_place where) noexcept -> bool {
        sum += packet.ip(where.ip);
        return where.length != 3;
    }
    void operator()(packet::cyc const& packet, trace::packet_place) noexcept {
        sum += packet.value();
    }
    void operator()(trace::item const& other) noexcept { sum += other ? other.offset : 0; }
};

/// A visitor of all packet types.
struct collector {
    packet::any_packet* out;
    template <packet::packet_type Packet>
    void operator()(Packet const& packet, trace::packet_place where) noexcept {
        *out++ = packet::any_packet{packet, where.length};
    }
};

}  // namespace

extern "C" {

auto fw_reader_size() noexcept -> size_t { return sizeof(trace::reader<>) + sizeof(hooked); }

void fw_reader_whole(trace::reader<>& out, uint8_t const* data, size_t size, bool sync,
                     bool strict) noexcept {
    out = trace::reader<>{byte_view{data, size}, {.sync = sync, .strict = strict}};
}
void fw_reader_pieces(trace::reader<>& out, bool sync, bool strict) noexcept {
    out = trace::reader<>{{.sync = sync, .strict = strict}};
}
auto fw_reader_feed(trace::reader<>& from, uint8_t const* data, size_t size) noexcept -> bool {
    return from.feed({data, size});
}
void fw_reader_finish(trace::reader<>& from) noexcept { from.finish(); }
auto fw_reader_next(trace::reader<>& from, trace::item& out) noexcept -> bool {
    out = from.next();
    return static_cast<bool>(out);
}
auto fw_reader_visit(trace::reader<>& from, uint64_t& sum) noexcept -> trace::item_type {
    visitor one;
    auto const why = from.for_each<packet::tip, packet::cyc, trace::item>(one);
    sum = one.sum;
    return why;
}
auto fw_reader_collect(trace::reader<>& from, packet::any_packet* out) noexcept
    -> trace::item_type {
    return from.for_each<packet::all>(collector{out});
}
void fw_reader_scan(trace::reader<>& from, trace::packet_counts& sum) noexcept {
    sum = from.scan(sum);
}
void fw_reader_boundaries(trace::reader<>& from, uint64_t* out) noexcept {
    (void)from.scan({}, [&](packet::kind which, uint64_t offset, unsigned length) {
        *out++ = offset << 16 | length << 8 | underlying(which);
    });
}
auto fw_tally(trace::packet_counts const& one, trace::packet_counts const& two,
              packet::kind which) noexcept -> uint64_t {
    return one == two ? one.total() : two.of(which);
}
auto fw_reader_state(trace::reader<> const& from) noexcept -> uint64_t {
    return from.offset() + from.last_ip() + underlying(from.block());
}
auto fw_reader_sync(trace::reader<>& from, int way) noexcept -> bool {
    return way < 0 ? from.sync_previous() : way > 0 ? from.sync_next() : from.sync_first();
}

void fw_hooked_whole(hooked& out, uint8_t const* data, size_t size,
                     unsigned (*answer)(uint8_t const*, size_t)) noexcept {
    out = hooked{byte_view{data, size}, {}, hook{answer}};
}
void fw_hooked_next(hooked& from, trace::item& out) noexcept { out = from.next(); }
void fw_hooked_scan(hooked& from, trace::packet_counts& sum) noexcept { sum = from.scan(sum); }

// -------------------------------------------------------------------------------- processors

using cpu::capabilities;

/// A processor whose CPUID values come from outside.
struct hooked_cpuid {
    void (*ask)(uint32_t, uint32_t, cpuid_registers*);
    auto query(uint32_t leaf, uint32_t subleaf) const noexcept -> cpuid_registers {
        cpuid_registers out;
        ask(leaf, subleaf, &out);
        return out;
    }
};

void fw_detect(hooked_cpuid& cpuid, simulate::msr_model<8>& msrs, capabilities& out) noexcept {
    out = msrs.words[0].index == 0 ? cpu::detect(cpuid) : cpu::detect(cpuid, msrs);
}
auto fw_supports(capabilities const& of, unsigned n) noexcept -> uint64_t {
    uint64_t const answers[] = {
        of.supports(cpu::mtc_period::encoded(wrapped{n})) ? 1U : 0U,
        of.supports(cpu::cyc_threshold::encoded(wrapped{n})) ? 1U : 0U,
        of.supports(cpu::psb_period::encoded(wrapped{n})) ? 1U : 0U,
        of.supports(static_cast<cpu::output_scheme>(n)) ? 1U : 0U,
        of.has_topa_of_many_entries() ? 1U : 0U,
        of.has_xsaves_state() ? 1U : 0U,
        of.address_ranges(),
        of.max_phys_addr().bits,
        of.linear_address_bits(),
        underlying(of.vmx()),
        underlying(of.ip_payload()),
        access::writable_ctl_mask(of),
        access::faulting_status_mask(of),
        cpu::quirks_of(of).bits | cpu::quirks_of(of.leaf_01_eax).bits,
    };
    return answers[n % 14];
}
auto fw_named(char const* name, size_t size, capabilities& out) noexcept -> bool {
    auto const found = cpu::preset::find({name, size});
    out = found->value;
    return static_cast<bool>(found);
}
void fw_common(capabilities const& one, capabilities const& two,
               cpu::common_capabilities& out) noexcept {
    out = cpu::common(one, two);
}
void fw_includes(capabilities const& whole, capabilities const& part,
                 cpu::inclusion& out) noexcept {
    out = cpu::includes(whole, part);
}
auto fw_nearest(capabilities const& of, unsigned n) noexcept -> unsigned {
    return config::nearest(of, cpu::mtc_period::encoded(wrapped{n})).value.encoding() +
           config::nearest(of, cpu::cyc_threshold::encoded(wrapped{n})).value.encoding() +
           config::nearest(of, cpu::psb_period::encoded(wrapped{n})).value.encoding();
}
auto fw_periods(uint64_t n) noexcept -> uint64_t {
    uint64_t const answers[] = {
        cpu::mtc_period::try_of_crystal_cycles(n).period.crystal_cycles(),
        cpu::cyc_threshold::try_of_cycles(n).period.cycles(),
        cpu::psb_period::try_of_bytes(n).period.bytes(),
        cpu::mtc_period::nearest_to_crystal_cycles(n).encoding(),
        cpu::cyc_threshold::nearest_to_cycles(n).encoding(),
        cpu::psb_period::nearest_to_bytes(n).encoding(),
        cpu::mtc_period::try_encoded(n).period.encoding(),
        cpu::cyc_threshold::try_encoded(n).period.encoding(),
    };
    return answers[n % 8];
}
void fw_check_config(config::trace_config const& wanted, capabilities const& of,
                     config::config_verdict& out) noexcept {
    out = config::check(of, wanted);
}
auto fw_config(config::trace_config& config, uint64_t raw) noexcept -> uint64_t {
    auto const before = config::ctl_of(config);
    config = config::config_of(reg::ia32_rtit_ctl{raw});
    return before.raw;
}
void fw_perf(config::trace_config const& config, config::perf_event const& event,
             config::perf_request& request, config::perf_config& back) noexcept {
    request = config::to_perf(config);
    back = config::from_perf(event);
}
void fw_perf_unchecked(config::perf_event const& event, config::trace_config& out) noexcept {
    out = config::from_perf_unchecked(event);
}

// -------------------------------------------------------------------------------- access

using access::msr_state;

void fw_check_access(capabilities const& of, msr_state const& now, uint32_t index, uint64_t value,
                     unsigned cpl, access::verdict* out) noexcept {
    out[0] = access::check_write(of, now, index, value, cpl);
    out[1] = access::check_read(of, index, cpl);
    out[2] = access::check_write_on(access::write_path::xrstors, of, now, index, value).verdict;
}
auto fw_broken_rules(capabilities const& of, msr_state const& now, uint32_t index, uint64_t value,
                     rule* out) noexcept -> size_t {
    size_t count = 0;
    access::find_broken_rules(of, now, index, value, {}, [&](rule one) { out[count++] = one; });
    return count;
}
void fw_effect(capabilities const& of, msr_state const& now, uint32_t index, uint64_t value,
               access::processor_context const& code, access::effect& out) noexcept {
    out = access::effect_of_write(of, now, index, value, code);
}
auto fw_read(capabilities const& of, msr_state& now, uint32_t index, uint64_t raw) noexcept
    -> uint64_t {
    access::set_raw(now, index, raw);
    return access::read(of, now, index).value;
}
void fw_event(unsigned which, capabilities const& of, msr_state& now,
              access::processor_context const& code, access::rsm_result& resumed) noexcept {
    switch (which) {
        case 0: now = access::cold_reset(); break;
        case 1: now = access::warm_reset(of, now); break;
        case 2: now = access::init(of, now, code); break;
        case 3: now = access::smi(now); break;
        case 4: resumed = access::rsm(of, now, code); break;
        case 5: now = access::vmxon(of, now); break;
        case 6: now = access::vmxoff(now); break;
        case 7: now = access::measured_launch(now); break;
        case 8: now = access::acm_exit(of, access::acm_entry(now), true, code); break;
        case 9: now = access::deliver_pmi(of, now).state; break;
        default: now = access::after_branch(of, now, code); break;
    }
}
auto fw_enables(capabilities const& of, msr_state const& now,
                access::processor_context const& code) noexcept -> unsigned {
    auto const hit = access::match_ranges(now, code.ip);
    return (access::trigger_en(now.ctl, now.status) ? 1U : 0U) +
           (access::context_en(now.ctl, now.cr3_match, code) ? 2U : 0U) +
           (access::filter_en(of, now.status) ? 4U : 0U) + (hit.filter_en ? 8U : 0U) +
           (hit.trace_stop ? 16U : 0U) + (access::packet_en(of, now) ? 32U : 0U) +
           (access::has_filter(now) ? 64U : 0U) + (access::has_trace_stop(now) ? 128U : 0U) +
           (access::cr3_matches(now.cr3_match, code.cr3, code.pae) ? 256U : 0U);
}
auto fw_topa_pmi(msr_state const& now, uint64_t x2apic, uint32_t mmio, uint64_t* out) noexcept
    -> bool {
    out[0] = access::after_delivery(reg::ia32_x2apic_lvt_pmi{x2apic}).raw;
    out[1] = access::after_delivery(reg::apic_mmio_lvt_pmi{mmio}).raw;
    return access::is_topa_pmi_for_now(now);
}
auto fw_suspended(capabilities const& of, msr_state const& now, uint32_t index) noexcept -> bool {
    return access::is_suspended(of.leaf_01_eax, now.ctl, index) ||
           access::resets_lbr(of.leaf_01_eax, now.ctl, {0});
}
void fw_xsaves(capabilities const& of, msr_state& now, reg::xsave_pt_state& image) noexcept {
    auto const saved = access::xsaves(of, now);
    now = saved.state;
    image = saved.image;
}
auto fw_xrstors(capabilities const& of, msr_state& now, reg::xsave_pt_state const& image,
                uint64_t xstate_bv, uint64_t xcomp_bv) noexcept -> rule {
    auto const header = access::check_header({xstate_bv}, {xcomp_bv}, now.xss);
    if (!header) { return header.broken; }
    auto const done = access::is_initial(image) ? access::xrstors_init(now)
                                                : access::xrstors(of, now, image);
    now = done.effect.state;
    return done.violated.broken;
}
auto fw_image(capabilities const& of, msr_state& now, uint8_t const* data, size_t size,
              byte_array<access::image_size>& saved) noexcept -> access::error {
    saved = access::store(now);
    auto const loaded = access::load(of, {data, size});
    if (loaded) { now = loaded.state; }
    return loaded.error;
}
auto fw_td(capabilities& of, uint64_t xfam, uint32_t index) noexcept -> rule {
    of = vmx::tdx::td_capabilities(of);
    return vmx::tdx::broken_rule({xfam}, index);
}
auto fw_vm_entry(capabilities const& of, vmx::controls& set, uint64_t host) noexcept -> rule {
    auto const broken = vmx::broken_rule(of, set, reg::ia32_rtit_ctl{host});
    set = vmx::with_guest_pt(of, set, vmx::guest_output_of(set));
    return broken;
}

// -------------------------------------------------------------------------------- guests

/// The physical memory of a guest, by C functions.
struct fw_guest_memory {
    uint64_t (*read)(uint64_t address, bool* done);
    uint64_t (*host_page)(uint64_t address);

    auto load(uint64_t address) noexcept -> port_value {
        port_value got{};
        got.value = read(address, &got.has_value);
        return got;
    }
    auto translate(uint64_t address, uint64_t /*bytes*/) noexcept -> vmx::translation {
        uint64_t const page = host_page(address);
        return {page != 0 ? vmx::backing::mapped : vmx::backing::missing, page};
    }
};
struct fw_msrs {
    uint64_t (*rdmsr)(uint32_t index, bool* done);
    bool (*wrmsr)(uint32_t index, uint64_t value);

    auto read(uint32_t index) noexcept -> port_value {
        port_value got{};
        got.value = rdmsr(index, &got.has_value);
        return got;
    }
    auto write(uint32_t index, uint64_t value) noexcept -> bool { return wrmsr(index, value); }
};

auto fw_guest_exit(vmx::guest_pt& guest, uint32_t index, uint64_t& value, bool writes) noexcept
    -> rule {
    auto const answer = writes ? vmx::on_wrmsr(guest, index, value) : vmx::on_rdmsr(guest, index);
    value = answer.value;
    return answer.broken;
}
auto fw_msr_exit(uint32_t exit_reason) noexcept -> bool {
    return vmx::msr_exit_of(exit_reason).writes;
}
auto fw_ept_violation(vmx::guest_pt& guest, uint64_t qualification, uint64_t address,
                      fw_guest_memory& memory) noexcept -> vmx::ept_violation_action {
    auto const answer = vmx::on_ept_violation(guest, qualification, address, memory);
    if (answer.what == vmx::ept_violation_action::end_output) { vmx::end_output(guest); }
    return answer.what;
}
auto fw_guest_access(vmx::guest_pt const& guest, uint32_t index) noexcept -> vmx::guest_access {
    return vmx::access_of_guest(guest, index);
}
void fw_guest_bitmap(vmx::guest_pt const& guest, vmx::msr_bitmap& bitmap) noexcept {
    vmx::update_msr_bitmap(guest, bitmap);
}
auto fw_guest_xsave(vmx::guest_pt& guest, access::xsave_pt_state& image, bool saves) noexcept
    -> rule {
    if (!saves) { return vmx::on_xrstors(guest, image).broken; }
    image = vmx::on_xsaves(guest);
    return rule::none;
}
auto fw_guest_events(vmx::guest_pt& guest, unsigned which) noexcept -> rule {
    switch (which) {
        case 0: vmx::smi(guest); return rule::none;
        case 1: return vmx::rsm(guest).broken;
        case 2: vmx::warm_reset(guest); return rule::none;
        case 3: vmx::cold_reset(guest); return rule::none;
        case 4: vmx::vmxon(guest); return rule::none;
        case 5: vmx::vmxoff(guest); return rule::none;
        case 6: return vmx::on_global_status_write(guest, 0x390, ~uint64_t{0}).broken;
        default: return vmx::take_pmi(guest) ? rule::PRG_170 : rule::none;
    }
}
auto fw_guest_image(vmx::guest_pt& guest, uint8_t const* data, size_t size,
                    byte_array<vmx::guest_image_size>& saved) noexcept -> access::error {
    saved = vmx::store(guest);
    return vmx::load(guest, {data, size}).error;
}
auto fw_guest_restore(vmx::guest_pt& guest, msr_state const& msrs) noexcept -> rule {
    return vmx::restore(guest, msrs).broken;
}
auto fw_guest_shadow(vmx::shadow& one, capabilities const& host, vmx::guest_pt& guest,
                     fw_guest_memory& memory, vmx::shadow_page const* pages, size_t count) noexcept
    -> vmx::shadow_progress {
    if (vmx::begin_shadow(guest, one, host, pages, count) != rule::none) {
        return vmx::shadow_progress::not_begun;
    }
    auto const built = one.build(memory, 1000);
    if (built.what == vmx::shadow_progress::no_room) { (void)one.end_with_error(); }
    return built.what;
}
auto fw_guest_enter(vmx::guest_pt& guest, vmx::shadow const& one, vmx::controls const& set,
                    vmx::host_pt& host, fw_msrs& msrs) noexcept -> uint64_t {
    return vmx::enter(guest, one, set, host, msrs).ctl.raw;
}
auto fw_guest_leave(vmx::guest_pt& guest, vmx::shadow const& one, vmx::host_pt& host,
                    fw_msrs& msrs) noexcept -> bool {
    return vmx::take_topa_pmi(guest, host, msrs) && vmx::leave(guest, one, host, msrs);
}
auto fw_nested(vmx::guest_pt& guest, vmx::nested_vmcs& vmcs) noexcept -> rule {
    auto const entered = vmx::enter_nested(guest, vmcs);
    vmcs.set = vmx::merged_controls(vmcs.set, guest);
    return vmx::leave_nested(guest, vmcs) ? rule::none : entered.broken;
}
auto fw_nested_pip(vmx::guest_pt const& guest) noexcept -> bool {
    return vmx::owes_pip_at_exit(guest);
}
void fw_nested_bitmap(vmx::guest_pt const& guest, vmx::msr_bitmap const& of_l1,
                      vmx::msr_bitmap& merged) noexcept {
    vmx::update_msr_bitmap(guest, of_l1, merged);
}
auto fw_nested_lists(vmx::guest_pt& guest, vmx::msr_list loads, vmx::msr_list stores,
                     uint64_t* values) noexcept -> bool {
    auto const other = [](auto const&...) { return rule::PRG_165; };
    return vmx::load_msrs(guest, loads, vmx::step::entry_load, other).broken == rule::none &&
           vmx::store_msrs(
               guest, stores, [&](size_t at, uint64_t value) { values[at] = value; }, other)
                   .broken == rule::none;
}

auto fw_guest_cpuid(capabilities const* hosts, size_t count, vmx::guest_policy const& how,
                    vmx::guest_offer& offer, uint32_t leaf, uint32_t subleaf,
                    cpuid_registers& registers) noexcept -> rule {
    offer = vmx::guest_capabilities(hosts, count, how);
    registers = vmx::answer(offer, leaf, subleaf, registers);
    return offer.broken;
}
auto fw_unhonourable(capabilities const& host, capabilities const& guest,
                     void (*found)(vmx::unhonourable const&)) noexcept -> bool {
    vmx::find_unhonourable(host, guest, found);
    return host.has_pt();
}
auto fw_vmcs(capabilities const& of, vmx::controls const& set, msr_state const& guest,
             msr_state const& host, unsigned which, void (*found)(vmx::violation const&)) noexcept
    -> rule {
    auto const made = which == 0
                          ? vmx::pt_aware_guest(of, set, vmx::guest_output_of(set), guest.ctl)
                      : which == 1 ? vmx::system_wide(of, set)
                      : which == 2 ? vmx::vmm_only(of, set, host.ctl)
                                   : vmx::vm_only(of, set, guest.ctl);
    vmx::check(of, made.fields(), host, found);
    return made.broken;
}
auto fw_vm_transitions(capabilities const& of, vmx::vmcs_fields const& fields,
                       msr_state& now) noexcept -> rule {
    auto const entered = vmx::vm_entry(of, fields, now);
    now = entered.state;
    if (!entered) { return entered.violated.broken; }
    auto const left = vmx::vm_exit(of, fields, now);
    now = left.state;
    return left.violated.broken;
}
auto fw_guest_pip(vmx::guest_pt& guest, vmx::shadow const& one,
                  access::processor_context const& after, packet::pip which,
                  host_memory& memory) noexcept -> bool {
    return vmx::insert_pip(guest, one, after, which, memory).is_owed;
}
auto fw_guest_trace(byte_window const* pieces, size_t count, unsigned which,
                    vmx::part_options const& how,
                    vmx::guest_address (*address_of)(uint64_t)) noexcept -> uint64_t {
    vmx::trace_pieces const in{pieces, count};
    switch (which) {
        case 0: return vmx::count_vmx_packets(in);
        case 1: return vmx::rebase_tsc(in, how.other_tsc).count;
        case 2: return vmx::replace_cr3(in, address_of).count;
        case 3: return vmx::replace_vmcs(in, address_of).count;
        default: return vmx::keep_part(in, how).kept;
    }
}
auto fw_guest_trace_part(vmx::trace_parts<packet::pip>& cr3, vmx::trace_parts<packet::vmcs>& vmcs,
                         vmx::trace_parts<packet::tsc>& tsc, byte_window const* pieces,
                         size_t count, vmx::tsc_change how,
                         vmx::guest_address (*address_of)(uint64_t)) noexcept -> size_t {
    vmx::trace_pieces const in{pieces, count};
    return vmx::rebase_tsc(tsc, in, how).kept_back +
           vmx::replace_cr3(cr3, in, address_of).kept_back +
           vmx::replace_vmcs(vmcs, in, address_of).kept_back;
}

// -------------------------------------------------------------------------------- writing

using buffer_writer = trace::writer<byte_buffer>;

static auto first_of(rule one, rule other) noexcept -> rule {
    return one != rule::none ? one : other;
}

auto fw_writer_size() noexcept -> size_t {
    return sizeof(buffer_writer) + sizeof(trace::packet_batch<>);
}
auto fw_writer_branches(byte_buffer& out, trace::writer_options const& how, uint64_t bits,
                        unsigned count, uint64_t cycles) noexcept -> rule {
    buffer_writer to{out, how};
    rule broken = rule::none;
    for (unsigned i = 0; i < count; ++i) {
        to.advance(cycles);
        broken = first_of(broken, to.branch((bits >> i & 1) != 0));
    }
    return first_of(broken, to.flush());
}
auto fw_writer_ips(buffer_writer& to, uint64_t ip) noexcept -> rule {
    return first_of(to.indirect(ip), to.put_ip<packet::fup>(ip + to.state().last_ip));
}
auto fw_writer_packets(buffer_writer& to, packet::any_packet const& any,
                       packet::mtc const& mtc) noexcept -> rule {
    return first_of(to.put(any), to.put(mtc));
}
auto fw_writer_many(buffer_writer& to, packet::any_packet const* first, size_t count,
                    trace::put_result& done) noexcept -> rule {
    done = to.put(first, count);
    return done.broken;
}
auto fw_writer_psb_plus(buffer_writer& to, trace::psb_status const& status) noexcept -> rule {
    return to.put(status);
}

// -------------------------------------------------------------------------------- engine

auto fw_output_size() noexcept -> size_t { return sizeof(engine::output); }
void fw_output_start(engine::output& out, capabilities const& of, msr_state& now,
                     hooked_memory& memory, engine::output_options const& how,
                     port_fault& fault) noexcept {
    fault = out.start(of, now, memory, how);
}
auto fw_output_write(engine::output& out, msr_state& now, hooked_memory& memory,
                     uint8_t const* data, size_t size, engine::write_result& done) noexcept
    -> bool {
    done = out.write(now, memory, {data, size});
    return static_cast<bool>(done);
}
auto fw_output_put_few(engine::output& out, uint8_t const* data, size_t size) noexcept -> bool {
    return out.put_few({data, size});
}
void fw_output_resume(engine::output& out, msr_state& now, hooked_memory& memory,
                      port_fault& fault) noexcept {
    fault = out.retry(now, memory);
}
void fw_output_sync(engine::output const& out, msr_state& now) noexcept { out.write_back(now); }
auto fw_output_stop(engine::output& out, msr_state& now) noexcept -> rule {
    out.stop(now);
    return out.ended_by();
}
auto fw_output_without_windows(capabilities const& of, msr_state& now,
                               simulate::memory_model<256>& memory, uint8_t const* data,
                               size_t size, engine::write_result& done) noexcept -> rule {
    engine::output out;
    if (!out.start(of, now, memory).happened) { done = out.write(now, memory, {data, size}); }
    return out.ended_by();
}
auto fw_add_writes(engine::write_result& to, engine::write_result const& next) noexcept
    -> uint64_t {
    return (to += next).stored;
}
auto fw_add_to_totals(engine::totals& to, engine::write_result const& next) noexcept -> uint64_t {
    return (to += next).stored;
}
auto fw_same_writes(engine::write_result const& one, engine::write_result const& two) noexcept
    -> bool {
    return one == two;
}
auto fw_explain(capabilities const& of, msr_state const& now, hooked_memory& memory,
                engine::output_options const& how, engine::explanation& out) noexcept -> bool {
    out = engine::explain(of, now, memory, how);
    return static_cast<bool>(out.ended_by != rule::none);
}

// -------------------------------------------------------------------------------- trace unit

auto fw_unit_conditional(engine::trace_unit<>& unit, engine::action::conditional const& e,
                         hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_direct_jump(engine::trace_unit<>& unit, engine::action::direct_jump const& e,
                         hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_direct_call(engine::trace_unit<>& unit, engine::action::direct_call const& e,
                         hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_indirect_jump(engine::trace_unit<>& unit, engine::action::indirect_jump const& e,
                           hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_indirect_call(engine::trace_unit<>& unit, engine::action::indirect_call const& e,
                           hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_near_return(engine::trace_unit<>& unit, engine::action::near_return const& e,
                         hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_sequential(engine::trace_unit<>& unit, engine::action::sequential const& e,
                        hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_far_transfer(engine::trace_unit<>& unit, engine::action::far_transfer const& e,
                          hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_software_interrupt(engine::trace_unit<>& unit,
                                engine::action::software_interrupt const& e, hooked_memory& memory,
                                port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_interrupt(engine::trace_unit<>& unit, engine::action::interrupt const& e,
                       hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_exception(engine::trace_unit<>& unit, engine::action::exception const& e,
                       hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_user_interrupt(engine::trace_unit<>& unit, engine::action::user_interrupt const& e,
                            hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_init(engine::trace_unit<>& unit, engine::action::init const& e, hooked_memory& memory,
                  port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_sipi(engine::trace_unit<>& unit, engine::action::sipi const& e, hooked_memory& memory,
                  port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_mov_cr3(engine::trace_unit<>& unit, engine::action::mov_cr3 const& e,
                     hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_interrupt_flag(engine::trace_unit<>& unit, engine::action::interrupt_flag const& e,
                            hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_transaction_begin(engine::trace_unit<>& unit,
                               engine::action::transaction_begin const& e, hooked_memory& memory,
                               port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_transaction_end(engine::trace_unit<>& unit, engine::action::transaction_end const& e,
                             hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_transaction_abort(engine::trace_unit<>& unit,
                               engine::action::transaction_abort const& e, hooked_memory& memory,
                               port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_enclave_transfer(engine::trace_unit<>& unit, engine::action::enclave_transfer const& e,
                              hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_vm_exit(engine::trace_unit<>& unit, engine::action::vm_exit const& e,
                     hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_vm_entry(engine::trace_unit<>& unit, engine::action::vm_entry const& e,
                      hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_vm_entry_failure(engine::trace_unit<>& unit, engine::action::vm_entry_failure const& e,
                              hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_vmptrld(engine::trace_unit<>& unit, engine::action::vmptrld const& e,
                     hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_vmclear(engine::trace_unit<>& unit, engine::action::vmclear const& e,
                     hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_vmxon(engine::trace_unit<>& unit, engine::action::vmxon const& e,
                   hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_vmxoff(engine::trace_unit<>& unit, engine::action::vmxoff const& e,
                    hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_smi(engine::trace_unit<>& unit, engine::action::smi const& e, hooked_memory& memory,
                 port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_rsm(engine::trace_unit<>& unit, engine::action::rsm const& e, hooked_memory& memory,
                 port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_measured_launch(engine::trace_unit<>& unit, engine::action::measured_launch const& e,
                             hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_acm_begin(engine::trace_unit<>& unit, engine::action::acm_begin const& e,
                       hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_acm_end(engine::trace_unit<>& unit, engine::action::acm_end const& e,
                     hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_ptwrite(engine::trace_unit<>& unit, engine::action::ptwrite const& e,
                     hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_mwait(engine::trace_unit<>& unit, engine::action::mwait const& e,
                   hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_halt(engine::trace_unit<>& unit, engine::action::halt const& e, hooked_memory& memory,
                  port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_wake(engine::trace_unit<>& unit, engine::action::wake const& e, hooked_memory& memory,
                  port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_duty_cycle(engine::trace_unit<>& unit, engine::action::duty_cycle const& e,
                        hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_clock_stop(engine::trace_unit<>& unit, engine::action::clock_stop const& e,
                        hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_clock_resume(engine::trace_unit<>& unit, engine::action::clock_resume const& e,
                          hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_pebs_record(engine::trace_unit<>& unit, engine::action::pebs_record const& e,
                         hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_time(engine::trace_unit<>& unit, engine::action::elapsed const& e,
                  hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_cycles(engine::trace_unit<>& unit, engine::action::cycles const& e,
                    hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_ratio(engine::trace_unit<>& unit, engine::action::ratio const& e,
                   hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_cycle_guard(engine::trace_unit<>& unit, engine::action::cycle_guard const& e,
                         hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_psb_due(engine::trace_unit<>& unit, engine::action::psb_due const& e,
                     hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_overflow(engine::trace_unit<>& unit, engine::action::overflow const& e,
                      hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_overflow_end(engine::trace_unit<>& unit, engine::action::overflow_end const& e,
                          hooked_memory& memory, port_fault& fault) noexcept -> bool {
    fault = unit.on(e, memory);
    return !fault.happened;
}
auto fw_unit_size() noexcept -> size_t { return sizeof(engine::trace_unit<>); }
void fw_unit_make(engine::trace_unit<>& unit, capabilities const& of,
                  engine::execution_context const& code, uint64_t ip,
                  engine::model_options const& how) noexcept {
    unit = engine::trace_unit<>{of, code, ip, how};
}
void fw_unit_go_on(engine::trace_unit<>& unit, capabilities const& of, msr_state const& now,
                   engine::execution_context const& code, uint64_t ip,
                   engine::model_options const& how) noexcept {
    unit = engine::trace_unit<>{of, now, code, ip, how};
}
void fw_unit_of_kind(engine::trace_unit<>& cold, engine::trace_unit<>& warm,
                     engine::generator& packets, capabilities const& of, msr_state const& now,
                     engine::execution_context const& code, uint64_t ip) noexcept {
    cold = engine::trace_unit<>{of, code, ip};
    warm = engine::trace_unit<>{of, now, code, ip};
    packets = engine::generator{of, now, code, ip};
}
void fw_kind(capabilities const& of, text& name) noexcept {
    name = engine::info_of(engine::model_kind_of(of)).name;
}
auto fw_unit_rdmsr(engine::trace_unit<>& unit, uint32_t index, uint64_t& value) noexcept -> bool {
    auto const done = unit.rdmsr(index);
    value = done.value;
    return static_cast<bool>(done);
}
auto fw_unit_wrmsr(engine::trace_unit<>& unit, uint32_t index, uint64_t value, uint64_t ip,
                   hooked_memory& memory, engine::access_outcome& what) noexcept -> rule {
    auto const done = unit.wrmsr({.index = index, .value = value, .at = ip, .next = ip + 2},
                                 memory);
    what = done.what;
    return done.broken;
}
auto fw_unit_xsaves(engine::trace_unit<>& unit, uint64_t ip, hooked_memory& memory,
                    access::xsave_pt_state& image) noexcept -> bool {
    auto const done = unit.xsaves(ip, ip + 4, memory);
    image = done.image;
    return done.took_effect();
}
auto fw_unit_xrstors(engine::trace_unit<>& unit, uint64_t ip, hooked_memory& memory,
                     access::xsave_pt_state const& image) noexcept -> bool {
    return unit.xrstors(image, ip, ip + 4, memory).took_effect();
}
auto fw_unit_xrstors_init(engine::trace_unit<>& unit, uint64_t ip, hooked_memory& memory) noexcept
    -> bool {
    return unit.xrstors_init(ip, memory).took_effect();
}
void fw_unit_resets(engine::trace_unit<>& unit, engine::execution_context const& code,
                    uint64_t ip) noexcept {
    unit.warm_reset(code, ip);
    unit.cold_reset(code, ip);
}
auto fw_unit_drain(engine::trace_unit<>& unit, hooked_memory& memory, size_t most,
                   port_fault& fault) noexcept -> size_t {
    fault = unit.drain(memory, most);
    return unit.buffered().size();
}
void fw_unit_settings(engine::trace_unit<>& unit, engine::vmx_concealment const& what,
                      engine::clocks const& clocks) noexcept {
    unit.conceal(what);
    unit.set_clocks(clocks);
}
auto fw_unit_state(engine::trace_unit<>& unit, msr_state& now, engine::execution_context& code,
                   engine::totals& total, uint64_t& ip) noexcept -> rule {
    now = unit.msrs();
    code = unit.state().code;
    total = unit.total();
    ip = unit.ip() + unit.state().calls.size() + unit.state().writer.tnt.count +
         unit.state().clocks.art;
    bool const all = unit.state().enables().packet() && unit.state().in_overflow &&
                     unit.is_flushing() && unit.state().ctl<reg::ia32_rtit_ctl::EventEn>() &&
                     unit.state().concealment.exits && unit.state().ctl_load_verdict &&
                     unit.state().options.pads != trace::pad_policy::none &&
                     unit.state().caps.has_pt();
    return all ? unit.ended_by() : unit.state().shutdown_by;
}
auto fw_unit_image(engine::trace_unit<>& unit, engine::model_options const& how,
                   uint8_t const* data, size_t size, engine::unit_image<1024>& saved) noexcept
    -> access::error {
    saved = engine::store(unit);
    auto const loaded = engine::load(unit.state().caps, {data, size}, how);
    if (loaded) { unit = loaded.unit; }
    auto const of_kind = engine::load(unit.state().caps, {data, size});
    if (of_kind) { unit = of_kind.unit; }
    return saved.view().empty() ? access::error::none : loaded.error;
}
auto fw_generator(engine::generator& from, engine::action::mov_cr3 const& e,
                  byte_buffer& to) noexcept -> bool {
    from.on(e, to);
    from.end_overflow(to);
    return from.xrstors_init(0) &&
           from.wrmsr({.index = 0x570, .value = 0, .at = 0, .next = 0}, to) &&
           from.xrstors({}, 0, 0, to) && from.state().msrs == msr_state{};
}
void fw_generator_resets(engine::generator& of, engine::execution_context const& code,
                         uint64_t& value) noexcept {
    of.cold_reset(code, 0);
    of.warm_reset(code, 0);
    value = of.rdmsr(0x571).value;
}
auto fw_evaluate(capabilities const& of, msr_state const& now,
                 engine::execution_context const& code, access::evaluated& done) noexcept -> bool {
    packet_ip const in_packets = engine::ip_in_packets(of.ip_payload(), code, code.cr3);
    uint64_t const ip = in_packets.value;
    done = access::evaluate(of, now, engine::context_of(code, in_packets), ip);
    return access::enables_of(of, now).packet() && code.counted_cpl() == 0 &&
           engine::fast_ips_around(now, ip).size() != 0 && access::in_filter(now, ip) &&
           access::in_trace_stop(now, ip);
}
auto fw_clocks(cpu::capabilities const& of, engine::clocks& now, uint64_t art,
               uint64_t tsc) noexcept -> uint64_t {
    auto const due = now.until(art, 3);
    now.run_to(art, tsc);
    return due.packet(0).raw + now.tsc_packet().raw + now.tma_packet().raw +
           now.cbr_packet(engine::core_to_bus_of(of)).raw +
           engine::count_cycles({.cycles = art, .bits = 32}, tsc).cycles;
}
auto fw_return_stack(trace::return_stack& calls, uint64_t next) noexcept -> bool {
    calls.push(next);
    bool const known = calls.pop(next, ~uint64_t{0}) && calls[0] == next && calls.size() != 0;
    calls.clear();
    return known && calls == trace::return_stack{};
}
auto fw_byte_queue(engine::byte_queue<64>& queue, uint8_t const* data, size_t size) noexcept
    -> size_t {
    bool const took = queue.append({data, size}) && queue.append({1, 2}, 9);
    size_t const room = queue.room() + queue[0] + queue.front().size() + queue.depth();
    queue.drop(size);
    if (queue.empty() || !took) { queue.clear(); }
    return room + queue.size();
}

// -------------------------------------------------------------------------------- x86

auto fw_x86_decode(byte_view code, unsigned width, x86::instruction& what) noexcept -> unsigned {
    auto const done = x86::decode(code, static_cast<x86::code_width>(width % 3));
    what = done.what;
    return underlying(done.error);
}
auto fw_x86_event(engine::generator& unit, byte_buffer& to, simulate::execution const& of) noexcept
    -> bool {
    simulate::take_action(of, [&](auto const& event) { unit.on(event, to); });
    return simulate::leads_on(of) && x86::is_direct(of.what);
}

// -------------------------------------------------------------------------------- print

auto fw_print_word(unsigned word, wide_bits const& bits, char* room, size_t size) noexcept
    -> size_t {
    print::text_buffer out{room, size};
    for_type(words{}, word, [&]<class Word>() { print::word(word_of<Word>(bits), out); });
    return out.is_truncated() ? 0 : out.written().size();
}
auto fw_print_packet(packet::any_packet const& any, char* room, size_t size) noexcept -> size_t {
    print::text_buffer out{room, size};
    print::packet(any, out);
    return out.is_truncated() ? 0 : out.written().size();
}

}  // extern "C"
