using System.Runtime.CompilerServices;

namespace Zoo;

// Three levels of nesting, each with parameters of its own: the metadata counts the outer ones again in the inner types.
public class Outer<T>
{
    public class Inner<U>
    {
        public struct Deep<V>
        {
            public int X;

            [MethodImpl(MethodImplOptions.NoInlining)]
            public int Go<W>(W w) => X + (w == null ? 0 : 1) + typeof(W).Name.Length + typeof(V).Name.Length + typeof(T).Name.Length;

            [MethodImpl(MethodImplOptions.NoInlining)]
            public readonly int Plain(V v) => (v == null ? 1 : 2) + typeof(U).Name.Length;
        }

        // Without parameters of its own, but generic all the same.
        public sealed class Leaf
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            public int Count(T t, U u) => (t == null ? 0 : 1) + (u == null ? 0 : 2) + typeof(T).Name.Length;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Member(T t, U u) => (t == null ? 0 : 1) + (u == null ? 0 : 2) + typeof(T).Name.Length;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Static<W, X>(W w, X x) => typeof(W).Name.Length + typeof(X).Name.Length + (w == null ? 1 : 0) + (x == null ? 1 : 0);
    }
}

public enum Colour : byte { Red, Green }

public interface IVisitor
{
    R Visit<R>(R value) where R : notnull;
}

// Generic virtual methods: found at run time through a table of instantiations.
public class Visitor : IVisitor
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public virtual R Visit<R>(R value) where R : notnull => value;
}

public sealed class LoudVisitor : Visitor
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public override R Visit<R>(R value) => value.GetHashCode() == int.MinValue ? default! : value;
}

public interface IMeasure<TSelf> where TSelf : IMeasure<TSelf>
{
    static abstract TSelf Unit { get; }
    static abstract TSelf operator +(TSelf a, TSelf b);
    static virtual int Describe(TSelf self) => self.Length + 1;
    int Length { get; }
}

public readonly record struct Metres(int Length) : IMeasure<Metres>
{
    public static Metres Unit
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        get => new(1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static Metres operator +(Metres a, Metres b) => new(a.Length + b.Length);
}

public sealed record Yards(int Length) : IMeasure<Yards>
{
    public static Yards Unit => new(2);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static Yards operator +(Yards a, Yards b) => a with { Length = a.Length + b.Length };

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int IMeasure<Yards>.Describe(Yards self) => self.Length * 3;
}

public static class Generics
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static T Same<T>(T x, int rounds)
    {
        for (int i = 0; i < rounds; i++) if (typeof(T) == typeof(object)) rounds--;
        return x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static ref T Largest<T>(ref T a, ref T b) where T : IComparable<T>
    {
        if (a.CompareTo(b) >= 0) return ref a;
        return ref b;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Total<T>(T start, int rounds) where T : IMeasure<T>
    {
        T sum = start;
        for (int i = 0; i < rounds; i++) sum += T.Unit;
        return sum.Length + T.Describe(sum);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Slices<T>(Span<T> span, ReadOnlySpan<T> other) => span.Length + other.Length;

    static unsafe int Instantiations(int i)
    {
        int sum = Same(1, 3) + (int)Same(2L, 3) + Same("x", 2).Length + Same(new KeyValuePair<string, int>("a", 1), 3).Value;
        sum += Same(new List<int>[1], 1).Length + Same((1, "a", new Dictionary<string, List<int>>()), 1).Item1;
        sum += (int)Same(DayOfWeek.Friday, 1) + (int)Same(Colour.Green, 1) + (int)Same<nint>(3, 1) + Same<int?>(i, 1)!.Value;
        sum += Same(new int[2, 2], 1).Length + Same(new string[1, 2, 3], 1).Length + Same(new int[2][][], 1).Length + Same(new int[1][,], 1).Length;
        sum += Same(new int*[1], 1).Length + Same(new byte**[1], 1).Length + Same(new delegate*<int, long>[1], 1).Length;
        sum += Same((1, 2L, "3", 4.0, (byte)5, '6', 7f, (8, "9")), 1).Item1;
        sum += Same(new Outer<int>.Inner<string>.Deep<Guid>(), 1).X + Same<Func<int, Task<(string, int)>>?>(null, 1)?.Invoke(1).Id ?? 1;
        sum += Same(default(Int128), 1).GetHashCode() + Same(default(Vector3D<float>), 1).GetHashCode();
        return sum;
    }

    public record struct Vector3D<T>(T X, T Y, T Z);

    public static int Round(int i)
    {
        int sum = Instantiations(i);
        sum += new Outer<string>.Inner<int>().Member("a", 1) + new Outer<int>.Inner<byte>().Member(1, 1);
        sum += Outer<int>.Inner<byte>.Static("a", 1L) + Outer<string>.Inner<byte>.Static<string, object>("a", 1) + Outer<Colour>.Inner<string[]>.Static(1, 2);
        sum += new Outer<int>.Inner<string>.Deep<long>().Go<Guid>(default) + new Outer<string>.Inner<string>.Deep<object>().Go<object>("o");
        sum += new Outer<string>.Inner<long>.Deep<string>().Plain("p") + new Outer<Colour>.Inner<(int, string)>.Leaf().Count(Colour.Red, (1, "t"));
        Visitor visitor = i % 2 == 0 ? new Visitor() : new LoudVisitor();
        IVisitor face = visitor;
        sum += visitor.Visit(i) + visitor.Visit("v").Length + face.Visit(Colour.Green).GetHashCode() + face.Visit(new List<string>()).Count;
        sum += Total(new Metres(i), 3) + Total(new Yards(i), 3);
        int a = i, b = 2;
        string s = "s", t = "t";
        sum += Largest(ref a, ref b) + Largest(ref s, ref t).Length;
        sum += Slices<int>(stackalloc int[3], new int[2]) + Slices<string>(new string[1], default);
        return sum;
    }
}
