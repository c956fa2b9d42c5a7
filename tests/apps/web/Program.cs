using System.Globalization;
using System.Net;
using System.Net.Http.Json;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace Web;

sealed record Line(string Sku, int Quantity, decimal Price);

sealed record Basket(int Id, string Customer, List<Line> Lines);

sealed class Shop
{
    // As a database answers.
    public async Task<Basket> FindSlowly(int id)
    {
        await Task.Delay(20);
        return Find(id);
    }

    public Basket Find(int id) => new(id, $"customer {id % 37}",
        Enumerable.Range(0, 20).Select(i => new Line($"sku-{i * id % 97}", i + 1, 0.99m * i)).ToList());
}

// web MODE [--seconds S] [--threads N]
//
// Kestrel on a loopback port of the system's choice under requests from N clients in the same process. Modes: `web` serves, `idle` serves
// one request every 200 ms, like a service that is hardly used, `serve` waits for clients of others. Prints `ready PID ADDRESS` after the
// first answer, and `truth {"requests":N}`. `/basket/N` is quick, `/awaiting/N` awaits its answer for 20 ms, and `/blocking/N` blocks for it.
static class Program
{
    static async Task<int> Main(string[] args)
    {
        double seconds = 10;
        int threads = 2;
        for (int i = 1; i + 1 < args.Length; i += 2)
        {
            if (args[i] == "--seconds") seconds = double.Parse(args[i + 1], CultureInfo.InvariantCulture);
            else if (args[i] == "--threads") threads = int.Parse(args[i + 1], CultureInfo.InvariantCulture);
            else return Usage();
        }
        if (args.Length % 2 != 1 || args[0] is not ("web" or "idle" or "serve")) return Usage();
        TimeSpan rest = args[0] == "idle" ? TimeSpan.FromMilliseconds(200) : TimeSpan.Zero;

        await using WebApplication app = Build();
        await app.StartAsync();
        string address = app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.First();
        using var client = new HttpClient { BaseAddress = new Uri(address) };
        await Request(client, 0);
        Console.WriteLine($"ready {Environment.ProcessId} {address}");

        using var over = new CancellationTokenSource(TimeSpan.FromSeconds(seconds));
        if (args[0] == "serve")
        {
            await Task.Delay(TimeSpan.FromSeconds(seconds));
            await app.StopAsync();
            return 0;
        }
        long[] requests = await Task.WhenAll(Enumerable.Range(0, rest == TimeSpan.Zero ? threads : 1)
            .Select(t => Task.Run(() => Load(client, t, rest, over.Token))));
        await app.StopAsync();
        Console.WriteLine($"truth {{\"requests\":{requests.Sum()}}}");
        return 0;
    }

    static int Usage()
    {
        Console.Error.WriteLine("usage: web web|idle|serve [--seconds S] [--threads N]");
        return 2;
    }

    static WebApplication Build()
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.ConfigureKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, 0));
        builder.Services.AddSingleton<Shop>();
        WebApplication app = builder.Build();
        app.Use(async (context, next) =>
        {
            context.Response.Headers["x-shop"] = "1";
            await next(context);
        });
        app.MapGet("/basket/{id:int}", (int id, Shop shop) => shop.Find(id));
        app.MapGet("/awaiting/{id:int}", (int id, Shop shop) => shop.FindSlowly(id));
        app.MapGet("/blocking/{id:int}", FindAndBlock);
        app.MapPost("/basket", (Basket basket) => Results.Ok(basket.Lines.Sum(line => line.Price * line.Quantity)));
        return app;
    }

    // Sync over async: a worker of the pool waits for what another worker has to do. The wait is not the last thing that it does: the
    // optimiser would have Result return to the caller at once, and nothing would be left of this method on the stack.
    static Basket FindAndBlock(int id, Shop shop)
    {
        Basket found = shop.FindSlowly(id).Result;
        return found with { Customer = "blocked" };
    }

    static async Task<long> Load(HttpClient client, int seed, TimeSpan rest, CancellationToken over)
    {
        long count = 0;
        while (!over.IsCancellationRequested)
        {
            await Request(client, seed++);
            count++;
            if (rest > TimeSpan.Zero) await Task.Delay(rest, CancellationToken.None);
        }
        return count;
    }

    static async Task Request(HttpClient client, int id)
    {
        Basket basket = (await client.GetFromJsonAsync<Basket>($"/basket/{id}"))!;
        using HttpResponseMessage answer = await client.PostAsJsonAsync("/basket", basket);
        if (!answer.IsSuccessStatusCode) throw new InvalidOperationException($"status {answer.StatusCode}");
        await answer.Content.ReadAsStringAsync();
    }
}
