/** Minimum interval between two log messages about the same event, in milliseconds. */
const LOG_INTERVAL_MS = 10_000;

/**
 * Returns a function that tells whether to log an event that may happen very often: it returns `true` at most once in
 * {@link LOG_INTERVAL_MS}.
 */
export function throttledLog(nowMs: () => number = () => performance.now()): () => boolean {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return () => {
    const now = nowMs();
    if (now < quietUntilMs) return false;
    quietUntilMs = now + LOG_INTERVAL_MS;
    return true;
  };
}
