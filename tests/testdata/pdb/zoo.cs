// Shapes of methods whose lines are not simply one after the other. Nothing of it is ever run.
using System;
using System.Collections.Generic;
using System.Threading.Tasks;

namespace Zoo;

public class Box<T>
{
    readonly T held;
    readonly List<T> others = new();
    public Box(T value) { held = value; }
    public int Deep<U>(U other, int depth)
    {
        if (depth > 0)
        {
            int below =
                Deep(other,
                     depth - 1);
            return below + 1;
        }
        return others.Count;
    }
    public override string ToString() => $"{held}";
}

public static class Shapes
{
    public static async Task<int> Async(int count)
    {
        int sum = 0;
        for (int i = 0; i < count; i++)
        {
            await Task.Yield();
            sum += i;
        }
        return sum;
    }
    public static async IAsyncEnumerable<int> AsyncIterator(int count)
    {
        for (int i = 0; i < count; i++)
        {
            if (i % 7 == 0) await Task.Yield();
            yield return i;
        }
    }
    public static IEnumerable<int> Iterator(string text)
    {
        yield return 1;
        try
        {
            yield return text.Length;
        }
        finally { Console.WriteLine("end"); }
    }
    public static int Lambdas(int[] values)
    {
        int captured = 4;
        Func<int, int> outer = x =>
        {
            Func<int, int> inner = y => y + captured;
            return inner(x) * 2;
        };
        return Array.FindIndex(values, v => outer(v) > 3);
    }
    public static int LocalFunctions(int n)
    {
        return Fibonacci(n) + Twice(n);
        static int Fibonacci(int k)
        {
            if (k < 2) return k;
            return Fibonacci(k - 1) + Fibonacci(k - 2);
        }
        int Twice(int k) => k + n;
    }
    public static int Mapped(string text)
    {
        int value = 1;
#line 4000 "mapped_file.txt"
        value += text.Length;
        Console.WriteLine(value);
#line hidden
        value += text.Length * 2;
        GC.KeepAlive(value);
#line 12 "other/Grammatik_für.y"
        value++;
#line 3 "C:\windows\style.rl"
        value--;
#line default
        return value;
    }
    public static int Handlers(string text)
    {
        try
        {
            return int.Parse(text);
        }
        catch (FormatException e) when (e.Message.Length > 3)
        {
            return -1;
        }
        finally
        {
            Console.WriteLine(text);
        }
    }
    public static string Switch(object value) => value switch
    {
        int i when i > 3 => "large",
        string { Length: > 2 } s => s,
        null => "nothing",
        _ => Join(
            "a",
            "b"),
    };
    static string Join(string a, string b) { lock (a) { return a + b; } }
    public static void Loops(Span<int> values)
    {
        foreach (ref int value in values) value *= 2;
        foreach (string s in new[] { "a", "b" })
            Console.WriteLine(s);
        using var stream = new System.IO.MemoryStream();
        do stream.WriteByte(1); while (stream.Length < 10);
    }
#line hidden
    public static void OnlyHidden() { Console.WriteLine(); }
#line default
    public static void Empty() { }
    public static extern void NoBody();
}
