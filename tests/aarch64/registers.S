/* tests/aarch64/registers.S - see registers.h. With STANDIN: the functions of the stand-in driver that record how
 * they were called and answer a number of their own; else call_with(). */
    .text
#ifdef STANDIN
    .macro record symbol, answer
    .globl \symbol
    .type \symbol, %function
\symbol:
    adrp x9, standin_seen
    add x9, x9, :lo12:standin_seen
    stp x0, x1, [x9]
    stp x2, x3, [x9, #16]
    stp x4, x5, [x9, #32]
    stp x6, x7, [x9, #48]
    str x8, [x9, #64]
    ldp x10, x11, [sp]
    stp x10, x11, [x9, #72]
    ldr x10, [sp, #16]
    str x10, [x9, #88]
    stp d0, d1, [x9, #96]
    stp d2, d3, [x9, #112]
    stp d4, d5, [x9, #128]
    stp d6, d7, [x9, #144]
    adrp x9, standin_calls
    add x9, x9, :lo12:standin_calls
    ldr x10, [x9]
    add x10, x10, #1
    str x10, [x9]
    mov x0, #\answer
    ret
    .size \symbol, .-\symbol
    .endm

    record cuLaunchKernel, 0   /* ENQUEUE: a hook in C */
    record cuCtxRecordEvent, 1 /* DRAIN_ALL: a thunk */
    record cuCtxGetFlags, 2    /* PURE: a bare jump */
    record cuFutureOp, 3       /* a name that the table lacks */
    record cuFutureOp2, 4
#else
    .globl call_with
    .type call_with, %function
call_with:
    stp x29, x30, [sp, #-16]!
    mov x29, sp
    sub sp, sp, #32
    mov x16, x0
    mov x17, x1
    ldp x9, x10, [x17, #72]
    stp x9, x10, [sp]
    ldr x9, [x17, #88]
    str x9, [sp, #16]
    ldp d0, d1, [x17, #96]
    ldp d2, d3, [x17, #112]
    ldp d4, d5, [x17, #128]
    ldp d6, d7, [x17, #144]
    ldp x0, x1, [x17]
    ldp x2, x3, [x17, #16]
    ldp x4, x5, [x17, #32]
    ldp x6, x7, [x17, #48]
    ldr x8, [x17, #64]
    blr x16
    mov sp, x29
    ldp x29, x30, [sp], #16
    ret
    .size call_with, .-call_with
#endif
    .section .note.GNU-stack, "", %progbits
