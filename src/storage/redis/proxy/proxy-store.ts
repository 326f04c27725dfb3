import { expectState } from '../../../invariant.js';
import type { TakeItem } from '../../../limiter/bucket-store.js';
import { timerMs } from '../../../limiter/clock.js';
import { withTimeout } from '../../../runtime/turns.js';
import type { Partition } from '../../sharded/shard.js';
import type { SendCommand } from '../connection/connection-options.js';
import { RedisStore } from '../redis-store.js';
import type { RedisStoreOptions } from '../redis-store-options.js';
import { detectHashTags, type HashTagFinding, type HashTags } from './hash-tags.js';

type Finding = Pick<HashTagFinding, 'tags' | 'failure'>;

/** Interval between checks, in milliseconds. A proxy may change its servers without closing connections. */
const CHECK_INTERVAL_MS = 60_000;
/** Interval between checks while a server does not reply, in milliseconds. */
const RECHECK_INTERVAL_MS = 5000;
/** Settings of {@link ProxyStore}. */
export interface ProxyStoreOptions extends RedisStoreOptions {
  /** Interval between checks of hash tags on an open connection, in milliseconds; default one minute. */
  readonly checkIntervalMs?: number;
}

/** Maximum number of keys, on one or more servers, that are tried until a call works. */
const MAX_TRIED_KEYS = 8;

/** State of a proxy, before and after the first connection. */
type ProxyState =
  | { readonly at: 'unknown' }
  | {
      readonly at: 'known';
      readonly tags: HashTags;
      /** Whether a server did not reply in the last check or since. */
      readonly lacksServers: boolean;
      /** Sends on the connection of the latest check; and the timer of the next check. */
      readonly send: SendCommand;
      readonly timer: NodeJS.Timeout;
    }
  | { readonly at: 'closed' };

/**
 * The buckets behind a sharding proxy. A proxy sends a script to the server of its first key, and does not check the
 * other keys. A call therefore has one key, or several keys with one hash tag if {@link detectHashTags} found that
 * these are on one server. The store repeats that check on each connection and at intervals.
 */
export class ProxyStore extends RedisStore {
  override readonly onlyPartition = undefined;
  readonly #options: ProxyStoreOptions;
  #state: ProxyState = { at: 'unknown' };

  /** Connects in the background. Throws an Error if the TLS settings are invalid. */
  constructor(options: ProxyStoreOptions) {
    super({
      ...options,
      observeFault: (fault) => {
        options.observeFault?.(fault);
        if (fault === 'upstream') this.#checkSoon();
      },
      proxied: { probe: (send, take) => this.#probe(send, take) },
    });
    this.#options = options;
  }

  /** Result of the latest check of hash tags; undefined before the first connection. */
  get hashTags(): HashTags | undefined {
    return this.#state.at === 'known' ? this.#state.tags : undefined;
  }

  /** As far as is known, because only calls show whether a server behind the proxy works. */
  override get isComplete(): boolean {
    return this.connected && !(this.#state.at === 'known' && this.#state.lacksServers);
  }

  override partitionOf({ key, tagLength }: TakeItem): Partition {
    return this.hashTags === 'honoured' ? key.slice(0, tagLength) : key;
  }

  override close(): Promise<void> {
    this.#setState({ at: 'closed' });
    return super.close();
  }

  /** Rejects unless calls work on at least one server. */
  async #probe(send: SendCommand, take: (key: string) => Promise<void>): Promise<void> {
    const finding = await detectHashTags(send, this.#options.keyPrefix);
    let failure: unknown;
    for (const key of finding.living.slice(0, MAX_TRIED_KEYS)) {
      try {
        await take(key);
        this.#note(finding, send);
        return;
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  #note({ tags, failure }: Finding, send: SendCommand): void {
    if (this.#state.at === 'closed') return;
    const before = this.hashTags;
    this.#noteCheck(tags, failure !== '', send);
    if (tags === before) return;
    const { log, address } = this.#options;
    const redis = `Redis ${address.redactedAddress}`;
    if (tags === 'honoured')
      log?.('info', `${redis} supports hash tags, so weir sends all buckets of a tenant in one call`);
    else if (tags === 'ignored')
      log?.(
        'warn',
        `${redis} does not support hash tags, so each bucket needs its own call; set hash_tag: "{}" ` +
          "(twemproxy) or enable_hashtagging: true (Envoy's redis_proxy)",
      );
    else
      log?.(
        'warn',
        `weir cannot detect whether ${redis} supports hash tags, so each bucket needs its own call ` +
          `until all servers behind the proxy answer (${failure})`,
      );
  }

  #checkSoon(): void {
    const state = this.#state;
    if (state.at === 'known' && !state.lacksServers) this.#noteCheck(state.tags, true, state.send);
  }

  #noteCheck(tags: HashTags, lacksServers: boolean, send: SendCommand): void {
    const { checkIntervalMs = CHECK_INTERVAL_MS } = this.#options;
    const pause = lacksServers ? Math.min(RECHECK_INTERVAL_MS, checkIntervalMs) : checkIntervalMs;
    const timer = setTimeout(() => void this.#check(send), pause).unref();
    this.#setState({ at: 'known', tags, lacksServers, send, timer });
  }

  #setState(state: ProxyState): void {
    expectState(this.#state.at !== 'closed' || state.at === 'closed', 'a closed proxy store stays closed');
    if (this.#state.at === 'known') clearTimeout(this.#state.timer);
    this.#state = state;
  }

  async #check(send: SendCommand): Promise<void> {
    const { keyPrefix, timeoutMicros } = this.#options;
    // The next connection starts a new check.
    if (!this.connected) return;
    const failed = ({ message }: Error): Finding => ({ tags: 'unknown', failure: message });
    const looking = detectHashTags(send, keyPrefix).catch(failed);
    this.#note(
      await withTimeout(timerMs(timeoutMicros), looking, () => failed(new Error('no answer'))),
      send,
    );
  }
}
