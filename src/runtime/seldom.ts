/** After something was said it is not said again for so long. Milliseconds. */
export const QUIET_MS = 10_000;

/** Whether to say something now that may happen all the time: `true` at most once in {@link QUIET_MS}. */
export function seldom(nowMs: () => number = () => performance.now()): () => boolean {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return () => {
    const now = nowMs();
    if (now < quietUntilMs) return false;
    quietUntilMs = now + QUIET_MS;
    return true;
  };
}
