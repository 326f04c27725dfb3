import type { HttpAttack, Tally } from './attack.js';
import { AttackSocket } from './attack-socket.js';

const MARK = Buffer.from('HTTP/1.1 ');
const STATUS_END = MARK.length + 3;

/** Sends batches of pipelined requests, each batch after the answers to the previous batch. */
export class HttpFlood extends AttackSocket {
  private readonly batch: Buffer;
  private readonly attack: HttpAttack;
  private outstanding = 0;
  private batchesLeft: number;
  private rest = '';

  constructor(port: number, attack: HttpAttack, tally: Tally) {
    super(port, tally);
    this.attack = attack;
    this.batchesLeft = attack.batches ?? Number.POSITIVE_INFINITY;
    const request = Buffer.from(attack.request);
    this.batch = Buffer.concat(Array.from({ length: attack.pipelined }, () => request));
  }

  get done(): boolean {
    return this.batchesLeft === 0 && this.outstanding === 0;
  }

  protected get answered(): boolean {
    return this.attack.unread === true || this.outstanding <= 0;
  }

  protected begin(): void {
    this.rest = '';
    this.outstanding = 0;
    if (this.attack.unread === true) this.socket.pause();
    this.pump();
  }

  /** Counts answers by their status lines. No other part of these answers looks like a status line. */
  protected read(chunk: Buffer): void {
    const text = this.rest + chunk.toString('latin1');
    let at = text.indexOf('HTTP/1.1 ');
    let end = 0;
    while (at >= 0 && at + STATUS_END <= text.length) {
      this.tally.add(`:${text.slice(at + MARK.length, at + STATUS_END)}`);
      this.outstanding--;
      end = at + STATUS_END;
      at = text.indexOf('HTTP/1.1 ', end);
    }
    this.rest = text.slice(Math.max(end, text.length - STATUS_END + 1));
    this.pump();
  }

  protected pump(): void {
    if (this.stopped || this.outstanding > 0 || this.batchesLeft === 0 || this.socket.writableNeedDrain)
      return;
    this.batchesLeft--;
    this.outstanding = this.attack.pipelined;
    this.socket.write(this.batch);
  }
}
