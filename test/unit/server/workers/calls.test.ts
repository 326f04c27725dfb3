import { expect, test } from '@jest/globals';
import {
  CallChannel,
  type CallHandlers,
  type CallMessage,
  ROWS_PER_PART,
  sendRows,
} from '../../../../src/server/workers/calls.js';

const QUESTION = { kind: 'look', of: 'minute', keys: [] } as const;
const ABOUT = { covers: 1 } as never;
const ROWS = Array.from({ length: 3 * ROWS_PER_PART + 1 }, (_, at) => at as never);

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

test('an answer comes in parts', async () => {
  const { one, messages } = channelTo({
    top: async (question, sendPart) => {
      expect(question).toEqual(QUESTION);
      await sendRows(ROWS, sendPart);
      return ABOUT;
    },
  });
  const rows: unknown[] = [];
  expect(await one.ask('top', QUESTION, (part) => rows.push(...part))).toEqual(ABOUT);
  expect(rows).toEqual(ROWS);
  expect(messages.map(({ kind }) => kind)).toEqual(['part', 'part', 'part', 'part', 'answer']);
});

test('a process that does not answer is given up, and its late answers are ignored', async () => {
  const sent: CallMessage[] = [];
  const channel = new CallChannel(async (message) => void sent.push(message), {});
  let parts = 0;
  expect(await channel.ask('top', QUESTION, () => parts++, 1)).toBeUndefined();
  const id = sent[0]?.id ?? 0;
  await channel.receive({ kind: 'part', id, part: [] });
  await channel.receive({ kind: 'answer', id, answer: ABOUT });
  expect(parts).toBe(0);
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
