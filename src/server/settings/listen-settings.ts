import type { SettingSpec } from './spec.js';

/** Maximum of HTTP/2 settings and of the length of protobuf messages. */
const MAX_UINT32 = 0xffff_ffff;
const MAX_INT32 = 0x7fff_ffff;

/** Settings of ports, connections and TLS, and of the shutdown. */
export const LISTEN_SETTINGS = {
  grpcHost: {
    name: 'GRPC_HOST',
    effectiveWhen: ['noUds'],
    type: 'string',
    default: '127.0.0.1',
    help:
      'Address of the gRPC port. To listen on all addresses, use `0.0.0.0`, `::` or an empty value ' +
      '(`GRPC_HOST=`).',
    reference: {
      default: '0.0.0.0',
      whenEmpty: '',
      differs: "weir's container image also listens on 0.0.0.0.",
    },
  },
  grpcPort: {
    name: 'GRPC_PORT',
    effectiveWhen: ['noUds'],
    type: 'port',
    default: '8081',
    help: 'gRPC port. 0: any free port.',
    reference: { default: '8081' },
  },
  grpcUds: {
    name: 'GRPC_UDS',
    type: 'string',
    default: '',
    help: 'Path of a Unix domain socket for gRPC. Replaces GRPC_HOST and GRPC_PORT.',
    reference: { default: '' },
  },
  host: {
    name: 'HOST',
    type: 'string',
    default: '127.0.0.1',
    help: 'Address of the HTTP port. To listen on all addresses, use `0.0.0.0`, `::` or an empty value (`HOST=`).',
    reference: {
      default: '0.0.0.0',
      whenEmpty: '',
      differs: "weir's container image also listens on 0.0.0.0.",
    },
  },
  port: {
    name: 'PORT',
    type: 'port',
    default: '8080',
    help: 'HTTP port, which serves `/healthcheck`, `/json` and `/metrics`. 0: any free port.',
    reference: { default: '8080' },
  },
  debugHost: {
    name: 'DEBUG_HOST',
    type: 'string',
    default: '127.0.0.1',
    help:
      'Address of the debug port. Use a loopback address, because anyone who can connect to the debug ' +
      'port can read the policies.',
    reference: {
      default: '0.0.0.0',
      differs:
        'Anyone who can connect to the debug port can read the policies, so weir listens only on its ' +
        'own machine or container by default.',
    },
  },
  debugPort: {
    name: 'DEBUG_PORT',
    type: 'port',
    default: '6070',
    help: 'Debug port. 0: any free port.',
    reference: { default: '6070' },
  },
  debugServerTlsCert: {
    name: 'DEBUG_SERVER_TLS_CERT',
    type: 'string',
    default: '',
    help:
      'File with the certificate chain of the debug port (PEM). If set, the debug port uses TLS. weir reloads ' +
      'the certificate and the key when the files change.',
  },
  debugServerTlsKey: {
    name: 'DEBUG_SERVER_TLS_KEY',
    type: 'string',
    default: '',
    help: 'File with the private key of the certificate in DEBUG_SERVER_TLS_CERT (PEM).',
  },
  adminTokensFile: {
    name: 'ADMIN_TOKENS_FILE',
    type: 'string',
    default: '',
    help:
      'File with the tokens that the debug port accepts for bucket commands. Each line contains one ' +
      'token: `name read|write sha256:…`. `weir bucket new-token` prints such a line. weir reloads the ' +
      'file when it changes. If unset, only programs on this machine can use bucket commands.',
  },
  grpcMaxMessageBytes: {
    name: 'GRPC_MAX_MESSAGE_BYTES',
    type: 'count',
    default: '4194304',
    max: MAX_INT32,
    help:
      'Maximum size of a gRPC message as it is sent. Larger messages get RESOURCE_EXHAUSTED, and Envoy then allows ' +
      'the request by default. See MAX_REQUEST_BYTES.',
  },
  grpcMaxConnections: {
    name: 'GRPC_MAX_CONNECTIONS',
    type: 'count',
    // Enough for many Envoys with many threads each.
    default: '20000',
    max: MAX_INT32,
    help: 'Maximum number of open connections in each process. weir closes further connections immediately.',
  },
  grpcMaxBufferedBytes: {
    name: 'GRPC_MAX_BUFFERED_BYTES',
    effectiveWhen: ['h2'],
    type: 'count',
    // The memory that a process of 256 MiB can spare. Node.js frees buffers late, and may use twice as much for a
    // while.
    default: '33554432',
    max: MAX_INT32,
    help:
      'Maximum memory that all connections of a process may use for partial requests, open calls and ' +
      'unread answers. Beyond this limit, weir closes the connection that uses the most memory.',
  },
  grpcMaxStreams: {
    name: 'GRPC_MAX_CONCURRENT_STREAMS',
    type: 'count',
    default: '1024',
    max: MAX_UINT32,
    help: 'Maximum number of concurrent calls on a connection. If Envoy needs more calls, it opens another connection.',
  },
  grpcMaxHeaderBytes: {
    name: 'GRPC_MAX_HEADER_BYTES',
    effectiveWhen: ['h2'],
    type: 'count',
    default: '16384',
    max: MAX_UINT32,
    help: "Maximum total size of a call's headers.",
  },
  grpcMaxConnectionAge: {
    name: 'GRPC_MAX_CONNECTION_AGE',
    type: 'duration',
    default: '24h',
    help:
      'Age at which weir sends GOAWAY on a connection. The client then reconnects, which spreads ' +
      'connections over all replicas. 0: never.',
    reference: { default: '24h' },
  },
  grpcMaxConnectionAgeGrace: {
    name: 'GRPC_MAX_CONNECTION_AGE_GRACE',
    effectiveWhen: ['connectionAge'],
    type: 'duration',
    default: '1h',
    help:
      'Maximum time that open calls may take to finish after weir sends GOAWAY because of ' +
      'GRPC_MAX_CONNECTION_AGE. 0: no limit.',
    reference: { default: '1h' },
  },
  grpcKeepAliveInterval: {
    name: 'GRPC_KEEP_ALIVE_INTERVAL',
    type: 'duration',
    default: '1m',
    help: 'Time without traffic after which weir sends a PING on a connection. 0: never.',
  },
  grpcKeepAliveTimeout: {
    name: 'GRPC_KEEP_ALIVE_TIMEOUT',
    effectiveWhen: ['keepAlive'],
    type: 'duration',
    default: '20s',
    help: 'Time to wait for the answer to a PING before weir closes the connection. 0: no limit.',
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
      'File with the certificate chain for the gRPC port (PEM). When this file, GRPC_SERVER_TLS_KEY or ' +
      'GRPC_CLIENT_TLS_CACERT changes, weir reloads all of these files.',
    reference: { default: '' },
  },
  grpcServerTlsKey: {
    name: 'GRPC_SERVER_TLS_KEY',
    effectiveWhen: ['grpcTls'],
    type: 'string',
    default: '',
    help: 'File with the private key of the certificate in GRPC_SERVER_TLS_CERT (PEM).',
    reference: { default: '' },
  },
  grpcClientTlsCaCert: {
    name: 'GRPC_CLIENT_TLS_CACERT',
    effectiveWhen: ['grpcTls'],
    type: 'string',
    default: '',
    help:
      'File with the CA certificates for client certificates (PEM). If set, every client must present a valid ' +
      'certificate (mTLS).',
    reference: { default: '' },
  },
  grpcClientTlsSan: {
    name: 'GRPC_CLIENT_TLS_SAN',
    effectiveWhen: ['grpcTls'],
    type: 'string',
    default: '',
    help:
      'Subject alternative name that the client certificate must contain: a DNS name, an IP address, or a URI ' +
      'such as a SPIFFE ID.',
    reference: { default: '' },
  },
  grpcTransport: {
    name: 'GRPC_TRANSPORT',
    type: 'grpc_transport',
    default: 'h2',
    help:
      "`h2`: weir's own HTTP/2 server. `grpc-js`: @grpc/grpc-js, a fallback that ignores GRPC_MAX_HEADER_BYTES " +
      'and GRPC_MAX_BUFFERED_BYTES.',
  },
  workers: {
    name: 'WORKERS',
    type: 'count',
    default: '1',
    max: 256,
    help:
      'Number of processes that share the gRPC port. Values above 1 need Redis. Use at most one process ' +
      'per CPU core.',
  },
  workerScheduling: {
    name: 'WORKER_SCHEDULING',
    effectiveWhen: ['workers'],
    type: 'worker_scheduling',
    default: 'round-robin',
    help:
      'Distribution of connections to workers: `round-robin`, `kernel` (one shared listener) or ' +
      '`reuse-port` (one listener per worker; requires Node.js 22.12 or later).',
  },
  shutdownDrainDelay: {
    name: 'SHUTDOWN_DRAIN_DELAY',
    type: 'duration',
    default: '0s',
    help:
      'Time after SIGTERM or SIGINT during which weir reports NOT_SERVING but continues to serve ' +
      'requests. Set a time that is longer than your health check interval.',
  },
  shutdownGrace: {
    name: 'SHUTDOWN_GRACE',
    type: 'duration',
    default: '10s',
    help: 'Maximum time that open calls may take to finish after SHUTDOWN_DRAIN_DELAY.',
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
