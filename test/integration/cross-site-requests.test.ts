/* Sends calls of `/json` and of views with the headers of cross-site requests to a real server. */
import type { OutgoingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { freePorts } from '../support/process/free-port.js';
import { httpRequest } from '../support/process/http-client.js';
import { startWeir, type WeirServer } from '../support/weir/weir.js';

const POLICY = `domain: shop
descriptors:
  - { key: customer, rate_limit: { unit: year, requests_per_unit: 1000 } }
`;
const BODY = JSON.stringify({
  domain: 'shop',
  descriptors: [{ entries: [{ key: 'customer', value: 'ann' }] }],
});

let server: WeirServer;
let prometheusPort: number;

async function start(host: string): Promise<void> {
  [prometheusPort = 0] = await freePorts(1);
  server = await startWeir({
    policy: POLICY,
    env: {
      HOST: host,
      DEBUG_HOST: host,
      USE_PROMETHEUS: 'true',
      PROMETHEUS_ADDR: `${host}:${prometheusPort}`,
    },
  });
}

const json = async (headers: OutgoingHttpHeaders) =>
  (await httpRequest(server.httpPort, '/json', { method: 'POST', body: BODY, headers })).status;

/** Returns the remaining hits of the bucket. */
async function left(): Promise<number> {
  const { body } = await httpRequest(server.httpPort, '/json', {
    method: 'POST',
    body: BODY.replace('"entries"', '"hitsAddend":"0","entries"'),
  });
  return JSON.parse(body).statuses[0].limitRemaining;
}

/** Sends a request verbatim, and returns its status. */
function raw(port: number, request: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    socket.once('error', reject);
    socket.once('data', (bytes) => {
      resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(bytes.toString())?.[1]));
      socket.destroy();
    });
  });
}

describe('on loopback', () => {
  beforeAll(() => start('127.0.0.1'));

  test.each<[string, OutgoingHttpHeaders]>([
    ['a program', {}],
    ['a program with another Host header', { host: 'weir' }],
    ['a program with another content type', { 'content-type': 'text/plain' }],
    ['an address that the user typed', { 'sec-fetch-site': 'none' }],
    ['a page of the same origin', { host: 'localhost:8080', origin: 'http://localhost:8080' }],
    ['one behind TLS', { host: 'localhost', origin: 'https://localhost', 'sec-fetch-site': 'same-origin' }],
  ])('%s can call /json', async (_, headers) => {
    expect(await json(headers)).toBe(200);
  });

  test.each<[number, string, OutgoingHttpHeaders]>([
    [403, 'another origin', { origin: 'http://site.example' }],
    [403, 'another port', { host: 'localhost:8080', origin: 'http://localhost:8000' }],
    [403, 'an opaque origin', { origin: 'null' }],
    [403, 'an empty origin', { origin: '' }],
    [403, 'another site', { 'sec-fetch-site': 'cross-site' }],
    [403, 'another origin of the same site', { 'sec-fetch-site': 'same-site' }],
    [421, 'a name that was rebound', { host: 'site.example', origin: 'http://site.example' }],
    [
      421,
      'a site name, with the other headers of a browser',
      { host: 'site.example', 'sec-fetch-site': 'same-origin' },
    ],
    [421, 'a name that begins as an address', { host: '127.0.0.1.site.example', 'sec-fetch-site': 'none' }],
  ])('answers %d to a page of %s, and takes nothing', async (status, _, headers) => {
    const before = await left();
    expect(await json(headers)).toBe(status);
    expect(await left()).toBe(before);
    const { body } = await httpRequest(server.httpPort, '/metrics');
    expect(body).toMatch(/^weir_refused_total\{code="PERMISSION_DENIED"\} [1-9]/m);
  });

  test('gives the reason in the answer', async () => {
    const headers = { origin: 'http://site.example' };
    const { body, headers: sent } = await httpRequest(server.httpPort, '/json', {
      method: 'POST',
      body: BODY,
      headers,
    });
    const reason = 'pages from other origins may not call this port (Origin "http://site.example")';
    expect(body).toBe(`Forbidden\n${reason}\n`);
    expect(sent).toContainEqual(['x-weir-reason', reason]);
    expect(sent.filter(([name]) => name.startsWith('access-control'))).toEqual([]);
  });

  const views = (): (readonly [number, string])[] => [
    [server.httpPort, '/metrics'],
    [server.httpPort, '/healthcheck?detail'],
    [server.debugPort, '/rlconfig'],
    [server.debugPort, '/rlconfig?format=json'],
    [server.debugPort, '/stats'],
    [prometheusPort, '/metrics'],
  ];

  test.each(['localhost', 'LOCALHOST:1', '127.0.0.1', '127.9.9.9:8080', '[::1]', '[::1]:8080', ''])(
    'shows views under the host %j',
    async (host) => {
      for (const [port, path] of views()) {
        expect([path, (await httpRequest(port, path, { headers: { host } })).status]).toEqual([path, 200]);
      }
    },
  );

  test.each([
    'site.example',
    '127.0.0.1.site.example',
    'localhost.site.example:8080',
    '10.0.0.1',
    'a@localhost',
  ])('does not show views under the host %j', async (host) => {
    for (const [port, path] of views()) {
      const { status, body } = await httpRequest(port, path, { headers: { host } });
      expect([path, status]).toEqual([path, 421]);
      expect(body).toBe(
        `the Host header is "${host}", which may be another site's host name that resolves to this ` +
          'address (DNS rebinding); use localhost, 127.0.0.1 or [::1] instead\n',
      );
    }
  });

  test('serves paths without data under every name, and accepts HTTP/1.0 without a host', async () => {
    const headers = { host: 'site.example' };
    expect((await httpRequest(server.httpPort, '/healthcheck', { headers })).body).toBe('OK');
    expect((await httpRequest(server.debugPort, '/', { headers })).status).toBe(200);
    expect(await raw(server.httpPort, 'GET /metrics HTTP/1.0\r\n\r\n')).toBe(200);
    const two = 'Host: localhost\r\nHost: site.example\r\n';
    expect(await raw(server.httpPort, `GET /metrics HTTP/1.1\r\n${two}\r\n`)).toBe(400);
  });
});

describe('on all addresses', () => {
  beforeAll(() => start('0.0.0.0'));

  test('shows views under every name', async () => {
    const headers = { host: 'weir.limits.svc:8080' };
    for (const [port, path] of [
      [server.httpPort, '/metrics'],
      [server.debugPort, '/rlconfig'],
      [prometheusPort, '/metrics'],
    ] as const)
      expect((await httpRequest(port, path, { headers })).status).toBe(200);
  });

  test('pages of the same origin can call /json, and others cannot', async () => {
    const host = 'shop.example';
    expect(await json({ host, origin: `https://${host}`, 'sec-fetch-site': 'same-origin' })).toBe(200);
    expect(await json({ host: 'weir', origin: `https://${host}` })).toBe(403);
  });
});
