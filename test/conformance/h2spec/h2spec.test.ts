/*
 * Runs every case of h2spec against weir's own HTTP/2 engine. A case that h2spec skips because of the server's features
 * counts as failed. Only the cases in known-failing.txt need not pass.
 */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { optionalToolPath, repositoryRoot } from '../../support/process/tools.js';
import { type TlsFiles, tlsSettings, writeTlsFiles } from '../../support/tls/tls-files.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { readKnownFailing } from '../known-failing.js';
import { type H2specResult, h2specCases, runH2spec } from './h2spec.js';

const program = optionalToolPath('h2spec');
const cases = program === undefined ? [] : h2specCases(program);
const known = readKnownFailing(join(repositoryRoot, 'test/conformance/h2spec/known-failing.txt'));

(program === undefined ? describe.skip : describe)('h2spec', () => {
  test('has 145 cases and one strict case', () => {
    expect(cases).toHaveLength(146);
  });

  test('knows every case that may fail', () => {
    const ids = cases.map(({ id }) => id);
    expect([...known.keys()].filter((id) => !ids.includes(id))).toEqual([]);
  });

  describe.each(['clear text', 'TLS'])('in %s', (kind) => {
    let files: TlsFiles | undefined;
    let weir: WeirServer;
    let results: Map<string, H2specResult>;

    beforeAll(async () => {
      files = kind === 'TLS' ? writeTlsFiles() : undefined;
      weir = await startWeir({
        env: { GRPC_TRANSPORT: 'h2', ...(files !== undefined && tlsSettings(files)) },
      });
      const args = files === undefined ? [] : ['-t', '-k'];
      results = await runH2spec(program as string, weir.grpcPort, args);
    }, 330_000);

    test.each(cases)('$id: $title', ({ id }) => {
      const result = results.get(id);
      if (known.has(id)) expect(result?.outcome).not.toBe('passed');
      else expect(result).toEqual({ outcome: 'passed', reason: '' });
    });

    test('weir still works afterwards', async () => {
      expect(weir.process.isRunning()).toBe(true);
      expect(weir.log().filter(({ level }) => level === 'error')).toEqual([]);
    });
  });
});
