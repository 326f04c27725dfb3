import { test } from '@jest/globals';
import fc from 'fast-check';
import { expectEqual, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import {
  answer,
  data,
  END_STREAM,
  H2Peer,
  request,
  rst,
  settings,
  windowUpdate,
} from '../../support/h2/h2-peer.js';

const INITIAL_WINDOW_SIZE = 4;
/** An open stream is chosen by its age: often the oldest one or the newest one. */
const age = fc.oneof(fc.constantFrom(0, -1, -2), fc.nat(400));

type Step =
  | { readonly kind: 'open'; readonly streams: number; readonly jump: number }
  | { readonly kind: 'answer' | 'reset' | 'refuse' | 'data'; readonly age: number; readonly streams: number }
  | { readonly kind: 'initial window'; readonly size: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('open' as const),
    streams: fc.constantFrom(1, 1, 2, 10, 200),
    // Ids whose difference is a multiple of 256 share a place in the table of open streams.
    jump: fc.constantFrom(1, 1, 1, 2, 64, 127, 128, 129, 256, 1000),
  }),
  fc.record({
    kind: fc.constantFrom('answer' as const, 'reset' as const, 'refuse' as const, 'data' as const),
    age,
    streams: fc.constantFrom(1, 1, 3, 150),
  }),
  fc.record({ kind: fc.constant('initial window' as const), size: fc.constantFrom(0, 1, 10, 65_535) }),
);

/** A connection, and the ids of the streams that must be open on it, oldest first. */
class World {
  readonly peer = new H2Peer({
    maxConcurrentStreams: 1000,
    resetBurst: 1e6,
    maxRememberedResets: 1e5,
  }).greet();
  open: number[] = [];
  #next = 1;

  play(step: Step): void {
    if (step.kind === 'open') {
      for (let i = 0; i < step.streams && this.open.length < 1000; i++) this.#open(step.jump);
    } else if (step.kind === 'initial window') {
      this.peer.send(settings([INITIAL_WINDOW_SIZE, step.size]));
    } else {
      for (let i = 0; i < step.streams; i++) this.#act(step.kind, step.age);
    }
    this.peer.flush();
    this.peer.received();
    expectSame(this.peer.connection.openStreams, this.open.length);
  }

  #open(jump: number): void {
    const id = this.#next;
    this.#next += 2 * jump;
    this.peer.send(request(id));
    expectEqual(this.peer.handler.take(), [`request ${id} POST /call`]);
    this.open.push(id);
  }

  #act(kind: 'answer' | 'reset' | 'refuse' | 'data', place: number): void {
    const at = place < 0 ? this.open.length + place : place % Math.max(this.open.length, 1);
    const id = this.open[at];
    if (id === undefined) return;
    const { handler } = this.peer;
    const stream = handler.streams.get(id);
    if (kind === 'data') {
      this.peer.send(data(id, 'x'));
      stream?.consumed(1);
      expectEqual(handler.take(), [`data ${id} "x"`]);
      return;
    }
    this.open.splice(at, 1);
    if (kind === 'reset') this.peer.send(rst(id, 8));
    else if (kind === 'refuse') stream?.reset(7);
    else {
      // The answer may wait for the window of the stream.
      if (stream !== undefined) answer(stream);
      this.peer.send(data(id, '', END_STREAM), windowUpdate(id, 100_000));
    }
    const isEnd = (line: string) => line === `reset ${id} CANCEL`;
    expectSame(handler.take().filter(isEnd).length, kind === 'reset' ? 1 : 0);
    // The stream is closed, so the handler is not told about further frames.
    this.peer.send(rst(id, 8));
    expectEqual(handler.take(), []);
  }
}

test('streams that stay open, end and are reset in any order are found by their ids', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const world = new World();
      for (const each of steps) world.play(each);
      world.peer.connection.resetStreams();
      expectEqual(
        world.peer.handler.take(),
        world.open.map((id) => `reset ${id} CANCEL`),
      );
    }),
    runs(300),
  );
});
