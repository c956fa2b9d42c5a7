using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Shapes;

// Exceptions, more than 10,000 a second, and work in each kind of handler. Handlers are called by the runtime, on top of the frames that threw; what a
// reader wants to see is the method with its handler as one frame below its caller. The physical order is allowed, too, if it is whole.
static class Exceptions
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    static string[] Logical(string way) => ["Shapes.Exceptions.Root", $"Shapes.Exceptions.{way}Outer", $"Shapes.Exceptions.{way}", $"Shapes.Exceptions.Leaf{way}"];
    static string[] Physical(string way) => [.. Throws(way), "~throw+", $"Shapes.Exceptions.{way}", $"Shapes.Exceptions.Leaf{way}"];
    static string[] Throws(string way) => ["Shapes.Exceptions.Root", $"Shapes.Exceptions.{way}Outer", $"Shapes.Exceptions.{way}", "Shapes.Exceptions.Middle", "Shapes.Exceptions.Throw"];

    public static readonly Mode Mode = new("exceptions", Root,
        [Logical("Catch"), Logical("Finally"), Logical("Filter")],
        [Throws("Catch"), Throws("Finally"), Throws("Filter"), Physical("Catch"), Physical("Finally"), Physical("Filter"),
         [.. Throws("Finally"), "~throw+", "Shapes.Exceptions.FinallyOuter"]]);

    sealed class Thrown : Exception;

    static readonly Thrown s_thrown = new();

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        for (int i = 0; !Program.Stop; i++)
        {
            Program.Sink += CatchOuter(i) + FinallyOuter(i) + FilterOuter(i);
            Program.Rounds += 3;
        }
    }

    [MethodImpl(No)] static void Throw() => throw s_thrown;
    [MethodImpl(No)] static long Middle(long n) { Throw(); return n; }

    [MethodImpl(No)] static long CatchOuter(long n) => Catch(n) + 1;
    [MethodImpl(No)] static long Catch(long n) { try { return Middle(n); } catch (Thrown) { return LeafCatch(n) + 1; } }

    [MethodImpl(No)] static long FinallyOuter(long n) { try { return Finally(n) + 1; } catch (Thrown) { return 1; } }
    [MethodImpl(No)] static long Finally(long n) { try { return Middle(n); } finally { Program.Sink += LeafFinally(n); } }

    [MethodImpl(No)] static long FilterOuter(long n) => Filter(n) + 1;
    [MethodImpl(No)] static long Filter(long n) { try { return Middle(n); } catch (Thrown) when (LeafFilter(n) != 12345) { return 1; } }

    [MethodImpl(No)] static long LeafCatch(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 8_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; } return (long)x; }
    [MethodImpl(No)] static long LeafFinally(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 8_000; i++) { x ^= x << 12; x ^= x >> 25; x ^= x << 27; } return (long)x; }
    [MethodImpl(No)] static long LeafFilter(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 8_000; i++) { x ^= x << 21; x ^= x >> 35; x ^= x << 4; } return (long)x; }
}

// A method whose handler calls the method again. Each call is a frame, and what threw is none of it any more.
static class Retries
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;
    const int Calls = 5;

    static string[] Called(int times, params string[] more) => ["Shapes.Retries.Root", $"Shapes.Retries.Retry*{times}", .. more];

    public static readonly Mode Mode = new("retries", Root,
        [Called(Calls, "Shapes.Retries.LeafRetry")],
        [.. Enumerable.Range(1, Calls - 1).Select(times => Called(times, "Shapes.Retries.Throw", "~throw+", "Shapes.Retries.Retry"))]);

    sealed class Thrown : Exception;

    static readonly Thrown s_thrown = new();

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        while (!Program.Stop) Program.Sink += Retry(Calls) + 1;
    }

    [MethodImpl(No)] static void Throw() => throw s_thrown;

    [MethodImpl(No)]
    static long Retry(int left)
    {
        try
        {
            if (left > 1) Throw();
            return LeafRetry(left) + 1;
        }
        catch (Thrown)
        {
            return Retry(left - 1) + 1;
        }
    }

    [MethodImpl(No)] static long LeafRetry(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 100_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; } return (long)x; }
}

// Async methods, three deep: called, resumed by the thread pool, and resumed by the end of what they waited for. The start of an async method and its
// state machine have one name; the framework's frames between them come and go with inlining.
static class Asyncs
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("async", Root,
        [["Shapes.Asyncs.Root", "Shapes.Asyncs.One", "~async", "Shapes.Asyncs.One", "Shapes.Asyncs.Two", "~async", "Shapes.Asyncs.Two", "Shapes.Asyncs.Three", "~async",
          "Shapes.Asyncs.Three", "Shapes.Asyncs.LeafBefore"],
         ["Shapes.Asyncs.Three", "Shapes.Asyncs.LeafResumed"],
         ["Shapes.Asyncs.Three", "~async+", "Shapes.Asyncs.Two", "Shapes.Asyncs.LeafOfTwo"],
         ["Shapes.Asyncs.Three", "~async+", "Shapes.Asyncs.Two", "~async+", "Shapes.Asyncs.One", "Shapes.Asyncs.LeafOfOne"]],
        // When what is awaited is over before the waiting was set up.
        [["Shapes.Asyncs.Root", "Shapes.Asyncs.One", "~async", "Shapes.Asyncs.One", "Shapes.Asyncs.Two", "~async", "Shapes.Asyncs.Two", "Shapes.Asyncs.LeafOfTwo"],
         ["Shapes.Asyncs.Root", "Shapes.Asyncs.One", "~async", "Shapes.Asyncs.One", "Shapes.Asyncs.LeafOfOne"],
         ["Shapes.Asyncs.Two", "Shapes.Asyncs.LeafOfTwo"], ["Shapes.Asyncs.Two", "~async+", "Shapes.Asyncs.One", "Shapes.Asyncs.LeafOfOne"],
         ["Shapes.Asyncs.One", "Shapes.Asyncs.LeafOfOne"]],
        Prefix: "any");

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        while (!Program.Stop) Program.Sink += One(1).GetAwaiter().GetResult();
    }

    [MethodImpl(No)] static async Task<long> One(long n) => await Two(n) + LeafOfOne(n);
    [MethodImpl(No)] static async Task<long> Two(long n) => await Three(n) + LeafOfTwo(n);

    [MethodImpl(No)]
    static async Task<long> Three(long n)
    {
        long before = LeafBefore(n);
        await Task.Yield();
        return before + LeafResumed(n);
    }

    [MethodImpl(No)] static long LeafBefore(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 80_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; } return (long)x; }
    [MethodImpl(No)] static long LeafResumed(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 80_000; i++) { x ^= x << 12; x ^= x >> 25; x ^= x << 27; } return (long)x; }
    [MethodImpl(No)] static long LeafOfTwo(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 80_000; i++) { x ^= x << 21; x ^= x >> 35; x ^= x << 4; } return (long)x; }
    [MethodImpl(No)] static long LeafOfOne(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 80_000; i++) { x ^= x << 5; x ^= x >> 15; x ^= x << 27; } return (long)x; }
}

// Native code that calls back, by a function pointer and by a delegate, and native code at the end.
static unsafe class Callbacks
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("callbacks", Root,
        ["Shapes.Callbacks.Root", "Shapes.Callbacks.CallsPointer", "~pinvoke", "shapes_call_pointer", "shapes_inner", "~reverse", "Shapes.Callbacks.Pointer", "Shapes.Callbacks.LeafPointer"],
        ["Shapes.Callbacks.Root", "Shapes.Callbacks.CallsPressed", "~pinvoke", "shapes_call_pressed", "~reverse", "Shapes.Callbacks.Pressed", "Shapes.Callbacks.LeafPressed"],
        ["Shapes.Callbacks.Root", "Shapes.Callbacks.CallsDelegate", "~pinvoke", "shapes_call_delegate", "shapes_inner", "~reverse", "Shapes.Callbacks.Delegated", "Shapes.Callbacks.LeafDelegated"],
        ["Shapes.Callbacks.Root", "Shapes.Callbacks.CallsBurn", "~pinvoke", "shapes_burn", "shapes_middle", "shapes_leaf"]);

    static readonly Native.Callback s_delegate = Delegated;

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        for (long i = 0; !Program.Stop; i++) Program.Sink += CallsPointer(i) + CallsPressed(i) + CallsDelegate(i) + CallsBurn(i);
    }

    [MethodImpl(No)] static long CallsPointer(long n) => Native.shapes_call_pointer(&Pointer, n) + 1;
    [MethodImpl(No)] static long CallsPressed(long n) => Native.shapes_call_pressed(&Pressed, n) + 1;
    [MethodImpl(No)] static long CallsDelegate(long n) => Native.shapes_call_delegate(s_delegate, n) + 1;
    [MethodImpl(No)] static long CallsBurn(long n) => Native.shapes_burn(n) + 1;

    [UnmanagedCallersOnly] static long Pointer(long n) => LeafPointer(n) + 1;
    [UnmanagedCallersOnly] static long Pressed(long n) => LeafPressed(n) + 1;
    [MethodImpl(No)] static long Delegated(long n) => LeafDelegated(n) + 1;

    [MethodImpl(No)] static long LeafPointer(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 8_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; } return (long)x; }
    [MethodImpl(No)] static long LeafPressed(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 8_000; i++) { x ^= x << 12; x ^= x >> 25; x ^= x << 27; } return (long)x; }
    [MethodImpl(No)] static long LeafDelegated(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 8_000; i++) { x ^= x << 21; x ^= x >> 35; x ^= x << 4; } return (long)x; }
}

// A native call without a transition: nothing tells the runtime that the thread is outside.
static class Suppressed
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("suppressed", Root,
        ["Shapes.Suppressed.Root", "Shapes.Suppressed.Calls", "Shapes.Suppressed.Inner", "~pinvoke", "shapes_burn_suppressed", "shapes_leaf_suppressed"]);

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        for (long i = 0; !Program.Stop; i++) Program.Sink += Calls(i);
    }

    [MethodImpl(No)] static long Calls(long n) => Inner(n) + 1;
    [MethodImpl(No)] static long Inner(long n) => Native.BurnSuppressed(n) + 1;
}

// libc's qsort, which keeps other things in the frame pointer's register, with a comparer in C#.
static unsafe class Sorts
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("sorts", Root,
        ["Shapes.Sorts.Root", "Shapes.Sorts.Outer", "Shapes.Sorts.Sort", "~pinvoke", "~libc+", "~reverse", "Shapes.Sorts.Compare", "Shapes.Burner.Burn"],
        ["Shapes.Sorts.Root", "Shapes.Sorts.OuterManaged", "~array-sort+", "Shapes.Sorts.CompareManaged", "Shapes.Sorts.LeafManaged"]);

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        while (!Program.Stop) Program.Sink += Outer() + OuterManaged();
    }

    [MethodImpl(No)] static long Outer() => Sort() + 1;

    [MethodImpl(No)]
    static long Sort()
    {
        int* items = stackalloc int[12] { 5, 3, 8, 1, 9, 2, 7, 4, 6, 12, 11, 10 };
        Native.qsort(items, 12, 4, &Compare);
        return items[0];
    }

    [UnmanagedCallersOnly]
    static int Compare(int* a, int* b)
    {
        Program.Sink += Burner.Burn(*a);
        return *a - *b;
    }

    [MethodImpl(No)]
    static long OuterManaged()
    {
        int[] items = [5, 3, 8, 1, 9, 2, 7, 4, 6, 12, 11, 10];
        Array.Sort(items, s_compare);
        return items[0];
    }

    static readonly Comparison<int> s_compare = CompareManaged;

    [MethodImpl(No)] static int CompareManaged(int a, int b) => a - b + (int)(LeafManaged(a) & 0);
    [MethodImpl(No)] static long LeafManaged(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 8_000; i++) { x ^= x << 12; x ^= x >> 25; x ^= x << 27; } return (long)x; }
}

// A thread that pthread_create made and the runtime hears of when it calls in.
static unsafe class Foreign
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("foreign", Root,
        [["shapes_thread", "shapes_thread_step", "~reverse", "Shapes.Foreign.Enter", "Shapes.Foreign.Inner", "Shapes.Foreign.Leaf"]],
        [["Shapes.Foreign.Root", "~pinvoke", "shapes_join_thread"]]);

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        var stop = (Native.Stop*)NativeMemory.AllocZeroed((nuint)sizeof(Native.Stop));
        if (Native.shapes_start_thread(&Enter, stop) != 0) throw new InvalidOperationException("pthread_create");
        while (!Program.Stop) Thread.Sleep(50);
        Volatile.Write(ref stop->Now, 1);
        Native.shapes_join_thread();
    }

    [UnmanagedCallersOnly] static long Enter(long n) => Inner(n) + 1;
    [MethodImpl(No)] static long Inner(long n) => Leaf(n) + 1;
    [MethodImpl(No)] static long Leaf(long n) { ulong x = (ulong)n | 1; for (int i = 0; i < 8_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; } return (long)x; }
}
