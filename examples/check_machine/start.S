// SPDX-License-Identifier: BSL-1.0
// The entry point of PVH and of Multiboot: 32-bit protected mode without paging, EBX holds the
// address of the start info, and EAX the magic number of a Multiboot loader. Maps the first 4 GB of memory to itself, enters 64-bit mode and calls machine_main.

.section .note.pvh, "a", @note
        .balign 4
        .long 4, 8, 18          // the sizes of the name and the value; XEN_ELFNOTE_PHYS32_ENTRY
        .asciz "Xen"
        .quad start

// The header that a Multiboot loader, such as GRUB, looks for: magic number, no flags, their sum.
// QEMU would take it, and refuse 64-bit code, before it looks for the PVH entry point.
#ifdef MULTIBOOT
.section .multiboot, "a"
        .balign 4
        .long 0x1BADB002, 0, -0x1BADB002
#endif

.section .text.start, "ax"
.code32
.globl start
start:
        cld
        mov     $stack_top, %esp
        mov     %eax, %esi      // which nothing below changes

        // Tables: one entry, four, and 2048 pages of 2 MB. Present, writable; large.
        movl    $(third_level + 3), fourth_level
        movl    $(second_level + 0x0003), third_level
        movl    $(second_level + 0x1003), third_level + 8
        movl    $(second_level + 0x2003), third_level + 16
        movl    $(second_level + 0x3003), third_level + 24
        xor     %ecx, %ecx
1:      mov     %ecx, %eax
        shl     $21, %eax
        or      $0x83, %eax
        mov     %eax, second_level(, %ecx, 8)
        inc     %ecx
        cmp     $2048, %ecx
        jne     1b

        mov     $fourth_level, %eax
        mov     %eax, %cr3
        mov     %cr4, %eax
        or      $0x20, %eax     // PAE
        mov     %eax, %cr4
        mov     $0xC0000080, %ecx
        rdmsr
        or      $0x100, %eax    // IA32_EFER.LME
        wrmsr
        mov     %cr0, %eax
        or      $0x80000001, %eax       // PG, PE
        mov     %eax, %cr0
        lgdt    gdt_register
        ljmp    $8, $1f

.code64
1:      mov     $16, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     %ebx, %edi
        xor     %ebp, %ebp
        call    machine_main
        ud2

.section .rodata
        .balign 8
gdt:    .quad 0
        .quad 0x00AF9B000000FFFF        // 64-bit code
        .quad 0x00CF93000000FFFF        // data
gdt_register:
        .word 23
        .long gdt

.section .bss
        .balign 4096
fourth_level:   .skip 4096
third_level:    .skip 4096
second_level:   .skip 4 * 4096
        .skip 0x40000
stack_top:

.section .note.GNU-stack, "", @progbits
