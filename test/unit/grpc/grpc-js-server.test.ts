import { describe, expect, test } from '@jest/globals';
import { createClientCodec } from '../../../src/codec/client-codec.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import { GrpcJsServer } from '../../../src/grpc/grpc-js-server.js';
import type { ServerCall } from '../../../src/grpc/grpc-server.js';
import { BYTES } from '../../support/grpc/bytes-encoder.js';
import { RawClient } from '../../support/grpc/grpc-client.js';
import { SERVER_BOUNDS } from '../../support/grpc/server-bounds.js';
import { closeLater } from '../../support/process/close-later.js';
import { waitFor } from '../../support/process/wait-for.js';

const NEVER = Number.POSITIVE_INFINITY;
const REQUEST = createClientCodec().encodeRequest({ domain: 'd', descriptors: [], hitsAddend: 0 });
const RESPONSE = Buffer.of(8, 1);

interface HeldCall {
  readonly info: ServerCall;
  answer(response: Uint8Array): void;
}

describe('the reset of a call on the plain stack', () => {
  async function start(): Promise<{ cancel(): void; held: HeldCall; reply: Promise<unknown> }> {
    const held: HeldCall[] = [];
    const server = new GrpcJsServer({
      ...SERVER_BOUNDS,
      ...{ maxReceiveMessageBytes: 1000, maxConcurrentStreams: 100, maxHeaderListBytes: 16_384 },
      ...{ maxConnectionAgeMs: NEVER, maxConnectionAgeGraceMs: NEVER },
      ...{ keepAliveIntervalMs: NEVER, keepAliveTimeoutMs: 20_000 },
      monotonicMicros: () => 0,
      onError: () => {},
      onBadConnection: () => {},
    });
    server.addUnary(
      SHOULD_RATE_LIMIT_PATH,
      (_request, info) => new Promise((answer) => held.push({ info, answer })),
      BYTES,
    );
    closeLater(server, () => server.close());
    const port = await server.listen({ host: '127.0.0.1', port: 0 });
    const client = new RawClient(`127.0.0.1:${port}`);
    const { reply, cancel } = client.start(SHOULD_RATE_LIMIT_PATH, REQUEST);
    return { reply, cancel, held: await waitFor('the call', () => held[0]) };
  }

  test('is known with the answer if the caller canceled the call before', async () => {
    const { held, cancel } = await start();
    cancel();
    await waitFor('the call to count as canceled', () => held.info.cancelled() || undefined);
    const reset = new Promise<void>((resolve) => {
      held.info.resetListener = { onReset: resolve, onForgotten: () => {} };
    });
    held.answer(RESPONSE);
    await reset;
  });

  test('is forgotten if the answer is sent', async () => {
    const { held, reply } = await start();
    const events: string[] = [];
    held.info.resetListener = {
      onReset: () => void events.push('reset'),
      onForgotten: () => void events.push('forgotten'),
    };
    held.answer(RESPONSE);
    expect(await reply).toMatchObject({ code: 0 });
    expect(events).toEqual(['forgotten']);
  });
});
