/* Tests the note about times that do not tell the order of requests. */
import { expect, test } from '@jest/globals';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

const line = (tenant: string): string =>
  `${JSON.stringify({ time: '2026-11-20T09:00:00.001Z', domain: 'd', descriptors: [{ tenant }] })}\n`;

async function noteOf(limit: string): Promise<string> {
  folder.write('new.yaml', `domain: d\ndescriptors: [{ key: tenant, rate_limit: ${limit} }]\n`);
  folder.write('access.log', line('acme').repeat(4));
  const args = ['replay', '--policy', 'new.yaml', 'access.log'];
  const { stdout } = await host.run({ args, folder: folder.path });
  return stdout.replaceAll(/\s+/g, ' ');
}

test('open decisions that balance each other leave the totals certain', async () => {
  expect(await noteOf('{ token_bucket: { max_tokens: 2, fill_interval: 1h } }')).toContain(
    'The times in the log leave 100% of the decisions open, but the totals are certain. Numbers such as',
  );
});

test('the note says by how many requests the totals may differ', async () => {
  expect(await noteOf('{ token_bucket: { max_tokens: 2, fill_interval: 1ms } }')).toMatch(
    /leave \d+% of the decisions open, but the totals are certain up to \d requests?\. Log microseconds, /,
  );
});
