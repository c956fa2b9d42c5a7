using System.Text;

namespace OracleNames;

// The debugger library's text of a method, turned into `Type[Args]` and `Method[Args]` without the assemblies. Types' names (not methods')
// carry a backslash before characters that have a meaning in the notation; results are without it, as metadata has them.
static class ClrText
{
    // null: the text does not begin with this type and this method.
    public static (string Type, string Method)? Split(string text, string type, string method)
    {
        int at = After(text, type);
        if (at < 0) return null;
        string typeArguments = Arguments(text, ref at);
        if (at >= text.Length || text[at] != '.') return null;
        at++;
        if (string.CompareOrdinal(text, at, method, 0, method.Length) != 0) return null;
        at += method.Length;
        string methodArguments = Arguments(text, ref at);
        if (at < text.Length && text[at] != '(') return null;
        return (type + typeArguments, method + methodArguments);
    }

    // The end of `name` at the beginning of `text`, in which characters may be escaped; -1: the text begins in another way.
    static int After(string text, string name)
    {
        int at = 0;
        foreach (char c in name)
        {
            if (at < text.Length && text[at] == '\\' && c != '\\') at++;
            if (at >= text.Length || text[at++] != c) return -1;
        }
        return at;
    }

    // Without metadata: the method begins after the last dot that is outside of brackets and before the parameters.
    public static (string Type, string Method) Guess(string text)
    {
        foreach (string owner in (string[])["DynamicClass", "ILStubClass"])
        {
            // Generated code: all that is between the owner and the parameters is the name.
            if (text.StartsWith(owner + ".", StringComparison.Ordinal)) return (owner, text[(owner.Length + 1)..].Split('(')[0]);
        }
        int depth = 0, dot = -1, end = text.Length;
        for (int i = 0; i < text.Length && end == text.Length; i++)
        {
            if (text[i] == '[') depth++;
            else if (text[i] == ']') depth--;
            else if (text[i] == '(' && depth == 0) end = i;
            else if (text[i] == '.' && depth == 0 && i > 0 && text[i - 1] != '.') dot = i;  // `..ctor`: the first of two
        }
        if (dot < 0) return ("", Plain(text[..end]));
        return (Plain(text[..dot]), Plain(text[(dot + 1)..end]));
    }

    static string Plain(string text)
    {
        int at = text.IndexOf("[[", StringComparison.Ordinal);
        if (at < 0) return text;
        string name = text[..at];
        string arguments = Arguments(text, ref at);
        return name + arguments + text[at..];
    }

    // `[[A, assembly],[B, assembly]]` at `at` -> `[A,B]`; nothing there: "".
    static string Arguments(string text, ref int at)
    {
        if (at + 1 >= text.Length || text[at] != '[' || text[at + 1] != '[') return "";
        var result = new StringBuilder("[");
        at++;
        while (at < text.Length && text[at] != ']')
        {
            if (text[at] == ',')
            {
                result.Append(',');
                at++;
                continue;
            }
            at++;  // the argument's own bracket
            Type(text, ref at, result);
            while (at < text.Length && text[at] != ']') at++;  // `, assembly`
            at++;
        }
        at++;
        return result.Append(']').ToString();
    }

    // A type up to the comma or bracket that ends it; brackets that belong to arrays stay.
    static void Type(string text, ref int at, StringBuilder result)
    {
        while (at < text.Length && text[at] != ']' && text[at] != ',')
        {
            if (text[at] == '\\' && at + 1 < text.Length) at++;  // the next one stands for itself
            else if (text[at] == '[')
            {
                Bracket(text, ref at, result);
                continue;
            }
            result.Append(text[at++]);
        }
    }

    static void Bracket(string text, ref int at, StringBuilder result)
    {
        if (at + 1 < text.Length && text[at + 1] == '[')
        {
            result.Append(Arguments(text, ref at));
            return;
        }
        int end = text.IndexOf(']', at);
        if (end < 0) end = text.Length - 1;
        result.Append(text, at, end + 1 - at);
        at = end + 1;
    }
}
