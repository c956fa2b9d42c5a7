using System.Reflection;
using System.Reflection.Emit;
using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

namespace Workload;

// Does a known number of what the runtime tells of. Truth: how often of each, and how many bytes were allocated meanwhile.
static class EventsMode
{
    sealed class OutOfStock(string message, Exception inner) : Exception(message, inner);

    // Large enough that allocation ticks see little else.
    sealed class Page
    {
        [InlineArray(510)]
        struct Words
        {
            long _word;
        }

        Words _words;

        public Page(long first) => _words[0] = first;
        public long First => _words[0];
    }

    static readonly object s_lock = new();
    static readonly List<int> s_threads = [];
    static Page? s_page;
    static long s_sum;

    public static void Run(Options options)
    {
        byte[] image = ZooMode.Image();
        Round(image, options, 1);  // all is compiled and loaded
        using var begin = new Begin(options);
        long from = Clock.MonotonicNs(), allocated = GC.GetTotalAllocatedBytes(precise: true);
        int collections = GC.CollectionCount(0);
        long compiled = JitInfo.GetCompiledMethodCount();
        s_threads.Clear();
        Round(image, options, options.Count);
        allocated = GC.GetTotalAllocatedBytes(precise: true) - allocated;
        collections = GC.CollectionCount(0) - collections;
        compiled = JitInfo.GetCompiledMethodCount() - compiled;
        long to = Clock.MonotonicNs();
        Begin.Tell(options, $"{{\"begin_ns\":{from},\"end_ns\":{to},\"exceptions\":{2 * options.Count},\"threads\":[{string.Join(",", s_threads)}]," +
            $"\"modules\":{options.Threads},\"blocked\":{options.Threads},\"methods\":{options.Threads},\"compiled\":{compiled},\"collections\":{collections},\"allocated\":{allocated}}}");
    }

    static void Round(byte[] image, Options options, int exceptions)
    {
        for (int i = 0; i < exceptions; i++) Throw(i);
        for (int i = 0; i < options.Threads; i++) Block();
        for (int i = 0; i < options.Threads; i++) s_sum += Compile(i);
        var contexts = new List<WeakReference>();
        for (int i = 0; i < options.Threads; i++) contexts.Add(Load(image, i));
        for (int i = 0; i < 10 && contexts.Exists(context => context.IsAlive); i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        for (int i = 0; i < options.Megabytes * 256; i++) s_page = new Page(i);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw(int number)
    {
        try
        {
            try
            {
                throw new InvalidOperationException($"order {number}");
            }
            catch (InvalidOperationException e)
            {
                throw new OutOfStock($"order {number} \u20ac\n", e);
            }
            finally
            {
                s_sum++;
            }
        }
        catch (OutOfStock e) when (e.InnerException != null)
        {
        }
    }

    // The thread may have waited for other things before, such as for the lock of its event.
    static volatile bool s_atLock;

    // A thread that has to wait for a lock which this one has.
    static void Block()
    {
        s_atLock = false;
        long before = Monitor.LockContentionCount;
        var thread = new Thread(() =>
        {
            s_threads.Add(Clock.ThreadId());  // nobody else is there to add one
            s_atLock = true;
            lock (s_lock) s_sum += s_page?.First ?? 0;
        });
        lock (s_lock)
        {
            thread.Start();
            // Until it sleeps in the lock. Before that it spins, which the runtime calls a wait as well but does not count.
            while (!s_atLock || Monitor.LockContentionCount == before || (thread.ThreadState & ThreadState.WaitSleepJoin) == 0) Thread.Sleep(1);
            Thread.Sleep(100);
        }
        thread.Join();
    }

    static long Compile(int number)
    {
        var method = new DynamicMethod($"Fresh{number}", typeof(long), Type.EmptyTypes);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldc_I8, (long)number);
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Func<long>>()();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static WeakReference Load(byte[] image, int number)
    {
        var context = new AssemblyLoadContext($"events {number}", isCollectible: true);
        Assembly assembly = context.LoadFromStream(new MemoryStream(image));
        if (assembly.GetType("Zoo.Exhibits") == null) throw new InvalidOperationException("zoo.dll has no exhibits");
        context.Unload();
        return new WeakReference(context);
    }
}
