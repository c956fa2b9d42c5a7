// The server's account of a range in the form that the account panel of the HTML output takes.

/** @param {object} health  of api/health */
export function accountOf(health) {
  const {samples, lost, frames, stacks, own, notices, covered_ms: covered} = health;
  return {
    samples: samples && {...samples, lost: lost ?? {}},
    frames, stacks, self: own,
    duration_seconds: covered > 0 ? covered / 1000 : undefined,
    notices: (notices ?? []).map((notice) => (typeof notice === 'string' ? {message: notice} : {message: notice.text ?? notice.message ?? '', hint: notice.hint})),
  };
}

/** Changes of the sampling rate: the first rate, and each that differs from the one before. */
export function rateChanges(rates) {
  return (rates ?? []).filter(({hz}, i, all) => i === 0 || hz !== all[i - 1].hz);
}
