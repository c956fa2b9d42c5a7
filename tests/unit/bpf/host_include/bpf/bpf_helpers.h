/* Found in place of libbpf's: code_snapshot_host.c defines what is used of it. */
