/* shim/thunk.S - the code that has one copy per row of hooks.def.
 * Called by  programs (the exported cu* symbols)      Calls  ag_runtime_first, ag_drain_thunk, the driver
 * Threads    any; writes nothing but two counters
 * Promise    every argument register, the stack arguments and the vector argument registers reach the target untouched
 *
 * For each row:   cuX             export: jumps to ag_entry[row]
 *                 first stub      what ag_entry[row] holds before the first driver call
 *                 drain stub      class DRAIN_ALL: drains when a segment is open, then the driver
 *                 count stub      in front of ag_counted[row] while calls are counted
 * and 256 numbered thunks for functions that the table does not name. Tables of the stubs' addresses follow. */

#if defined(__CET__)
#include <cet.h>
#elif defined(__x86_64__)
#define _CET_ENDBR endbr64
#endif

#define AG_POOL 256

#if defined(__x86_64__)
    .altmacro

    .macro ag_export symbol, row
    .globl \symbol
    .type \symbol, @function
    .globl ag_export_\symbol
    .hidden ag_export_\symbol
    .type ag_export_\symbol, @function
    .balign 16
\symbol:
ag_export_\symbol:
    _CET_ENDBR
    jmp *(ag_entry + 8*\row)(%rip)
    .size \symbol, .-\symbol
    .endm

    .macro ag_first row
ag_first_\row:
    _CET_ENDBR
    movl $\row, %r11d
    jmp ag_first_common
    .endm

    .macro ag_drain row
ag_drain_\row:
    _CET_ENDBR
    lock incl ag_unseen_calls(%rip)
    movl $\row, %r11d
    cmpl $0, ag_open_logs(%rip)
    jne ag_drain_common
    jmp *(ag_real_slot + 8*\row)(%rip)
    .endm

    .macro ag_count row
ag_count_\row:
    _CET_ENDBR
    lock incq (ag_calls + 8*\row)(%rip)
    jmp *(ag_counted + 8*\row)(%rip)
    .endm

    .macro ag_pool number
ag_pool_\number:
    _CET_ENDBR
    movl $\number, %r11d
    jmp ag_pool_common
    .endm

    .macro ag_quad prefix, row
    .quad \prefix\row
    .endm
    .macro ag_quad_symbol symbol
    .quad ag_export_\symbol
    .endm

/* Saves all argument registers, calls `function`(%r11d), restores them, jumps to its answer. */
    .macro ag_around function
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $192, %rsp
    movq %rdi, (%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq %rax, 48(%rsp)
    movq %r10, 56(%rsp)
    movaps %xmm0, 64(%rsp)
    movaps %xmm1, 80(%rsp)
    movaps %xmm2, 96(%rsp)
    movaps %xmm3, 112(%rsp)
    movaps %xmm4, 128(%rsp)
    movaps %xmm5, 144(%rsp)
    movaps %xmm6, 160(%rsp)
    movaps %xmm7, 176(%rsp)
    movl %r11d, %edi
    call \function
    movq %rax, %r11
    movq (%rsp), %rdi
    movq 8(%rsp), %rsi
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rcx
    movq 32(%rsp), %r8
    movq 40(%rsp), %r9
    movq 48(%rsp), %rax
    movq 56(%rsp), %r10
    movaps 64(%rsp), %xmm0
    movaps 80(%rsp), %xmm1
    movaps 96(%rsp), %xmm2
    movaps 112(%rsp), %xmm3
    movaps 128(%rsp), %xmm4
    movaps 144(%rsp), %xmm5
    movaps 160(%rsp), %xmm6
    movaps 176(%rsp), %xmm7
    leave
    .cfi_def_cfa %rsp, 8
    jmp *%r11
    .cfi_endproc
    .endm

    .text
ag_first_common:
    ag_around ag_runtime_first
ag_drain_common:
    ag_around ag_drain_thunk
ag_pool_common:
    ag_around ag_pool_thunk

#elif defined(__aarch64__)
    .altmacro

    .macro ag_jump table, row
    adrp x16, \table
    add x16, x16, :lo12:\table
    add x16, x16, #((8*\row) & 0xfff)
    add x16, x16, #((8*\row) & 0xfff000)
    ldar x16, [x16] /* what was written before the table entry is seen by its target */
    br x16
    .endm

    .macro ag_increment table, row, width
    adrp x16, \table
    add x16, x16, :lo12:\table
    add x16, x16, #((8*\row) & 0xfff)
    add x16, x16, #((8*\row) & 0xfff000)
1:  ldxr \width\()17, [x16]
    add \width\()17, \width\()17, #1
    stxr w15, \width\()17, [x16]
    cbnz w15, 1b
    .endm

    .macro ag_export symbol, row
    .globl \symbol
    .type \symbol, %function
    .globl ag_export_\symbol
    .hidden ag_export_\symbol
    .balign 16
\symbol:
ag_export_\symbol:
    ag_jump ag_entry, \row
    .size \symbol, .-\symbol
    .endm

    .macro ag_first row
ag_first_\row:
    mov w17, #\row
    b ag_first_common
    .endm

    .macro ag_drain row
ag_drain_\row:
    ag_increment ag_unseen_calls, 0, w
    adrp x16, ag_open_logs
    ldr w16, [x16, :lo12:ag_open_logs]
    mov w17, #\row
    cbnz w16, ag_drain_common
    ag_jump ag_real_slot, \row
    .endm

    .macro ag_count row
ag_count_\row:
    ag_increment ag_calls, \row, x
    ag_jump ag_counted, \row
    .endm

    .macro ag_pool number
ag_pool_\number:
    mov w17, #\number
    b ag_pool_common
    .endm

    .macro ag_quad prefix, row
    .quad \prefix\row
    .endm
    .macro ag_quad_symbol symbol
    .quad ag_export_\symbol
    .endm

    .macro ag_around function
    .cfi_startproc
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset x29, -224
    .cfi_offset x30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, w17
    bl \function
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    br x16
    .cfi_endproc
    .endm

    .text
ag_first_common:
    ag_around ag_runtime_first
ag_drain_common:
    ag_around ag_drain_thunk
ag_pool_common:
    ag_around ag_pool_thunk
#else
#error "no thunks for this processor"
#endif

    .set row, 0
#define AG_HOOK(symbol, class) ag_export symbol, %row; ag_first %row; ag_drain %row; ag_count %row; .set row, row + 1
#include "shim/hooks.def"
#undef AG_HOOK
    .set number, 0
    .rept AG_POOL
    ag_pool %number
    .set number, number + 1
    .endr

    .macro ag_table name, prefix
    .globl \name
    .hidden \name
    .balign 8
\name:
    .set row, 0
    .endm

    .section .data.rel.ro, "aw"
    ag_table ag_exports
#define AG_HOOK(symbol, class) ag_quad_symbol symbol
#include "shim/hooks.def"
#undef AG_HOOK
    ag_table ag_drain_stubs
#define AG_HOOK(symbol, class) ag_quad ag_drain_, %row; .set row, row + 1
#include "shim/hooks.def"
#undef AG_HOOK
    ag_table ag_count_stubs
#define AG_HOOK(symbol, class) ag_quad ag_count_, %row; .set row, row + 1
#include "shim/hooks.def"
#undef AG_HOOK
    ag_table ag_pool_stubs
    .set number, 0
    .rept AG_POOL
    ag_quad ag_pool_, %number
    .set number, number + 1
    .endr

    .data
    ag_table ag_entry
#define AG_HOOK(symbol, class) ag_quad ag_first_, %row; .set row, row + 1
#include "shim/hooks.def"
#undef AG_HOOK

    .section .note.GNU-stack, "", %progbits
