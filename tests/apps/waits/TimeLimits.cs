// Threads that hold a lock each and want the other's, and of which at least one gives up after a while.
using System.Runtime.CompilerServices;

namespace Waits;

// "first" and "second" try for a monitor, "third" waits for one without a limit, and "fourth" tries for it. Where the
// runtime has System.Threading.Lock, "fifth" and "sixth" try for one.
public static class TimeLimits
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Tries(object own, object other, Barrier bothHold, int milliseconds)
    {
        lock (own)
        {
            bothHold.SignalAndWait();
            if (Monitor.TryEnter(other, milliseconds)) Monitor.Exit(other);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Waits(object own, object other, Barrier bothHold)
    {
        lock (own)
        {
            bothHold.SignalAndWait();
            lock (other) GC.KeepAlive(own);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void TriesLock(Action enterOwn, Func<int, bool> tryOther, Barrier bothHold, int milliseconds)
    {
        enterOwn();
        bothHold.SignalAndWait();
        tryOther(milliseconds);
        GC.KeepAlive(tryOther);
    }

    static void Start(string name, Action action) => new Thread(() => action()) { Name = name, IsBackground = true }.Start();

    static T Bound<T>(object one, string method) where T : Delegate => (T)Delegate.CreateDelegate(typeof(T), one, method);

    public static void Run(int milliseconds)
    {
        Stock stock = new(), sold = new();
        Ledger ledger = new(), old = new();
        Barrier both = new(2), oneOfBoth = new(2);
        Start("first", () => Tries(stock, ledger, both, milliseconds));
        Start("second", () => Tries(ledger, stock, both, milliseconds));
        Start("third", () => Waits(sold, old, oneOfBoth));
        Start("fourth", () => Tries(old, sold, oneOfBoth, milliseconds));
        if (Type.GetType("System.Threading.Lock") is not { } type) return;
        object left = Activator.CreateInstance(type)!, right = Activator.CreateInstance(type)!;
        Barrier locks = new(2);
        Start("fifth", () => TriesLock(Bound<Action>(left, "Enter"), Bound<Func<int, bool>>(right, "TryEnter"), locks, milliseconds));
        Start("sixth", () => TriesLock(Bound<Action>(right, "Enter"), Bound<Func<int, bool>>(left, "TryEnter"), locks, milliseconds));
    }
}
