import { beforeEach, describe, expect, test } from '@jest/globals';
import { StartError } from '../../../src/server/start-error.js';
import { openDebugTlsFiles, openTlsFiles, type TlsFiles } from '../../../src/server/tls-files.js';
import { createLogger } from '../../../src/telemetry/logger.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { CertificateAuthority } from '../../support/tls/certificates.js';
import { settingsOf } from '../../support/weir/settings.js';

const authority = new CertificateAuthority();
const { cert, key } = authority.issue('DNS:localhost');
const log = createLogger({ level: 'panic', format: 'json', colour: false });

let folder: TempDir;
let files: Record<string, string>;
beforeEach(() => {
  folder = new TempDir();
  files = {
    GRPC_SERVER_TLS_CERT: folder.write('tls.crt', cert),
    GRPC_SERVER_TLS_KEY: folder.write('tls.key', key),
    GRPC_CLIENT_TLS_CACERT: folder.write('ca.crt', authority.cert),
  };
});

function open(environment: Record<string, string>): TlsFiles | undefined {
  const settings = settingsOf(environment);
  return openTlsFiles(settings, log);
}

const TLS = { GRPC_SERVER_USE_TLS: 'true' };

describe('TLS settings', () => {
  test('without settings, clear text', () => {
    expect(open({})).toBeUndefined();
  });

  test('unused files are not an error, as in the reference', () => {
    const { GRPC_CLIENT_TLS_CACERT: _, ...pair } = files;
    expect(open(pair)).toBeUndefined();
  });

  test('certificate and key', () => {
    const { GRPC_CLIENT_TLS_CACERT: _, ...pair } = files;
    expect(open({ ...TLS, ...pair })?.options).toEqual({
      material: { cert, key, clientCa: undefined },
      clientSan: undefined,
    });
  });

  test('client certificates and a name', () => {
    expect(open({ ...TLS, ...files, GRPC_CLIENT_TLS_SAN: 'envoy.test' })?.options).toEqual({
      material: { cert, key, clientCa: authority.cert },
      clientSan: 'envoy.test',
    });
  });

  test('certificates of another process stay in effect while a file is invalid', () => {
    const { GRPC_CLIENT_TLS_CACERT: _, ...pair } = files;
    const previous = { cert, key, clientCa: undefined };
    folder.write('tls.crt', 'no certificate');
    const settings = settingsOf({ ...TLS, ...pair });
    expect(() => openTlsFiles(settings, log)).toThrow(StartError);
    const opened = openTlsFiles(settings, log, previous);
    expect([opened?.current, opened?.options.material]).toEqual([previous, previous]);
  });

  const bad: [string, () => Record<string, string>, RegExp[]][] = [
    ['no files', () => TLS, [/set GRPC_SERVER_TLS_CERT to/, /set GRPC_SERVER_TLS_KEY to/]],
    [
      'a name without issuers',
      () => ({ ...TLS, ...files, GRPC_CLIENT_TLS_CACERT: '', GRPC_CLIENT_TLS_SAN: 'a' }),
      [/GRPC_CLIENT_TLS_SAN needs GRPC_CLIENT_TLS_CACERT/],
    ],
    ['issuers without TLS', () => files, [/GRPC_CLIENT_TLS_CACERT needs TLS/]],
    ['a name without TLS', () => ({ GRPC_CLIENT_TLS_SAN: 'a' }), [/GRPC_CLIENT_TLS_SAN needs TLS/]],
    [
      'a directory',
      () => ({ ...TLS, ...files, GRPC_SERVER_TLS_CERT: '/tmp' }),
      [/^GRPC_SERVER_TLS_CERT: cannot read \/tmp: the path is a directory; specify a file$/],
    ],
    [
      'issuers that are none',
      () => ({ ...TLS, ...files, GRPC_CLIENT_TLS_CACERT: folder.write('x', '') }),
      [/^GRPC_CLIENT_TLS_CACERT: .*x: not a PEM certificate.*; specify a PEM file with the CA certificates/],
    ],
  ];
  test.each(bad)('%s: a line that names the setting', (_what, environment, lines) => {
    let error: unknown;
    try {
      open(environment());
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(StartError);
    expect((error as StartError).lines).toEqual(lines.map((line) => expect.stringMatching(line)));
  });
});

describe('TLS of the debug port', () => {
  function openDebug(environment: Record<string, string>): TlsFiles | undefined {
    const settings = settingsOf(environment);
    return openDebugTlsFiles(settings, log);
  }
  const named = () => ({
    DEBUG_SERVER_TLS_CERT: files['GRPC_SERVER_TLS_CERT'] as string,
    DEBUG_SERVER_TLS_KEY: files['GRPC_SERVER_TLS_KEY'] as string,
  });

  test('without its files, clear text, even if the gRPC port uses TLS', () => {
    expect(openDebug({ ...TLS, ...files })).toBeUndefined();
  });

  test('certificate and key', () => {
    expect(openDebug(named())?.options).toEqual({
      material: { cert, key, clientCa: undefined },
      clientSan: undefined,
    });
  });

  test('an invalid file is reported with its variable and the remedy', () => {
    const { DEBUG_SERVER_TLS_CERT } = named();
    const swapped = () => openDebug({ DEBUG_SERVER_TLS_CERT, DEBUG_SERVER_TLS_KEY: DEBUG_SERVER_TLS_CERT });
    expect(swapped).toThrow(StartError);
    expect(swapped).toThrow(/^DEBUG_SERVER_TLS_KEY: .*; specify a PEM file with the private key/);
  });
});
