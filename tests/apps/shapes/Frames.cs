using System.Runtime.CompilerServices;

namespace Shapes;

// Each method has a frame pointer, because it calls in a loop, and is compiled once: what plain frame-pointer chains show whole.
static class Framed
{
    const MethodImplOptions Once = MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization;

    public static readonly Mode Mode = new("framed", Root,
        ["Shapes.Framed.Root", "Shapes.Framed.One", "Shapes.Framed.Two", "Shapes.Framed.Three", "Shapes.Framed.Four", "Shapes.Framed.Leaf"]);

    [MethodImpl(Once)] static void Root() { for (int i = 0; !Program.Stop; i++) Program.Sink += One(i); }
    [MethodImpl(Once)] static long One(int n) { long s = 0; for (int i = 0; i < 2; i++) s += Two(n + i); return s; }
    [MethodImpl(Once)] static long Two(int n) { long s = 0; for (int i = 0; i < 2; i++) s += Three(n + i); return s; }
    [MethodImpl(Once)] static long Three(int n) { long s = 0; for (int i = 0; i < 2; i++) s += Four(n + i); return s; }
    [MethodImpl(Once)] static long Four(int n) { long s = 0; for (int i = 0; i < 2; i++) s += Leaf(n + i); return s; }

    [MethodImpl(Once)]
    static long Leaf(int n)
    {
        ulong x = (ulong)n | 1;
        for (int i = 0; i < 8_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x;
    }
}

// Methods so small that the instruction pointer is mostly in a prologue, an epilogue, at a call or at a return.
static class Tiny
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("tiny", Root,
        ["Shapes.Tiny.Root", "Shapes.Tiny.One", "Shapes.Tiny.Two", "Shapes.Tiny.Leaf"],
        ["Shapes.Tiny.Root", "Shapes.Tiny.Saves", "Shapes.Tiny.LeafOfSaves"],
        ["Shapes.Tiny.Root", "Shapes.Tiny.Loops", "Shapes.Tiny.LeafOfLoops"]);

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        long sum = 0;
        for (int i = 0; !Program.Stop; i++) sum += One(i) + Saves(i, (int)sum, 3, 7) + Loops(i);
        Program.Sink += sum;
    }

    [MethodImpl(No)] static int One(int x) => Two(x) + Two(x + 1);
    [MethodImpl(No)] static int Two(int x) => Leaf(x) + 1;
    [MethodImpl(No)] static int Leaf(int x) => x * 3 + 1;

    [MethodImpl(No)]
    static int Saves(int a, int b, int c, int d)
    {
        int s = LeafOfSaves(a) ^ LeafOfSaves(b);
        s += LeafOfSaves(c) * a;
        s ^= LeafOfSaves(d) * b;
        return s + c + d;
    }

    [MethodImpl(No)] static int LeafOfSaves(int x) => x * 5 + 2;

    [MethodImpl(No)] static int Loops(int n) { int s = 0; for (int i = 0; i < 3; i++) s += LeafOfLoops(n + i); return s; }
    [MethodImpl(No)] static int LeafOfLoops(int x) => x * 7 + 3;
}

// 1,000 calls of one method, and 600 of two that call each other.
static class Recursion
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("recursion", Root,
        ["Shapes.Recursion.Root", "Shapes.Recursion.Deep*1000", "Shapes.Recursion.LeafDeep"],
        ["Shapes.Recursion.Root", .. Enumerable.Repeat((string[])["Shapes.Recursion.Even", "Shapes.Recursion.Odd"], 300).SelectMany(x => x),
         "Shapes.Recursion.LeafMutual"]);

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        while (!Program.Stop) Program.Sink += Deep(1000) + Even(300);
    }

    // `left` calls of itself are on the stack below the first one.
    [MethodImpl(No)] static long Deep(int left) => (left > 1 ? Deep(left - 1) : LeafDeep(left)) + 1;
    [MethodImpl(No)] static long Even(int left) => Odd(left) + 1;
    [MethodImpl(No)] static long Odd(int left) { int a = left * 3, b = left ^ 5; long s = left > 1 ? Even(left - 1) : LeafMutual(left); return s + a * b; }

    [MethodImpl(No)]
    static long LeafDeep(int n)
    {
        ulong x = (ulong)n | 1;
        for (int i = 0; i < 200_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x;
    }

    [MethodImpl(No)]
    static long LeafMutual(int n)
    {
        ulong x = (ulong)n | 1;
        for (int i = 0; i < 200_000; i++) { x ^= x << 12; x ^= x >> 25; x ^= x << 27; }
        return (long)x;
    }
}

// Large frames, which probe the stack page by page, and large structs handed over by value and returned.
static unsafe class Structs
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("structs", Root,
        ["Shapes.Structs.Root", "Shapes.Structs.Pages20", "Shapes.Structs.Page", "Shapes.Structs.LeafPages"],
        ["Shapes.Structs.Root", "Shapes.Structs.Gives", "Shapes.Structs.Takes", "Shapes.Structs.Returns", "Shapes.Structs.LeafValues"]);

    struct Big { public fixed byte At[20_000]; }
    struct Medium { public fixed byte At[2_000]; }
    struct Value { public long A, B, C, D, E, F, G, H, I; }

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        for (int i = 0; !Program.Stop; i++) Program.Sink += Pages20(i) + Gives(i);
    }

    [MethodImpl(No)] static long Pages20(int n) { Big big; big.At[n & 4095] = 3; return Page(n) + big.At[n & 4095]; }
    [MethodImpl(No)] static long Page(int n) { Medium medium; medium.At[n & 1023] = 1; return LeafPages(n) + medium.At[n & 1023]; }

    [MethodImpl(No)] static long Gives(int n) { Value v = default; v.A = n; v.I = n + 1; return Takes(v, n, v) + v.B; }
    [MethodImpl(No)] static long Takes(Value v, int n, Value w) { Value r = Returns(n, v); return r.A + w.I + v.H; }
    [MethodImpl(No)] static Value Returns(int n, Value v) { v.C += LeafValues(n); v.H = n; return v; }

    [MethodImpl(No)]
    static long LeafPages(int n)
    {
        ulong x = (ulong)n | 1;
        for (int i = 0; i < 20_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x;
    }

    [MethodImpl(No)]
    static long LeafValues(int n)
    {
        ulong x = (ulong)n | 1;
        for (int i = 0; i < 20_000; i++) { x ^= x << 12; x ^= x >> 25; x ^= x << 27; }
        return (long)x;
    }
}

// stackalloc of 8 bytes to 100 KiB, twice in a row and with a caller that has no frame pointer.
static unsafe class Locallocs
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("localloc", Root,
        ["Shapes.Locallocs.Root", "Shapes.Locallocs.Plain", "Shapes.Locallocs.Allocates", "Shapes.Locallocs.Between", "Shapes.Locallocs.AllocatesAgain",
         "Shapes.Locallocs.Leaf"]);

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        int bytes = 8;
        while (!Program.Stop)
        {
            Program.Sink += Plain(bytes);
            bytes = (bytes * 5 + 40) % (100 << 10) + 8;
        }
    }

    [MethodImpl(No)] static long Plain(int bytes) => Allocates(bytes) + 1;
    [MethodImpl(No)] static long Allocates(int bytes) { byte* p = stackalloc byte[bytes]; p[bytes - 1] = 1; return Between(bytes) + p[bytes - 1]; }
    [MethodImpl(No)] static long Between(int bytes) => AllocatesAgain(bytes >> 1) + 1;
    [MethodImpl(No)] static long AllocatesAgain(int bytes) { byte* p = stackalloc byte[bytes + 1]; p[bytes] = 1; return Leaf(bytes) + p[bytes]; }

    [MethodImpl(No)]
    static long Leaf(int n)
    {
        ulong x = (ulong)n | 1;
        for (int i = 0; i < 20_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x;
    }
}

// Tier-0 methods that are called once and never return: on-stack replacement. Several of them lie in one stack.
static unsafe class Osr
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("osr", Root,
        ["Shapes.Osr.Root", "Shapes.Osr.Outer", "Shapes.Osr.OuterLoop", "Shapes.Osr.Middle", "Shapes.Osr.InnerLoop", "Shapes.Osr.BeforeLeaf",
         "Shapes.Osr.Leaf"]);

    struct Words { public fixed int At[16]; }

    [MethodImpl(No)] static void Root() => Program.Sink += Outer(1);
    [MethodImpl(No)] static long Outer(int n) => OuterLoop(n, 1, 2, 3, 4, 5, 6, 7) + 1;

    // Many live values and a local whose address is known elsewhere. Turns without a call come first, so that it is replaced early.
    [MethodImpl(No)]
    static long OuterLoop(int n, int a, int b, int c, int d, int e, int f, int g)
    {
        Words words = default;
        long s = 0;
        Touch(ref words);
        for (int i = 0; !Program.Stop; i++)
        {
            words.At[i & 15] = i;
            if (i > 200_000) s += Middle(i);
            s += a * b + c * d + e * f + g + words.At[a & 15];
            a++;
            c += b;
            e ^= d;
            f += g;
        }
        return s;
    }

    [MethodImpl(No)] static void Touch(ref Words words) => words.At[3] = 7;
    [MethodImpl(No)] static long Middle(int n) => InnerLoop(n) + 1;

    // Called again and again, replaced in most of its calls until the next tier takes its place.
    [MethodImpl(No)] static long InnerLoop(int n) { long s = 0; for (int i = 0; i < 300_000; i++) s += i > 299_900 ? BeforeLeaf(n + i) : i ^ n; return s; }
    [MethodImpl(No)] static long BeforeLeaf(int n) => Leaf(n) + 1;

    [MethodImpl(No)]
    static long Leaf(int n)
    {
        ulong x = (ulong)n | 1;
        for (int i = 0; i < 8_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x;
    }
}
