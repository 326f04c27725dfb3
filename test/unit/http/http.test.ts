import { type ClientRequest, request } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { failed, type HttpListener, listenHttp, text } from '../../../src/http/http.js';
import { httpRequest } from '../../support/process/http-client.js';
import { waitFor } from '../../support/process/wait-for.js';

describe('requests with bodies', () => {
  let listener: HttpListener;
  const bodies: string[] = [];
  const errors: unknown[] = [];
  beforeEach(async () => {
    listener = await listenHttp('127.0.0.1', 0, {
      endpoints: [
        {
          path: '/post',
          help: 'keeps bodies',
          maxBodyBytes: 100,
          answer: ({ body }) => {
            bodies.push(String(body));
            if (String(body) === 'throw') throw new Error('broken');
            return text(200, `${body.length}\n`);
          },
        },
      ],
      bodyLimits: { maxCalls: 2, maxHeldBytes: 60 },
      onError: (error) => errors.push(error),
    });
  });
  afterEach(() => listener.close());

  const post = (body: string) => httpRequest(listener.port, '/post', { method: 'POST', body });

  /** Sends a request whose body never ends. Resolves once the server has received its head. */
  function unfinished(start: string): Promise<ClientRequest> {
    return new Promise((resolve) => {
      const headers = { expect: '100-continue' };
      const outgoing = request({
        host: '127.0.0.1',
        port: listener.port,
        path: '/post',
        method: 'POST',
        headers,
      });
      outgoing.on('error', () => {});
      outgoing.once('continue', () => outgoing.write(start, () => resolve(outgoing)));
      outgoing.flushHeaders();
    });
  }
  const statusBecomes = (status: number, body: string) =>
    waitFor(`status ${status}`, async () => (await post(body)).status === status || undefined);

  test('accepts as many concurrent calls as the limit, and more after these have ended', async () => {
    const slow = [await unfinished('a'), await unfinished('b')];
    expect((await post('c')).status).toBe(503);
    slow[0]?.destroy();
    await statusBecomes(200, 'c');
    slow[1]?.destroy();
  });

  test('buffers as many bytes as the limit, or one long body', async () => {
    expect((await post('x'.repeat(100))).status).toBe(200);
    expect((await post('x'.repeat(101))).status).toBe(413);
    const slow = await unfinished('x'.repeat(50));
    await statusBecomes(503, 'y'.repeat(11));
    expect((await post('y'.repeat(10))).status).toBe(200);
    slow.destroy();
    await statusBecomes(200, 'y'.repeat(11));
  });

  test('an error has its reason in the body, and in a header', () => {
    const { body, headers } = failed(400, 'not\r\n\u00fcber\u2026 good');
    expect([body, headers]).toEqual(['Bad Request\nnot?ber? good\n', { 'x-weir-reason': 'not?ber? good' }]);
  });

  test('an exception in an endpoint is an internal error', async () => {
    expect((await post('throw')).status).toBe(500);
    expect(errors).toMatchObject([{ message: 'broken' }]);
  });

  test('a drain waits for current calls, for a limited time', async () => {
    await listener.drain(60_000);
    expect((await post('z')).status).toBe(503);
    expect(bodies).not.toContain('z');
  });

  test('a drain gives up on a body that never ends', async () => {
    const slow = await unfinished('a');
    await listener.drain(10);
    slow.destroy();
  });
});
