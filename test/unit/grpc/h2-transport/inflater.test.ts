import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { GrpcError } from '../../../../src/grpc/grpc-server.js';
import { type CompressedMessage, Inflater } from '../../../../src/grpc/h2-transport/inflater.js';
import { MessageReader, ReceiveBudget } from '../../../../src/grpc/h2-transport/message-reader.js';
import { prefixed } from '../../../support/h2/http2-client.js';

const LIMIT = 1_000_000;
const CONNECTION = {};
const STAYS = { connection: CONNECTION, cancelled: () => false };

const held = (message: Buffer): CompressedMessage => ({ message, lend: () => message });

function inflate(
  compressed: Buffer,
  encoding = 'gzip',
  inflater = new Inflater(LIMIT),
): Promise<Buffer | GrpcError> {
  return new Promise((resolve) => inflater.inflate(encoding, held(compressed), STAYS, resolve));
}

/** Returns bytes that gzip cannot compress. */
function noise(length: number): Buffer {
  let state = 1;
  const next = (): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state & 0xff;
  };
  return Buffer.from(Array.from({ length }, next));
}

describe('Inflater', () => {
  test('answers short messages before it returns', () => {
    const answers: unknown[] = [];
    new Inflater(LIMIT).inflate('gzip', held(gzipSync('short')), STAYS, (message) => answers.push(message));
    expect(answers).toEqual([Buffer.from('short')]);
  });

  test('needs no more of a long message than the bytes that inflate to what is kept', async () => {
    const inflater = new Inflater(65_537);
    const inflated = await inflate(gzipSync(noise(200_000)).subarray(0, 65_537 + 1024), 'gzip', inflater);
    expect(inflated).toHaveLength(65_537);
  });

  test.each([
    ['no gzip', Buffer.from('not gzip at all')],
    ['cut off', gzipSync('hello').subarray(0, 12)],
    ['nothing at all', Buffer.alloc(0)],
    ['damaged, and long', Buffer.concat([gzipSync(noise(20_000)).subarray(0, 15_000), Buffer.alloc(5000)])],
  ])('refuses %s', async (_name, bytes) => {
    expect(await inflate(bytes)).toMatchObject({ code: 13 });
  });

  test('drops messages whose callers have disconnected', async () => {
    const inflater = new Inflater(LIMIT);
    const errors: unknown[] = [];
    const compressed = held(gzipSync(noise(20_000)));
    let gone = false;
    for (let i = 0; i < 10; i++) {
      const leaver = { connection: CONNECTION, cancelled: () => gone };
      inflater.inflate('gzip', compressed, leaver, (message) => errors.push(message));
    }
    gone = true;
    expect(await inflate(gzipSync(noise(10_000)), 'gzip', inflater)).toHaveLength(10_000);
    expect(errors).toEqual([]);
  });

  test('frees a dropped message even if many messages are queued before it', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const inflater = new Inflater(LIMIT);
    let isGone = false;
    const seen: WeakRef<Buffer>[] = [];
    const before = Array.from({ length: 10 }, () => inflate(gzipSync(noise(90_000)), 'gzip', inflater));
    const leave = (): void => {
      const reader = new MessageReader(LIMIT, new ReceiveBudget(LIMIT));
      const framed = prefixed(gzipSync(noise(20_000)), true);
      reader.read(framed, 0, framed.length);
      seen.push(new WeakRef(reader.message));
      inflater.inflate('gzip', reader, { connection: CONNECTION, cancelled: () => isGone }, () => {});
      isGone = true;
      reader.drop();
    };
    leave();
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    expect(seen.map((message) => message.deref())).toEqual([undefined]);
    await Promise.all(before);
  });

  test('decompresses many long messages', async () => {
    const inflater = new Inflater(LIMIT);
    const message = noise(20_000);
    const compressed = gzipSync(message);
    const all = await Promise.all(Array.from({ length: 20 }, () => inflate(compressed, 'gzip', inflater)));
    expect(all.filter((one) => !(one instanceof GrpcError) && one.equals(message))).toHaveLength(20);
  });
});
