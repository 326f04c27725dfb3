import { expect, test } from '@jest/globals';
import { runToEnd } from '../support/process/processes.js';
import { WEIR_MAIN } from '../support/weir/weir.js';

test.each([
  ['1', false],
  ['', true],
])('NO_COLOR=%j controls colours on a terminal', async (noColour, coloured) => {
  const asked = ['check', '--address', 'unix:/nowhere/nobody.sock', 'a=b'];
  const script = `process.stdout.isTTY = true;
    process.argv = [process.argv[0], ...${JSON.stringify([WEIR_MAIN, ...asked])}];
    require(${JSON.stringify(WEIR_MAIN)})`;
  const env = { NO_COLOR: noColour, TERM: 'xterm' };
  const { stdout } = await runToEnd(process.execPath, ['-e', script], { env });
  expect(stdout).toContain('UNAVAILABLE');
  expect(stdout.includes('\u001b')).toBe(coloured);
});
