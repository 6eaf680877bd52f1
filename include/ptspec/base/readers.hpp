// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ptspec/base/bytes.hpp>

/// The member functions that all readers share.
namespace ptspec {

/// `next()` returns one value at a time. One that converts to false is the last: the end, an error,
/// or the end of a chunk.
template <class Reader>
concept next_reader = requires(Reader& reader) {
    { reader.next() ? true : false } -> same_as<bool>;
};

/// Reads a trace that may arrive in chunks.
///
/// `feed(chunk)` gives the next chunk: at the start, and after the reader has reported
/// `need_input`. At other times it returns false and changes nothing. `finish()` ends the trace.
/// `offset()` is the position, in bytes from the start of the trace: all bytes before it were read.
template <class Reader>
concept chunk_reader = requires(Reader& reader, Reader const& const_reader, borrowed_bytes chunk) {
    { reader.feed(chunk) } -> same_as<bool>;
    { reader.finish() } -> same_as<void>;
    { const_reader.offset() } -> same_as<uint64_t>;
};

/// Reads the parts of a file with `next()`. `result()` is the error that ended reading; it converts
/// to true before an error, and at a normal end. `offset()` is the position in the file, in bytes.
template <class Reader>
concept file_reader = next_reader<Reader> && requires(Reader const& const_reader) {
    { const_reader.result() ? true : false } -> same_as<bool>;
    { const_reader.offset() } -> same_as<uint64_t>;
};

}  // namespace ptspec
