/* Tests TLS with and without client certificates, and certificates that change while serving. */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { credentials } from '@grpc/grpc-js';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { GrpcServer, TlsMaterial } from '../../../src/grpc/grpc-server.js';
import type { UnaryReply } from '../../support/grpc/grpc-client.js';
import { closeLater } from '../../support/process/close-later.js';
import { waitFor } from '../../support/process/wait-for.js';
import { CertificateAuthority, type Issued } from '../../support/tls/certificates.js';
import { ECHO, Fixture, HOLD } from './fixture.js';

/** Preface and empty SETTINGS of a client (RFC 9113 section 3.4). */
const GREETING = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0),
]);
const HELLO = Buffer.from('hello');
const ECHOED = { code: 0, message: HELLO };

/** Resolves when the socket is closed, with or without an error. */
function closing(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
  });
}

const authority = new CertificateAuthority('servers');
const clients = new CertificateAuthority('clients');
const serverName = authority.issue('DNS:localhost,IP:127.0.0.1');
const envoy = clients.issue('DNS:envoy.test,URI:spiffe://cluster.local/ns/a/sa/envoy');

let fixture: Fixture;
beforeEach(() => {
  fixture = new Fixture();
});

const serving = (
  material: Partial<TlsMaterial> = {},
  clientSan?: string,
): Promise<{ server: GrpcServer; port: number }> =>
  fixture.listening({ tls: { material: { ...serverName, clientCa: undefined, ...material }, clientSan } });

/** Makes one call with a new client that trusts `ca` and presents `identity`. */
const call = (port: number, identity?: Issued, ca = authority.cert): Promise<UnaryReply> => {
  const pem = [ca, identity?.key, identity?.cert].map((text) => text && Buffer.from(text));
  const channel = credentials.createSsl(...(pem as [Buffer, Buffer, Buffer]));
  return fixture.client(port, channel).unary(ECHO, HELLO);
};

const secureSocket = (port: number, options: ConnectionOptions = {}): TLSSocket => {
  const socket = connect({
    port,
    host: '127.0.0.1',
    ca: authority.cert,
    ALPNProtocols: ['h2'],
    ...options,
  });
  socket.on('error', () => {});
  // Only a socket that is read emits its end.
  socket.resume();
  closeLater(socket, () => socket.destroy());
  return socket;
};

const expectRefused = async (port: number, why: RegExp, identity?: Issued): Promise<void> => {
  // gRPC maps INADEQUATE_SECURITY to PERMISSION_DENIED. A call that was not sent yet is UNAVAILABLE.
  expect([7, 14]).toContain((await call(port, identity)).code);
  await waitFor(`${why}`, () => fixture.errors.some((error) => why.test(String(error))));
};

describe('TLS', () => {
  test('serves clients that trust the issuer, over HTTP/2', async () => {
    const { port } = await serving();
    expect(await call(port)).toEqual(ECHOED);
    const socket = secureSocket(port);
    await once(socket, 'secureConnect');
    expect(socket.alpnProtocol).toBe('h2');
    expect(fixture.errors).toEqual([]);
  });

  test('TLS 1.2 with forward secrecy is enough, 1.1 and plain RSA key exchange are not', async () => {
    const { port } = await serving();
    const socket = secureSocket(port, { maxVersion: 'TLSv1.2' });
    await once(socket, 'secureConnect');
    expect(socket.getProtocol()).toBe('TLSv1.2');
    for (const options of [
      { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' },
      { maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA256:AES256-SHA' },
    ] as const) {
      await closing(secureSocket(port, options));
    }
    expect(fixture.errors).toHaveLength(2);
  });

  test('a client that renegotiates TLS 1.2 is cut (RFC 9113 section 9.2.1)', async () => {
    const { port } = await serving();
    const socket = secureSocket(port, { maxVersion: 'TLSv1.2' });
    await once(socket, 'secureConnect');
    socket.write(GREETING);
    await once(socket, 'data');
    const closed = closing(socket);
    socket.renegotiate({}, () => {});
    await closed;
    expect(await call(port)).toEqual(ECHOED);
  });

  test('an unknown issuer is the client’s to refuse; the server serves on', async () => {
    const { port } = await serving();
    expect((await call(port, undefined, clients.cert)).code).toBe(14);
    expect(await call(port)).toEqual(ECHOED);
  });

  test.each([
    ['HTTP/1.1', ['http/1.1']],
    ['nothing', undefined],
  ])('a client that negotiates %s is refused with a sentence', async (_what, protocols) => {
    const { port } = await serving();
    const socket = secureSocket(port, { ALPNProtocols: protocols });
    await closing(socket);
    expect(fixture.errors).toHaveLength(1);
    expect(String(fixture.errors[0])).toMatch(/h2|no application protocol|no suitable application protocol/);
    expect(await call(port)).toEqual(ECHOED);
  });

  test('clear text on a TLS port is told once, and the server serves on', async () => {
    const { port } = await serving();
    expect((await fixture.client(port).unary(ECHO, HELLO)).code).toBe(14);
    await waitFor('the sentence', () => /TLS handshake/.test(String(fixture.errors[0])) || undefined);
    expect(await call(port)).toEqual(ECHOED);
  });

  test('certificates that cannot be used are refused before listening', () => {
    const other = authority.issue('DNS:localhost').key;
    const start = (): unknown =>
      fixture.server({
        tls: { material: { ...serverName, key: other, clientCa: undefined }, clientSan: undefined },
      });
    expect(start).toThrow(/does not belong/);
  });

  test('a drain lets the running call finish', async () => {
    const { server, port } = await serving();
    const channel = credentials.createSsl(Buffer.from(authority.cert));
    const running = fixture.client(port, channel).unary(HOLD, Buffer.alloc(0));
    const { answer } = await fixture.untilHeld();
    const drained = server.drain(600_000);
    answer(HELLO);
    expect(await running).toEqual(ECHOED);
    await drained;
  });

  test('a drain and a close end connections that are still shaking hands', async () => {
    for (const end of ['drain', 'close'] as const) {
      const { server, port } = await serving();
      const served = secureSocket(port);
      await once(served, 'secureConnect');
      const socket = connectTcp(port, '127.0.0.1');
      await once(socket, 'connect');
      // Connections are accepted in order, so the server knows the first once a later one is served.
      expect(await call(port)).toEqual(ECHOED);
      const closed = closing(socket);
      await (end === 'drain' ? server.drain(600_000) : server.close());
      await closed;
    }
  });
});

describe('client certificates', () => {
  test('serve whom the issuer vouches for', async () => {
    const { port } = await serving({ clientCa: clients.cert });
    expect(await call(port, envoy)).toEqual(ECHOED);
    expect(fixture.errors).toEqual([]);
  });

  test('none is refused', async () => {
    const { port } = await serving({ clientCa: clients.cert });
    await expectRefused(port, /did not present a certificate/);
  });

  test('one of another issuer is refused', async () => {
    const { port } = await serving({ clientCa: clients.cert });
    await expectRefused(port, /was rejected/, authority.issue('DNS:envoy.test'));
  });

  test('one that only claims the issuer is refused', async () => {
    const { port } = await serving({ clientCa: clients.cert });
    await expectRefused(port, /was rejected/, new CertificateAuthority('clients').issue('DNS:envoy.test'));
  });

  test.each(['envoy.test', 'spiffe://cluster.local/ns/a/sa/envoy'])(
    'one that holds the name %s is served',
    async (name) => {
      const { port } = await serving({ clientCa: clients.cert }, name);
      expect(await call(port, envoy)).toEqual(ECHOED);
    },
  );

  test('one without the name is refused, whatever its common name', async () => {
    const { port } = await serving({ clientCa: clients.cert }, 'common.test');
    await expectRefused(port, /does not contain the name common\.test/, envoy);
  });

  test.each([
    ['served', 'envoy.test', 0],
    ['refused', 'other.test', 1],
  ])('a resumed session is %s as the first one was', async (_what, name, complaints) => {
    const { port } = await serving({ clientCa: clients.cert }, name);
    const options = { ...envoy, maxVersion: 'TLSv1.2' } as const;
    const greet = async (socket: TLSSocket): Promise<TLSSocket> => {
      const answer = once(socket, 'data');
      socket.write(GREETING);
      await answer;
      return socket;
    };
    const first = await greet(secureSocket(port, options));
    const session = first.getSession();
    const second = await greet(secureSocket(port, { ...options, ...(session && { session }) }));
    expect(second.isSessionReused()).toBe(true);
    expect(fixture.errors).toHaveLength(2 * complaints);
  });

  test('a client that is refused gets no answer to what it sends at once', async () => {
    const { port } = await serving({ clientCa: clients.cert });
    const socket = secureSocket(port);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.write(GREETING);
    await closing(socket);
    // Empty SETTINGS, then GOAWAY with INADEQUATE_SECURITY and the reason.
    const bytes = Buffer.concat(chunks);
    expect(bytes.subarray(0, 9)).toEqual(Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0));
    expect(bytes[12]).toBe(7);
    expect(bytes.readUInt32BE(22)).toBe(0xc);
    expect(bytes.subarray(26).toString()).toBe('the client did not present a certificate');
  });
});

describe('certificates that change', () => {
  test('new connections get the new one, open ones go on', async () => {
    const { server, port } = await serving();
    const open = fixture.client(port, credentials.createSsl(Buffer.from(authority.cert)));
    expect(await open.unary(ECHO, HELLO)).toEqual(ECHOED);
    const successor = new CertificateAuthority('successor');
    server.setTls({ ...successor.issue('DNS:localhost,IP:127.0.0.1'), clientCa: undefined });
    expect(await open.unary(ECHO, HELLO)).toEqual(ECHOED);
    expect(await call(port, undefined, successor.cert)).toEqual(ECHOED);
    expect((await call(port)).code).toBe(14);
  });

  test('issuers of client certificates change with them', async () => {
    const { server, port } = await serving({ clientCa: clients.cert });
    expect(await call(port, envoy)).toEqual(ECHOED);
    const successor = new CertificateAuthority('clients of tomorrow');
    server.setTls({ ...serverName, clientCa: successor.cert });
    expect(await call(port, successor.issue('DNS:envoy.test'))).toEqual(ECHOED);
    await expectRefused(port, /was rejected/, envoy);
  });

  test('what cannot be used is refused with an error, and the old ones stay', async () => {
    const { server, port } = await serving();
    const other = authority.issue('DNS:localhost');
    const bad: TlsMaterial[] = [
      { cert: serverName.cert, key: other.key, clientCa: undefined },
      { cert: 'nothing', key: serverName.key, clientCa: undefined },
      { cert: serverName.cert, key: '', clientCa: undefined },
      { ...serverName, clientCa: clients.cert },
    ];
    for (const material of bad) expect(() => server.setTls(material)).toThrow();
    expect(await call(port)).toEqual(ECHOED);
  });

  test('a server of clear text has none', async () => {
    const { server } = await fixture.listening();
    expect(() => server.setTls({ ...serverName, clientCa: undefined })).toThrow(/does not use TLS/);
  });
});
