// Memory of a file that has to be read from the disk.
using System.Diagnostics;
using System.IO.MemoryMappedFiles;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Waits;

public static unsafe class PageFaults
{
    const int PageBytes = 4096, Random = 1;

    [DllImport("libc", SetLastError = true)]
    static extern int madvise(byte* address, nuint bytes, int advice);

    // Far apart, so that reading one page does not bring the next ones.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int TouchesPages(byte* begin, long bytes)
    {
        int sum = 0;
        for (long at = 0; at < bytes; at += 64 * PageBytes) sum += begin[at];
        return sum;
    }

    public static long Run(string path)
    {
        using var file = MemoryMappedFile.CreateFromFile(path, FileMode.Open, null, 0, MemoryMappedFileAccess.Read);
        using var view = file.CreateViewAccessor(0, 0, MemoryMappedFileAccess.Read);
        byte* begin = null;
        view.SafeMemoryMappedViewHandle.AcquirePointer(ref begin);
        long bytes = new FileInfo(path).Length;
        if (madvise(begin, (nuint)bytes, Random) != 0) throw new InvalidOperationException("madvise");
        long began = Stopwatch.GetTimestamp();
        GC.KeepAlive(TouchesPages(begin, bytes));
        long ticks = Stopwatch.GetTimestamp() - began;
        view.SafeMemoryMappedViewHandle.ReleasePointer();
        return (long)(ticks * 1e9 / Stopwatch.Frequency);
    }
}
