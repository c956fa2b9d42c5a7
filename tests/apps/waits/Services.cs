// Small services: what their requests do with the workers of the thread pool.
using System.Diagnostics;
using System.Runtime.CompilerServices;

namespace Waits;

// Requests come on a thread of its own, `PerSecond` of them. The pool begins with `Workers` (0: as the runtime has it) and may have no
// more if it is `Full`.
public sealed record Service(string Name, Action Request, int PerSecond, int Workers = 0, bool Full = false);

public static class Services
{
    static async Task<int> Looks()
    {
        await Task.Delay(20);
        return await Task.Run(() => 1);
    }

    // Another work item of the pool does this, a little later.
    static void Later(Action action) => Task.Delay(20).ContinueWith(_ => action());

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitsForEvent()
    {
        var ready = new ManualResetEventSlim();
        Later(() => ready.Set());
        ready.Wait();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitsForHandle()
    {
        var ready = new AutoResetEvent(false);
        Later(() => ready.Set());
        ready.WaitOne();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitsForSlot()
    {
        var slots = new SemaphoreSlim(0);
        Later(() => slots.Release());
        slots.Wait();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitsForCount()
    {
        var count = new CountdownEvent(2);
        for (int i = 0; i < 2; ++i) Later(() => count.Signal());
        count.Wait();
    }

    static readonly object gate = new();
    static readonly ManualResetEventSlim never = new();
    static volatile int done;

    static void Computes(int milliseconds)
    {
        long until = Stopwatch.GetTimestamp() + Stopwatch.Frequency * milliseconds / 1000;
        while (Stopwatch.GetTimestamp() < until) ++done;
    }

    static int left = 4;

    // Four of its workers wait for good, and there are others.
    static void WaitsForGood()
    {
        if (Interlocked.Decrement(ref left) >= 0) never.Wait();
    }

    public static readonly Service[] Starved =
    [
        new("result", () => _ = Looks().Result, 500),
        new("wait", () => Looks().Wait(), 500),
        new("get-result", () => Looks().GetAwaiter().GetResult(), 500),
        new("wait-all", () => Task.WaitAll(Looks(), Looks()), 500),
        new("event", WaitsForEvent, 500),
        new("handle", WaitsForHandle, 500),
        new("slot", WaitsForSlot, 500),
        new("count", WaitsForCount, 500),
        new("full-result", () => _ = Looks().Result, 500, 8, true),
        new("full-event", WaitsForEvent, 500, 6, true),
    ];

    public static readonly Service[] Healthy =
    [
        new("sleeps", () => Thread.Sleep(5), 20),
        new("computes", () => Computes(10), 20),
        new("asynchronous", async () => await Looks(), 50),
        new("nothing", () => { }, 1),
        new("few-results", () => _ = Looks().Result, 2, 32),
        new("lock", () => { lock (gate) Computes(1); }, 20),
        new("completed", () => _ = Task.FromResult(1).Result, 50),
        new("busy", () => Computes(40), 100),
        new("waits-for-good", WaitsForGood, 20, 16),
        new("full-sleeps", () => Thread.Sleep(5), 20, 8, true),
    ];

    public static void Run(string name)
    {
        Service service = Starved.Concat(Healthy).Single(one => one.Name == name);
        if (service.Workers != 0 && !ThreadPool.SetMinThreads(service.Workers, 1)) throw new ArgumentException(name);
        if (service.Full && !ThreadPool.SetMaxThreads(service.Workers, 1000)) throw new ArgumentException(name);
        new Thread(() =>
        {
            while (true)
            {
                ThreadPool.QueueUserWorkItem(_ => service.Request());
                Thread.Sleep(1000 / service.PerSecond);
            }
        }) { IsBackground = true }.Start();
    }
}
