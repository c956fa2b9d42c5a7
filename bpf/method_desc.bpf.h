/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The words of a MethodDesc about its method: src/coreclr/vm/method.hpp. */
#ifndef CLRSAMPLER_METHOD_DESC_BPF_H_
#define CLRSAMPLER_METHOD_DESC_BPF_H_

#include "shared_maps.bpf.h"

/* mdfClassification, mcDynamic */
#define CLASS_MASK 7
#define CLASS_DYNAMIC 7

/* A method that is not known, or cannot be read, is none. */
static __always_inline bool is_dynamic(__u64 method_desc, const struct wire_transient_code *code)
{
	__u16 flags = 0;

	return method_desc && !bpf_probe_read_user(&flags, sizeof(flags), (void *)(method_desc + code->method_flags)) &&
	       (flags & CLASS_MASK) == CLASS_DYNAMIC;
}

#endif
