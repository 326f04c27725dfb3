import { type AddressInfo, createServer, type Socket } from 'node:net';

/** A fake cluster node that reports masters that do not exist. Stop it after use. */
export interface FakeClusterNode {
  readonly address: string;
  /** Returns how often clients asked for the slots. */
  slotQueries(): number;
  stop(): Promise<void>;
}

const SLOTS = 16_384;
const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

/** Returns an answer to CLUSTER SLOTS with `masters` masters, on addresses of this machine whose port 1 is closed. */
function slotsOf(masters: number): string {
  const each = Math.floor(SLOTS / masters);
  const rows = Array.from({ length: masters }, (_, i) => {
    const last = i === masters - 1 ? SLOTS - 1 : (i + 1) * each - 1;
    const id = i.toString(16).padStart(40, '0');
    return `*3\r\n:${i * each}\r\n:${last}\r\n*3\r\n${bulk(`127.1.${i >> 8}.${i & 255}`)}:1\r\n${bulk(id)}`;
  });
  return `*${masters}\r\n${rows.join('')}`;
}

/** Returns the end of the first command, whose words contain no line breaks; 0 if the command is incomplete. */
function endOfCommand(text: string): number {
  const words = /^\*(\d+)\r\n/.exec(text)?.[1];
  if (words === undefined) return 0;
  const lines = text.split('\r\n');
  const count = 1 + 2 * Number(words);
  return lines.length > count ? lines.slice(0, count).join('\r\n').length + 2 : 0;
}

/** Starts a fake node on 127.0.0.1 that reports `masters` masters. It speaks RESP over TCP. */
export async function startFakeClusterNode(masters: number): Promise<FakeClusterNode> {
  const slots = slotsOf(masters);
  const info = bulk('cluster_state:ok\r\ncluster_current_epoch:5\r\n');
  const sockets = new Set<Socket>();
  let slotQueries = 0;
  const answerTo = (command: string): string => {
    if (/slots/i.test(command)) {
      slotQueries++;
      return slots;
    }
    return /info/i.test(command) ? info : '+OK\r\n';
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      for (let end = endOfCommand(text); end > 0; end = endOfCommand(text)) {
        socket.write(answerTo(text.slice(0, end)));
        text = text.slice(end);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    slotQueries: () => slotQueries,
    stop: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
