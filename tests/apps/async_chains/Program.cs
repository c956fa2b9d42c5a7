// Chains of eight async methods, each of which burns CPU time in a method of its own after it was resumed: so the awaiters of each
// burner are known. Compiled with -features:runtime-async=on, the methods are the runtime's own async methods (.NET 11), but for those
// that have a [Machine].
//
//   async_chains SECONDS [burn|sleep|throw]     each burner computes and allocates, sleeps, or throws; from a SIGHUP on
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Machine = System.Runtime.CompilerServices.RuntimeAsyncMethodGenerationAttribute;

namespace System.Runtime.CompilerServices
{
    [AttributeUsage(AttributeTargets.Method)]
    sealed class RuntimeAsyncMethodGenerationAttribute(bool runtimeAsync) : Attribute
    {
        public bool RuntimeAsync { get; } = runtimeAsync;
    }
}

namespace Shop
{

static class Work
{
    public static string Mode = "burn";
    static double s_sink;
    static byte[]? s_garbage;

    // Collections move what the sampler follows.
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Burn()
    {
        if (Mode == "sleep") Thread.Sleep(3);
        else if (Mode == "throw") Throw();
        else Compute();
    }

    static void Throw()
    {
        Compute();
        try { throw new InvalidOperationException(); }
        catch (InvalidOperationException) { }
    }

    static void Compute()
    {
        long end = Stopwatch.GetTimestamp() + Stopwatch.Frequency / 1000;
        while (Stopwatch.GetTimestamp() < end)
        {
            for (int i = 0; i < 2000; ++i) s_sink += Math.Sqrt(i);
            s_garbage = new byte[2000];
        }
    }
}

// Task<T>, awaited as it is.
static class Plain
{
    public static async Task<int> M1(Task gate) { int x = await M2(gate); Burn1(); return x; }
    static async Task<int> M2(Task gate) { int x = await M3(gate); Burn2(); return x + 1; }
    static async Task<int> M3(Task gate) { int x = await M4(gate); Burn3(); return x + 1; }
    static async Task<string> M5(Task gate) { string x = await M6(gate); Burn5(); return x; }
    static async Task<int> M4(Task gate) { string x = await M5(gate); Burn4(); return x.Length; }
    static async Task<string> M6(Task gate) { decimal x = await M7(gate); Burn6(); return x.ToString(); }
    static async Task<decimal> M7(Task gate) { await M8(gate); Burn7(); return 7; }
    static async Task M8(Task gate)
    {
        await gate;
        for (int i = 0; i < 3; ++i) { Burn8(); await Task.Yield(); }
    }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn1() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn2() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn3() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn4() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn5() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn6() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn7() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn8() => Work.Burn();
}

// ValueTask<T> and ConfigureAwait; one machine is generic.
static class Value
{
    public static async ValueTask<int> M1(Task gate) { int x = await M2(gate).ConfigureAwait(false); Burn1(); return x; }
    static async ValueTask<int> M2(Task gate) { int x = await M3(gate); Burn2(); return x + 1; }
    static async ValueTask<int> M3(Task gate) { int x = await M4<string>(gate); Burn3(); return x + 1; }
    static async ValueTask<int> M4<T>(Task gate) { int x = await M5<long>(gate).ConfigureAwait(false); Burn4(); return x + typeof(T).Name.Length; }
    static async ValueTask<int> M5<T>(Task gate) { int x = await M6(gate); Burn5(); return x + typeof(T).Name.Length; }
    static async Task<int> M6(Task gate) { await M7(gate).ConfigureAwait(false); Burn6(); return 1; }
    static async ValueTask M7(Task gate) { await M8(gate); Burn7(); }
    static async ValueTask M8(Task gate)
    {
        await gate.ConfigureAwait(false);
        for (int i = 0; i < 3; ++i) { Burn8(); await Task.Yield(); }
    }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn1() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn2() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn3() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn4() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn5() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn6() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn7() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn8() => Work.Burn();
}

// Tasks that stand between: of Task.Run, WhenAll, WhenAny, WaitAsync.
static class Between
{
    public static async Task<int> M1(Task gate) { int[] x = await Task.WhenAll(M2(gate), Task.FromResult(1)); Burn1(); return x[0]; }
    static async Task<int> M2(Task gate) { int x = await Task.Run(() => M3(gate)); Burn2(); return x + 1; }
    static async Task<int> M3(Task gate) { await Task.WhenAny(M4(gate), Program.Never); Burn3(); return 1; }
    static async Task M4(Task gate) { await Task.WhenAll(M5(gate), Task.CompletedTask); Burn4(); }
    static async Task M5(Task gate) { await M6(gate).WaitAsync(TimeSpan.FromMinutes(5)); Burn5(); }
    static async Task<int> M6(Task gate) { int x = await M7(gate); Burn6(); return x; }
    static async Task<int> M7(Task gate) { await M8(gate); Burn7(); return 1; }
    static async Task M8(Task gate)
    {
        // The gate may be open by the time that Task.Run begins: so the chain has 10 ms to become whole.
        await gate;
        for (int i = 0; i < 3; ++i) { await Task.Delay(10); Burn8(); }
    }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn1() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn2() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn3() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn4() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn5() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn6() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn7() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn8() => Work.Burn();
}

// On a scheduler of its own, with captured contexts; and eight times the same method.
static class Nested
{
    public static async Task<int> M(int depth, Task gate)
    {
        if (depth == 8)
        {
            await gate;
            for (int i = 0; i < 3; ++i) { Burn8(); await Task.Yield(); }
            return 0;
        }
        return await M(depth + 1, gate) + 1;
    }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn8() => Work.Burn();
}

static class Scheduled
{
    public static async Task<int> M1(Task gate) { int x = await M2(gate); Burn1(); return x; }
    static async Task<int> M2(Task gate) { int x = await M3(gate); Burn2(); return x + 1; }
    static async Task<int> M3(Task gate) { await M4(gate); Burn3(); return 1; }
    static async Task M4(Task gate)
    {
        await gate;
        for (int i = 0; i < 3; ++i) { Burn4(); await Task.Yield(); }
    }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn1() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn2() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn3() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn4() => Work.Burn();
}

// State machines and methods of the runtime's in turn, beginning and ending with either; and a method that only returns the task of
// another one.
static class Mixed
{
    public static async Task<int> M1(Task gate) { int x = await M2(gate); Burn1(); return x; }
    [Machine(false)] static async Task<int> M2(Task gate) { int x = await M3(gate); Burn2(); return x + 1; }
    static async Task<int> M3(Task gate) { int x = await M4(gate); Burn3(); return x + 1; }
    static async ValueTask<int> M4(Task gate) { string x = await M5(gate); Burn4(); return x.Length; }
    [Machine(false)] static async ValueTask<string> M5(Task gate) { string x = await M6(gate).ConfigureAwait(false); Burn5(); return x; }
    [Machine(false)] static async Task<string> M6(Task gate) { int x = await Forward(gate); Burn6(); return x.ToString(); }
    static Task<int> Forward(Task gate) => M7(gate);
    static async Task<int> M7(Task gate) { await Forward8(gate).ConfigureAwait(false); Burn7(); return 1; }
    [MethodImpl(MethodImplOptions.NoInlining)] static Task Forward8(Task gate) => M8(gate);
    static async Task M8(Task gate)
    {
        await gate;
        for (int i = 0; i < 3; ++i) { Burn8(); await Task.Yield(); }
    }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn1() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn2() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn3() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn4() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn5() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn6() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn7() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn8() => Work.Burn();
}

static class Machines
{
    [Machine(false)] public static async Task<int> M1(Task gate) { int x = await Task.Run(() => M2(gate)); Burn1(); return x; }
    static async Task<int> M2(Task gate) { int x = await M3(gate); Burn2(); return x + 1; }
    [Machine(false)] static async Task<int> M3(Task gate) { int[] x = await Task.WhenAll(M4(gate), M4Done()); Burn3(); return x[0]; }
    static async Task<int> M4(Task gate) { await Task.WhenAny(M5(gate), Program.Never); Burn4(); return 1; }
    static Task<int> M4Done() => Task.FromResult(2);
    static async Task M5(Task gate) { await M6<string>(gate).AsTask(); Burn5(); }
    static async ValueTask<int> M6<T>(Task gate) { int x = await M7<T>(gate); Burn6(); return x + typeof(T).Name.Length; }
    static async ValueTask<int> M7<T>(Task gate) { await M8(gate); Burn7(); return typeof(T).Name.Length; }
    [Machine(false)] static async Task M8(Task gate)
    {
        await gate;
        for (int i = 0; i < 3; ++i) { await Task.Delay(10); Burn8(); }
    }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn1() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn2() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn3() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn4() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn5() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn6() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn7() => Work.Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn8() => Work.Burn();
}

// Two await the same task, and nothing says which of them is meant.
static class Shared
{
    public static async Task Both(Task gate)
    {
        Task shared = Middle(gate);
        await Task.WhenAll(One(shared), Two(shared));
    }
    static async Task One(Task shared) { await shared; }
    static async Task Two(Task shared) { await shared; }
    static async Task Middle(Task gate) { await Inner(gate); }
    static async Task Inner(Task gate) { await gate; Burn1(); await Task.Yield(); Burn1(); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Burn1() => Work.Burn();
}

static class Program
{
    public static readonly Task Never = new TaskCompletionSource().Task;

    // The chain is whole before its innermost method goes on.
    static async Task Drive(Func<Task, Task> start)
    {
        while (true)
        {
            var gate = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
            Task chain = start(gate.Task);
            gate.SetResult();
            await chain;
        }
    }

    static void Start(List<Task> drivers)
    {
        var scheduler = new ConcurrentExclusiveSchedulerPair().ConcurrentScheduler;
        for (int i = 0; i < 2; ++i)
        {
            drivers.Add(Drive(gate => Plain.M1(gate)));
            drivers.Add(Drive(gate => Value.M1(gate).AsTask()));
            drivers.Add(Drive(gate => Between.M1(gate)));
            drivers.Add(Drive(gate => Nested.M(1, gate)));
            drivers.Add(Drive(gate => Mixed.M1(gate)));
            drivers.Add(Drive(gate => Machines.M1(gate)));
            drivers.Add(Drive(Shared.Both));
            drivers.Add(Task.Factory.StartNew(() => Drive(gate => Scheduled.M1(gate)), CancellationToken.None, TaskCreationOptions.None, scheduler).Unwrap());
        }
    }

    static int Main(string[] args)
    {
        if (args.Length > 1) Work.Mode = args[1];
        var drivers = new List<Task>();
        var go = new ManualResetEventSlim();
        using var hangup = PosixSignalRegistration.Create(PosixSignal.SIGHUP, context => { context.Cancel = true; go.Set(); });
        // A dynamic method stays, so that its heap is known when the methods come that resume others.
        var early = new DynamicMethod("Early", typeof(int), null);
        ILGenerator code = early.GetILGenerator();
        code.Emit(OpCodes.Ldc_I4_0);
        code.Emit(OpCodes.Ret);
        var stays = early.CreateDelegate<Func<int>>();
        stays();
        Console.WriteLine($"ready {Environment.ProcessId}");
        go.Wait();
        Start(drivers);
        Thread.Sleep(TimeSpan.FromSeconds(args.Length > 0 ? double.Parse(args[0]) : 60));
        return stays() + drivers.Count(driver => driver.IsFaulted);
    }
}
}
