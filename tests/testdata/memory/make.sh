#!/usr/bin/env bash
# Makes the files of this folder again, on an x64 machine: tests/apps/workload runs under qemu-aarch64-static, stopped, and the program
# record_memory reads it. zoo.dll is compiled ahead, so that both kinds of code have methods whose metadata is small.
# Needs `dotnet`, NuGet and a built target record_memory.    usage: make.sh RECORD_MEMORY
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
recorder=$1
work=$(mktemp -d)
pid=
trap 'if [[ $pid ]]; then kill -9 "$pid" && rm -f "/tmp/perf-$pid.map"; fi; rm -rf "$work"' EXIT
cd "$here/../../e2e"
for version in 9.0.23 10.0.15 11.0.0; do
  read -r app root crossgen libraries < <(python3 - "$version" <<'PYTHON'
import sys

import runtimes
import vm_programs

version = sys.argv[1]
compiler = {"9": "9.0.19", "10": "10.0.14", "11": "11.0.0"}[version.split(".")[0]]
print(runtimes.with_app_host("workload", version, "linux-arm64"), runtimes.root(version, "linux-arm64"), runtimes.crossgen(compiler),
      vm_programs.arm64_libraries())
PYTHON
  )
  rm -rf "$work/app"
  cp -r "$app" "$work/app"
  if [[ -f $crossgen/crossgen2.dll ]]; then compile=(dotnet "$crossgen/crossgen2.dll"); else compile=("$crossgen/crossgen2"); fi
  "${compile[@]}" "$app/zoo.dll" -r "$root/shared/Microsoft.NETCore.App/$version/*.dll" --targetos linux --targetarch arm64 -O --perfmap --perfmap-format-version:1 -o "$work/app/zoo.dll" >/dev/null
  DOTNET_ROOT=$root DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_gcHeapHardLimit=0x8000000 DOTNET_PerfMapEnabled=1 \
    DOTNET_PerfMapShowOptimizationTiers=1 DOTNET_PerfMapStubGranularity=2 \
    qemu-aarch64-static -L "$libraries" "$work/app/workload" zoo --seconds 600 >"$work/log" 2>&1 &
  pid=$!
  until grep -q ^ready "$work/log"; do
    sleep 0.2
    kill -0 "$pid"
  done
  sleep 20
  kill -STOP "$pid"
  "$recorder" "$pid" "$work/app/zoo.ni.r2rmap" "$here/net$version-arm64.z"
  kill -9 "$pid"
  wait "$pid" || true
  rm -f "/tmp/perf-$pid.map" "/tmp/jit-$pid.dump"
  pid=
done
