"""Publishes a test program in every form in which people deploy .NET programs.

    argv = deployments.publish("single-file-compressed", "9.0.19")
    argv = deployments.publish("native-aot", "10.0.14", project=".../tests/apps/shop/shop.csproj")

gives the words that start the program; its own arguments are added behind them. No environment variable is needed. Each form is
published once per runtime version and content of the sources, under build/deployments, and kept. A form that the machine cannot build (a
package that the feed lacks, no clang) raises runtimes.Missing with the reason.
"""
import argparse
import dataclasses
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time

import runtimes
from runtimes import Missing

WORKLOAD = os.path.join(runtimes.SOURCE, "tests", "apps", "workload", "workload.csproj")
TARGETS = os.path.join(runtimes.SOURCE, "tests", "e2e", "deployments.targets")
ROOT = os.path.join(runtimes.BUILD, "deployments")
VERSIONS = (*runtimes.PACKED_VERSIONS, runtimes.INSTALLED)
HOST = "linux-x64"

_SELF = {"SelfContained": "true", "UseAppHost": "true"}
_SINGLE = {**_SELF, "PublishSingleFile": "true"}
_R2R = {"PublishReadyToRun": "true"}
_COMPOSITE = {**_R2R, "PublishReadyToRunComposite": "true"}


@dataclasses.dataclass(frozen=True)
class Form:
    about: str
    properties: dict
    rid: bool = True


FORMS = {
    "framework-dependent": Form("dotnet APP.dll; the framework is R2R, the app IL", {"UseAppHost": "false"}, rid=False),
    "self-contained": Form("a host and the framework's files beside it", _SELF),
    "r2r": Form("self-contained, and the app itself is precompiled", {**_SELF, **_R2R}),
    "single-file": Form("one file: the images lie at offsets of the host", _SINGLE),
    "single-file-framework-dependent": Form("one file with the app only", {"SelfContained": "false", "UseAppHost": "true",
                                                                          "PublishSingleFile": "true"}),
    "single-file-compressed": Form("one file, compressed: the images are in anonymous memory only",
                                   {**_SINGLE, "EnableCompressionInSingleFile": "true"}),
    "single-file-r2r": Form("one file that holds a composite image: what SDKs make of R2R and single file", {**_SINGLE, **_COMPOSITE}),
    "single-file-r2r-compressed": Form("the same, compressed",
                                       {**_SINGLE, **_COMPOSITE, "EnableCompressionInSingleFile": "true"}),
    "composite": Form("self-contained with one .r2r.dll for app and framework", {**_SELF, **_COMPOSITE}),
    # The linker rewrites the framework's images without their precompiled code.
    "trimmed": Form("self-contained, unused code removed; everything is compiled at run time", {**_SELF, "PublishTrimmed": "true"}),
    "trimmed-r2r": Form("trimmed, then precompiled", {**_SELF, **_R2R, "PublishTrimmed": "true"}),
    "native-aot": Form("an ELF program without IL; NAME.dbg beside it holds the symbols", {"PublishAot": "true", "DebugType": "portable"}),
    "native-aot-stripped": Form("the same without symbols anywhere", {"PublishAot": "true", "DebugType": "none"}),
}

# Forms and versions that the machines that run these tests cannot build, with the reason.
_LINKER = "its linker needs the runtime that it links, and the SDK has an older one"
_NO_PACKAGE = "the feed has no Microsoft.NETCore.App.Runtime.NativeAOT package"
KNOWN_MISSING = {("native-aot", "10.0.14"): _NO_PACKAGE, ("native-aot-stripped", "10.0.14"): _NO_PACKAGE,
                 ("native-aot", "11.0.0"): _NO_PACKAGE, ("native-aot-stripped", "11.0.0"): _NO_PACKAGE,
                 ("trimmed", "10.0.14"): _LINKER, ("trimmed-r2r", "10.0.14"): _LINKER}

# Properties of every form. Analysis of trimmed code would stop a program that uses reflection on purpose.
_COMMON = {
    "Configuration": "Release", "TreatWarningsAsErrors": "false", "SuppressTrimAnalysisWarnings": "true", "NuGetAudit": "false",
    "JsonSerializerIsReflectionEnabledByDefault": "true", "UseSharedCompilation": "false", "CheckEolTargetFramework": "false",
}


def _folders(project, seen=None):
    """The folders of a project and of those it refers to."""
    seen = seen if seen is not None else []
    folder = os.path.dirname(os.path.abspath(project))
    if folder not in seen:
        seen.append(folder)
        with open(project) as f:
            for other in re.findall(r'<ProjectReference[^>]*Include="([^"]+)"', f.read()):
                _folders(os.path.join(folder, other.replace("\\", "/")), seen)
    return seen


def _key(project, properties):
    """Changes when the sources or the way they are published do."""
    digest = hashlib.sha256(repr(sorted(properties.items())).encode())
    for folder in _folders(project):
        for path in sorted(glob.glob(os.path.join(folder, "**", "*.cs*"), recursive=True)):
            with open(path, "rb") as f:
                digest.update(os.path.relpath(path, folder).encode() + b"\0" + f.read() + b"\0")
    return digest.hexdigest()[:12]


def properties(form, version, system=HOST):
    """The MSBuild properties of a form, without the runtime identifier."""
    number = runtimes.number(version)
    result = {**_COMMON, **FORMS[form].properties, "DeploymentFramework": runtimes.target_framework(version)}
    if FORMS[form].rid:
        # Exactly this version of runtime, host, crossgen2 and ILCompiler packs, not the newest that the SDK knows.
        result.update(RuntimeFrameworkVersion=number, PublishReadyToRunEmitSymbols="false")
    if system != HOST:
        # Restore would ask for packs of all frameworks, and not each version of each is served for other machines.
        result.update(DisableTransitiveFrameworkReferenceDownloads="true")
        if "PublishAot" in result:
            result.update(LinkerFlavor="lld", ObjCopyName="aarch64-linux-gnu-objcopy")
    return result


def publish_folder(form, version, project=WORKLOAD, system=HOST):
    """The folder with what `dotnet publish` wrote for a machine, which may be another one than this."""
    wanted = properties(form, version, system)
    name = os.path.splitext(os.path.basename(project))[0]
    number = runtimes.number(version)
    folder = os.path.join(ROOT, name, number if system == HOST else f"{number}-{system}", form, _key(project, wanted))
    complete = os.path.join(folder, ".complete")
    if os.path.exists(complete):
        return folder
    if "PublishAot" in wanted and not (shutil.which("clang") or shutil.which("gcc")):
        raise Missing("NativeAOT needs clang or gcc to link")
    os.makedirs(folder, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(complete):
            return folder
        shutil.rmtree(folder)
        # Objects of one form must not be taken for another's, and are of no use later: composite ones take a gigabyte.
        with tempfile.TemporaryDirectory(prefix="publish-", dir=ROOT) as artifacts:
            command = ["nice", runtimes.dotnet(), "publish", project, "--nologo", "--artifacts-path", artifacts, "-o", folder, "-m:1",
                       "-nodeReuse:false", f"-p:BeforeMicrosoftNETSdkTargets={TARGETS}", *(f"-p:{key}={value}" for key, value in sorted(wanted.items()))]
            if FORMS[form].rid:
                command += ["-r", system]
            done = subprocess.run(command, capture_output=True, text=True, timeout=1500, env=dict(os.environ, **runtimes.QUIET))
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            errors = sorted(set(re.findall(r"error [^\[\n]*", done.stdout + done.stderr)))
            raise Missing(f"publish of {name} as {form} for {version} failed: "
                          f"{'; '.join(errors)[:800] or (done.stdout + done.stderr)[-800:]}")
        open(complete, "w").close()
    return folder


def publish(form, version, project=WORKLOAD):
    """The words that start `project`, published as `form` (a key of FORMS), on exactly this runtime version."""
    folder = publish_folder(form, version, project)
    name = os.path.splitext(os.path.basename(project))[0]
    if form == "framework-dependent":
        muxer = runtimes.dotnet() if version == runtimes.INSTALLED else os.path.join(runtimes.root(version), "dotnet")
        return [muxer, os.path.join(folder, name + ".dll")]
    program = os.path.join(folder, name)
    if not os.path.exists(program):
        raise Missing(f"publish of {name} as {form} for {version} wrote no program")
    if form == "single-file-framework-dependent":
        root = os.path.dirname(runtimes.dotnet()) if version == runtimes.INSTALLED else runtimes.root(version)
        return ["env", f"DOTNET_ROOT={root}", program]
    return [program]


def debug_file(version, project=WORKLOAD):
    """The separate file with the symbols of the NativeAOT program."""
    (program,) = publish("native-aot", version, project)
    return program + ".dbg"


def main():
    parser = argparse.ArgumentParser(description="Publishes a program in deployment forms.")
    parser.add_argument("--form", action="append", choices=FORMS)
    parser.add_argument("--version", action="append", choices=VERSIONS)
    parser.add_argument("--project", default=WORKLOAD)
    options = parser.parse_args()
    for version in options.version or VERSIONS:
        for form in options.form or FORMS:
            began = time.monotonic()
            try:
                text = " ".join(publish(form, version, options.project))
            except Missing as reason:
                text = f"MISSING: {reason}"
            print(f"{version} {form} {time.monotonic() - began:.0f} s: {text}", flush=True)


if __name__ == "__main__":
    main()
