// Async methods that the runtime compiles itself (.NET 11, -features:runtime-async=on). Each ends in a method of its own that
// burns CPU time, so that the chain of callers of each burner is known.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;

namespace Shop;

interface ICart
{
    Task<int> PriceAsync(int item);
}

// People wrote a method that returns a task; a caller that awaits it through the interface calls a thunk.
sealed class Cart : ICart
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public Task<int> PriceAsync(int item)
    {
        Program.BurnPlain();
        return Task.FromResult(item);
    }
}

static class Program
{
    static readonly ICart s_cart = new Cart();
    static double s_sink;

    static void Burn()
    {
        var watch = Stopwatch.StartNew();
        while (watch.Elapsed.TotalMilliseconds < 2)
            for (int i = 0; i < 1000; ++i) s_sink += Math.Sqrt(i);
    }
    [MethodImpl(MethodImplOptions.NoInlining)] static void BurnFirst() => Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void BurnResumed() => Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] static void BurnNested() => Burn();
    [MethodImpl(MethodImplOptions.NoInlining)] internal static void BurnPlain() => Burn();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task<int> ReserveAsync(int item)
    {
        BurnFirst();
        await Task.Yield();
        BurnResumed();
        return item + await s_cart.PriceAsync(item);
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task<int> PayAsync(int item) => await ReserveAsync(item) + 1;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task<int> CheckoutAsync(int item) => await PayAsync(item) + 1;

    // Three frames of one method.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static async Task<int> NestAsync(int depth)
    {
        if (depth > 0) return await NestAsync(depth - 1);
        BurnNested();
        return 0;
    }

    static int Main()
    {
        Console.WriteLine($"ready {Environment.ProcessId}");
        while (true)
        {
            CheckoutAsync(1).GetAwaiter().GetResult();
            NestAsync(2).GetAwaiter().GetResult();
        }
    }
}
