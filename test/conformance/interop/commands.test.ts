/*
 * Runs command-line programs against a real weir, on both stacks: grpcurl, ghz and h2load. The test reads the other
 * numbers from weir's metrics.
 */
import { writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { createClientCodec } from '../../../src/codec/client-codec.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { prefixed } from '../../support/h2/http2-client.js';
import { httpRequest } from '../../support/process/http-client.js';
import { runToEnd } from '../../support/process/processes.js';
import { TempDir } from '../../support/process/temp-dir.js';
import { optionalToolPath } from '../../support/process/tools.js';
import { STACKS } from '../../support/weir/stacks.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { GOOD_REPORT, INTEROP_POLICY } from './interop-report.js';

const CALL = SHOULD_RATE_LIMIT_PATH.slice(1);
const CHECK = 'grpc.health.v1.Health/Check';
const WATCH = 'grpc.health.v1.Health/Watch';
/** Base of grpcurl's exit status, to which it adds the gRPC status. */
const GRPCURL_STATUS = 64;

const grpcurl = optionalToolPath('grpcurl');
const ghz = optionalToolPath('ghz');
const h2load = optionalToolPath('h2load');

const request = (key: string, value: string) =>
  JSON.stringify({ domain: 'interop', descriptors: [{ entries: [{ key, value }] }] });

describe.each(STACKS)('on %s', (transport) => {
  let weir: WeirServer;
  let address: string;
  beforeAll(async () => {
    weir = await startWeir({ policy: INTEROP_POLICY, env: { GRPC_TRANSPORT: transport } });
    address = `127.0.0.1:${weir.grpcPort}`;
  });
  const folder = new TempDir();

  /** Returns the number of weir's decisions so far, over all rules. */
  async function decisions(): Promise<{ ok: number; overLimit: number }> {
    const { body } = await httpRequest(weir.httpPort, '/metrics');
    const count = (code: string) =>
      [...body.matchAll(/^weir_decisions_total\{(.+)\} (\d+)$/gm)]
        .filter(([, labels]) => labels?.includes(`code="${code}"`))
        .reduce((sum, [, , value]) => sum + Number(value), 0);
    return { ok: count('OK'), overLimit: count('OVER_LIMIT') };
  }

  /** Returns the decisions that `body` causes. */
  async function decided(body: () => Promise<void>): Promise<{ ok: number; overLimit: number }> {
    const before = await decisions();
    await body();
    const after = await decisions();
    return { ok: after.ok - before.ok, overLimit: after.overLimit - before.overLimit };
  }

  (grpcurl === undefined ? describe.skip : describe)('grpcurl', () => {
    const run = (...args: string[]) => runToEnd(grpcurl as string, ['-plaintext', ...args]);
    const call = async (method: string, data: string) => {
      const { code, stdout, stderr } = await run('-d', data, address, method);
      return { code, answer: code === 0 ? JSON.parse(stdout) : undefined, stderr };
    };

    test('is allowed, denied and refused', async () => {
      const allowed = await call(CALL, request('tenant', 'grpcurl'));
      expect(allowed.answer).toMatchObject({ overallCode: 'OK', statuses: [{ limitRemaining: 99 }] });
      const denied = await call(CALL, request('closed', 'grpcurl'));
      expect(denied.answer).toMatchObject({ overallCode: 'OVER_LIMIT' });
      const refused = await call(CALL, '{}');
      expect(refused.code).toBe(GRPCURL_STATUS + GOOD_REPORT.error.status);
      expect(refused.stderr).toContain(GOOD_REPORT.error.message);
    });

    test('lists the services and requests a health check', async () => {
      const { stdout } = await run(address, 'list');
      expect(stdout.trim().split('\n')).toEqual(GOOD_REPORT.services);
      expect(await call(CHECK, '{}')).toMatchObject({ code: 0, answer: { status: 'SERVING' } });
      expect((await call(CHECK, '{"service":"other"}')).code).toBe(GRPCURL_STATUS + 5);
    });

    test('watches until its own deadline', async () => {
      const { code, stdout } = await run('-max-time', '1', address, WATCH);
      expect(JSON.parse(stdout)).toEqual({ status: 'SERVING' });
      expect(code).toBe(GRPCURL_STATUS + 4);
    });
  });

  (ghz === undefined ? describe.skip : describe)('ghz', () => {
    /**
     * Calls without proto files, so ghz uses reflection (v1alpha) first. Resolves with the number of calls by status.
     */
    async function calls(method: string, data: string, count: number): Promise<Record<string, number>> {
      const { code, stdout, stderr } = await runToEnd(ghz as string, [
        ...['--insecure', '--call', method, '-d', data, '-n', String(count), '-c', String(count)],
        ...['--connections', '4', '--format', 'json', address],
      ]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return (JSON.parse(stdout) as { statusCodeDistribution: Record<string, number> })
        .statusCodeDistribution;
    }

    test('gets 200 concurrent answers, of which the bucket allows 100', async () => {
      const made = await decided(async () => {
        expect(await calls(CALL, request('tenant', 'ghz'), 200)).toEqual({ OK: 200 });
      });
      expect(made).toEqual({ ok: 100, overLimit: 100 });
    });

    test('gets denials, errors and health checks', async () => {
      const made = await decided(async () => {
        expect(await calls(CALL, request('closed', 'ghz'), 20)).toEqual({ OK: 20 });
      });
      expect(made).toEqual({ ok: 0, overLimit: 20 });
      expect(await calls(CALL, '{}', 20)).toEqual({ InvalidArgument: 20 });
      expect(await calls(CHECK, '{}', 20)).toEqual({ OK: 20 });
    });
  });

  (h2load === undefined ? describe.skip : describe)('h2load', () => {
    const codec = createClientCodec();

    /** Posts a message. Resolves with the number of answers with status 2xx and their total size in bytes. */
    async function load(path: string, message: Uint8Array, count: number) {
      const body = folder.join('body');
      writeFileSync(body, prefixed(message));
      const { stdout } = await runToEnd(h2load as string, [
        ...['-n', String(count), '-c', '4', '-m', '16', '-d', body],
        ...['-H', 'content-type: application/grpc', '-H', 'te: trailers', `http://${address}${path}`],
      ]);
      const number = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1]);
      return {
        ok: number(/status codes: (\d+) 2xx/),
        failed: number(/(\d+) failed/),
        data: number(/\((\d+)\) data/),
      };
    }
    const message = (key: string) =>
      codec.encodeRequest({
        domain: 'interop',
        descriptors: [{ entries: [{ key, value: 'h2load' }] }] as never,
        hitsAddend: 0,
      });

    test('gets 200 answers, of which the bucket allows 100', async () => {
      const made = await decided(async () => {
        const path = SHOULD_RATE_LIMIT_PATH;
        expect(await load(path, message('tenant'), 200)).toMatchObject({ ok: 200, failed: 0 });
      });
      expect(made).toEqual({ ok: 100, overLimit: 100 });
    });

    test('gets denials, errors and health checks', async () => {
      const made = await decided(async () => {
        const path = SHOULD_RATE_LIMIT_PATH;
        expect(await load(path, message('closed'), 20)).toMatchObject({ ok: 20, failed: 0 });
        // An error has status 200 and no body (trailers only).
        expect(await load(path, new Uint8Array(0), 20)).toMatchObject({ ok: 20, failed: 0, data: 0 });
      });
      expect(made).toEqual({ ok: 0, overLimit: 20 });
      const health = await load(`/${CHECK}`, new Uint8Array(0), 20);
      expect(health).toMatchObject({ ok: 20, failed: 0 });
      // Prefix and `status: SERVING`.
      expect(health.data).toBe(20 * (5 + 2));
    });
  });
});
