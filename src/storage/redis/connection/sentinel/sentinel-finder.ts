import { setTimeout as pause } from 'node:timers/promises';
import { firstAnswers } from '../client/first-answers.js';
import type { RedisTlsOptions } from '../connection-options.js';
import { prepareTls } from '../dial.js';
import { endpointName, type SentinelAddress } from '../redis-address.js';
import type { FoundRedis, RedisFinder } from '../redis-finder.js';
import type { RedisLogin } from '../redis-login.js';
import { type AnnouncedMaster, Sentinel } from './sentinel.js';

/** Time to wait for further replies after the first one, in milliseconds, because they may be newer. */
const LATER_REPLIES_MS = 100;
/**
 * Minimum pause between queries after announcements, in milliseconds. Each Sentinel may send one announcement, or any
 * number.
 */
const ANNOUNCEMENT_PAUSE_MS = 100;

/** Settings of {@link SentinelFinder}. */
export interface SentinelFinderOptions {
  readonly address: SentinelAddress;
  /** Login of the Sentinels themselves. */
  readonly login: RedisLogin;
  readonly tls: RedisTlsOptions | undefined;
  /** Prefix of the variables, such as `REDIS` in REDIS_URL. */
  readonly prefix: string;
}

/**
 * Finds the master that Redis Sentinels announce (Redis documentation, "Guidelines for Redis clients with support for
 * Redis Sentinel"). Queries all Sentinels, because any of them may be dead, hang, or not know about a failover. Uses
 * the reply with the newest epoch. Queries again when a Sentinel announces a new master.
 */
export class SentinelFinder implements RedisFinder {
  readonly #options: SentinelFinderOptions;
  readonly #sentinels: readonly Sentinel[];
  #onMoved: (found: FoundRedis) => void = () => {};
  /** Whether there was an announcement since the last query. */
  #hasAnnouncement = false;
  #isFollowing = false;
  #closed = false;

  constructor(options: SentinelFinderOptions) {
    this.#options = options;
    const { address, login, prefix } = options;
    const tls = prepareTls(options.tls !== undefined, options.tls);
    const variables = { url: `${prefix}_URL`, auth: `${prefix}_SENTINEL_AUTH` };
    this.#sentinels = address.sentinels.map(
      (endpoint) =>
        new Sentinel({ ...endpoint, masterName: address.masterName, login, tls, variables }, () =>
          this.#onNews(),
        ),
    );
  }

  async find(): Promise<FoundRedis> {
    const { masterName } = this.#options.address;
    const { host, port } = await this.#query();
    const scheme = this.#options.tls === undefined ? 'redis' : 'rediss';
    return {
      endpoint: { host, port },
      name: `${scheme}://${endpointName({ host, port })} (master ${masterName})`,
      mustBeMaster: true,
    };
  }

  onMoved(listener: (found: FoundRedis) => void): void {
    this.#onMoved = listener;
  }

  close(): void {
    this.#closed = true;
    for (const sentinel of this.#sentinels) sentinel.close();
  }

  #onNews(): void {
    this.#hasAnnouncement = true;
    if (!this.#isFollowing) void this.#follow();
  }

  /** Queries as long as there are announcements. One query covers all earlier announcements. */
  async #follow(): Promise<void> {
    this.#isFollowing = true;
    while (this.#hasAnnouncement && !this.#closed) {
      this.#hasAnnouncement = false;
      const found = await this.find().catch(() => undefined);
      if (found !== undefined && !this.#closed) this.#onMoved(found);
      await pause(ANNOUNCEMENT_PAUSE_MS, undefined, { ref: false });
    }
    this.#isFollowing = false;
  }

  /**
   * Returns the newest reply, or rejects without a reply. No majority is required: the Sentinel that led a failover
   * knows about it up to 2 s before the others.
   */
  async #query(): Promise<AnnouncedMaster> {
    const replies = this.#sentinels.map((sentinel) => sentinel.master());
    const { answers, errors } = await firstAnswers(replies, LATER_REPLIES_MS);
    const newest = newestOf(answers);
    if (newest === undefined) throw new Error(this.#sentence(errors));
    return newest;
  }

  /** An error from a Sentinel that replied is more useful than a connection error. */
  #sentence(errors: readonly string[]): string {
    const sentinelError = errors.find((error) => error.startsWith('Sentinel '));
    if (sentinelError !== undefined) return sentinelError;
    const { prefix } = this.#options;
    return `no Sentinel in ${prefix}_URL answers; start the Sentinels, or correct ${prefix}_URL (${errors.join('; ')})`;
  }
}

function newestOf(answers: readonly AnnouncedMaster[]): AnnouncedMaster | undefined {
  let newest: AnnouncedMaster | undefined;
  for (const answer of answers) if (newest === undefined || answer.epoch > newest.epoch) newest = answer;
  return newest;
}
