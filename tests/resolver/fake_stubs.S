/* tests/resolver/fake_stubs.S - one exported function a row: puts the row number into a register,
 * then all of them store the argument registers and five stack words (struct fake_registers) and
 * call fake_dispatch.
 * Called by  case programs       Calls  fake_dispatch()       Threads  any */
#if !defined(__x86_64__)
#error "the fake driver is written for x86-64"
#endif
#ifndef FAKE_ALIASED
#define FAKE_ALIASED none
#endif
    .text
/* The aliased variant lets cuStreamQuery and cuCtxGetDevice share an address: allowed to a driver,
 * and then the hook of the name that was asked for has to come back. */
    .macro fake_stub symbol
    .ifc \symbol, FAKE_ALIASED
    .globl \symbol
    .type \symbol, @function
    .set \symbol, cuCtxGetDevice
    .set fake_row, fake_row + 1
    .exitm
    .endif
    .globl \symbol
    .type \symbol, @function
\symbol:
    endbr64
    movl $fake_row, %r11d
    jmp fake_enter
    .size \symbol, .-\symbol
    .set fake_row, fake_row + 1
    .endm

    .set fake_row, 0
#define FAKE_ROW(symbol) fake_stub symbol
#include "known_rows.def"
#include "future_rows.def"

/* A driver of before: it does not have these. Hidden wins over the export list. */
#ifdef FAKE_LACKS_ROWS
#define FAKE_LACKS(symbol) .hidden symbol
#include FAKE_LACKS_ROWS
#endif

    .type fake_enter, @function
fake_enter:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $160, %rsp
    movaps %xmm0, (%rsp) /* faults, as a real driver would, if a thunk misaligned the stack */
    movq %rdi, (%rsp)
    movq %rsi, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rcx, 24(%rsp)
    movq %r8, 32(%rsp)
    movq %r9, 40(%rsp)
    movq 16(%rbp), %rcx
    movq %rcx, 48(%rsp)
    movq 24(%rbp), %rcx
    movq %rcx, 56(%rsp)
    movq 32(%rbp), %rcx
    movq %rcx, 64(%rsp)
    movq 40(%rbp), %rcx
    movq %rcx, 72(%rsp)
    movq 48(%rbp), %rcx
    movq %rcx, 80(%rsp)
    movsd %xmm0, 88(%rsp)
    movsd %xmm1, 96(%rsp)
    movsd %xmm2, 104(%rsp)
    movsd %xmm3, 112(%rsp)
    movsd %xmm4, 120(%rsp)
    movsd %xmm5, 128(%rsp)
    movsd %xmm6, 136(%rsp)
    movsd %xmm7, 144(%rsp)
    movq %rax, 152(%rsp)
    movl %r11d, %edi
    movq %rsp, %rsi
    call fake_dispatch
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size fake_enter, .-fake_enter

    .section .note.GNU-stack, "", %progbits
