using System.Globalization;
using System.IO.Compression;
using System.Security.Cryptography;
using System.Text;

namespace Workload;

// Work that is mostly done by native code: zlib and brotli, OpenSSL, ICU, and libc's copies.
static class Libraries
{
    static readonly byte[] s_text = Encoding.UTF8.GetBytes(string.Concat(Enumerable.Range(0, 3_000).Select(i => $"line {i * 7919 % 1000} of some text; ")));

    public static long Compression(int seed)
    {
        using var packed = new MemoryStream();
        using (Stream writer = seed % 2 == 0 ? new GZipStream(packed, CompressionLevel.Optimal, leaveOpen: true)
                                             : new BrotliStream(packed, CompressionLevel.Fastest, leaveOpen: true))
            writer.Write(s_text);
        packed.Position = 0;
        using Stream reader = seed % 2 == 0 ? new GZipStream(packed, CompressionMode.Decompress) : new BrotliStream(packed, CompressionMode.Decompress);
        var back = new byte[s_text.Length];
        reader.ReadExactly(back);
        return packed.Length + back[seed % back.Length];
    }

    public static long Crypto(int seed)
    {
        byte[] hash = SHA256.HashData(s_text);
        using Aes aes = Aes.Create();
        aes.Key = hash;
        byte[] secret = aes.EncryptCbc(s_text, hash.AsSpan(0, 16));
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        byte[] signature = key.SignData(hash, HashAlgorithmName.SHA256);
        return secret[seed % secret.Length] + (key.VerifyData(hash, signature, HashAlgorithmName.SHA256) ? 1 : 0);
    }

    // The project asks for no cultures. A mode that calls this before the first use of one gets them.
    public static void UseCultures() => AppContext.SetSwitch("System.Globalization.Invariant", false);

    public static void RunIcu(Options options)
    {
        CompareInfo swedish = CultureInfo.GetCultureInfo("sv-SE").CompareInfo;
        if (swedish.Compare("z", "\u00e4") >= 0) throw new InvalidOperationException("no ICU: cultures compare as bytes");
        string[] words = Enumerable.Range(0, 500).Select(i => $"\u00e5{i * 7919 % 1000} Zo\u00eb \u00c4pfel").ToArray();
        Loops.Run(options, seed =>
        {
            var copy = (string[])words.Clone();
            Array.Sort(copy, (a, b) => swedish.Compare(a, b, CompareOptions.IgnoreCase));
            return copy[seed % copy.Length].Normalize(NormalizationForm.FormD).Length + swedish.IndexOf(copy[0], "apfel", CompareOptions.IgnoreNonSpace);
        });
    }

    static readonly byte[] s_from = new byte[1 << 20], s_to = new byte[1 << 20];

    public static long Copies(int seed)
    {
        for (int bytes = 1; bytes <= s_from.Length; bytes *= 2)
        {
            for (int done = 0; done < 1 << 20; done += Math.Max(bytes, 256)) s_from.AsSpan(0, bytes).CopyTo(s_to);
        }
        Array.Clear(s_to);
        return s_to[seed % s_to.Length];
    }
}
