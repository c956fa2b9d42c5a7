// Every C# construct whose compiled name differs from its source name, each called once.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Threading.Tasks;

int top = args.Length;
int AddTop(int a) => a + top;
static int StaticTop(int a) => a * 2;
Func<int, int> lambdaTop = x => x + AddTop(x);
Func<int, int> plainTop = x => x + 1;
await Task.Yield();
Zoo.Run.Use(lambdaTop(StaticTop(3)) + plainTop(4));
await Zoo.Run.All();

namespace Zoo
{
    public static class Run
    {
        public static long Sum;
        public static void Use(object o) => Sum += o?.GetHashCode() ?? 0;
        public static async Task All()
        {
            var order = new Order { Total = 3 };
            Use(order.Total); order[3] = 2; Use(order[3]);
            order.Changed += (s, e) => Use(1); order.Fire(); order.Changed -= null;
            Use(order + order); Use((int)order); Use((string)order); Use(-order); Use(order == null);
            Use(new Box<int>(1).Get()); Use(new Box<string>("a").Get()); Use(new Box<Order>(order).Get());
            Use(new Box<int>.Inner<long>().Pair(1, 2)); Use(new Box<string>.Inner<Dictionary<string, int[]>>().Pair("", null));
            Use(new Box<string>.Plain().Value());
            Use(Box<int>.Map<string>(5, i => i.ToString())); Use(Box<string>.Map<int>("5", i => i.Length));
            foreach (int i in new Numbers()) Use(i);
            foreach (object i in (IEnumerable)new Numbers()) Use(i);
            foreach (int i in Numbers.Count<int>(2)) Use(i);
            await foreach (int i in Numbers.Stream(2)) Use(i);
            Use(await new Work().One(1)); Use(await new Work().Two<int>(2)); Use(await new Work().Two<string>("x"));
            await new Work().Three(); ((IJob<int>)new Work()).Do(4); await ((IJob<(int, string)>)new Work()).DoAsync((1, ""));
            Use(new Lambdas().Go(3)); Use(Lambdas.Generic<int>(3)); Use(Lambdas.Generic<string>("s"));
            Use(new Locals().Go(2)); Use(new Locals().Go(2, 3)); Use(Locals.Gen<int>(1));
            Use(new Point(1, 2)); Use((new Point(1, 2) with { X = 5 }).ToString()); Use(new PointS(1, 2).ToString()); Use(new Point(1, 2) == null);
            Use(new { Name = "a", Age = 3 }.ToString()); Use(new { Name = 1, Other = 3L }.GetHashCode());
            Use(new Hidden().Work()); Use(Pick("b")); Use(Pick("ccccccccc"));
            unsafe { Fixed f = default; f.Fill(); Use(f.Raw[0]); int v = 1; Use(*Pointers.Next(&v)); Use(Pointers.Call(&Pointers.Twice, 3)); Pointers.Void(null, (int**)null); }
            Parameters.Many(true, 'c', 1, 2, 3, 4, 5, 6, 7, 8, 1.0f, 2.0, 3m, "s", null, 1, 2);
            int r = 1; Parameters.Refs(ref r, out long l, in r, new int[1], new int[1, 1], new string[1][], ref r);
            Parameters.Generic(new List<int>(), new Dictionary<string, List<Order>>(), (1, "a"), 3, DateTime.Now, DayOfWeek.Friday, new Box<int>.Inner<string>());
            Parameters.Method<string, int>("a", 1, new List<string>(), new[] { 1 }); Parameters.Params(1, 2, 3);
            SpanCall();
            Parameters.Dyn(new object(), 3, (nint)3, (nuint)4);
            Use(StaticInit.Value); Use(Ünïcode.Größe("x")); Use(new @class().@event(1));
            Use(new Derived().Virt(1)); Use(((IDefault)new Derived()).Def()); Use(Fib(5));
            Use(IAdd<Num>()); Deconstruct(new Point(1, 2)); using (var d = new Disp()) Use(d);
            Use(new Nested.A.B.C().Deep()); Use(Nested.Static<int>.A.Get()); Use("abc".Ext()); Use(new Primary(3).Twice());
            try { Throw(); } catch (Exception e) when (Filter(e)) { Use(e); } finally { Use(2); }
            System.Reflection.Emit.DynamicMethod dm = new("Made at run time: a;b", typeof(int), new[] { typeof(int), typeof(string), typeof(Box<Order>) });
            var il = dm.GetILGenerator(); il.Emit(System.Reflection.Emit.OpCodes.Ldarg_0); il.Emit(System.Reflection.Emit.OpCodes.Ret);
            Use(((Func<int, string, Box<Order>, int>)dm.CreateDelegate(typeof(Func<int, string, Box<Order>, int>)))(1, "", null));
            System.Linq.Expressions.Expression<Func<int, Order, int>> ex = (a, b) => a + b.Total;
            Use(ex.Compile()(1, order));
            for (int i = 0; i < 3; i++) { Use(typeof(Order).GetProperty("Total").GetValue(order)); Use(typeof(Run).GetMethod("Fib").Invoke(null, new object[] { 3 })); }
            Action multi = () => Use(1); multi += () => Use(2); multi();
            Func<string, int> open = (Func<string, int>)Delegate.CreateDelegate(typeof(Func<string, int>), typeof(Zoo.Extensions).GetMethod("Ext")); Use(open("x"));
            Use(GetPid()); Use(Emitted.Odd());
            ReadOnlySpan<int> lit = [1, 2, 3, 4, 5, 6]; Use(lit.Length + Params2(1, 2, 3));
        }
        [System.Runtime.InteropServices.DllImport("libc", EntryPoint = "getpid", SetLastError = true)] static extern int GetPid();
        static int Params2(params ReadOnlySpan<string> s) => s.Length; static int Params2(int a, int b, int c) => Params2("a", "b", "c");
        public static int Fib(int n) => n < 2 ? n : Fib(n - 1) + Fib(n - 2);
        static int Pick(string s) => s switch { "a" => 1, "b" => 2, "c" => 3, "d" => 4, "e" => 5, "ffff" => 6, "ccccccccc" => 7, "hhhhhh" => 8, _ => 9 };
        static int IAdd<T>() where T : INum<T> => (T.Zero + T.Zero).GetHashCode();
        static void Deconstruct(Point p) { var (x, y) = p; Use(x + y); }
        static void Throw() => throw new InvalidOperationException();
        static void SpanCall() { Parameters.Span("abc".AsSpan(), stackalloc byte[3]); }
        static bool Filter(Exception e) => e.Message.Length > 0;
    }

    public class Order
    {
        int[] items = new int[8];
        static readonly int start = Environment.TickCount;
        public Order() { Run.Use(start); }
        public Order(int total, string name) : this() { Total = total; }
        ~Order() { Run.Sum++; }
        public int Total { get; set; }
        public int this[int i] { get => items[i]; set => items[i] = value; }
        public event EventHandler Changed { add { value2 += value; } remove { value2 -= value; } }
        EventHandler value2; public event EventHandler Auto;
        public void Fire() { Auto += null; value2?.Invoke(this, null); }
        public static Order operator +(Order a, Order b) => new Order(a.Total + b.Total, "");
        public static Order operator -(Order a) => a;
        public static explicit operator int(Order o) => o.Total;
        public static implicit operator string(Order o) => "o";
        public static bool operator ==(Order a, Order b) => ReferenceEquals(a, b);
        public static bool operator !=(Order a, Order b) => !(a == b);
        public override bool Equals(object o) => base.Equals(o); public override int GetHashCode() => Total;
        public static Order operator checked +(Order a, int b) => a; public static Order operator +(Order a, int b) => a;
    }
    public interface INum<T> where T : INum<T> { static abstract T Zero { get; } static abstract T operator +(T a, T b); }
    public struct Num : INum<Num> { public static Num Zero => default; static Num INum<Num>.operator +(Num a, Num b) => a; }
    public class Box<T>
    {
        T v; static int made = Environment.TickCount;
        public Box(T t) { v = t; made++; }
        public T Get() => v;
        public static U Map<U>(T t, Func<T, U> f) { Func<U> g = () => f(t); return g(); }
        public class Inner<U> { public int Pair(T t, U u) => 1; }
        public class Plain { public int Value() => 2; }
    }
    class Numbers : IEnumerable<int>
    {
        public IEnumerator<int> GetEnumerator() { yield return 1; yield return 2; }
        IEnumerator IEnumerable.GetEnumerator() { yield return 3; }
        public static IEnumerable<T> Count<T>(int n) { for (int i = 0; i < n; i++) yield return default; }
        public static async IAsyncEnumerable<int> Stream(int n) { for (int i = 0; i < n; i++) { await Task.Yield(); yield return i; } }
    }
    interface IJob<T> { void Do(T t); Task DoAsync(T t); }
    class Work : IJob<int>, IJob<(int, string)>
    {
        public async Task<int> One(int a) { await Task.Yield(); return a; }
        public async ValueTask<T> Two<T>(T a) { await Task.Yield(); return a; }
        public async Task Three()
        {
            Func<Task> f = async () => { await Task.Yield(); Run.Use(1); };
            int captured = Environment.TickCount;
            Func<Task<int>> g = async () => { await Task.Yield(); return captured; };
            async Task<int> Local(int x) { await Task.Yield(); return x + captured; }
            static async Task<int> StaticLocal(int x) { await Task.Yield(); return x; }
            IEnumerable<int> Items() { yield return captured; }
            await f(); await g(); await Local(1); await StaticLocal(2); foreach (int i in Items()) Run.Use(i);
            Func<Task<Func<Task>>> nested = async () => { await Task.Yield(); return async () => { await Task.Yield(); Run.Use(captured); }; };
            await (await nested())();
        }
        void IJob<int>.Do(int t) { Func<int> f = () => t; Run.Use(f()); }
        Task IJob<int>.DoAsync(int t) => Task.CompletedTask;
        void IJob<(int, string)>.Do((int, string) t) { }
        async Task IJob<(int, string)>.DoAsync((int, string) t) { await Task.Yield(); Func<Task> f = async () => { await Task.Yield(); Run.Use(t); }; await f(); }
    }
    class Lambdas
    {
        Func<int> field = () => 5; static Func<int> sfield = () => 6; int self = 3;
        Func<int> Prop => () => self;
        public Lambdas() { Func<int> inCtor = () => self; Run.Use(inCtor()); }
        public int Go(int n)
        {
            Func<int, int> a = x => x + 1, b = x => x + n; Func<int> c = () => self;
            for (int i = 0; i < 2; i++) { int j = i; Func<int> d = () => i + j + n + self; Func<Func<int>> e = () => () => j; Run.Use(d() + e()()); }
            return a(1) + b(2) + c() + field() + sfield() + Prop();
        }
        public static int Generic<T>(T t) { Func<int> a = () => 1; Func<T> b = () => t; Run.Use(b()); return a(); }
    }
    class Locals
    {
        public int Go(int a) { int Add(int x) => x + a; static int Twice(int x) => x * 2; int Rec(int k) => k == 0 ? 0 : Rec(k - 1); Func<int, int> f = Add; { int Same() => a; Run.Use(Same()); } { long Same() => 2; Run.Use(Same()); } return Add(1) + Twice(2) + Rec(3) + f(2); }
        public int Go(int a, int b) { int Add(int x) => x + a + b; return Add(1); }
        public static int Gen<T>(T t) { int L<U>(U u) => 1; return L("a") + L(t); }
    }
    record Point(int X, int Y);
    record struct PointS(int X, int Y);
    file class Hidden { public int Work() { Func<int> f = () => 3; return f(); } public class In { } }
    unsafe struct Fixed { public fixed byte Raw[16]; public void Fill() { for (int i = 0; i < 16; i++) Raw[i] = 1; Buf b = default; Run.Use(Take(ref b)); } static int Take(ref Buf b) => b[3]; }
    [System.Runtime.CompilerServices.InlineArray(8)] struct Buf { int element; }
    unsafe static class Pointers
    {
        public static int* Next(int* p) => p;
        public static int Twice(int a) => a * 2;
        public static int Call(delegate*<int, int> f, int a) => f(a);
        public static void Void(void* a, int** b) { }
        public static int Un(delegate* unmanaged[Cdecl]<int, void> f) => 0;
    }
    static class Parameters
    {
        public static void Many(bool a, char b, sbyte c, byte d, short e, ushort f, int g, uint h, long i, ulong j, float k, double l, decimal m, string n, object o, nint p, nuint q) { }
        public static void Refs(ref int a, out long b, in int c, int[] d, int[,] e, string[][] f, ref readonly int g) { b = 1; }
        public static void Generic(List<int> a, Dictionary<string, List<Order>> b, (int, string) c, int? d, DateTime e, DayOfWeek f, Box<int>.Inner<string> g) { }
        public static void Method<T, U>(T a, U b, List<T> c, U[] d) { }
        public static void Params(params int[] a) { }
        public static void Span(ReadOnlySpan<char> a, Span<byte> b) { }
        public static void Dyn(dynamic a, int b, IntPtr c, UIntPtr d) { }
    }
    static class StaticInit { public static readonly int Value; static StaticInit() { Value = Environment.TickCount; } }
    static class Ünïcode { public static int Größe(string ß) => ß.Length; }
    class @class { public int @event(int @int) => 1; }
    interface IDefault { int Def() => 4; }
    abstract class Base { public abstract int Virt(int a); }
    class Derived : Base, IDefault { public override int Virt(int a) => a; }
    class Disp : IDisposable { void IDisposable.Dispose() { } }
    static class Nested { public class A { public class B { public struct C { public int Deep() => 1; } } } public static class Static<T> { public static class A { public static T Get() => default; } } }
    static class Extensions { public static int Ext(this string s) => s.Length; }
    class Primary(int n) { public int Twice() { Func<int> f = () => n; return f() * 2; } }
    // Names no C# compiler makes: F# and VB allow nearly anything, obfuscators everything.
    static class Emitted
    {
        public static int Odd()
        {
            var asm = System.Reflection.Emit.AssemblyBuilder.DefineDynamicAssembly(new("Odd names"), System.Reflection.Emit.AssemblyBuilderAccess.Run);
            var mod = asm.DefineDynamicModule("Odd names");
            int n = 0;
            foreach (string typeName in new[] { "Odd.my type", "Odd.a,b", "Odd.x::y", "Odd.[br]", "Odd.semi;colon", "Odd.A`B", "Odd.plus\\+", "Odd.clo@12-1", "Odd.(paren)" })
            {
                var tb = mod.DefineType(typeName, System.Reflection.TypeAttributes.Public);
                string[] names = { "should return 5 (five)", "a::b", "x 42", "semi;colon", "q\"uote'`", "|Active|_|", "op_Addition", "f@12-1", "a(b", "c)d", "<odd", ">", "", "a\tb", "ünï", "M[x]", "->", "get_Item " };
                foreach (string name in names)
                {
                    if (name == "") continue;
                    var mb = tb.DefineMethod(name, System.Reflection.MethodAttributes.Public | System.Reflection.MethodAttributes.Static, typeof(int), new[] { typeof(int), typeof(List<string>) });
                    var il = mb.GetILGenerator(); il.Emit(System.Reflection.Emit.OpCodes.Ldarg_0); il.Emit(System.Reflection.Emit.OpCodes.Ret);
                }
                var t = tb.CreateType();
                foreach (var m in t.GetMethods(System.Reflection.BindingFlags.Static | System.Reflection.BindingFlags.Public)) n += (int)m.Invoke(null, new object[] { 1, null });
            }
            return n;
        }
    }
}
