using System.Collections;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Zoo;

public interface ICounter<in T>
{
    int Count(T t);
    int Twice(T t) => 2 * Count(t);  // a default implementation, compiled once per shape of T
}

// Explicit implementations carry the interface's whole text, with commas, in their names.
public class Counter : ICounter<int>, ICounter<Dictionary<string, List<int>>>, IEnumerable<KeyValuePair<string, int>>
{
    public static long Finalized;

    [MethodImpl(MethodImplOptions.NoInlining)]
    int ICounter<int>.Count(int t) => t + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    int ICounter<Dictionary<string, List<int>>>.Count(Dictionary<string, List<int>> t) => t.Count;

    IEnumerator<KeyValuePair<string, int>> IEnumerable<KeyValuePair<string, int>>.GetEnumerator()
    {
        for (int i = 0; i < 3; i++) yield return new($"k{i}", i);
    }

    IEnumerator IEnumerable.GetEnumerator() => ((IEnumerable<KeyValuePair<string, int>>)this).GetEnumerator();

    public int this[int i, string s]
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        get => i + s.Length;
        [MethodImpl(MethodImplOptions.NoInlining)]
        set => Finalized ^= value & 1;
    }

    ~Counter() => Finalized++;
}

public static class Größe<Typ>
{
    static readonly int s_länge = typeof(Typ).Name.Length;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Zähle(int ñ) => ñ + s_länge;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int 数える<Ⅷ>(int Δ) => Δ + typeof(Ⅷ).Name.Length;
}

file static class OnlyInThisFile
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static int Hidden(int i) => i ^ 5;
}

public static class Shapes
{
    [DllImport("libc")] static extern int getpid();
    [DllImport("libc")] static extern int setenv([MarshalAs(UnmanagedType.LPUTF8Str)] string name, string value, int overwrite);
    [DllImport("libc")] static extern unsafe void qsort(int* items, nint count, nint bytes, delegate* unmanaged<int*, int*, int> compare);
    [DllImport("libc", EntryPoint = "qsort")] static extern void SortBy(int[] items, nint count, nint bytes, Compare compare);
    [DllImport("libc", SetLastError = true)] static extern int close(int descriptor);

    delegate int Compare(ref int a, ref int b);

    static readonly Compare s_compare = Descending;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Descending(ref int a, ref int b) => b - a;

    [UnmanagedCallersOnly]
    static unsafe int Ascending(int* a, int* b) => *a - *b;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe int Through(delegate*<int, int> function) => function(3);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Square(int x) => x * x;

    static unsafe int Native(int i)
    {
        int* items = stackalloc int[4] { 3, i, 1, 2 };
        qsort(items, 4, sizeof(int), &Ascending);
        int[] others = [1, 5, i];
        SortBy(others, others.Length, sizeof(int), s_compare);
        return getpid() + setenv("CLRSAMPLER_ZOO", "b", 1) + Through(&Square) + items[0] + others[0] + close(-1);
    }

    // The accessors of such arrays have no metadata: the runtime makes them up.
    static int Arrays(int i)
    {
        var numbers = new int[3, 4];
        var texts = new string[2, 2, 2];
        object boxed = new long[2, 2];
        numbers[1, 2] = i;
        texts[1, 1, 1] = "x" + i;
        ref int place = ref numbers[1, 2];
        ref string text = ref texts[1, 1, 1];
        ((Array)numbers).SetValue(3, 1, 1);
        var jagged = new int[2][,];
        jagged[1] = numbers;
        object created = Activator.CreateInstance(typeof(short[,]), 2, 3)!;
        return numbers[1, 2] + texts[1, 1, 1].Length + place + text.Length + ((long[,])boxed).Rank + jagged[1][1, 1] + ((Array)created).Length;
    }

    static IEnumerable<T> Repeat<T>(T value, int count)
    {
        for (int i = 0; i < count; i++) yield return value;
    }

    static async IAsyncEnumerable<int> Numbers(int count)
    {
        for (int i = 0; i < count; i++)
        {
            await Task.Yield();
            yield return i;
        }
    }

    static async Task<T> Later<T>(T value, int rounds)
    {
        for (int i = 0; i < rounds; i++) await Task.Yield();
        return value;
    }

    static async ValueTask<int> Sum(int count)
    {
        int sum = await Later("text", 1) is { Length: 4 } ? 1 : 0;
        await foreach (int n in Numbers(count)) sum += n;
        return sum + await Later(count, 2);
    }

    static int Functions<T>(T seed, int i)
    {
        int Local(int x) => x + i + typeof(T).Name.Length;
        static U Free<U>(U u) => u;
        Func<int, int> closure = x => Local(x) + (seed == null ? 1 : 2);
        Func<T, int> shared = static t => t == null ? 1 : 2;
        var anonymous = new { Seed = seed, Number = i, Text = "t" };
        return closure(1) + shared(seed) + Free(i) + Free("f").Length + anonymous.GetHashCode() % 2 + (anonymous.Equals(null) ? 1 : 0);
    }

    // Long enough in one call to be replaced on the stack (OSR).
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int LongLoop(int count)
    {
        int sum = 0;
        for (int i = 0; i < count; i++)
        {
            sum += i ^ (sum >> 3);
            if ((i & 0xffff) == 0) sum += Square(i);
        }
        return sum;
    }

    static int Thrown(int i)
    {
        try
        {
            if (i % 200 == 0) throw new InvalidOperationException("for the funclets");
            return i;
        }
        catch (InvalidOperationException e) when (e.Message.Length > 3)
        {
            return e.Message.Length;
        }
        finally
        {
            Counter.Finalized ^= 2;
        }
    }

    public static int Round(int i)
    {
        var counter = new Counter { [1, "a"] = i };
        ICounter<int> numbers = counter;
        ICounter<Dictionary<string, List<int>>> lists = counter;
        int sum = numbers.Count(i) + numbers.Twice(i) + lists.Count([]) + lists.Twice([]) + counter[2, "b"];
        foreach (KeyValuePair<string, int> pair in (IEnumerable<KeyValuePair<string, int>>)counter) sum += pair.Key.Length + pair.Value;
        foreach (string s in Repeat("r", 3)) sum += s.Length;
        foreach ((int, string) p in Repeat((1, "r"), 3)) sum += p.Item1;
        sum += Größe<int>.Zähle(i) + Größe<string>.Zähle(i) + Größe<Colour>.数える<string>(i) + Größe<string>.数える<long>(i);
        sum += OnlyInThisFile.Hidden(i) + Functions("s", i) + Functions(i, i) + Native(i) + Arrays(i) + Thrown(i);
        if (i % 512 == 0) sum += LongLoop(2_000_000);
        if (i % 16 == 0) sum += Sum(5).AsTask().GetAwaiter().GetResult();
        return sum;
    }
}

public static class Exhibits
{
    // One round past everything; the workload calls it in each copy of this assembly that it has loaded.
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Round(int i) => Generics.Round(i) + Shapes.Round(i);
}
