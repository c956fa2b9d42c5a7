// Prints what the runtime itself says of the frames of its stacks, then `ready PID`, and waits to be ended. A line for each frame:
//   TOKEN NATIVE IL TYPE
// The token of its method and two offsets, in hexadecimal, and the method's type. The native offset is that of a return address.
using System.Diagnostics;
using System.Globalization;
using System.Reflection;
using System.Runtime.CompilerServices;

namespace IlOffsets;

static class Program
{
    static int s_sink;

    static async Task<int> Main()
    {
        Calls(3);
        Handlers();
        foreach (int value in Iterator(3)) s_sink += value;
        Array.Sort(new[] { 3, 1, 2 }, (a, b) => { Print(); return a - b; });
        s_sink += Enumerable.Range(0, 3).Where(x => { Print(); return x > 0; }).Select(x => Twice(x)).ToList().Count;
        new Dictionary<Key, int> { [new Key(1)] = 1 }.TryGetValue(new Key(1), out s_sink);
        await Awaits();
        var thread = new Thread(() => Returns(2));
        thread.Start();
        thread.Join();
        Parallel.For(0, 2, i => Returns(i));
        typeof(Program).GetMethod(nameof(Reflected), BindingFlags.NonPublic | BindingFlags.Static)!.Invoke(null, [5]);
        Console.WriteLine($"ready {Environment.ProcessId}");
        Console.Out.Flush();
        Thread.Sleep(TimeSpan.FromMinutes(2));
        return 0;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Print()
    {
        foreach (StackFrame frame in new StackTrace().GetFrames())
        {
            MethodBase? method = frame.GetMethod();
            if (method?.DeclaringType is not { } type || frame.GetILOffset() < 0) continue;
            // As the runtime's events name a type: without its arguments.
            string name = (type.IsGenericType ? type.GetGenericTypeDefinition() : type).FullName!;
            Console.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{method.MetadataToken:x} {frame.GetNativeOffset():x} {frame.GetILOffset():x} {name}"));
        }
    }

    // Calls in a loop, in arguments and in conditions.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Calls(int depth)
    {
        int sum = 0;
        for (int i = 0; i < depth; ++i)
        {
            sum += Twice(i) + (i == 1 ? Twice(Twice(i)) : depth);
            if (Twice(i) > 2 && depth > 0) sum += Calls(depth - 1);
        }
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Twice(int value)
    {
        Print();
        return 2 * value;
    }

    // Several returns, of which each has an epilog.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Returns(int value)
    {
        if (value == 0) return Twice(1);
        if (value == 1)
        {
            Print();
            return 5;
        }
        Print();
        return value > 2 ? Twice(2) : Twice(3) + 1;
    }

    // Filters, handlers and finally blocks, nested.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Handlers()
    {
        try
        {
            try
            {
                Print();
                throw new InvalidOperationException(Twice(1).ToString(CultureInfo.InvariantCulture));
            }
            catch (InvalidOperationException e) when (Twice(e.Message.Length) == 0)
            {
                s_sink = 1;
            }
            finally
            {
                Print();
            }
        }
        catch (InvalidOperationException)
        {
            Print();
            try
            {
                Print();
            }
            finally
            {
                Twice(2);
            }
        }
    }

    static IEnumerable<int> Iterator(int count)
    {
        for (int i = 0; i < count; ++i)
        {
            Print();
            yield return Twice(i);
        }
    }

    static async Task Awaits()
    {
        Print();
        await Task.Yield();
        Print();
        await Task.Delay(1);
        s_sink += Twice(1);
    }

    static int Reflected(int value) => Twice(value) + Twice(value + 1);

    sealed class Key(int value)
    {
        public override int GetHashCode()
        {
            Print();
            return value;
        }
        public override bool Equals(object? other) => Twice(other is Key ? 1 : 0) == 2;
    }
}
