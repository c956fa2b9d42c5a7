using System.Reflection;
using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Workload;

// Stops its own threads, and knows when and what for. Each mode says `ready`, begins when SIGHUP comes, says its `truth` when it is through,
// and waits for SIGTERM or its time's end.
//
// pauses:   collections of every kind. Truth: what GC.CollectionCount and GC.GetTotalPauseDuration have grown by, and each collection that
//           was seen, as `[INDEX, GENERATION, CONCURRENT, INDUCED, PAUSE_NS]`; INDUCED -1: not known.
// delay-*:  20 collections a second by the main thread, while another one does what delays them, or what must not.
static class PauseMode
{
    static volatile bool s_stop;

    sealed class Node
    {
        public Node? Next, Other;
        public long Value;
    }

    // Enough to make a collection of generation 2 take milliseconds, so that what probes cost is little of a pause.
    static Node?[] s_heap = [];
    static readonly Dictionary<long, (int Generation, bool Concurrent, int Induced, long PauseNs)> s_seen = new(4096);
    static long s_first;  // those up to this index do not count
    static int s_collects, s_background;  // calls that made a collection; of these, in the background

    public static void Run(Options options)
    {
        s_heap = Heap(1_000, 400);
        Mix();  // compiled now, and not between two readings of the clock
        s_seen.Clear();
        s_collects = s_background = 0;
        s_first = GC.GetGCMemoryInfo(GCKind.Any).Index;
        using var signals = new Begin(options);
        long begin = Clock.MonotonicNs();
        int[] counts = [GC.CollectionCount(0), GC.CollectionCount(1), GC.CollectionCount(2)];
        TimeSpan pause = GC.GetTotalPauseDuration();
        for (int i = 0; i < 3; i++) Mix();
        double paused = (GC.GetTotalPauseDuration() - pause).TotalNanoseconds;
        for (int i = 0; i < counts.Length; i++) counts[i] = GC.CollectionCount(i) - counts[i];
        long end = Clock.MonotonicNs();
        string seen = string.Join(",", s_seen.Select(s => $"[{s.Key},{s.Value.Generation},{(s.Value.Concurrent ? "true" : "false")},{s.Value.Induced},{s.Value.PauseNs}]"));
        Begin.Tell(options, $"{{\"begin_ns\":{begin},\"end_ns\":{end},\"counts\":[{string.Join(",", counts)}],\"pause_ns\":{paused:F0}," +
             $"\"collects\":{s_collects},\"background\":{s_background},\"server\":{(GCSettings.IsServerGC ? "true" : "false")}," +
             $"\"thread\":{Clock.ThreadId()},\"seen\":[{seen}]}}");
    }

    static Node?[] Heap(int chains, int length)
    {
        var heap = new Node?[chains];
        for (int i = 0; i < length; i++)
            for (int k = 0; k < chains; k++) heap[k] = new Node { Next = heap[k], Other = heap[(k * 31 + i) % chains], Value = i };
        return heap;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Mix()
    {
        for (int i = 0; i < 3; i++)
        {
            Blocking(() => GC.Collect(0));
            s_heap[i] = Heap(1, 400)[0];  // old objects that point to young ones
            Blocking(() => GC.Collect(1));
        }
        Blocking(() => GC.Collect(2, GCCollectionMode.Forced, blocking: true, compacting: false));
        Blocking(() => GC.Collect(2, GCCollectionMode.Forced, blocking: true, compacting: true));
        Blocking(() => GC.Collect(2, GCCollectionMode.Aggressive, blocking: true, compacting: true));
        Background(GCCollectionMode.Forced);
        Background(GCCollectionMode.Optimized);
        Allocate(48 << 20);
        // Waits for one in the background that allocation has begun.
        Blocking(() => GC.Collect(2));
    }

    // One collection, which is over when the call returns.
    static void Blocking(Action collect)
    {
        int before = GC.CollectionCount(0);
        collect();
        int made = GC.CollectionCount(0) - before;
        int induced = made == 1 ? 1 : -1;
        // The runtime leaves one out that meets another on its way in (GarbageCollectGeneration, gc.cpp).
        if (made > 0) ++s_collects;
        See(GCKind.Any, induced);
        See(GCKind.Background, -1);
    }

    // In the background where that is on, with others in front of it. Returns when it is over.
    static void Background(GCCollectionMode mode)
    {
        long background = GC.GetGCMemoryInfo(GCKind.Background).Index, blocking = GC.GetGCMemoryInfo(GCKind.FullBlocking).Index;
        int full = GC.CollectionCount(2);
        GC.Collect(2, mode, blocking: false);
        if (GC.CollectionCount(2) == full) return;  // `Optimized` may find that it is not worth while
        ++s_collects;
        for (int i = 0; i < 2; i++) Blocking(() => GC.Collect(0));
        while (GC.GetGCMemoryInfo(GCKind.Background).Index == background)
        {
            if (GC.GetGCMemoryInfo(GCKind.FullBlocking).Index != blocking)
            {
                See(GCKind.FullBlocking, 1);
                return;
            }
            Thread.Sleep(1);
        }
        See(GCKind.Background, 1);
        ++s_background;
        Thread.Sleep(5);  // its thread still does something
    }

    static void Allocate(long bytes)
    {
        var kept = new byte[64][];
        for (long i = 0; bytes > 0; i++)
        {
            int size = i % 50 == 0 ? 200_000 : 4_000;  // some large objects
            bytes -= size;
            kept[i % kept.Length] = new byte[size];
            if (i % 20 != 0) continue;
            See(GCKind.Any, -1);
            See(GCKind.Background, -1);
        }
    }

    // The first to see a collection says how it came about.
    static void See(GCKind kind, int induced)
    {
        GCMemoryInfo info = GC.GetGCMemoryInfo(kind);
        if (info.Index > s_first) s_seen.TryAdd(info.Index, (info.Generation, info.Concurrent, induced, (long)info.PauseDurations[0].TotalNanoseconds));
    }

    // Threads that are delayed, and those that delay them.

    const string Library = "shapes_native";
    const long SpinNs = 20_000_000;

    [DllImport(Library, EntryPoint = "shapes_spin"), SuppressGCTransition] static extern long SpinSuppressed(long nanoseconds);
    [DllImport(Library, EntryPoint = "shapes_spin")] static extern long Spin(long nanoseconds);

    // Optimized from the first call on, so that the native function is called from here, and not from a stub.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static void CallWithoutTransition()
    {
        while (!s_stop) SpinSuppressed(SpinNs);
    }

    static void CallWithTransition()
    {
        while (!s_stop) Spin(SpinNs);
    }

    static void CopyBytes()
    {
        byte[] from = new byte[100_000_000], to = new byte[from.Length];
        while (!s_stop) Array.Copy(from, to, from.Length);
    }

    // The runtime clears the memory of a large array while it may not be stopped.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static void MakeLargeArrays()
    {
        while (!s_stop) s_array = new byte[64 << 20];
    }

    static byte[]? s_array;

    // .NET 8 does this in native code that may not be stopped.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static void FillBytes()
    {
        byte[] bytes = new byte[200_000_000];
        while (!s_stop) bytes.AsSpan().Fill(7);
    }

    static void Rest()
    {
        while (!s_stop) Thread.Sleep(20);
    }

    public static void RunSuppressed(Options options) => Delay(options, CallWithoutTransition);
    public static void RunTransitions(Options options) => Delay(options, CallWithTransition);
    public static void RunCopies(Options options) => Delay(options, CopyBytes);
    public static void RunLargeArrays(Options options) => Delay(options, MakeLargeArrays);
    public static void RunFills(Options options) => Delay(options, FillBytes);
    public static void RunSleepers(Options options) => Delay(options, Enumerable.Repeat(Rest, 50).ToArray());

    public static void RunIdle(Options options)
    {
        using var gate = new ManualResetEventSlim();
        Delay(options, gate.Wait, gate.Wait);
        gate.Set();
    }

    static void Delay(Options options, params Action[] others)
    {
        const int Collections = 60;
        const long LongestNs = 6_000_000_000;  // one alone may take that and more
        if (options.Native != null)
            NativeLibrary.SetDllImportResolver(Assembly.GetExecutingAssembly(), (name, _, _) => name == Library ? NativeLibrary.Load(options.Native) : 0);
        int thread = 0;
        foreach (Action other in others)
        {
            new Thread(() =>
            {
                thread = Clock.ThreadId();
                other();
            }) { IsBackground = true }.Start();
        }
        Thread.Sleep(200);
        GC.Collect(0);
        using var signals = new Begin(options);
        int collections = 0;
        for (long begin = Clock.MonotonicNs(); collections < Collections && Clock.MonotonicNs() - begin < LongestNs; collections++)
        {
            Thread.Sleep(40 + collections * 7 % 20);  // not in step with the other thread
            GC.Collect(0);
        }
        s_stop = true;
        Begin.Tell(options, $"{{\"collections\":{collections},\"thread\":{thread}}}");
    }
}
