using System.Reflection.Emit;

namespace Workload;

// Collects, or compiles, without end and does nothing else: what a program may cost who watches it. Truth: how often, and how long
// the longest of them took.
static class FloodMode
{
    public static void RunCollections(Options options) => Run(options, () => GC.Collect(0, GCCollectionMode.Forced, blocking: true));

    public static void RunCompilations(Options options)
    {
        int number = 0;
        Run(options, () =>
        {
            var method = new DynamicMethod($"Flood{number++}", typeof(int), [], typeof(FloodMode).Module, skipVisibility: true);
            ILGenerator il = method.GetILGenerator();
            il.Emit(OpCodes.Ldc_I4, number);
            il.Emit(OpCodes.Ret);
            method.CreateDelegate<Func<int>>()();
        });
    }

    static void Run(Options options, Action act)
    {
        options.EndOnTerminate();
        options.Ready();
        long times = 0, longest = 0;
        for (; !options.Over(); times++)
        {
            long begin = Clock.MonotonicNs();
            act();
            longest = Math.Max(longest, Clock.MonotonicNs() - begin);
        }
        Console.WriteLine($"truth {{\"times\":{times},\"longest_ns\":{longest}}}");
    }
}
