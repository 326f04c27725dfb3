/** Most attempts to connect that are under way at a time. */
export const ATTEMPTS_AT_ONCE = 32;
/** Each server that waits for its next attempt, or probe, makes the pauses of the others longer by so much. */
export const PAUSE_PER_SERVER_MS = 25;

/**
 * Shares attempts to connect, and probes of servers that are away, among all servers of one cluster: a thousand of them
 * that are away cost no more than a few, and 20 are tried as often as one.
 */
export class ConnectionAttempts {
  readonly #pauses = new Set<NodeJS.Timeout>();
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;

  /** Calls back after `ms`, later if many servers wait. */
  later(ms: number, callback: () => void): NodeJS.Timeout {
    const timer = setTimeout(
      () => {
        this.#pauses.delete(timer);
        callback();
      },
      Math.max(ms, PAUSE_PER_SERVER_MS * this.#pauses.size),
    );
    this.#pauses.add(timer);
    return timer;
  }

  cancel(timer: NodeJS.Timeout | undefined): void {
    if (timer === undefined) return;
    clearTimeout(timer);
    this.#pauses.delete(timer);
  }

  /** Runs an attempt once there is room for it. Urgent ones do not wait behind others. */
  async run<T>(attempt: () => Promise<T>, isUrgent: boolean): Promise<T> {
    if (this.#underWay < ATTEMPTS_AT_ONCE) this.#underWay++;
    else {
      await new Promise<void>((resolve) => {
        if (isUrgent) this.#waiting.unshift(resolve);
        else this.#waiting.push(resolve);
      });
    }
    try {
      return await attempt();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#underWay--;
      else next();
    }
  }
}
