import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  Metadata,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import { withoutServerName } from '../../runtime/no-server-name.js';
import {
  type DiscoveryCodec,
  type DiscoveryRequest,
  type DiscoveryResponse,
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

export interface AdsStreamListener {
  connected(): void;
  received(response: DiscoveryResponse): void;
  /** Called once, as the last call, when the stream ends; not after `close`. */
  ended(reason: string): void;
}

/** Returns gRPC metadata. Throws an Error for a name that is not a valid header name. */
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
