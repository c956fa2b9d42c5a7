// Methods of each kind that takes no part in tiering, and ordinary ones. All of them have run when it is ready.
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Untiered;

public struct Pair
{
    public int First, Second;
}

public class Box<T>(T value)
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public T Get() => value;
}

public static class Program
{
    [DllImport("libc")]
    private static extern IntPtr getenv(string name);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Plain(int x) => x + 1;

    [MethodImpl(MethodImplOptions.NoOptimization)]
    public static int NotOptimised(int x) => x + 2;

    [MethodImpl(MethodImplOptions.NoOptimization)]
    public static T Generic<T>(T x) => x;

    [MethodImpl(MethodImplOptions.AggressiveOptimization)]
    public static int AtOnce(int x) => x + 3;

    private static Func<int, int> Emitted(int number)
    {
        var method = new DynamicMethod($"Emitted{number}", typeof(int), [typeof(int)]);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Func<int, int>>();
    }

    public static void Main()
    {
        var grid = new Pair[3, 3];
        grid[1, 1] = new Pair { First = Plain(1), Second = NotOptimised(AtOnce(2)) };
        int sum = grid[1, 1].First + new Box<Pair>(grid[1, 1]).Get().Second + new Box<string>("x").Get().Length;
        sum += Generic(7) + Generic("text").Length + (getenv("PATH") == 0 ? 1 : 0);
        // .NET 11 writes its perf map in blocks. These lines push those of the methods above out.
        for (int i = 0; i < 200; ++i) sum += Emitted(i)(i);
        Console.WriteLine($"ready {Environment.ProcessId} {sum}");
        Thread.Sleep(Timeout.Infinite);
    }
}
