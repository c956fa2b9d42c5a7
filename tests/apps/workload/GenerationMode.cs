using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;
using System.Text;

namespace Workload;

// Compiles, runs and frees one generation of code after another. Generation N has only methods with GenN in their names. The log has a
// line per generation: `NUMBER TID BEGIN_NS END_NS CPU_NS SWITCHES`. No method of it runs before begin or after end, on CLOCK_MONOTONIC. CPU time,
// and how often the thread left its CPU, are those of the one long call: some generations have shorter calls before it.
//
// alc:       an assembly in a collectible AssemblyLoadContext (see plugin/Gen.cs), each at addresses that no other one had.
// alc-reuse: the same, where nearly every method lies at an address that the generation before had.
// lcg:       dynamic methods. Their heap gives freed memory out at once, so nearly every method lies where another one was.
static class GenerationMode
{
    const string Placeholder = "Gen000000";

    public static void RunReusedContexts(Options options)
    {
        UseUpExecutableRange();
        RunContexts(options);
    }

    public static void RunContexts(Options options)
    {
        byte[] image = File.ReadAllBytes(Path.Combine(AppContext.BaseDirectory, "plugin.dll"));
        Run(options, (generation, log) => RunContext(image, generation, log));
    }

    public static void RunDynamicMethods(Options options) => Run(options, RunDynamic);

    // CoreCLR hands out the 2 GB that it reserved for code from bottom to top and takes nothing back. A collectible context uses 128 KB of
    // them. The first address came again after 16,090 to 16,120 loads (8.0.30, 9.0.19, 10.0.14, with and without W^X). From then on code memory comes
    // from mmap, which gives out at once what was freed, and every load gets the addresses of the one before. Mapped images lie in the same
    // 2 GB. So instead of loading 16,000 contexts this maps the largest image of the framework, 8 MB, again and again.
    static void UseUpExecutableRange()
    {
        const int RangeBytes = int.MaxValue;
        string largest = Path.Combine(Path.GetDirectoryName(typeof(object).Assembly.Location)!, "System.Private.Xml.dll");
        string folder = Directory.CreateTempSubdirectory().FullName;
        for (long i = 0, mapped = 0; mapped < RangeBytes; i++, mapped += new FileInfo(largest).Length)
        {
            // Another path for each: the runtime maps a path once.
            string path = Path.Combine(folder, $"{i}.dll");
            File.CreateSymbolicLink(path, largest);
            new AssemblyLoadContext(null).LoadFromAssemblyPath(path);
        }
        Directory.Delete(folder, recursive: true);
    }

    static void Run(Options options, Func<int, StreamWriter, WeakReference> runGeneration)
    {
        using StreamWriter log = options.Log == null ? StreamWriter.Null : new StreamWriter(options.Log) { AutoFlush = true };
        options.Ready();
        int generation = 1;
        for (; !options.Over(); generation++)
        {
            WeakReference code = runGeneration(generation, log);
            for (int i = 0; i == 0 || (code.IsAlive && i < 20); i++)
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
            }
            if (code.IsAlive) throw new InvalidOperationException($"generation {generation} was not freed");
        }
        Console.WriteLine($"truth {{\"generations\":{generation - 1}}}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static WeakReference RunContext(byte[] image, int generation, StreamWriter log)
    {
        string name = Name(generation);
        var context = new AssemblyLoadContext(name, isCollectible: true);
        Assembly assembly = context.LoadFromStream(new MemoryStream(Renamed(image, name)));
        Type type = assembly.GetType("Plugin." + name)!;
        long begin = Clock.MonotonicNs();
        Func<int, int, long> Method(string method) => type.GetMethod(method)!.CreateDelegate<Func<int, int, long>>();
        // The method that is compiled first decides its place in the heap.
        if (generation % 2 == 1) Method("Inner" + name)(1, 1);
        if (generation % 3 == 1) Method("Middle" + name)(1, 1);
        Time(generation, begin, type.GetMethod("Outer" + name)!.CreateDelegate<Func<int, long>>(), log);
        context.Unload();
        return new WeakReference(context);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static WeakReference RunDynamic(int generation, StreamWriter log)
    {
        string name = Name(generation);
        DynamicMethod inner = Loop("Inner" + name, null, 20_000);
        DynamicMethod middle = Loop("Middle" + name, inner, 2);
        DynamicMethod outer = Loop("Outer" + name, middle, 0);
        long begin = Clock.MonotonicNs();
        if (generation % 2 == 1) inner.CreateDelegate<Func<int, long>>()(1);
        if (generation % 3 == 1) middle.CreateDelegate<Func<int, long>>()(1);
        var run = outer.CreateDelegate<Func<int, long>>();
        Time(generation, begin, run, log);
        return new WeakReference(run);
    }

    static string Name(int generation) => $"Gen{generation:D6}";

    static void Time(int generation, long begin, Func<int, long> outer, StreamWriter log)
    {
        // Long and short generations alternate irregularly: a method that takes over its neighbour's samples shows in the counts.
        int rounds = generation % 5 is 0 or 3 ? 2_400 : 600;
        long switches = Clock.ThreadSwitches();
        long cpu = Clock.ThreadCpuNs();
        outer(rounds);
        cpu = Clock.ThreadCpuNs() - cpu;
        switches = Clock.ThreadSwitches() - switches;
        log.WriteLine($"{generation} {Clock.ThreadId()} {begin} {Clock.MonotonicNs()} {cpu} {switches}");
    }

    // long NAME(int n) { long x = 1; for (int i = 0; i < (rounds == 0 ? n : rounds); i++) x = x * 31 + (callee(n) or n); return x; }
    static DynamicMethod Loop(string name, DynamicMethod? callee, int rounds)
    {
        var method = new DynamicMethod(name, typeof(long), [typeof(int)], typeof(GenerationMode).Module, skipVisibility: true);
        ILGenerator il = method.GetILGenerator();
        LocalBuilder x = il.DeclareLocal(typeof(long)), i = il.DeclareLocal(typeof(int));
        Label again = il.DefineLabel();
        il.Emit(OpCodes.Ldc_I8, 1L);
        il.Emit(OpCodes.Stloc, x);
        il.MarkLabel(again);
        il.Emit(OpCodes.Ldloc, x);
        il.Emit(OpCodes.Ldc_I8, 31L);
        il.Emit(OpCodes.Mul);
        il.Emit(OpCodes.Ldarg_0);
        if (callee == null) il.Emit(OpCodes.Conv_I8);
        else il.Emit(OpCodes.Call, callee);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Stloc, x);
        il.Emit(OpCodes.Ldloc, i);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Dup);
        il.Emit(OpCodes.Stloc, i);
        if (rounds == 0) il.Emit(OpCodes.Ldarg_0);
        else il.Emit(OpCodes.Ldc_I4, rounds);
        il.Emit(OpCodes.Blt, again);
        il.Emit(OpCodes.Ldloc, x);
        il.Emit(OpCodes.Ret);
        return method;
    }

    static byte[] Renamed(byte[] image, string name)
    {
        byte[] copy = (byte[])image.Clone();
        byte[] from = Encoding.ASCII.GetBytes(Placeholder), to = Encoding.ASCII.GetBytes(name);
        for (int at = copy.AsSpan().IndexOf(from); at >= 0; at = copy.AsSpan().IndexOf(from)) to.CopyTo(copy, at);
        return copy;
    }
}
