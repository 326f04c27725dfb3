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

/** Servers may come and go behind a proxy that keeps its connections. Milliseconds. */
const CHECK_INTERVAL_MS = 60_000;
/** The same while a server cannot be asked. */
const RECHECK_INTERVAL_MS = 5000;
/** Settings of {@link ProxyStore}. */
export interface ProxyStoreOptions extends RedisStoreOptions {
  /** How often hash tags are looked at on a connection that stays; default a minute. Milliseconds. */
  readonly checkIntervalMs?: number;
}

/** Keys, on one server or more, that are tried until one of them works. */
const MAX_TRIED_KEYS = 8;

/** What is known of a proxy: nothing before the first connection. */
type ProxyState =
  | { readonly at: 'unknown' }
  | {
      readonly at: 'known';
      readonly tags: HashTags;
      /** Whether a server could not be asked when it was last looked for, or since. */
      readonly lacksServers: boolean;
      /** Sends on the connection that was looked at last, and when it will be looked at again. */
      readonly send: SendCommand;
      readonly timer: NodeJS.Timeout;
    }
  | { readonly at: 'closed' };

/**
 * Buckets behind a proxy that shards. It sends a script to the server of its first key, unchecked, so that a call has
 * one key, or those of one hash tag where it was found that these lie together ({@link detectHashTags}); at each
 * connection, and now and then.
 */
export class ProxyStore extends RedisStore {
  override readonly onlyPartition = undefined;
  readonly #options: ProxyStoreOptions;
  #state: ProxyState = { at: 'unknown' };

  /** Connects in the background. Throws an Error when the TLS settings cannot be used. */
  constructor(options: ProxyStoreOptions) {
    super({
      ...options,
      observeFault: (fault) => {
        options.observeFault?.(fault);
        if (fault === 'upstream') this.#lookSoon();
      },
      proxied: { probe: (send, take) => this.#probe(send, take) },
    });
    this.#options = options;
  }

  /** What was found of hash tags; undefined before the first connection. */
  get hashTags(): HashTags | undefined {
    return this.#state.at === 'known' ? this.#state.tags : undefined;
  }

  /** As far as is known: of a server behind it only a call can tell. */
  override get whole(): boolean {
    return this.connected && !(this.#state.at === 'known' && this.#state.lacksServers);
  }

  override partitionOf({ key, tagLength }: TakeItem): Partition {
    return this.hashTags === 'honoured' ? key.slice(0, tagLength) : key;
  }

  override close(): Promise<void> {
    this.#become({ at: 'closed' });
    return super.close();
  }

  /** Rejects unless what calls do works on one server at least. */
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
    this.#know(tags, failure !== '', send);
    if (tags === before) return;
    const { log, address } = this.#options;
    const redis = `Redis ${address.redactedAddress}`;
    if (tags === 'honoured')
      log?.('info', `${redis} honours hash tags: a call asks for all buckets of a tenant`);
    else if (tags === 'ignored')
      log?.(
        'warn',
        `${redis} does not honour hash tags: each bucket is asked for in a call of its own; set hash_tag: "{}" ` +
          '(twemproxy), or enable_hashtagging: true (redis_proxy of Envoy), to ask for those of a tenant in one',
      );
    else
      log?.(
        'warn',
        `nobody knows whether ${redis} honours hash tags: each bucket is asked for in a call of its own until all ` +
          `servers behind it answer (${failure})`,
      );
  }

  #lookSoon(): void {
    const state = this.#state;
    if (state.at === 'known' && !state.lacksServers) this.#know(state.tags, true, state.send);
  }

  #know(tags: HashTags, lacksServers: boolean, send: SendCommand): void {
    const { checkIntervalMs = CHECK_INTERVAL_MS } = this.#options;
    const pause = lacksServers ? Math.min(RECHECK_INTERVAL_MS, checkIntervalMs) : checkIntervalMs;
    const timer = setTimeout(() => void this.#look(send), pause).unref();
    this.#become({ at: 'known', tags, lacksServers, send, timer });
  }

  #become(state: ProxyState): void {
    expectState(this.#state.at !== 'closed' || state.at === 'closed', 'a proxy that is closed stays so');
    if (this.#state.at === 'known') clearTimeout(this.#state.timer);
    this.#state = state;
  }

  async #look(send: SendCommand): Promise<void> {
    const { keyPrefix, timeoutMicros } = this.#options;
    // The next connection is looked at anyway.
    if (!this.connected) return;
    const failed = ({ message }: Error): Finding => ({ tags: 'unknown', failure: message });
    const looking = detectHashTags(send, keyPrefix).catch(failed);
    this.#note(
      await withTimeout(timerMs(timeoutMicros), looking, () => failed(new Error('no answer'))),
      send,
    );
  }
}
