import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import type { Descriptor } from '../../../../src/codec/messages.js';
import type { BucketStore, TakeResult } from '../../../../src/limiter/bucket-store.js';
import { Closers } from '../../../../src/runtime/closers.js';
import { MAX_LINE_CHARACTERS, openDecisionLog } from '../../../../src/server/decision-log/decision-log.js';
import { LogOutput } from '../../../../src/telemetry/log-output.js';
import { Decider, descriptor } from '../../../support/policy/decider.js';
import { repositoryRoot } from '../../../support/process/tools.js';

const POLICY = `
domain: d
derive:
  - { entry: tenant, from: [api_key], sha256: { 3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d: acme } }
descriptors:
  - key: tenant
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: seen
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: free
    rate_limit: { unlimited: true }
  - key: llm
    rate_limits:
      - { name: streams, concurrency: { max: 1 } }
      - { name: tokens, unit: minute, requests_per_unit: 100, hold: { amount: 10 } }
  - key: soft
    rate_limits:
      - { name: most, unit: minute, requests_per_unit: 1, on_over: { allow: true } }
      - { name: half, unit: hour, requests_per_unit: 2, on_over: { allow: true } }
      - { name: all, unit: day, requests_per_unit: 9 }
`;

const schema = new Ajv({ strict: false, validateFormats: false }).compile(
  JSON.parse(readFileSync(join(repositoryRoot, 'deploy/decision-log.schema.json'), 'utf8')),
);

interface Logged {
  readonly lines: () => Record<string, unknown>[];
  readonly decider: Decider;
  readonly texts: string[];
}

/** Returns a service with a sampled decision log. Random numbers come from `numbers`, in turn. */
function logging(
  sample: { denied: number; ok: number },
  numbers: readonly number[] = [0],
  store?: BucketStore,
): Logged {
  const texts: string[] = [];
  const write = (bytes: Uint8Array): number => {
    texts.push(...Buffer.from(bytes).toString().split('\n').slice(0, -1));
    return bytes.length;
  };
  let drawn = 0;
  const opened = openDecisionLog(
    {
      settings: { decisionLogSample: sample, decisionLogFile: '' },
      log: { warn() {}, info() {} },
      output: new LogOutput({ write }),
      worker: undefined,
      random: () => numbers[drawn++ % numbers.length] as number,
    },
    new Closers(),
  );
  const decider = new Decider(POLICY, {
    ...(opened !== undefined && { decisionLog: opened.log }),
    ...(store !== undefined && { store }),
  });
  return {
    decider,
    texts,
    lines: () =>
      texts.map((text) => {
        const line = JSON.parse(text) as Record<string, unknown>;
        expect([text, schema(line), schema.errors]).toEqual([text, true, null]);
        return line;
      }),
  };
}

test('strings from callers are escaped, and keep their value as JSON', () => {
  const hostile = 'a\u202eb\u009b31mc\u200bd\u007fe\ue000';
  const { decider, lines, texts } = logging({ denied: 1, ok: 1 });
  decider.answer([descriptor([`free=${hostile}`])]);
  decider.answer([descriptor(['free=1'])], 0, hostile);
  expect(texts.join('')).toMatch(/^[\x20-\x7e]*$/);
  expect(lines()).toMatchObject([
    { descriptors: [{ entries: [{ key: 'free', value: hostile }] }] },
    { domain: hostile },
  ]);
});

test('a line contains the holds that a request placed or ended, without the token', () => {
  const { decider, lines, texts } = logging({ denied: 1, ok: 1 });
  const started = decider.answer([descriptor(['llm=a'])]);
  decider.answer([descriptor(['llm=a'])]);
  const token = String(started.dynamicMetadata?.['hold']);
  const cost = descriptor([`hold=${token}`], { hitsAddend: 7 });
  decider.answer([descriptor([`hold=${token}`, 'done=1']), cost]);
  decider.answer([cost]);
  decider.answer([descriptor(['hold=guess'])]);
  const [streams, tokens] = ['llm[streams]', 'llm[tokens]'];
  const id = expect.stringMatching(/^[\da-f]{24}$/);
  expect(
    lines().map(({ descriptors }) => (descriptors as { holds?: unknown }[]).map(({ holds }) => holds)),
  ).toEqual([
    [
      [
        { event: 'placed', id, rule: streams, hits: 1 },
        { event: 'placed', id, rule: tokens, hits: 10 },
      ],
    ],
    [undefined],
    [
      [
        { event: 'settled', id, rule: streams, hits: 1, used: 1 },
        { event: 'settled', id, rule: tokens, hits: 10, used: 7 },
      ],
      undefined,
    ],
    [
      [
        { event: 'unknown', id, rule: streams },
        { event: 'unknown', id, rule: tokens },
      ],
    ],
    [[{ event: 'malformed' }]],
  ]);
  const ids = lines().map((line) => JSON.stringify(line).match(/(?<="id":")[\da-f]+/g) ?? []);
  expect(new Set(ids[0]).size).toBe(2);
  expect([ids[2], ids[3]]).toEqual([ids[0], ids[0]]);
  expect(texts.join()).not.toContain(token.slice(0, 40));
  expect(texts[2]).toContain('"entries":[{"key":"hold","value":"[hold token]"},{"key":"done","value":"1"}]');
});

test('a line names the soft limits that a descriptor is over', () => {
  const { decider, lines } = logging({ denied: 1, ok: 1 });
  for (let i = 0; i < 3; i++) decider.answer([descriptor(['soft=a'])]);
  expect(
    lines().map(({ descriptors }) => (descriptors as { over_soft_limits?: unknown }[])[0]?.over_soft_limits),
  ).toEqual([undefined, ['soft[most]'], ['soft[most]', 'soft[half]']]);
});

test('the debug log does not report a hold token as unmatched', () => {
  const { decider } = logging({ denied: 0, ok: 0 });
  decider.observer.debug = true;
  decider.answer([descriptor(['hold=guess'])]);
  expect(decider.observer.lines).toMatchObject([
    { entries: [{ key: 'hold', value: '[hold token]' }], rule: '', unmatched: undefined, code: 'OK' },
  ]);
});

test('a line contains the whole request and its answer in the format of the schema, without secrets', () => {
  const { decider, lines, texts } = logging({ denied: 1, ok: 1 });
  decider.answer([descriptor(['api_key=b']), descriptor(['seen=x'], { hitsAddend: 3 })], 2);
  decider.answer([descriptor(['tenant=acme'], { isNegativeHits: true }), descriptor(['free=1'])]);
  decider.answer([descriptor(['other=1'], { limit: { requestsPerUnit: 0, unit: 1 } })]);
  decider.answer([descriptor(['api_key=hidden'])], 0, 'elsewhere');
  const redacted = [{ key: 'api_key', value: expect.stringMatching(/^\[redacted sha256:[\da-f]{8}\]$/) }];
  const common = { decision: 1, time: '2023-11-14T22:13:20.000000Z', sample: 1, micros: expect.any(Number) };
  expect(lines()).toEqual([
    {
      ...common,
      domain: 'd',
      code: 'OK',
      descriptors: [
        {
          entries: expect.any(Array),
          sent: redacted,
          hits: 2,
          rule: 'tenant',
          code: 'OK',
          limit: 2,
          remaining: 0,
        },
        {
          entries: [{ key: 'seen', value: 'x' }],
          hits: 3,
          rule: 'seen',
          code: 'OK',
          limit: 1,
          remaining: 0,
          would_be_throttled: true,
        },
      ],
    },
    {
      ...common,
      domain: 'd',
      code: 'OK',
      descriptors: [
        {
          entries: [{ key: 'tenant', value: 'acme' }],
          hits: 1,
          refund: true,
          rule: 'tenant',
          code: 'OK',
          limit: 2,
          remaining: expect.any(Number),
        },
        { entries: [{ key: 'free', value: '1' }], hits: 1, rule: 'free', code: 'OK' },
      ],
    },
    {
      ...common,
      domain: 'd',
      code: 'OVER_LIMIT',
      descriptors: [
        {
          entries: [{ key: 'other', value: '1' }],
          hits: 1,
          override: { requests_per_unit: 0, unit: 'SECOND' },
          rule: 'override',
          code: 'OVER_LIMIT',
          limit: 0,
          remaining: 0,
        },
      ],
    },
    {
      ...common,
      domain: 'elsewhere',
      code: 'OK',
      reason: 'unknown_domain',
      descriptors: [{ entries: redacted, hits: 1, code: 'OK' }],
    },
  ]);
  expect(texts.join()).not.toContain('hidden');
});

test('a line has the time at which the store decided, not the time of the answer', async () => {
  const { decider, lines } = logging({ denied: 1, ok: 1 });
  decider.clock.advance(1_234_567);
  decider.answer([descriptor(['tenant=t'])]);
  expect(lines()).toMatchObject([{ time: '2023-11-14T22:13:21.234567Z' }]);
});

test('with Redis, a line has the time of Redis, and that of this process if Redis was not asked', async () => {
  const decidedMicros = 1_700_000_000_123_456;
  const allowed = {
    overLimit: false,
    remaining: 1,
    waitMicros: 0,
    used: 1,
    uncollectedHits: 0,
    cached: false,
  };
  const results: TakeResult[] = [
    [{ ...allowed, decidedMicros }],
    // Of a request that is divided between servers, one may not have decided.
    [allowed, { ...allowed, decidedMicros }],
    [{ ...allowed, overLimit: true, cached: true }],
  ];
  const store: BucketStore = {
    take: async () => results.shift() as TakeResult,
    close: async () => {},
  };
  const { decider, lines } = logging({ denied: 1, ok: 1 }, [0], store);
  decider.clock.advance(1);
  for (const more of [[], [descriptor(['tenant=u'])], []]) {
    await decider.service.decide({
      domain: 'd',
      descriptors: [descriptor(['tenant=t']), ...more],
      hitsAddend: 1,
    });
  }
  expect(lines().map(({ time }) => time)).toEqual([
    '2023-11-14T22:13:20.123456Z',
    '2023-11-14T22:13:20.123456Z',
    '2023-11-14T22:13:20.000001Z',
  ]);
});

test('denied and other requests are sampled separately, and a share of 0 draws no random number', () => {
  const { decider, lines } = logging({ denied: 0.5, ok: 0.2 }, [0.3, 0.1, 0.49, 0.5]);
  // The OK decisions draw 0.3, which is not below 0.2, and 0.1, which is. The denied ones draw 0.49, which is below
  // 0.5, and 0.5, which is not.
  for (let i = 0; i < 4; i++) decider.answer([descriptor(['tenant=t'])]);
  expect(lines().map(({ code, sample }) => [code, sample])).toEqual([
    ['OK', 0.2],
    ['OVER_LIMIT', 0.5],
  ]);
  const denials = logging({ denied: 1, ok: 0 });
  for (let i = 0; i < 3; i++) denials.decider.answer([descriptor(['tenant=t'])]);
  expect(denials.lines()).toMatchObject([{ code: 'OVER_LIMIT' }]);
});

test('the line of a large request is truncated and marked', async () => {
  const { decider, lines, texts } = logging({ denied: 1, ok: 1 });
  const ask = async (descriptors: readonly Descriptor[]) =>
    decider.service.decide({ domain: 'd', descriptors, hitsAddend: 1 });
  const long = 'x'.repeat(1000);
  await ask([descriptor([`other=${long}`])]);
  await ask([descriptor(Array.from({ length: 40 }, (_, i) => `k${i}=v`))]);
  await ask(Array.from({ length: 150 }, (_, i) => descriptor([`other=${i}`])));
  const wide = Array.from({ length: 32 }, (_, i) => `k${i}=${'\u0001'.repeat(300)}`);
  await ask(Array.from({ length: 100 }, () => descriptor(wide)));
  const [cut, entries, descriptors, all] = lines();
  expect(cut).toMatchObject({
    cut: true,
    descriptors: [{ entries: [{ value: expect.stringContaining('… (744 more characters)') }] }],
  });
  expect(entries).toMatchObject({ cut: true, descriptors: [{ more_entries: 8 }] });
  expect(descriptors).toMatchObject({ cut: true, more_descriptors: 50 });
  expect(all).toMatchObject({ cut: true, more_descriptors: 100, descriptors: [] });
  for (const text of texts) expect(text.length).toBeLessThan(MAX_LINE_CHARACTERS + 1000);
});

test('no file is opened if all shares are 0', () => {
  const { texts, decider } = logging({ denied: 0, ok: 0 });
  decider.answer([descriptor(['tenant=t'])]);
  expect(texts).toEqual([]);
});
