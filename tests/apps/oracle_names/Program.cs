using System.Globalization;
using System.Text;
using Microsoft.Diagnostics.Runtime;

namespace OracleNames;

// oracle_names PID < ADDRESSES
// oracle_names PID draw COUNT SEED
// oracle_names PID stacks [each]
// oracle_names PID il-maps
//
// The third form prints the managed threads' stacks as the library walks them, leaf first, one line of tab-separated text per frame:
//   tid  ip  sp  kind(managed|stub|runtime)  type  method
// where kind `runtime` is no code but a marker that the runtime keeps on the stack, and named in the column of the method. With `each` it does so
// for each line of its input, and ends the answer with an empty line. The process may run on in between. The second form prints addresses, so
// that the program under test does not choose what it is to name. They are random ones inside the code heaps of the JIT, of those that lie in
// the active version of a method. The library does not know the end of others, and it names what follows them too. The first form:
//
// The answers of ClrMD about code addresses (hex, one a line). ClrMD is Microsoft's own debugger library (the DAC that ships with the target's
// runtime). One line of tab-separated text per address, in the order of the input:
//   address  kind(jit|r2r|none)  type  method  module  token  start  size  exact(1|0)  signature
// Type and method are in the runtime's notation without assembly names: `Ns.Outer`1+Inner[System.Int32]`, `Gen[System.String]`. They are
// taken apart with the method's name as the metadata has it; exact = 0 where no metadata could be read, so that the split is a guess.
// start and size are those of the version of the method that is active, which need not be the one at the address.
// The fourth form prints the IL map of each precompiled method that the runtime has prepared, one line of tab-separated text per method:
//   path of the module  address in the image (hex)  bytes of the body  entries `IL:NATIVE`
// IL is the number that the runtime has there, below 0 where no instruction stands. NATIVE is the offset from where the method begins; of
// a generic method there are entries of other instances too, whose offsets lie outside the body.
// The methods are those of all types that the modules define or that objects on the heap have.
// The target is not stopped: a caller that wants answers of one moment stops it (SIGSTOP) before. Ends with 3 when no runtime is found.
static class Program
{
    static int Main(string[] args)
    {
        int count = 0, seed = 0;
        string? form = args switch
        {
            [_] => "names",
            [_, "draw", string amount, string start] when int.TryParse(amount, out count) && int.TryParse(start, out seed) => "draw",
            [_, "stacks"] or [_, "stacks", "each"] => "stacks",
            [_, "il-maps"] => "il-maps",
            _ => null,
        };
        if (form == null || !int.TryParse(args[0], out int pid))
        {
            Console.Error.WriteLine("usage: oracle_names PID < ADDRESSES\n       oracle_names PID draw COUNT SEED\n       oracle_names PID stacks [each]\n"
                                    + "       oracle_names PID il-maps");
            return 2;
        }
        using var output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false), 1 << 16);
        if (args is not [_, "stacks", "each"]) return Answer(pid, output, form, count, seed);
        while (Console.In.ReadLine() != null)
        {
            int status = Answer(pid, output, form, 0, 0);
            if (status != 0) return status;
            output.WriteLine();
            output.Flush();
        }
        return 0;
    }

    static int Answer(int pid, StreamWriter output, string form, int count, int seed)
    {
        using DataTarget target = DataTarget.AttachToProcess(pid, suspend: form == "stacks");  // registers are read by ptrace
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
        foreach (string line in Lines(target, runtime, form, count, seed)) output.WriteLine(line);
        return 0;
    }

    static IEnumerable<string> Lines(DataTarget target, ClrRuntime runtime, string form, int count, int seed) => form switch
    {
        "stacks" => Stacks(runtime, new MethodNames(target.DataReader)),
        "il-maps" => IlMaps.Lines(runtime),
        "draw" => Draw(runtime, count, new Random(seed)).Select(address => $"{address:x}"),
        _ => Rows(runtime, new MethodNames(target.DataReader), ReadAddresses(Console.In)),
    };

    static IEnumerable<string> Rows(ClrRuntime runtime, MethodNames names, ulong[] addresses)
    {
        foreach (ulong address in addresses) yield return Row(runtime, names, address);
        Console.Error.WriteLine($"{runtime.ClrInfo.Flavor} {runtime.ClrInfo.Version}, {addresses.Length} addresses");
    }

    static ulong[] ReadAddresses(TextReader input) =>
        input.ReadToEnd().Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries)
            .Select(text => ulong.Parse(text.StartsWith("0x") ? text[2..] : text, NumberStyles.HexNumber, CultureInfo.InvariantCulture)).ToArray();

    static IEnumerable<ulong> Draw(ClrRuntime runtime, int count, Random random)
    {
        (ulong Start, ulong End)[] heaps = runtime.EnumerateJitManagers().SelectMany(manager => manager.EnumerateNativeHeaps())
            .Where(heap => heap.Kind is NativeHeapKind.LoaderCodeHeap or NativeHeapKind.HostCodeHeap && heap.MemoryRange.Length > 0)
            .Select(heap => (heap.MemoryRange.Start, heap.MemoryRange.End)).ToArray();
        ulong total = heaps.Aggregate(0ul, (sum, heap) => sum + (heap.End - heap.Start));
        Console.Error.WriteLine($"{heaps.Length} heaps, {total >> 10} KiB");
        long attempts = 0;
        for (int found = 0; found < count && attempts < 100L * count; attempts++)
        {
            ulong at = (ulong)random.NextInt64((long)total);
            foreach ((ulong start, ulong end) in heaps)
            {
                if (at >= end - start)
                {
                    at -= end - start;
                    continue;
                }
                if (runtime.GetMethodByInstructionPointer(start + at) is { } method && start + at - method.NativeCode < method.HotColdInfo.HotSize)
                {
                    found++;
                    yield return start + at;
                }
                break;
            }
        }
        Console.Error.WriteLine($"{attempts} attempts");
    }

    static IEnumerable<string> Stacks(ClrRuntime runtime, MethodNames names)
    {
        foreach (ClrThread thread in runtime.Threads.Where(t => t.IsAlive))
        {
            foreach (ClrStackFrame frame in thread.EnumerateStackTrace(includeContext: false, maxFrames: 4096))
            {
                MethodName? name = frame.Method == null ? null : names.Of(frame.Method);
                string kind = frame.Kind == ClrStackFrameKind.Runtime ? "runtime"
                    : name == null || name.Method.StartsWith("IL_STUB", StringComparison.Ordinal) ? "stub" : "managed";
                yield return string.Join('\t', thread.OSThreadId, $"{frame.InstructionPointer:x}", $"{frame.StackPointer:x}", kind, name?.Type ?? "",
                                         name?.Method ?? frame.FrameName ?? "");
            }
        }
    }

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
