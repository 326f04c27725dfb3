import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { LONG_TIMEOUTS, type Stack, type StackOptions, startStack } from '../support/envoy/stack.js';
import { type HttpAnswer, headerOf, httpRequest } from '../support/process/http-client.js';
import { repositoryRoot } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';

const POLICY = `
domain: open-api
derive:
  - { entry: group, from: [method, path], rules: [{ path: "/chats/**", value: chats }, { path: "/watched", value: watched }, { path: "/html", value: html }, { value: rest }] }
descriptors:
  - key: tenant
    descriptors:
      - { key: group, value: chats, rate_limit: { name: chats, token_bucket: { max_tokens: 1, fill_interval: 10h } } }
      - { key: group, value: watched, phase: monitoring, rate_limit: { name: watched, unit: hour, requests_per_unit: 0 } }
      - { key: group, value: html, rate_limit: { unit: hour, requests_per_unit: 0, denied_response: { body: "<p>no</p>", content_type: text/html } } }
      - { key: group, value: rest, rate_limit: { name: rest, unit: year, requests_per_unit: 1000 } }
`;
const SECONDS = 36_000;

/** Headers that Envoy adds under the same names as weir. */
const ENVOY_ADDS: readonly (readonly [string, string])[] = [
  [
    'enable_x_ratelimit_headers: "OFF"',
    'enable_x_ratelimit_headers: DRAFT_VERSION_03\n                      enable_retry_after_header: true',
  ],
];

let stack: Stack | undefined;

async function start(file: string, options: StackOptions = {}): Promise<Stack> {
  stack = await startStack({
    policy: file + POLICY,
    ...options,
    changes: [...LONG_TIMEOUTS, ...(options.changes ?? [])],
  });
  return stack;
}

const ask = (path: string, headers: Record<string, string> = {}): Promise<HttpAnswer> =>
  httpRequest(stack?.envoy.port ?? 0, path, { headers: { 'x-tenant': 'acme', ...headers } });

/** Returns the headers about limits; throws if one of them occurs twice. */
function limitHeaders(answer: HttpAnswer): Record<string, string> {
  const names = new Set(answer.headers.map(([name]) => name));
  const weirHeaders = [...names].filter((name) => /^x-ratelimit|^ratelimit|^retry-after$/.test(name)).sort();
  return Object.fromEntries(weirHeaders.map((name) => [name, headerOf(answer, name)]));
}

/** Allows a few seconds less, because the test itself takes time. */
function expectSeconds(text: string | undefined): void {
  expect(Number(text)).toBeGreaterThan(SECONDS - 60);
  expect(Number(text)).toBeLessThanOrEqual(SECONDS);
}

describe('the access log', () => {
  const logged = () =>
    (stack?.envoy.process.lines() ?? [])
      .filter((line) => line.startsWith('{') && line.includes('"rule"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  /** The settings of docker-compose.yaml, except for the addresses of Redis and the policies. */
  function composeSettings(): NodeJS.ProcessEnv {
    const text = readFileSync(join(repositoryRoot, 'deploy/docker-compose.yaml'), 'utf8');
    const { services } = parse(text) as { services: { weir: { environment: Record<string, string> } } };
    const { REDIS_URL: _redis, CONFIG_PATH: _policies, ...settings } = services.weir.environment;
    return settings;
  }

  test('names the rule that denied the request, or would have, with the settings of docker-compose.yaml', async () => {
    await start('', { weirEnv: { ...composeSettings(), SHUTDOWN_DRAIN_DELAY: '0s' } });
    expect((await ask('/chats/1')).status).toBe(200);
    const denied = await ask('/chats/2?q=1');
    expect(denied.status).toBe(429);
    expect(JSON.stringify(denied.headers)).not.toContain('chats');
    expect((await ask('/watched')).status).toBe(200);
    const lines = await waitFor('two lines in the access log', async () =>
      logged().length < 2 ? undefined : logged(),
    );
    expect(lines).toEqual([
      expect.objectContaining({
        path: '/chats/2',
        status: 429,
        code: 'OVER_LIMIT',
        rule: 'tenant/group=chats',
        name: 'chats',
        limit: 1,
        remaining: 0,
        phase: 'active',
      }),
      expect.objectContaining({
        status: 200,
        code: 'OK',
        rule: 'tenant/group=watched',
        name: 'watched',
        retry_after: 0,
        phase: 'monitoring',
      }),
    ]);
    expectSeconds(String(lines[0]?.['retry_after']));
  });
});

describe('every header reaches the client once', () => {
  const ALL = 'response_headers: [x-ratelimit, retry-after, ratelimit-draft-03, ratelimit]';

  test('all headers of weir', async () => {
    await start(ALL);
    expect(limitHeaders(await ask('/chats/1'))).toMatchObject({
      'ratelimit-limit': '1, 1;w=36000',
      'ratelimit-policy': '"chats";q=1;w=36000',
      ratelimit: '"chats";r=0;t=36000',
      'x-ratelimit-limit': '1',
    });
    const denied = await ask('/chats/1');
    const headers = limitHeaders(denied);
    expect(denied.status).toBe(429);
    expect(Object.keys(headers)).toEqual([
      'ratelimit',
      'ratelimit-limit',
      'ratelimit-policy',
      'ratelimit-remaining',
      'ratelimit-reset',
      'retry-after',
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
      'x-ratelimit-will-be-throttled',
    ]);
    expectSeconds(headers['retry-after']);
    expect(headers['ratelimit']).toBe(`"chats";r=0;t=${headers['retry-after']}`);
  });

  test("headers of weir next to Envoy's own", async () => {
    await start(ALL, { changes: ENVOY_ADDS, weirEnv: { ENVOY_ADDS_HEADERS: 'x-ratelimit,retry-after' } });
    const passed = limitHeaders(await ask('/chats/1'));
    expect(passed).not.toHaveProperty('retry-after');
    expect(passed).toMatchObject({ 'x-ratelimit-remaining': '0', 'ratelimit-remaining': '0' });
    const denied = await ask('/chats/1');
    const headers = limitHeaders(denied);
    expect(denied.status).toBe(429);
    // Envoy's own headers: if the time to fill a bucket is not one of Envoy's units, Envoy knows only the limit, and
    // writes the reset in seconds.
    expect(headers).toMatchObject({
      'x-ratelimit-limit': expect.stringMatching(/^1\b/),
      'x-ratelimit-remaining': '0',
      'x-ratelimit-will-be-throttled': 'true',
    });
    expectSeconds(headers['x-ratelimit-reset']);
    expectSeconds(headers['retry-after']);
    expect(headers['ratelimit']).toBe(`"chats";r=0;t=${headers['retry-after']}`);
    const watched = limitHeaders(await ask('/watched'));
    expect(watched['x-ratelimit-will-be-throttled']).toBe('true');
    expect(watched).not.toHaveProperty('retry-after');
  });

  test('doubles x-ratelimit, but not retry-after, without the setting', async () => {
    await start(ALL, { changes: ENVOY_ADDS });
    await ask('/chats/1');
    const { headers } = await ask('/chats/1');
    const count = (wanted: string) => headers.filter(([name]) => name === wanted).length;
    expect(['x-ratelimit-limit', 'x-ratelimit-reset', 'retry-after'].map(count)).toEqual([2, 2, 1]);
  });
});

describe('the upstream request', () => {
  const FILE = 'request_headers: [x-ratelimit, ratelimit]';
  /** The header names that docs/policy/headers-and-bodies.md tells Envoy to remove before its filter adds them. */
  const REMOVES: readonly (readonly [string, string])[] = [
    [
      '                http_filters:\n',
      `                http_filters:
                  - name: envoy.filters.http.header_mutation
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
                      mutations:
                        request_mutations:
                          - remove_on_match: { key_matcher: { prefix: x-ratelimit-, ignore_case: true } }
                          - remove_on_match: { key_matcher: { prefix: ratelimit, ignore_case: true } }
`,
    ],
  ];
  const SPOOFED = { 'x-ratelimit-remaining': '999', ratelimit: '"chats";r=999' };

  /** Returns the headers that the upstream received; its server joins repeated headers with commas. */
  async function upstreamHeaders(path: string): Promise<Record<string, string>> {
    const answer = await ask(path, SPOOFED);
    expect(limitHeaders(answer)).toEqual({});
    expect(answer.status).toBe(200);
    return (JSON.parse(answer.body) as { headers: Record<string, string> }).headers;
  }

  test("carries the headers of weir, and not the client's where Envoy removes them", async () => {
    await start(FILE, { changes: REMOVES });
    expect(await upstreamHeaders('/chats/1')).toMatchObject({
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': expect.stringMatching(/^\d{10}$/),
      'ratelimit-policy': '"chats";q=1;w=36000',
      ratelimit: '"chats";r=0;t=36000',
    });
    expect(await upstreamHeaders('/watched')).toMatchObject({
      'x-ratelimit-remaining': '0',
      'x-ratelimit-will-be-throttled': 'true',
    });
    expect((await ask('/chats/1')).status).toBe(429);
  });

  test("carries the client's headers, too, unless Envoy removes them", async () => {
    await start(FILE);
    expect(await upstreamHeaders('/chats/1')).toMatchObject({
      'x-ratelimit-remaining': '999, 0',
      ratelimit: '"chats";r=999, "chats";r=0;t=36000',
    });
  });

  test('carries the headers of LIMIT_REQUEST_HEADERS_ENABLED', async () => {
    await start('', {
      weirEnv: { LIMIT_REQUEST_HEADERS_ENABLED: 'true', LIMIT_REQUEST_RESET_HEADER: 'x-quota-reset' },
    });
    const headers = await upstreamHeaders('/chats/1');
    expect(headers).toMatchObject({ 'ratelimit-limit': '1', 'ratelimit-remaining': '0' });
    expectSeconds(headers['x-quota-reset']);
  });
});

describe('denied_response', () => {
  const FILE = 'denied_response: problem+json\nresponse_headers: [retry-after, ratelimit]';

  test('sends body and media type to denied callers only', async () => {
    await start(FILE);
    const passed = await ask('/chats/1');
    expect(headerOf(passed, 'content-type')).toBe('application/json');
    expect(JSON.parse(passed.body)).toMatchObject({ path: '/chats/1' });

    const denied = await ask('/chats/1');
    expect(denied.status).toBe(429);
    expect(headerOf(denied, 'content-type')).toBe('application/problem+json');
    expectSeconds(headerOf(denied, 'retry-after'));
    expect(headerOf(denied, 'content-length')).toBe(String(Buffer.byteLength(denied.body)));
    expect(JSON.parse(denied.body)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      'violated-policies': ['chats'],
    });

    const html = await ask('/html');
    expect([html.status, headerOf(html, 'content-type'), html.body]).toEqual([429, 'text/html', '<p>no</p>']);
    const watched = await ask('/watched');
    expect([watched.status, headerOf(watched, 'content-type')]).toEqual([200, 'application/json']);
  });

  test('becomes the status message of a gRPC call', async () => {
    await start(FILE);
    const denied = await ask('/html', { 'content-type': 'application/grpc' });
    expect(denied.status).toBe(200);
    expect(headerOf(denied, 'content-type')).toBe('application/grpc');
    expect(headerOf(denied, 'grpc-message')).toBe('<p>no</p>');
    // UNAVAILABLE, or RESOURCE_EXHAUSTED (8) with `rate_limited_as_resource_exhausted: true`.
    expect(headerOf(denied, 'grpc-status')).toBe('14');
    expect(denied.body).toBe('');
    await start(FILE, {
      changes: [
        [
          'enable_x_ratelimit_headers: "OFF"',
          'enable_x_ratelimit_headers: "OFF"\n                      rate_limited_as_resource_exhausted: true',
        ],
      ],
    });
    const exhausted = await ask('/chats/1', { 'content-type': 'application/grpc' });
    expect(exhausted.headers.some(([name]) => name === 'grpc-status')).toBe(false);
    const problem = await ask('/chats/1', { 'content-type': 'application/grpc' });
    expect(headerOf(problem, 'grpc-status')).toBe('8');
    expect(headerOf(problem, 'content-type')).toBe('application/grpc');
    expect(JSON.parse(decodeURIComponent(headerOf(problem, 'grpc-message')))).toMatchObject({ status: 429 });
  });
});
