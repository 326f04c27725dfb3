/** Most attempts to connect that are under way at a time. */
export const ATTEMPTS_AT_ONCE = 32;
/** Each server that waits for its next attempt, or probe, makes the pauses of the others longer by so much. */
export const PAUSE_PER_SERVER_MS = 25;

/**
 * Shares attempts to connect, and probes of servers that are away, among all servers of one cluster: a thousand of them
 * that are away cost no more than a few, and 20 are tried as often as one. Servers that have worked are urgent: they do
 * not wait behind others, however many were named.
 */
export class ConnectionAttempts {
  readonly #urgentPauses = new Set<NodeJS.Timeout>();
  readonly #pauses = new Set<NodeJS.Timeout>();
  readonly #urgent: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];
  #underWay = 0;
  #ended = 0;

  /** Calls back after `ms`, later if many servers wait. */
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

  /** Runs an attempt once there is room for it. Each fourth one is not urgent, so that every attempt has its turn. */
  async run<T>(attempt: () => Promise<T>, isUrgent: boolean): Promise<T> {
    if (this.#underWay < ATTEMPTS_AT_ONCE) this.#underWay++;
    else await new Promise<void>((resolve) => (isUrgent ? this.#urgent : this.#waiting).push(resolve));
    try {
      return await attempt();
    } finally {
      const isOthersTurn = ++this.#ended % 4 === 0;
      const [first, second] = isOthersTurn ? [this.#waiting, this.#urgent] : [this.#urgent, this.#waiting];
      const next = first.shift() ?? second.shift();
      if (next === undefined) this.#underWay--;
      else next();
    }
  }
}
