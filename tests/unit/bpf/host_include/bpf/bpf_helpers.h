/* Found in place of libbpf's: code_witness_host.c defines what is used of it. */
