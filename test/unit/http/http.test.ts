import { type ClientRequest, request } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { failed, type HttpListener, listenHttp, text } from '../../../src/http/http.js';
import { httpRequest } from '../../support/process/http-client.js';
import { waitFor } from '../../support/process/wait-for.js';

describe('requests with bodies', () => {
  let listener: HttpListener;
  const bodies: string[] = [];
  const errors: unknown[] = [];
  beforeEach(async () => {
    bodies.length = 0;
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

  test('buffers as many bytes of a body as the limit allows', async () => {
    expect((await post('x'.repeat(100))).status).toBe(200);
    expect((await post('x'.repeat(101))).status).toBe(413);
  });

  test.each([
    ['without a host', 'POST /post HTTP/1.1\r\n', 0],
    ['with two hosts', 'POST /post HTTP/1.1\r\nHost: a\r\nHost: b\r\n', 2],
  ])('a request %s is refused', async (_, head, hosts) => {
    const socket = connect(listener.port, '127.0.0.1');
    let answer = '';
    socket.on('data', (data) => {
      answer += String(data);
    });
    socket.write(`${head}Content-Length: 1\r\n\r\nx`);
    await waitFor('the end of the connection', () => socket.closed);
    expect(answer).toMatch(
      new RegExp(`^HTTP/1.1 400 [^]*the request has ${hosts} Host headers; send exactly one\n$`),
    );
    expect(bodies).toEqual([]);
  });

  test.each([1, 7, 50])('joins a body that arrives in chunks of %d bytes', async (size) => {
    const sent = Array.from({ length: 100 }, (_, at) => at % 10).join('');
    const socket = connect(listener.port, '127.0.0.1');
    socket.write('POST /post HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n');
    for (let at = 0; at < sent.length; at += size) {
      const chunk = sent.slice(at, at + size);
      socket.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`);
    }
    socket.write('0\r\n\r\n');
    await waitFor('the body', () => bodies.length > 0);
    expect(bodies).toEqual([sent]);
    socket.destroy();
  });

  test('a chunked body that never ends is refused at the limit, and its connection is closed', async () => {
    const socket = connect(listener.port, '127.0.0.1');
    let answer = '';
    let closed = false;
    socket.on('error', () => {});
    socket.on('data', (data) => {
      answer += String(data);
    });
    socket.on('close', () => {
      closed = true;
    });
    socket.write('POST /post HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n');
    const write = (): void => {
      while (!closed && socket.write(`a\r\n${'x'.repeat(10)}\r\n`));
    };
    socket.on('drain', write);
    write();
    await waitFor('the end of the connection', () => closed);
    expect(answer).toMatch(/^HTTP\/1.1 413 [\s\S]*the body is longer than 100 bytes\n$/);
    expect(bodies).toEqual([]);
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
