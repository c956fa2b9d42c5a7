using System.Runtime.CompilerServices;

namespace Shapes;

// Chains of 2, 5, 10, 20 and 40 methods, in five forms by turns. A method has no frame, a frame pointer (a call in a loop), many saved registers,
// an array in the frame, or arguments on the stack. The environment chooses which compiler made them (tiers, ready-to-run).
static unsafe class Chains
{
    const MethodImplOptions No = MethodImplOptions.NoInlining;

    public static readonly Mode Mode = new("chains", Root, Chain("A", 2), Chain("B", 5), Chain("C", 10), Chain("D", 20), Chain("E", 40));

    static string[] Chain(string letter, int depth) =>
        ["Shapes.Chains.Root", .. Enumerable.Range(1, depth).Select(i => $"Shapes.Chains.{letter}{i:00}"), $"Shapes.Chains.Leaf{letter}"];

    [MethodImpl(No | MethodImplOptions.AggressiveOptimization)]
    static void Root()
    {
        for (int i = 0; !Program.Stop; i++) Program.Sink += A01(i) + B01(i) + C01(i) + D01(i) + E01(i);
    }

    static int s_one = 1;  // not a constant for the compilers, so the loops stay

    struct Words { public fixed int At[24]; }

    [MethodImpl(No)] static long A01(int n) { Words w; w.At[n & 15] = n; long s = A02(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long A02(int n) => LeafA(n + 1) + 1;
    [MethodImpl(No)] static long LeafA(int n) { ulong x = (ulong)n | 1; for (int i = 0; i < 4000; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; } return (long)x; }

    [MethodImpl(No)] static long B01(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += B02(n + i); return s; }
    [MethodImpl(No)] static long B02(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = B03(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long B03(int n) { Words w; w.At[n & 15] = n; long s = B04(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long B04(int n) => B05(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long B05(int n, int a, int b, int c, int d, int e, int f, int g) => LeafB(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long LeafB(int n) { ulong x = (ulong)n | 1; for (int i = 0; i < 4000; i++) { x ^= x << 12; x ^= x >> 25; x ^= x << 27; } return (long)x; }

    [MethodImpl(No)] static long C01(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += C02(n + i); return s; }
    [MethodImpl(No)] static long C02(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = C03(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long C03(int n) { Words w; w.At[n & 15] = n; long s = C04(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long C04(int n) => C05(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long C05(int n, int a, int b, int c, int d, int e, int f, int g) => C06(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long C06(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += C07(n + i); return s; }
    [MethodImpl(No)] static long C07(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = C08(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long C08(int n) { Words w; w.At[n & 15] = n; long s = C09(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long C09(int n) => C10(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long C10(int n, int a, int b, int c, int d, int e, int f, int g) => LeafC(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long LeafC(int n) { ulong x = (ulong)n | 1; for (int i = 0; i < 4000; i++) { x ^= x << 21; x ^= x >> 35; x ^= x << 4; } return (long)x; }

    [MethodImpl(No)] static long D01(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += D02(n + i); return s; }
    [MethodImpl(No)] static long D02(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = D03(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long D03(int n) { Words w; w.At[n & 15] = n; long s = D04(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long D04(int n) => D05(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long D05(int n, int a, int b, int c, int d, int e, int f, int g) => D06(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long D06(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += D07(n + i); return s; }
    [MethodImpl(No)] static long D07(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = D08(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long D08(int n) { Words w; w.At[n & 15] = n; long s = D09(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long D09(int n) => D10(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long D10(int n, int a, int b, int c, int d, int e, int f, int g) => D11(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long D11(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += D12(n + i); return s; }
    [MethodImpl(No)] static long D12(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = D13(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long D13(int n) { Words w; w.At[n & 15] = n; long s = D14(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long D14(int n) => D15(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long D15(int n, int a, int b, int c, int d, int e, int f, int g) => D16(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long D16(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += D17(n + i); return s; }
    [MethodImpl(No)] static long D17(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = D18(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long D18(int n) { Words w; w.At[n & 15] = n; long s = D19(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long D19(int n) => D20(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long D20(int n, int a, int b, int c, int d, int e, int f, int g) => LeafD(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long LeafD(int n) { ulong x = (ulong)n | 1; for (int i = 0; i < 4000; i++) { x ^= x << 5; x ^= x >> 15; x ^= x << 27; } return (long)x; }

    [MethodImpl(No)] static long E01(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += E02(n + i); return s; }
    [MethodImpl(No)] static long E02(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = E03(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long E03(int n) { Words w; w.At[n & 15] = n; long s = E04(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long E04(int n) => E05(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long E05(int n, int a, int b, int c, int d, int e, int f, int g) => E06(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long E06(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += E07(n + i); return s; }
    [MethodImpl(No)] static long E07(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = E08(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long E08(int n) { Words w; w.At[n & 15] = n; long s = E09(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long E09(int n) => E10(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long E10(int n, int a, int b, int c, int d, int e, int f, int g) => E11(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long E11(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += E12(n + i); return s; }
    [MethodImpl(No)] static long E12(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = E13(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long E13(int n) { Words w; w.At[n & 15] = n; long s = E14(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long E14(int n) => E15(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long E15(int n, int a, int b, int c, int d, int e, int f, int g) => E16(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long E16(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += E17(n + i); return s; }
    [MethodImpl(No)] static long E17(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = E18(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long E18(int n) { Words w; w.At[n & 15] = n; long s = E19(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long E19(int n) => E20(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long E20(int n, int a, int b, int c, int d, int e, int f, int g) => E21(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long E21(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += E22(n + i); return s; }
    [MethodImpl(No)] static long E22(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = E23(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long E23(int n) { Words w; w.At[n & 15] = n; long s = E24(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long E24(int n) => E25(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long E25(int n, int a, int b, int c, int d, int e, int f, int g) => E26(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long E26(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += E27(n + i); return s; }
    [MethodImpl(No)] static long E27(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = E28(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long E28(int n) { Words w; w.At[n & 15] = n; long s = E29(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long E29(int n) => E30(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long E30(int n, int a, int b, int c, int d, int e, int f, int g) => E31(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long E31(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += E32(n + i); return s; }
    [MethodImpl(No)] static long E32(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = E33(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long E33(int n) { Words w; w.At[n & 15] = n; long s = E34(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long E34(int n) => E35(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long E35(int n, int a, int b, int c, int d, int e, int f, int g) => E36(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long E36(int n) { long s = 0; for (int i = 0; i < s_one; i++) s += E37(n + i); return s; }
    [MethodImpl(No)] static long E37(int n) { int p = n * 3, q = n ^ 5, r = n + 7, t = n << 2; long s = E38(n + 1); return s + p * q - r * t + (p ^ r); }
    [MethodImpl(No)] static long E38(int n) { Words w; w.At[n & 15] = n; long s = E39(n + 1); return s + w.At[n & 15]; }
    [MethodImpl(No)] static long E39(int n) => E40(n + 1, 1, 2, 3, 4, 5, 6, 7) + 1;
    [MethodImpl(No)] static long E40(int n, int a, int b, int c, int d, int e, int f, int g) => LeafE(n + 1) + 1 + a + b + c + d + e + f + g;
    [MethodImpl(No)] static long LeafE(int n) { ulong x = (ulong)n | 1; for (int i = 0; i < 4000; i++) { x ^= x << 23; x ^= x >> 17; x ^= x << 26; } return (long)x; }
}
