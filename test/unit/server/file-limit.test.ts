import { describe, expect, test } from '@jest/globals';
import { checkFileLimit, fileLimitWarning } from '../../../src/server/node-process.js';

const limits = (files: string): string =>
  `Limit                     Soft Limit           Hard Limit           Units
Max processes             7823                 7823                 processes
Max open files            ${files.padEnd(20)} 1048576              files
Max locked memory         8388608              8388608              bytes
`;

describe('the limit of open files', () => {
  test.each([
    ['1048576', 20_000],
    ['20000', 20_000],
    ['unlimited', 20_000],
  ])('%s is enough for %d connections', (files, connections) => {
    expect(checkFileLimit(limits(files), connections)).toBeUndefined();
  });

  test.each([
    ['1024', 20_000],
    ['19999', 20_000],
  ])('%s is too low for %d connections', (files, connections) => {
    expect(checkFileLimit(limits(files), connections)).toBe(
      `this process can open only ${files} files, too few for GRPC_MAX_CONNECTIONS=${connections}; ` +
        `raise the limit (ulimit -n) to ${connections + 100}, or lower the setting`,
    );
  });

  test('is read of this process', () => {
    expect(fileLimitWarning(1)).toBeUndefined();
  });
});
