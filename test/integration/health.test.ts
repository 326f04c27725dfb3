import { Client, type ClientReadableStream, credentials, type ServiceError } from '@grpc/grpc-js';
import type { MethodDefinition } from '@grpc/proto-loader';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { service } from 'grpc-health-check';
import { type RlsServer, startRlsServer } from '../support/grpc/rls-server.js';
import { waitFor } from '../support/process/wait-for.js';

type Method = MethodDefinition<object, { readonly status: string }>;
const check = service['Check'] as unknown as Method;
const watch = service['Watch'] as unknown as Method;

const NAMES = ['', 'envoy.service.ratelimit.v3.RateLimitService', 'ratelimit'];

describe('health', () => {
  let server: RlsServer;
  let client: Client;
  beforeEach(async () => {
    server = await startRlsServer(() => {
      throw new Error('not asked here');
    });
    client = new Client(server.address, credentials.createInsecure());
  });
  afterEach(async () => {
    client.close();
    await server.server.close();
  });

  const ask = (name: string): Promise<string | number> =>
    new Promise((resolve) => {
      client.makeUnaryRequest(
        check.path,
        check.requestSerialize,
        check.responseDeserialize,
        { service: name },
        (error: ServiceError | null, answer) => resolve(error === null ? (answer?.status ?? '') : error.code),
      );
    });
  const watching = (name: string): { call: ClientReadableStream<object>; seen: string[] } => {
    const seen: string[] = [];
    const call = client.makeServerStreamRequest(
      watch.path,
      watch.requestSerialize,
      watch.responseDeserialize,
      {
        service: name,
      },
    );
    call.on('data', ({ status }: { status: string }) => seen.push(status));
    call.on('error', (error: ServiceError) => seen.push(`error ${error.code}`));
    return { call, seen };
  };

  test('reports the same status for all names at all times', async () => {
    for (const serving of [false, true, true, false]) {
      server.health.setServing(serving);
      const expected = serving ? 'SERVING' : 'NOT_SERVING';
      expect(await Promise.all(NAMES.map(ask))).toEqual(NAMES.map(() => expected));
    }
  });

  test('reports NOT_FOUND for an unknown name', async () => {
    expect(await ask('other')).toBe(5);
  });

  test('sends every change to watchers once', async () => {
    const watchers = NAMES.map(watching);
    await waitFor('the first state', () => watchers.every(({ seen }) => seen.length === 1) || undefined);
    server.health.setServing(true);
    server.health.setServing(true);
    server.health.setServing(false);
    await waitFor('the changes', () => watchers.every(({ seen }) => seen.length === 3) || undefined);
    for (const { seen } of watchers) expect(seen).toEqual(['NOT_SERVING', 'SERVING', 'NOT_SERVING']);
  });

  test('reports SERVICE_UNKNOWN to watchers of an unknown name, and stays open', async () => {
    const { seen } = watching('other');
    const known = watching('ratelimit');
    server.health.setServing(true);
    await waitFor('the known name', () => known.seen.includes('SERVING') || undefined);
    expect(seen).toEqual(['SERVICE_UNKNOWN']);
  });

  test('forgets watchers that cancel or lose their connection', async () => {
    const [first, second] = [watching(''), watching('ratelimit')];
    await waitFor('two watchers', () => server.health.watchers === 2 || undefined);
    first?.call.cancel();
    await waitFor('one watcher', () => server.health.watchers === 1 || undefined);
    client.close();
    second?.call.cancel();
    await waitFor('no watcher', () => server.health.watchers === 0 || undefined);
    server.health.setServing(true);
  });
});
