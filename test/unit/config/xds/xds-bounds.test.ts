/** Limits of an update, and the work that it causes in the deciding thread. */
import { describe, expect, test } from '@jest/globals';
import { createDiscoveryCodec, RATE_LIMIT_CONFIG_TYPE } from '../../../../src/config/xds/discovery.js';
import { MAX_RESOURCES, readEnvelope } from '../../../../src/config/xds/envelope.js';
import { MAX_FIELDS } from '../../../../src/config/xds/load-update.js';
import {
  countProblems,
  formatProblem,
  MAX_PROBLEMS,
  ProblemList,
} from '../../../../src/config/yaml/config-problem.js';
import { loadDocuments, loadResponse } from '../../../support/policy/loads.js';
import { encodeConfig } from '../../../support/xds/xds-server.js';

const codec = createDiscoveryCodec();
const countFields = (bytes: Uint8Array, most: number): number => codec.countFields(bytes, most);

const text = (field: number, value: string): Buffer =>
  Buffer.concat([Buffer.from([field * 8 + 2, value.length]), Buffer.from(value)]);
const resources = (count: number): Buffer => Buffer.alloc(2 * count, Buffer.from([0x12, 0]));

describe('an envelope', () => {
  test('is read from fields in any order, with unknown fields between them', () => {
    const other = Buffer.from([0x18, 1, 0x32, 2, 0x0a, 0, 0x49, 1, 2, 3, 4, 5, 6, 7, 8, 0x55, 1, 2, 3, 4]);
    const bytes = Buffer.concat([
      text(5, 'n'),
      other,
      resources(3),
      text(4, 't'),
      text(1, 'v'),
      text(5, 'last'),
    ]);
    expect(readEnvelope(bytes)).toEqual({
      versionInfo: 'v',
      typeUrl: 't',
      nonce: 'last',
      bytes,
      refusal: undefined,
    });
    expect(readEnvelope(Buffer.alloc(0))).toMatchObject({
      versionInfo: '',
      typeUrl: '',
      nonce: '',
    });
  });

  test('with two million resources is refused with its nonce', () => {
    expect(readEnvelope(Buffer.concat([resources(2_000_000), text(5, 'n')]))).toMatchObject({
      nonce: 'n',
      refusal: `the update has 2000000 resources; send at most ${MAX_RESOURCES}`,
    });
  });

  test.each([
    ['ends within a length', [0x12, 0x80]],
    ['ends within a text', [0x0a, 0x7f]],
    ['ends within a number', [0x18, 0xff]],
    ['ends within a tag', [0xff]],
    ['ends within fixed bytes', [0x49, 1]],
    ['has a number without end', [0x18, ...Array<number>(11).fill(0xff)]],
    ['has a field without a number', [0x02, 0]],
    ['has a group', [0x13, 0x14]],
    ['has a length beyond the end', [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
    ['has a nonce of 70 KB', [0x2a, 0xf0, 0xa2, 0x04, ...Array<number>(70_000).fill(0x61)]],
  ])('that %s is malformed', (_, bytes) => {
    expect(() => readEnvelope(Uint8Array.from(bytes))).toThrow();
  });
});

describe('the fields of a resource', () => {
  test('include those of its parts', () => {
    const { bytes } = encodeConfig({
      name: 'r',
      domain: 'd',
      descriptors: [
        {
          key: 'k',
          value: 'v',
          rate_limit: { unit: 'DAY', requests_per_unit: 5, replaces: [{ name: 'm' }] },
        },
        {
          key: 'l',
          descriptors: [{ key: 'm' }],
          metadata: { fields: { a: { listValue: { values: [{ boolValue: true }] } } } },
        },
      ],
    });
    // Fields by level: r and d. Two descriptors: one with k, v and a limit (unit, number, replaced name), one with l.
    // Below it, a descriptor with m and metadata (entry, key, value, list, value, bool). Each descriptor counts three
    // fields more.
    expect(countFields(bytes, 1000)).toBe(2 + 1 + 3 + 4 + 1 + 1 + 2 + 1 + 6 + 9);
  });

  test('include those of maps and of alternatives', () => {
    const { bytes } = encodeConfig({
      phase_schedule: { active: { seconds: 9 } },
      derive: [{ entry: 'e', sha256: { tenants: { a: 'b', c: 'd' } } }],
      descriptors: [{ rate_limits: [{ burst: 1 }, { denied_response: { custom: { body: 'b' } } }] }],
    });
    // Fields by level: a schedule with a time, which is one value. An item with e and a table of two entries, each with
    // key and value. A descriptor with two limits: one with a number, one with an answer (body and text).
    expect(countFields(bytes, 1000)).toBe(2 + 3 + 2 * 3 + 4 + 2 + 1 + 3);
  });

  test('are counted only up to the bound, and never past the end', () => {
    const many = Buffer.alloc(100_000, Buffer.from([0x1a, 0]));
    expect(countFields(many, 10)).toBe(13);
    expect(countFields(many, 1_000_000)).toBe(200_000);
    // A nested message claims to be longer than the message around it.
    expect(countFields(Uint8Array.of(0x1a, 4, 0x22, 0x7f, 0x0a, 0), 100)).toBe(9);
    for (const bytes of [[0xff], [0x1a], [0x1a, 0xff], [0x0b], [0x08]]) {
      expect(countFields(Uint8Array.from(bytes), 100)).toBe(1);
    }
  });
});

describe('an update', () => {
  const response = (value: Uint8Array): Buffer => {
    const varint = (number: number): number[] =>
      number < 0x80 ? [number] : [(number & 0x7f) | 0x80, ...varint(Math.floor(number / 0x80))];
    const any = Buffer.concat([
      text(1, RATE_LIMIT_CONFIG_TYPE),
      Buffer.from([0x12, ...varint(value.length)]),
      value,
    ]);
    return Buffer.concat([Buffer.from([0x12, ...varint(any.length)]), any]);
  };

  test('with more fields than the bound is refused before it is decoded', () => {
    const bytes = response(Buffer.alloc(2 * (MAX_FIELDS + 1), Buffer.from([0x1a, 0])));
    const { errors, contents } = loadResponse(bytes, codec, {}, undefined);
    expect(errors.map(formatProblem)).toEqual([
      'update: the update has more than 1000000 fields; send fewer rules',
    ]);
    expect(contents).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('problems', () => {
  test('are kept up to a maximum number, and counted beyond it; long ones are truncated', () => {
    const list = new ProblemList('f');
    for (let line = 1; line <= 2500; line++) {
      list.error({ line, column: 1 }, 'x'.repeat(10_000), 'y'.repeat(10_000));
      list.warn({ line, column: 1 }, '', 'w');
    }
    expect([list.errors.length, list.errorCount]).toEqual([MAX_PROBLEMS, 2500]);
    expect([list.warnings.length, list.warningCount]).toEqual([MAX_PROBLEMS, 2500]);
    expect(formatProblem(list.errors[0]!).length).toBeLessThan(5000);
  });

  test('of several documents have a common bound', () => {
    const bad = { kind: 'list', items: [], at: { line: 0, column: 0 } } as const;
    const documents = Array.from({ length: 1500 }, (_, i) => ({ name: `r${i}`, document: bad }));
    const { errors } = loadDocuments(documents);
    expect(errors).toHaveLength(MAX_PROBLEMS + 1);
    expect(formatProblem(errors.at(-1)!)).toBe('r999: and 500 more errors, not listed');
    expect(countProblems(errors)).toBe(MAX_PROBLEMS + 500);
  });
});
