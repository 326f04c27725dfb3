import { TempDir } from '../process/temp-dir.js';
import { CertificateAuthority } from './certificates.js';

/** PEM files of one authority, with a server certificate for localhost and 127.0.0.1, and a client certificate. */
export interface TlsFiles {
  readonly ca: string;
  readonly serverCert: string;
  readonly serverKey: string;
  readonly clientCert: string;
  readonly clientKey: string;
  remove(): void;
}

/** Name in the client's certificate. */
const CLIENT_SAN = 'spiffe://test/envoy';

/** Creates certificates for one test file. Call `remove` afterwards. */
export function writeTlsFiles(): TlsFiles {
  const authority = new CertificateAuthority();
  const server = authority.issue('DNS:localhost,IP:127.0.0.1');
  const client = authority.issue(`URI:${CLIENT_SAN}`);
  const folder = new TempDir();
  return {
    ca: folder.write('ca.pem', authority.cert),
    serverCert: folder.write('server.pem', server.cert),
    serverKey: folder.write('server-key.pem', server.key),
    clientCert: folder.write('client.pem', client.cert),
    clientKey: folder.write('client-key.pem', client.key),
    remove: () => folder.remove(),
  };
}

/** Returns the settings of a weir that serves gRPC over TLS. */
export function tlsSettings(files: TlsFiles): NodeJS.ProcessEnv {
  return {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: files.serverCert,
    GRPC_SERVER_TLS_KEY: files.serverKey,
  };
}

/** Returns the settings of a weir that also requires the client certificate of `files`, by its name. */
export function mutualTlsSettings(files: TlsFiles): NodeJS.ProcessEnv {
  return { ...tlsSettings(files), GRPC_CLIENT_TLS_CACERT: files.ca, GRPC_CLIENT_TLS_SAN: CLIENT_SAN };
}
