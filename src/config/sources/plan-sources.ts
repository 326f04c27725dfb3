import { setTimeout } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { shownAddress } from '../../runtime/shown-address.js';
import { threadError } from '../../runtime/working-directory.js';
import type { PlanBytes } from '../read/read-domain.js';
import { startThread } from '../threads/thread.js';
import {
  type KnownRows,
  type RowsAnswer,
  type RowsRequest,
  type RowsUpdate,
  type SourceFault,
  serverOf,
  type UpdateResult,
} from './redis-rows.js';

/** Keeps the rows of a hash in Redis. Reads them in a thread, because a large hash would delay other callers. */
export class RowsThread {
  readonly #address: string;
  readonly #passwordFile: string;
  #thread: Worker | undefined;
  #known: KnownRows | undefined;
  #bytes: PlanBytes | undefined;

  /** `passwordFile`: a file with the password, which is read for each connection; '' for none. */
  constructor(address: string, passwordFile: string) {
    this.#address = address;
    this.#passwordFile = passwordFile;
  }

  /** The rows that were read last, as RedisRows has them. */
  get bytes(): PlanBytes | undefined {
    return this.#bytes;
  }

  /** Asks Redis once; see {@link RedisRows.update}. Only one update may run at a time. */
  async update(isOnlyServer: boolean): Promise<UpdateResult> {
    const thread = this.#thread ?? this.#start();
    // Waiting for rows must keep the process running; waiting for the next poll must not.
    thread.ref();
    try {
      const { result, known, bytes } = await answerOf(thread, { isOnlyServer });
      this.#known = known;
      this.#bytes = bytes ?? this.#bytes;
      return result;
    } catch (error) {
      // The next update starts another thread.
      this.close();
      const message = `the thread that reads them ended (${(error as Error).message})`;
      return { kind: 'failed', reason: 'transfer', message };
    } finally {
      thread.unref();
    }
  }

  /** Ends the thread. A running update then fails. */
  close(): void {
    void this.#thread?.terminate();
    this.#thread = undefined;
  }

  #start(): Worker {
    const request: RowsRequest = {
      address: this.#address,
      passwordFile: this.#passwordFile,
      known: this.#known,
    };
    const thread = startThread('reads rows', request);
    // Without a listener, an error between two updates would end the process.
    thread.on('error', () => {
      if (this.#thread === thread) this.#thread = undefined;
    });
    this.#thread = thread;
    return thread;
  }
}

function answerOf(thread: Worker, update: RowsUpdate): Promise<RowsAnswer> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error): void => settle(() => reject(threadError(error)));
    const onExit = (): void => settle(() => reject(new Error('it was stopped')));
    const onMessage = (answer: RowsAnswer): void => settle(() => resolve(answer));
    const settle = (end: () => void): void => {
      thread.off('message', onMessage).off('error', onError).off('exit', onExit);
      end();
    };
    thread.on('message', onMessage).on('error', onError).on('exit', onExit);
    thread.postMessage(update);
  });
}

/** Maximum number of logged reasons of one table until it can be read again. */
const MAX_LOGGED = 10;

/** Maximum number of characters of an address in messages and metrics. */
const MAX_SHOWN = 200;

/** Longest wait for the first answers, in milliseconds. */
const FIRST_ANSWERS_MS = 10_000;

/** Options of {@link PlanSources}. */
export interface PlanSourcesOptions {
  /** PLANS_TOKEN_PATH. */
  readonly passwordFile: string;
  /** PLANS_POLL_INTERVAL, in milliseconds. */
  readonly pollMs: number;
  readonly nowMicros: () => number;
  /** Longest wait for the first answers, in milliseconds. Default 10,000. */
  readonly firstAnswersMs?: number;
  /** Logs each reason for failures of a table once, and when the table can be read again. */
  readonly log: (level: 'warn' | 'info', message: string) => void;
}

/** A table that is followed. */
interface Followed {
  readonly stop: AbortController;
  /** Resolves after the first answer or failure. */
  readonly asked: Promise<void>;
  /** When the rows were last known to be current, on the clock; before, the first attempt. */
  confirmedMicros: number;
  rows: RowsThread | undefined;
}

/** Keeps the rows of tables in Redis, which it polls, in memory. */
export class PlanSources {
  /** Called when rows have changed. */
  onChange = (): void => {};
  /** The rows that the latest load got. */
  loadedRows: ReadonlyMap<string, PlanBytes> = new Map();
  readonly #options: PlanSourcesOptions;
  readonly #followed = new Map<string, Followed>();
  readonly #failures = new Map<string, Map<SourceFault, number>>();
  /** Number of servers with tables. */
  #servers = 0;
  #isClosed = false;
  #hasNewRows = false;

  constructor(options: PlanSourcesOptions) {
    this.#options = options;
  }

  /** Whether rows have changed since the last load began. */
  get hasNewRows(): boolean {
    return this.#hasNewRows;
  }

  /** Returns the rows of each address that was read, for a load. */
  rows(): ReadonlyMap<string, PlanBytes> {
    const all = new Map<string, PlanBytes>();
    for (const [address, { rows }] of this.#followed) {
      if (rows?.bytes !== undefined) all.set(address, rows.bytes);
    }
    this.loadedRows = all;
    return all;
  }

  /**
   * Loads the policies. If they name a new address, waits for its first answer, and loads them again, so that the
   * missing rows of this address do not count.
   */
  async loadWithRows<Loaded extends { readonly addresses: readonly string[] }>(
    load: () => Promise<Loaded>,
  ): Promise<Loaded> {
    this.#hasNewRows = false;
    const loaded = await load();
    const hasNew = loaded.addresses.some((address) => !this.#followed.has(address));
    if (this.#isClosed || !hasNew) return loaded;
    await this.follow(loaded.addresses);
    // `close` also ends the wait.
    if (this.#isClosed) return loaded;
    this.#hasNewRows = false;
    return load();
  }

  /**
   * Follows these addresses, and no others. Resolves after the first answer or failure of each, or after ten seconds,
   * so that policies are loaded with current rows.
   */
  async follow(addresses: readonly string[]): Promise<void> {
    for (const [address, { stop }] of this.#followed) {
      if (addresses.includes(address)) continue;
      stop.abort();
      this.#followed.delete(address);
    }
    this.#servers = new Set(addresses.map(serverOf)).size;
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

  /** The seconds since the rows of each address were last known to be current, or since the first attempt. */
  ages(): ReadonlyMap<string, number> {
    const now = this.#options.nowMicros();
    const ages = new Map<string, number>();
    for (const [address, { confirmedMicros }] of this.#followed) {
      const shown = shownAddress(address).slice(0, MAX_SHOWN);
      ages.set(shown, Math.max(ages.get(shown) ?? 0, (now - confirmedMicros) / 1e6));
    }
    return ages;
  }

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
      rows: undefined,
    };
    void this.#poll(address, followed, asked);
    return followed;
  }

  async #poll(address: string, followed: Followed, asked: () => void): Promise<void> {
    const { passwordFile, pollMs, nowMicros, log } = this.#options;
    const { signal } = followed.stop;
    const shown = shownAddress(address).slice(0, MAX_SHOWN);
    const rows = new RowsThread(address, passwordFile);
    followed.rows = rows;
    signal.addEventListener('abort', () => rows.close(), { once: true });
    const logged = new Set<string>();
    while (!signal.aborted) {
      const startMicros = nowMicros();
      const result = await rows.update(this.#servers === 1);
      if (signal.aborted) break;
      if (typeof result === 'string') {
        followed.confirmedMicros = startMicros;
        if (logged.size > 0) log('info', `the plans at ${shown} can be read again`);
        logged.clear();
        if (result === 'changed') {
          this.#hasNewRows = true;
          this.onChange();
        }
      } else {
        const { reason, message } = result;
        this.#count(shown, reason);
        // An unavailable server often causes several failures in turn.
        if (!logged.has(message) && logged.size < MAX_LOGGED) {
          logged.add(message);
          const meanwhile =
            rows.bytes === undefined ? 'has no rows from there yet' : 'uses the last rows meanwhile';
          log(
            'warn',
            `the plans at ${shown} could not be read: ${message}. weir tries again every ${pollMs / 1000} s, and ` +
              meanwhile,
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
