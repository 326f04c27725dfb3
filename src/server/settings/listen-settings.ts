import { own, shared, when } from './settings-values.js';

/** Settings of ports, connections and TLS, and of the shutdown. */
export const LISTEN_SETTINGS = {
  ...when('GRPC_UDS=', {
    grpcHost: shared('GRPC_HOST', 'string', '127.0.0.1', {
      help:
        'Address of the gRPC port. To listen on all addresses, use `0.0.0.0`, `::` or an empty value ' +
        '(`GRPC_HOST=`).',
      theirs: '0.0.0.0',
      whenEmpty: '',
      differs: "weir's container image also listens on 0.0.0.0.",
    }),
    grpcPort: shared('GRPC_PORT', 'port', '8081', { help: 'gRPC port. 0: any free port.' }),
  }),
  grpcUds: shared('GRPC_UDS', 'string', '', {
    help: 'Path of a Unix domain socket for gRPC. Replaces GRPC_HOST and GRPC_PORT.',
  }),
  host: shared('HOST', 'string', '127.0.0.1', {
    help:
      'Address of the HTTP port. To listen on all addresses, use `0.0.0.0`, `::` or an empty value ' +
      '(`HOST=`).',
    theirs: '0.0.0.0',
    whenEmpty: '',
    differs: "weir's container image also listens on 0.0.0.0.",
  }),
  port: shared('PORT', 'port', '8080', {
    help: 'HTTP port, which serves `/healthcheck`, `/json` and `/metrics`. 0: any free port.',
  }),
  debugHost: shared('DEBUG_HOST', 'string', '127.0.0.1', {
    help:
      'Address of the debug port. Use a loopback address, because anyone who can connect to the debug ' +
      'port can read the policies.',
    theirs: '0.0.0.0',
    differs:
      'Anyone who can connect to the debug port can read the policies, so weir listens only on its own ' +
      'machine or container by default.',
  }),
  debugPort: shared('DEBUG_PORT', 'port', '6070', { help: 'Debug port. 0: any free port.' }),
  debugServerTlsCert: own('DEBUG_SERVER_TLS_CERT', 'string', '', {
    help:
      'File with the certificate chain of the debug port (PEM). If set, the debug port uses TLS. weir ' +
      'reloads the certificate and the key when the files change.',
  }),
  debugServerTlsKey: own('DEBUG_SERVER_TLS_KEY', 'string', '', {
    help: 'File with the private key of the certificate in DEBUG_SERVER_TLS_CERT (PEM).',
  }),
  adminTokensFile: own('ADMIN_TOKENS_FILE', 'string', '', {
    help:
      'File with the tokens that the debug port accepts for bucket commands. Each line contains one ' +
      'token: `name read|write sha256:…`. `weir bucket new-token` prints such a line. weir reloads the ' +
      'file when it changes. If unset, only programs on this machine can use bucket commands.',
  }),
  grpcMaxMessageBytes: own('GRPC_MAX_MESSAGE_BYTES', 'count', '4194304', {
    max: 2_147_483_647,
    help:
      'Maximum size of a gRPC message as it is sent. Larger messages get RESOURCE_EXHAUSTED, and Envoy ' +
      'then allows the request by default. See MAX_REQUEST_BYTES.',
  }),
  grpcMaxConnections: own('GRPC_MAX_CONNECTIONS', 'count', '20000', {
    max: 2_147_483_647,
    help: 'Maximum number of open connections in each process. weir closes further connections immediately.',
  }),
  ...when('GRPC_TRANSPORT=h2', {
    grpcMaxBufferedBytes: own('GRPC_MAX_BUFFERED_BYTES', 'count', '33554432', {
      max: 2_147_483_647,
      help:
        'Maximum memory that all connections of a process may use for partial requests, open calls and ' +
        'unread answers. Beyond this limit, weir closes the connection that uses the most memory.',
    }),
  }),
  grpcMaxStreams: own('GRPC_MAX_CONCURRENT_STREAMS', 'count', '1024', {
    max: 4_294_967_295,
    help:
      'Maximum number of concurrent calls on a connection. If Envoy needs more calls, it opens another ' +
      'connection.',
  }),
  ...when('GRPC_TRANSPORT=h2', {
    grpcMaxHeaderBytes: own('GRPC_MAX_HEADER_BYTES', 'count', '16384', {
      max: 4_294_967_295,
      help: "Maximum total size of a call's headers.",
    }),
  }),
  grpcMaxConnectionAge: shared('GRPC_MAX_CONNECTION_AGE', 'duration', '24h', {
    help:
      'Age at which weir sends GOAWAY on a connection. The client then reconnects, which spreads ' +
      'connections over all replicas. 0: never.',
  }),
  ...when('GRPC_MAX_CONNECTION_AGE', {
    grpcMaxConnectionAgeGrace: shared('GRPC_MAX_CONNECTION_AGE_GRACE', 'duration', '1h', {
      help:
        'Maximum time that open calls may take to finish after weir sends GOAWAY because of ' +
        'GRPC_MAX_CONNECTION_AGE. 0: no limit.',
    }),
  }),
  grpcKeepAliveInterval: own('GRPC_KEEP_ALIVE_INTERVAL', 'duration', '1m', {
    help: 'Time without traffic after which weir sends a PING on a connection. 0: never.',
  }),
  ...when('GRPC_KEEP_ALIVE_INTERVAL', {
    grpcKeepAliveTimeout: own('GRPC_KEEP_ALIVE_TIMEOUT', 'duration', '20s', {
      help: 'Time to wait for the answer to a PING before weir closes the connection. 0: no limit.',
    }),
  }),
  grpcServerUseTls: shared('GRPC_SERVER_USE_TLS', 'boolean', 'false', { help: 'Serve gRPC over TLS.' }),
  ...when('GRPC_SERVER_USE_TLS=true', {
    grpcServerTlsCert: shared('GRPC_SERVER_TLS_CERT', 'string', '', {
      help:
        'File with the certificate chain for the gRPC port (PEM). When this file, GRPC_SERVER_TLS_KEY ' +
        'or GRPC_CLIENT_TLS_CACERT changes, weir reloads all of these files.',
    }),
    grpcServerTlsKey: shared('GRPC_SERVER_TLS_KEY', 'string', '', {
      help: 'File with the private key of the certificate in GRPC_SERVER_TLS_CERT (PEM).',
    }),
    grpcClientTlsCaCert: shared('GRPC_CLIENT_TLS_CACERT', 'string', '', {
      help:
        'File with the CA certificates for client certificates (PEM). If set, every client must present ' +
        'a valid certificate (mTLS).',
    }),
    grpcClientTlsSan: shared('GRPC_CLIENT_TLS_SAN', 'string', '', {
      help:
        'Subject alternative name that the client certificate must contain: a DNS name, an IP address, ' +
        'or a URI such as a SPIFFE ID.',
    }),
  }),
  grpcTransport: own('GRPC_TRANSPORT', 'grpc_transport', 'h2', {
    help:
      "`h2`: weir's own HTTP/2 server. `grpc-js`: @grpc/grpc-js, a fallback that ignores " +
      'GRPC_MAX_HEADER_BYTES and GRPC_MAX_BUFFERED_BYTES.',
  }),
  workers: own('WORKERS', 'count', '1', {
    max: 256,
    help:
      'Number of worker processes that share the gRPC port and the HTTP port. Values above 1 need Redis. Use at ' +
      'most one process per CPU core.',
  }),
  workerScheduling: own('WORKER_SCHEDULING', 'worker_scheduling', 'round-robin', {
    help:
      'Distribution of connections to workers: `round-robin`, `kernel` (one shared listener) or ' +
      '`reuse-port` (one listener per worker; requires Node.js 22.12 or later).',
  }),
  shutdownDrainDelay: own('SHUTDOWN_DRAIN_DELAY', 'duration', '0s', {
    help:
      'Time after SIGTERM or SIGINT during which weir reports NOT_SERVING but continues to serve ' +
      'requests. Set a time that is longer than your health check interval.',
  }),
  shutdownGrace: own('SHUTDOWN_GRACE', 'duration', '10s', {
    help: 'Maximum time that open calls may take to finish after SHUTDOWN_DRAIN_DELAY.',
  }),
} as const;
