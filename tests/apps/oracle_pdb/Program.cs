using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using System.Text;

namespace OraclePdb;

// oracle_pdb FILE...
//
// Prints what System.Reflection.Metadata reads of portable PDBs and of assemblies with one inside. It has one fact a line, columns separated by
// tabs, and an empty line behind each file. tests/unit/formats/pdb/pdb_text.h prints the same of our reader.
static class Program
{
    static readonly Guid Sha1 = new("ff1816ec-aa5e-4d10-87f7-6f4963833460");
    static readonly Guid Sha256 = new("8829d00f-11b8-4213-878b-770e8597ac16");
    static readonly Guid SourceLink = new("cc110556-a091-4d38-9fec-25ab9a351a6a");

    static int Main(string[] args)
    {
        using var output = new StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false), 1 << 16);
        foreach (string path in args)
        {
            byte[] bytes = File.ReadAllBytes(path);
            if (bytes is [(byte)'M', (byte)'Z', ..])
                PrintAssembly(new MemoryStream(bytes), output);
            else
                PrintPdb(MetadataReaderProvider.FromPortablePdbStream(new MemoryStream(bytes)), output);
            output.Write('\n');
        }
        return 0;
    }

    static string Hex(ReadOnlySpan<byte> bytes) => Convert.ToHexString(bytes).ToLowerInvariant();

    static void PrintAssembly(Stream stream, StreamWriter output)
    {
        using var image = new PEReader(stream);
        DebugDirectoryEntry[] entries = [.. image.ReadDebugDirectory()];
        foreach (DebugDirectoryEntry entry in entries.Where(e => e.Type == DebugDirectoryEntryType.CodeView && e.IsPortableCodeView))
        {
            CodeViewDebugDirectoryData data = image.ReadCodeViewDebugDirectoryData(entry);
            output.Write($"reference\t{Hex([.. data.Guid.ToByteArray(), .. BitConverter.GetBytes(entry.Stamp)])}\t{data.Age}\t{data.Path}\n");
        }
        foreach (DebugDirectoryEntry entry in entries.Where(e => e.Type == DebugDirectoryEntryType.PdbChecksum))
        {
            PdbChecksumDebugDirectoryData data = image.ReadPdbChecksumDebugDirectoryData(entry);
            output.Write($"checksum\t{data.AlgorithmName}\t{Hex(data.Checksum.AsSpan())}\n");
        }
        foreach (DebugDirectoryEntry entry in entries.Where(e => e.Type == DebugDirectoryEntryType.EmbeddedPortablePdb).Take(1))
            PrintPdb(image.ReadEmbeddedPortablePdbDebugDirectoryData(entry), output);
    }

    static void PrintPdb(MetadataReaderProvider provider, StreamWriter output)
    {
        using (provider)
        {
            MetadataReader reader = provider.GetMetadataReader();
            output.Write($"id\t{Hex(reader.DebugMetadataHeader!.Id.AsSpan())}\n");
            foreach (CustomDebugInformationHandle handle in reader.GetCustomDebugInformation(EntityHandle.ModuleDefinition))
            {
                CustomDebugInformation information = reader.GetCustomDebugInformation(handle);
                if (reader.GetGuid(information.Kind) == SourceLink)
                    output.Write($"source-link\t{Hex(reader.GetBlobBytes(information.Value))}\n");
            }
            foreach (DocumentHandle handle in reader.Documents)
                PrintDocument(reader, handle, output);
            foreach (MethodDebugInformationHandle handle in reader.MethodDebugInformation)
                PrintMethod(reader, handle, output);
        }
    }

    static void PrintDocument(MetadataReader reader, DocumentHandle handle, StreamWriter output)
    {
        Document document = reader.GetDocument(handle);
        Guid algorithm = document.HashAlgorithm.IsNil ? Guid.Empty : reader.GetGuid(document.HashAlgorithm);
        byte[] hash = document.Hash.IsNil ? [] : reader.GetBlobBytes(document.Hash);
        string name = algorithm == Sha1 ? "sha1" : algorithm == Sha256 ? "sha256" : "none";
        output.Write($"document\t{MetadataTokens.GetRowNumber(handle)}\t{name}\t{(name == "none" ? "" : Hex(hash))}\t{reader.GetString(document.Name)}\n");
    }

    static void PrintMethod(MetadataReader reader, MethodDebugInformationHandle handle, StreamWriter output)
    {
        MethodDebugInformation method = reader.GetMethodDebugInformation(handle);
        int row = MetadataTokens.GetRowNumber(handle);
        MethodDefinitionHandle kickoff = method.GetStateMachineKickoffMethod();
        if (!kickoff.IsNil)
            output.Write($"kickoff\t{row}\t{MetadataTokens.GetRowNumber(kickoff)}\n");
        if (method.SequencePointsBlob.IsNil)
            return;
        foreach (SequencePoint point in method.GetSequencePoints())
        {
            string place = point.IsHidden ? "0\t0\t0\t0" : $"{point.StartLine}\t{point.StartColumn}\t{point.EndLine}\t{point.EndColumn}";
            output.Write($"point\t{row}\t{point.Offset}\t{MetadataTokens.GetRowNumber(point.Document)}\t{place}\n");
        }
    }
}
