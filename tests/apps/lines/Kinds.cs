using System.Runtime.CompilerServices;

namespace Lines;

// Kinds of code whose hot line is known: `// hot: METHOD` marks it. Each runs for ever in a thread of its own.
static class Kinds
{
    const int Rounds = 2000;

    public static void Start()
    {
        Action[] kinds =
        [
            () => Ordinary(Rounds), () => Among(Rounds), () => Replaced(int.MaxValue), () => Awaiting(100 * Rounds).GetAwaiter().GetResult(),
            () => Iterate(), () => Lambda(Rounds), () => Mapped(Rounds), () => SharedKind<string>.Shared(Rounds),
            () => ValueKind<int>.OfStruct(Rounds), () => Inlining(Rounds),
        ];
        foreach (Action kind in kinds)
        {
            new Thread(() => Repeat(kind)) { IsBackground = true }.Start();
        }
    }

    static void Repeat(Action kind)
    {
        for (;;) kind();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Ordinary(int count)
    {
        double value = count;
        while (--count > 0) value = value / 1.0001 + count % 7 + value / 3.7 + count % 11; // hot: Ordinary
        value -= 1;
        return value;
    }

    // The line stands between others that the loop runs as often. Its divisions wait for each other.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Among(int count)
    {
        double value = count;
        int cheap = 0;
        for (int i = 1; i < count; ++i)
        {
            value = i + value / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d / 3d; // hot: Among
            cheap += i;
        }
        return value + cheap;
    }

    // Called once, so that its code can only be replaced while it runs.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Replaced(int count)
    {
        double value = count;
        for (;;)
        {
            while (--count > 0) value = value / 1.0001 + count % 7 + value / 3.7 + count % 11; // hot: Replaced
            count = Rounds;
        }
    }

    static async Task<double> Awaiting(int count)
    {
        await Task.Yield();
        double value = count;
        while (--count > 0) value = value / 1.0001 + count % 7 + value / 3.7 + count % 11; // hot: Awaiting
        await Task.Yield();
        return value;
    }

    static double Iterate()
    {
        double sum = 0;
        foreach (double item in Iterated(Rounds)) sum += item;
        return sum;
    }

    static IEnumerable<double> Iterated(int count)
    {
        yield return 1;
        double value = 1;
        for (int i = count; i > 0; --i) value = value / 1.0001 + i % 7 + value / 3.7 + i % 11; // hot: Iterated
        yield return value;
    }

    static double Lambda(int rounds)
    {
        Func<int, double> lambda = [MethodImpl(MethodImplOptions.NoInlining)] (count) =>
        {
            double value = count;
            while (--count > 0) value = value / 1.0001 + count % 7 + value / 3.7 + count % 11; // hot: Lambda
            return value;
        };
        return lambda(rounds);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Mapped(int count)
    {
        double value = count;
#line 700 "hot.txt"
        while (--count > 0) value = value / 1.0001 + count % 7 + value / 3.7 + count % 11;
#line default
        value -= 1;
        return value;
    }

    // Once it is optimised its whole work is that of a callee which was inlined.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Inlining(int count)
    {
        double value = count;
        while (--count > 0) value = Inlined(value, count); // hot: Inlining
        value -= 1;
        return value;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static double Inlined(double value, int count)
    {
        return value / 1.0001 + count % 7 + value / 3.7 + count % 11; // hot: Inlined
    }
}

static class SharedKind<T>
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static double Shared(int count)
    {
        double value = typeof(T).Name.Length;
        while (--count > 0) value = value / 1.0001 + count % 7 + value / 3.7 + count % 11; // hot: Shared
        value -= 1;
        return value;
    }
}

static class ValueKind<T>
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static double OfStruct(int count)
    {
        double value = Unsafe.SizeOf<T>();
        while (--count > 0) value = value / 1.0001 + count % 7 + value / 3.7 + count % 11; // hot: OfStruct
        value -= 1;
        return value;
    }
}
