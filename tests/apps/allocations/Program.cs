// Allocates at a known rate, in methods and of types that are known.
//
//   allocations MEGABYTES_A_SECOND [THREADS]
//
// 0: as fast as it can. A number of seconds on standard input has it allocate for that long, and answer with a line of JSON.
// The line has what was allocated meanwhile, by GC.GetTotalAllocatedBytes(precise) and by the program's own sum of each method,
// and how many seconds it took. The end of the input ends it.
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Text.Json;

namespace Allocations;

public class Order { public long Number, Customer, Total; public Order? Next; }  // 48 bytes
public struct Point { public double X, Y, Z; }
public class Node<T> { public T? Value; public Node<T>? Next; }

public static class Program
{
    const int Chunk = 64 << 10;
    static readonly string[] Names = ["Orders", "Texts", "Bytes", "Boxes", "Generics", "Large"];
    static object? sink;

    // Bytes of one call of each method; what an object takes is measured once, by the runtime itself.
    static readonly long[] bytesOf = new long[Names.Length];
    static readonly long[] calls = new long[Names.Length];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Orders() { for (int i = 0; i < Chunk / 48; ++i) sink = new Order(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Texts() { for (int i = 0; i < Chunk / 222; ++i) sink = new string('x', 100); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Bytes() { for (int i = 0; i < Chunk / 1024; ++i) sink = new byte[1000]; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Boxes() { for (int i = 0; i < Chunk / 40; ++i) sink = new Point { X = i }; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Generics() { for (int i = 0; i < Chunk / 32; ++i) sink = new Node<int> { Value = i }; }

    // An object of the large heap for every fourth chunk, so that it has as much as the others.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Large() { sink = new long[(4 * Chunk - 24) / 8]; }

    static void Call(int method)
    {
        switch (method)
        {
            case 0: Orders(); break;
            case 1: Texts(); break;
            case 2: Bytes(); break;
            case 3: Boxes(); break;
            case 4: Generics(); break;
            case 5: Large(); break;
        }
    }

    static void Work(double bytesASecond, double seconds)
    {
        var clock = Stopwatch.StartNew();
        double allocated = 0;
        var random = new Random();
        while (clock.Elapsed.TotalSeconds < seconds)
        {
            // In no order that a sampler could beat with. The large objects are a third of the bytes.
            int method = random.Next(Names.Length + 3);
            method = method < 5 ? method : method == 8 ? 5 : method - 5;
            Call(method);
            Interlocked.Increment(ref calls[method]);
            allocated += bytesOf[method];
            if (bytesASecond <= 0) continue;
            double ahead = allocated / bytesASecond - clock.Elapsed.TotalSeconds;
            if (ahead > 0.002) Thread.Sleep((int)(ahead * 1000));
        }
    }

    public static void Main(string[] arguments)
    {
        for (int method = 0; method < Names.Length; ++method)
        {
            Call(method);
            long before = GC.GetAllocatedBytesForCurrentThread();
            Call(method);
            bytesOf[method] = GC.GetAllocatedBytesForCurrentThread() - before;
        }
        double rate = double.Parse(arguments[0]) * 1e6;
        int threads = arguments.Length > 1 ? int.Parse(arguments[1]) : 1;
        Console.WriteLine("ready");
        while (Console.ReadLine() is { } line)
        {
            double seconds = double.Parse(line);
            Array.Clear(calls);
            long before = GC.GetTotalAllocatedBytes(true);
            var clock = Stopwatch.StartNew();
            var workers = Enumerable.Range(0, threads).Select(_ => new Thread(() => Work(rate / threads, seconds))).ToArray();
            foreach (Thread worker in workers) worker.Start();
            foreach (Thread worker in workers) worker.Join();
            double took = clock.Elapsed.TotalSeconds;
            long total = GC.GetTotalAllocatedBytes(true) - before;
            var methods = new Dictionary<string, long>();
            for (int i = 0; i < Names.Length; ++i) methods[Names[i]] = calls[i] * bytesOf[i];
            Console.WriteLine(JsonSerializer.Serialize(new { total, took, methods }));
        }
    }
}
