/** After something was said it is not said again for so long. Milliseconds. */
export const LOG_INTERVAL_MS = 10_000;

/** Whether to say something now that may happen all the time: `true` at most once in {@link LOG_INTERVAL_MS}. */
export function throttledLog(nowMs: () => number = () => performance.now()): () => boolean {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return () => {
    const now = nowMs();
    if (now < quietUntilMs) return false;
    quietUntilMs = now + LOG_INTERVAL_MS;
    return true;
  };
}
