/*
 * Runs clients of gRPC libraries against a real weir, on both stacks, in clear text and with mTLS. They test decisions,
 * errors, 200 concurrent calls, reflection, health checks, and a watch that weir ends when it shuts down. Most other
 * tests use a third library, @grpc/grpc-js.
 */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { startProcess } from '../../support/process/processes.js';
import { optionalToolPath, repositoryRoot } from '../../support/process/tools.js';
import { mutualTlsSettings, type TlsFiles, writeTlsFiles } from '../../support/tls/tls-files.js';
import { STACKS } from '../../support/weir/stacks.js';
import { startWeir } from '../../support/weir/weir.js';
import { GOOD_REPORT, INTEROP_POLICY, type InteropReport } from './interop-report.js';

const SOURCES = join(repositoryRoot, 'test/conformance/interop');

/** Name, program (undefined if it is not installed), and arguments before the address. */
const CLIENTS: readonly (readonly [string, string | undefined, readonly string[]])[] = [
  ['grpc-go', optionalToolPath('grpc-go-client'), []],
  [
    'grpcio (Python)',
    optionalToolPath('python-grpc'),
    ['-B', join(SOURCES, 'python/client.py'), join(repositoryRoot, 'proto')],
  ],
];

describe.each(CLIENTS)('a client on %s', (_name, program, args) => {
  let files: TlsFiles;
  beforeAll(() => {
    files = writeTlsFiles();
  });

  const cases = STACKS.flatMap((transport) => [
    { transport, kind: 'clear text' },
    { transport, kind: 'mTLS' },
  ]);
  (program === undefined ? test.skip : test).each(cases)(
    'works with $transport in $kind',
    async ({ transport, kind }) => {
      const secure = kind === 'mTLS';
      const weir = await startWeir({
        policy: INTEROP_POLICY,
        env: {
          GRPC_TRANSPORT: transport,
          SHUTDOWN_DRAIN_DELAY: '500ms',
          ...(secure && mutualTlsSettings(files)),
        },
      });
      const client = startProcess(program as string, [
        ...args,
        `127.0.0.1:${weir.grpcPort}`,
        ...(secure ? [files.ca, files.clientCert, files.clientKey] : []),
      ]);
      await client.waitForLine(/^watching$/);
      const [stopped, ended] = await Promise.all([weir.stop(), client.exited]);
      expect({ ended, stderr: client.stderr() }).toEqual({ ended: { code: 0, signal: null }, stderr: '' });
      const report = JSON.parse(client.stdout().replace('watching\n', '')) as InteropReport;
      expect(report).toEqual(GOOD_REPORT);
      expect(stopped).toEqual({ code: 0, signal: null });
    },
  );
});
