import { createHash } from 'node:crypto';
import type { Timers } from '../file-policy-provider.js';
import { type AdsAddress, AdsStream } from './ads-stream.js';
import type { BackOff } from './back-off.js';
import {
  type DiscoveryCodec,
  type DiscoveryResponse,
  RATE_LIMIT_CONFIG_TYPE,
  type Resource,
} from './discovery.js';

/** One state of the world, as a management server sent it. */
export interface AdsUpdate {
  readonly version: string;
  readonly resources: readonly Resource[];
}

export interface AdsClientOptions {
  readonly address: AdsAddress;
  readonly codec: DiscoveryCodec;
  /** Who asks: by its id a management server knows what to send. */
  readonly node: { readonly id: string; readonly metadata: ReadonlyMap<string, string> };
  readonly backOff: BackOff;
  readonly timers: Timers;
  /**
   * Takes an update whole, or says why it is rejected, in words for the server's log. Asked for one at a time. Rejects when it could not be
   * tried: the update is asked for again, later.
   */
  update(update: AdsUpdate): Promise<string | undefined>;
  connected(): void;
  /** The connection could not be had, or is lost; the next attempt comes in `pauseMs`. */
  lost(reason: string, pauseMs: number): void;
  /** `update` rejected with this. */
  failed(error: unknown): void;
  /** The server sent resources that nobody asked for. */
  ignored(typeUrl: string): void;
}

interface Received {
  readonly response: DiscoveryResponse;
  readonly stream: AdsStream;
}

/** A server may send a rejected update again at once, and again, as go-control-plane's cache does: from the second on its rejection waits so long. */
export const REPEATED_REJECTION_MS = 1000;
/** google.rpc.Code */
const INVALID_ARGUMENT = 3;

/**
 * Follows the rate limit configuration of a management server: aggregated discovery, state of the world
 * (https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol). Each update is acknowledged or rejected; a lost stream is opened again after
 * a pause that grows until an update is accepted.
 */
export class AdsClient {
  readonly #options: AdsClientOptions;
  #stream: AdsStream | undefined;
  #retry: unknown;
  #rejection: unknown;
  /** Version of the last update accepted, on whichever stream. */
  #accepted = '';
  /** The last update rejected on this stream. */
  #rejected: { readonly digest: string; readonly error: string } | undefined;
  /** The newest response, until it is taken or rejected. */
  #next: Received | undefined;
  #stopped = false;

  constructor(options: AdsClientOptions) {
    this.#options = options;
  }

  /** Connects, unless it is connected or about to be; ends a pause. */
  connect(): void {
    if (this.#stopped || this.#stream !== undefined) return;
    const { address, codec, timers, connected } = this.#options;
    timers.clear(this.#retry);
    this.#rejected = undefined;
    try {
      this.#stream = new AdsStream(address, codec, {
        connected,
        received: (response) => this.#receive(response),
        ended: (reason) => this.#lost(reason),
      });
    } catch (error) {
      this.#lost((error as Error).message);
      return;
    }
    this.#send('', undefined);
  }

  /** Connects no more. */
  stop(): void {
    this.#stopped = true;
    this.#options.timers.clear(this.#retry);
    this.#options.timers.clear(this.#rejection);
    this.#stream?.close();
    this.#stream = undefined;
  }

  #lost(reason: string): void {
    const { timers, backOff } = this.#options;
    this.#stream = undefined;
    timers.clear(this.#rejection);
    const pauseMs = backOff.next();
    this.#retry = timers.set(() => this.connect(), pauseMs);
    this.#options.lost(reason, pauseMs);
  }

  #receive(response: DiscoveryResponse): void {
    const { timers, ignored } = this.#options;
    if (response.typeUrl !== RATE_LIMIT_CONFIG_TYPE) {
      ignored(response.typeUrl);
      return;
    }
    if (this.#stream === undefined) return;
    timers.clear(this.#rejection);
    const busy = this.#next !== undefined;
    // Of several that come while one is taken only the last counts: it is the state of the world.
    this.#next = { response, stream: this.#stream };
    if (!busy) void this.#takeAll();
  }

  async #takeAll(): Promise<void> {
    for (let taken = this.#next; taken !== undefined && !this.#stopped; ) {
      await this.#take(taken);
      if (this.#next === taken) this.#next = undefined;
      taken = this.#next;
    }
  }

  async #take({ response, stream }: Received): Promise<void> {
    const { timers, backOff } = this.#options;
    const { versionInfo: version, resources, nonce } = response;
    const rejected = stream === this.#stream ? this.#rejected : undefined;
    // Digests take milliseconds, for which decisions wait: a good update has none.
    if (rejected !== undefined && rejected.digest === digestOf(response)) {
      const { error } = rejected;
      this.#rejection = timers.set(() => this.#send(nonce, error), REPEATED_REJECTION_MS);
      return;
    }
    let error: string | undefined;
    try {
      error = await this.#options.update({ version, resources });
    } catch (cause) {
      this.#giveUp(stream, cause);
      return;
    }
    if (this.#stopped) return;
    if (error === undefined) {
      this.#accepted = version;
      backOff.reset();
    }
    // A nonce means nothing on another stream.
    if (stream !== this.#stream) return;
    this.#rejected = error === undefined ? undefined : { digest: digestOf(response), error };
    this.#send(nonce, error);
  }

  /** The update may be good: it is neither accepted nor rejected, but asked for again on another stream. */
  #giveUp(stream: AdsStream, cause: unknown): void {
    if (this.#stopped) return;
    this.#options.failed(cause);
    if (stream !== this.#stream) return;
    stream.close();
    this.#lost('the update could not be loaded');
  }

  /** Asks (no nonce), acknowledges, or rejects with `error`. */
  #send(responseNonce: string, error: string | undefined): void {
    const { id, metadata } = this.#options.node;
    const fields = Object.fromEntries([...metadata].map(([key, stringValue]) => [key, { stringValue }]));
    this.#stream?.send({
      versionInfo: this.#accepted,
      node: { id, metadata: { fields } },
      typeUrl: RATE_LIMIT_CONFIG_TYPE,
      responseNonce,
      ...(error === undefined ? {} : { errorDetail: { code: INVALID_ARGUMENT, message: error } }),
    });
  }
}

/** The same for the same resources in another order: go-control-plane keeps them in a map, and sends them as they come out of it. */
function digestOf({ versionInfo, resources }: DiscoveryResponse): string {
  const digests = resources.map(({ typeUrl, value }) => sha256(`${typeUrl}:`, value)).sort();
  return sha256(`${digests.join(' ')}:${versionInfo}`);
}

function sha256(text: string, bytes: Uint8Array = new Uint8Array()): string {
  return createHash('sha256').update(text).update(bytes).digest('hex');
}
