// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Hooks where a .NET runtime stops its threads, lets them go on, and collects garbage: uprobes on functions that user
 * space located in the runtime's image (clr/hooks). Each hit sends one short record, put together on the stack; what it
 * means is user space's business.
 */
#include "runtime_hook.bpf.h"

SEC("?uprobe")
int hook_suspend(struct user_registers *regs)
{
	return report(WIRE_HOOK_SUSPEND, (__u32)ARGUMENT_1(regs), 0, 0, 0);
}

SEC("?uretprobe")
int hook_suspended(struct user_registers *regs)
{
	return report(WIRE_HOOK_SUSPENDED, 0, 0, 0, 0);
}

SEC("?uprobe")
int hook_restart(struct user_registers *regs)
{
	return report(WIRE_HOOK_RESTART, (__u32)ARGUMENT_1(regs), (__u32)ARGUMENT_2(regs), 0, 0);
}

SEC("?uretprobe")
int hook_restarted(struct user_registers *regs)
{
	return report(WIRE_HOOK_RESTARTED, 0, 0, 0, 0);
}

SEC("?uprobe")
int hook_gc_start(struct user_registers *regs)
{
	return report(WIRE_HOOK_GC_START, (__u32)ARGUMENT_1(regs), (__u8)ARGUMENT_2(regs), 0, 0);
}

SEC("?uprobe")
int hook_gc_end(struct user_registers *regs)
{
	return report(WIRE_HOOK_GC_END, ARGUMENT_1(regs), (__u32)ARGUMENT_2(regs), (__u32)ARGUMENT_3(regs),
		      (__u8)ARGUMENT_4(regs));
}

/* The same as members of a class, `this` first: what .NET 8 gives to a GC in a library of its own. */
SEC("?uprobe")
int hook_gc_start_member(struct user_registers *regs)
{
	return report(WIRE_HOOK_GC_START, (__u32)ARGUMENT_2(regs), (__u8)ARGUMENT_3(regs), 0, 0);
}

SEC("?uprobe")
int hook_gc_end_member(struct user_registers *regs)
{
	return report(WIRE_HOOK_GC_END, ARGUMENT_2(regs), (__u32)ARGUMENT_3(regs), (__u32)ARGUMENT_4(regs),
		      (__u8)ARGUMENT_5(regs));
}
