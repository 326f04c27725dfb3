import { MAX_INFLATION } from '../../grpc/grpc-server.js';
import type { SettingSpec } from './spec.js';

/** HTTP/2 settings and lengths of protobuf messages end here. */
const MAX_UINT32 = 0xffff_ffff;
const MAX_INT32 = 0x7fff_ffff;

/** Ports, connections and their TLS, and the end of a process. */
export const LISTEN_SETTINGS = {
  grpcHost: {
    name: 'GRPC_HOST',
    effectiveWhen: ['noUds'],
    type: 'string',
    default: '127.0.0.1',
    help: 'Address for gRPC. `0.0.0.0`, `::` or nothing (`GRPC_HOST=`) for all.',
    reference: {
      default: '0.0.0.0',
      whenEmpty: '',
      differs: 'The container image of weir binds 0.0.0.0, too.',
    },
  },
  grpcPort: {
    name: 'GRPC_PORT',
    effectiveWhen: ['noUds'],
    type: 'port',
    default: '8081',
    help: 'Port for gRPC; 0 takes a free one.',
    reference: { default: '8081' },
  },
  grpcUds: {
    name: 'GRPC_UDS',
    type: 'string',
    default: '',
    help: 'Path of a Unix domain socket for gRPC, in the place of GRPC_HOST and GRPC_PORT.',
    reference: { default: '' },
  },
  host: {
    name: 'HOST',
    type: 'string',
    default: '127.0.0.1',
    help: 'Address for `/healthcheck`, `/json` and `/metrics`; as GRPC_HOST.',
    reference: {
      default: '0.0.0.0',
      whenEmpty: '',
      differs: 'The container image of weir binds 0.0.0.0, too.',
    },
  },
  port: {
    name: 'PORT',
    type: 'port',
    default: '8080',
    help: 'Port for `/healthcheck`, `/json` and `/metrics`; 0 takes a free one.',
    reference: { default: '8080' },
  },
  debugHost: {
    name: 'DEBUG_HOST',
    type: 'string',
    default: '127.0.0.1',
    help: 'Address for the debug endpoints, which show the policy. Keep it on loopback.',
    reference: {
      default: '0.0.0.0',
      differs: 'The debug port shows the policy, so weir opens it to its own machine, or container, only.',
    },
  },
  debugPort: {
    name: 'DEBUG_PORT',
    type: 'port',
    default: '6070',
    help: 'Port for the debug endpoints; 0 takes a free one.',
    reference: { default: '6070' },
  },
  debugServerTlsCert: {
    name: 'DEBUG_SERVER_TLS_CERT',
    type: 'string',
    default: '',
    help:
      'File with the certificate of the debug port and its chain (PEM): with it that port speaks TLS. This and ' +
      'the next one are followed as they change.',
  },
  debugServerTlsKey: {
    name: 'DEBUG_SERVER_TLS_KEY',
    type: 'string',
    default: '',
    help: 'File with the key of DEBUG_SERVER_TLS_CERT (PEM).',
  },
  adminTokensFile: {
    name: 'ADMIN_TOKENS_FILE',
    type: 'string',
    default: '',
    help:
      'File with who may administer buckets through the debug port: a line `name read|write sha256:…` for each ' +
      'token, as `weir bucket new-token` prints it. Followed as it changes. Without it everybody may, on ' +
      'loopback only.',
  },
  grpcMaxMessageBytes: {
    name: 'GRPC_MAX_MESSAGE_BYTES',
    type: 'count',
    default: '4194304',
    max: MAX_INT32,
    help: 'Largest request message; a larger one gets RESOURCE_EXHAUSTED.',
  },
  grpcMaxInflatedBytes: {
    name: 'GRPC_MAX_INFLATED_BYTES',
    effectiveWhen: ['h2'],
    type: 'count',
    default: '262144',
    max: MAX_INT32,
    help:
      `Most that a compressed request message may become, and at most ${MAX_INFLATION} times its size; ` +
      'more gets RESOURCE_EXHAUSTED.',
  },
  grpcMaxConnections: {
    name: 'GRPC_MAX_CONNECTIONS',
    type: 'count',
    // Many Envoys times their threads.
    default: '20000',
    max: MAX_INT32,
    help: 'Most connections at once in each process; one more is closed at once.',
  },
  grpcMaxBufferedBytes: {
    name: 'GRPC_MAX_BUFFERED_BYTES',
    effectiveWhen: ['h2'],
    type: 'count',
    // What a process of 256 MiB has to spare: Node.js gives memory of buffers back late, and may hold twice as much for
    // a while.
    default: '33554432',
    max: MAX_INT32,
    help:
      'Most that all connections of a process may make it hold: unfinished requests, open calls, answers ' +
      'not read. The one that holds most is ended.',
  },
  grpcMaxStreams: {
    name: 'GRPC_MAX_CONCURRENT_STREAMS',
    type: 'count',
    default: '1024',
    max: MAX_UINT32,
    help: 'Most calls at once on one connection. Envoy opens another connection past it.',
  },
  grpcMaxHeaderBytes: {
    name: 'GRPC_MAX_HEADER_BYTES',
    effectiveWhen: ['h2'],
    type: 'count',
    default: '16384',
    max: MAX_UINT32,
    help: 'Largest header list of a call.',
  },
  grpcMaxConnectionAge: {
    name: 'GRPC_MAX_CONNECTION_AGE',
    type: 'duration',
    default: '24h',
    help: 'Age at which a connection gets a GOAWAY, so that callers spread over replicas again; 0 for never.',
    reference: { default: '24h' },
  },
  grpcMaxConnectionAgeGrace: {
    name: 'GRPC_MAX_CONNECTION_AGE_GRACE',
    effectiveWhen: ['connectionAge'],
    type: 'duration',
    default: '1h',
    help: 'How long calls on such a connection may still run; 0 for as long as they like.',
    reference: { default: '1h' },
  },
  grpcKeepAliveInterval: {
    name: 'GRPC_KEEP_ALIVE_INTERVAL',
    type: 'duration',
    default: '1m',
    help: 'A connection silent for this long is sent a PING; 0 for never.',
  },
  grpcKeepAliveTimeout: {
    name: 'GRPC_KEEP_ALIVE_TIMEOUT',
    effectiveWhen: ['keepAlive'],
    type: 'duration',
    default: '20s',
    help: 'A connection that does not answer that PING for this long is cut; 0 for never.',
  },
  grpcServerUseTls: {
    name: 'GRPC_SERVER_USE_TLS',
    type: 'boolean',
    default: 'false',
    help: 'Serve gRPC over TLS.',
    reference: { default: 'false' },
  },
  grpcServerTlsCert: {
    name: 'GRPC_SERVER_TLS_CERT',
    effectiveWhen: ['grpcTls'],
    type: 'string',
    default: '',
    help:
      'File with the certificate of the gRPC port and its chain (PEM). This and the next two are ' +
      'followed as they change.',
    reference: { default: '' },
  },
  grpcServerTlsKey: {
    name: 'GRPC_SERVER_TLS_KEY',
    effectiveWhen: ['grpcTls'],
    type: 'string',
    default: '',
    help: 'File with the key of GRPC_SERVER_TLS_CERT (PEM).',
    reference: { default: '' },
  },
  grpcClientTlsCaCert: {
    name: 'GRPC_CLIENT_TLS_CACERT',
    effectiveWhen: ['grpcTls'],
    type: 'string',
    default: '',
    help: 'File with the issuers of client certificates (PEM). Set: every client must show one (mTLS).',
    reference: { default: '' },
  },
  grpcClientTlsSan: {
    name: 'GRPC_CLIENT_TLS_SAN',
    effectiveWhen: ['grpcTls'],
    type: 'string',
    default: '',
    help:
      "Alternative name that the client's certificate must hold: a DNS name, an IP address, or a URI " +
      'such as a SPIFFE id.',
    reference: { default: '' },
  },
  grpcTransport: {
    name: 'GRPC_TRANSPORT',
    type: 'grpc_transport',
    default: 'h2',
    help:
      "`h2`: weir's own HTTP/2. `grpc-js`: @grpc/grpc-js with its own messages, a fallback without the bounds of " +
      'GRPC_MAX_HEADER_BYTES, GRPC_MAX_INFLATED_BYTES and GRPC_MAX_BUFFERED_BYTES.',
  },
  workers: {
    name: 'WORKERS',
    type: 'count',
    default: '1',
    max: 256,
    help: 'Processes that decide, on one gRPC port; more than 1 needs Redis. One per core at most.',
  },
  workerScheduling: {
    name: 'WORKER_SCHEDULING',
    effectiveWhen: ['workers'],
    type: 'worker_scheduling',
    default: 'round-robin',
    help:
      'How connections come to workers: `round-robin`, `kernel` (one listener for all) or `reuse-port` ' +
      '(Node.js 22.12).',
  },
  shutdownDrainDelay: {
    name: 'SHUTDOWN_DRAIN_DELAY',
    type: 'duration',
    default: '0s',
    help:
      'After SIGTERM or SIGINT, how long to go on serving while health says NOT_SERVING. Longer than ' +
      'your health check interval.',
  },
  shutdownGrace: {
    name: 'SHUTDOWN_GRACE',
    type: 'duration',
    default: '10s',
    help: 'After that, how long running calls may take to finish.',
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
