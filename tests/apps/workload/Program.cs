using System.Globalization;
using System.Runtime.InteropServices;

namespace Workload;

// workload MODE [--seconds S] [--threads N] [--depth N] [--count N] [--megabytes N] [--more PERCENT] [--log FILE] [--native LIBRARY] [--ticks]
//
// Prints `ready PID` when the mode's work begins and `truth {...}` (JSON) when it ends, then exits with 0. With --ticks it prints
// `tick MONOTONIC_NS UNITS CPU_NS` every half second: units of work done and CPU time of the process, for paired measurements.
static class Program
{
    static int Main(string[] args)
    {
        if (args is ["icu", ..]) Libraries.UseCultures();
        if (args.Length == 0 || !Options.TryParse(args, out Options options))
        {
            Console.Error.WriteLine("usage: workload MODE [--seconds S] [--threads N] [--depth N] [--count N] [--megabytes N] [--more PERCENT] [--log FILE] [--native LIBRARY] [--ticks]");
            return 2;
        }
        Action<Options>? mode = options.Mode switch
        {
            "split" => SplitMode.Run,
            "recurse" => RecurseMode.Run,
            "alc" => GenerationMode.RunContexts,
            "alc-reuse" => GenerationMode.RunReusedContexts,
            "lcg" => GenerationMode.RunDynamicMethods,
            "startup" => StartupMode.Run,
            "json" => o => Loops.Run(o, Loops.Json),
            "regex" => o => Loops.Run(o, Loops.RegexMatch),
            "linq" => o => Loops.Run(o, Loops.Linq),
            "async" => o => Loops.Run(o, Loops.Async),
            "gc" => o => Loops.Run(o, Loops.Garbage),
            "jit" => o => Loops.Run(o, Loops.JitMethods),
            "storm" => o => Loops.Run(o, Loops.Storm),
            "mix" => o => Loops.Run(o, Loops.Mix),
            "contend" => o => Loops.Run(o, Loops.Contend),
            "expr" => o => Loops.Run(o, Expressions.Churn),
            "zoo" => ZooMode.Run,
            "methods" => MethodsMode.Run,
            "compression" => o => Loops.Run(o, Libraries.Compression),
            "crypto" => o => Loops.Run(o, Libraries.Crypto),
            "icu" => Libraries.RunIcu,
            "memcpy" => o => Loops.Run(o, Libraries.Copies),
            "service" => o => Loops.Run(o, Loops.Request),
            "burn" => o => Loops.Run(o, Loops.Burn),
            "compare" => CompareMode.Run,
            "pauses" => PauseMode.Run,
            "compile" => CompileMode.Run,
            "events" => EventsMode.Run,
            "flood-gc" => FloodMode.RunCollections,
            "flood-jit" => FloodMode.RunCompilations,
            "delay-suppress" => PauseMode.RunSuppressed,
            "delay-pinvoke" => PauseMode.RunTransitions,
            "delay-copy" => PauseMode.RunCopies,
            "delay-large" => PauseMode.RunLargeArrays,
            "delay-fill" => PauseMode.RunFills,
            "delay-sleep" => PauseMode.RunSleepers,
            "delay-idle" => PauseMode.RunIdle,
            "idle" => o => { o.Ready(); Thread.Sleep(o.Duration); },
            _ => null,
        };
        if (mode == null)
        {
            Console.Error.WriteLine($"unknown mode {options.Mode}");
            return 2;
        }
        mode(options);
        return 0;
    }
}

sealed class Options
{
    public required string Mode { get; init; }
    public double Seconds { get; private set; } = 10;
    public int Threads { get; private set; } = 1;
    public int Depth { get; private set; } = 120;
    public int Count { get; private set; } = 100;     // mode events: exceptions
    public int Megabytes { get; private set; } = 8;  // mode events: allocated at the end
    public int More { get; private set; }  // mode compare: what one method takes longer, in percent
    public string? Log { get; private set; }
    public string? Native { get; private set; }  // tests/apps/shapes_native
    public bool Ticks { get; private set; }
    public TimeSpan Duration => TimeSpan.FromSeconds(Seconds);

    long _begin = Clock.MonotonicNs();
    public bool Over() => _stopped || Clock.MonotonicNs() - _begin > Seconds * 1e9;

    volatile bool _stopped;
    PosixSignalRegistration? _onTerminate;

    // From now on SIGTERM ends the mode as if its seconds were over: its truth is still told.
    public void EndOnTerminate() => _onTerminate = PosixSignalRegistration.Create(PosixSignal.SIGTERM, context =>
    {
        context.Cancel = true;
        _stopped = true;
    });

    // Here the seconds begin to count.
    public void Ready()
    {
        _begin = Clock.MonotonicNs();
        Console.WriteLine($"ready {Environment.ProcessId}");
        Console.Out.Flush();
    }

    public static bool TryParse(string[] args, out Options options)
    {
        options = new Options { Mode = args[0] };
        for (int i = 1; i < args.Length; i++)
        {
            string? Next() => i + 1 < args.Length ? args[++i] : null;
            switch (args[i])
            {
                case "--seconds":
                    if (!double.TryParse(Next(), NumberStyles.Float, CultureInfo.InvariantCulture, out double s)) return false;
                    options.Seconds = s;
                    break;
                case "--threads":
                    if (!int.TryParse(Next(), out int t)) return false;
                    options.Threads = t;
                    break;
                case "--depth":
                    if (!int.TryParse(Next(), out int d)) return false;
                    options.Depth = d;
                    break;
                case "--count":
                    if (!int.TryParse(Next(), out int c)) return false;
                    options.Count = c;
                    break;
                case "--megabytes":
                    if (!int.TryParse(Next(), out int b)) return false;
                    options.Megabytes = b;
                    break;
                case "--more":
                    if (!int.TryParse(Next(), out int m)) return false;
                    options.More = m;
                    break;
                case "--log":
                    options.Log = Next();
                    break;
                case "--native":
                    options.Native = Next();
                    break;
                case "--ticks":
                    options.Ticks = true;
                    break;
                default:
                    return false;
            }
        }
        return true;
    }
}
