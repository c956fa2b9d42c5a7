// Waits in known ways, for times that it measures itself.
//
//   waits [BURNERS]
//   waits pool starved|blocking|calm|busy
//   waits service NAME
//   waits faults FILE
//   waits deadlock
//   waits limits MILLISECONDS
//   waits suspensions
//
// Each kind of wait has threads of its own. A number of seconds on standard input has them wait for that long. The program
// answers with a line of JSON: for each site the waits, the nanoseconds spent in them, and the name of the
// thread that ends them. The end of the input ends it. BURNERS threads compute all the time, so that others wait for a CPU.
// The pool's workers wait in the second form for tasks that need a worker, or for little, or compute; until the input ends.
// "service": Services.cs. "faults": each line of the input has the pages of FILE read
// again, after they were dropped, and gives the nanoseconds that took. "deadlock": Deadlocks.cs. "limits": TimeLimits.cs.
// "suspensions": each line is a number of collections, and the answer is the nanoseconds that the runtime stood still for
// them.
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Text.Json;

namespace Waits;

// The measurements of a thread of a site.
public sealed class Site(string method, string kind, string waker)
{
    public string Method { get; } = method;
    public string Kind { get; } = kind;
    public string Waker { get; } = waker;
    public long Waits, Ticks;

    public void Time(Action wait)
    {
        long began = Stopwatch.GetTimestamp();
        wait();
        Ticks += Stopwatch.GetTimestamp() - began;
        ++Waits;
    }
}

public static class Program
{
    const int PauseMs = 20;
    static volatile bool running;
    static readonly List<Site> sites = [];
    static readonly List<Thread> threads = [];

    static void Start(string name, Action round)
    {
        var thread = new Thread(() => { while (running) round(); }, 1 << 20) { Name = name, IsBackground = true };
        threads.Add(thread);
    }

    static Site Add(string method, string kind, string waker)
    {
        var site = new Site(method, kind, waker);
        sites.Add(site);
        return site;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sleeps() => Thread.Sleep(PauseMs);

    static readonly object gate = new();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void HoldsGate() => Thread.Sleep(PauseMs);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FirstOwner(Site site) { site.Time(EntersFirst); try { HoldsGate(); } finally { Monitor.Exit(gate); } Thread.Sleep(1); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void EntersFirst() => Monitor.Enter(gate);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void SecondOwner(Site site) { site.Time(EntersSecond); try { HoldsGate(); } finally { Monitor.Exit(gate); } Thread.Sleep(1); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void EntersSecond() => Monitor.Enter(gate);

    static TaskCompletionSource completion = new();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitsForTask() => completion.Task.Wait();

    static readonly SemaphoreSlim semaphore = new(0);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitsForSemaphore() => semaphore.Wait();

    static readonly AutoResetEvent handle = new(false);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WaitsForHandle() => handle.WaitOne();

    static Socket receiver = null!, sender = null!;
    static readonly byte[] one = new byte[1];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Receives() { while (receiver.Receive(one) == 0) { } }

    static void ConnectSockets()
    {
        using var listener = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(1);
        sender = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        sender.Connect(listener.LocalEndPoint!);
        receiver = listener.Accept();
    }

    static void DeclareSites()
    {
        Site sleeps = Add("Waits.Program.Sleeps", "sleep", "");
        Start("sleeper", () => sleeps.Time(Sleeps));
        Site first = Add("Waits.Program.EntersFirst", "monitor", "owner two"), second = Add("Waits.Program.EntersSecond", "monitor", "owner one");
        Start("owner one", () => FirstOwner(first));
        Start("owner two", () => SecondOwner(second));
        Site task = Add("Waits.Program.WaitsForTask", "task wait", "completer");
        Start("task waiter", () => { task.Time(WaitsForTask); Volatile.Write(ref completion, new()); });
        Start("completer", () => { Thread.Sleep(PauseMs); Volatile.Read(ref completion).TrySetResult(); });
        Site slots = Add("Waits.Program.WaitsForSemaphore", "semaphore", "releaser");
        Start("slot waiter", () => slots.Time(WaitsForSemaphore));
        Start("releaser", () => { Thread.Sleep(PauseMs); semaphore.Release(); });
        Site handles = Add("Waits.Program.WaitsForHandle", "event", "setter");
        Start("handle waiter", () => handles.Time(WaitsForHandle));
        Start("setter", () => { Thread.Sleep(PauseMs); handle.Set(); });
        Site socket = Add("Waits.Program.Receives", "socket", "sender");
        Start("receiver", () => socket.Time(Receives));
        Start("sender", () => { Thread.Sleep(PauseMs); sender.Send(one); });
    }

    // Sync over async: the task needs a worker, too.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int AnswersRequest() => Looks().Result;

    static async Task<int> Looks()
    {
        await Task.Delay(PauseMs);
        return await Task.Run(() => { Thread.Sleep(1); return 1; });
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Computes()
    {
        long until = Stopwatch.GetTimestamp() + Stopwatch.Frequency / 20;
        while (Stopwatch.GetTimestamp() < until) ++burnt;
    }

    static void Requests(string mode)
    {
        while (true)
        {
            switch (mode)
            {
                case "starved": ThreadPool.QueueUserWorkItem(_ => AnswersRequest()); break;
                case "blocking": ThreadPool.QueueUserWorkItem(_ => AnswersRequest()); break;
                case "calm": ThreadPool.QueueUserWorkItem(_ => Thread.Sleep(5)); break;
                case "busy": ThreadPool.QueueUserWorkItem(_ => Computes()); break;
            }
            Thread.Sleep(mode == "starved" ? 2 : 50);
        }
    }

    static volatile int burnt;

    public static void Main(string[] args)
    {
        if (args.Length == 1 && args[0] == "deadlock")
        {
            Deadlocks.Run();
            Console.WriteLine("ready");
            while (Console.ReadLine() is not null) { }
            return;
        }
        if (args.Length > 1 && args[0] == "limits")
        {
            TimeLimits.Run(int.Parse(args[1]));
            Console.WriteLine("ready");
            while (Console.ReadLine() is not null) { }
            return;
        }
        if (args.Length > 1 && args[0] == "faults")
        {
            Console.WriteLine("ready");
            while (Console.ReadLine() is not null) Console.WriteLine(PageFaults.Run(args[1]));
            return;
        }
        if (args.Length > 0 && args[0] == "suspensions")
        {
            Suspensions.Start();
            Console.WriteLine("ready");
            while (Console.ReadLine() is { } count) Console.WriteLine(Suspensions.Collect(int.Parse(count)));
            return;
        }
        if (args.Length > 1 && args[0] == "service")
        {
            Services.Run(args[1]);
            Console.WriteLine("ready");
            while (Console.ReadLine() is not null) { }
            return;
        }
        if (args.Length > 1 && args[0] == "pool")
        {
            new Thread(() => Requests(args[1])) { IsBackground = true }.Start();
            Console.WriteLine("ready");
            while (Console.ReadLine() is not null) { }
            return;
        }
        ConnectSockets();
        int burners = args.Length > 0 ? int.Parse(args[0]) : 0;
        for (int i = 0; i < burners; ++i)
            new Thread(() => { while (true) ++burnt; }) { Name = "burner", IsBackground = true }.Start();
        Console.WriteLine("ready");
        while (Console.ReadLine() is { } line)
        {
            sites.Clear();
            threads.Clear();
            DeclareSites();
            running = true;
            foreach (Thread thread in threads) thread.Start();
            Thread.Sleep(TimeSpan.FromSeconds(double.Parse(line)));
            running = false;
            // A thread that waits for another that has ended already is let go.
            while (threads.Exists(thread => !thread.Join(PauseMs)))
            {
                completion.TrySetResult();
                semaphore.Release();
                handle.Set();
                sender.Send(one);
            }
            Console.WriteLine(JsonSerializer.Serialize(sites.Select(site => new
            {
                method = site.Method, kind = site.Kind, waker = site.Waker, waits = site.Waits,
                ns = (long)(site.Ticks * 1e9 / Stopwatch.Frequency),
            })));
        }
    }
}
