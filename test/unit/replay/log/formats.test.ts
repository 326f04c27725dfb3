import { afterAll, describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import { readEnvoy } from '../../../../src/replay/envoy/read-envoy.js';
import { Columns } from '../../../../src/replay/log/columns.js';
import { initMapping } from '../../../../src/replay/log/init-mapping.js';
import type { LogFormat } from '../../../../src/replay/log/log-format.js';
import { readLogFormat } from '../../../../src/replay/log/read-log-format.js';
import { readCall } from '../../../../src/replay/log/weir-call.js';
import { LogFolder, readAll, START } from '../../../support/replay/written-log.js';

const folder = new LogFolder();
afterAll(() => folder.remove());

const ENVOY_LINE =
  '[2026-11-26T08:00:00.125Z] "GET /a?b=c HTTP/1.1" 429 RL 0 18 3 - "10.0.0.1" "curl/8" ' +
  '"0a1b2c3d-0000-4000-8000-000000000000" "shop.example" "10.1.0.2:8080"';
const ISTIO_LINE =
  '[2026-11-26T08:00:00.125Z] "GET /a?b=c HTTP/1.1" 429 RL request_rate_limited - "-" 0 18 3 - "10.0.0.1" "curl/8" ' +
  '"0a1b2c3d-0000-4000-8000-000000000000" "shop.example" "-" outbound|80||shop - 10.1.0.1:80 10.0.0.1:5 - default';
const GATEWAY_LINE = JSON.stringify({
  ...{
    start_time: '2026-11-26T08:00:00.125Z',
    method: 'GET',
    'x-envoy-origin-path': '/a?b=c',
    protocol: 'HTTP/1.1',
  },
  ...{ response_code: 429, response_flags: 'RL', bytes_received: 0, bytes_sent: 18, duration: 3 },
  ...{
    'x-forwarded-for': '10.0.0.1',
    'user-agent': 'curl/8',
    'x-request-id': null,
    ':authority': 'shop.example',
  },
  ...{ upstream_host: null, upstream_cluster: null, upstream_local_address: null, route_name: 'r' },
});

describe('the built-in formats', () => {
  const OPERATORS = [
    'RESPONSE_CODE',
    'REQ(:authority)',
    'REQ(:path)',
    'REQ(x-envoy-original-path)',
    'DURATION',
  ];

  test.each([
    ["Envoy's default format", ENVOY_LINE],
    ["Istio's default format", ISTIO_LINE],
    ["Envoy Gateway's default format", GATEWAY_LINE],
  ])('%s', async (title, line) => {
    const path = folder.write('default.log', `${line}\n`.repeat(3));
    const { texts, formats, requests } = await readAll([path], {}, OPERATORS);
    expect(formats).toEqual([title]);
    expect(texts[2]).toBe('125: 429 shop.example /a?b=c /a?b=c 3');
    expect(requests[0]?.precisionMicros).toBe(1000);
  });

  test("weir's decision log, with other lines of weir", async () => {
    const decision = (members: object) =>
      JSON.stringify({
        decision: 1,
        time: '2026-11-26T08:00:00.125Z',
        domain: 'shop',
        code: 'OK',
        sample: 0.25,
        ...members,
      });
    const entries = [{ key: 'tenant', value: 'acme' }];
    const lines = [
      JSON.stringify({ level: 'info', msg: 'weir is serving' }),
      decision({ descriptors: [{ entries, hits: 2, code: 'OK' }] }),
      decision({
        descriptors: [{ entries, sent: [{ key: 'api_key', value: '[redacted sha256:3e23e816]' }], hits: 1 }],
      }),
      decision({
        descriptors: [
          {
            entries,
            sent: [{ key: 'host', value: 'acme.example' }],
            hits: 3,
            refund: true,
            override: { requests_per_unit: 5, unit: 'MINUTE' },
          },
        ],
      }),
      decision({ cut: true, descriptors: [] }),
    ];
    const { requests, totals, formats } = await readAll(
      [folder.write('decisions.jsonl', lines.join('\n'))],
      {},
      ['WEIR_CALL'],
    );
    expect(formats).toEqual(["weir's decision log"]);
    expect(totals.skipped).toBe(1);
    expect(totals.unreadable.map(({ reason }) => reason)).toEqual([
      'is marked as "cut", so parts of the request are missing',
    ]);
    expect(totals.incomplete).toEqual([
      { kind: 'stated', share: 0.25, reason: 'the lines state a sample of 25% ("sample")' },
    ]);
    const calls = requests.map(({ values }) => readCall(values[0] ?? ''));
    const plain = { limit: undefined, isNegativeHits: false };
    expect(calls).toEqual([
      { domain: 'shop', hitsAddend: 0, descriptors: [{ entries, hitsAddend: 2, ...plain }] },
      { domain: 'shop', hitsAddend: 0, descriptors: [{ entries, hitsAddend: 1, ...plain }] },
      {
        domain: 'shop',
        hitsAddend: 0,
        descriptors: [
          {
            entries: [{ key: 'host', value: 'acme.example' }],
            hitsAddend: 3,
            isNegativeHits: true,
            limit: { requestsPerUnit: 5, unit: 2 },
          },
        ],
      },
    ]);
  });

  test("weir's decision log without the ends of holds, and with its denials", async () => {
    const line = (code: string, ...descriptors: readonly (readonly string[])[]) =>
      JSON.stringify({
        ...{ decision: 1, time: '2026-11-26T08:00:00.125Z', domain: 'shop', code, sample: 1 },
        descriptors: descriptors.map(([key, value]) => ({ entries: [{ key, value }], hits: 1, code })),
      });
    const end = ['hold', '[hold token]'];
    const lines = [
      line('OK', ['tenant', 'a']),
      line('OK', end),
      line('OK', ['tenant', 'b'], end),
      line('OVER_LIMIT', ['tenant', 'c']),
    ];
    const path = folder.write('holds.jsonl', lines.join('\n'));
    const { requests, totals } = await readAll([path], {}, ['WEIR_CALL', 'RESPONSE_FLAGS']);
    expect(totals).toMatchObject({ holdEnds: 2, skipped: 1, requests: 3, unreadable: [] });
    expect(
      requests.map(({ values: [call = '', flags] }) => [
        ...readCall(call).descriptors.map(({ entries }) => entries[0]?.value),
        flags,
      ]),
    ).toEqual([
      ['a', undefined],
      ['b', undefined],
      ['c', 'RL'],
    ]);
  });

  test.each([
    ['"hits_addend":4294967295', '[{"tenant":"a"}]', true],
    ['"hits_addend":4294967296', '[{"tenant":"a"}]', false],
    ['"hits_addend":"16"', '[{"tenant":"a"}]', true],
    ['"hits_addend":"0x10"', '[{"tenant":"a"}]', false],
    ['"hits_addend":" "', '[{"tenant":"a"}]', false],
    ['"hits_addend":-1', '[{"tenant":"a"}]', false],
    ['"hits_addend":1.5', '[{"tenant":"a"}]', false],
    ['"hits_addend":"many"', '[{"tenant":"a"}]', false],
    ['"hits_addend":null', '[{"tenant":"a"}]', true],
    ['"x":1', '[{"entries":[{"key":"tenant","value":"a"}],"hits_addend":{"value":"4294967295"}}]', true],
    ['"x":1', '[{"entries":[{"key":"tenant","value":"a"}],"hits_addend":{"value":"4294967296"}}]', false],
    ['"x":1', '[{"entries":[{"key":"tenant","value":"a"}],"hitsAddend":-3}]', false],
    ['"x":1', '[{"entries":[{"key":"k"}],"limit":{"requests_per_unit":-1,"unit":"DAY"}}]', false],
  ])('JSON lines with the numbers %s %s: %s', async (member, descriptors, isRead) => {
    const good = '{"time":"2026-11-26T08:00:00Z","domain":"shop","descriptors":[{"tenant":"a"}]}';
    const line = `{"time":"2026-11-26T08:00:00Z","domain":"shop",${member},"descriptors":${descriptors}}`;
    const path = folder.write('numbers.jsonl', `${good}\n${line}`);
    const { totals } = await readAll([path], {}, ['WEIR_CALL']);
    expect(totals.requests).toBe(isRead ? 2 : 1);
    expect(totals.unreadable.map(({ reason }) => reason)).toEqual(
      isRead ? [] : ['has hits, or a limit, that are not a whole number from 0 to 4294967295'],
    );
  });

  test('JSON lines with descriptors', async () => {
    const lines = [
      '{"time":"2026-11-26T08:00:00Z","domain":"shop","descriptors":[{"tenant":"acme","path":"/a"}],"hits_addend":7}',
      '{"time":1795680001.5,"domain":"shop","descriptors":[{"entries":[{"key":"tenant","value":"é"}],"hits_addend":{"value":"3"}}]}',
      '{"time":"2026-11-26T08:00:02Z","domain":"shop","descriptors":[{"tenant":{}}]}',
    ];
    const { requests, totals } = await readAll([folder.write('plain.jsonl', lines.join('\n'))], {}, [
      'WEIR_CALL',
    ]);
    expect(
      requests.map(({ startMicros, precisionMicros }) => [startMicros / 1000 - START, precisionMicros]),
    ).toEqual([
      [0, 1_000_000],
      [1500, 100_000],
    ]);
    expect(requests.map(({ values }) => readCall(values[0] ?? '').descriptors[0]?.entries)).toEqual([
      [
        { key: 'tenant', value: 'acme' },
        { key: 'path', value: '/a' },
      ],
      [{ key: 'tenant', value: 'é' }],
    ]);
    expect(totals.unreadable[0]?.reason).toBe('has no "domain" with "descriptors"');
  });

  test('a log with an unknown format, or without a time', async () => {
    const path = folder.write('unknown.json', '{"ts":1,"x":2}\n');
    await expect(readAll([path], { formats: [] })).rejects.toThrow(
      /unknown\.json does not have a known format: the lines are JSON with the members "ts", "x"; name the format/,
    );
    const node = folder.write('node.log', '2026-11-25T16:42:00.123456789Z stdout F {"ts":1}\n');
    await expect(readAll([node])).rejects.toThrow(
      /prefix of a Kubernetes node; remove it: cut -d ' ' -f 4- FILE/,
    );
    const docker = folder.write(
      'docker.log',
      '{"log":"{}\\n","stream":"stdout","time":"2026-11-25T16:42:00Z"}\n',
    );
    await expect(readAll([docker])).rejects.toThrow(/a container in Docker; unpack them: jq -rj \.log FILE/);
    const text = folder.write('unknown.log', 'some words\n');
    await expect(readAll([text])).rejects.toThrow(/the lines are not JSON/);
    const format = readLogFormat('%REQ(:METHOD)%') as LogFormat;
    await expect(
      readAll([folder.write('get.log', 'GET\n')], { formats: [format], onlyFormats: true }),
    ).rejects.toThrow(/has no time; add %START_TIME% to the access_log/);
  });
});

describe('--log-format', () => {
  const line = '{"a": {"b": "2026-11-26T08:00:01Z"}, "t": "acme"}\n';

  test.each([
    ['json_format', 'json_format: { a: { b: "%START_TIME%" }, t: "%REQ(X-TENANT)%" }'],
    ['log_format', 'log_format: { json_format: { a: { b: "%START_TIME%" }, t: "%REQ(X-TENANT)%" } }'],
    ['members', '{ "a": { "b": "%START_TIME%" }, "t": "%REQ(X-TENANT)%" }'],
    ['a mapping', 'domain: shop\nlog: { time: a.b, x-tenant: t }\nrate_limits: []'],
  ])('a file with %s', async (_name, text) => {
    const format = readLogFormat(folder.write('format.yaml', text)) as LogFormat;
    const { texts } = await readAll([folder.write('a.json', line)], { formats: [format], onlyFormats: true });
    expect(texts).toEqual(['1000: acme']);
  });

  test.each([
    ['a text', '[%START_TIME%] "%REQ(X-TENANT)%" %%'],
    ['a file with a text', folder.write('format.txt', '[%START_TIME%] "%REQ(X-TENANT)%" %%\n')],
  ])('%s', async (_name, text) => {
    const format = readLogFormat(text) as LogFormat;
    const path = folder.write('a.log', '[2026-11-26T08:00:01Z] "acmé" %\n');
    const { texts } = await readAll([path], { formats: [format], onlyFormats: true });
    expect(texts).toEqual(['1000: acmé']);
  });

  test.each([
    ['missing.yaml', /neither a format string, such as .*, nor a file: "missing\.yaml" does not exist/],
    [folder.write('empty.yaml', 'domain: shop\n'), /empty\.yaml has no format; write "json_format"/],
    [folder.write('wrong.yaml', 'log: [1]\n'), /wrong\.yaml:1:6: log: "log" must be a mapping, not a list/],
  ])('reports problems in %s', (path, message) => {
    expect(readLogFormat(path)).toMatch(message);
  });
});

describe('weir replay --init', () => {
  test('writes a mapping that loads, and reads the log', async () => {
    const members = {
      ...{ '@timestamp': '2026-11-26T08:00:01.5Z', level: 'info', tookMs: 3 },
      request: { method: 'GET', uri: '/a?b=c', headers: { host: 'shop.example', x_tenant_id: 'acme' } },
      response: { status: 200, bytes: 10 },
      client_ip: '10.0.0.1',
    };
    const path = folder.write('own.json', `${JSON.stringify(members)}\n`.repeat(3));
    const text = await initMapping([path]);
    expect(text.split('\n').length).toBeLessThanOrEqual(26);
    expect(text).toContain(
      [
        'log:',
        '  time: "@timestamp"',
        '  method: request.method',
        '  path: request.uri',
        '  host: request.headers.host',
        '  status: response.status',
        '  duration: tookMs',
        '  remote_address: client_ip',
        '  x-tenant-id: request.headers.x_tenant_id',
        '  # Not used: level, response.bytes',
      ].join('\n'),
    );
    const columns = new Columns();
    const config = readEnvoy([{ name: 'map.yaml', bytes: Buffer.from(text) }], columns);
    expect(
      config.problems.flatMap(({ errors, warnings }) => [...errors, ...warnings].map(formatProblem)),
    ).toEqual([]);
    const { requests } = await readAll([path], { formats: config.formats }, columns.operators);
    expect(requests[0]?.startMicros).toBe((START + 1500) * 1000);
    expect(config.callsOf(requests[0]?.values ?? [])).toEqual([
      expect.objectContaining({
        domain: 'default',
        start: [expect.objectContaining({ entries: [{ key: 'tenant_id', value: 'acme' }] })],
      }),
    ]);
  });

  test('writes a mapping for a built-in format', async () => {
    const text = await initMapping([folder.write('default.log', `${ENVOY_LINE}\n`)]);
    expect(text).toContain("# The log has Envoy's default format.\n");
    const config = readEnvoy([{ name: 'map.yaml', bytes: Buffer.from(text) }], new Columns());
    expect(config.problems.flatMap(({ errors }) => errors)).toEqual([]);
  });

  test('says why there is no mapping', async () => {
    await expect(initMapping([folder.write('words.log', 'some words\n')])).rejects.toThrow(
      /neither JSON lines nor/,
    );
    await expect(initMapping([folder.write('timeless.json', '{"a":1}\n')])).rejects.toThrow(
      /no member .* has the time/,
    );
    const line = '{"time":"2026-11-26T08:00:00Z","domain":"d","descriptors":[{"k":"v"}]}\n';
    await expect(initMapping([folder.write('calls.json', line)])).rejects.toThrow(/needs no mapping/);
  });
});
