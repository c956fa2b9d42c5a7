using System.Linq.Expressions;

namespace Workload;

// Expression trees are dynamic methods with a closure; each unit compiles, runs and drops some.
static class Expressions
{
    public static long Churn(int seed)
    {
        long sum = Loops.JitMethods(seed);
        for (int i = 0; i < 5; i++) sum += Polynomial(seed + i)(i) + Filter(seed % 7)(Loops.Orders(seed, 3)[i % 3]);
        return sum;
    }

    static Func<long, long> Polynomial(int seed)
    {
        ParameterExpression x = Expression.Parameter(typeof(long), "x"), i = Expression.Variable(typeof(int), "i"),
                            sum = Expression.Variable(typeof(long), "sum");
        LabelTarget done = Expression.Label(typeof(long));
        return Expression.Lambda<Func<long, long>>(
            Expression.Block([i, sum],
                Expression.Loop(
                    Expression.IfThenElse(
                        Expression.LessThan(Expression.PostIncrementAssign(i), Expression.Constant(150_000)),
                        Expression.AddAssign(sum, Expression.ExclusiveOr(Expression.Multiply(x, Expression.Constant((long)seed)), sum)),
                        Expression.Break(done, sum)),
                    done)),
            $"Polynomial{seed % 100}", [x]).Compile();
    }

    // With a captured value, so that the method gets a closure object.
    static Func<Order, long> Filter(int least)
    {
        var bounds = new Item("bound", least, 0);
        Expression<Func<Order, long>> expression = o => o.Items.Where(item => item.Quantity > bounds.Quantity).Sum(item => (long)item.Sku.Length);
        return expression.Compile();
    }
}
