// A shop, each of whose modes has one trouble. `clrsampler report` is to name it.
//
//   services MODE
//
// It says `ready PID` when it serves, and ends when its input does. Beside the trouble it always serves some requests, which cost little.
using System.Linq.Expressions;
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text.Json;
using System.Text.RegularExpressions;

namespace Shop;

public sealed record Line(string Sku, int Quantity, double Price);

// Takes a CPU.
public static class Prices
{
    static double total;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Recalculate()
    {
        for (int i = 1; i < 100_000; ++i) total += Math.Sqrt(i) * 1.0001;
    }
}

// The runtime can't stop a thread in native code that is called like that.
public static unsafe class Cache
{
    const int Bytes = 64 << 20;
    static readonly void* pages = NativeMemory.Alloc(Bytes);

    [DllImport("libc"), SuppressGCTransition]
    static extern void* memset(void* memory, int value, nuint bytes);

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    public static void Rebuild() => memset(pages, 1, Bytes);
}

public static class Cleaner
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Clean() { GC.Collect(0); Thread.Sleep(37); }
}

// Waits for tasks that need workers of the pool, too.
public static class Orders
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Place() => AskStock().Result;

    static async Task<int> AskStock()
    {
        await Task.Delay(20);
        return await Task.Run(() => { Thread.Sleep(1); return 1; });
    }
}

// Holds a lock while it waits for something else.
public static class Stock
{
    static readonly object gate = new();

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Reserve() { lock (gate) AskWarehouse(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AskWarehouse() => Thread.Sleep(15);
}

// Makes a list anew for each request.
public static class Export
{
    static List<Line>? lines;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Build()
    {
        var made = new List<Line>();
        for (int i = 0; i < 20_000; ++i) made.Add(new Line("sku", i, 0.5 * i));
        lines = made;
    }
}

// Finds out by exceptions what is a number.
public static class Parser
{
    static readonly string[] Texts = ["12", "x", "7 pieces", "-"];

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Parse(string text)
    {
        try { return ParseNumber(text); }
        catch (FormatException) { return 0; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int ParseNumber(string text)
    {
        int number = 0;
        foreach (char c in text)
        {
            if (c is < '0' or > '9') throw new FormatException(text);
            number = number * 10 + (c - '0');
        }
        return number;
    }

    public static void ParseAll() { foreach (string text in Texts) Parse(text); }
}

// Compiles the same rule for each request.
public static class Rules
{
    static int applied;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Apply()
    {
        ParameterExpression quantity = Expression.Parameter(typeof(int));
        Expression body = quantity;
        for (int i = 0; i < 20; ++i) body = Expression.Condition(Expression.GreaterThan(quantity, Expression.Constant(i)), body, Expression.Constant(i));
        applied += Expression.Lambda<Func<int, int>>(body, quantity).Compile()(5);
    }
}

// Tries every way to divide a text.
public static class Validator
{
    static readonly Regex Pattern = new("^(a+)+$");
    static int valid;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Check() { if (Pattern.IsMatch("aaaaaaaaaaaaaaaaaaaaab")) ++valid; }
}

public static class Api
{
    static readonly List<Line> Basket = Enumerable.Range(0, 500).Select(i => new Line($"sku-{i}", i, 0.99 * i)).ToList();
    static string? answer;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Answer() => answer = JsonSerializer.Serialize(Basket);
}

// Asks a slow server, at the port that SETTINGS_PORT names, for one setting after the other.
public static class Settings
{
    const int Count = 10;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Load()
    {
        using var client = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        client.Connect(IPAddress.Loopback, int.Parse(Environment.GetEnvironmentVariable("SETTINGS_PORT")!));
        for (int i = 0; i < Count; ++i) Ask(client);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Ask(Socket client)
    {
        byte[] one = new byte[1];
        client.Send(one);
        client.Receive(one);
    }
}

public static class Program
{
    static void Start(string name, Action work) => new Thread(() => { while (true) work(); }) { Name = name, IsBackground = true }.Start();

    static void ServeLittle()
    {
        Start("requests", () => { Parser.Parse("12"); Prices.Recalculate(); Thread.Sleep(20); });
    }

    public static int Main(string[] args)
    {
        string mode = args.Length == 1 ? args[0] : "";
        switch (mode)
        {
            case "hot": Start("trouble", Prices.Recalculate); break;
            case "pauses": Start("trouble", Cache.Rebuild); Start("cleaner", Cleaner.Clean); break;
            case "pool": Start("listener", () => { ThreadPool.QueueUserWorkItem(_ => Orders.Place()); Thread.Sleep(2); }); break;
            case "lock": for (int i = 0; i < 6; ++i) Start("seller", Stock.Reserve); break;
            case "allocations": Start("trouble", Export.Build); break;
            case "exceptions": Start("trouble", Parser.ParseAll); break;
            case "jit": Start("trouble", Rules.Apply); break;
            case "regex": Start("trouble", Validator.Check); break;
            case "serializer": Start("trouble", Api.Answer); break;
            case "start": Settings.Load(); break;
            default: Console.Error.WriteLine("usage: services MODE"); return 2;
        }
        ServeLittle();
        Console.WriteLine($"ready {Environment.ProcessId}");
        while (Console.ReadLine() is not null) { }
        return 0;
    }
}
