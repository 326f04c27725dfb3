/* Tests that a few lines with a time far from all others change no answer about the others. */
import { expect, test } from '@jest/globals';
import type { ReplayReport } from '../../../src/replay/report/report.js';
import { commandFolder } from '../../support/weir/command-folder.js';

const { folder, host } = commandFolder();

folder.write(
  'new.yaml',
  'domain: shop\ndescriptors: [{ key: tenant, rate_limit: { token_bucket: { max_tokens: 2, fill_interval: 10s } } }]\n',
);
const START = Date.parse('2026-11-26T08:00:00Z');
const line = (time: string, tenant: string) =>
  `${JSON.stringify({ time, domain: 'shop', descriptors: [{ tenant }] })}\n`;
/** Two hours with a request in each second. */
const LINES = Array.from({ length: 7200 }, (_, i) =>
  line(new Date(START + i * 1000).toISOString(), `t${i % 4}`),
);
const FAR = [line('1970-01-01T00:00:01Z', 'old'), line('2099-01-01T00:00:00Z', 'new')];

async function report(name: string, lines: readonly string[]): Promise<ReplayReport> {
  folder.write(name, lines.join(''));
  const args = ['replay', '--policy', 'new.yaml', '--warm', '1h', '--json', '-', name];
  const { stdout } = await host.run({ args, folder: folder.path });
  return JSON.parse(stdout) as ReplayReport;
}

test('lines of 1970 and 2099 change neither warm-up, span, gaps, charts nor capacity', async () => {
  const [old = '', future = ''] = FAR;
  const plain = await report('plain.log', LINES);
  const middle = [...LINES.slice(0, 3000), old, future, ...LINES.slice(3000)];
  const [begin, within] = [await report('a.log', [old, future, ...LINES]), await report('b.log', middle)];
  expect(plain.log).toMatchObject({ first: '2026-11-26T09:00:00.000Z', far: 0 });
  expect(plain.timeline.stepSeconds).toBe(60);
  for (const { log, timeline, total, rules } of [begin, within]) {
    expect(log).toMatchObject({ first: plain.log.first, last: plain.log.last, far: 2, late: 0 });
    expect({ ...timeline, requests: [] }).toEqual({ ...plain.timeline, requests: [] });
    expect(total.newlyDenied).toEqual(plain.total.newlyDenied);
    expect(rules[0]?.capacity).toEqual(plain.rules[0]?.capacity);
  }
});
