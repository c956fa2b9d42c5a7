using System.Numerics;
using System.Reflection.Emit;
using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Workload;

// Has methods of every kind compiled, and counts them. Truth: by how many JitInfo.GetCompiledMethodCount has grown, and the exceptions that
// passed through the compiler.
static class CompileMode
{
    public static void Run(Options options)
    {
        long before = Settle();  // itself compiled
        using var begin = new Begin(options);
        before = Settle();
        long from = Clock.MonotonicNs();
        long sum = 0;
        for (int i = 0; i < 40_000; i++) sum += Work(i);
        sum += Generics() + Dynamic() + Spin(3_000_000) + Native();
        int thrown = Missing();
        long after = Settle();
        Begin.Tell(options, $"{{\"begin_ns\":{from},\"end_ns\":{Clock.MonotonicNs()},\"compiled\":{after - before},\"thrown\":{thrown},\"checksum\":{sum & 1}}}");
    }

    // Until the compiler's own thread has nothing left to do.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static long Settle()
    {
        long count = -1, now = JitInfo.GetCompiledMethodCount(currentThread: false);
        for (int quiet = 0; quiet < 12; quiet = now == count ? quiet + 1 : 0)
        {
            count = now;
            Thread.Sleep(50);
            now = JitInfo.GetCompiledMethodCount(currentThread: false);
        }
        return now;
    }

    // Called often enough for every tier.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Work(int i) => Even(i) ? Triple(i) : Text(i).Length;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Even(int i) => i % 2 == 0;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Triple(int i) => 3L * i;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static string Text(int i) => i % 100 < 50 ? "low" : "high";

    // One call with a loop: replaced on the stack.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Spin(int rounds)
    {
        long sum = 0;
        for (int i = 0; i < rounds; i++) sum = sum * 31 + i;
        return sum;
    }

    struct Cell<T> where T : struct, INumber<T>
    {
        public T Value;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public T Add(T other) => Value += other;
    }

    static long Generics()
    {
        return new Cell<byte> { Value = 1 }.Add(2) + new Cell<short> { Value = 1 }.Add(2) + new Cell<int> { Value = 1 }.Add(2) +
               new Cell<long> { Value = 1 }.Add(2) + (long)new Cell<float> { Value = 1 }.Add(2) + (long)new Cell<double> { Value = 1 }.Add(2) +
               Of<string>() + Of<object>() + Of<Guid>() + Of<DateTime>() + Of<(int, string)>();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Of<T>() => new List<T> { default! }.Count;

    static long Dynamic()
    {
        long sum = 0;
        for (int i = 0; i < 50; i++) sum += Loops.JitMethods(i);
        return sum;
    }

    // A stub with marshalling.
    [DllImport("libc", EntryPoint = "strlen")]
    static extern nint Length(string text);

    static long Native() => Length("four");

    // Methods that the compiler can't compile: what they need is not there, and the exception passes through it.
    static int Missing()
    {
        int thrown = 0;
        for (int i = 0; i < 3; i++)
        {
            var method = new DynamicMethod($"Broken{i}", typeof(int), Type.EmptyTypes, typeof(CompileMode).Module, skipVisibility: true);
            ILGenerator il = method.GetILGenerator();
            il.Emit(OpCodes.Add);  // nothing is on the stack
            il.Emit(OpCodes.Ret);
            try
            {
                method.CreateDelegate<Func<int>>()();
            }
            catch (InvalidProgramException)
            {
                thrown++;
            }
        }
        return thrown;
    }
}
