using System.Diagnostics;
using System.Runtime.InteropServices;

namespace Workload;

// The clocks of the profiler: Stopwatch is CLOCK_MONOTONIC on Linux, and thread CPU time is what a cpu-clock event samples.
static unsafe class Clock
{
    const int ThreadCpuTime = 3;   // CLOCK_THREAD_CPUTIME_ID
    const int ProcessCpuTime = 2;  // CLOCK_PROCESS_CPUTIME_ID

    [StructLayout(LayoutKind.Sequential)]
    struct TimeSpec
    {
        public long Seconds;
        public long Nanoseconds;
    }

    [DllImport("libc")]
    static extern int clock_gettime(int clock, TimeSpec* time);

    [DllImport("libc")]
    static extern int gettid();

    // struct rusage: two times of two longs each, then 14 longs, the last of which are the switches, voluntary and not.
    [DllImport("libc")]
    static extern int getrusage(int who, long* usage);

    static long Read(int clock)
    {
        TimeSpec time;
        clock_gettime(clock, &time);
        return time.Seconds * 1_000_000_000 + time.Nanoseconds;
    }

    public static long MonotonicNs() => (long)(Stopwatch.GetTimestamp() * (1e9 / Stopwatch.Frequency));
    public static long ThreadCpuNs() => Read(ThreadCpuTime);
    public static long ProcessCpuNs() => Read(ProcessCpuTime);
    public static int ThreadId() => gettid();

    // How often the calling thread gave up or lost its CPU so far.
    public static long ThreadSwitches()
    {
        const int Thread = 1, Voluntary = 16, Involuntary = 17;
        long* usage = stackalloc long[18];
        getrusage(Thread, usage);
        return usage[Voluntary] + usage[Involuntary];
    }
}
