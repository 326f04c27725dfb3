import { connect, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { InFlight } from './in-flight.js';

/** Commands of the take script that add and remove holds, as MONITOR prints them: time, command, key, arguments. */
const LUA_COMMAND = /^\+(\d+\.\d+) \[\d+ lua\] "(ZADD|ZREM)" "((?:[^"\\]|\\.)*)" (.*)$/;
const ARGUMENT = /"((?:[^"\\]|\\.)*)"/g;
const ESCAPES = new Map(
  [...'\x07a\bb\tt\nn\rr""\\\\'.matchAll(/(.)(.)/gs)].map(([, from, to]) => [from, to]),
);

/** Returns bytes as MONITOR prints them. */
function printed(bytes: Buffer): string {
  return bytes.toString('latin1').replace(/[^ !#-[\]-~]/gs, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(2, '0');
    return `\\${ESCAPES.get(character) ?? `x${code}`}`;
  });
}

/** The holds of one bucket at every instant, from the commands that Redis executes (MONITOR). Close it after use. */
export class HoldLedger {
  private readonly caller: string;
  private readonly max: number;
  /** The holds by their members of the sorted set. Times are in seconds since the epoch. */
  readonly holds = new InFlight();
  private socket: Socket | undefined;
  private unread = '';
  private fullSince: number | undefined;
  private fullSeconds = 0;
  private firstFull: number | undefined;
  /** Number of holds placed so far. */
  placed = 0;

  /** Creates the ledger of the bucket of a caller with `max` slots. */
  constructor(caller: string, max: number) {
    this.caller = caller;
    this.max = max;
  }

  /** Follows a Redis on 127.0.0.1 that no weir calls yet. Its holds replace the previous ones. */
  async follow(redisPort: number): Promise<void> {
    this.close();
    const socket = connect(redisPort, '127.0.0.1').on('error', () => {});
    socket.write('MONITOR\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    this.holds.replace(await this.stored(redisPort));
    this.unread = '';
    this.socket = socket.setEncoding('latin1').on('data', (text: string) => this.read(text));
  }

  /** Returns the share of the time from the first full occupation until now in which all slots were held. */
  fullShare(nowSeconds: number): number {
    if (this.firstFull === undefined) return 0;
    const current = this.fullSince === undefined ? 0 : nowSeconds - this.fullSince;
    return (this.fullSeconds + current) / (nowSeconds - this.firstFull);
  }

  close(): void {
    this.socket?.destroy();
  }

  private async stored(port: number): Promise<Map<string, number>> {
    const redis = new Redis({ port, host: '127.0.0.1' });
    try {
      const [key] = (await redis.keys('*')).filter((name) => name.includes(this.caller));
      if (key === undefined) return new Map();
      const replies = await redis.zrangebyscoreBuffer(key, '0', '+inf', 'WITHSCORES');
      const members = replies.filter((_, index) => index % 2 === 0);
      return new Map(
        members.map((member, i) => [printed(member), Number(replies[2 * i + 1]?.toString()) / 1e6]),
      );
    } finally {
      redis.disconnect();
    }
  }

  private read(text: string): void {
    const lines = (this.unread + text).split('\r\n');
    this.unread = lines.pop() ?? '';
    for (const line of lines) {
      const [, time, command, key, rest] = LUA_COMMAND.exec(line) ?? [];
      if (time === undefined || rest === undefined || !key?.includes(this.caller)) continue;
      this.apply(
        Number(time),
        command === 'ZADD',
        Array.from(rest.matchAll(ARGUMENT), ([, argument]) => argument ?? ''),
      );
    }
  }

  private apply(now: number, isPlaced: boolean, args: readonly string[]): void {
    if (isPlaced) {
      // The first argument is CH. Holds have positive scores.
      for (let i = 1; i < args.length; i += 2) {
        const score = Number(args[i]);
        if (score < 0) continue;
        this.holds.place(args[i + 1] as string, score / 1e6, now);
        this.placed++;
      }
    } else for (const member of args) this.holds.end(member, now);
    const isFull = this.holds.countAt(now) >= this.max;
    if (isFull) {
      this.fullSince ??= now;
      this.firstFull ??= now;
    } else if (this.fullSince !== undefined) {
      this.fullSeconds += now - this.fullSince;
      this.fullSince = undefined;
    }
  }
}
