/* The facts about a libcoreclr.so that are known before its memory is read: its exports and its version mark. */
extern const char clr_version[];
const char clr_version[] = "@(#)Version 8.0.3026.36801 @Commit: none";
void* g_dacTable[32] = {(void*)1};

int coreclr_initialize(void);
int coreclr_initialize(void) { return clr_version[0]; }

#ifdef __x86_64__
/* A write barrier as images hold it, with its values left out, and a function that holds such a number and is none. */
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl FakeWriteBarrier\n"
    ".type FakeWriteBarrier, @function\n"
    "FakeWriteBarrier:\n"
    ".cfi_startproc\n"
    "mov %rsi, (%rdi)\n"
    "movabs $0xf0f0f0f0f0f0f0f0, %rax\n"
    "shr $0x16, %rdi\n"
    "cmpb $0, (%rdi, %rax, 1)\n"
    "jne 1f\n"
    "ret\n"
    "1: movb $0xff, (%rdi, %rax, 1)\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size FakeWriteBarrier, . - FakeWriteBarrier\n"
    ".globl NoWriteBarrier\n"
    ".type NoWriteBarrier, @function\n"
    "NoWriteBarrier:\n"
    ".cfi_startproc\n"
    "mov %rsi, %rdi\n"
    "movabs $0xf0f0f0f0f0f0f0f0, %rax\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size NoWriteBarrier, . - NoWriteBarrier\n"
    /* The same for arm64, for an image that says that it is of that machine; and a function that stores, and calls. */
    ".p2align 4\n"
    "Arm64WriteBarrier:\n"
    ".cfi_startproc\n"
    ".long 0xc89ffdcf, 0x58001f0c, 0xeb0c01ff, 0xd65f03c0\n"
    ".cfi_endproc\n"
    "Arm64NoWriteBarrier:\n"
    ".cfi_startproc\n"
    ".long 0xc89ffdcf, 0x94000001, 0xd65f03c0, 0xd503201f\n"
    ".cfi_endproc\n");
#endif
