using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Workload;

// A program to compare recordings of: everyday work, and beside it methods of known cost. Only SIGUSR1 changes what it does. One of
// these methods takes --more percent longer from the first one on, and as long as before from the next one on.
static class CompareMode
{
    const int UserSignal1 = 10;
    const int Steps = 30_000;

    static volatile int s_priceSteps = Steps;

    public static void Run(Options options)
    {
        using PosixSignalRegistration onSignal = PosixSignalRegistration.Create((PosixSignal)UserSignal1, context =>
        {
            context.Cancel = true;
            s_priceSteps = s_priceSteps == Steps ? Steps * (100 + options.More) / 100 : Steps;
        });
        // Below a millisecond: the loop that calls this is compiled to its end after a thousand turns. From then on
        // the callers of what is recorded shall stay the same.
        Loops.Run(options, seed => (seed % 3) switch
        {
            0 => Loops.Json(seed, 5),
            1 => Loops.LinqOf(seed, 10),
            _ => Loops.Garbage(seed, 1000),
        } + Price(seed, s_priceSteps) + Tax(seed, Steps / 3) + Ship(seed, Steps / 3));
    }

    // The one that is made slower. None of them is inlined: it would appear under its caller's name.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Price(int seed, int steps)
    {
        ulong x = (ulong)seed | 1;
        for (int i = 0; i < steps; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x & 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Tax(int seed, int steps)
    {
        ulong x = (ulong)seed | 1;
        for (int i = 0; i < steps; i++) { x ^= x << 11; x ^= x >> 5; x ^= x << 19; }
        return (long)x & 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Ship(int seed, int steps)
    {
        ulong x = (ulong)seed | 1;
        for (int i = 0; i < steps; i++) { x ^= x << 9; x ^= x >> 11; x ^= x << 21; }
        return (long)x & 1;
    }
}
