using System.Globalization;
using System.Text;
using Microsoft.Diagnostics.Runtime;

namespace OracleNames;

// oracle_names PID < ADDRESSES
//
// What ClrMD, that is Microsoft's own debugger library (the DAC that ships with the target's runtime), says about code addresses (hex, one a
// line). One line of tab-separated text per address, in the order of the input:
//   address  kind(jit|r2r|none)  type  method  module  token  start  size  exact(1|0)  signature
// Type and method are in the runtime's notation without assembly names: `Ns.Outer`1+Inner[System.Int32]`, `Gen[System.String]`. They are
// taken apart with the method's name as the metadata has it; exact = 0 where no metadata could be read, so that the split is a guess.
// start and size are those of the version of the method that is active, which need not be the one at the address.
// The target is not stopped: whoever wants answers of one moment stops it (SIGSTOP) before. Ends with 3 when no runtime is found.
static class Program
{
    static int Main(string[] args)
    {
        if (args.Length != 1 || !int.TryParse(args[0], out int pid))
        {
            Console.Error.WriteLine("usage: oracle_names PID < ADDRESSES");
            return 2;
        }
        ulong[] addresses = ReadAddresses(Console.In);
        using DataTarget target = DataTarget.AttachToProcess(pid, suspend: false);
        if (target.ClrVersions.Length == 0)
        {
            Console.Error.WriteLine("no runtime found in the process");
            return 3;
        }
        ClrInfo info = target.ClrVersions[0];
        string dac = Path.Combine(Path.GetDirectoryName(info.ModuleInfo.FileName) ?? "", "libmscordaccore.so");
        if (!File.Exists(dac))
        {
            Console.Error.WriteLine($"no libmscordaccore.so beside {info.ModuleInfo.FileName}");
            return 3;
        }
        using ClrRuntime runtime = info.CreateRuntime(dac, ignoreMismatch: true);
        using var output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false), 1 << 16);
        var names = new MethodNames(target.DataReader);
        foreach (ulong address in addresses) output.WriteLine(Row(runtime, names, address));
        Console.Error.WriteLine($"{info.Flavor} {info.Version}, {addresses.Length} addresses");
        return 0;
    }

    static ulong[] ReadAddresses(TextReader input) =>
        input.ReadToEnd().Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries)
            .Select(text => ulong.Parse(text.StartsWith("0x") ? text[2..] : text, NumberStyles.HexNumber, CultureInfo.InvariantCulture)).ToArray();

    static string Row(ClrRuntime runtime, MethodNames names, ulong address)
    {
        ClrMethod? method = runtime.GetMethodByInstructionPointer(address);
        if (method == null) return $"{address:x}\tnone\t\t\t\t0\t0\t0\t1\t";
        string kind = method.CompilationType == MethodCompilationType.Ngen ? "r2r" : "jit";
        MethodName name = names.Of(method);
        return string.Join('\t', $"{address:x}", kind, name.Type, name.Method, name.Module, $"{method.MetadataToken:x}",
                           $"{method.NativeCode:x}", $"{method.HotColdInfo.HotSize:x}", name.Exact ? "1" : "0", method.Signature ?? "");
    }
}
