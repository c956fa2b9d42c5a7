using System.Globalization;
using System.Text;
using Microsoft.Diagnostics.Runtime;

namespace OracleNames;

// oracle_names PID < ADDRESSES
// oracle_names PID draw COUNT SEED
// oracle_names PID stacks [each]
//
// The third form prints the managed threads' stacks as the library walks them, leaf first, one line of tab-separated text per frame:
//   tid  ip  sp  kind(managed|stub|runtime)  type  method
// where kind `runtime` is no code but a marker that the runtime keeps on the stack, and named in the column of the method. With `each` it does so
// for each line of its input, and ends the answer with an empty line: the process may run on in between. The second form prints addresses: random ones inside the code heaps of the JIT, of those that lie in the active version of a method (of
// others the library does not know the end, and it names what follows them too). So the program under test does not choose what it is to
// name. The first form:
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
        int count = 0, seed = 0;
        bool draw = args.Length == 4 && args[1] == "draw" && int.TryParse(args[2], out count) && int.TryParse(args[3], out seed);
        bool stacks = args is [_, "stacks"] or [_, "stacks", "each"];
        if ((args.Length != 1 && !draw && !stacks) || !int.TryParse(args[0], out int pid))
        {
            Console.Error.WriteLine("usage: oracle_names PID < ADDRESSES\n       oracle_names PID draw COUNT SEED\n       oracle_names PID stacks [each]");
            return 2;
        }
        if (args is [_, "stacks", "each"])
        {
            using var lines = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false), 1 << 16);
            while (Console.In.ReadLine() != null)
            {
                int status = Answer(pid, lines, stacks, false, 0, 0);
                if (status != 0) return status;
                lines.WriteLine();
                lines.Flush();
            }
            return 0;
        }
        using var output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false), 1 << 16);
        return Answer(pid, output, stacks, draw, count, seed);
    }

    static int Answer(int pid, StreamWriter output, bool stacks, bool draw, int count, int seed)
    {
        using DataTarget target = DataTarget.AttachToProcess(pid, suspend: stacks);  // registers are read by ptrace
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
        if (stacks)
        {
            foreach (string line in Stacks(runtime, new MethodNames(target.DataReader))) output.WriteLine(line);
            return 0;
        }
        if (draw)
        {
            foreach (ulong address in Draw(runtime, count, new Random(seed))) output.WriteLine($"{address:x}");
            return 0;
        }
        ulong[] addresses = ReadAddresses(Console.In);
        var names = new MethodNames(target.DataReader);
        foreach (ulong address in addresses) output.WriteLine(Row(runtime, names, address));
        Console.Error.WriteLine($"{info.Flavor} {info.Version}, {addresses.Length} addresses");
        return 0;
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
