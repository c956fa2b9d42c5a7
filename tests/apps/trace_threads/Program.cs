// Three threads that burn CPU time. Two publish a trace and a span each, the second of which changes its span; the third had a span
// before and works for none.
//
//   trace_threads LIBRARY SECONDS      LIBRARY: built of tests/apps/trace_threads_native
using System;
using System.Diagnostics;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static unsafe class Program
{
    static double s_sink;
    static int s_begun;
    static long s_end;

    static byte[] Ids(byte trace, byte span) => Enumerable.Repeat(trace, 16).Concat(Enumerable.Repeat(span, 8)).ToArray();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Burn(long until)
    {
        while (Stopwatch.GetTimestamp() < until)
        {
            for (int i = 0; i < 2000; ++i) s_sink += Math.Sqrt(i);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void BurnInFirst() => Burn(Stopwatch.GetTimestamp() + Stopwatch.Frequency / 100);
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void BurnInSecond() => Burn(Stopwatch.GetTimestamp() + Stopwatch.Frequency / 100);

    static void Start(string name, Action begin, Action work)
    {
        var thread = new Thread(() =>
        {
            begin();
            Interlocked.Increment(ref s_begun);
            while (Stopwatch.GetTimestamp() < s_end) work();
        }) { Name = name };
        thread.Start();
    }

    static int Main(string[] args)
    {
        nint library = NativeLibrary.Load(args[0]);
        var attachTo = (delegate* unmanaged<byte*, void>)NativeLibrary.GetExport(library, "trace_attach");
        var detach = (delegate* unmanaged<void>)NativeLibrary.GetExport(library, "trace_detach");
        void Attach(byte[] ids)
        {
            fixed (byte* at = ids) attachTo(at);
        }
        byte[] one = Ids(0x11, 0x22), first = Ids(0x33, 0x44), second = Ids(0x33, 0x55);
        s_end = Stopwatch.GetTimestamp() + long.Parse(args[1]) * Stopwatch.Frequency;
        Start("traced-one", () => Attach(one), BurnInFirst);
        Start("traced-two", () => Attach(first), () =>
        {
            Attach(first);
            BurnInFirst();
            Attach(second);
            BurnInSecond();
        });
        Start("untraced", () => { Attach(one); detach(); }, BurnInFirst);
        while (Volatile.Read(ref s_begun) < 3) Thread.Sleep(1);
        Console.WriteLine($"ready {Environment.ProcessId}");
        return 0;
    }
}
