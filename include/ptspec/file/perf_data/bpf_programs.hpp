// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/file/perf_data/input.hpp>

/// The machine code of BPF programs.
namespace ptspec::file::perf_data {

/// `bpf_prog_info` of Linux, up to the tags of its functions. A member with `offset` in its comment
/// is the place of an array in the data of the program, valid if `bpf_info_arrays` has its bit.
///
/// Source: Linux, include/uapi/linux/bpf.h.
struct bpf_prog_info {
    le32 type{};
    le32 id{};
    uint8_t tag[8]{};
    le32 jited_prog_len{};  ///< bytes of machine code of all functions together
    le32 xlated_prog_len{};
    le64 jited_prog_insns{};  ///< offset of the machine code
    le64 xlated_prog_insns{};
    le64 load_time{};  ///< in nanoseconds since the boot
    le32 created_by_uid{};
    le32 nr_map_ids{};
    le64 map_ids{};
    uint8_t name[16]{};
    le32 ifindex{};
    le32 gpl_compatible{};  ///< bit 0
    le64 netns_dev{};
    le64 netns_ino{};
    le32 nr_jited_ksyms{};
    le32 nr_jited_func_lens{};
    le64 jited_ksyms{};      ///< offset of the addresses of functions, 8 bytes each
    le64 jited_func_lens{};  ///< offset of their sizes, 4 bytes each
    le32 btf_id{};
    le32 func_info_rec_size{};
    le64 func_info{};
    le32 nr_func_info{};
    le32 nr_line_info{};
    le64 line_info{};
    le64 jited_line_info{};
    le32 nr_jited_line_info{};
    le32 line_info_rec_size{};
    le32 jited_line_info_rec_size{};
    le32 nr_prog_tags{};
    le64 prog_tags{};  ///< offset of the tags of functions, 8 bytes each
};

/// The arrays that an entry of the feature BPF_PROG_INFO has.
///
/// Shape:  64 bits.
/// Source: Linux, tools/perf/util/bpf-utils.h, `perf_bpil_array_types`.
struct bpf_info_arrays : bit_word<bpf_info_arrays, uint64_t> {
    struct JITED_INSNS : flag<0> {};
    struct XLATED_INSNS : flag<1> {};
    struct MAP_IDS : flag<2> {};
    struct JITED_KSYMS : flag<3> {};
    struct JITED_FUNC_LENS : flag<4> {};
    struct FUNC_INFO : flag<5> {};
    struct LINE_INFO : flag<6> {};
    struct JITED_LINE_INFO : flag<7> {};
    struct PROG_TAGS : flag<8> {};

    // clang-format off
    struct layout : bit_layout<64,
        JITED_INSNS, XLATED_INSNS, MAP_IDS, JITED_KSYMS, JITED_FUNC_LENS, FUNC_INFO, LINE_INFO,
        JITED_LINE_INFO, PROG_TAGS, reserved<63, 9>> {};
    // clang-format on
};

/// The begin of an entry of the feature BPF_PROG_INFO: `perf_bpil` of perf. `info_len` bytes of
/// `bpf_prog_info` follow, then `data_len` bytes of data.
///
/// Source: Linux, tools/perf/util/bpf-utils.h; tools/perf/util/header.c, `write_bpf_prog_info`.
struct bpf_info_entry {
    le32 info_len{};
    le32 data_len{};
    little_endian<bpf_info_arrays> arrays{};
};

/// A function of a BPF program.
struct bpf_function {
    uint64_t address = 0;
    uint32_t size = 0;
    byte_view code{};  ///< empty: the entry does not have it
};

/// A BPF program: an entry of the feature BPF_PROG_INFO. It borrows the bytes of the file.
struct bpf_program : bpf_prog_info {
    bpf_info_arrays arrays{};
    byte_view data{};
    bool has_value = false;

    constexpr explicit operator bool() const noexcept { return has_value; }
    /// The machine code of all functions, one after the other; empty: the entry does not have it.
    [[nodiscard]] constexpr auto code() const noexcept -> byte_view {
        return array(arrays.get<bpf_info_arrays::JITED_INSNS>(), jited_prog_insns, jited_prog_len,
                     1);
    }
    /// The addresses of functions; empty: the entry does not have them.
    [[nodiscard]] constexpr auto addresses() const noexcept -> byte_view {
        return array(arrays.get<bpf_info_arrays::JITED_KSYMS>(), jited_ksyms, nr_jited_ksyms, 8);
    }
    [[nodiscard]] constexpr auto sizes() const noexcept -> byte_view {
        return array(arrays.get<bpf_info_arrays::JITED_FUNC_LENS>(), jited_func_lens,
                     nr_jited_func_lens, 4);
    }

private:
    [[nodiscard]] constexpr auto array(bool is_saved, uint64_t const offset, uint64_t count,
                                       uint64_t each) const noexcept -> byte_view {
        uint64_t const size = count * each;  // both are below 2^33
        bool const is_there = is_saved && offset <= data.size() && size <= data.size() - offset;
        return is_there ? data.from(static_cast<size_t>(offset)).first(static_cast<size_t>(size))
                        : byte_view{};
    }
};

/// Reads the functions of a BPF program, in order. A reader is a value.
class bpf_function_reader {
public:
    constexpr explicit bpf_function_reader(bpf_program const& of) noexcept
        : addresses_{of.addresses()}, sizes_{of.sizes()}, code_{of.code()} {}

    /// The next function; its address is 0 at the end.
    [[nodiscard]] constexpr auto next() noexcept -> bpf_function {
        if (addresses_.empty() || sizes_.empty()) { return {}; }
        auto const size = static_cast<uint32_t>(load_le(sizes_.first(4)));
        bpf_function const made{load_le(addresses_.first(8)), size,
                                size <= code_.size() ? code_.first(size) : byte_view{}};
        addresses_ = addresses_.from(8);
        sizes_ = sizes_.from(4);
        code_ = code_.from(size <= code_.size() ? size : code_.size());
        return made;
    }

private:
    byte_view addresses_;
    byte_view sizes_;
    byte_view code_;
};

[[nodiscard]] constexpr auto functions_of(bpf_program const& of) noexcept -> bpf_function_reader {
    return bpf_function_reader{of};
}

/// Reads the BPF programs of a perf.data file, in order. A reader is a value.
///
/// Shape:  the feature BPF_PROG_INFO: the number of entries, in 4 bytes, and the entries.
class bpf_program_reader {
public:
    /// The reader borrows the bytes of the file.
    constexpr explicit bpf_program_reader(input const& file) noexcept {
        auto const found = feature_of(file, feature_id::bpf_prog_info);
        if (found.result.error == read_error::no_feature) { return; }
        result_ = found.result;
        if (!result_) { return; }
        rest_ = found.bytes.from(sizeof(le32));
        offset_ = found.offset + (found.bytes.size() - rest_.size());
        left_ = load<le32>(found.bytes);
        if (found.bytes.size() < sizeof(le32)) { result_ = {read_error::truncated, found.offset}; }
    }

    /// The next program, or none: at the end, or after an error.
    ///
    /// Errors: truncated.
    [[nodiscard]] constexpr auto next() noexcept -> bpf_program {
        if (!result_ || left_ == 0) { return {}; }
        auto const entry = load<bpf_info_entry>(rest_);
        uint64_t const info = entry.info_len;
        uint64_t const size = sizeof entry + info + entry.data_len;
        if (size > rest_.size()) {
            result_ = {read_error::truncated, offset_};
            return {};
        }
        auto const content = rest_.from(sizeof entry);
        auto const length = static_cast<size_t>(info);
        bpf_program made{load<bpf_prog_info>(content.first(length)), entry.arrays,
                         content.from(length).first(entry.data_len), true};
        rest_ = rest_.from(static_cast<size_t>(size));
        offset_ += size;
        --left_;
        return made;
    }
    /// Where the next program is searched, in bytes from the start of the file.
    [[nodiscard]] constexpr auto offset() const noexcept -> uint64_t { return offset_; }
    /// The error that ended reading; `none` before an error, and at a normal end.
    [[nodiscard]] constexpr auto result() const noexcept -> read_status { return result_; }

private:
    byte_view rest_{};
    uint64_t offset_ = 0;
    uint32_t left_ = 0;
    read_status result_{};
};

[[nodiscard]] constexpr auto bpf_programs(input const& file) noexcept -> bpf_program_reader {
    return bpf_program_reader{file};
}

}  // namespace ptspec::file::perf_data
