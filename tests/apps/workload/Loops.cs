using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;

namespace Workload;

sealed record Item(string Sku, int Quantity, decimal Price);

sealed record Order(int Id, string Customer, DateTime Created, List<Item> Items, Dictionary<string, string> Tags);

// Everyday .NET work. Each loop does one unit, a few milliseconds long, and returns something that depends on it.
static class Loops
{
    static long s_units;
    static int s_methods;

    public static void Run(Options options, Func<int, long> unit)
    {
        options.Ready();
        var threads = new Thread[options.Threads];
        for (int t = 0; t < threads.Length; t++)
        {
            int seed = t;
            threads[t] = new Thread(() =>
            {
                for (int i = seed; !options.Over(); i++)
                {
                    unit(i);
                    Interlocked.Increment(ref s_units);
                }
            }) { Name = $"worker {t}" };
            threads[t].Start();
        }
        while (options.Ticks && !options.Over())
        {
            Console.WriteLine($"tick {Clock.MonotonicNs()} {Interlocked.Read(ref s_units)} {Clock.ProcessCpuNs()}");
            Thread.Sleep(500);
        }
        foreach (Thread thread in threads) thread.Join();
        Console.WriteLine($"truth {{\"units\":{s_units},\"cpu_ns\":{Clock.ProcessCpuNs()}}}");
    }

    public static List<Order> Orders(int seed, int count) => Enumerable.Range(seed, count).Select(i => new Order(
        i, $"customer {i % 37}", new DateTime(2024, 1, 1).AddMinutes(i),
        Enumerable.Range(0, 5).Select(k => new Item($"sku-{i * k % 97}", k + 1, 0.99m * k)).ToList(),
        new Dictionary<string, string> { ["channel"] = i % 2 == 0 ? "web" : "shop", ["note"] = new string('x', i % 13) })).ToList();

    public static long Json(int seed) => Json(seed, 50);

    public static long Json(int seed, int orders)
    {
        string text = JsonSerializer.Serialize(Orders(seed, orders));
        return JsonSerializer.Deserialize<List<Order>>(text)!.Sum(o => (long)o.Items.Count);
    }

    static readonly Regex s_line = new(@"^(?<ip>\d+\.\d+\.\d+\.\d+) - (?<user>\w+) \[(?<time>[^\]]+)\] ""(?<verb>GET|POST) (?<path>[^ ]+)",
                                       RegexOptions.Compiled | RegexOptions.Multiline);
    static readonly Regex s_words = new(@"(\w+)\s+(\w+(?:-\d+)?)", RegexOptions.IgnoreCase);

    public static long RegexMatch(int seed)
    {
        var text = new StringBuilder();
        for (int i = 0; i < 100; i++)
            text.Append("10.0.").Append(i % 256).Append(".7 - user").Append(seed % 10).Append(" [01/Jan/2024] \"GET /shop/item-").Append(i).Append("\"\n");
        string lines = text.ToString();
        return s_line.Matches(lines).Sum(m => m.Groups["path"].Length) + s_words.Replace(lines, "$2 $1").Length;
    }

    static int s_taken;
    static long s_guarded;

    // Threads that spin for one lock: with two or more, most of the time goes into Thread.SpinWait.
    public static long Contend(int seed)
    {
        for (int round = 0; round < 200; round++)
        {
            while (Interlocked.CompareExchange(ref s_taken, 1, 0) != 0) Thread.SpinWait(200);
            for (int i = 0; i < 2000; i++) s_guarded = s_guarded * 31 + i;
            Volatile.Write(ref s_taken, 0);
        }
        return s_guarded;
    }

    public static long Linq(int seed) => LinqOf(seed, 100);

    // Not an overload: the compiler of NativeAOT numbers those, and its names are compared.
    public static long LinqOf(int seed, int orders) => Orders(seed, orders)
        .Where(o => o.Items.Count > 1)
        .SelectMany(o => o.Items, (o, i) => (o.Customer, i.Price, i.Quantity))
        .GroupBy(x => x.Customer)
        .Select(g => (g.Key, Total: g.Sum(x => x.Price * x.Quantity)))
        .OrderByDescending(x => x.Total).ThenBy(x => x.Key, StringComparer.Ordinal)
        .Take(10).Sum(x => (long)x.Total);

    public static long Async(int seed) => AsyncOuter(seed).GetAwaiter().GetResult();

    static async Task<long> AsyncOuter(int seed)
    {
        Task<long>[] tasks = Enumerable.Range(0, 8).Select(i => AsyncInner(seed + i)).ToArray();
        return (await Task.WhenAll(tasks)).Sum();
    }

    static async Task<long> AsyncInner(int seed)
    {
        long sum = 0;
        for (int i = 0; i < 5; i++)
        {
            await Task.Yield();
            sum += Spin(seed + i, 20_000) & 3;
        }
        return sum;
    }

    public static long Garbage(int seed) => Garbage(seed, 20_000);

    public static long Garbage(int seed, int arrays)
    {
        var kept = new Dictionary<int, byte[]>();
        for (int i = 0; i < arrays; i++) kept[(i + seed) % 500] = new byte[i % 512 + 16];
        return kept.Count;
    }

    // The runtime's hooks are hit most by this: with two threads on two CPUs some 1,000 collections and 5,000 compilations a second.
    public static long Storm(int seed)
    {
        // Methods that live past a collection would make each one slower, for ever.
        GC.Collect(seed % 64 == 0 ? 2 : 0);
        return JitMethods(seed, 5, 1_000) + Spin(seed, 300_000);
    }

    public static long JitMethods(int seed) => JitMethods(seed, 10, 20_000);

    static long JitMethods(int seed, int methods, int rounds)
    {
        long sum = 0;
        for (int i = 0; i < methods; i++)
        {
            var method = new DynamicMethod($"Emitted{Interlocked.Increment(ref s_methods)}", typeof(long), [typeof(long)],
                                           typeof(Loops).Module, skipVisibility: true);
            ILGenerator il = method.GetILGenerator();
            LocalBuilder x = il.DeclareLocal(typeof(long));
            Label again = il.DefineLabel();
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Stloc, x);
            il.MarkLabel(again);
            il.Emit(OpCodes.Ldloc, x);
            il.Emit(OpCodes.Ldc_I8, 1L);
            il.Emit(OpCodes.Sub);
            il.Emit(OpCodes.Dup);
            il.Emit(OpCodes.Stloc, x);
            il.Emit(OpCodes.Ldc_I8, 0L);
            il.Emit(OpCodes.Bgt, again);
            il.Emit(OpCodes.Ldloc, x);
            il.Emit(OpCodes.Ret);
            sum += method.CreateDelegate<Func<long, long>>()(rounds + seed % 10);
        }
        return sum;
    }

    public static long Mix(int seed) => (seed % 4) switch
    {
        0 => Json(seed),
        1 => RegexMatch(seed),
        2 => Linq(seed),
        _ => Async(seed),
    };

    // A service that has little to do: some milliseconds of work ten times a second.
    public static long Request(int seed)
    {
        Thread.Sleep(100);
        return Mix(seed);
    }

    public static long Burn(int seed) => Spin(seed, 200_000);

    // Never inlined: it would appear under another name from one tier to the next.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Spin(int seed, int steps)
    {
        ulong x = (ulong)seed | 1;
        for (int i = 0; i < steps; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x;
    }
}

// The first second of a service looks like this: much framework code once, so most managed frames are ready-to-run code.
static class StartupMode
{
    public static void Run(Options options)
    {
        options.Ready();
        long sum = 0;
        for (int i = 0; !options.Over(); i++)
        {
            sum += Loops.Json(i) + Loops.Linq(i) + Loops.RegexMatch(i);
            sum += new Regex($@"a{{{i % 9}}}(b|c)+\d{{1,{i % 7 + 1}}}").Matches("aab1 aaac22 bcb3").Count;
            sum += Xml(i);
            sum += AppDomain.CurrentDomain.GetAssemblies().Sum(a => a.GetTypes().Length) & 1;
            sum += typeof(Order).GetProperties(BindingFlags.Public | BindingFlags.Instance).Sum(p => p.Name.Length);
            if (i % 8 == 0) sum += Loops.JitMethods(i);
        }
        Console.WriteLine($"truth {{\"checksum\":{sum & 1}}}");
    }

    static long Xml(int seed)
    {
        var document = new System.Xml.Linq.XElement("orders", Loops.Orders(seed, 20).Select(
            o => new System.Xml.Linq.XElement("order", new System.Xml.Linq.XAttribute("id", o.Id), o.Customer)));
        return System.Xml.Linq.XElement.Parse(document.ToString()).Elements("order").Count();
    }
}
