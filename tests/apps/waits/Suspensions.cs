// A thread that computes all the time, and is stopped for each collection; and one that waits for a monitor meanwhile.
using System.Runtime.CompilerServices;

namespace Waits;

public static class Suspensions
{
    const int Objects = 4_000_000;  // alive, so that a collection of them takes a while
    static object[] alive = [];
    static volatile int sum;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Computes() { while (true) ++sum; }

    static readonly object gate = new();

    // A monitor, from before the first collection until behind the last one.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WantsGate() { lock (gate) ++sum; }

    static void HoldGate()
    {
        using var held = new ManualResetEventSlim();
        new Thread(() => { lock (gate) { held.Set(); Thread.Sleep(Timeout.Infinite); } }) { IsBackground = true }.Start();
        held.Wait();
        new Thread(WantsGate) { Name = "wants gate", IsBackground = true }.Start();
    }

    public static void Start()
    {
        HoldGate();
        alive = new object[Objects];
        for (int i = 0; i < Objects; ++i) alive[i] = new object[] { i > 0 ? alive[i - 1] : alive };
        new Thread(Computes) { Name = "computes", IsBackground = true }.Start();
    }

    /// The nanoseconds that the runtime says it has stood still for so many collections.
    public static long Collect(int collections)
    {
        TimeSpan before = GC.GetTotalPauseDuration();
        for (int i = 0; i < collections; ++i)
        {
            GC.Collect(2, GCCollectionMode.Forced, blocking: true);
            Thread.Sleep(20);
        }
        return (GC.GetTotalPauseDuration() - before).Ticks * 100;
    }
}
