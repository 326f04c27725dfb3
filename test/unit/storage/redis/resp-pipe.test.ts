import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { ReplyBound } from '../../../../src/storage/redis/connection/reply-bound.js';
import { RespPipe } from '../../../../src/storage/redis/connection/resp-pipe.js';

const TEXT: ReplyBound = { integers: 1, textBytes: 16 };

/** The remote end of a connection. */
class FakeStream {
  writable = true;
  readonly written: Buffer[] = [];
  private listener: (chunk: Buffer) => void = () => {};

  write(text: string, encoding: 'latin1' | 'utf8'): void {
    this.written.push(Buffer.from(text, encoding));
  }

  on(_event: 'data', listener: (chunk: Buffer) => void): void {
    this.listener = listener;
  }

  answer(wire: string): void {
    this.listener(Buffer.from(wire));
  }

  get text(): string {
    return Buffer.concat(this.written).toString();
  }
}

let stream: FakeStream;
let broken: string[];
let pipe: RespPipe;

beforeEach(() => {
  stream = new FakeStream();
  broken = [];
  pipe = new RespPipe(stream, (error) => broken.push(error.message));
});

describe('commands', () => {
  test('of one turn share a write', async () => {
    const first = pipe.send('get', ['a'], TEXT);
    const second = pipe.send('set', ['b', '', '22'], TEXT);
    await Promise.resolve();
    expect(stream.written).toHaveLength(1);
    expect(stream.text).toBe(
      '*2\r\n$3\r\nget\r\n$1\r\na\r\n*4\r\n$3\r\nset\r\n$1\r\nb\r\n$0\r\n\r\n$2\r\n22\r\n',
    );
    stream.answer('$1\r\n1\r\n+OK\r\n');
    expect(await Promise.all([first, second])).toEqual(['1', 'OK']);
  });

  test('have lengths in bytes, whatever other commands the turn contains', async () => {
    void pipe.send('get', ['plain'], TEXT);
    void pipe.send('get', ['\u00e9\u20ac\u{1f600}', 'ascii'], TEXT);
    await Promise.resolve();
    expect(stream.text).toBe(
      '*2\r\n$3\r\nget\r\n$5\r\nplain\r\n*3\r\n$3\r\nget\r\n$9\r\n\u00e9\u20ac\u{1f600}\r\n$5\r\nascii\r\n',
    );
    void pipe.send('get', ['again'], TEXT);
    await Promise.resolve();
    expect(stream.written.at(-1)?.toString()).toBe('*2\r\n$3\r\nget\r\n$5\r\nagain\r\n');
  });

  test('get their replies in the order in which they were sent', async () => {
    const sent = ['a', 'b', 'c'].map((key) => pipe.send('get', [key], TEXT));
    stream.answer('$1\r\n1\r\n$1');
    stream.answer('\r\n2\r\n$1\r\n3\r\n');
    expect(await Promise.all(sent)).toEqual(['1', '2', '3']);
  });

  test('reject with an error of Redis, and later commands continue', async () => {
    const wrong = pipe.send('get', [], TEXT);
    const right = pipe.send('get', ['a'], TEXT);
    stream.answer('-ERR wrong number of arguments\r\n*1\r\n:7\r\n');
    await expect(wrong).rejects.toThrow('ERR wrong number of arguments');
    expect(await right).toEqual([7]);
  });
});

describe('the end', () => {
  test('rejects waiting and later commands', async () => {
    const waiting = pipe.send('get', ['a'], TEXT);
    pipe.end(new Error('the connection is closed'));
    await expect(waiting).rejects.toThrow('the connection is closed');
    await expect(pipe.send('get', ['b'], TEXT)).rejects.toThrow('the connection is closed');
    expect([stream.written, broken]).toEqual([[], []]);
  });

  test('follows a malformed reply, and no further data is read', async () => {
    const both = [pipe.send('get', ['a'], TEXT), pipe.send('get', ['b'], TEXT)];
    stream.answer('HTTP/1.1 400 Bad Request\r\n');
    stream.answer('$1\r\n1\r\n');
    expect(broken).toEqual(['malformed reply: an unknown type']);
    pipe.end(new Error('the connection is closed'));
    for (const one of both) await expect(one).rejects.toThrow('the connection is closed');
  });

  test('follows a reply that exceeds the bound of its own command', async () => {
    const numbers = pipe.send('evalsha', ['a'], { integers: 3, textBytes: 0 });
    const text = pipe.send('get', ['a'], TEXT);
    stream.answer('*3\r\n:1\r\n:2\r\n:3\r\n*3\r\n:1\r\n');
    expect(await numbers).toEqual([1, 2, 3]);
    expect(broken).toEqual(['malformed reply: an array is longer than requested']);
    pipe.end(new Error('the connection is closed'));
    await expect(text).rejects.toThrow('the connection is closed');
  });

  test('follows a reply without a command', () => {
    stream.answer('+OK\r\n');
    expect(broken).toEqual(['malformed reply: no request was sent']);
  });

  test('of the stream loses earlier commands, and commands that are sent before its event', async () => {
    const lost: string[] = [];
    const send = (key: string) => {
      pipe.send('get', [key], TEXT).catch(() => lost.push(key));
    };
    send('a');
    await setImmediate();
    stream.writable = false;
    send('b');
    await setImmediate();
    expect(lost).toEqual([]);
    expect(stream.text).not.toContain('$1\r\nb');
    pipe.end(new Error('the connection is closed'));
    await setImmediate();
    expect(lost).toEqual(['a', 'b']);
  });
});
