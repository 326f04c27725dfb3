import { afterEach, expect, jest, test } from '@jest/globals';
import { FollowedFiles } from '../../../src/server/followed-files.js';
import { TempDir } from '../../support/process/temp-dir.js';

let files: FollowedFiles<string> | undefined;
afterEach(() => {
  files?.close();
  jest.useRealTimers();
});

test('an error of the listener does not end the reads', async () => {
  // Only the test reads again.
  jest.useFakeTimers({
    doNotFake: ['nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'setTimeout'],
  });
  const folder = new TempDir();
  const path = folder.write('word', 'first');
  files = new FollowedFiles([{ variable: 'WORD_FILE', path }], ([text = '']) => text);
  const read: string[] = [];
  files.follow({
    read(content) {
      read.push(content);
      if (content === 'second') throw new Error('the listener fails');
    },
    failed: () => {},
  });
  await files.refresh();
  folder.write('word', 'second');
  await expect(files.refresh()).rejects.toThrow('the listener fails');
  folder.write('word', 'third');
  await files.refresh();
  expect(read.at(-1)).toBe('third');
});
