/** Maximum number of concurrent connection attempts. */
export const ATTEMPTS_AT_ONCE = 32;
/** Pause added for each server that waits for its next attempt or probe, in milliseconds. */
export const PAUSE_PER_SERVER_MS = 25;

/**
 * Limits connection attempts and probes for all servers of a cluster, so that a thousand unavailable servers cost no
 * more than a few. With up to 20 servers, each is retried as often as a single one. Servers that have worked before are
 * urgent and do not wait behind others.
 */
export class ConnectionAttempts {
  readonly #urgentPauses = new Set<NodeJS.Timeout>();
  readonly #pauses = new Set<NodeJS.Timeout>();
  readonly #urgent: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;
  #ended = 0;

  /** Calls back after `ms`, or later if many servers wait. */
  later(ms: number, callback: () => void, isUrgent: boolean): NodeJS.Timeout {
    const pauses = isUrgent ? this.#urgentPauses : this.#pauses;
    const waiting = isUrgent ? pauses.size : pauses.size + this.#urgentPauses.size;
    const timer = setTimeout(
      () => {
        pauses.delete(timer);
        callback();
      },
      Math.max(ms, PAUSE_PER_SERVER_MS * waiting),
    );
    pauses.add(timer);
    return timer;
  }

  cancel(timer: NodeJS.Timeout | undefined): void {
    if (timer === undefined) return;
    clearTimeout(timer);
    this.#urgentPauses.delete(timer);
    this.#pauses.delete(timer);
  }

  /**
   * Runs an attempt when there is capacity. Every fourth attempt is not an urgent one, so that all attempts get their
   * turn.
   */
  async run<T>(attempt: () => Promise<T>, isUrgent: boolean): Promise<T> {
    if (this.#underWay < ATTEMPTS_AT_ONCE) this.#underWay++;
    else await new Promise<void>((resolve) => (isUrgent ? this.#urgent : this.#waiting).push(resolve));
    try {
      return await attempt();
    } finally {
      const prefersWaiting = ++this.#ended % 4 === 0;
      const [first, second] = prefersWaiting ? [this.#waiting, this.#urgent] : [this.#urgent, this.#waiting];
      const next = first.shift() ?? second.shift();
      if (next === undefined) this.#underWay--;
      else next();
    }
  }
}
