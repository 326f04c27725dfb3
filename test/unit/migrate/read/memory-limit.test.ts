import { expect, test } from '@jest/globals';
import { memoryFindings } from '../../../../src/migrate/read/memory-limit.js';
import { NO_ENVIRONMENT } from '../../../../src/migrate/read/workload.js';

const textsOf = (limit: string, writtenFor: 'compose' | 'kubernetes', options?: string) => {
  const variables: Record<string, string> = options === undefined ? {} : { NODE_OPTIONS: options };
  return memoryFindings('it', limit, writtenFor, { ...NO_ENVIRONMENT, variables }).map(({ text }) => text);
};
const BOUND = '--max-old-space-size=160';

test('docker compose uses powers of 1024, and Kubernetes only with an i in the unit', () => {
  for (const limit of ['256M', '256m', '256mb', '0.25g', '262144k', '268435456', '268435456b'])
    expect({ limit, texts: textsOf(limit, 'compose', BOUND) }).toEqual({ limit, texts: [] });
  for (const limit of ['256Mi', '262144Ki', '0.25Gi', '269M', '268435456'])
    expect({ limit, texts: textsOf(limit, 'kubernetes', BOUND) }).toEqual({ limit, texts: [] });
  expect(textsOf('256M', 'kubernetes', BOUND)).toEqual([
    'the memory limit is 256M, but weir uses about 100 MB before its first call; raise the limit to ' +
      'at least 256Mi.',
  ]);
});

test('settings for small containers', () => {
  expect(textsOf('128m', 'compose')).toEqual([
    'the memory limit is 128m, but weir uses about 100 MB before its first call; raise the limit to ' +
      '512m, or raise it to 256m and set NODE_OPTIONS=--max-old-space-size=160.',
  ]);
  expect(textsOf('128Mi', 'kubernetes', '--max_old_space_size=100')).toEqual([
    expect.stringContaining('raise the limit to at least 256Mi.'),
  ]);
});

test('with 256 MiB, only the heap needs a limit, and with 512 MiB nothing does', () => {
  const heap = [
    'the memory limit is 256Mi, but the heap of Node.js alone can grow to 256 MiB; set ' +
      'NODE_OPTIONS=--max-old-space-size=160, or raise the limit to 512Mi.',
  ];
  expect(textsOf('256Mi', 'kubernetes')).toEqual(heap);
  expect(textsOf('256Mi', 'kubernetes', '--enable-source-maps')).toEqual(heap);
  const hidden = { ...NO_ENVIRONMENT, unknown: new Set(['NODE_OPTIONS']) };
  expect(memoryFindings('it', '256Mi', 'kubernetes', hidden)).toEqual([]);
  for (const limit of ['512m', '1g']) expect(textsOf(limit, 'compose')).toEqual([]);
});

test('there is no note for an invalid or unknown limit', () => {
  for (const limit of ['', '$\x7bMEMORY}', '1e6', '12 parsecs', 'lots'])
    expect({ limit, texts: textsOf(limit, 'compose') }).toEqual({ limit, texts: [] });
});
