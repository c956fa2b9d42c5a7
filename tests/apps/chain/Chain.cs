// One known chain of calls on two threads, for whole stacks on other kernels and machines: Main or OnThread, Work, Outer, Middle, Leaf,
// and from there small methods directly and through stubs, whose leaves are mostly prologues and epilogues. Prints its pid, then works
// for the given seconds. Only what a trimmed class library still has is used.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

interface IStep
{
    int Step(int n);
}

sealed class One : IStep
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Step(int n) => n + 1;
}

sealed class Two : IStep
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Step(int n) => n ^ 2;
}

static class Chain
{
    static long end;
    static int sink;
    static readonly IStep[] Steps = { new One(), new Two() };

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Tiny(int n) => n * 3;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Leaf(int n)
    {
        int sum = 0;
        for (int i = 0; i < 5000; i++)
            sum += Tiny(i) + Steps[i & 1].Step(n);
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Middle(int n) => Leaf(n) + Leaf(n + 1) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Outer(int n) => Middle(n) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Work()
    {
        for (int n = 0; Stopwatch.GetTimestamp() < end; n++)
            sink += Outer(n);
    }

    static void OnThread()
    {
        Work();
        sink++;
    }

    static int Main(string[] args)
    {
        end = Stopwatch.GetTimestamp() + int.Parse(args[0]) * Stopwatch.Frequency;
        var thread = new Thread(OnThread);
        thread.Start();
        Console.WriteLine(Environment.ProcessId + " started");
        Work();
        thread.Join();
        return 0;
    }
}
