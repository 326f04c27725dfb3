/** Limits that callers send (`limit` of a descriptor) use the phase of the node where the descriptor ends. */
import { expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { setOf } from '../../../support/policy/policies.js';

/** 2026-01-01. */
const NOW = Date.UTC(2026, 0, 1) * 1000;
const LIMIT = 'rate_limit: { unit: minute, requests_per_unit: 10 }';
const CHILD = `descriptors: [{ key: below, phase: active, ${LIMIT} }]`;

const nodes = (descriptors: string) => setOf(`domain: d\ndescriptors: [${descriptors}]\n`);
const linesOf = (before: string, after: string): readonly string[] =>
  diffPolicies(nodes(before), nodes(after), NOW).map(
    ({ path, effect, tightens, text }) => `${path}: ${effect}${tightens ? ' !' : ''}: ${text}`,
  );

test.each<[what: string, before: string, after: string, line: string]>([
  [
    'of a node without limits',
    `{ key: a, phase: monitoring, ${CHILD} }`,
    `{ key: a, ${CHILD} }`,
    'a: tightens !: phase: monitoring becomes active; applies only to limits in requests',
  ],
  [
    'of a list whose limits have their own',
    '{ key: a, phase: active, rate_limits: [{ unit: day, requests_per_unit: 1, phase: active }] }',
    '{ key: a, phase: monitoring, rate_limits: [{ unit: day, requests_per_unit: 1, phase: active }] }',
    'a: loosens: phase: active becomes monitoring; applies only to limits in requests',
  ],
  [
    'of a node without limits that is new',
    '',
    '{ key: a, phase: monitoring }',
    'a: appears: no limit; previously no limit',
  ],
  [
    'of a node without limits that is removed',
    '{ key: a, phase: monitoring }',
    '',
    'a: vanishes !: no limit; now no limit; phase: monitoring becomes active; applies only to limits in requests',
  ],
])('the phase %s', (_, before, after, line) => {
  expect(linesOf(before, after)).toEqual([line]);
});

test("an effect on a node's limits, or on the node above, is reported only once", () => {
  const of = (phase: string): string =>
    `{ key: a, phase: ${phase}, ${LIMIT}, descriptors: [{ key: b, descriptors: [{ key: c, ${LIMIT} }] }] }`;
  const text = 'loosens: phase: active becomes monitoring';
  expect(linesOf(of('active'), of('monitoring'))).toEqual([`a: ${text}`, `a/b/c: ${text}`]);
});

test("an effect is reported if the node's limit never denies", () => {
  const of = (settings: string): string => `{ key: a, ${settings}, ${LIMIT} }`;
  expect(
    linesOf(of('phase: monitoring, enforce_percent: 0'), of('phase: active, enforce_percent: 0')),
  ).toEqual([
    'a: changes: phase: monitoring becomes active',
    'a: tightens !: phase: monitoring becomes active; applies only to limits in requests',
  ]);
});
