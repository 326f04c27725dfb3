import type { BackOff } from '../../runtime/back-off.js';
import type { Timers } from '../files/file-policy-provider.js';
import { type AdsAddress, AdsStream } from './ads-stream.js';
import { type DiscoveryCodec, RATE_LIMIT_CONFIG_TYPE } from './discovery.js';
import type { Envelope } from './envelope.js';

/** One state of the world, as a management server sent it. */
export interface AdsUpdate {
  readonly version: string;
  /**
   * The DiscoveryResponse. Whoever takes the update may hand the bytes to another thread: nobody else looks at them any
   * more.
   */
  readonly bytes: Uint8Array;
  /** Digest of the update that was rejected last on this stream: this one may be the same. */
  readonly rejected: string | undefined;
}

/** Why an update is rejected, in words for the server's log. */
export interface Rejection {
  readonly error: string;
  /** Of the update: the same for the same resources in another order. */
  readonly digest: string;
}

export interface AdsClientOptions {
  readonly address: AdsAddress;
  readonly codec: DiscoveryCodec;
  /** Who asks: by its id a management server knows what to send. */
  readonly node: { readonly id: string; readonly metadata: ReadonlyMap<string, string> };
  readonly backOff: BackOff;
  readonly timers: Timers;
  /**
   * Takes an update whole, or says why it is rejected; of one with the digest of {@link AdsUpdate.rejected} only that.
   * Asked for one at a time. Rejects when it could not be tried: the update is asked for again, later.
   */
  update(update: AdsUpdate): Promise<Rejection | undefined>;
  /** An update was rejected that need not be looked at: it is too large. */
  refused(version: string, error: string): void;
  connected(): void;
  /** The connection could not be had, or is lost; the next attempt comes in `pauseMs`. */
  lost(reason: string, pauseMs: number): void;
  /** `update` rejected with this. */
  failed(error: unknown): void;
  /** The server sent resources that nobody asked for. */
  ignored(typeUrl: string): void;
}

interface Received {
  readonly envelope: Envelope;
  readonly stream: AdsStream;
}

/**
 * A server may send a rejected update again at once, and again, as go-control-plane's cache does: from the second on
 * its rejection waits so long.
 */
export const REPEATED_REJECTION_MS = 1000;
/** Most bytes of a rejection's text, which goes back to the server. */
const MAX_ERROR_BYTES = 4096;
/** Stands for the digest of updates that were not looked at. */
const TOO_LARGE = 'too large';
/** google.rpc.Code */
const INVALID_ARGUMENT = 3;

/**
 * Follows the rate limit configuration of a management server: aggregated discovery, state of the world
 * (https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol). Each update is acknowledged or rejected; a lost
 * stream is opened again after a pause that grows until an update is accepted.
 */
export class AdsClient {
  readonly #options: AdsClientOptions;
  #stream: AdsStream | undefined;
  #retry: unknown;
  #rejection: unknown;
  /** Version of the last update accepted, on whichever stream. */
  #accepted = '';
  /** The last update rejected on this stream. */
  #rejected: Rejection | undefined;
  /** The newest response, until it is taken or rejected. */
  #next: Received | undefined;
  #stopped = false;
  /** Whether certificates for the next stream are being read. */
  #isOpening = false;

  constructor(options: AdsClientOptions) {
    this.#options = options;
  }

  /** Connects, unless it is connected or about to be; ends a pause. */
  connect(): void {
    if (this.#stopped || this.#stream !== undefined || this.#isOpening) return;
    this.#options.timers.clear(this.#retry);
    this.#rejected = undefined;
    this.#isOpening = true;
    void this.#open();
  }

  /** Opens a stream with the certificates as they are now, which are read meanwhile. */
  async #open(): Promise<void> {
    const { address, codec, connected } = this.#options;
    try {
      const credentials = await address.credentials();
      if (this.#stopped) return;
      this.#stream = new AdsStream(address, credentials, codec, {
        connected,
        received: (envelope) => this.#receive(envelope),
        ended: (reason) => this.#lost(reason),
      });
    } catch (error) {
      if (!this.#stopped) this.#lost((error as Error).message);
      return;
    } finally {
      this.#isOpening = false;
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

  #receive(envelope: Envelope): void {
    const { timers, ignored } = this.#options;
    if (envelope.typeUrl !== RATE_LIMIT_CONFIG_TYPE) {
      ignored(envelope.typeUrl);
      return;
    }
    if (this.#stream === undefined) return;
    timers.clear(this.#rejection);
    const busy = this.#next !== undefined;
    // Of several that come while one is taken only the last counts: it is the state of the world.
    this.#next = { envelope, stream: this.#stream };
    if (!busy) void this.#takeAll();
  }

  async #takeAll(): Promise<void> {
    for (let taken = this.#next; taken !== undefined && !this.#stopped; ) {
      await this.#take(taken);
      if (this.#next === taken) this.#next = undefined;
      taken = this.#next;
    }
  }

  async #take({ envelope, stream }: Received): Promise<void> {
    const { versionInfo: version, bytes, nonce, refusal } = envelope;
    const rejected = stream === this.#stream ? this.#rejected : undefined;
    let rejection: Rejection | undefined;
    if (refusal !== undefined) rejection = { error: refusal, digest: TOO_LARGE };
    else {
      try {
        rejection = await this.#options.update({ version, bytes, rejected: rejected?.digest });
      } catch (cause) {
        this.#giveUp(stream, cause);
        return;
      }
    }
    if (this.#stopped) return;
    if (rejection === undefined) {
      this.#accepted = version;
      this.#options.backOff.reset();
    }
    // A nonce means nothing on another stream.
    if (stream !== this.#stream) return;
    if (rejection !== undefined && rejection.digest === rejected?.digest) {
      const { error } = rejected;
      this.#rejection = this.#options.timers.set(() => this.#send(nonce, error), REPEATED_REJECTION_MS);
      return;
    }
    if (refusal !== undefined) this.#options.refused(version, refusal);
    this.#rejected = rejection;
    this.#send(nonce, rejection?.error);
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
      ...(error === undefined
        ? {}
        : { errorDetail: { code: INVALID_ARGUMENT, message: cut(error, MAX_ERROR_BYTES) } }),
    });
  }
}

/** So much of a text as `most` bytes hold, whole characters. */
function cut(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  let end = most;
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
