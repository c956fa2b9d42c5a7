using System.Runtime.CompilerServices;

namespace Plugin;

// The text "Gen000000" is a placeholder: the workload's mode `alc` replaces it in the compiled image, at the same length, by the
// number of the generation that it loads. So each generation has methods of its own names.
// Every method loops and calls, so it keeps a frame pointer; AggressiveOptimization compiles it once, on first call.
public static class Gen000000
{
    const MethodImplOptions Once = MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization;

    [MethodImpl(Once)]
    public static long OuterGen000000(int rounds)
    {
        long sum = 0;
        for (int i = 0; i < rounds; i++) sum += MiddleGen000000(i, rounds);
        return sum;
    }

    [MethodImpl(Once)]
    public static long MiddleGen000000(int seed, int rounds)
    {
        long sum = seed;
        for (int i = 0; i < 2; i++) sum ^= InnerGen000000(seed + i, 20_000) + rounds;
        return sum;
    }

    [MethodImpl(Once)]
    public static long InnerGen000000(int seed, int steps)
    {
        ulong x = (ulong)seed | 1;
        for (int i = 0; i < steps; i++)
        {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        return (long)x;
    }
}
