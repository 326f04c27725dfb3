import { connect, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { TlsMaterial } from '../../../src/h2/tls-material.js';
import { type HttpListener, listenHttp, MAX_CONNECTIONS, text } from '../../../src/http/http.js';
import { httpRequest } from '../../support/process/http-client.js';
import { waitFor } from '../../support/process/wait-for.js';
import { CertificateAuthority } from '../../support/tls/certificates.js';

const [first, second] = [new CertificateAuthority('first'), new CertificateAuthority('second')];
const material = (authority: CertificateAuthority): TlsMaterial => ({
  ...authority.issue('IP:127.0.0.1'),
  clientCa: undefined,
});

let listener: HttpListener;
let setTls: (material: TlsMaterial) => void;
const sockets: Socket[] = [];
beforeEach(async () => {
  listener = await listenHttp('127.0.0.1', 0, {
    endpoints: [{ path: '/', help: 'long', answer: () => text(200, 'x'.repeat(1_000_000)) }],
    tls: {
      options: { material: material(first), clientSan: undefined },
      follow: (set) => {
        setTls = set;
      },
    },
    onError: (error) => {
      throw error;
    },
  });
});
afterEach(async () => {
  await listener.close();
  for (const socket of sockets.splice(0)) socket.destroy();
});

const ask = ({ cert: ca }: CertificateAuthority) => httpRequest(listener.port, '/', { ca });

/** Opens a connection without starting a handshake. `closed` returns whether the server has closed it. */
function silent(): Promise<{ closed(): boolean }> {
  return new Promise((resolve) => {
    const socket = connect(listener.port, '127.0.0.1', () => resolve({ closed: () => socket.closed }));
    socket.on('error', () => {}).resume();
    sockets.push(socket);
  });
}

test('serves long answers, and renewed certificates to new connections', async () => {
  expect((await ask(first)).body).toHaveLength(1_000_000);
  setTls(material(second));
  await expect(ask(first)).rejects.toThrow(/certificate/);
  expect((await ask(second)).status).toBe(200);
});

test('clients without a handshake do not lock out others, and are closed at the end', async () => {
  const oldest = await silent();
  const others = await Promise.all(Array.from({ length: MAX_CONNECTIONS - 1 }, silent));
  expect((await ask(first)).status).toBe(200);
  await waitFor('the oldest to be closed', () => oldest.closed() || undefined);
  expect(others.filter((other) => other.closed()).length).toBeLessThan(2);
  await listener.close();
  await waitFor('all to be closed', () => others.every((other) => other.closed()) || undefined);
});

test('a connection with a finished handshake does not count, and is not closed for new handshakes', async () => {
  const secured = tlsConnect({ host: '127.0.0.1', port: listener.port, ca: first.cert });
  sockets.push(secured);
  await new Promise((resolve) => secured.once('secureConnect', resolve));
  await Promise.all(Array.from({ length: MAX_CONNECTIONS + 1 }, silent));
  expect(secured.closed).toBe(false);
  const answer = new Promise((resolve) => secured.once('data', resolve));
  secured.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  expect(String(await answer)).toMatch(/^HTTP\/1\.1 200 /);
});

test.each(['TLSv1', 'TLSv1.1'] as const)('%s is refused', async (version) => {
  const secured = tlsConnect({
    host: '127.0.0.1',
    port: listener.port,
    ca: first.cert,
    minVersion: version,
    maxVersion: version,
    ciphers: 'DEFAULT@SECLEVEL=0',
  });
  sockets.push(secured);
  await expect(new Promise((resolve, reject) => secured.once('secureConnect', resolve).once('error', reject)))
    .rejects //
    .toThrow(/protocol|version|alert|ECONNRESET/);
});
