// SPDX-License-Identifier: BSL-1.0
#pragma once

// Options that say where code is.

#include "../tool.hpp"
#include "binaries.hpp"
#include "images.hpp"

namespace traced {

struct code_options {
    traced::images images{};  ///< of a raw trace
    bool has_images = false;
    code_files files{};  ///< of a perf.data file
};

/// Takes an option that says where code is. Returns false when it is another option.
inline auto take_code_option(tool::command_line& line, code_options& to) -> bool {
    auto const option = line.argument();
    if (line.is("--symfs")) {
        to.files.root = line.value();
    } else if (line.is("--vdso")) {
        to.files.vdso = line.value();
    } else if (line.is("--kernel")) {
        to.files.kernel = line.value();
    } else if (line.is("--kallsyms")) {
        to.files.kallsyms = line.value();
    } else if (line.is("--guest-symfs")) {
        to.files.guest_root = line.value();
    } else if (line.is("--guest-kernel")) {
        to.files.guest_kernel = line.value();
    } else if (line.is("--guest-kallsyms")) {
        to.files.guest_kallsyms = line.value();
    } else {
        if (line.is("--binary")) {
            to.images.add_binary(option, line.value());
        } else if (line.is("--image")) {
            to.images.add_file(option, line.value());
        } else if (line.is("--pages")) {
            auto const memory = line.value();
            to.images.add_pages(memory, line.value());
        } else {
            return false;
        }
        to.has_images = true;
    }
    return true;
}

}  // namespace traced
