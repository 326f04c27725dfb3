/** Limits of an update, and of the problems that weir keeps. */
import { describe, expect, test } from '@jest/globals';
import { MAX_RESOURCES, readEnvelope } from '../../../../src/config/xds/envelope.js';
import {
  countProblems,
  formatProblem,
  MAX_PROBLEMS,
  ProblemList,
} from '../../../../src/config/yaml/config-problem.js';
import { loadDocuments } from '../../../support/policy/loads.js';

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
