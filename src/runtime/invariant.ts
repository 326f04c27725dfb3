/** An inconsistent internal state: a bug in weir, regardless of the input. */
export class BrokenInvariant extends Error {
  override readonly name = 'BrokenInvariant';
}

type Report = (error: BrokenInvariant) => void;

/** Without a listener, as in tests and fuzzing, the first failure is thrown. */
const THROW: Report = (error) => {
  throw error;
};

let report = THROW;

/**
 * Reports failures to `listener`, which a server uses for its log and metrics. Returns a function that removes the
 * listener.
 */
export function reportBrokenInvariants(listener: Report): () => void {
  report = listener;
  return () => {
    if (report === listener) report = THROW;
  };
}

/**
 * Checks a condition that must hold when state changes; `what` describes it. If the condition is false, reports and
 * throws {@link BrokenInvariant}, so that the operation stops. Fast enough for every decision.
 */
export function invariant(holds: boolean, what: string): void {
  if (holds) return;
  const error = new BrokenInvariant(what);
  report(error);
  throw error;
}

/** Checks a condition like {@link invariant}, but only reports a failure, because the operation can continue. */
export function checkInvariant(holds: boolean, what: string): void {
  if (!holds) report(new BrokenInvariant(what));
}
