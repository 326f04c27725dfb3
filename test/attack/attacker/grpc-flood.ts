import { CODE } from '../../../src/codec/messages.js';
import { SHOULD_RATE_LIMIT_PATH } from '../../../src/codec/rls-definition.js';
import {
  ACK,
  block,
  callFields,
  END_HEADERS,
  END_STREAM,
  frame,
  PREFACE,
  SETTINGS_ACK,
  settings,
  TYPE,
  words,
} from '../../support/h2/h2-frames.js';
import { prefixed } from '../../support/h2/http2-client.js';
import type { GrpcAttack, Tally } from './attack.js';
import { AttackSocket } from './attack-socket.js';
import { H2Reader } from './h2-reader.js';

const FRAME_BYTES = 16_384;
const WINDOW = 1 << 30;
/** Time after which a connection with only unfinished calls is replaced. */
const HELD_MS = 100;
const PREFIX_BYTES = 5;

interface Call {
  readonly id: number;
  readonly body: Buffer;
  /** Number of sent body bytes. */
  at: number;
  window: number;
  /** Beginning of the answer. */
  answer: Buffer | undefined;
}

/** Sends calls like an ordinary client that obeys flow control, with a fixed number of concurrent calls. */
export class GrpcFlood extends AttackSocket {
  private readonly attack: GrpcAttack;
  private readonly bodies: readonly Buffer[];
  private readonly head: Buffer;
  private reader!: H2Reader;
  private calls = new Map<number, Call>();
  /** Calls whose bodies are not sent completely, in their order. */
  private sending: Call[] = [];
  private nextId = 1;
  private nextBody: number;
  private callsLeft: number;
  private window = 65_535;
  private streamWindow = 65_535;
  private maxStreams = 100;
  private ready = false;
  private toAcknowledge = 0;

  /** The connection begins with message number `firstBody`. */
  constructor(port: number, attack: GrpcAttack, tally: Tally, firstBody: number) {
    super(port, tally);
    this.attack = attack;
    this.nextBody = firstBody;
    this.callsLeft = attack.calls ?? Number.POSITIVE_INFINITY;
    this.bodies = attack.messages.map((message) => prefixed(message, attack.gzip === true));
    this.head = block(
      ...callFields(SHOULD_RATE_LIMIT_PATH),
      ...(attack.gzip === true ? ['grpc-encoding: gzip'] : []),
      ...(attack.timeoutMs === undefined ? [] : [`grpc-timeout: ${attack.timeoutMs}m`]),
    );
  }

  get done(): boolean {
    return this.callsLeft === 0 && this.calls.size === 0;
  }

  protected get answered(): boolean {
    return this.attack.incomplete === true ? this.sending.length === 0 : this.calls.size === 0;
  }

  protected begin(): void {
    this.calls = new Map();
    this.sending = [];
    this.nextId = 1;
    this.window = 65_535;
    this.streamWindow = 65_535;
    this.maxStreams = 100;
    this.ready = false;
    this.reader = new H2Reader({
      settings: (name, value) => {
        if (name === 3) this.maxStreams = value;
        if (name === 4) this.streamWindow = value;
      },
      settingsEnd: () => {
        this.socket.write(SETTINGS_ACK);
        this.ready = true;
      },
      windowUpdate: (streamId, increment) => {
        const call = this.calls.get(streamId);
        if (streamId === 0) this.window += increment;
        else if (call !== undefined) call.window += increment;
      },
      ended: (streamId, what) => {
        const call = this.calls.get(streamId);
        if (call === undefined) return;
        this.tally.add(`${what}${decisionOf(call.answer)}`);
        this.calls.delete(streamId);
        if (call.at < call.body.length) this.sending = this.sending.filter((one) => one !== call);
      },
      ping: (payload) => this.socket.write(frame(TYPE.PING, ACK, 0, payload)),
      data: (streamId, payload) => {
        const call = this.calls.get(streamId);
        if (call !== undefined) call.answer ??= Buffer.from(payload.subarray(0, PREFIX_BYTES + 2));
        this.toAcknowledge += payload.length;
        if (this.toAcknowledge < WINDOW / 2) return;
        this.socket.write(frame(TYPE.WINDOW_UPDATE, 0, 0, words(this.toAcknowledge)));
        this.toAcknowledge = 0;
      },
    });
    const opening = [PREFACE, settings([4, 0x7fff_ffff]), frame(TYPE.WINDOW_UPDATE, 0, 0, words(WINDOW))];
    this.socket.write(Buffer.concat(opening));
  }

  protected read(chunk: Buffer): void {
    this.reader.read(chunk);
    this.pump();
  }

  protected pump(): void {
    if (!this.ready || this.socket.writableNeedDrain) return;
    this.socket.cork();
    this.beginCalls();
    let sent = 0;
    while (sent < this.sending.length) {
      const call = this.sending[sent] as Call;
      if (!this.send(call)) break;
      sent++;
    }
    this.sending.splice(0, sent);
    this.socket.uncork();
    const isHeld = this.attack.incomplete === true && this.sending.length === 0;
    if (isHeld && this.attack.calls === undefined) this.reconnectLater();
  }

  /** Closes the connection after all calls are sent except their last bytes. A new connection sends the calls again. */
  private reconnectLater(): void {
    const { socket } = this;
    setTimeout(() => {
      if (!this.stopped) socket.destroy();
    }, HELD_MS);
  }

  /** Starts calls up to the maximum number of concurrent calls. */
  private beginCalls(): void {
    const most = Math.min(this.attack.streams, this.maxStreams);
    while (!this.stopped && this.calls.size < most && this.callsLeft > 0) {
      this.callsLeft--;
      const body = this.bodies[this.nextBody++ % this.bodies.length] as Buffer;
      const call: Call = {
        ...{ id: this.nextId, body, at: 0, window: this.streamWindow, answer: undefined },
      };
      this.nextId += 2;
      this.calls.set(call.id, call);
      this.sending.push(call);
    }
  }

  /** Sends as much of a call as flow control and the socket allow. Returns whether the call is sent completely. */
  private send(call: Call): boolean {
    const { body } = call;
    const end = this.attack.incomplete === true ? body.length - 1 : body.length;
    while (call.at < end) {
      const room = Math.min(end - call.at, FRAME_BYTES, this.window, call.window);
      if (room <= 0 || this.socket.writableNeedDrain) return false;
      if (call.at === 0) this.socket.write(frame(TYPE.HEADERS, END_HEADERS, call.id, this.head));
      const last = call.at + room === body.length;
      const header = frame(TYPE.DATA, last ? END_STREAM : 0, call.id);
      header.writeUIntBE(room, 0, 3);
      this.socket.write(header);
      this.socket.write(body.subarray(call.at, call.at + room));
      call.at += room;
      call.window -= room;
      this.window -= room;
    }
    return true;
  }
}

/** Returns the overall code, which is the first field of a RateLimitResponse. */
function decisionOf(answer: Buffer | undefined): string {
  if (answer?.[PREFIX_BYTES] !== 8) return '';
  return answer[PREFIX_BYTES + 1] === CODE.OVER_LIMIT ? ' OVER_LIMIT' : ' OK';
}
