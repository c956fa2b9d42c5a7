using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using Microsoft.Diagnostics.Runtime;

namespace OracleNames;

sealed record MethodName(string Type, string Method, string Module, bool Exact);

// Splits what ClrMD prints, `Ns.Type`1[[A, assembly],[B, assembly]].Method[[C, assembly]](parameters)`. The name of an explicit
// implementation holds dots, commas, brackets and angles of its own, so it is looked up in the target's metadata and then found in the text.
sealed class MethodNames(IDataReader memory)
{
    readonly Dictionary<ulong, MetadataReader?> _readers = [];
    readonly Dictionary<ulong, MethodName> _names = [];

    public MethodName Of(ClrMethod method)
    {
        if (_names.TryGetValue(method.MethodDesc, out MethodName? known)) return known;
        MethodName name = Take(method);
        // Freed dynamic methods give their MethodDesc to others; nothing is freed while the target is stopped.
        _names[method.MethodDesc] = name;
        return name;
    }

    MethodName Take(ClrMethod method)
    {
        string signature = method.Signature ?? "";
        ClrModule? module = method.Type?.Module;
        string moduleName = Path.GetFileName(module?.Name ?? module?.AssemblyName ?? "");
        if (module != null && (method.MetadataToken & 0xffffff) != 0 && Reader(module) is { } reader)
        {
            MethodDefinition row = reader.GetMethodDefinition(MetadataTokens.MethodDefinitionHandle(method.MetadataToken & 0xffffff));
            string type = TypeName(reader, row.GetDeclaringType());
            if (ClrText.Split(signature, type, reader.GetString(row.Name)) is { } exact) return new(exact.Type, exact.Method, moduleName, true);
        }
        (string guessedType, string guessedMethod) = ClrText.Guess(signature);
        return new(guessedType, guessedMethod, moduleName, false);
    }

    unsafe MetadataReader? Reader(ClrModule module)
    {
        if (_readers.TryGetValue(module.Address, out MetadataReader? reader)) return reader;
        if (module.MetadataAddress != 0 && module.MetadataLength is > 0 and < 1 << 28)
        {
            var bytes = GC.AllocateUninitializedArray<byte>((int)module.MetadataLength, pinned: true);
            if (memory.Read(module.MetadataAddress, bytes) == bytes.Length)
            {
                try
                {
                    fixed (byte* start = bytes) reader = new MetadataReader(start, bytes.Length);
                    GC.KeepAlive(bytes);
                    _pinned.Add(bytes);
                }
                catch (BadImageFormatException)
                {
                }
            }
        }
        return _readers[module.Address] = reader;
    }

    readonly List<byte[]> _pinned = [];  // the readers point into these

    static string TypeName(MetadataReader reader, TypeDefinitionHandle handle)
    {
        TypeDefinition type = reader.GetTypeDefinition(handle);
        string name = reader.GetString(type.Name);
        if (type.IsNested) return TypeName(reader, type.GetDeclaringType()) + "+" + name;
        return type.Namespace.IsNil ? name : reader.GetString(type.Namespace) + "." + name;
    }
}
