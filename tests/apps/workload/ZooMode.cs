using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

namespace Workload;

// Everything that has a name of its own kind. The types of tests/apps/zoo are in the default context, loaded from bytes, and in collectible
// contexts from a path and from a stream. There are assemblies, types and methods made by Reflection.Emit, and dynamic methods.
static class ZooMode
{
    static long s_sum;

    public static void Run(Options options)
    {
        byte[] image = Image();
        Func<int, int>[] copies =
        [
            Zoo.Exhibits.Round,
            Rounds(Assembly.Load(image)),
            Rounds(FromPath(image)),
            Rounds(new AssemblyLoadContext("zoo from a stream", isCollectible: true).LoadFromStream(new MemoryStream(image))),
            Emitted("Run", AssemblyBuilderAccess.Run),
            Emitted("RunAndCollect", AssemblyBuilderAccess.RunAndCollect),
            .. Enumerable.Range(0, 20).Select(Dynamic),
        ];
        foreach (Func<int, int> copy in copies) s_sum += copy(0);
        options.Ready();
        for (int i = 1; !options.Over(); i++)
        {
            foreach (Func<int, int> copy in copies) s_sum += copy(i);
            if (i % 200 == 0) GC.Collect();
        }
        Console.WriteLine($"truth {{\"checksum\":{s_sum & 1}}}");
    }

    // The file beside the program. A single-file program has none, so a deleted one has to do.
    static Assembly FromPath(byte[] image)
    {
        var context = new AssemblyLoadContext("zoo from a path", isCollectible: true);
        string path = Path.Combine(AppContext.BaseDirectory, "zoo.dll");
        if (File.Exists(path)) return context.LoadFromAssemblyPath(path);
        DirectoryInfo folder = Directory.CreateTempSubdirectory("clrsampler-zoo-");
        path = Path.Combine(folder.FullName, "zoo.dll");
        File.WriteAllBytes(path, image);
        Assembly assembly = context.LoadFromAssemblyPath(path);
        folder.Delete(recursive: true);
        return assembly;
    }

    public static byte[] Image()
    {
        using Stream resource = typeof(ZooMode).Assembly.GetManifestResourceStream("zoo.dll")!;
        var bytes = new byte[resource.Length];
        resource.ReadExactly(bytes);
        return bytes;
    }

    static Func<int, int> Rounds(Assembly assembly) =>
        assembly.GetType("Zoo.Exhibits")!.GetMethod("Round")!.CreateDelegate<Func<int, int>>();

    static Func<int, int> Dynamic(int number)
    {
        var method = new DynamicMethod($"DynamicSum{number}", typeof(int), [typeof(int)], typeof(ZooMode).Module);
        AddNumber(method.GetILGenerator(), number);
        return method.CreateDelegate<Func<int, int>>();
    }

    static void AddNumber(ILGenerator il, int number)
    {
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ldc_I4, number);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Ret);
    }

    // A type, a type nested in it, and a generic method. So the runtime's own copy of the metadata has rows of each kind.
    static Func<int, int> Emitted(string name, AssemblyBuilderAccess access)
    {
        ModuleBuilder module = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Emitted" + name), access).DefineDynamicModule("m");
        TypeBuilder outer = module.DefineType("Emitted.Outer" + name, TypeAttributes.Public);
        TypeBuilder inner = outer.DefineNestedType("Inner" + name, TypeAttributes.NestedPublic);
        MethodBuilder add = inner.DefineMethod("Add", MethodAttributes.Public | MethodAttributes.Static, typeof(int), [typeof(int)]);
        AddNumber(add.GetILGenerator(), 7);
        MethodBuilder same = outer.DefineMethod("Same", MethodAttributes.Public | MethodAttributes.Static);
        GenericTypeParameterBuilder t = same.DefineGenericParameters("T")[0];
        same.SetReturnType(t);
        same.SetParameters(t);
        ILGenerator il = same.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ret);
        MethodBuilder go = outer.DefineMethod("Go", MethodAttributes.Public | MethodAttributes.Static, typeof(int), [typeof(int)]);
        il = go.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, add);
        il.Emit(OpCodes.Call, same.MakeGenericMethod(typeof(int)));
        il.Emit(OpCodes.Ret);
        Type made = outer.CreateType();
        inner.CreateType();
        return made.GetMethod("Go")!.CreateDelegate<Func<int, int>>();
    }
}

// Ten thousand compiled methods and more: instantiations over value types share no code.
static class MethodsMode
{
    static readonly Type[] s_parts =
    [
        typeof(bool), typeof(byte), typeof(sbyte), typeof(char), typeof(short), typeof(ushort), typeof(int), typeof(uint), typeof(long),
        typeof(ulong), typeof(float), typeof(double), typeof(decimal), typeof(Guid), typeof(DateTime), typeof(TimeSpan), typeof(Half),
        typeof(nint), typeof(nuint), typeof(DayOfWeek), typeof(Index), typeof(DateOnly),
    ];

    public static void Run(Options options)
    {
        MethodInfo step = typeof(MethodsMode).GetMethod(nameof(Step), BindingFlags.Static | BindingFlags.NonPublic)!;
        Func<long, long>[] all = (from a in s_parts from b in s_parts from c in s_parts
                                  select step.MakeGenericMethod(typeof(ValueTuple<,,>).MakeGenericType(a, b, c))
                                             .CreateDelegate<Func<long, long>>()).ToArray();
        long sum = 0;
        foreach (Func<long, long> one in all) sum += one(1);
        options.Ready();
        while (!options.Over())
            foreach (Func<long, long> one in all) sum += one(200);
        Console.WriteLine($"truth {{\"methods\":{all.Length},\"checksum\":{sum & 1}}}");
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static long Step<T>(long rounds) where T : struct
    {
        long x = Unsafe.SizeOf<T>();
        for (long i = 0; i < rounds; i++) x = (x * 31) ^ (x >> 7);
        return x;
    }
}
