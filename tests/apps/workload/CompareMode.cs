using System.Runtime.CompilerServices;

namespace Workload;

// A program to compare two recordings of: everyday work, and beside it a method that takes as many percent longer as --more says. A unit
// has the same work in it each time, so that two recordings of the same program differ by chance alone.
static class CompareMode
{
    public static void Run(Options options)
    {
        int steps = 300_000 * (100 + options.More) / 100;
        Loops.Run(options, seed => Loops.Json(seed) + Loops.RegexMatch(seed) + Loops.Linq(seed) + Price(seed, steps) + Tax(seed));
    }

    // The one that is made slower. Never inlined: it would appear under its caller's name in one recording and not in the other.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Price(int seed, int steps)
    {
        ulong x = (ulong)seed | 1;
        for (int i = 0; i < steps; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x & 1;
    }

    // Its like, which stays as it is.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Tax(int seed)
    {
        ulong x = (ulong)seed | 1;
        for (int i = 0; i < 300_000; i++) { x ^= x << 11; x ^= x >> 5; x ^= x << 19; }
        return (long)x & 1;
    }
}
