// The second assembly: with shapes.cs it makes the composite image and the image with foreign generic instances.
using System.Collections.Generic;
using System.Runtime.CompilerServices;

namespace Library
{
    public struct Pair<A, B> { public A First; public B Second; [MethodImpl(MethodImplOptions.NoInlining)] public string Both() => First + "/" + Second; }
    public static class Helper
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Answer(int n) => n == 0 ? 0 : 40 + Count(new Pair<int, string> { First = n }) ;
        [MethodImpl(MethodImplOptions.NoInlining)]
        static int Count<T>(T item) => new List<T> { item, item }.Count;
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int CountOf<T>(IEnumerable<T> items) { int n = 0; foreach (T _ in items) n++; return n; }
    }
}
