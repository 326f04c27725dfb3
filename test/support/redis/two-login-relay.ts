import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';

/** A Redis that refuses some commands inside scripts, but accepts them outside. */
export interface TwoLoginRelay {
  readonly port: number;
  /** Names of the received commands, in order. */
  readonly commands: readonly string[];
  close(): Promise<void>;
}

/**
 * Listens on 127.0.0.1 in front of the Redis at `redisPort` and forwards each command, in order. Commands named
 * `outside` use the login of the default user; all others, including scripts, use `user`. Managed services behave like
 * this if their scripts may not call some commands. Redis itself cannot be configured this way.
 */
export async function startTwoLoginRelay(
  redisPort: number,
  user: { readonly username: string; readonly password: string },
  outside: readonly string[],
): Promise<TwoLoginRelay> {
  const byUser = new Redis(redisPort, '127.0.0.1', user);
  const byDefault = new Redis(redisPort, '127.0.0.1');
  const sockets = new Set<Socket>();
  const commands: string[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    let rest: Buffer = Buffer.alloc(0);
    let answered: Promise<void> = Promise.resolve();
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      for (;;) {
        const read = readCommand(rest);
        if (read === undefined) return;
        rest = rest.subarray(read.end);
        const [name = '', ...args] = read.words;
        commands.push(name.toLowerCase());
        const client = outside.includes(name.toLowerCase()) ? byDefault : byUser;
        const reply = client.call(name, ...args).catch((error: Error) => error);
        answered = answered.then(async () => void socket.write(encode(await reply)));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    commands,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      byUser.disconnect();
      byDefault.disconnect();
    },
  };
}

/** Returns the words of a command (an array of bulk strings) and its end; undefined if it is incomplete. */
function readCommand(data: Buffer): { readonly words: string[]; readonly end: number } | undefined {
  let at = 0;
  const number = (): number | undefined => {
    const end = data.indexOf('\r\n', at);
    if (end < 0) return undefined;
    const value = Number(data.toString('latin1', at + 1, end));
    at = end + 2;
    return value;
  };
  const count = number();
  if (count === undefined) return undefined;
  const words: string[] = [];
  for (let i = 0; i < count; i++) {
    const length = number();
    if (length === undefined || at + length + 2 > data.length) return undefined;
    words.push(data.toString('utf8', at, at + length));
    at += length + 2;
  }
  return { words, end: at };
}

function encode(reply: unknown): string {
  if (reply instanceof Error) return `-${reply.message}\r\n`;
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (Array.isArray(reply)) return `*${reply.length}\r\n${reply.map(encode).join('')}`;
  const text = String(reply);
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}
