import { truncateSync } from 'node:fs';
import { createServer } from 'node:net';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { loadRegularFile, readRegularFile } from '../../../src/runtime/regular-file.js';
import { IRREGULAR_FILES, type IrregularFile, replaceWith } from '../../support/process/irregular-files.js';
import { TempDir } from '../../support/process/temp-dir.js';

const MAX_BYTES = 200_000;

let folder: TempDir;
beforeEach(() => {
  folder = new TempDir();
});

describe.each([
  ['synchronously', async (path: string, maxBytes: number) => readRegularFile(path, maxBytes)],
  ['in the thread pool', loadRegularFile],
])('%s', (_, read) => {
  test.each([0, 1, 65_536, 65_537, MAX_BYTES])('a file of %d bytes is read completely', async (size) => {
    const text = 'weir '.repeat(size / 5 + 1).slice(0, size);
    expect((await read(folder.write('file', text), MAX_BYTES)).toString()).toBe(text);
  });

  test('a file with a reported size of 0 is read to its end, up to the maximum', async () => {
    expect((await read('/proc/self/status', MAX_BYTES)).toString()).toMatch(/^Name:.*\n$/s);
    await expect(read('/proc/self/status', 10)).rejects.toMatchObject({
      code: 'EFBIG',
      message: 'has more than 10 bytes',
    });
  });

  test.each(Object.keys(IRREGULAR_FILES) as IrregularFile[])(
    '%s is rejected immediately and not read',
    async (what) => {
      const path = folder.join('file');
      replaceWith(path, what);
      const before = process.memoryUsage().rss;
      await expect(read(path, MAX_BYTES)).rejects.toMatchObject({
        code: { 'a directory': 'EISDIR', 'a file of a gigabyte': 'EFBIG' }[what as string] ?? 'ENOTREG',
      });
      expect(process.memoryUsage().rss - before).toBeLessThan(100e6);
    },
  );

  test('a socket is rejected', async () => {
    const path = folder.join('socket');
    const server = createServer().listen(path);
    await new Promise((listening) => server.once('listening', listening));
    await expect(read(path, MAX_BYTES)).rejects.toMatchObject({ code: 'ENOTREG' });
    server.close();
  });

  test('a file that is one byte too large is rejected before it is read', async () => {
    const path = folder.write('file', '');
    truncateSync(path, MAX_BYTES + 1);
    await expect(read(path, MAX_BYTES)).rejects.toThrow('has 200001 bytes, more than the maximum of 200000');
  });

  test('errors of the file system are not changed', async () => {
    await expect(read(folder.join('none'), MAX_BYTES)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
