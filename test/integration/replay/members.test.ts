/* Tests that `weir replay` names members and values that the log never has. */
import { describe, expect, test } from '@jest/globals';
import type { ReplayReport } from '../../../src/replay/report/report.js';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

folder.write(
  'new.yaml',
  `domain: shop
descriptors:
  - key: tenant
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: path
    rate_limit: { unit: minute, requests_per_unit: 100 }
`,
);
const mapping = (log: string) => `domain: shop
log: ${log}
rate_limits:
  - actions: [{ request_headers: { header_name: x-tenant, descriptor_key: tenant } }]
  - actions: [{ request_headers: { header_name: ":path", descriptor_key: path } }]
`;
const line = (second: number, tenant: string) =>
  `{"ts":"2026-11-20T09:00:0${second}.100Z","request":{"path":"/a"},"tenant":${tenant},"code":200}\n`;
folder.write('access.log', line(1, '"acme"') + line(2, '"acme"'));
folder.write('null.log', line(1, 'null') + line(2, '"-"'));

async function replayed(log: string, path: string) {
  folder.write('mapping.yaml', mapping(log));
  const args = ['replay', '--policy', 'new.yaml', '--envoy', 'mapping.yaml', '--json', '-', path];
  const { code, stdout, stderr } = await host.run({ args, folder: folder.path });
  const { warnings, total } = JSON.parse(stdout) as ReplayReport;
  return { code, stderr, warnings, requests: total.requests };
}

describe('weir replay', () => {
  test('names a misspelled member, those that occur, and the member to add', async () => {
    const { code, stderr, warnings, requests } = await replayed(
      '{ time: ts, x-tenant: tennant, path: request.path }',
      'access.log',
    );
    const warning =
      'The member "tennant" does not occur in any of 2 lines (needed for mapping.yaml:4: request_headers). The lines ' +
      'have the members "ts", "request.path", "tenant", "code". Did you mean "tenant"? Correct the name, or add the ' +
      'member to json_format of the access_log: tennant: "%REQ(X-TENANT)%".';
    expect({ code, warnings, requests }).toEqual({ code: 0, warnings: [warning], requests: 2 });
    expect(stderr).toBe(`weir replay: warning: ${warning}\n`);
  });

  test('names a misspelled member that no descriptor needs', async () => {
    const { warnings } = await replayed(
      '{ time: ts, x-tenant: tenant, path: request.path, duration: took }',
      'access.log',
    );
    expect(warnings).toEqual([
      expect.stringMatching(/^The member "took" does not occur in any of 2 lines\. .* took: "%DURATION%"\.$/),
    ]);
  });

  test('names a member that never has a value', async () => {
    const { warnings } = await replayed('{ time: ts, x-tenant: tenant, path: request.path }', 'null.log');
    expect(warnings).toEqual([
      'The member "tenant" has no value in any of 2 lines (needed for mapping.yaml:4: request_headers).',
    ]);
  });

  test('has no warning if a line has the value', async () => {
    folder.write('once.log', line(1, 'null') + line(2, '"acme"'));
    const { warnings, stderr } = await replayed(
      '{ time: ts, x-tenant: tenant, path: request.path }',
      'once.log',
    );
    expect({ warnings, stderr }).toEqual({ warnings: [], stderr: '' });
  });

  test('prints warnings below the headline of the table', async () => {
    folder.write('mapping.yaml', mapping('{ time: ts, x-tenant: tennant, path: request.path }'));
    const args = ['replay', '--policy', 'new.yaml', '--envoy', 'mapping.yaml', 'access.log'];
    const { stdout } = await host.run({ args, folder: folder.path });
    expect(stdout.split('\n\n')[1]).toMatch(
      /^Warning: The member "tennant" does not occur in any of 2 lines/,
    );
  });

  test('names the members of a mapping that lines lack if they do not have its format', async () => {
    folder.write('mapping.yaml', mapping('{ time: timestamp, x-tenant: tenant }'));
    const args = ['replay', '--policy', 'new.yaml', '--envoy', 'mapping.yaml', 'access.log'];
    const { code, stderr } = await host.run({ args, folder: folder.path });
    expect(code).toBe(1);
    expect(stderr).toContain(
      'the lines are JSON with the members "ts", "request.path", "tenant", "code", and lack "timestamp"; ',
    );
  });
});

test('weir replay names the first call if no request meets a limit', async () => {
  folder.write('mapping.yaml', mapping('{ time: ts, x-tenant: tenant, path: request.path }'));
  folder.write('other.yaml', 'domain: other\ndescriptors: []\n');
  const args = ['replay', '--policy', 'other.yaml', '--envoy', 'mapping.yaml', 'access.log'];
  expect((await host.run({ args, folder: folder.path })).stderr).toBe(
    'weir replay: warning: No request meets a limit. The first call in the log has the domain "shop" and a ' +
      'descriptor with the entries "tenant". other.yaml has the domains "other". Write a rule for these entries.\n',
  );
});
