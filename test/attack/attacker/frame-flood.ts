import { PREFACE, SETTINGS_ACK, settings } from '../../support/h2/h2-frames.js';
import type { FrameAttack, Tally } from './attack.js';
import { AttackSocket } from './attack-socket.js';
import { H2Reader } from './h2-reader.js';

const LAST_ID = 0x7fff_0000;

/** Sends frames as fast as the socket accepts them. */
export class FrameFlood extends AttackSocket {
  private readonly attack: FrameAttack;
  private readonly repeated: Buffer;
  /** Offsets and values of the stream ids in the repeated frames. */
  private readonly ids: readonly (readonly [at: number, id: number])[];
  private readonly stride: number;
  private reader!: H2Reader;
  private firstId = 0;
  private times = 0;

  constructor(port: number, attack: FrameAttack, tally: Tally) {
    super(port, tally);
    this.attack = attack;
    this.repeated = Buffer.from(attack.repeated);
    this.ids = streamIds(this.repeated);
    this.stride = this.ids.reduce((most, [, id]) => Math.max(most, id), -1) + 1;
    if (this.stride % 2 === 1) this.stride++;
  }

  /** Always false, because the attack does not count answers. */
  get done(): boolean {
    return false;
  }

  protected get answered(): boolean {
    return true;
  }

  protected begin(): void {
    this.firstId = 0;
    this.times = 0;
    this.reader = new H2Reader({
      settings: () => {},
      settingsEnd: () => {},
      windowUpdate: () => {},
      ended: (_id, what) => this.tally.add(what),
      ping: () => {},
      data: () => {},
    });
    const opening = [PREFACE, settings([4, 0x7fff_ffff]), SETTINGS_ACK, this.attack.once ?? Buffer.alloc(0)];
    this.socket.write(Buffer.concat(opening));
    if (this.attack.unread === true) this.socket.pause();
    this.pump();
  }

  protected read(chunk: Buffer): void {
    this.reader.read(chunk);
  }

  protected pump(): void {
    const { times = Number.POSITIVE_INFINITY } = this.attack;
    while (!this.stopped && this.times < times && !this.socket.destroyed && this.firstId < LAST_ID) {
      this.times++;
      if (!this.socket.write(this.numbered())) return;
    }
    if (this.firstId >= LAST_ID) this.socket.destroy();
  }

  /** Returns the frames with stream ids that this connection has not used. */
  private numbered(): Buffer {
    if (this.ids.length === 0) return this.repeated;
    const bytes = Buffer.from(this.repeated);
    for (const [at, id] of this.ids) bytes.writeUInt32BE(this.firstId + id, at);
    this.firstId += this.stride;
    return bytes;
  }
}

function streamIds(bytes: Buffer): [number, number][] {
  const found: [number, number][] = [];
  for (let at = 0; at < bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    const id = bytes.readUInt32BE(at + 5);
    if (id > 0) found.push([at + 5, id]);
  }
  return found;
}
