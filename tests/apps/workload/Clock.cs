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
}
