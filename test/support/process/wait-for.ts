/**
 * Calls `attempt` every 10 ms and resolves with its first result that is not undefined; an exception counts as "not
 * yet". Rejects after `timeoutMs` with `what` and the last error.
 */
export async function waitFor<T>(
  what: string,
  attempt: () => T | undefined | Promise<T | undefined>,
  timeoutMs = 60_000,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await attempt();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) {
      throw new Error(`waited ${timeoutMs} ms for ${what}${last === undefined ? '' : `: ${last}`}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Resolves once a line of `log` matches `pattern`. Rejects with the lines if none does. */
export function untilLogged(log: readonly string[], pattern: RegExp): Promise<unknown> {
  return waitFor(`${pattern} in the log`, () => {
    if (log.some((line) => pattern.test(line))) return true;
    throw new Error(`the log has ${log.length === 0 ? 'no lines' : `these lines:\n${log.join('\n')}`}`);
  });
}
