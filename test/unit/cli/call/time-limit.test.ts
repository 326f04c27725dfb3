import { request } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { limitTime } from '../../../../src/cli/call/debug-call.js';

let server: Server | undefined;

async function stop(): Promise<void> {
  await new Promise((resolve) => server?.close(resolve));
}

afterEach(stop);

/**
 * Sends a request with a total timeout of `ms` to a server that runs `answer` when the request arrives. Returns the
 * body of the answer, or the error message.
 */
async function send(ms: number, answer: (socket: Socket) => void): Promise<string> {
  server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => answer(socket));
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk;
      });
      response.on('error', ({ message }) => resolve(message));
      response.on('end', () => resolve(text));
    });
    sent.on('error', ({ message }) => resolve(message));
    limitTime(sent, ms);
    sent.end();
  });
}

/** Sends a text, one byte every 10 ms. */
function drip(socket: Socket, text: string): void {
  let at = 0;
  const timer = setInterval(() => {
    if (socket.destroyed) clearInterval(timer);
    else socket.write(text[at++] ?? 'a');
  }, 10);
}

test.each([
  ['heads', ''],
  ['bodies', 'HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n'],
])('%s that arrive byte by byte end with the timeout', async (_, head) => {
  const result = await send(200, (socket) => {
    socket.write(head);
    drip(socket, head === '' ? `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(100_000)}` : 'a');
  });
  expect(result).toMatch(head === '' ? /^no answer within 200 ms$/ : /^(?:no answer within 200 ms|aborted)$/);
});
