/* Tests the client of aggregated discovery against a server that misbehaves. */
import { credentials } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { AdsClient, REPEATED_REJECTION_MS } from '../../src/config/xds/ads-client.js';
import { createDiscoveryCodec, RATE_LIMIT_CONFIG_TYPE } from '../../src/config/xds/discovery.js';
import { BackOff } from '../../src/runtime/timers.js';
import { FakeTimers } from '../support/clock/fake-timers.js';
import { waitFor } from '../support/process/wait-for.js';
import { type AdsPeer, AdsServer } from '../support/xds/ads-server.js';

const PAUSE_MS = 1234;
const codec = createDiscoveryCodec();

let server: AdsServer;
let client: AdsClient;
let timers: FakeTimers;
/** Versions in the order in which they were loaded, and the other events that the client reported. */
let told: string[];
/** Decides whether the next update is accepted or rejected. */
let verdict: (version: string) => Promise<string | undefined>;

beforeEach(async () => {
  server = await new AdsServer().start();
  timers = new FakeTimers();
  told = [];
  verdict = async () => undefined;
  client = new AdsClient({
    address: {
      target: `127.0.0.1:${server.port}`,
      credentials: async () => credentials.createInsecure(),
      serverName: undefined,
      headers: new Map(),
      connectTimeoutMs: 0,
      maxMessageBytes: 100_000,
      keepaliveMs: 60_000,
      keepaliveTimeoutMs: 1000,
    },
    codec,
    node: { id: 'n', metadata: new Map() },
    backOff: new BackOff({ initialMs: PAUSE_MS, maxMs: PAUSE_MS }),
    timers,
    update: ({ versionInfo: version }) => {
      told.push(`update ${version}`);
      return verdict(version);
    },
    connected: () => told.push('connected'),
    lost: (reason) => told.push(`lost: ${reason}`),
    failed: (error) => told.push(`failed: ${error}`),
    ignored: (typeUrl) => told.push(`ignored ${typeUrl}`),
  });
  client.connect();
});
afterEach(() => {
  client.stop();
});

function response(version: string, more: object = {}): object {
  return { versionInfo: version, nonce: `nonce-${version}`, typeUrl: RATE_LIMIT_CONFIG_TYPE, ...more };
}

/** Returns the `index`-th stream, from 0, once its first request has arrived. */
function peer(index = 0): Promise<AdsPeer> {
  return waitFor('the first request', () =>
    (server.peers[index]?.requests.length ?? 0) > 0 ? server.peers[index] : undefined,
  );
}

function untilRequests(one: AdsPeer, count: number): Promise<unknown> {
  return waitFor(`${count} requests`, () => one.requests.length >= count);
}

test('ignores resources that it did not request', async () => {
  const one = await peer();
  one.send(response('other', { typeUrl: 'type.googleapis.com/envoy.config.cluster.v3.Cluster' }));
  one.send(response('v1'));
  await untilRequests(one, 2);
  expect(told).toEqual([
    'connected',
    'ignored type.googleapis.com/envoy.config.cluster.v3.Cluster',
    'update v1',
  ]);
  expect(one.requests[1]).toMatchObject({ versionInfo: 'v1', responseNonce: 'nonce-v1', errorDetail: null });
});

test('loads only the last of the updates that arrive while it loads another', async () => {
  let release = (): void => {};
  verdict = (version) =>
    version === 'v1'
      ? new Promise((resolve) => {
          release = () => resolve(undefined);
        })
      : Promise.resolve(undefined);
  const one = await peer();
  one.send(response('v1'));
  await waitFor('v1', () => told.includes('update v1'));
  for (const version of ['v2', 'v3']) one.send(response(version));
  // Updates are loaded in order: once the last one is loaded, all others have arrived.
  one.send(response('marker', { typeUrl: 'marker' }));
  await waitFor('the marker', () => told.includes('ignored marker'));
  release();
  await untilRequests(one, 3);
  expect(told).toEqual(['connected', 'update v1', 'ignored marker', 'update v3']);
  expect(one.requests.map(({ responseNonce }) => responseNonce)).toEqual(['', 'nonce-v1', 'nonce-v3']);
});

test('delays the repeated rejection of the same invalid update', async () => {
  verdict = async () => 'bad: no';
  const one = await peer();
  const resources = ['a', 'b'].map((text) => ({ type_url: 'x', value: Buffer.from(text) }));
  one.send(response('v1', { resources }));
  await untilRequests(one, 2);
  expect(one.requests[1]).toMatchObject({
    versionInfo: '',
    responseNonce: 'nonce-v1',
    errorDetail: { code: 3, message: 'bad: no' },
  });
  one.send(response('v1', { resources: resources.toReversed(), nonce: 'again' }));
  await waitFor('the pause', () => timers.delays.includes(REPEATED_REJECTION_MS));
  expect(told).toEqual(['connected', 'update v1']);
  expect(one.requests).toHaveLength(2);
  timers.run(REPEATED_REJECTION_MS);
  await untilRequests(one, 3);
  expect(one.requests[2]).toMatchObject({ responseNonce: 'again', errorDetail: { message: 'bad: no' } });
  // A different update is loaded immediately.
  verdict = async () => undefined;
  one.send(response('v1', { nonce: 'mended' }));
  await untilRequests(one, 4);
  expect(one.requests[3]).toMatchObject({ versionInfo: 'v1', responseNonce: 'mended', errorDetail: null });
});

test('sends at most 4 KB of the reasons for a rejection', async () => {
  verdict = async () => `x${'\u00e9'.repeat(10_000)}`;
  const one = await peer();
  one.send(response('v1'));
  await untilRequests(one, 2);
  expect(one.requests[1]?.errorDetail?.message).toBe(`x${'\u00e9'.repeat(2047)}`);
});

test('requests an update again, without accepting or rejecting it, if it could not be tried', async () => {
  verdict = async () => {
    throw new Error('out of something');
  };
  const one = await peer();
  one.send(response('v1'));
  await waitFor('the pause', () => timers.delays.includes(PAUSE_MS));
  expect(told.slice(-2)).toEqual(['failed: Error: out of something', 'lost: the update could not be loaded']);
  expect(one.requests).toHaveLength(1);
  verdict = async () => undefined;
  timers.run(PAUSE_MS);
  const two = await peer(1);
  two.send(response('v1'));
  await untilRequests(two, 2);
  expect(two.requests.map(({ versionInfo }) => versionInfo)).toEqual(['', 'v1']);
});

test.each([
  ['ends', (one: AdsPeer) => one.end(), /^lost: the server closed the stream$/],
  [
    'sends what is no message',
    (one: AdsPeer) => one.sendBytes(Buffer.from([0x0a, 0x7f])),
    /^lost: INTERNAL: /,
  ],
  [
    'sends too much',
    (one: AdsPeer) => one.send(response('x'.repeat(100_001))),
    /^lost: RESOURCE_EXHAUSTED: /,
  ],
])('reopens a stream that %s after a pause, with the version in effect', async (_, spoil, reason) => {
  const one = await peer();
  one.send(response('v1'));
  await untilRequests(one, 2);
  spoil(one);
  await waitFor('the loss', () => timers.delays.includes(PAUSE_MS));
  expect(told.at(-1)).toMatch(reason);
  expect(server.peers).toHaveLength(1);
  timers.run(PAUSE_MS);
  const two = await peer(1);
  expect(two.requests[0]).toMatchObject({ versionInfo: 'v1', responseNonce: '', errorDetail: null });
});

test('applies an update whose stream was lost meanwhile, but does not acknowledge it on the next stream', async () => {
  let release = (): void => {};
  verdict = () =>
    new Promise((resolve) => {
      release = () => resolve(undefined);
    });
  const one = await peer();
  one.send(response('v1'));
  await waitFor('v1', () => told.includes('update v1'));
  one.end();
  await waitFor('the loss', () => timers.delays.includes(PAUSE_MS));
  timers.run(PAUSE_MS);
  const two = await peer(1);
  release();
  verdict = async () => undefined;
  two.send(response('v2'));
  await untilRequests(two, 2);
  expect(two.requests.map(({ versionInfo, responseNonce }) => [versionInfo, responseNonce])).toEqual([
    ['', ''],
    ['v2', 'nonce-v2'],
  ]);
});

test('neither answers nor connects once it is stopped', async () => {
  const one = await peer();
  one.end();
  await waitFor('the loss', () => timers.delays.includes(PAUSE_MS));
  client.stop();
  expect(timers.delays).toEqual([]);
  client.connect();
  expect(server.peers).toHaveLength(1);
});
