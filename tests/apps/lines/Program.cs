// Threads that stand still in code whose lines are awkward to tell, and one that works.
//
// Each thread first prints what the runtime itself says of its stack, a line for each frame, innermost first:
//   TID <tab> METHOD <tab> FILE <tab> LINE <tab> COLUMN
// Then `ready PID`, and one thread works (Hot). With `kinds SECONDS` there are only threads that work, one for each kind of code (Kinds.cs).
using System.Diagnostics;
using System.Globalization;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Lines;

static class Program
{
    static async Task<int> Main(string[] arguments)
    {
        if (arguments is ["kinds", string time])
        {
            Kinds.Start();
            Console.WriteLine($"ready {Environment.ProcessId}");
            Console.Out.Flush();
            await Task.Delay(TimeSpan.FromSeconds(int.Parse(time, CultureInfo.InvariantCulture)));
            return 0;
        }
        int seconds = arguments is ["--seconds", string text] ? int.Parse(text, CultureInfo.InvariantCulture) : 60;
        MethodInfo[] places = typeof(Places).GetMethods(BindingFlags.Public | BindingFlags.Static | BindingFlags.DeclaredOnly);
        foreach (MethodInfo place in places)
        {
            var run = place.CreateDelegate<Action>();
            new Thread(() => run(), 1 << 20) { IsBackground = true }.Start();
        }
        for (int i = 0; i < 6000 && Volatile.Read(ref Stand.s_standing) < places.Length; ++i) await Task.Delay(20);
        if (Stand.s_standing != places.Length) return 1;
        new Thread(Hot.Work) { IsBackground = true }.Start();
        Console.WriteLine($"ready {Environment.ProcessId}");
        Console.Out.Flush();
        for (int i = 0; i < 2 * seconds; ++i)
        {
            Fresh.Compile(i);
            await Task.Delay(500);
        }
        return 0;
    }
}

// Code that nobody has compiled yet, for each of 512 numbers.
static class Fresh
{
    static readonly Type[] s_types = [typeof(byte), typeof(short), typeof(int), typeof(long), typeof(float), typeof(double), typeof(char), typeof(bool)];

    public static void Compile(int number)
    {
        Type type = typeof(ValueTuple<,,>).MakeGenericType(s_types[number % 8], s_types[number / 8 % 8], s_types[number / 64 % 8]);
        typeof(Fresh).GetMethod(nameof(Run), BindingFlags.NonPublic | BindingFlags.Static)!.MakeGenericMethod(type).Invoke(null, null);
    }

    static int Run<T>()
    {
        int size = Unsafe.SizeOf<T>(); // where Run begins
        return size + 1;
    }
}

static class Stand
{
    public static int s_standing;

    [DllImport("libc")]
    static extern int gettid();

    // Prints the caller's stack and never returns.
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Still()
    {
        var text = new System.Text.StringBuilder();
        int tid = gettid();
        foreach (StackFrame frame in new StackTrace(1, true).GetFrames())
        {
            text.Append(CultureInfo.InvariantCulture, $"{tid}\t{frame.GetMethod()?.Name}\t{frame.GetFileName()}\t{frame.GetFileLineNumber()}\t{frame.GetFileColumnNumber()}\n");
        }
        lock (typeof(Stand))
        {
            Console.Write(text);
            Console.Out.Flush();
        }
        Interlocked.Increment(ref s_standing);
        Thread.Sleep(Timeout.Infinite);
    }
}

interface IShape
{
    int Area();
}

struct Square : IShape
{
    public int Side;

    int IShape.Area()
    {
        Side += 3;
        Stand.Still(); Side++;
        return Side * Side;
    }
}

class Generic<T>
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Deep<U>(U value, int depth)
    {
        if (depth > 0)
        {
            int below =
                Deep(value,
                     depth - 1);
            return below + 1;
        }
        if (typeof(T) == typeof(string)) Stand.Still();
        else Stand.Still();
        return 0;
    }
}

static class Places
{
    static int s_sink;

    public static void OfReferences() => s_sink = new Generic<string>().Deep(1, 9);

    public static void OfValues()
    {
        s_sink = new Generic<(int, byte)>().Deep("x", 9);
    }

    public static void Interfaces()
    {
        IShape shape = new Square { Side = 2 };
        s_sink = shape.Area();
    }

    public static void Lambdas()
    {
        int captured = 4;
        Action outer = () =>
        {
            captured++;
            Action inner = () => { captured++; Stand.Still(); };
            inner();
            captured++;
        };
        outer();
    }

    public static void Iterators()
    {
        foreach (int item in Items())
        {
            s_sink += item;
        }
    }

    static IEnumerable<int> Items()
    {
        yield return 1;
        try
        {
            yield return 2;
            Stand.Still();
            yield return 3;
        }
        finally
        {
            s_sink++;
        }
    }

    public static void Awaits() => Outer().GetAwaiter().GetResult();

    static async Task<int> Outer()
    {
        await Task.Yield();
        int result = await Inner(3);
        return result;
    }

    static async ValueTask<int> Inner(int depth)
    {
        if (depth > 0)
        {
            await Task.Delay(1);
            return await Inner(depth - 1) + 1;
        }
        Stand.Still();
        return 1;
    }

    public static void Finally()
    {
        try
        {
            Throw(3);
        }
        catch (InvalidOperationException e) when (e.Message.Length > 1)
        {
            try
            {
                s_sink++;
            }
            finally
            {
                Stand.Still(); // a handler of Finally
            }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw(int depth)
    {
        if (depth == 0)
            throw new InvalidOperationException("thrown");
        Throw(depth - 1);
    }

    public static void Filters()
    {
        try
        {
            Throw(2);
        }
        catch (InvalidOperationException) when (Filter()) // a handler of Filters
        {
        }
    }

    static bool Filter()
    {
        Stand.Still(); return true;
    }

    public static void Nested()
    {
        try { throw new NotSupportedException("a"); }
        catch (NotSupportedException)
        {
            try { throw new NotSupportedException("b"); }
            catch (NotSupportedException)
            {
                Local(2); // a handler of Nested
                static void Local(int depth)
                {
                    if (depth > 0) { Local(depth - 1); return; }
                    Stand.Still();
                }
            }
        }
    }

    public static void Inlined()
    {
        int value = s_sink;
        value += First(value);
        s_sink = value;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static int First(int value)
    {
        value *= 3;
        value += Second(value);
        return value;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static int Second(int value)
    {
        value -= 7;
        Stand.Still();
        return value;
    }

    [MethodImpl(MethodImplOptions.AggressiveOptimization)]
    public static void Optimised()
    {
        var list = new List<string>();
        for (int i = 0; i < 3; ++i)
        {
            list.Add(i.ToString(CultureInfo.InvariantCulture));
            if (i == 2)
                Stand.Still();
        }
        s_sink = list.Count;
    }

    [MethodImpl(MethodImplOptions.NoOptimization)]
    public static void Unoptimised()
    {
        int a = 1, b = 2;
        a += b;
        Stand.Still();
        s_sink = a;
    }

    // Long enough for the runtime to replace the code of the loop while it runs.
    public static void Replaced()
    {
        long sum = 0;
        for (int i = 0; i < 3_000_000; ++i)
        {
            sum += i ^ (sum >> 3);
            if (i == 2_000_000)
                Stand.Still();
        }
        s_sink = (int)sum;
    }

    public static void Queries()
    {
        var query = Enumerable.Range(0, 10).Select(i => i * 2)
            .Where(i => i > 3)
            .Select(i =>
            {
                if (i == 8)
                    Stand.Still();
                return i;
            });
        s_sink = query.OrderBy(i => -i)
                      .ToList()
                      .Count;
    }

    public static void Comparers()
    {
        int[] numbers = Enumerable.Range(0, 50).ToArray();
        Array.Sort(numbers, (x, y) =>
        {
            if (x == 25) Stand.Still();
            return y - x;
        });
    }

    public static void Mapped()
    {
        int value = 1;
#line 4000 "a file that is nowhere.txt"
        value += s_sink;
        Stand.Still();
#line hidden
        value += s_sink * 2;
#line default
        s_sink = value;
    }

    public static void Hidden()
    {
        int value = s_sink;
#line hidden
        value++;
        Stand.Still();
#line default
        s_sink = value;
    }

    public static void Locked()
    {
        var gate = new object();
        lock (gate)
        {
            Stand.Still();
        }
    }

    public static void Switches()
    {
        s_sink = (s_sink - s_sink) switch
        {
            1 => 3,
            2 => 4,
            _ => Argument(1 +
                          Argument(0)),
        };
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Argument(int value)
    {
        if (value == 0) return 0;
        string text = "a" +
            Concatenated() +
            "b";
        return text.Length;
    }

    static string Concatenated() { Stand.Still(); return ""; }

    public static void Constructors() => s_sink = new Built().GetHashCode();

    class Built
    {
        readonly int _first = s_sink;
        readonly int _second;

        public Built()
        {
            _second = _first; Stand.Still();
        }

        public override int GetHashCode() => _second;
    }

    public static void Chains0() => Chain.Run(0);
    public static void Chains1() => Chain.Run(1);
    public static void Chains2() => Chain.Run(2);
    public static void Chains3() => Chain.Run(3);
    public static void Chains4() => Chain.Run(4);
    public static void Chains5() => Chain.Run(5);
    public static void Chains6() => Chain.Run(6);
    public static void Chains7() => Chain.Run(7);
}

// Stacks of 64 calls each, from places that a generator of numbers chooses.
static class Chain
{
    static int s_sum;

    public static void Run(uint seed) => Next(64, seed);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Next(int depth, uint state)
    {
        if (depth == 0) Stand.Still();
        state = state * 1664525 + 1013904223;
        switch (state >> 29)
        {
            case 0: return Loop(depth - 1, state);
            case 1: return Tries(depth - 1, state);
            case 2:
                return Condition(depth - 1, state) + 1;
            case 3:
                return new[] { 1, 2 }.Select(i => Next(depth - 1, state)
                                                  + i).Sum();
            case 4:
            {
                int Inside(int value)
                {
                    s_sum += value;
                    return Next(depth - 1, state + (uint)value - 1);
                }
                return Inside(1);
            }
            case 5: return Arguments(depth, s_sum, Next(depth - 1, state));
            case 6:
                using (new Scope(depth))
                {
                    return Next(depth - 1, state);
                }
            default: return depth > 1 ? Next(depth - 1, state) : Loop(depth - 1, state);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Loop(int depth, uint state)
    {
        int sum = 0;
        for (int i = 0;
             i < 2;
             i++)
        {
            sum += i;
            sum += Next(depth < 0 ? 0 : depth, state);
        }
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Tries(int depth, uint state)
    {
        try
        {
            s_sum++;
            try
            {
                if (depth % 2 == 0) return Next(depth, state);
            }
            finally
            {
                s_sum--;
            }
        }
        catch (ArgumentException)
        {
            return 0;
        }
        return Next(depth, state) - 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Condition(int depth, uint state) =>
        depth > 1000
            ? Loop(depth, state)
            : s_sum == int.MaxValue
                ? 2
                : Next(depth,
                       state);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Arguments(int first, int second, int third) => first + second + third;

    readonly struct Scope(int depth) : IDisposable
    {
        public void Dispose() => s_sum -= depth;
    }
}

static class Hot
{
    static double s_sink;

    public static void Work()
    {
        for (;;)
        {
            s_sink += Statements(1000);
            s_sink += Iterated();
        }
    }

    // Not optimised: each statement has code of its own.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static double Statements(int count)
    {
        double cheap = 1;
        double dear = 1;
        cheap += count;
        for (int i = 0; i < 1; ++i)
        {
            dear += Dear(count) + Dear(count) + Dear(count); // the line of the callers
        }
        cheap -= 1;
        return cheap + dear;
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static double Dear(int count)
    {
        double value = count;
        while (--count > 0) value = value / 1.0001 + count % 7 + value / 3.7 + count % 11; // the hot line
        return value;
    }

    static double Iterated()
    {
        double sum = 0;
        foreach (double item in Items()) sum += item;
        return sum;
    }

    static IEnumerable<double> Items()
    {
        yield return 1;
        yield return Dear(50); // the line of the iterator
    }
}
