// The program behind the images of this folder: one of each shape that a name in an R2R image can have.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;

namespace Shapes
{
    public struct Point { public int X, Y; public Point(int x, int y) { X = x; Y = y; } public readonly int Sum() => X + Y; }
    public enum Colour : byte { Red, Green }

    public class Plain
    {
        static readonly int[] Table;
        static Plain() { Table = new int[Environment.ProcessorCount]; }
        public Plain(string text) { Name = text; }
        public string Name { get; set; }
        public int this[int i, long j] => Table.Length + i + (int)j;
        public static Plain operator +(Plain a, Plain b) => new Plain(a.Name + b.Name);
        public event EventHandler Changed;
        public void Raise() => Changed?.Invoke(this, EventArgs.Empty);

        [MethodImpl(MethodImplOptions.NoInlining)]
        public unsafe int Parameters(ref int a, out long b, in Point c, int* d, int[] e, int[,] f, string[][] g, Colour h,
                                     object i, Type j, TypedReference k, IntPtr l, nuint m, double n, char o, decimal p)
        {
            b = a + c.Sum() + *d + e.Length + f.Length + g.Length;
            return (int)b + (int)h;
        }
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static unsafe int Callback(delegate*<int, string, void> managed, delegate* unmanaged[Cdecl]<Point*, int> native, int x)
        {
            managed(x, null);
            return native(null);
        }
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static ref readonly Point First(Point[] points) => ref points[0];

        public sealed class Nested
        {
            public struct Deeper { public int Value; [MethodImpl(MethodImplOptions.NoInlining)] public void Set(int v) => Value = v; }
            public Deeper Field;
            public Nested() => Field.Set(7);
        }
    }

    public class Box<T>
    {
        T[] items_ = new T[4];
        [MethodImpl(MethodImplOptions.NoInlining)] public void Put(int i, T value) => items_[i] = value;
        [MethodImpl(MethodImplOptions.NoInlining)] public U Convert<U>(Func<T, U> how) => how(items_[0]);
        [MethodImpl(MethodImplOptions.NoInlining)] public static Dictionary<T, U[]> Make<U>(T[] keys) where U : new()
        {
            var map = new Dictionary<T, U[]>();
            foreach (T key in keys) map[key] = new U[2];
            return map;
        }
        public struct Slot<V> { public T Left; public V Right; [MethodImpl(MethodImplOptions.NoInlining)] public string Text() => Left + ":" + Right; }
    }

    public interface IWork { int Work(int x); }
    public class Worker : IWork
    {
        int IWork.Work(int x) => x + 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Funclets(int[] values)
        {
            int total = 0;
            try
            {
                foreach (int v in values)
                {
                    try { total += 100 / v; }
                    catch (DivideByZeroException e) when (e.Message.Length > v) { total += Local(v); }
                    finally { total++; }
                }
            }
            catch (OverflowException) { total = -1; }
            return total;
            static int Local(int x) => x * 2;
        }
        public static async Task<int> RunAsync(int n)
        {
            int sum = 0;
            for (int i = 0; i < n; i++) { await Task.Yield(); sum += i; }
            return sum;
        }
        public static IEnumerable<KeyValuePair<string, T>> Walk<T>(IEnumerable<T> source)
        {
            foreach (T item in source) yield return new KeyValuePair<string, T>(item.ToString(), item);
        }
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int ColdPath(object o, int n)
        {
            if (o == null) throw new ArgumentNullException(nameof(o), "never in the hot part " + n);
            if (n < 0) throw new ArgumentOutOfRangeException(nameof(n), n.ToString() + o);
            return o.GetHashCode() + n;
        }
    }

    public static class Program
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        static T Same<T>(T value) => value;

        public static unsafe int Main(string[] args)
        {
            var plain = new Plain("a") + new Plain("b");
            plain.Raise();
            int a = 1, pinned = 2;
            Point p = new Point(1, 2);
            plain.Parameters(ref a, out long b, in p, &pinned, new int[1], new int[1, 1], new string[1][], Colour.Red, plain, typeof(int), default, 0, 0, 0, 'x', 1m);
            new Plain.Nested().Field.Set(a);
            var ints = new Box<int>(); ints.Put(0, 5);
            var points = new Box<Point>(); points.Put(0, p);
            var texts = new Box<string>(); texts.Put(0, "t");
            Func<Point, long> toLong = q => q.Sum() + a;
            long sum = points.Convert(toLong) + ints.Convert(i => (short)i) + texts.Convert(t => t.Length);
            sum += Box<Colour>.Make<Point>(new[] { Colour.Green }).Count + Box<string>.Make<Box<int>>(args).Count;
            sum += new Box<int>.Slot<Point>().Text().Length + new Box<string>.Slot<Plain.Nested.Deeper>().Text().Length;
            sum += Same(p).Sum() + Same<long>(3) + Same("x").Length + Same<Point[]>(null)?.Length ?? 0;
            var list = new List<Point> { p, new Point(3, 4) };
            list.Sort((x, y) => x.Sum() - y.Sum());
            sum += list.Where(q => q.X > 0).Select(q => (q.X, Name: q.Y.ToString())).ToArray().Length;
            foreach (var pair in Worker.Walk(list)) sum += pair.Value.X;
            sum += Worker.Funclets(new[] { 1, 0 }) + Worker.RunAsync(2).Result + ((IWork)new Worker()).Work(1) + Worker.ColdPath(plain, 1);
            sum += Plain.First(list.ToArray()).X + plain[1, 2];
            Console.WriteLine(sum + b);
            return Library.Helper.Answer(list.Count) == 42 ? 0 : 1;
        }
    }
}
