#!/bin/sh
# Makes the files of this folder again. Needs the .NET 10 SDK; tests/apps/oracle_pdb says what the expected files hold.
# Options are lists of words here, and no path has blanks.
# shellcheck disable=SC2086,SC2012
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dotnet=$(dirname "$(readlink -f "$(command -v dotnet)")")
csc="dotnet $(ls -d "$dotnet"/sdk/10.*/Roslyn/bincore | tail -1)/csc.dll"
framework=$(ls -d "$dotnet"/shared/Microsoft.NETCore.App/10.* | tail -1)
references=$(for name in System.Private.CoreLib System.Runtime System.Console System.Collections; do echo "-r:$framework/$name.dll"; done)
compile() {  # NAME SOURCE OPTIONS...
  name=$1; source=$2; shift 2
  (cd "$here" && $csc -nologo -noconfig -nostdlib+ -target:library -deterministic+ -langversion:latest -platform:x64 -nowarn:CS0626,CS8012 $references \
    "-pathmap:$here=/_,$work=/_/obj" "-out:$work/$name.dll" "-pdb:$work/$name.pdb" "$@" "$source")
}
compile zoo_debug zoo.cs -debug:portable -optimize-
compile zoo_release zoo.cs -debug:portable -optimize+ -checksumalgorithm:SHA1
compile linked lines.cs -debug:portable -optimize+ -sourcelink:source_link.json
compile embedded lines.cs -debug:embedded -optimize+
dotnet build "$here/../../apps/oracle_pdb/oracle_pdb.csproj" -c Release --nologo -v:quiet --artifacts-path "$work/oracle"
for file in zoo_debug.pdb zoo_release.pdb linked.dll linked.pdb embedded.dll; do
  cp "$work/$file" "$here/$file"
  dotnet "$work/oracle/bin/oracle_pdb/release/oracle_pdb.dll" "$here/$file" >"$here/$file.expected"
done
