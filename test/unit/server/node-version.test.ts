import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { isNodeOlderThan, nodeVersionNotes } from '../../../src/server/node-process.js';
import { repositoryRoot } from '../../support/process/tools.js';

test.each([
  ['20.20.2', true],
  ['22.9.1', true],
  ['22.14.0', true],
  ['22.15.0', false],
  ['22.100.0', false],
  ['24.0.0', false],
  ['26.1.0', false],
])('Node.js %s is older than 22.15: %s', (version, isOlder) => {
  expect(isNodeOlderThan(22, 15, version)).toBe(isOlder);
  expect(nodeVersionNotes(version)).toHaveLength(isOlder ? 1 : 0);
});

test('the warning names the oldest version that package.json accepts', () => {
  const { engines } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8'));
  const [oldest] = /\d+\.\d+/.exec(engines.node) ?? [];
  expect(nodeVersionNotes('20.20.2')).toEqual([
    `Node.js 20.20.2 is older than ${oldest}, the oldest version that weir supports; install Node.js 24`,
  ]);
});
