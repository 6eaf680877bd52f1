// SPDX-License-Identifier: BSL-1.0

#include <linux/linkage.h>

// void suite_run_on_stack(struct suite_run* of, void* top)
SYM_FUNC_START(suite_run_on_stack)
        push    %rbp
        mov     %rsp, %rbp
        mov     %rsi, %rsp
        call    suite_run_here
        leave
        RET
SYM_FUNC_END(suite_run_on_stack)

// The page to which the snippets are copied, through another mapping.
        .balign 4096, 0xCC
SYM_DATA_START(suite_code)
        .fill   4096, 1, 0xCC
SYM_DATA_END(suite_code)
