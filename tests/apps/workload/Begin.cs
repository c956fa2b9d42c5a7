using System.Runtime.InteropServices;

namespace Workload;

// For modes that say `ready`, begin when SIGHUP comes, say their `truth` when they are through, and wait for SIGTERM or their time's end.
sealed class Begin : IDisposable
{
    readonly ManualResetEventSlim _begin = new();
    readonly PosixSignalRegistration _registration;

    public Begin(Options options)
    {
        _registration = PosixSignalRegistration.Create(PosixSignal.SIGHUP, context =>
        {
            context.Cancel = true;  // it does not end the process
            _begin.Set();
        });
        options.EndOnTerminate();
        options.Ready();
        _begin.Wait(options.Duration);
    }

    public void Dispose() => _registration.Dispose();

    public static void Tell(Options options, string truth)
    {
        Console.WriteLine("truth " + truth);
        Console.Out.Flush();
        while (!options.Over()) Thread.Sleep(20);
    }
}
