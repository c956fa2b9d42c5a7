using System.Runtime.CompilerServices;

namespace Workload;

// One thread alternates between three call chains, five methods deep, in bursts of a few milliseconds: about 50, 30 and 20 % of its
// CPU time. The thread's CPU clock around each burst gives the truth. Every method of a chain loops and so keeps a frame pointer.
// AggressiveOptimization compiles it once (an on-stack replacement would cut frame-pointer chains).
static class SplitMode
{
    const MethodImplOptions Once = MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization;

    [MethodImpl(Once)]
    public static void Run(Options options)
    {
        long a = 0, b = 0, c = 0, sum = 0;
        var random = new Random(1);
        options.EndOnTerminate();
        ChainA1(1);
        ChainB1(1);
        ChainC1(1);
        options.Ready();
        while (!options.Over())
        {
            // The length of a round varies by a factor of two, so that no sampling frequency beats with it.
            int steps = random.Next(1_000, 2_000);
            long t0 = Clock.ThreadCpuNs();
            sum += ChainA1(5 * steps);
            long t1 = Clock.ThreadCpuNs();
            sum += ChainB1(3 * steps);
            long t2 = Clock.ThreadCpuNs();
            sum += ChainC1(2 * steps);
            long t3 = Clock.ThreadCpuNs();
            a += t1 - t0;
            b += t2 - t1;
            c += t3 - t2;
        }
        Console.WriteLine($"truth {{\"BurnA\":{a},\"BurnB\":{b},\"BurnC\":{c},\"checksum\":{sum & 1}}}");
    }

    [MethodImpl(Once)] static long ChainA1(int n) { long s = 0; for (int i = 0; i < 2; i++) s += ChainA2(n + i); return s; }
    [MethodImpl(Once)] static long ChainA2(int n) { long s = 0; for (int i = 0; i < 2; i++) s += ChainA3(n + i); return s; }
    [MethodImpl(Once)] static long ChainA3(int n) { long s = 0; for (int i = 0; i < 2; i++) s += ChainA4(n + i); return s; }
    [MethodImpl(Once)] static long ChainA4(int n) { long s = 0; for (int i = 0; i < 2; i++) s += BurnA(n + i); return s; }

    [MethodImpl(Once)] static long ChainB1(int n) { long s = 0; for (int i = 0; i < 2; i++) s += ChainB2(n + i); return s; }
    [MethodImpl(Once)] static long ChainB2(int n) { long s = 0; for (int i = 0; i < 2; i++) s += ChainB3(n + i); return s; }
    [MethodImpl(Once)] static long ChainB3(int n) { long s = 0; for (int i = 0; i < 2; i++) s += ChainB4(n + i); return s; }
    [MethodImpl(Once)] static long ChainB4(int n) { long s = 0; for (int i = 0; i < 2; i++) s += BurnB(n + i); return s; }

    [MethodImpl(Once)] static long ChainC1(int n) { long s = 0; for (int i = 0; i < 2; i++) s += ChainC2(n + i); return s; }
    [MethodImpl(Once)] static long ChainC2(int n) { long s = 0; for (int i = 0; i < 2; i++) s += ChainC3(n + i); return s; }
    [MethodImpl(Once)] static long ChainC3(int n) { long s = 0; for (int i = 0; i < 2; i++) s += ChainC4(n + i); return s; }
    [MethodImpl(Once)] static long ChainC4(int n) { long s = 0; for (int i = 0; i < 2; i++) s += BurnC(n + i); return s; }

    [MethodImpl(Once)]
    static long BurnA(int steps)
    {
        ulong x = (ulong)steps | 1;
        for (int i = 0; i < steps * 20; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x;
    }

    [MethodImpl(Once)]
    static long BurnB(int steps)
    {
        ulong x = (ulong)steps | 1;
        for (int i = 0; i < steps * 20; i++) { x ^= x << 12; x ^= x >> 25; x ^= x << 27; }
        return (long)x;
    }

    [MethodImpl(Once)]
    static long BurnC(int steps)
    {
        ulong x = (ulong)steps | 1;
        for (int i = 0; i < steps * 20; i++) { x ^= x << 21; x ^= x >> 35; x ^= x << 4; }
        return (long)x;
    }
}

// --depth calls of one recursive method with a burner at the bottom.
static class RecurseMode
{
    const MethodImplOptions Once = MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization;

    [MethodImpl(Once)]
    public static void Run(Options options)
    {
        options.Ready();
        long sum = 0, bursts = 0;
        while (!options.Over())
        {
            sum += Recurse(options.Depth, 200_000);
            bursts++;
        }
        Console.WriteLine($"truth {{\"depth\":{options.Depth},\"bursts\":{bursts},\"checksum\":{sum & 1}}}");
    }

    // `left` calls of Recurse are on the stack below the first one, so the burner sees exactly --depth of them.
    [MethodImpl(Once)]
    static long Recurse(int left, int steps)
    {
        long sum = 0;
        for (int i = 0; i < 1 + (steps & 0); i++)
        {
            sum += left > 1 ? Recurse(left - 1, steps) + 1 : BurnDeep(steps);
        }
        return sum;
    }

    [MethodImpl(Once)]
    static long BurnDeep(int steps)
    {
        ulong x = (ulong)steps | 1;
        for (int i = 0; i < steps * 5; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x;
    }
}
