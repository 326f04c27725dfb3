import { CLIENT_PREFACE, FLAG, FRAME_TYPE } from '../../src/h2/frames.js';
import { frame } from '../support/h2/h2-frames.js';
import type { Pair } from '../support/h2/hpack.js';
import { HpackWriter } from './hpack-writer.js';
import { mutate } from './mutate.js';
import type { Random } from './random.js';

const NONE = Buffer.alloc(0);
const FULL_FRAME = Buffer.alloc(16_384);
const WINDOW_SIZES = [0, 1, 10, 1000, 65_535, 65_536, 0x7fff_0000, 0x7fff_fffe, 0x7fff_ffff];
const SETTING_VALUES = [
  ...WINDOW_SIZES,
  100,
  4096,
  16_383,
  16_384,
  16_385,
  16_777_215,
  16_777_216,
  0xffff_ffff,
];
const INITIAL_WINDOW_SETTING = 4;
const MAX_FRAME_SETTING = 5;
/** Fields that make a request malformed (RFC 9113 sections 8.2 and 8.3), some of them only if they come last. */
const FORBIDDEN: readonly Pair[] = [
  ['connection', 'close'],
  ['upgrade', 'h2c'],
  ['te', 'gzip'],
  ['content-length', '7'],
  ['Capital', 'x'],
  [':path', '/twice'],
  [':authority', 'a b\n'],
  ['x-space', ' x'],
];
const TYPES = Object.values(FRAME_TYPE);

/** The bytes that one client sends: the preface and frames, valid or mutated. */
export class ConnectionInput {
  /** The preface and complete frames, valid or mutated. The client sends them joined. */
  readonly parts: Buffer[] = [CLIENT_PREFACE];
  private readonly random: Random;
  private readonly writer: HpackWriter;
  private nextStream = 1;
  /** Streams whose request has not ended. */
  private open: number[] = [];
  private readonly used: number[] = [];

  constructor(random: Random) {
    this.random = random;
    this.writer = new HpackWriter(random, 4096);
    if (random.oneIn(20)) {
      this.parts.push(random.bytes(random.below(200)));
      return;
    }
    const smallWindow = random.oneIn(3);
    this.parts.push(smallWindow ? settingsFrame(INITIAL_WINDOW_SETTING, random.below(200)) : this.settings());
    this.request();
    for (let steps = 1 + random.below(14); steps > 0; steps--) {
      if (smallWindow && random.oneIn(3)) this.windowUpdate(1 + random.below(2000));
      else this.step();
    }
    if (random.oneIn(3)) return;
    for (let times = 1 + random.below(3); times > 0; times--) this.mutateParts();
  }

  private step(): void {
    const { random } = this;
    switch (random.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        this.request();
        return;
      case 5:
      case 6:
      case 7:
        this.data();
        return;
      case 8:
        this.trailers();
        return;
      case 9:
        this.add(FRAME_TYPE.RST_STREAM, 0, this.anyStream(), uint32(random.below(16)));
        return;
      case 10:
      case 11:
        this.windowUpdate(random.oneIn(3) ? random.pick(WINDOW_SIZES) : 1 + random.below(70_000));
        return;
      case 12:
        if (random.oneIn(2)) this.parts.push(this.settings());
        else this.add(FRAME_TYPE.SETTINGS, FLAG.ACK, 0, NONE);
        return;
      case 13:
        this.add(FRAME_TYPE.PING, random.below(2), 0, random.pick(PINGS));
        return;
      case 14:
        this.prioritise(this.anyStream());
        return;
      default:
        if (random.oneIn(20)) this.flood();
        else if (random.oneIn(5)) this.oddity();
        else this.request();
    }
  }

  private request(): void {
    const { random } = this;
    const id = this.nextStream;
    this.nextStream += random.oneIn(8) ? 2 + 2 * random.below(5) : 2;
    const fields: Pair[] = [
      [':method', random.pick(['POST', 'POST', 'GET', 'CONNECT', 'OPTIONS'])],
      [':scheme', 'http'],
      [':path', random.pick(['/service/Method', '/', '*'])],
    ];
    if (random.oneIn(2)) fields.push([':authority', 'rls']);
    fields.push(['content-type', 'application/grpc'], ['te', 'trailers']);
    if (random.oneIn(10)) fields.push(['content-length', String(random.below(20))]);
    if (random.oneIn(4)) fields.push([`x-${random.below(20)}`, random.text(random.length(200))]);
    if (random.oneIn(20)) fields.push(random.pick(FORBIDDEN));
    if (random.oneIn(20)) fields.splice(random.below(fields.length), 1);
    this.used.push(id);
    const endStream = random.oneIn(3);
    if (!endStream) this.open.push(id);
    this.headers(id, fields, endStream);
  }

  private trailers(): void {
    const id = this.anyStream();
    this.open = this.open.filter((other) => other !== id);
    const length = this.random.oneIn(10) ? 600 : 5;
    this.headers(id, [['x-trailer', this.random.text(length)]], !this.random.oneIn(8));
  }

  private headers(id: number, fields: readonly Pair[], endStream: boolean): void {
    const { random } = this;
    const block = this.writer.write(fields);
    let flags: number = endStream ? FLAG.END_STREAM : 0;
    let payload = block;
    let rest: Buffer | undefined;
    if (random.oneIn(6)) {
      const cut = random.below(block.length + 1);
      payload = block.subarray(0, cut);
      rest = block.subarray(cut);
    } else {
      flags |= FLAG.END_HEADERS;
    }
    if (random.oneIn(6)) {
      flags |= FLAG.PRIORITY;
      payload = Buffer.concat([this.priority(id), payload]);
    }
    this.addPadded(FRAME_TYPE.HEADERS, flags, id, payload);
    while (rest !== undefined) {
      const last = random.oneIn(2);
      const cut = last ? rest.length : random.below(rest.length + 1);
      this.add(FRAME_TYPE.CONTINUATION, last ? FLAG.END_HEADERS : 0, id, rest.subarray(0, cut));
      rest = last ? undefined : rest.subarray(cut);
    }
  }

  private data(): void {
    const { random } = this;
    const id = this.anyStream();
    const endStream = random.oneIn(2);
    if (endStream) this.open = this.open.filter((other) => other !== id);
    const body = random.oneIn(30) ? FULL_FRAME : random.bytes(random.length(500));
    this.addPadded(FRAME_TYPE.DATA, endStream ? FLAG.END_STREAM : 0, id, body);
  }

  private windowUpdate(increment: number): void {
    const id = this.random.oneIn(3) ? 0 : this.usedStream();
    this.add(FRAME_TYPE.WINDOW_UPDATE, 0, id, uint32(increment));
  }

  private oddity(): void {
    const { random } = this;
    const type = random.oneIn(2) ? random.pick(TYPES) : random.below(256);
    const id = random.oneIn(2) ? this.anyStream() : random.uint32();
    this.add(type, random.below(256), id, random.bytes(random.length(40)));
  }

  private settings(): Buffer {
    const { random } = this;
    const payload = Buffer.alloc(6 * random.below(4));
    for (let at = 0; at < payload.length; at += 6) {
      const known = random.oneIn(3) ? INITIAL_WINDOW_SETTING : 1 + random.below(6);
      payload.writeUInt16BE(random.oneIn(8) ? random.below(65_536) : known, at);
      // Mostly valid values, so that enough connections stay open.
      const modest = this.modestSetting(known);
      payload.writeUInt32BE(random.oneIn(15) ? random.pick(SETTING_VALUES) : modest, at + 2);
    }
    return frame(FRAME_TYPE.SETTINGS, 0, 0, payload);
  }

  private modestSetting(name: number): number {
    const { random } = this;
    if (name === MAX_FRAME_SETTING) return 16_384 + random.below(1000);
    if (name === INITIAL_WINDOW_SETTING) return random.oneIn(2) ? random.below(70_000) : random.below(200);
    return random.below(2);
  }

  private prioritise(id: number): void {
    this.add(FRAME_TYPE.PRIORITY, 0, id, this.priority(id));
  }

  /** Returns a random dependency and weight for stream `id`. Rarely, the stream depends on itself. */
  private priority(id: number): Buffer {
    const payload = this.random.bytes(5);
    if (!this.random.oneIn(4)) payload.writeUInt32BE(this.random.oneIn(8) ? id : 0, 0);
    return payload;
  }

  /** Sends more data than the windows allow, unless the handler consumes it. */
  private flood(): void {
    const id = this.anyStream();
    for (let i = 0; i < 5; i++) this.add(FRAME_TYPE.DATA, 0, id, FULL_FRAME);
  }

  private anyStream(): number {
    const { random, open } = this;
    if (open.length > 0 && !random.oneIn(6)) return random.pick(open);
    return random.oneIn(60) ? random.below(40) : this.usedStream();
  }

  private usedStream(): number {
    return this.used.length === 0 ? 1 : this.random.pick(this.used);
  }

  private addPadded(type: number, flags: number, id: number, payload: Buffer): void {
    if (!this.random.oneIn(6)) {
      this.add(type, flags, id, payload);
      return;
    }
    const length = this.random.below(20);
    const padded = Buffer.concat([Buffer.of(length), payload, Buffer.alloc(length)]);
    this.add(type, flags | FLAG.PADDED, id, padded);
  }

  private add(type: number, flags: number, id: number, payload: Buffer): void {
    this.parts.push(frame(type, flags, id, payload));
  }

  private mutateParts(): void {
    const { random, parts } = this;
    const first = random.oneIn(30) ? 0 : Math.min(2, parts.length - 1);
    if (first >= parts.length) return;
    const at = first + random.below(parts.length - first);
    const part = parts[at] as Buffer;
    switch (random.below(9)) {
      case 0:
        parts[at] = mutate(part, random);
        return;
      case 1:
        // Replaces the payload by one of another length, with a valid header.
        if (part.length < 9) return;
        parts[at] = frame(
          part.readUInt8(3),
          part.readUInt8(4),
          part.readUInt32BE(5),
          mutate(part.subarray(9), random),
        );
        return;
      case 2:
        parts[at] = changeByte(part, random.below(3), random);
        return;
      case 3:
        parts[at] = changeByte(part, 3, random);
        return;
      case 4:
        parts[at] = changeByte(part, 4, random);
        return;
      case 5:
        parts[at] = changeByte(part, 5 + random.below(4), random);
        return;
      case 6:
        parts.splice(at, 1);
        return;
      case 7:
        parts.splice(first + random.below(parts.length - first), 0, Buffer.from(part));
        return;
      default:
        parts.splice(at, 1);
        parts.splice(first + random.below(parts.length - first + 1), 0, part);
    }
  }
}

const PINGS = [Buffer.alloc(8), Buffer.from('weirping'), Buffer.from('weirlast'), Buffer.from('12345678')];

function changeByte(part: Buffer, at: number, random: Random): Buffer {
  if (at >= part.length) return part;
  const changed = Buffer.from(part);
  changed[at] = random.oneIn(2) ? random.uint32() : (changed[at] as number) ^ (1 << random.below(8));
  return changed;
}

function settingsFrame(name: number, value: number): Buffer {
  const payload = Buffer.alloc(6);
  payload.writeUInt16BE(name, 0);
  payload.writeUInt32BE(value, 2);
  return frame(FRAME_TYPE.SETTINGS, 0, 0, payload);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}
