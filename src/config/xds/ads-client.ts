import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  Metadata,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import { withoutServerName } from '../../runtime/no-server-name.js';
import type { BackOff, TimerSource } from '../../runtime/timers.js';
import {
  type DiscoveryCodec,
  type DiscoveryRequest,
  type DiscoveryResponse,
  RATE_LIMIT_CONFIG_TYPE,
  STREAM_PATH,
} from './discovery.js';

/** Address of a management server, with the settings of a connection. */
export interface AdsAddress {
  /** `host:port` or another gRPC target. */
  readonly target: string;
  /**
   * Returns the credentials for a new connection, so that renewed certificates take effect. Rejects if they cannot be
   * read, which counts as a failed connection. For an IP address as target, the credentials verify the certificate
   * themselves, because a TLS handshake cannot request an address.
   */
  credentials(): Promise<ChannelCredentials>;
  /** Server name for the TLS handshake, if it differs from the target's. */
  readonly serverName: string | undefined;
  /** Headers of the call. */
  readonly headers: ReadonlyMap<string, string>;
  /** Maximum time to connect, in milliseconds. 0: no limit. */
  readonly connectTimeoutMs: number;
  /** Maximum size of a message, in bytes. */
  readonly maxMessageBytes: number;
  /** Time without messages after which a keepalive ping is sent, in milliseconds; see {@link KEEPALIVE_MS}. */
  readonly keepaliveMs: number;
  /** Maximum time to wait for the answer to a ping, in milliseconds. */
  readonly keepaliveTimeoutMs: number;
}

/**
 * Default time between pings, in milliseconds. Servers of grpc-go close connections with more than one ping in five
 * minutes by default (keepalive.EnforcementPolicy).
 */
export const KEEPALIVE_MS = 310_000;
export const KEEPALIVE_TIMEOUT_MS = 20_000;

interface AdsStreamListener {
  connected(): void;
  received(response: DiscoveryResponse): void;
  /** Called once, as the last call, when the stream ends; not after `close`. */
  ended(reason: string): void;
}

/** Converts headers to gRPC metadata. Throws an Error for a name that is not a valid header name. */
export function metadataOf(headers: ReadonlyMap<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of headers) metadata.set(name, name.endsWith('-bin') ? Buffer.from(value) : value);
  return metadata;
}

/** An ADS stream with its own connection, which closes with the stream. */
export class AdsStream {
  readonly #client: Client;
  readonly #call: ClientDuplexStream<DiscoveryRequest, DiscoveryResponse>;
  readonly #listener: AdsStreamListener;
  #ended = false;

  /** Connects at once with the given credentials. Throws an Error if the target is invalid. */
  constructor(
    address: AdsAddress,
    credentials: ChannelCredentials,
    codec: DiscoveryCodec,
    listener: AdsStreamListener,
  ) {
    this.#listener = listener;
    this.#client = new Client(address.target, credentials, {
      'grpc.max_receive_message_length': address.maxMessageBytes,
      'grpc.keepalive_time_ms': address.keepaliveMs,
      'grpc.keepalive_timeout_ms': address.keepaliveTimeoutMs,
      // Never reuse a connection of an earlier stream, which was made with older certificates.
      'grpc.use_local_subchannel_pool': 1,
      // With retries, gRPC would keep every sent message in memory until the stream ends.
      'grpc.enable_retries': 0,
      'grpc.service_config_disable_resolution': 1,
      ...(address.serverName === undefined
        ? withoutServerName(address.target)
        : {
            'grpc.ssl_target_name_override': address.serverName,
            'grpc.default_authority': address.serverName,
          }),
    });
    this.#call = this.#client.makeBidiStreamRequest(
      STREAM_PATH,
      codec.encodeRequest,
      codec.decodeResponse,
      metadataOf(address.headers),
    );
    this.#call.on('data', (response: DiscoveryResponse) => {
      if (!this.#ended) listener.received(response);
    });
    // The status reports the error, too.
    this.#call.on('error', () => {});
    this.#call.on('status', (ending: StatusObject) => this.#end(reasonOf(ending)));
    const deadline = address.connectTimeoutMs === 0 ? Infinity : Date.now() + address.connectTimeoutMs;
    this.#client.waitForReady(deadline, (error) => {
      if (this.#ended) return;
      if (error === undefined) listener.connected();
      else this.#end(`no connection within ${address.connectTimeoutMs} ms`);
    });
  }

  send(request: DiscoveryRequest): void {
    if (!this.#ended) this.#call.write(request);
  }

  close(): void {
    this.#ended = true;
    this.#call.cancel();
    this.#client.close();
  }

  #end(reason: string): void {
    if (this.#ended) return;
    this.close();
    this.#listener.ended(reason);
  }
}

function reasonOf({ code, details }: StatusObject): string {
  return code === status.OK ? 'the server closed the stream' : `${status[code]}: ${details}`;
}

export interface AdsClientOptions {
  readonly address: AdsAddress;
  readonly codec: DiscoveryCodec;
  /** Identity of this server. The management server selects the resources by its id. */
  readonly node: { readonly id: string; readonly metadata: ReadonlyMap<string, string> };
  readonly backOff: BackOff;
  readonly timers: Pick<TimerSource, 'set' | 'clear'>;
  /**
   * Applies a state-of-the-world update, or returns why it is rejected. Called for one update at a time. Rejects if the
   * update could not be processed, which makes the client request it again later.
   */
  update(response: DiscoveryResponse): Promise<string | undefined>;
  connected(): void;
  /** Called when a connection fails or is lost. The next attempt starts in `pauseMs` milliseconds. */
  lost(reason: string, pauseMs: number): void;
  /** Called with the error with which `update` rejected. */
  failed(error: unknown): void;
  /** Called when the server sends resources of a type that was not requested. */
  ignored(typeUrl: string): void;
}

interface Received {
  readonly response: DiscoveryResponse;
  readonly stream: AdsStream;
}

/**
 * Delay of the second and later rejections of the same update, in milliseconds. Some servers, such as
 * go-control-plane's cache, resend a rejected update at once.
 */
export const REPEATED_REJECTION_MS = 1000;
/** Maximum length of the rejection text sent to the server, in bytes. */
const MAX_ERROR_BYTES = 4096;
/** google.rpc.Code of an invalid argument. */
const INVALID_ARGUMENT = 3;

/**
 * Follows the rate limit configuration of a management server by aggregated discovery, state of the world
 * (https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol). Acknowledges or rejects each update. Reopens a
 * lost stream after a pause, which grows until an update is accepted.
 */
export class AdsClient {
  readonly #options: AdsClientOptions;
  #stream: AdsStream | undefined;
  #retry: unknown;
  #rejection: unknown;
  /** Version of the last accepted update on any stream. */
  #accepted = '';
  /** The last update rejected on this stream. */
  #rejected: { readonly response: DiscoveryResponse; readonly error: string } | undefined;
  /** The newest response, until it is accepted or rejected. */
  #next: Received | undefined;
  #stopped = false;
  /** Whether the client is reading certificates for the next stream. */
  #isOpening = false;

  constructor(options: AdsClientOptions) {
    this.#options = options;
  }

  /** Connects now, even during a pause, unless the client is connected or connecting. */
  connect(): void {
    if (this.#stopped || this.#stream !== undefined || this.#isOpening) return;
    this.#options.timers.clear(this.#retry);
    this.#rejected = undefined;
    this.#isOpening = true;
    void this.#open();
  }

  /** Opens a stream with the current certificates, which it reads first. */
  async #open(): Promise<void> {
    const { address, codec, connected } = this.#options;
    try {
      const credentials = await address.credentials();
      if (this.#stopped) return;
      this.#stream = new AdsStream(address, credentials, codec, {
        connected,
        received: (response) => this.#receive(response),
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

  /** Closes the stream and does not connect again. */
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
    // Each update is the whole state of the world, so only the newest one has to be applied.
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
    const { nonce } = response;
    const rejected = stream === this.#stream ? this.#rejected : undefined;
    if (rejected !== undefined && isSame(rejected.response, response)) {
      const answer = (): void => this.#send(nonce, rejected.error);
      this.#rejection = this.#options.timers.set(answer, REPEATED_REJECTION_MS);
      return;
    }
    let error: string | undefined;
    try {
      error = await this.#options.update(response);
    } catch (cause) {
      this.#giveUp(stream, cause);
      return;
    }
    if (this.#stopped) return;
    if (error === undefined) {
      this.#accepted = response.versionInfo;
      this.#options.backOff.reset();
    }
    // A nonce is only valid on its own stream.
    if (stream !== this.#stream) return;
    this.#rejected = error === undefined ? undefined : { response, error };
    this.#send(nonce, error);
  }

  /** Requests an update again on another stream, without accepting or rejecting it, because it may be valid. */
  #giveUp(stream: AdsStream, cause: unknown): void {
    if (this.#stopped) return;
    this.#options.failed(cause);
    if (stream !== this.#stream) return;
    stream.close();
    this.#lost('the update could not be loaded');
  }

  /** Sends a subscription (empty nonce), an acknowledgement, or a rejection with `error`. */
  #send(responseNonce: string, error: string | undefined): void {
    const { id, metadata } = this.#options.node;
    const fields = Object.fromEntries([...metadata].map(([key, stringValue]) => [key, { stringValue }]));
    this.#stream?.send({
      versionInfo: this.#accepted,
      node: { id, metadata: { fields } },
      typeUrl: RATE_LIMIT_CONFIG_TYPE,
      responseNonce,
      ...(error === undefined ? {} : { errorDetail: { code: INVALID_ARGUMENT, message: firstBytes(error) } }),
    });
  }
}

function firstBytes(text: string): string {
  // A stream keeps an incomplete character for later.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, MAX_ERROR_BYTES), { stream: true });
}

/** Tells whether two updates have the same content. go-control-plane sends the resources in random order. */
function isSame(one: DiscoveryResponse, other: DiscoveryResponse): boolean {
  if (one.versionInfo !== other.versionInfo || one.resources.length !== other.resources.length) return false;
  const [resources = [], others = []] = [one, other].map((update) =>
    update.resources.toSorted((a, b) => Buffer.compare(a.value, b.value)),
  );
  return resources.every(
    ({ typeUrl, value }, at) =>
      others[at]?.typeUrl === typeUrl && Buffer.compare(others[at].value, value) === 0,
  );
}
