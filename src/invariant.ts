/** State of ours is not as it must be: a mistake in weir, whatever was asked. */
export class BrokenInvariant extends Error {
  override readonly name = 'BrokenInvariant';
}

type Report = (error: BrokenInvariant) => void;

/** Where nobody listens, as in tests and fuzzing, the first failure ends what runs. */
const THROW: Report = (error) => {
  throw error;
};

let report = THROW;

/** A server that goes on tells its log and metrics; returns what ends that. */
export function reportBrokenInvariants(listener: Report): () => void {
  report = listener;
  return () => {
    if (report === listener) report = THROW;
  };
}

/**
 * What must hold where state changes; `what` says it in words. Throws {@link BrokenInvariant}, after it was reported:
 * what is being done must not go on. Cheap enough for every decision.
 */
export function invariant(holds: boolean, what: string): void {
  if (holds) return;
  const error = new BrokenInvariant(what);
  report(error);
  throw error;
}

/** {@link invariant} where what is being done may go on: it is reported only. */
export function expectState(holds: boolean, what: string): void {
  if (!holds) report(new BrokenInvariant(what));
}
