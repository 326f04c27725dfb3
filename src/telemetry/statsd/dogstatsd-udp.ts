import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { withTimeout } from '../../runtime/turns.js';
import type { GoRegExp } from '../go-regexp.js';
import { CLOSE_MS, type Encoded, MAX_WAITING, type SinkTarget, StatsSink } from './stats-sink.js';

/** Replaces a matching name by another name and tags. */
export interface Mogrifier {
  readonly pattern: GoRegExp;
  /** May contain `$1` for the text of the first group. */
  readonly name: string;
  readonly tags: readonly (readonly [string, string])[];
}

interface Mogrified {
  readonly name: string;
  readonly tags: readonly (readonly [string, string])[];
}

/** Replaces `$1` by the text of the group. Numbers without a group stay unchanged. */
function substitute(template: string, match: RegExpExecArray): string {
  return template.replaceAll(/\$(\d+)/g, (variable, digits: string) => {
    const group = Number(digits);
    return group < match.length ? (match[group] ?? '') : variable;
  });
}

/** Returns the result of the first mogrifier that matches a name. */
export function mogrify(mogrifiers: readonly Mogrifier[], name: string): Mogrified {
  for (const mogrifier of mogrifiers) {
    const match = mogrifier.pattern.exec(name);
    if (match === null) continue;
    return {
      name: substitute(mogrifier.name, match),
      tags: mogrifier.tags.map(([tag, value]) => [tag, substitute(value, match)] as const),
    };
  }
  return { name, tags: [] };
}

/**
 * Maximum bytes that fit into one Ethernet packet. Larger datagrams are fragmented, and losing one fragment means
 * losing the whole datagram.
 */
const MAX_PACKET_BYTES = 1432;

export interface DogStatsdUdpOptions extends SinkTarget {
  readonly mogrifiers: readonly Mogrifier[];
}

/** Sends dogstatsd over UDP, with several lines per packet. The host name is resolved again in each interval. */
export class DogStatsdUdp extends StatsSink {
  readonly name = 'dogstatsd';
  readonly #options: DogStatsdUdpOptions;
  /** Encoded names by name of the statistic. The number of names is bounded. */
  readonly #encoded = new Map<string, Encoded>();
  readonly #sockets = new Map<4 | 6, Socket>();
  #packet = '';
  #packetBytes = 0;
  #packetLines = 0;
  #packets: { readonly text: string; readonly lines: number }[] = [];
  #waiting = 0;
  #sending: Promise<void> | undefined;
  #failed = false;

  constructor(options: DogStatsdUdpOptions) {
    super();
    this.#options = options;
  }

  flush(): void {
    this.#endPacket();
    if (this.#packets.length > 0) this.#sending ??= this.#send();
  }

  async close(): Promise<void> {
    this.flush();
    await withTimeout(CLOSE_MS, this.#sending, () => {});
    for (const socket of this.#sockets.values()) socket.close();
    this.#sockets.clear();
  }

  protected override encode(name: string): Encoded {
    let encoded = this.#encoded.get(name);
    if (encoded === undefined) {
      const mogrified = mogrify(this.#options.mogrifiers, name);
      const tags = [...this.#options.tags, ...mogrified.tags].map(
        ([tag, value]) => `${tag}:${value.replaceAll(/[,|\n]/g, '_')}`,
      );
      encoded = { name: mogrified.name, tags: tags.length === 0 ? '' : `|#${tags.join(',')}` };
      this.#encoded.set(name, encoded);
    }
    return encoded;
  }

  protected override add(line: string): void {
    if (this.#waiting + line.length > MAX_WAITING) {
      this.dropped++;
      return;
    }
    this.#waiting += line.length;
    const bytes = Buffer.byteLength(line);
    if (this.#packetLines > 0 && this.#packetBytes + 1 + bytes > MAX_PACKET_BYTES) this.#endPacket();
    this.#packet += this.#packetLines === 0 ? line : `\n${line}`;
    this.#packetBytes += this.#packetLines === 0 ? bytes : bytes + 1;
    this.#packetLines++;
  }

  #endPacket(): void {
    if (this.#packetLines === 0) return;
    this.#packets.push({ text: this.#packet, lines: this.#packetLines });
    this.#packet = '';
    this.#packetBytes = 0;
    this.#packetLines = 0;
  }

  async #send(): Promise<void> {
    try {
      const { host, port } = this.#options;
      const { address, family } = await lookup(host);
      const socket = this.#socket(family === 6 ? 6 : 4);
      while (this.#packets.length > 0) {
        const { text, lines } = this.#packets.shift() as { text: string; lines: number };
        this.#waiting -= text.length - (lines - 1);
        // Packets are sent one after the other, because many at once overflow the receive buffer.
        const error = await new Promise<Error | null>((resolve) => socket.send(text, port, address, resolve));
        if (error !== null) this.#dropPacket(lines, error);
        else this.#failed = false;
      }
    } catch (error) {
      for (const { lines, text } of this.#packets.splice(0)) {
        this.#waiting -= text.length - (lines - 1);
        this.#dropPacket(lines, error as Error);
      }
    } finally {
      this.#sending = undefined;
    }
  }

  #dropPacket(lines: number, error: Error): void {
    this.dropped += lines;
    if (!this.#failed) {
      const { host, port, log } = this.#options;
      const where = `dogstatsd at ${host}:${port} (STATSD_HOST, STATSD_PORT)`;
      log('warn', `metrics for ${where} could not be sent and are lost: ${error.message}`);
    }
    this.#failed = true;
  }

  #socket(family: 4 | 6): Socket {
    let socket = this.#sockets.get(family);
    if (socket === undefined) {
      socket = createSocket(family === 6 ? 'udp6' : 'udp4');
      socket.unref();
      // The callback of each packet gets the same error.
      socket.on('error', () => {});
      this.#sockets.set(family, socket);
    }
    return socket;
  }
}
