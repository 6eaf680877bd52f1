// SPDX-License-Identifier: BSL-1.0

// x86::decode against Zydis: length, class and displacement, over random bytes in each mode and
// over the code of programs. See `--help`.

#include <ptspec/x86/decode.hpp>

#include <Zydis/Zydis.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ptspec;
using x86::code_width;
using x86::instruction_class;

constexpr char const* usage = R"(usage: differential_x86 [--strings N] [--flow BASE]... [FILE...]

Decodes N random strings in each of the three modes, and every instruction of the 64-bit ELF FILEs,
linearly. With --flow the instructions that a recorded trace executed, also against the number that
its golden has: BASE.flow, BASE.mem and BASE.addr, unpacked. Exit status: 0 no unexplained
difference, 1 there are some.
)";

struct mode {
    char const* name;
    code_width width;
    ZydisMachineMode machine;
    ZydisStackWidth stack;
};
constexpr mode modes[] = {
    {"64-bit", code_width::bits_64, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64},
    {"32-bit", code_width::bits_32, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32},
    {"16-bit", code_width::bits_16, ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16},
};

/// The class of an instruction of Zydis.
auto class_of(ZydisDecodedInstruction const& of) -> instruction_class {
    using enum instruction_class;
    bool const is_far = of.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    bool const is_relative = of.opcode != 0xFF;
    switch (of.mnemonic) {
        case ZYDIS_MNEMONIC_JMP:
            return is_far ? far_jump : is_relative ? direct_jump : indirect_jump;
        case ZYDIS_MNEMONIC_CALL:
            return is_far ? far_call : is_relative ? direct_call : indirect_call;
        case ZYDIS_MNEMONIC_RET: return is_far ? far_return : near_return;
        case ZYDIS_MNEMONIC_IRET:
        case ZYDIS_MNEMONIC_IRETD:
        case ZYDIS_MNEMONIC_IRETQ: return iret;
        case ZYDIS_MNEMONIC_INT:
        case ZYDIS_MNEMONIC_INT1:
        case ZYDIS_MNEMONIC_INT3:
        case ZYDIS_MNEMONIC_INTO: return software_interrupt;
        case ZYDIS_MNEMONIC_SYSCALL: return syscall;
        case ZYDIS_MNEMONIC_SYSRET: return sysret;
        case ZYDIS_MNEMONIC_SYSENTER: return sysenter;
        case ZYDIS_MNEMONIC_SYSEXIT: return sysexit;
        case ZYDIS_MNEMONIC_UIRET: return uiret;
        case ZYDIS_MNEMONIC_VMLAUNCH:
        case ZYDIS_MNEMONIC_VMRESUME:
        case ZYDIS_MNEMONIC_SEAMRET: return vm_entry;
        case ZYDIS_MNEMONIC_VMCALL:
        case ZYDIS_MNEMONIC_VMMCALL:
        case ZYDIS_MNEMONIC_SEAMCALL: return vm_call;
        case ZYDIS_MNEMONIC_VMXON: return vmxon;
        case ZYDIS_MNEMONIC_VMXOFF: return vmxoff;
        case ZYDIS_MNEMONIC_VMPTRLD: return vmptrld;
        case ZYDIS_MNEMONIC_VMCLEAR: return vmclear;
        case ZYDIS_MNEMONIC_RSM: return rsm;
        case ZYDIS_MNEMONIC_GETSEC: return getsec;
        case ZYDIS_MNEMONIC_ENCLS:
        case ZYDIS_MNEMONIC_ENCLU:
        case ZYDIS_MNEMONIC_ENCLV: return enclave;
        case ZYDIS_MNEMONIC_PTWRITE: return ptwrite;
        case ZYDIS_MNEMONIC_WRMSR: return wrmsr;
        case ZYDIS_MNEMONIC_XSAVES:
        case ZYDIS_MNEMONIC_XSAVES64: return xsaves;
        case ZYDIS_MNEMONIC_XRSTORS:
        case ZYDIS_MNEMONIC_XRSTORS64: return xrstors;
        case ZYDIS_MNEMONIC_XBEGIN: return xbegin;
        case ZYDIS_MNEMONIC_XEND: return xend;
        case ZYDIS_MNEMONIC_XABORT: return xabort;
        case ZYDIS_MNEMONIC_HLT: return hlt;
        case ZYDIS_MNEMONIC_MWAIT:
        case ZYDIS_MNEMONIC_MWAITX: return mwait;
        case ZYDIS_MNEMONIC_STI:
        case ZYDIS_MNEMONIC_CLI:
        case ZYDIS_MNEMONIC_POPF:
        case ZYDIS_MNEMONIC_POPFD:
        case ZYDIS_MNEMONIC_POPFQ: return interrupt_flag;
        case ZYDIS_MNEMONIC_MOV: {
            bool const is_cr = of.opcode_map == ZYDIS_OPCODE_MAP_0F && of.opcode == 0x22;
            return is_cr && of.raw.modrm.reg == 3 && of.raw.rex.R == 0 ? mov_to_cr3 : other;
        }
        default: return of.meta.category == ZYDIS_CATEGORY_COND_BR ? conditional : other;
    }
}

struct totals {
    std::uint64_t all = 0;
    std::uint64_t agree = 0;
    std::uint64_t both_refuse = 0;
    std::uint64_t only_here = 0;  ///< Zydis refuses operands or opcodes that no processor defines
    std::uint64_t knights_corner = 0;
    std::uint64_t ptwrite_with_66 = 0;
    std::map<std::string, std::uint64_t> differ{};
};

void print(std::uint8_t const* bytes, char const* name, std::string const& why) {
    std::printf("%s:", name);
    for (int i = 0; i < 15; ++i) { std::printf(" %02x", static_cast<unsigned>(bytes[i])); }
    std::printf(": %s\n", why.c_str());
}

/// Instructions of Knights Corner, which has no Intel PT: they are taken for those of AVX.
auto is_of_knights_corner(ZydisDecodedInstruction const& of) -> bool {
    return of.mnemonic == ZYDIS_MNEMONIC_JKZD || of.mnemonic == ZYDIS_MNEMONIC_JKNZD;
}

/// PTWRITE with the prefix 66, which Zydis accepts: it is undefined (GEN-300).
auto is_ptwrite_with_66(ZydisDecodedInstruction const& of) -> bool {
    return of.mnemonic == ZYDIS_MNEMONIC_PTWRITE &&
           (of.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) != 0;
}

/// Compares one instruction of at least 15 bytes. Returns its length by Zydis, or 0.
auto compare(ZydisDecoder const& zydis, mode const& in, std::uint8_t const* bytes, totals& sum)
    -> unsigned {
    ++sum.all;
    auto const ours = x86::decode({bytes, 15}, in.width);
    ZydisDecodedInstruction theirs{};
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&zydis, nullptr, bytes, 15, &theirs))) {
        ++(ours ? sum.only_here : sum.both_refuse);
        return 0;
    }
    std::string why;
    if (is_of_knights_corner(theirs)) {
        ++sum.knights_corner;
        return theirs.length;
    }
    if (!ours && is_ptwrite_with_66(theirs)) {
        ++sum.ptwrite_with_66;
    } else if (!ours) {
        why = "refused";
    } else if (ours.instruction.length != theirs.length) {
        why = "length " + std::to_string(ours.instruction.length) + ", not " +
              std::to_string(theirs.length);
    } else if (ours.instruction.kind != class_of(theirs)) {
        why = "class " + std::to_string(static_cast<int>(ours.instruction.kind)) + ", not " +
              std::to_string(static_cast<int>(class_of(theirs)));
    } else if (ours.instruction.has_displacement &&
               ours.instruction.displacement != theirs.raw.imm[0].value.s) {
        why = "displacement";
    }
    if (why.empty()) {
        sum.agree += ours ? 1U : 0U;
    } else {
        why = std::string{ZydisMnemonicGetString(theirs.mnemonic)} + ", " + why;
        if (++sum.differ[why] == 1) { print(bytes, in.name, why); }
    }
    return theirs.length;
}

auto decoder_of(mode const& in) -> ZydisDecoder {
    ZydisDecoder made;
    (void)ZydisDecoderInit(&made, in.machine, in.stack);
    return made;
}

/// Random bytes, of which the first are often prefixes and escapes.
void fill(std::mt19937_64& random, std::uint8_t (&bytes)[32]) {
    for (unsigned i = 0; i < sizeof bytes; i += 8) {
        std::uint64_t const word = random();
        for (unsigned j = 0; j < 8; ++j) {
            bytes[i + j] = static_cast<std::uint8_t>(word >> 8 * j);
        }
    }
    constexpr std::uint8_t usual[] = {0x66, 0x67, 0xF2, 0xF3, 0xF0, 0x2E, 0x48, 0x0F,
                                      0x0F, 0x38, 0x3A, 0xC4, 0xC5, 0x62, 0x8F, 0x4F};
    std::uint64_t dice = random();
    for (unsigned i = 0; i < 4 && (dice & 1) != 0; ++i, dice >>= 8) {
        bytes[i] = usual[dice >> 1 & 15];
    }
}

auto text_of(std::string const& path) -> std::vector<std::uint8_t> {
    std::ifstream file{path, std::ios::binary};
    std::vector<std::uint8_t> const all{std::istreambuf_iterator<char>{file}, {}};
    auto const number = [&](std::size_t at, unsigned count) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < count && at + i < all.size(); ++i) {
            value |= std::uint64_t{all[at + i]} << 8 * i;
        }
        return value;
    };
    std::vector<std::uint8_t> text;
    if (all.size() < 64 || number(0, 4) != 0x464C'457F || all[4] != 2) { return text; }
    std::uint64_t const headers = number(32, 8);
    for (std::uint64_t i = 0; i < number(56, 2); ++i) {
        std::uint64_t const at = headers + 56 * i;
        bool const is_code = number(at, 4) == 1 && (number(at + 4, 4) & 1) != 0;
        std::uint64_t const begin = number(at + 8, 8);
        std::uint64_t const size = number(at + 32, 8);
        if (!is_code || begin > all.size() || size > all.size() - begin) { continue; }
        text.insert(text.end(), all.begin() + static_cast<std::ptrdiff_t>(begin),
                    all.begin() + static_cast<std::ptrdiff_t>(begin + size));
    }
    return text;
}

/// The memory image of a recorded trace.
class memory_image {
public:
    explicit memory_image(std::string const& base) {
        std::ifstream addresses{base + ".addr"};
        std::ifstream bytes{base + ".mem", std::ios::binary};
        for (std::string line; std::getline(addresses, line);) {
            auto& page = pages_[std::strtoull(line.c_str(), nullptr, 16) / page_bytes];
            page.resize(page_bytes);
            bytes.read(reinterpret_cast<char*>(page.data()), page_bytes);
            if (line.find("unmapped") != std::string::npos) { page.clear(); }
        }
    }
    /// Reads up to 15 bytes; what is not there is 0.
    void read(std::uint64_t at, std::uint8_t (&to)[16]) const {
        for (unsigned i = 0; i < 15; ++i) {
            auto const page = pages_.find((at + i) / page_bytes);
            bool const is_there = page != pages_.end() && !page->second.empty();
            to[i] = is_there ? page->second[(at + i) % page_bytes] : std::uint8_t{0};
        }
    }

private:
    static constexpr std::size_t page_bytes = 4096;
    std::map<std::uint64_t, std::vector<std::uint8_t>> pages_{};
};

/// Decodes the runs of a golden: `run START LAST n=N mode=M`.
void decode_flow(std::string const& base, totals& sum) {
    memory_image const memory{base};
    std::ifstream flow{base + ".flow"};
    std::set<std::string> seen;
    for (std::string line; std::getline(flow, line);) {
        unsigned long long start = 0;
        unsigned long long last = 0;
        unsigned count = 0;
        unsigned bits = 0;
        if (std::sscanf(line.c_str(), "run %llx %llx n=%u mode=%u", &start, &last, &count, &bits) !=
                4 ||
            !seen.insert(line).second) {
            continue;
        }
        auto const& in = modes[bits == 64 ? 0 : bits == 32 ? 1 : 2];
        auto const zydis = decoder_of(in);
        std::uint64_t at = start;
        for (unsigned i = 0;; ++i) {
            std::uint8_t bytes[16] = {};
            memory.read(at, bytes);
            auto const one = x86::decode({bytes, 15}, in.width);
            (void)compare(zydis, in, bytes, sum);
            if (i + 1 == count || !one) { break; }
            at += one.instruction.length;
        }
        if (at != last) { ++sum.differ["a run of a golden: " + line]; }
    }
}

auto report(char const* what, totals const& sum) -> bool {
    std::printf("%s: %llu strings, %llu agree, %llu refused by both, %llu refused only by Zydis, "
                "%llu of Knights Corner, %llu PTWRITE with 66, %zu kinds of difference\n",
                what, static_cast<unsigned long long>(sum.all),
                static_cast<unsigned long long>(sum.agree),
                static_cast<unsigned long long>(sum.both_refuse),
                static_cast<unsigned long long>(sum.only_here),
                static_cast<unsigned long long>(sum.knights_corner),
                static_cast<unsigned long long>(sum.ptwrite_with_66), sum.differ.size());
    for (auto const& [why, count] : sum.differ) {
        std::printf("  %llu times %s\n", static_cast<unsigned long long>(count), why.c_str());
    }
    return sum.differ.empty();
}

}  // namespace

auto main(int count, char** arguments) -> int {
    std::uint64_t strings = 1'000'000;
    std::vector<std::string> files;
    std::vector<std::string> flows;
    for (int i = 1; i < count; ++i) {
        std::string_view const argument = arguments[i];
        if (argument == "--help") {
            std::printf("%s", usage);
            return 0;
        }
        if (argument == "--flow" && i + 1 < count) {
            flows.emplace_back(arguments[++i]);
        } else if (argument == "--strings" && i + 1 < count) {
            strings = std::strtoull(arguments[++i], nullptr, 10);
        } else {
            files.emplace_back(argument);
        }
    }
    bool good = true;
    for (auto const& in : modes) {
        totals sum;
        auto const zydis = decoder_of(in);
        std::mt19937_64 random{static_cast<std::uint64_t>(in.machine) + 1};
        std::uint8_t bytes[32];
        for (std::uint64_t i = 0; i < strings; ++i) {
            fill(random, bytes);
            (void)compare(zydis, in, bytes, sum);
        }
        good = report(in.name, sum) && good;
    }
    totals sum;
    auto const zydis = decoder_of(modes[0]);
    for (auto const& path : files) {
        auto text = text_of(path);
        text.resize(text.size() + 16);
        for (std::size_t at = 0; at + 16 < text.size();) {
            unsigned const length = compare(zydis, modes[0], &text[at], sum);
            at += length != 0 ? length : 1;
        }
    }
    if (!files.empty()) { good = report("programs", sum) && good; }
    totals executed;
    for (auto const& base : flows) { decode_flow(base, executed); }
    if (!flows.empty()) { good = report("executed", executed) && good; }
    return good ? 0 : 1;
}
