// Monitors that threads hold and wait for, for good.
using System.Runtime.CompilerServices;

namespace Waits;

public sealed class Stock
{
    public int Items;
}

public sealed class Ledger
{
    public int Lines;
}

public sealed class Shelf<T>
{
    public T? Item;
}

// "stock keeper" and "book keeper" wait for each other, "customer" for one of them, "reader" for nothing but time while
// "writer" waits for it, and "listener" for a pulse that nobody gives. "visitor" has waited for what "reader" holds, and
// sleeps. Where the runtime has System.Threading.Lock, "lock keeper" has one and "lock waiter" wants it.
public static class Deadlocks
{
    static readonly Stock stock = new();
    static readonly Ledger ledger = new();
    static readonly Shelf<string> shelf = new();
    static readonly object bell = new();
    static readonly Barrier bothHold = new(2);
    static readonly CountdownEvent holders = new(3);

    static void Start(string name, Action action) => new Thread(() => action()) { Name = name, IsBackground = true }.Start();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sells()
    {
        lock (stock)
        {
            bothHold.SignalAndWait();
            holders.Signal();
            WritesDown();
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WritesDown()
    {
        lock (ledger) ++ledger.Lines;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Audits()
    {
        lock (ledger)
        {
            bothHold.SignalAndWait();
            holders.Signal();
            CountsItems();
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CountsItems()
    {
        lock (stock) ++stock.Items;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Buys()
    {
        holders.Wait();
        lock (stock) --stock.Items;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Reads()
    {
        lock (shelf)
        {
            lock (shelf)
            {
                holders.Signal();
                Thread.Sleep(Timeout.Infinite);
            }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Writes()
    {
        holders.Wait();
        lock (shelf) shelf.Item = "";
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Visits()
    {
        holders.Wait();
        while (Monitor.TryEnter(shelf, 50)) { }
        Thread.Sleep(Timeout.Infinite);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Listens()
    {
        lock (bell) Monitor.Wait(bell);
    }

    static void UseLock()
    {
        if (Type.GetType("System.Threading.Lock") is not { } type) return;
        object own = Activator.CreateInstance(type)!;
        var enter = (Action)Delegate.CreateDelegate(typeof(Action), own, "Enter");
        using var held = new ManualResetEventSlim();
        Start("lock keeper", () => { enter(); held.Set(); Thread.Sleep(Timeout.Infinite); });
        held.Wait();
        Start("lock waiter", () => WantsLock(enter));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WantsLock(Action enter)
    {
        enter();
        GC.KeepAlive(enter);
    }

    public static void Run()
    {
        Start("stock keeper", Sells);
        Start("book keeper", Audits);
        Start("customer", Buys);
        Start("reader", Reads);
        Start("writer", Writes);
        Start("visitor", Visits);
        Start("listener", Listens);
        holders.Wait();
        UseLock();
    }
}
