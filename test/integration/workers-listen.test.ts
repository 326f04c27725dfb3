/* Tests the sockets of several workers: certificates, and a Unix domain socket of another process. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { credentials } from '@grpc/grpc-js';
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { RawClient } from '../support/grpc/grpc-client.js';
import { runToEnd } from '../support/process/processes.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { CertificateAuthority } from '../support/tls/certificates.js';
import { startWeir, WEIR_MAIN, type WeirServer } from '../support/weir/weir.js';
import { untilAllServe, workersOf } from '../support/weir/workers.js';

const HEALTH = '/grpc.health.v1.Health/Check';
/** HealthCheckResponse{status: SERVING}. */
const SERVING = { code: 0, message: Buffer.of(8, 1) };

let redis: RedisServer;
let folder: TempDir;
let server: WeirServer | undefined;
beforeAll(async () => {
  redis = await startRedis();
});
beforeEach(() => {
  folder = new TempDir();
});

async function start(env: NodeJS.ProcessEnv): Promise<WeirServer> {
  server = await startWeir({ env: { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2', ...env } });
  const started = server;
  await waitFor('both workers to listen', () => started.log().some(({ msg }) => msg === 'weir serves'));
  await untilAllServe(server);
  return server;
}

/** Makes a health check over a new connection, which the next worker in turn accepts. */
async function ask(where: string, ca?: string): Promise<unknown> {
  const client = new RawClient(where, ca === undefined ? undefined : credentials.createSsl(Buffer.from(ca)));
  return await client.unary(HEALTH, Buffer.alloc(0), { timeoutMs: 5000 });
}

describe('several workers', () => {
  test('serve the same certificates, including changed certificates', async () => {
    const first = new CertificateAuthority('first');
    const second = new CertificateAuthority('second');
    const cert = folder.join('tls.crt');
    const key = folder.join('tls.key');
    const write = (authority: CertificateAuthority): void => {
      const issued = authority.issue('DNS:localhost,IP:127.0.0.1');
      writeFileSync(cert, issued.cert);
      writeFileSync(key, issued.key);
    };
    write(first);
    const { grpcPort } = await start({
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: cert,
      GRPC_SERVER_TLS_KEY: key,
    });
    const address = `127.0.0.1:${grpcPort}`;
    expect([await ask(address, first.cert), await ask(address, first.cert)]).toEqual([SERVING, SERVING]);
    write(second);
    await waitFor('the new certificate in both workers', async () => {
      const answers = [await ask(address, second.cert), await ask(address, second.cert)];
      return answers.every((answer) => (answer as { code: number }).code === 0) || undefined;
    });
    const logged = () =>
      server?.log().filter(({ msg }) => /certificates are in effect/.test(String(msg))) ?? [];
    await waitFor('the line', () => logged().length > 0);
    // Only the primary process logs it.
    expect(logged()).toHaveLength(1);
    expect(logged()[0]).not.toHaveProperty('worker');
  });

  test('continue while one of them cannot start again, and start it when its files are valid', async () => {
    const authority = new CertificateAuthority();
    const { cert, key } = authority.issue('DNS:localhost,IP:127.0.0.1');
    const certPath = folder.write('tls.crt', cert);
    const { grpcPort } = await start({
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: certPath,
      GRPC_SERVER_TLS_KEY: folder.write('tls.key', key),
    });
    const started = server as WeirServer;
    folder.write('tls.crt', 'no certificate');
    const [victim] = await workersOf(started);
    process.kill(victim?.pid as number, 'SIGKILL');
    await waitFor('the reason', () =>
      started.log().some(({ msg }) => /^GRPC_SERVER_TLS_CERT: .*specify a PEM file/.test(String(msg))),
    );
    expect(await ask(`127.0.0.1:${grpcPort}`, authority.cert)).toEqual(SERVING);
    folder.write('tls.crt', cert);
    await waitFor('both workers to serve', async () => {
      const workers = await workersOf(started);
      return workers.length === 2 && workers.every(({ status }) => status === 'SERVING');
    });
  });

  test('do not take over a Unix domain socket that another process serves', async () => {
    const path = folder.join('weir.sock');
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(path, resolve));
    const { code, stderr } = await runToEnd(process.execPath, [WEIR_MAIN, 'serve'], {
      bareEnvironment: true,
      env: {
        REDIS_URL: `127.0.0.1:${redis.port}`,
        WORKERS: '2',
        GRPC_UDS: path,
        PORT: '0',
        DEBUG_PORT: '0',
      },
    });
    await new Promise((resolve) => other.close(resolve));
    expect(code).toBe(1);
    expect(stderr).toContain(`cannot listen on unix:${path} for gRPC (GRPC_UDS)`);
  });
});
