import { describe, expect, test } from '@jest/globals';
import { LogOutput } from '../../../src/telemetry/log-output.js';
import { createLogger } from '../../../src/telemetry/logger.js';

/** Creates an output on a pipe with room for `room` bytes. */
function create(room: number, maxWaitingBytes = 1000) {
  let written = '';
  const pipe = { room, error: '' };
  const timers: (() => void)[] = [];
  const output = new LogOutput({
    write(bytes) {
      if (pipe.error !== '') throw Object.assign(new Error(pipe.error), { code: pipe.error });
      const taken = Math.min(bytes.length, pipe.room);
      if (taken === 0) throw Object.assign(new Error('full'), { code: 'EAGAIN' });
      written += Buffer.from(bytes.subarray(0, taken)).toString('latin1');
      pipe.room -= taken;
      return taken;
    },
    maxWaitingBytes,
    later: (callback) => timers.push(callback),
  });
  return {
    output,
    pipe,
    written: () => written,
    pass: () => {
      for (const callback of timers.splice(0)) callback();
    },
    timers,
  };
}

describe('a log that is read', () => {
  test('gets each line immediately', () => {
    const { output, written, timers } = create(Infinity);
    output.write('one\n');
    expect(written()).toBe('one\n');
    output.write('two\n');
    expect(written()).toBe('one\ntwo\n');
    expect(timers).toEqual([]);
  });
});

describe('a log without a reader', () => {
  test('keeps lines up to the bound, drops the rest, and marks the gap', () => {
    const { output, pipe, written, pass } = create(2, 12);
    output.onGap = (lines) => output.write(`${lines} missing\n`);
    for (const line of ['one\n', 'two\n', '3\n', 'four too long\n', '5\n']) output.write(line);
    expect([written(), output.dropped]).toEqual(['on', 2]);
    pass();
    expect(written()).toBe('on');
    pipe.room = 3;
    pass();
    expect(written()).toBe('one\nt');
    pipe.room = Infinity;
    pass();
    expect(written()).toBe('one\ntwo\n3\n2 missing\n');
    output.write('six\n');
    expect(written()).toBe('one\ntwo\n3\n2 missing\nsix\n');
    expect(output.dropped).toBe(2);
  });

  test('a line above the bound is dropped and reported', () => {
    const { output, written, pass } = create(Infinity, 12);
    output.onGap = (lines) => output.write(`${lines} missing\n`);
    output.write(`${'x'.repeat(20)}\n`);
    pass();
    expect(written()).toBe('1 missing\n');
  });

  test('drops and counts lines that cannot be written for another reason', () => {
    const { output, pipe, written } = create(Infinity);
    pipe.error = 'ENOSPC';
    output.write('one\n');
    output.write('two\n');
    pipe.error = '';
    output.write('three\n');
    expect([written(), output.dropped]).toEqual(['three\n', 2]);
  });

  test('completes a partly written line after a full disk, and reports each full disk once', () => {
    const { output, pipe, written, pass } = create(6);
    const told: (string | undefined)[] = [];
    output.onFailure = (error) => told.push(error?.code);
    output.write('one\n');
    output.write('two\n');
    pipe.error = 'ENOSPC';
    pass();
    output.write('three\n');
    expect([written(), output.dropped, told]).toEqual(['one\ntw', 2, ['ENOSPC']]);
    pipe.error = '';
    pipe.room = Infinity;
    output.write('four\n');
    output.write('five\n');
    expect([written(), output.dropped]).toEqual(['one\ntw\nfour\nfive\n', 2]);
    expect(told).toEqual(['ENOSPC', undefined]);
  });

  test('is written at the end as far as the reader accepts it, without a longer wait', () => {
    const { output, pipe, written } = create(0);
    for (const line of ['one\n', 'two\n']) output.write(line);
    let now = 0;
    const sleep = (ms: number): void => {
      now += ms;
      if (now === 100) pipe.room = 5;
    };
    output.end(sleep, () => now);
    expect(written()).toBe('one\nt');
    expect(now).toBeLessThan(1000);
    pipe.room = Infinity;
    output.end(sleep, () => now);
    expect(written()).toBe('one\ntwo\n');
  });
});

test('the line about dropped lines has the normal format', () => {
  const { output, pipe, written, pass } = create(0, 300);
  const log = createLogger({ level: 'info', format: 'json', colour: false }, output);
  for (let line = 0; line < 10; line++) log.info({ line }, 'hello');
  pipe.room = Infinity;
  pass();
  const lines = written()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { dropped } = output;
  expect(dropped).toBeGreaterThan(0);
  expect(lines.at(-1)).toMatchObject({
    level: 'warning',
    dropped,
    '@message': `${dropped} log lines were dropped because the log output was too slow or failed`,
  });
  expect(lines.length - 1 + dropped).toBe(10);
});

test('the text format has a line for each call', () => {
  const { output, written } = create(Infinity);
  const log = createLogger({ level: 'info', format: 'text', colour: false, worker: 3 }, output);
  log.info({ a: 1 }, 'hello');
  expect(written()).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: hello \{"worker":3,"a":1\}\n$/);
});

test('many loggers of one process add at most one listener to it', () => {
  const before = process.listenerCount('exit');
  for (let i = 0; i < 20; i++) {
    createLogger({ level: 'info', format: 'json', colour: false }, new LogOutput({ write: () => 0 }));
  }
  expect(process.listenerCount('exit')).toBeLessThanOrEqual(before + 1);
});
