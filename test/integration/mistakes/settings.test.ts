/* Tests the full text that weir serve prints for invalid settings. */
import { type AddressInfo, createServer, type Server } from 'node:net';
import { dirname } from 'node:path';
import { afterAll, describe } from '@jest/globals';
import { type TlsFiles, writeTlsFiles } from '../../support/tls/tls-files.js';
import { CUSTOMER, LIMIT, type Mistake, testMistakes } from './table.js';

interface BadSettings {
  readonly environment: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly prints: string;
}

const REDIS = { REDIS_URL: 'localhost:6379' };
const TLS = { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: '<pem>/server.pem' };

const VALUES: readonly BadSettings[] = [
  {
    environment: { GRPC_PORT: '0.0.0.0:8081' },
    prints: `weir: GRPC_PORT: "0.0.0.0:8081" is not a port number from 0 to 65535; write 8081
`,
  },
  {
    environment: { LOG_LEVEL: '"debug"' },
    prints: `weir: LOG_LEVEL: "\\"debug\\"" is not one of panic, fatal, error, warn, warning, info, debug, trace; remove the quotes
`,
  },
  {
    environment: { GRPC_PORT: '80801' },
    prints: `weir: GRPC_PORT: "80801" is not a port number from 0 to 65535
`,
  },
  {
    environment: { LOG_LEVEL: 'verbose' },
    prints: `weir: LOG_LEVEL: "verbose" is not one of panic, fatal, error, warn, warning, info, debug, trace
`,
  },
  {
    environment: { USE_STATSD: 'yes' },
    prints: `weir: USE_STATSD: "yes" is not true or false; write true
`,
  },
  {
    environment: { ...REDIS, REDIS_TIMEOUT: '2' },
    prints: `weir: REDIS_TIMEOUT: "2" is not a duration above 0 such as 150ms, 2s or 1h30m; write 2s
`,
  },
  {
    environment: { MEMORY_MAX_BYTES: '512MB' },
    prints: `weir: MEMORY_MAX_BYTES: "512MB" is not a whole number of at least 1; write 536870912
`,
  },
  {
    environment: { NEAR_LIMIT_RATIO: '80' },
    prints: `weir: NEAR_LIMIT_RATIO: "80" is not a number from 0 to 1; write 0.8
`,
  },
  {
    environment: { REDIS_URL: 'redis://a:6379,b:6379', REDIS_TYPE: 'CLUSTER' },
    prints: `weir: REDIS_URL, REDIS_TYPE: Redis address: a cluster address must not contain URLs or a login; write <host:port of a node>,<host:port of another node>, and set REDIS_AUTH to the login; for TLS, set REDIS_TLS=true
`,
  },
  {
    environment: { BACKEND_TYPE: 'memcache' },
    prints: `weir: BACKEND_TYPE: weir does not support memcache; unset this variable, and set REDIS_URL to keep buckets in Redis instead of memory
`,
  },
];

const ADDRESSES: readonly BadSettings[] = [
  {
    environment: { REDIS_URL: 'redis:6379/0' },
    prints: `weir: REDIS_URL: Redis address: only a URL can contain a database; write redis://redis:6379/0
`,
  },
  {
    environment: { REDIS_URL: '"redis:6379"' },
    prints: `weir: REDIS_URL: Redis address: the address is in quotes; remove the quotes
`,
  },
  {
    environment: { REDIS_URL: `\${REDIS_URL}` },
    prints: `weir: REDIS_URL: Redis address: the address contains "\${", so a variable was not substituted; correct the substitution, or write the address itself
`,
  },
  {
    environment: { GRPC_PORT: '<taken>' },
    prints: `weir: cannot listen on 127.0.0.1:<taken> for gRPC (GRPC_HOST, GRPC_PORT): the port is already in use; stop the process that uses the port, or choose another port
`,
  },
  {
    environment: { GRPC_PORT: '18080', PORT: '18080' },
    prints: `weir: PORT: GRPC_PORT also uses port 18080; choose a different port for one of the two
`,
  },
  {
    environment: { GRPC_HOST: '192.0.2.1' },
    prints: `weir: cannot listen on 192.0.2.1:0 for gRPC (GRPC_HOST, GRPC_PORT): this machine does not have this address; choose an address of this machine, 127.0.0.1, or 0.0.0.0 for all addresses
`,
  },
  {
    environment: { GRPC_UDS: '/nowhere/weir.sock' },
    prints: `weir: cannot listen on unix:/nowhere/weir.sock for gRPC (GRPC_UDS): the directory does not exist, or the user that runs weir has no permission to write to it; create the directory, grant write permission, or choose another path
`,
  },
  {
    environment: { REDIS_URL: 'http://localhost:6379' },
    prints: `weir: REDIS_URL: Redis address: unknown scheme "http://"; use host:port, [::1]:6379, the path of a socket, redis://user:password@host:port/db, rediss:// for TLS, or unix:///path?db=1
`,
  },
  {
    environment: { REDIS_URL: 'redis://:p@ss/w0rd@localhost:6379' },
    prints: `weir: REDIS_URL: Redis address: the user or the password contains a character with a special meaning in URLs; percent-encode this character (/ is %2F, ? is %3F, # is %23, % is %25, "," is %2C), or remove the login from the URL and set REDIS_AUTH to the password or to user:password, without encoding
`,
  },
  {
    environment: { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: 'http://xds:18000' },
    prints: `weir: CONFIG_GRPC_XDS_SERVER_URL: the value is a URL; use host:port without a scheme, and set CONFIG_GRPC_XDS_SERVER_USE_TLS=true for TLS
`,
  },
];

const FILES: readonly BadSettings[] = [
  {
    environment: { CONFIG_PATH: 'policies/shop.yaml' },
    prints: `weir: policies/shop.yaml: "policies/shop.yaml" does not exist: the path is relative to the working directory "<folder>", so weir tried "<folder>/policies/shop.yaml"; check the path
weir: no policy in CONFIG_PATH (policies/shop.yaml) is valid (1 error); correct the errors above, and run weir check-config before you start weir again
`,
  },
  {
    environment: { CONFIG_PATH: 'shop.yaml' },
    files: { 'shop.yaml': `${CUSTOMER}${LIMIT.replace('minute', 'minutes')}` },
    prints: `weir: shop.yaml:4:25: descriptors[0].rate_limit.unit: "minutes" is not a valid unit; did you mean "minute"?
weir: no policy in CONFIG_PATH (shop.yaml) is valid (1 error); correct the errors above, and run weir check-config before you start weir again
`,
  },
  {
    environment: { ...TLS, GRPC_SERVER_TLS_KEY: 'tls/tls.key' },
    prints: `weir: GRPC_SERVER_TLS_KEY: cannot read tls/tls.key: the file does not exist: the path is relative to the working directory "<folder>", so weir tried "<folder>/tls/tls.key"; correct the path
`,
  },
  {
    environment: { ...TLS, GRPC_SERVER_TLS_KEY: '<pem>/client-key.pem' },
    prints: `weir: GRPC_SERVER_TLS_KEY: <pem>/client-key.pem: the key does not belong to the certificate; specify a PEM file with the private key of the certificate in GRPC_SERVER_TLS_CERT; the key must not have a passphrase
`,
  },
  {
    environment: {
      ...TLS,
      GRPC_SERVER_TLS_CERT: '<pem>/server-key.pem',
      GRPC_SERVER_TLS_KEY: '<pem>/server.pem',
    },
    prints: `weir: GRPC_SERVER_TLS_CERT: <pem>/server-key.pem: not a PEM certificate: the file contains a private key; specify a PEM file with the gRPC port's certificate
`,
  },
  {
    environment: { ...REDIS, REDIS_AUTH_FILE: '/run/secrets/redis' },
    prints: `weir: REDIS_AUTH_FILE: cannot read /run/secrets/redis: the file does not exist; correct the path
`,
  },
];

const TOGETHER: readonly BadSettings[] = [
  {
    environment: TLS,
    prints: `weir: GRPC_SERVER_USE_TLS is on: set GRPC_SERVER_TLS_KEY to a PEM file, or unset GRPC_SERVER_USE_TLS
`,
  },
  {
    environment: { WORKERS: '4' },
    prints: `weir: WORKERS: 4 workers need Redis: with buckets in memory, each worker would count separately, so callers would get every limit several times; set REDIS_URL, or set WORKERS=1
`,
  },
  {
    environment: { CONFIG_PATH: '/policies', RUNTIME_ROOT: '/data' },
    prints: `weir: CONFIG_PATH: RUNTIME_ROOT is also set, and both variables select the policies; unset one of the two
`,
  },
  {
    environment: { ...REDIS, REDIS_AUTH: 'a', REDIS_AUTH_FILE: 'password' },
    files: { password: 'b' },
    prints: `weir: REDIS_AUTH_FILE: REDIS_AUTH is also set, but only one variable can provide the password; unset one of the two
`,
  },
  {
    environment: { ...REDIS, REDIS_AWS_IAM_AUTH: 'true', REDIS_AWS_IAM_USER_ID: 'weir' },
    prints: `weir: REDIS_AWS_IAM_AUTH: weir does not create AWS tokens; unset this variable, and set REDIS_AUTH_FILE to a file that contains user:token, as shown in docs/operate/redis-login.md
`,
  },
  {
    environment: { REDIS_AUTH: 'a' },
    prints: `weir: REDIS_AUTH: REDIS_URL is not set, so weir would keep buckets in memory; set REDIS_URL, or unset REDIS_AUTH
`,
  },
];

const FREE_PORTS = { PORT: '0', DEBUG_PORT: '0' };

const started = ({ environment, files = {}, prints }: BadSettings): Mistake => ({
  what: Object.entries(environment)
    .map(([name, value]) => `${name}=${value}`)
    .join(' '),
  args: ['serve'],
  environment: { ...FREE_PORTS, ...('GRPC_UDS' in environment ? {} : { GRPC_PORT: '0' }), ...environment },
  files,
  code: 1,
  prints,
});

let pem: TlsFiles | undefined;
let listener: Server | undefined;
afterAll(() => {
  listener?.close();
});

/** Occupies a port, and creates certificates. */
async function prepare(): Promise<Readonly<Record<string, string>>> {
  pem = writeTlsFiles();
  const server = createServer();
  listener = server;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { '<taken>': String((server.address() as AddressInfo).port), '<pem>': dirname(pem.ca) };
}

describe('weir serve reports', () => {
  testMistakes([...VALUES, ...ADDRESSES, ...FILES, ...TOGETHER].map(started), prepare);
});
