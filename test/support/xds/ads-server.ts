import {
  Server as GrpcJsServer,
  type Server,
  ServerCredentials,
  type ServerDuplexStream,
} from '@grpc/grpc-js';
import { loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';
import { STREAM_PATH } from '../../../src/config/xds/discovery.js';
import { assetPath } from '../../../src/runtime/assets.js';
import { closeLater } from '../process/close-later.js';

/** Message from the client, as proto-loader decodes it. */
export interface AskedFor {
  readonly versionInfo: string;
  readonly responseNonce: string;
  readonly typeUrl: string;
  readonly errorDetail: { readonly code: number; readonly message: string } | null;
}

/** One stream of a client, controlled by the test. */
export interface AdsPeer {
  /** Messages received so far. */
  readonly requests: readonly AskedFor[];
  send(response: object): void;
  sendBytes(bytes: Buffer): void;
  end(): void;
}

const definition = loadSync('envoy/service/discovery/v3/discovery.proto', {
  includeDirs: [assetPath('proto')],
  defaults: true,
});
const message = (name: string): MessageTypeDefinition<object, object> =>
  definition[`envoy.service.discovery.v3.${name}`] as MessageTypeDefinition<object, object>;

/** A management server whose messages the test chooses, including invalid ones. */
export class AdsServer {
  /** Streams in the order of their opening. */
  readonly peers: AdsPeer[] = [];
  readonly #server: Server = new GrpcJsServer();
  port = 0;

  async start(): Promise<this> {
    closeLater(this, () => this.stop());
    this.#server.register(
      STREAM_PATH,
      (call: ServerDuplexStream<AskedFor, Buffer>) => this.#open(call),
      (bytes) => bytes,
      (bytes) => message('DiscoveryRequest').deserialize(bytes) as AskedFor,
      'bidi',
    );
    this.port = await new Promise((resolve, reject) => {
      this.#server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      );
    });
    return this;
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  #open(call: ServerDuplexStream<AskedFor, Buffer>): void {
    const requests: AskedFor[] = [];
    call.on('data', (request: AskedFor) => requests.push(request));
    call.on('error', () => {});
    this.peers.push({
      requests,
      send: (response) => call.write(message('DiscoveryResponse').serialize(response)),
      sendBytes: (bytes) => call.write(bytes),
      end: () => call.end(),
    });
  }
}
