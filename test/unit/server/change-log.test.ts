import { describe, expect, test } from '@jest/globals';
import type { ChangeSummary } from '../../../src/config/diff/render-diff.js';
import type { PolicySet } from '../../../src/policy/compiled-policy.js';
import { logChanges } from '../../../src/server/policies/policy-log.js';
import type { Logger } from '../../../src/telemetry/logger.js';
import { FakeClock } from '../../support/clock/fake-clock.js';

const setOf = (version: string): PolicySet => ({ domains: new Map(), version });

/** Opens a change log whose comparisons end when the test resolves them. */
function open(first: PolicySet | undefined) {
  let current = first;
  const listeners: ((success: boolean) => void)[] = [];
  const lines: [string, object, string][] = [];
  const note = (level: string) => (fields: object, text: string) => lines.push([level, fields, text]);
  const diffs: { readonly of: string; readonly end: (told: ChangeSummary | Error) => void }[] = [];
  const close = logChanges(
    { info: note('info'), warn: note('warn') } as unknown as Logger,
    { current: () => current, onReload: (listener) => listeners.push(listener) },
    new FakeClock(),
    {
      diff: (before, after) =>
        new Promise((resolve, reject) => {
          const end = (told: ChangeSummary | Error) => (told instanceof Error ? reject(told) : resolve(told));
          diffs.push({ of: `${before.version} ${after.version}`, end });
        }),
      close: () => {},
    },
  );
  const reload = (next: PolicySet): void => {
    current = next;
    for (const listener of listeners) listener(true);
  };
  const end = async (told: ChangeSummary | Error): Promise<void> => {
    diffs.at(-1)?.end(told);
    await new Promise(setImmediate);
  };
  return { close, lines, diffs, reload, end };
}

const TOLD: ChangeSummary = {
  summary: '1 tightens',
  lines: [{ domain: 'd', text: 'k: tightens: …' }],
  more: 0,
};

describe('the log of changes by reloads', () => {
  test('lists each change, and the number of omitted changes', async () => {
    const { lines, reload, end } = open(setOf('a'));
    reload(setOf('b'));
    await end({ ...TOLD, more: 7 });
    expect(lines).toEqual([
      [
        'info',
        { before: 'a', policy: 'b' },
        'changes in the new policy: 1 tightens; 7 more changes not listed (to see all changes, run weir ' +
          'diff <old> <new>)',
      ],
      ['info', { domain: 'd', policy: 'b' }, 'k: tightens: …'],
    ]);
  });

  test('compares one pair at a time, and skips policies that are replaced meanwhile', async () => {
    const { diffs, reload, end } = open(setOf('a'));
    for (const version of ['b', 'c', 'd']) reload(setOf(version));
    expect(diffs.map(({ of }) => of)).toEqual(['a b']);
    await end(TOLD);
    await end(TOLD);
    expect(diffs.map(({ of }) => of)).toEqual(['a b', 'b d']);
    reload(setOf('e'));
    expect(diffs.at(-1)?.of).toBe('d e');
  });

  test('is silent about the first policy, and about reloads that change nothing', () => {
    const { diffs, reload } = open(undefined);
    const first = setOf('a');
    reload(first);
    reload(first);
    expect(diffs).toEqual([]);
  });

  test('reports that the comparison failed, and continues', async () => {
    const { lines, diffs, reload, end } = open(setOf('a'));
    reload(setOf('b'));
    await end(new Error('the comparison took longer than 20 s'));
    expect(lines).toEqual([
      [
        'warn',
        { before: 'a', policy: 'b' },
        'the changes in the new policy could not be listed: the comparison took longer than 20 s; to ' +
          'see the changes, run weir diff <old> <new>',
      ],
    ]);
    reload(setOf('c'));
    expect(diffs.at(-1)?.of).toBe('b c');
  });

  test('logs nothing after it is closed', async () => {
    const { close, lines, reload, end } = open(setOf('a'));
    reload(setOf('b'));
    close();
    await end(new Error('the thread that compares policies exited'));
    reload(setOf('c'));
    expect(lines).toEqual([]);
  });
});
