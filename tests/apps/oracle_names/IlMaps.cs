using Microsoft.Diagnostics.Runtime;

namespace OracleNames;

// The IL maps of precompiled methods, as the debugger library has them.
static class IlMaps
{
    public static IEnumerable<string> Lines(ClrRuntime runtime)
    {
        var seen = new HashSet<ulong>();
        foreach (ClrMethod method in Types(runtime).SelectMany(type => type.Methods))
        {
            if (method.CompilationType != MethodCompilationType.Ngen || method.NativeCode == 0 || !seen.Add(method.NativeCode)) continue;
            // Where the code of a type of one module lies in the image of another one, no address in an image can be told.
            if (Image(runtime, method.NativeCode) is not { } image) continue;
            // A range without code stands for nothing.
            IEnumerable<string> entries = method.ILOffsetMap.Where(range => range.StartAddress != range.EndAddress)
                .Select(range => $"{range.ILOffset}:{(long)(range.StartAddress - method.NativeCode)}");
            yield return string.Join('\t', image.Name, $"{method.NativeCode - image.ImageBase:x}", method.HotColdInfo.HotSize, string.Join(' ', entries));
        }
    }

    static IEnumerable<ClrType> Types(ClrRuntime runtime)
    {
        foreach (ClrModule module in runtime.EnumerateModules())
        {
            foreach ((ulong table, int _) in module.EnumerateTypeDefToMethodTableMap())
            {
                if (runtime.GetTypeByMethodTable(table) is { } type) yield return type;
            }
        }
        // Instances of generic types.
        foreach (ClrType type in runtime.Heap.EnumerateObjects().Select(one => one.Type).OfType<ClrType>().Distinct()) yield return type;
    }

    static ClrModule? Image(ClrRuntime runtime, ulong code) =>
        runtime.EnumerateModules().FirstOrDefault(module => module.ImageBase != 0 && code > module.ImageBase && code - module.ImageBase < module.Size);
}
