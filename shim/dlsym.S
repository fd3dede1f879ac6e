/* shim/dlsym.S - the exported dlsym.
 * Called by  programs and libraries       Calls  the real dlsym; shim/resolve.c for names that are cu[A-Z]*
 * Threads    any
 * Promise    every other name, and every RTLD_NEXT look-up, is tail-jumped: the real dlsym sees the caller's own
 *            return address. No libc function is called here (sanitizers look names up before libc is ready). */
#if defined(__x86_64__)
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    cmpq $-1, %rdi /* RTLD_NEXT */
    je 1f
    testq %rsi, %rsi
    je 1f
    cmpb $'c', (%rsi) /* byte by byte: the name may end with its page */
    jne 1f
    cmpb $'u', 1(%rsi)
    jne 1f
    movzbl 2(%rsi), %eax
    subl $'A', %eax
    cmpl $25, %eax
    ja 1f
    movq (%rsp), %rdx /* the caller */
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call ag_resolve_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rdx, %rdx /* answered? */
    je 1f
    ret
1:  movq ag_real_dlsym(%rip), %r11
    testq %r11, %r11
    je 2f
    jmp *%r11
2:  pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call ag_resolve_find_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size dlsym, .-dlsym
#elif defined(__aarch64__)
    .text
    .globl dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    cmn x0, #1 /* RTLD_NEXT */
    b.eq 1f
    cbz x1, 1f
    ldrb w9, [x1]
    cmp w9, #'c'
    b.ne 1f
    ldrb w9, [x1, #1]
    cmp w9, #'u'
    b.ne 1f
    ldrb w9, [x1, #2]
    sub w9, w9, #'A'
    cmp w9, #25
    b.hi 1f
    mov x2, x30 /* the caller */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    stp x0, x1, [sp, #16]
    bl ag_resolve_dlsym
    mov x9, x0
    mov x10, x1
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    cbz x10, 1f /* answered? */
    mov x0, x9
    ret
1:  adrp x16, ag_real_dlsym
    ldr x16, [x16, :lo12:ag_real_dlsym]
    cbz x16, 2f
    br x16
2:  stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    stp x0, x1, [sp, #16]
    bl ag_resolve_find_dlsym
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    br x16
    .cfi_endproc
    .size dlsym, .-dlsym
#else
#error "no dlsym for this processor"
#endif
    .section .note.GNU-stack, "", %progbits
