// Throws exceptions of types, and in methods, that are known.
//
//   exceptions
//
// Each line on standard input is a task, and is answered with a line of JSON. The end of the input ends it.
//
//   throw COUNT RATE      so many, of four types in three methods by turns, RATE a second at most; 0: as fast as it can
//   storm SECONDS RATE    the same for so long; the answer says how many
//   kind NAME COUNT       so many of one of Kinds, whose names the first line of the output has
using System.Diagnostics;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;
using System.Text.Json;

namespace Exceptions;

public class OutOfStock : Exception { }
public class Rejected<T> : Exception { }

// Its initializer fails once, and the failure is remembered.
public static class Broken
{
    public static readonly int Value = Program.Zero == 0 ? throw new OutOfStock() : 1;
}

public static class Program
{
    public static int Zero;
    static readonly object Text = "text";
    static readonly int[] Numbers = new int[3];
    static string? nothing = Zero == 0 ? null : "";
    static int sink;

    [DllImport("there_is_no_such_library")]
    static extern void NoSuchFunction();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Order(int number)
    {
        if (number % 2 == 0)
            throw new InvalidOperationException();  // line: Order, InvalidOperationException
        throw new OutOfStock();  // line: Order, OutOfStock
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Pay(int number)
    {
        ++sink;
        throw new Rejected<int>();  // line: Pay, Rejected
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Ship(int number)
    {
        ++sink;
        throw new TimeoutException("late");  // line: Ship, TimeoutException
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ThrowOne(int number)
    {
        switch (number % 4)
        {
            case 0: case 1: Order(number); break;
            case 2: Pay(number); break;
            default: Ship(number); break;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NullReference() { sink += nothing!.Length; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void DivideByZero() { sink = 7 / Zero; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void IndexOutOfRange() { sink = Numbers[Zero + 5]; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void InvalidCast() { sink = ((Version)Text).Major; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Overflow() { sink = checked(int.MaxValue - Zero + 1 + Zero * 2 + (Zero == 0 ? int.MaxValue : 0)); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NegativeArray() { sink = new int[Zero - 1].Length; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ArrayStore() { ((object[])new string[1])[0] = new Version(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NoAssembly() { sink = Assembly.Load("ThereIsNoSuchAssembly").GetHashCode(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NoLibrary() { NoSuchFunction(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Initializer() { sink = Broken.Value; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Rethrown()
    {
        try { throw new OutOfStock(); }
        catch { throw; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void ThrownAgain()
    {
        try { throw new OutOfStock(); }
        catch (OutOfStock e) { Exception same = e; throw same; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Dispatched()
    {
        try { throw new OutOfStock(); }
        catch (OutOfStock e) { ExceptionDispatchInfo.Throw(e); }
    }

    // The second one replaces the first.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Replaced()
    {
        try { throw new OutOfStock(); }
        finally { if (Zero == 0) throw new TimeoutException(); }
    }

    // Thrown and caught while the first one is on its way.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Nested()
    {
        try { throw new OutOfStock(); }
        finally { try { throw new TimeoutException(); } catch (TimeoutException) { } }
    }

    static bool Filter()
    {
        try { throw new TimeoutException(); } catch (TimeoutException) { return true; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Filtered()
    {
        try { throw new OutOfStock(); }
        catch (OutOfStock) when (Filter()) { }
    }

    // Through frames of the runtime itself.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Invoked() { typeof(Program).GetMethod(nameof(Ship), BindingFlags.NonPublic | BindingFlags.Static)!.Invoke(null, [1]); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task Awaited() { await Task.Yield(); throw new OutOfStock(); }

    static readonly Dictionary<string, Action> Kinds = new()
    {
        ["throw"] = () => Pay(1), ["null"] = NullReference, ["divide"] = DivideByZero, ["index"] = IndexOutOfRange, ["cast"] = InvalidCast,
        ["overflow"] = Overflow, ["negative"] = NegativeArray, ["store"] = ArrayStore, ["assembly"] = NoAssembly, ["library"] = NoLibrary,
        ["initializer"] = Initializer, ["rethrown"] = Rethrown, ["again"] = ThrownAgain, ["dispatched"] = Dispatched, ["replaced"] = Replaced,
        ["nested"] = Nested, ["filtered"] = Filtered, ["invoked"] = Invoked, ["awaited"] = () => Awaited().GetAwaiter().GetResult(),
    };

    static void Catch(Action action)
    {
        try { action(); } catch (Exception) { }
    }

    static object Throw(int most, double seconds, double rate)
    {
        var clock = Stopwatch.StartNew();
        int count = 0;
        for (; count < most && clock.Elapsed.TotalSeconds < seconds; ++count)
        {
            try { ThrowOne(count); } catch (Exception) { }
            if (rate > 0 && count / rate - clock.Elapsed.TotalSeconds > 0.002) Thread.Sleep(1);
        }
        return new { count, took = clock.Elapsed.TotalSeconds };
    }

    static object Kind(string name, int count)
    {
        for (int i = 0; i < count; ++i) Catch(Kinds[name]);
        return new { count };
    }

    public static void Main()
    {
        Console.WriteLine(JsonSerializer.Serialize(Kinds.Keys));
        while (Console.ReadLine() is { } line)
        {
            string[] words = line.Split(' ');
            object answer = words[0] switch
            {
                "throw" => Throw(int.Parse(words[1]), double.MaxValue, double.Parse(words[2])),
                "storm" => Throw(int.MaxValue, double.Parse(words[1]), double.Parse(words[2])),
                _ => Kind(words[1], int.Parse(words[2])),
            };
            Console.WriteLine(JsonSerializer.Serialize(answer));
        }
    }
}
