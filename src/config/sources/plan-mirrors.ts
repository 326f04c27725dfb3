import { setTimeout } from 'node:timers/promises';
import { HttpPlanSource } from './http-source.js';
import { PlanMirror } from './plan-mirror.js';
import { isRedisAddress, type PlanSource, type SourceFault } from './plan-source.js';

/** Maximum number of logged reasons of one source until it can be read again. */
const MAX_LOGGED = 10;

/** Longest wait for the first answers of sources, in milliseconds. */
const FIRST_ANSWERS_MS = 10_000;

/** Options of {@link PlanMirrors}. */
export interface PlanMirrorsOptions {
  /** PLANS_CACHE_PATH. */
  readonly directory: string;
  /** PLANS_TOKEN_PATH. */
  readonly tokenFile: string;
  /** PLANS_POLL_INTERVAL, in milliseconds. */
  readonly pollMs: number;
  readonly nowMicros: () => number;
  /** Longest wait for the first answers, in milliseconds. Default 10,000. */
  readonly firstAnswersMs?: number;
  /** Logs each reason for failures of a source once, and when the source can be read again. */
  readonly log: (level: 'warn' | 'info', message: string) => void;
}

/** A source that is followed. */
interface Followed {
  readonly stop: AbortController;
  /** Resolves after the first answer or failure. */
  readonly asked: Promise<void>;
  /** When the stored rows were last known to be current, on the clock; before, the first attempt. */
  confirmedMicros: number;
}

/** Keeps the files in PLANS_CACHE_PATH equal to their sources, which it polls. */
export class PlanMirrors {
  readonly #options: PlanMirrorsOptions;
  readonly #followed = new Map<string, Followed>();
  readonly #failures = new Map<string, Map<SourceFault, number>>();
  #isClosed = false;

  constructor(options: PlanMirrorsOptions) {
    this.#options = options;
  }

  /**
   * Loads the policies. If they name a new address, waits for its first answer, and loads them again, so that the
   * missing or old rows of this address do not count.
   */
  async loadWithRows<Loaded extends { readonly addresses: readonly string[] }>(
    load: () => Promise<Loaded>,
  ): Promise<Loaded> {
    const loaded = await load();
    const hasNew = loaded.addresses.some((address) => !this.#followed.has(address));
    if (this.#isClosed || !hasNew) return loaded;
    await this.follow(loaded.addresses);
    // `close` also ends the wait.
    return this.#isClosed ? loaded : load();
  }

  /**
   * Follows these sources, and no others. Resolves after the first answer or failure of each, or after ten seconds, so
   * that policies are loaded with current rows.
   */
  async follow(addresses: readonly string[]): Promise<void> {
    for (const [address, { stop }] of this.#followed) {
      if (addresses.includes(address)) continue;
      stop.abort();
      this.#followed.delete(address);
    }
    for (const address of addresses) {
      if (!this.#followed.has(address)) this.#followed.set(address, this.#start(address));
    }
    const waiting = new AbortController();
    const { firstAnswersMs = FIRST_ANSWERS_MS } = this.#options;
    const late = setTimeout(firstAnswersMs, undefined, { signal: waiting.signal, ref: false }).catch(
      () => {},
    );
    await Promise.race([Promise.all([...this.#followed.values()].map(({ asked }) => asked)), late]);
    waiting.abort();
  }

  /**
   * Returns the seconds since the rows of each source were last known to be current, or since the first attempt.
   * Sources that differ only in their queries have the age of the oldest rows.
   */
  ages(): ReadonlyMap<string, number> {
    const now = this.#options.nowMicros();
    const ages = new Map<string, number>();
    for (const [address, { confirmedMicros }] of this.#followed) {
      const shown = shownAddress(address);
      ages.set(shown, Math.max(ages.get(shown) ?? 0, (now - confirmedMicros) / 1e6));
    }
    return ages;
  }

  /** Returns the number of failures of each source, by reason. */
  *failures(): Generator<readonly [source: string, reason: SourceFault, count: number]> {
    for (const [source, counts] of this.#failures) {
      for (const [reason, count] of counts) yield [source, reason, count];
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const { stop } of this.#followed.values()) stop.abort();
    this.#followed.clear();
  }

  #start(address: string): Followed {
    const stop = new AbortController();
    let asked = (): void => {};
    const followed: Followed = {
      stop,
      asked: new Promise((resolve) => {
        asked = resolve;
      }),
      confirmedMicros: this.#options.nowMicros(),
    };
    void this.#poll(address, followed, asked);
    return followed;
  }

  async #poll(address: string, followed: Followed, asked: () => void): Promise<void> {
    const { directory, tokenFile, pollMs, nowMicros, log } = this.#options;
    const { signal } = followed.stop;
    const shown = shownAddress(address);
    const mirror = new PlanMirror(address, await sourceOf(address, tokenFile), directory);
    const logged = new Set<string>();
    while (!signal.aborted) {
      const startMicros = nowMicros();
      const result = await mirror.update(signal);
      if (signal.aborted) break;
      if (typeof result === 'string') {
        followed.confirmedMicros = startMicros;
        if (logged.size > 0) log('info', `the plans at ${shown} can be read again`);
        logged.clear();
      } else {
        const { reason, message } = result;
        this.#count(shown, reason);
        // An unavailable server often causes several failures in turn.
        if (!logged.has(message) && logged.size < MAX_LOGGED) {
          logged.add(message);
          log(
            'warn',
            `the plans at ${shown} could not be read: ${message}. weir tries again every ${pollMs / 1000} s, and ` +
              'uses the last rows meanwhile',
          );
        }
      }
      asked();
      await setTimeout(pollMs, undefined, { signal, ref: false }).catch(() => {});
    }
    asked();
  }

  #count(source: string, reason: SourceFault): void {
    const counts = this.#failures.get(source) ?? new Map<SourceFault, number>();
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
    this.#failures.set(source, counts);
  }
}

async function sourceOf(address: string, tokenFile: string): Promise<PlanSource> {
  if (!isRedisAddress(address)) return new HttpPlanSource(address, tokenFile);
  // Loaded on demand, because most servers do not need it.
  const { RedisPlanSource } = await import('./redis-source.js');
  return new RedisPlanSource(address, tokenFile);
}

/** Returns an address without its query, which may contain secrets. */
export function shownAddress(address: string): string {
  return address.replace(/[?#].*/, '').slice(0, 200);
}
