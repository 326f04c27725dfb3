import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { credentials } from '@grpc/grpc-js';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { RawClient } from '../support/grpc/grpc-client.js';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { CertificateAuthority, type Issued } from '../support/tls/certificates.js';
import { CommandHost } from '../support/weir/commands.js';
import { startWeir, WEIR_MAIN, type WeirServer } from '../support/weir/weir.js';
import { untilAllServe, type WorkerDetail, workersOf } from '../support/weir/workers.js';

const HEALTH = '/grpc.health.v1.Health/Check';
/** HealthCheckResponse{status: SERVING}. */
const SERVING = { code: 0, message: Buffer.of(8, 1) };

const authority = new CertificateAuthority('first');
const clients = new CertificateAuthority('clients');
const NAMES = 'DNS:localhost,IP:127.0.0.1';

let folder: TempDir;
let server: WeirServer | undefined;
beforeEach(() => {
  folder = new TempDir();
});

/**
 * Certificates in the layout of a Kubernetes volume: files are links into `..data`, which is a link to a dated folder.
 */
class SecretVolume {
  #version = 0;

  get env(): Record<string, string> {
    return {
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: folder.join('tls.crt'),
      GRPC_SERVER_TLS_KEY: folder.join('tls.key'),
    };
  }

  /** Atomically swaps the folder behind the links, and removes the old one. */
  swap({ cert, key }: Issued, ca = clients.cert): void {
    const before = this.#version++;
    const name = `..2026_${this.#version}`;
    mkdirSync(folder.join(name));
    for (const [file, text] of Object.entries({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca })) {
      writeFileSync(folder.join(name, file), text);
      if (before === 0) symlinkSync(`..data/${file}`, folder.join(file));
    }
    symlinkSync(name, folder.join('..data_tmp'));
    renameSync(folder.join('..data_tmp'), folder.join('..data'));
    if (before > 0) rmSync(folder.join(`..2026_${before}`), { recursive: true });
  }
}

/** Makes a health check over a new connection that trusts `ca`. */
async function ask(where: string, ca: string, identity?: Issued): Promise<unknown> {
  const [root, key, cert] = [ca, identity?.key, identity?.cert].map((text) =>
    text ? Buffer.from(text) : null,
  );
  const client = new RawClient(where, credentials.createSsl(root, key, cert));
  return await client.unary(HEALTH, Buffer.alloc(0), { timeoutMs: 5000 });
}

const logged = (pattern: RegExp) => (): boolean =>
  server?.log().some((line) => pattern.test(String(line['msg']))) === true;

describe('TLS of weir serve', () => {
  test('serves swapped certificates of a secret volume without a restart, but no invalid ones', async () => {
    const volume = new SecretVolume();
    volume.swap(authority.issue(NAMES));
    server = await startWeir({ env: volume.env });
    const address = `127.0.0.1:${server.grpcPort}`;
    expect(await ask(address, authority.cert)).toEqual(SERVING);

    const second = new CertificateAuthority('second');
    volume.swap(second.issue(NAMES));
    await waitFor('the new certificates', logged(/new certificates are in effect/));
    expect(await ask(address, second.cert)).toEqual(SERVING);
    expect(await ask(address, authority.cert)).toMatchObject({ code: 14 });

    volume.swap({ cert: second.issue(NAMES).cert, key: second.issue(NAMES).key });
    await waitFor(
      'the complaint',
      logged(/does not belong to the certificate; .*; the previous certificates stay in effect/),
    );
    expect(await ask(address, second.cert)).toEqual(SERVING);

    const third = new CertificateAuthority('third');
    volume.swap(third.issue(NAMES));
    await waitFor('the third', async () => {
      const reply = await ask(address, third.cert);
      return (reply as { code: number }).code === 0;
    });
    // The log must not contain the key.
    expect(server.process.lines().join('\n')).not.toContain('PRIVATE');
  });

  test('a worker that replaces another one while the certificates are invalid uses the previous ones', async () => {
    const volume = new SecretVolume();
    volume.swap(authority.issue(NAMES));
    const redis = await startRedis();
    const env = { ...volume.env, REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2' };
    server = await startWeir({ env });
    await untilAllServe(server);
    volume.swap({ cert: authority.issue(NAMES).cert, key: authority.issue(NAMES).key });
    await waitFor('the complaint', logged(/the previous certificates stay in effect/));
    const [first] = (await workersOf(server)) as [WorkerDetail];
    process.kill(first.pid, 'SIGKILL');
    await waitFor('another worker', async () => {
      const workers = await workersOf(server as WeirServer);
      const serving = workers.filter(({ pid, status }) => status === 'SERVING' && pid !== first.pid);
      return serving.length === 2;
    });
    // Connections are distributed over both workers.
    for (let i = 0; i < 4; i++)
      expect(await ask(`127.0.0.1:${server.grpcPort}`, authority.cert)).toEqual(SERVING);
  });

  test('swaps the issuers of client certificates, too, and checks the name', async () => {
    const volume = new SecretVolume();
    const pair = authority.issue(NAMES);
    volume.swap(pair);
    server = await startWeir({
      env: {
        ...volume.env,
        GRPC_CLIENT_TLS_CACERT: folder.join('ca.crt'),
        GRPC_CLIENT_TLS_SAN: 'spiffe://cluster.local/ns/a/sa/envoy',
      },
    });
    const address = `127.0.0.1:${server.grpcPort}`;
    const envoy = 'URI:spiffe://cluster.local/ns/a/sa/envoy';
    expect(await ask(address, authority.cert, clients.issue(envoy))).toEqual(SERVING);
    expect(
      await ask(address, authority.cert, clients.issue('URI:spiffe://cluster.local/ns/a/sa/other')),
    ).not.toEqual(SERVING);
    const successor = new CertificateAuthority('clients of tomorrow');
    volume.swap(pair, successor.cert);
    await waitFor('the new issuers', logged(/new certificates are in effect/));
    expect(await ask(address, authority.cert, successor.issue(envoy))).toEqual(SERVING);
    expect(await ask(address, authority.cert, clients.issue(envoy))).not.toEqual(SERVING);
  });

  test('listens on a Unix domain socket instead of the port', async () => {
    const path = folder.join('grpc.sock');
    server = await startWeir({ env: { GRPC_UDS: path } });
    const client = new RawClient(`unix:${path}`);
    expect(await client.unary(HEALTH, Buffer.alloc(0))).toEqual(SERVING);
    const onPort = new RawClient(`127.0.0.1:${server.grpcPort}`);
    expect(await onPort.unary(HEALTH, Buffer.alloc(0))).toMatchObject({ code: 14 });
    for (const open of [client, onPort]) open.close();
    expect(server.log()).toContainEqual(
      expect.objectContaining({ msg: 'weir serves', grpc: `unix:${path}` }),
    );
  });
});

describe('weir health and weir check', () => {
  const host = new CommandHost();
  const weir = (args: readonly string[], environment: Record<string, string> = {}) =>
    host.run({ args, folder: folder.path, environment });
  const entries = ['tenant=acme', 'resource_group=user-chats'];

  test('call a server over TLS: the local one by its settings, another one by flags', async () => {
    const volume = new SecretVolume();
    volume.swap(authority.issue(NAMES));
    server = await startWeir({ env: volume.env });
    const own = {
      ...volume.env,
      GRPC_PORT: String(server.grpcPort),
      DEBUG_PORT: String(server.debugPort),
    };
    expect(await weir(['health'], own)).toMatchObject({ code: 0, stdout: 'SERVING\n' });
    const address = ['--address', `127.0.0.1:${server.grpcPort}`];
    const ca = ['--ca', folder.write('authority.pem', authority.cert)];
    expect(await weir(['health', ...address, ...ca])).toMatchObject({ code: 0 });
    // Node.js must not warn that an IP address is not a valid server name (DEP0123).
    const words = ['check', '--domain', 'open-api', ...address, ...ca, ...entries];
    const checked = await runToEnd(process.execPath, [WEIR_MAIN, ...words]);
    expect(checked).toMatchObject({ code: 0, stderr: '' });
    // The certificate must be valid for that address.
    volume.swap(authority.issue('DNS:weir.test'));
    await waitFor('the other certificate', logged(/new certificates are in effect/));
    expect(await weir(['check', ...address, ...ca, ...entries])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`the certificate of ${address[1]} is for another name`),
    });
    expect(await weir(['check', ...entries], own)).toMatchObject({ code: 0, stderr: '' });
  });

  test('present a certificate to a server that requests one', async () => {
    const volume = new SecretVolume();
    volume.swap(authority.issue(NAMES));
    server = await startWeir({ env: { ...volume.env, GRPC_CLIENT_TLS_CACERT: folder.join('ca.crt') } });
    const { cert, key } = clients.issue('DNS:probe.test');
    const flags = ['--cert', folder.write('probe.crt', cert), '--key', folder.write('probe.key', key)];
    const own = { ...volume.env, GRPC_PORT: String(server.grpcPort) };
    expect(await weir(['health', ...flags], own)).toMatchObject({ code: 0 });
    const unnamed = {
      code: 1,
      stderr: expect.stringMatching(/requires a client certificate; specify one with --cert/),
    };
    expect(await weir(['health'], own)).toMatchObject(unnamed);
    expect(await weir(['check', ...entries], own)).toMatchObject(unnamed);
    await waitFor('the reason', logged(/refused: the client did not present a certificate/));
  });

  test('a probe without a certificate uses HTTP if the server requires one', async () => {
    const volume = new SecretVolume();
    volume.swap(authority.issue(NAMES));
    const env = { ...volume.env, GRPC_CLIENT_TLS_CACERT: folder.join('ca.crt') };
    server = await startWeir({ env: { ...env, SHUTDOWN_DRAIN_DELAY: '1h' } });
    const own = { ...env, GRPC_PORT: String(server.grpcPort), PORT: String(server.httpPort) };
    expect(await weir(['health'], own)).toMatchObject({ code: 0, stdout: 'SERVING\n' });
    server.process.signal('SIGTERM');
    await waitFor('the drain', logged(/draining/));
    expect(await weir(['health'], own)).toMatchObject({
      code: 1,
      stderr: `weir health: 127.0.0.1:${server.httpPort}: NOT_SERVING\n`,
    });
    server.process.signal('SIGTERM');
    await server.process.exited;
    expect(await weir(['health'], own)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('ECONNREFUSED'),
    });
  });

  test('call a server on a Unix domain socket', async () => {
    const path = folder.join('grpc.sock');
    server = await startWeir({ env: { GRPC_UDS: path } });
    expect(await weir(['health'], { GRPC_UDS: path })).toMatchObject({ code: 0 });
    expect(await weir(['check', ...entries], { GRPC_UDS: path })).toMatchObject({ code: 0 });
    expect(await weir(['check', '--tls', ...entries], { GRPC_UDS: path })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `the TLS handshake with unix:${path} failed; if it does not speak TLS, remove --tls`,
      ),
    });
    expect(await weir(['check', '--address', `unix:${path}`, ...entries])).toMatchObject({ code: 0 });
    const gone = await weir(['check', '--address', `unix:${path}x`, ...entries]);
    expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing listens on') });
  });
});
