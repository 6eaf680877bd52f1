// SPDX-License-Identifier: BSL-1.0
// The function templates of ptspec.hpp, wrapped in C functions that firmware could call, and its
// class templates with all their members. Nothing here runs: tests/checks/freestanding.py inspects
// the object file beside one with all other functions of ptspec.hpp, and links it only with
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

/// Types whose `==` is defaulted.
using compared = type_list<byte_array<16>, max_phys_addr, cpuid_registers, port_value, port_fault,
                           topa::position, topa::limits, topa::region, topa::violation,
                           topa::tables<3, 2>, topa::page_regions, trace::packet_counts,
                           engine::write_result, access::msr_state, trace::return_stack>;

template <class Packet, unsigned Most>
auto write_bytes(packet::encoded<Most> const& from, uint8_t* to) noexcept -> rule {
    for (unsigned i = 0; i < from.length; ++i) { to[i] = from.bytes[i]; }
    return from.broken;
}

}  // namespace

extern "C" {

auto fw_same(unsigned index, void const* one, void const* two) noexcept -> bool {
    bool same = false;
    auto const compare = [&]<class Type>() {
        same = *static_cast<Type const*>(one) == *static_cast<Type const*>(two);
    };
    for_word(index, compare);
    for_type(compared{}, index - static_cast<unsigned>(words::size + packet::all::size), compare);
    return same;
}

void fw_sentence(rule which, text& out) noexcept { out = describe(which); }
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

// -------------------------------------------------------------------------------- models of ports

void fw_host_memory_of_two(host_memory& out, host_region const (&regions)[2]) noexcept {
    out = host_memory{regions};
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

auto fw_entry_rules(unsigned which, uint64_t raw, topa::position const& at, topa::limits const& of,
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
auto fw_tables_of_chain(topa::tables<3, 2> const& made, topa::table<2>& second) noexcept
    -> uint64_t {
    second = made.get<1>();
    return made.get<0>().entries[0].raw;
}

void fw_cover(uint64_t const* pages, size_t count, unsigned width, topa::region* to,
              topa::page_regions& out) noexcept {
    out = topa::regions_for_pages(pages, count, {width}, [&](topa::region one) { *to++ = one; });
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

}  // extern "C"

namespace firmware {

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

}  // namespace firmware

using firmware::hooked_memory;

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
    out = topa::for_each_entry(memory, table, most, [&](topa::position, topa::entry current) {
        to[count++] = current.raw;
    });
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
auto fw_warnings(uint64_t raw, topa::position const& at, topa::output_hazards const& around,
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

}  // extern "C"

namespace firmware {

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

}  // namespace firmware

using namespace firmware;

extern "C" {

void fw_reader_whole(trace::reader<>& out, uint8_t const* data, size_t size, bool sync,
                     bool strict) noexcept {
    out = trace::reader<>{byte_view{data, size}, {.sync = sync, .strict = strict}};
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
void fw_reader_boundaries(trace::reader<>& from, uint64_t* out) noexcept {
    (void)from.scan({}, [&](packet::kind which, uint64_t offset, unsigned length) {
        *out++ = offset << 16 | length << 8 | underlying(which);
    });
}

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

// -------------------------------------------------------------------------------- access

using access::msr_state;

auto fw_broken_rules(capabilities const& of, msr_state const& now, uint32_t index, uint64_t value,
                     rule* out) noexcept -> size_t {
    size_t count = 0;
    access::find_broken_rules(of, now, index, value, {}, [&](rule one) { out[count++] = one; });
    return count;
}
auto fw_topa_pmi(msr_state const& now, uint64_t x2apic, uint32_t mmio, uint64_t* out) noexcept
    -> bool {
    out[0] = access::after_delivery(reg::ia32_x2apic_lvt_pmi{x2apic}).raw;
    out[1] = access::after_delivery(reg::apic_mmio_lvt_pmi{mmio}).raw;
    return access::is_topa_pmi_for_now(now);
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

auto fw_ept_violation(vmx::guest_pt& guest, uint64_t qualification, uint64_t address,
                      fw_guest_memory& memory) noexcept -> vmx::ept_violation_action {
    auto const answer = vmx::on_ept_violation(guest, qualification, address, memory);
    if (answer.what == vmx::ept_violation_action::end_output) { vmx::end_output(guest); }
    return answer.what;
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
auto fw_guest_trace(byte_window const* windows, size_t count, unsigned function,
                    edit::part_options const& options,
                    edit::guest_address (*address_of)(uint64_t)) noexcept -> uint64_t {
    edit::trace_memory const trace{windows, count};
    switch (function) {
        case 0: return edit::count_vmx_packets(trace);
        case 1: return edit::rebase_tsc(trace, options.other_tsc).count;
        case 2: return edit::replace_cr3(trace, address_of).count;
        case 3: return edit::replace_vmcs(trace, address_of).count;
        default: return edit::keep_part(trace, options).kept;
    }
}
auto fw_guest_trace_chunk(edit::chunked_trace<packet::pip>& cr3,
                          edit::chunked_trace<packet::vmcs>& vmcs,
                          edit::chunked_trace<packet::tsc>& tsc, byte_window const* windows,
                          size_t count, trace::tsc_change change,
                          edit::guest_address (*address_of)(uint64_t)) noexcept -> size_t {
    edit::trace_memory const trace{windows, count};
    return edit::rebase_tsc(tsc, trace, change).kept_back +
           edit::replace_cr3(cr3, trace, address_of).kept_back +
           edit::replace_vmcs(vmcs, trace, address_of).kept_back;
}

// -------------------------------------------------------------------------------- writing

using buffer_writer = trace::writer<byte_buffer>;

auto fw_writer(buffer_writer& to, packet::any_packet const& any, packet::mtc const& mtc,
               uint64_t ip) noexcept -> bool {
    return to.put(any) == rule::none && to.put(mtc) == rule::none &&
           to.put_ip<packet::fup>(ip) == rule::none;
}

// -------------------------------------------------------------------------------- engine

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
void fw_output_resume(engine::output& out, msr_state& now, hooked_memory& memory,
                      port_fault& fault) noexcept {
    fault = out.retry(now, memory);
}
auto fw_output_without_windows(capabilities const& of, msr_state& now,
                               simulate::memory_model<256>& memory, uint8_t const* data,
                               size_t size, engine::write_result& done) noexcept -> rule {
    engine::output out;
    if (!out.start(of, now, memory).happened) { done = out.write(now, memory, {data, size}); }
    return out.ended_by();
}
auto fw_explain(capabilities const& of, msr_state const& now, hooked_memory& memory,
                engine::output_options const& how, engine::explanation& out) noexcept -> bool {
    out = engine::explain(of, now, memory, how);
    return static_cast<bool>(out.ended_by != rule::none);
}

// -------------------------------------------------------------------------------- trace unit

namespace action = engine::action;
using actions = type_list<
    action::conditional, action::direct_jump, action::direct_call, action::indirect_jump,
    action::indirect_call, action::near_return, action::sequential, action::far_transfer,
    action::software_interrupt, action::interrupt, action::exception, action::user_interrupt,
    action::init, action::sipi, action::mov_cr3, action::interrupt_flag, action::transaction_begin,
    action::transaction_end, action::transaction_abort, action::enclave_transfer, action::vm_exit,
    action::vm_entry, action::vm_entry_failure, action::vmptrld, action::vmclear, action::vmxon,
    action::vmxoff, action::smi, action::rsm, action::measured_launch, action::acm_begin,
    action::acm_end, action::ptwrite, action::mwait, action::halt, action::wake, action::duty_cycle,
    action::clock_stop, action::clock_resume, action::pebs_record, action::elapsed, action::cycles,
    action::ratio, action::cycle_guard, action::psb_due, action::overflow, action::overflow_end>;

void fw_unit_on(engine::trace_unit<>& unit, unsigned index, void const* what, hooked_memory& memory,
                port_fault& fault) noexcept {
    for_type(actions{}, index,
             [&]<class Action>() { fault = unit.on(*static_cast<Action const*>(what), memory); });
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
auto fw_unit_drain(engine::trace_unit<>& unit, hooked_memory& memory, size_t most,
                   port_fault& fault) noexcept -> size_t {
    fault = unit.drain(memory, most);
    return unit.buffered().size();
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

// -------------------------------------------------------------------------------- x86

auto fw_x86_decode(byte_view code, unsigned width, x86::instruction& what) noexcept -> unsigned {
    auto const done = x86::decode(code, static_cast<x86::code_width>(width % 3));
    what = done.instruction;
    return underlying(done.error);
}
auto fw_x86_event(engine::generator& unit, byte_buffer& to, simulate::execution const& of) noexcept
    -> bool {
    simulate::take_action(of, [&](auto const& event) { unit.on(event, to); });
    return simulate::leads_on(of) && x86::is_direct(of.instruction);
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

// -------------------------------------------------------------------------------- class templates

namespace ptspec {

template struct byte_array<16>;
template class cpu::detail::encoded_period<cpu::mtc_period, reg::ia32_rtit_ctl::MTCFreq>;
template class cpu::detail::encoded_period<cpu::cyc_threshold, reg::ia32_rtit_ctl::CycThresh>;
template class cpu::detail::encoded_period<cpu::psb_period, reg::ia32_rtit_ctl::PSBFreq>;
template struct topa::table<3>;
template struct topa::tables<3, 2>;
template class trace::reader<>;
template class trace::reader<firmware::hook>;
template class trace::writer<byte_buffer>;
template class trace::packet_batch<>;
template class engine::byte_queue<64>;
template class engine::trace_unit<>;
template struct engine::unit_image<1024>;
template struct simulate::memory_model<256>;
template struct simulate::msr_model<8>;
template struct simulate::cpuid_model<8>;

}  // namespace ptspec
