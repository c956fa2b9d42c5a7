using System.Runtime.InteropServices;

namespace Shapes;

// tests/apps/shapes_native: C without frame pointers.
static unsafe partial class Native
{
    public const string Library = "shapes_native";

    [DllImport(Library)] public static extern long shapes_call_pointer(delegate* unmanaged<long, long> function, long n);
    [DllImport(Library)] public static extern long shapes_call_pressed(delegate* unmanaged<long, long> function, long n);
    [DllImport(Library)] public static extern long shapes_call_delegate(Callback function, long n);
    [DllImport(Library)] public static extern long shapes_burn(long n);
    [DllImport(Library, EntryPoint = "shapes_burn_suppressed"), SuppressGCTransition] public static extern long BurnSuppressed(long n);
    [DllImport(Library)] public static extern int shapes_start_thread(delegate* unmanaged<long, long> function, Stop* stop);
    [DllImport(Library)] public static extern void shapes_join_thread();

    [DllImport("libc")] public static extern void qsort(int* items, nint count, nint size, delegate* unmanaged<int*, int*, int> compare);

    public struct Stop { public int Now; }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate long Callback(long n);
}
