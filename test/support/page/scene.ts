import type { Browser, Page } from 'playwright-core';
import { RlsClient } from '../grpc/rls-client.js';
import { descriptor } from '../policy/decider.js';
import { type RedisServer, startRedis } from '../redis/redis-server.js';
import { startWeir, type WeirServer } from '../weir/weir.js';
import { launchBrowser, openPage, type PageOptions, type WatchedPage } from './browser.js';
import { untilConnected } from './views.js';

/** Stores of the buckets, and the number of processes. */
export const STORES = ['memory', 'Redis', 'Redis with two workers'] as const;
export type StoreName = (typeof STORES)[number];

const POLICY = `
domain: shop
descriptors:
  - key: customer
    rate_limit: { name: per-customer, token_bucket: { max_tokens: 5, fill_interval: 1000h } }
    descriptors:
      - key: endpoint
        value: export
        phase: { grace_period: 2026-01-01T00:00:00Z, active: 2126-12-01T00:00:00Z }
        rate_limit: { unit: year, requests_per_unit: 2 }
      - { key: shadow, shadow_mode: true, rate_limit: { unit: year, requests_per_unit: 2 } }
`;

/** A browser and a Redis that the tests of a file share, and the page that the current test has open. */
export class PageScene {
  readonly browser: Browser;
  readonly redis: RedisServer;
  #opened: WatchedPage | undefined;

  private constructor(browser: Browser, redis: RedisServer) {
    this.browser = browser;
    this.redis = redis;
  }

  static async begin(): Promise<PageScene> {
    const [browser, redis] = await Promise.all([launchBrowser(), startRedis()]);
    return new PageScene(browser, redis);
  }

  /** Opens the page of a server and waits until it is live. */
  async open(port: number, look: PageOptions = {}): Promise<Page> {
    this.#opened = await openPage(this.browser, `http://127.0.0.1:${port}/`, look);
    await untilConnected(this.#opened.page);
    return this.#opened.page;
  }

  /** See {@link WatchedPage.expectLoss}. */
  expectLoss(): void {
    this.#opened?.expectLoss();
  }

  /** Closes the page. Returns its problems. */
  async close(): Promise<readonly string[]> {
    const problems = this.#opened?.problems() ?? [];
    await this.#opened?.close();
    this.#opened = undefined;
    return problems;
  }
}

/**
 * A weir with a shop's policies. mallory has sent eight requests, three of which were denied, and acme has requested
 * exports.
 */
export class ShopServer {
  readonly server: WeirServer;
  readonly #client: RlsClient;

  private constructor(server: WeirServer) {
    this.server = server;
    this.#client = new RlsClient(server.grpcPort);
  }

  static async start(store: StoreName, redis: RedisServer): Promise<ShopServer> {
    const server = await startWeir({
      policy: POLICY,
      env: {
        ...(store !== 'memory' && {
          REDIS_URL: `127.0.0.1:${redis.port}`,
          CACHE_KEY_PREFIX: store.replaceAll(' ', ''),
        }),
        ...(store.includes('two') && { WORKERS: '2' }),
      },
    });
    const shop = new ShopServer(server);
    for (let each = 0; each < 8; each++) await shop.take('customer=mallory');
    for (let each = 0; each < 3; each++) await shop.take('customer=acme,endpoint=export');
    return shop;
  }

  /** Returns the code of a decision about one descriptor. */
  async take(entries: string): Promise<number | undefined> {
    const { response } = await this.#client.ask('shop', [descriptor(entries.split(','))]);
    return response?.overallCode;
  }
}
