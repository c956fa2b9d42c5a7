using System.Reflection;
using System.Runtime.InteropServices;
using System.Text.Json.Nodes;

namespace Shapes;

// shapes MODE [--seconds S] [--warm-up S] [--native LIBRARY]
//
// Each mode calls through one shape of frames again and again. The first line, `chains {...}` (JSON), says which stacks there can be, from the
// root of a thread's own code to the leaf; then come `ready PID`, and `truth {...}` at the end. tests/e2e/stack_truth.py explains the notation and
// judges profiles by it. A program's word is only as good as its compiler leaves it. So every method is NoInlining, does something with the result
// of a call behind it (or it would be a tail call), and has a name of its own. No code of this program but the chains runs while it is sampled.
static class Program
{
    // The worker reads this and nothing else, so that the clock is in no stack.
    public static volatile bool Stop;
    public static long Sink;

    static int Main(string[] args)
    {
        double seconds = 60, warmUp = 0.5;
        for (int i = 1; i + 1 < args.Length; i += 2)
        {
            if (args[i] == "--seconds") seconds = double.Parse(args[i + 1]);
            else if (args[i] == "--warm-up") warmUp = double.Parse(args[i + 1]);
            else if (args[i] == "--native") UseNative(args[i + 1]);
            else return Usage();
        }
        Mode[] all = [Framed.Mode, Chains.Mode, Tiny.Mode, Recursion.Mode, Structs.Mode, Locallocs.Mode, Generics.Mode, Delegates.Mode,
                      Interfaces.Mode, TailCalls.Mode, Exceptions.Mode, Retries.Mode, Asyncs.Mode, Callbacks.Mode, Suppressed.Mode, Sorts.Mode, Foreign.Mode, Osr.Mode];
        if (args is ["list"])
        {
            foreach (Mode one in all) Console.WriteLine(one.Name);
            return 0;
        }
        if (args.Length == 0 || all.FirstOrDefault(m => m.Name == args[0]) is not { } mode) return Usage();
        Console.WriteLine("chains " + new JsonObject
        {
            // Nodes need no reflection, which NativeAOT lacks.
            ["mode"] = mode.Name, ["chains"] = Nodes(mode.Chains), ["optional"] = Nodes(mode.Optional.Append(["Shapes.Program.Main", "~framework"])),
            ["prefix"] = mode.Prefix,
        }.ToJsonString());
        using var onTerminate = PosixSignalRegistration.Create(PosixSignal.SIGTERM, context =>
        {
            context.Cancel = true;
            Stop = true;
        });
        var worker = new Thread(mode.Root, mode.StackBytes);
        worker.Start();
        Thread.Sleep(TimeSpan.FromSeconds(warmUp));
        Console.WriteLine($"ready {Environment.ProcessId}");
        Console.Out.Flush();
        for (double left = seconds; left > 0 && !Stop; left -= 0.1) Thread.Sleep(100);
        Stop = true;
        worker.Join();
        Console.WriteLine($"truth {{\"rounds\":{Rounds},\"checksum\":{Sink & 1}}}");
        return 0;
    }

    // The events that a mode counts: exceptions thrown, for example.
    public static long Rounds;

    static void UseNative(string path) => NativeLibrary.SetDllImportResolver(Assembly.GetExecutingAssembly(), (name, _, _) =>
        name == Native.Library ? NativeLibrary.Load(path) : 0);

    static JsonArray Nodes(IEnumerable<string[]> chains) =>
        new(chains.Select(chain => (JsonNode)new JsonArray(chain.Select(word => (JsonNode)JsonValue.Create(word)).ToArray())).ToArray());

    static int Usage()
    {
        Console.Error.WriteLine("usage: shapes list | MODE [--seconds S] [--warm-up S] [--native LIBRARY]");
        return 2;
    }
}

// chains: each must be seen. optional: may be seen. Prefix: whether what lies above a thread's own code is the same in all stacks of the thread.
sealed record Mode(string Name, ThreadStart Root, string[][] Chains, string[][] Optional, string Prefix = "constant", int StackBytes = 0)
{
    public Mode(string name, ThreadStart root, params string[][] chains) : this(name, root, chains, []) { }
}
