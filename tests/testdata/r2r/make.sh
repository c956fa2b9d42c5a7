#!/bin/sh
# Makes the images of this folder again. Needs the .NET 10 SDK and, in the local package folder, the packs
# microsoft.netcore.app.{runtime,crossgen2}.linux-x64 of the three versions below.
# Options are lists of words here, and no path has blanks.
# shellcheck disable=SC2086,SC2012
set -eu
here=$(cd "$(dirname "$0")" && pwd)
packs=${NUGET_PACKAGES:-$HOME/.nuget/packages}
work=${1:-$(mktemp -d)}
sdk=$(dirname "$(readlink -f "$(command -v dotnet)")")/sdk
csc="dotnet $(ls -d "$sdk"/10.*/Roslyn/bincore | tail -1)/csc.dll"
compile() {  # OUT OPTIONS...
  out=$1; shift
  $csc -nologo -deterministic+ -optimize+ -unsafe+ -langversion:latest -debug- -nostdlib+ -nowarn:CS0067,CS8981 -out:"$out" "$@"
}
set -f  # crossgen2 expands the patterns of its -r options itself
for version in 8.0.30 9.0.19 10.0.14; do
  framework=$packs/microsoft.netcore.app.runtime.linux-x64/$version/runtimes/linux-x64/lib/net${version%%.*}.0
  crossgen=$packs/microsoft.netcore.app.crossgen2.linux-x64/$version/tools
  if [ -f "$crossgen/crossgen2.dll" ]; then crossgen="dotnet $crossgen/crossgen2.dll"; else crossgen=$crossgen/crossgen2; fi
  chmod +x "$(echo "$crossgen" | sed 's/^dotnet //')" 2>/dev/null || true
  il=$work/il-$version
  mkdir -p "$il"
  references=$(for dll in "$framework"/System.Runtime.dll "$framework"/System.Collections.dll "$framework"/System.Linq.dll \
    "$framework"/System.Console.dll "$framework"/System.Private.CoreLib.dll; do echo "-r:$dll"; done)
  compile "$il/library.dll" -target:library $references "$here/library.cs"
  compile "$il/shapes.dll" -target:library $references "-r:$il/library.dll" "$here/shapes.cs"
  common="-r:$framework/*.dll -r:$il/*.dll --targetos linux -O --perfmap --perfmap-format-version:1"
  for arch in x64 arm64; do
    out=$here/$version-$arch
    mkdir -p "$out"
    $crossgen "$il/shapes.dll" $common --targetarch $arch -o "$out/shapes.dll" >/dev/null
  done
  [ "$version" = 10.0.14 ] || continue
  mkdir -p "$here/$version-x64-hot-cold"
  $crossgen "$il/shapes.dll" $common --targetarch x64 --hot-cold-splitting -o "$here/$version-x64-hot-cold/shapes.dll" >/dev/null
  rm -rf "$here/$version-x64-composite"; mkdir -p "$here/$version-x64-composite"
  $crossgen "$il/shapes.dll" "$il/library.dll" $common --targetarch x64 --composite --inputbubble \
    -o "$here/$version-x64-composite/both.r2r.dll" >/dev/null
done
