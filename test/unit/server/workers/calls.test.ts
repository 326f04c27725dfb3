import { expect, test } from '@jest/globals';
import { CallChannel, type CallHandlers, type CallMessage } from '../../../../src/server/workers/messages.js';

const QUESTION = { kind: 'look', of: 'minute', keys: [] } as const;
const ABOUT = { covers: 1 } as never;
const ROWS = Array.from({ length: 200 }, (_, at) => at as never);

/** Returns a channel to a process with these handlers, and all messages of that process. */
function channelTo(handlers: CallHandlers) {
  const messages: CallMessage[] = [];
  const other: CallChannel = new CallChannel(async (message) => {
    messages.push(message);
    await one.receive(message);
  }, handlers);
  const one: CallChannel = new CallChannel((message) => other.receive(message), {});
  return { one, messages };
}

test('the rows of an answer come in parts', async () => {
  const { one, messages } = channelTo({
    top: async (question) => {
      expect(question).toEqual(QUESTION);
      return { rows: ROWS, about: ABOUT };
    },
    metrics: async () => ({ rows: ROWS.slice(0, 2), about: null }),
  });
  expect(await one.ask('top', QUESTION)).toEqual({ rows: ROWS, about: ABOUT });
  expect(messages.map(({ kind }) => kind)).toEqual(['part', 'part', 'part', 'part', 'answer']);
  expect(await one.ask('metrics', undefined)).toEqual({ rows: ROWS.slice(0, 2), about: null });
});

test('the next row is not computed before the previous part is sent', async () => {
  let sent = (): void => {};
  let computed = 0;
  const channel = new CallChannel(() => new Promise((resolve) => (sent = resolve)), {
    metrics: async () => ({
      about: null,
      rows: (function* () {
        for (const row of ROWS) {
          computed++;
          yield row;
        }
      })(),
    }),
  });
  void channel.receive({ kind: 'call', id: 1, name: 'metrics', question: undefined });
  for (let parts = 1; parts <= 3; parts++) {
    await new Promise(setImmediate);
    expect(computed).toBe(parts);
    sent();
  }
});

test('a process that does not answer is given up, and its late answers are ignored', async () => {
  const sent: CallMessage[] = [];
  const channel = new CallChannel(async (message) => void sent.push(message), {});
  expect(await channel.ask('top', QUESTION, 1)).toBeUndefined();
  const id = sent[0]?.id ?? 0;
  await channel.receive({ kind: 'part', id, rows: ROWS });
  await channel.receive({ kind: 'answer', id, about: ABOUT });
});

test('calls to a process that exits end without an answer', async () => {
  const channel = new CallChannel(async () => {}, {});
  const answers = [channel.ask('top', QUESTION), channel.ask('metrics', undefined)];
  channel.close();
  expect(await Promise.all(answers)).toEqual([undefined, undefined]);
});

test('a process without a handler has no answer, and the error of a handler is reported where it occurs', async () => {
  const { one } = channelTo({});
  expect(await one.ask('text', 'metrics')).toBeUndefined();
  const failing = new CallChannel(async () => {}, {
    text: () => Promise.reject(new Error('broken')),
  });
  await expect(failing.receive({ kind: 'call', id: 1, name: 'text', question: 'health' })).rejects.toThrow(
    'broken',
  );
});
