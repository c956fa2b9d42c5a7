"""Values against types that others publish: TypeScript's compiler says what is missing, of another type, or unknown to them."""
import json
import os
import subprocess

import runtimes

# The newest that run with Debian's node, or whose types are all that is taken.
PACKAGES = ("typescript@5.9.3", "kubernetes-models@5.1.0", "@kubernetes-models/prometheus-operator@6.0.0", "@grafana/schema@13.2.3")
OPTIONS = ("--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext")

# JSON has words where these types have enums.
PLAIN = """type Plain<T> = T extends string ? `${T}` : T extends readonly (infer U)[] ? Plain<U>[] :
  T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
"""


def complaints(values):
    """The faults of {name: (module, type, value as json.load gives it)}, as text; empty: nothing."""
    folder = runtimes.npm_packages("types", *PACKAGES)
    # The file is our process's alone: tests run beside each other.
    source = os.path.join(folder, f"check_{os.getpid()}.mts")
    lines = [PLAIN]
    for i, (name, (module, kind, value)) in enumerate(values.items()):
        lines.append(f"// {name}\nimport type {{ {kind} as T{i} }} from {json.dumps(module)};\nexport const v{i}: Plain<T{i}> = {json.dumps(value, indent=1)};")
    with open(source, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    try:
        compiler = os.path.join(folder, "node_modules", "typescript", "bin", "tsc")
        done = subprocess.run(["node", compiler, *OPTIONS, source], capture_output=True, text=True, timeout=300, cwd=folder)
    finally:
        os.unlink(source)
    return done.stdout + done.stderr
