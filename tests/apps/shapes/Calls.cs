using System.Reflection.Emit;
using System.Runtime.CompilerServices;

namespace Shapes;

static class Burner
{
    // The only method that several chains share: as a leaf of those whose own last method tells them apart.
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    public static long Burn(long n)
    {
        ulong x = (ulong)n | 1;
        for (int i = 0; i < 8_000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
        return (long)x;
    }
}

// Instantiations over value types have code of their own, those over reference types share it.
static class Generics
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;
    const string Leaf = "Shapes.Burner.Burn";

    public static readonly Mode Mode = new("generics", Root,
        ["Shapes.Generics.Root", "Shapes.Generics.Enter", "Shapes.Box<int>.First", "Shapes.Box<int>.Second", Leaf],
        ["Shapes.Generics.Root", "Shapes.Generics.Enter", "Shapes.Box<Shapes.Pair>.First", "Shapes.Box<Shapes.Pair>.Second", Leaf],
        ["Shapes.Generics.Root", "Shapes.Generics.Enter", "Shapes.Box<__Canon>.First", "Shapes.Box<__Canon>.Second", Leaf],
        ["Shapes.Generics.Root", "Shapes.Generics.MethodOf", "Shapes.Generics.InnerOf", "Shapes.Generics.LeafOf"],
        ["Shapes.Generics.Root", "Shapes.Generics.Virtual", "Shapes.Visitor.Visit", "Shapes.Generics.LeafVirtual"]);

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        var ints = new Box<int>();
        var pairs = new Box<Pair>();
        var texts = new Box<string>();
        var arrays = new Box<int[]>();
        Visitor visitor = new Counts();
        for (long i = 0; !Program.Stop; i++)
        {
            Program.Sink += Enter(ints, (int)i) + Enter(pairs, default) + Enter(texts, "a") + Enter(arrays, []);
            Program.Sink += MethodOf<int>(i, 1) + MethodOf<string>(i, "b") + Virtual(visitor, i);
        }
    }

    [MethodImpl(No)] static long Enter<T>(Box<T> box, T value) => box.First(value) + 1;
    [MethodImpl(No)] static long MethodOf<T>(long n, T value) => InnerOf(n, new[] { value }) + typeof(T).GetHashCode() % 2;
    [MethodImpl(No)] static long InnerOf<T>(long n, T[] values) => LeafOf(n) + values.Length;
    [MethodImpl(No)] static long Virtual(Visitor visitor, long n) => visitor.Visit<string>(n, "c") + visitor.Visit<int>(n, 5);

    [MethodImpl(No)]
    static long LeafOf(long n)
    {
        ulong x = (ulong)n | 1;
        for (int i = 0; i < 8_000; i++) { x ^= x << 12; x ^= x >> 25; x ^= x << 27; }
        return (long)x;
    }

    [MethodImpl(No)]
    internal static long LeafVirtual(long n)
    {
        ulong x = (ulong)n | 1;
        for (int i = 0; i < 8_000; i++) { x ^= x << 21; x ^= x >> 35; x ^= x << 4; }
        return (long)x;
    }
}

struct Pair { public long A, B; }

sealed class Box<T>
{
    T? _last;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public long First(T value)
    {
        _last = value;
        return Second(value, 7) + (_last is null ? 1 : 2);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    long Second(T value, long n) => Burner.Burn(n) + (typeof(T).IsValueType ? 1 : value is null ? 2 : 3);
}

// A generic virtual method: its address is looked up by the runtime at each call.
class Visitor
{
    [MethodImpl(MethodImplOptions.NoInlining)] public virtual long Visit<T>(long n, T value) => Generics.LeafVirtual(n) + (value is null ? 1 : 2);
}

sealed class Counts : Visitor;

static class Delegates
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    static string[] Chain(string name) => ["Shapes.Delegates.Root", $"Shapes.Delegates.Calls{name}", $"Shapes.Delegates.{name}", "Shapes.Burner.Burn"];

    // A multicast delegate goes through a stub that calls each of its targets.
    public static readonly Mode Mode = new("delegates", Root,
        Chain("Static"), Chain("Closed"),
        ["Shapes.Delegates.Root", "Shapes.Delegates.CallsInstance", "Shapes.Target.Instance", "Shapes.Burner.Burn"],
        ["Shapes.Delegates.Root", "Shapes.Delegates.CallsMany", "~stub", "Shapes.Delegates.ManyFirst", "Shapes.Burner.Burn"],
        ["Shapes.Delegates.Root", "Shapes.Delegates.CallsMany", "~stub", "Shapes.Delegates.ManySecond", "Shapes.Burner.Burn"]);

    delegate long Calls(long n);

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        Calls open = Static, instance = new Target().Instance, many = ManyFirst;
        Calls closed = "text".Closed;
        many += ManySecond;
        for (long i = 0; !Program.Stop; i++) Program.Sink += CallsStatic(open, i) + CallsInstance(instance, i) + CallsClosed(closed, i) + CallsMany(many, i);
    }

    [MethodImpl(No)] static long CallsStatic(Calls c, long n) => c(n) + 1;
    [MethodImpl(No)] static long CallsInstance(Calls c, long n) => c(n) + 1;
    [MethodImpl(No)] static long CallsClosed(Calls c, long n) => c(n) + 1;
    [MethodImpl(No)] static long CallsMany(Calls c, long n) => c(n) + 1;

    [MethodImpl(No)] static long Static(long n) => Burner.Burn(n) + 1;
    [MethodImpl(No)] static long Closed(this string text, long n) => Burner.Burn(n) + text.Length;
    [MethodImpl(No)] static long ManyFirst(long n) => Burner.Burn(n) + 1;
    [MethodImpl(No)] static long ManySecond(long n) => Burner.Burn(n) + 1;
}

sealed class Target
{
    [MethodImpl(MethodImplOptions.NoInlining)] public long Instance(long n) => Burner.Burn(n) + 1;
}

interface IGoes
{
    long Go(long n);
}

static class Interfaces
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    static string[] Chain(string caller, string type) =>
        ["Shapes.Interfaces.Root", $"Shapes.Interfaces.{caller}", "~stub", $"Shapes.{type}.Go", "Shapes.Burner.Burn"];

    // Call sites with one type (dispatch stub), with two in long runs, and with eight by turns (resolve stub).
    public static readonly Mode Mode = new("interfaces", Root,
        [Chain("Mono", "Goes1"), Chain("Poly", "Goes2"), Chain("Poly", "Goes3"), .. Enumerable.Range(1, 8).Select(i => Chain("Mega", $"Goes{i}"))], []);

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        IGoes[] all = [new Goes1(), new Goes2(), new Goes3(), new Goes4(), new Goes5(), new Goes6(), new Goes7(), new Goes8()];
        for (int i = 0; !Program.Stop; i++) Program.Sink += Mono(all[0], i) + Poly(all[1 + (i >> 6 & 1)], i) + Mega(all[i & 7], i);
    }

    [MethodImpl(No)] static long Mono(IGoes o, long n) => o.Go(n) + 1;
    [MethodImpl(No)] static long Poly(IGoes o, long n) => o.Go(n) + 1;
    [MethodImpl(No)] static long Mega(IGoes o, long n) => o.Go(n) + 1;
}

sealed class Goes1 : IGoes { [MethodImpl(MethodImplOptions.NoInlining)] public long Go(long n) => Burner.Burn(n) + 1; }
sealed class Goes2 : IGoes { [MethodImpl(MethodImplOptions.NoInlining)] public long Go(long n) => Burner.Burn(n) + 2; }
sealed class Goes3 : IGoes { [MethodImpl(MethodImplOptions.NoInlining)] public long Go(long n) => Burner.Burn(n) + 3; }
sealed class Goes4 : IGoes { [MethodImpl(MethodImplOptions.NoInlining)] public long Go(long n) => Burner.Burn(n) + 4; }
sealed class Goes5 : IGoes { [MethodImpl(MethodImplOptions.NoInlining)] public long Go(long n) => Burner.Burn(n) + 5; }
sealed class Goes6 : IGoes { [MethodImpl(MethodImplOptions.NoInlining)] public long Go(long n) => Burner.Burn(n) + 6; }
sealed class Goes7 : IGoes { [MethodImpl(MethodImplOptions.NoInlining)] public long Go(long n) => Burner.Burn(n) + 7; }
sealed class Goes8 : IGoes { [MethodImpl(MethodImplOptions.NoInlining)] public long Go(long n) => Burner.Burn(n) + 8; }

// Tail calls: as a jump, and by the runtime's helper where the target's arguments do not fit into the caller's. Made of IL, where `tail.` can be
// written and is never ignored. A method that has jumped away is not on the stack.
static class TailCalls
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("tail-calls", Root,
        [["Shapes.TailCalls.Root", "Shapes.TailCalls.Fast", "Shapes.TailCalls.AfterJump", "Shapes.Burner.Burn"],
         ["Shapes.TailCalls.Root", "Shapes.TailCalls.Slow", "[dynamic] ShapesHelped", "~tail-helper+", "Shapes.TailCalls.AfterHelper", "Shapes.Burner.Burn"]],
        // Between the jump's two instructions the jumping one is still there.
        [["Shapes.TailCalls.Root", "Shapes.TailCalls.Fast", "[dynamic] ShapesJumps"]]);

    delegate long Few(long n);

    static Few Make(string name, string target, int arguments)
    {
        var method = new DynamicMethod(name, typeof(long), [typeof(long)], typeof(TailCalls).Module, skipVisibility: true);
        ILGenerator il = method.GetILGenerator();
        for (int i = 0; i < arguments; i++) il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Tailcall);
        il.Emit(OpCodes.Call, typeof(TailCalls).GetMethod(target, System.Reflection.BindingFlags.NonPublic | System.Reflection.BindingFlags.Static)!);
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Few>();
    }

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        // Here and not when the class is made: the other modes run where no code can be generated, too.
        Few jumps = Make("ShapesJumps", nameof(AfterJump), 1), helped = Make("ShapesHelped", nameof(AfterHelper), 10);
        for (long i = 0; !Program.Stop; i++) Program.Sink += Fast(jumps, i) + Slow(helped, i);
    }

    [MethodImpl(No)] static long Fast(Few f, long n) => f(n) + 1;
    [MethodImpl(No)] static long Slow(Few f, long n) => f(n) + 1;
    [MethodImpl(No)] static long AfterJump(long n) => Burner.Burn(n) + 1;

    [MethodImpl(No)]
    static long AfterHelper(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) => Burner.Burn(a + b) + c + d + e + f + g + h + i + j;
}
