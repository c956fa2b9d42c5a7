// A small assembly: what leads from it to its PDB is of interest.
namespace Lines;

public static class Program
{
    public static int Twice(int value)
    {
        int doubled = value + value;
        return doubled;
    }
}
