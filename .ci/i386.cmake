# SPDX-License-Identifier: BSL-1.0
# Cross build for a 32-bit processor. Where the kernel does not run 32-bit programs, tests run in
# qemu's user mode, six times as slow.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR i686)
set(CMAKE_CXX_COMPILER i686-linux-gnu-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
execute_process(COMMAND /usr/i686-linux-gnu/lib/ld-linux.so.2 --version
    RESULT_VARIABLE runs_here OUTPUT_QUIET ERROR_QUIET)
if(NOT runs_here EQUAL 0)
    set(CMAKE_CROSSCOMPILING_EMULATOR qemu-i386)
endif()
