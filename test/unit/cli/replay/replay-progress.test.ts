import { expect, test } from '@jest/globals';
import { ReplayProgress } from '../../../../src/cli/replay/replay-progress.js';

test.each([
  [4200, '4200 lines read, 420 lines/s'],
  [4_200_000, '4200000 lines read, 420,000 lines/s'],
])('shows the rate of %i lines in ten seconds', (lines, text) => {
  let nowMs = 0;
  const shown: string[] = [];
  const output = { err: (line: string) => shown.push(line), isTerminal: false };
  const progress = new ReplayProgress('replay', output, () => nowMs);
  nowMs = 10_000;
  progress.show({ lines, bytesRead: 1, bytesTotal: undefined });
  expect(shown).toEqual([`weir replay: ${text}\n`]);
});
