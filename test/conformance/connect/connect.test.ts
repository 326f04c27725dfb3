/*
 * connectconformance calls weir's gRPC servers with its own clients: every kind of stream, identity and gzip, clear
 * text, TLS and mTLS, deadlines, cancellation, metadata and error details. The test also fails if a listed known
 * failure passes.
 */
import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { runToEnd } from '../../support/process/processes.js';
import { optionalToolPath, repositoryRoot } from '../../support/process/tools.js';
import { STACKS } from '../../support/weir/stacks.js';

const program = optionalToolPath('connectconformance');
const SOURCES = join(repositoryRoot, 'test/conformance/connect');
const SERVER = join(repositoryRoot, 'build/test/conformance/connect/server.js');

describe.each(STACKS)('known failures of %s', (transport) => {
  test('are listed in blocks that begin with the reason', () => {
    const text = readFileSync(join(SOURCES, `known-failing-${transport}.txt`), 'utf8');
    for (const block of text.split(/\n{2,}/)) expect(block).toMatch(/^# .{40}/);
  });
});

(program === undefined ? describe.skip : describe)('connectconformance', () => {
  test.each(STACKS)(
    'finds no failures in %s',
    async (transport) => {
      // The protos are in the program's folder (.ci/tools.mjs).
      const protos = join(dirname(realpathSync(program as string)), 'proto');
      const { code, stdout, stderr } = await runToEnd(
        program as string,
        [
          ...['--mode', 'server', '--conf', join(SOURCES, 'config.yaml')],
          ...['--known-failing', `@${join(SOURCES, `known-failing-${transport}.txt`)}`],
          ...['--max-servers', '2', '--parallel', '8'],
          ...['--', process.execPath, SERVER, protos, transport],
        ],
        { timeoutMs: 240_000 },
      );
      const printed = stdout + stderr;
      const failures = printed.split('\n').filter((line) => /^(FAILED|ERROR)/.test(line));
      expect({ code, failures }).toEqual({ code: 0, failures: [] });
      const [, cases] = /Total cases: (\d+)/.exec(printed) ?? [];
      expect(Number(cases)).toBeGreaterThan(200);
    },
    250_000,
  );
});
