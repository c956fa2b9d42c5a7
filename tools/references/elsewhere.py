"""Names of other projects that our texts mention: what is not in this repository and still right."""

# Sources and documents whose paths look as if they were ours, or that stand without a path. `*` matches anything.
FILES = [
    # Linux
    "include/linux/*", "include/uapi/*", "tools/lib/perf/*", "tools/perf/*",
    # .NET, its documents and its compilers
    "docs/design/*", "docs/specs/*", "CallChainProfile.cs", "FileLayoutOptimizer.cs", "GeneratedNameKind.cs", "SSQP_Key_Conventions.md",
    "data_descriptor.md", "gcinterface.ee.h", "ipc-protocol.md", "readytorun-format.md", "typedesc.h",
    # glibc, bcc, pprof
    "elf.h", "bcc_syms.h", "proto/README.md",
    # made by the build
    "*.skel.h",
    # users' programs in examples
    "hello.cs", "main.c", "*/shop.csproj",
]

# Options that stand without their program.
OPTIONS = {
    # docker
    "--cap-add", "--cap-drop", "--cgroupns", "--hostname", "--name", "--privileged", "--security-opt", "--tmpfs",
    # linkers, objcopy
    "--build-id", "--dump-section", "--no-warn-symbol-ordering", "--section-ordering-file", "--symbol-ordering-file",
    # .NET's compilers, crossgen2 and ilc
    "--callchain-profile", "--composite", "--hot-cold-splitting", "--inputbubble", "--method-layout", "--orderfile", "--perfmap",
    "--perfmap-format-version",
    # perf, sudo, node_exporter
    "--call-graph", "--preserve-env", "--collector",
}
