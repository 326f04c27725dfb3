import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  Metadata,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import { boundGrpcCalls } from '../../bounded-grpc-calls.js';
import { withoutServerName } from '../../no-server-name.js';
import { turn } from '../../runtime/turns.js';
import { type DiscoveryCodec, type DiscoveryRequest, STREAM_PATH } from './discovery.js';
import { type Envelope, readEnvelope } from './envelope.js';

/** How to reach a management server. */
export interface AdsAddress {
  /** `host:port`, or another target of gRPC. */
  readonly target: string;
  /**
   * Asked for each connection, so that renewed certificates are taken; a rejection is a connection that failed. They
   * check the certificate themselves where the target is an IP address, which is not asked for in the handshake.
   */
  credentials(): Promise<ChannelCredentials>;
  /** The name to ask for in the TLS handshake, in the place of the target's. */
  readonly serverName: string | undefined;
  /** Sent as headers of the call. */
  readonly headers: ReadonlyMap<string, string>;
  /** Longest wait for a connection, milliseconds. 0: for ever. */
  readonly connectTimeoutMs: number;
  /** Largest message that is taken, bytes. */
  readonly maxMessageBytes: number;
  /** A connection that is silent for so long is asked for a sign of life, milliseconds; see {@link KEEPALIVE_MS}. */
  readonly keepaliveMs: number;
  /** How long that sign may take, milliseconds. */
  readonly keepaliveTimeoutMs: number;
}

/**
 * grpc-go's servers end connections that ask more often than every five minutes, unless told otherwise
 * (keepalive.EnforcementPolicy).
 */
export const KEEPALIVE_MS = 310_000;
export const KEEPALIVE_TIMEOUT_MS = 20_000;

/**
 * Most messages that a stream may bring within a second. Each costs work, however little it says; management servers
 * send one for each change, and wait for an answer.
 */
export const MAX_MESSAGES_A_SECOND = 100;

export interface AdsStreamListener {
  connected(): void;
  received(envelope: Envelope): void;
  /** Told once, and nothing afterwards; not after `close`. */
  ended(reason: string): void;
}

/** Metadata of gRPC. Throws an Error for a name that can be no header. */
export function metadataOf(headers: ReadonlyMap<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of headers) metadata.set(name, name.endsWith('-bin') ? Buffer.from(value) : value);
  return metadata;
}

/** One ADS stream on a connection of its own, which ends with it. */
export class AdsStream {
  readonly #client: Client;
  readonly #call: ClientDuplexStream<DiscoveryRequest, Buffer>;
  readonly #listener: AdsStreamListener;
  #ended = false;
  /** Messages since then, by performance.now(). */
  #messages = 0;
  #sinceMs = Number.NEGATIVE_INFINITY;

  /** Connects at once, with `credentials` of the address. Throws an Error where the target is not a valid one. */
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
      // A connection of an earlier stream was made with that one's certificates.
      'grpc.use_local_subchannel_pool': 1,
      // Retries would keep what was sent in memory for as long as the stream lasts.
      'grpc.enable_retries': 0,
      'grpc.service_config_disable_resolution': 1,
      ...(address.serverName === undefined
        ? withoutServerName(address.target)
        : {
            'grpc.ssl_target_name_override': address.serverName,
            'grpc.default_authority': address.serverName,
          }),
    });
    boundGrpcCalls();
    this.#call = this.#client.makeBidiStreamRequest(
      STREAM_PATH,
      codec.encodeRequest,
      // Another thread decodes it.
      (bytes: Buffer) => bytes,
      metadataOf(address.headers),
    );
    this.#call.on('data', (bytes: Buffer) => {
      if (this.#isFlood())
        this.#end(`the server sent more than ${MAX_MESSAGES_A_SECOND} messages within a second`);
      else void this.#read(bytes);
    });
    // Said again by the status.
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

  /** Counts a message. */
  #isFlood(): boolean {
    const now = performance.now();
    if (now - this.#sinceMs >= 1000) [this.#sinceMs, this.#messages] = [now, 0];
    this.#messages++;
    return this.#messages > MAX_MESSAGES_A_SECOND;
  }

  /** Reads a message, a part of it a turn; the next one waits for it. */
  async #read(bytes: Buffer): Promise<void> {
    try {
      const reading = readEnvelope(bytes);
      let step = reading.next();
      if (step.done !== true) this.#call.pause();
      while (step.done !== true) {
        await turn();
        if (this.#ended) return;
        step = reading.next();
      }
      if (!this.#ended) this.#listener.received(step.value);
      this.#call.resume();
    } catch (error) {
      this.#end(`INTERNAL: the message is not a DiscoveryResponse: ${(error as Error).message}`);
    }
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
