// Notes that stand where there is nothing to show: such a place is never empty.
export function Failure({error, onRetry}) {
  return (
    <div class="trouble" role="alert">
      <p><strong>{error.message}</strong></p>
      {error.hint && <p>Hint: {error.hint}</p>}
      {onRetry && <p><button onClick={onRetry}>Try again</button></p>}
    </div>
  );
}

/** The answer as `children` of it, or what there is instead. */
export function Answer({resource, wait = 'Loading…', children}) {
  const {data, error, loading, retry} = resource;
  return (
    <div class="answer" aria-busy={loading}>
      {error && <Failure error={error} onRetry={retry} />}
      {data === null ? (!error && <p class="note" role="status">{wait}</p>) : children(data)}
    </div>
  );
}
