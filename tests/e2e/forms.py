"""The same small program in each form that people deploy, published once and kept below build/forms."""
import os

import runtimes

PROJECT = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>$(Framework)</TargetFramework>
    <AssemblyName>sleeper</AssemblyName>
    <RollForward>LatestMajor</RollForward>
    <InvariantGlobalization>true</InvariantGlobalization>
  </PropertyGroup>
</Project>
"""
PROGRAM = """System.Console.WriteLine($"ready {System.Environment.ProcessId}");
System.Threading.Thread.Sleep(System.TimeSpan.FromSeconds(int.Parse(args[0])));
"""
PROPERTIES = {
    "self-contained": ("SelfContained=true",),
    "single-file": ("SelfContained=true", "PublishSingleFile=true"),
    "compressed": ("SelfContained=true", "PublishSingleFile=true", "EnableCompressionInSingleFile=true"),
    "composite": ("SelfContained=true", "PublishReadyToRun=true", "PublishReadyToRunComposite=true"),
    "bundle": ("SelfContained=false", "PublishSingleFile=true"),
    "native-aot": ("PublishAot=true",),
}


def published(form, version):
    """Path of the program. A shared runtime and NativeAOT take the newest of the version's major."""
    number = runtimes.number(version)
    folder = os.path.join(runtimes.BUILD, "forms", f"{form}-{number}")
    program = os.path.join(folder, "out", "sleeper")
    with runtimes._Lock(f"forms-{form}"):
        if os.path.exists(os.path.join(folder, ".complete")):
            return program
        os.makedirs(folder, exist_ok=True)
        for name, text in (("sleeper.csproj", PROJECT), ("Program.cs", PROGRAM)):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        command = [runtimes.dotnet(), "publish", os.path.join(folder, "sleeper.csproj"), "-c", "Release", "-r", "linux-x64", "--nologo",
                   "-o", os.path.join(folder, "out"), f"-p:Framework={runtimes.target_framework(version)}"]
        command += [f"-p:{one}" for one in PROPERTIES[form]]
        if form not in ("bundle", "native-aot"):
            command.append(f"-p:RuntimeFrameworkVersion={number}")
        runtimes._run(command, f"publishing as {form} for {number}")
        open(os.path.join(folder, ".complete"), "w").close()
    return program
