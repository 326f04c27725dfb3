import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import type { ServerStream } from '../../../src/h2/request-handler.js';
import { expectAtMost, expectEqual, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { bytesBody } from '../../support/h2/bytes-body.js';
import {
  data,
  END_STREAM,
  H2Peer,
  OK_HEADERS,
  OK_TRAILERS,
  request,
  rst,
  settings,
  windowUpdate,
} from '../../support/h2/h2-peer.js';

const INITIAL_WINDOW_SIZE = 4;

type Step =
  | { readonly kind: 'request'; readonly body: number; readonly way: 'one go' | 'pieces' | 'no trailers' }
  | { readonly kind: 'window'; readonly stream: number; readonly increment: number }
  | { readonly kind: 'initial window'; readonly size: number }
  | { readonly kind: 'reset'; readonly stream: number };

const size = fc.oneof(fc.nat(20), fc.nat(70_000));
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('request' as const),
    body: size,
    way: fc.constantFrom('one go' as const, 'pieces' as const, 'no trailers' as const),
  }),
  fc.record({
    kind: fc.constant('window' as const),
    stream: fc.nat(8),
    increment: size.map((octets) => octets + 1),
  }),
  fc.record({ kind: fc.constant('initial window' as const), size }),
  fc.record({ kind: fc.constant('reset' as const), stream: fc.nat(8) }),
);

/** The flow-control windows as the peer counts them, and the data that it has received. */
class Ledger {
  connection = 65_535;
  initial = 65_535;
  readonly streams = new Map<number, { window: number; received: number; wanted: number; ended: boolean }>();

  /** Records received frames. Fails if the windows did not allow the DATA frames. */
  book(lines: readonly string[]): void {
    for (const line of lines) {
      const [, type, id, rest = ''] = /^(\w+) (\d+) ?(.*)$/.exec(line) ?? [];
      const stream = this.streams.get(Number(id));
      if (stream === undefined || (type !== 'DATA' && type !== 'HEADERS')) continue;
      expectSame(stream.ended, false);
      if (rest.endsWith('end')) stream.ended = true;
      if (type === 'HEADERS') continue;
      const octets = /^"(x*)"/.exec(rest)?.[1]?.length ?? Number.parseInt(rest, 10);
      if (octets > 0) expectAtMost(octets, Math.min(this.connection, stream.window));
      this.connection -= octets;
      stream.window -= octets;
      stream.received += octets;
    }
  }
}

function respond(stream: ServerStream, body: number, way: string): void {
  const bytes = Buffer.alloc(body, 'x');
  if (way === 'one go') stream.sendResponse(OK_HEADERS, bytesBody(bytes), OK_TRAILERS);
  else if (way === 'no trailers') stream.sendResponse(OK_HEADERS, bytesBody(bytes), []);
  else {
    stream.sendHeaders(OK_HEADERS, false);
    for (let at = 0; at < body; at += 5000) stream.sendData(bytes.subarray(at, at + 5000), false);
    stream.sendTrailers(OK_TRAILERS);
  }
}

function take(step: Step, peer: H2Peer, ledger: Ledger): void {
  switch (step.kind) {
    case 'request': {
      const id = 1 + 2 * ledger.streams.size;
      ledger.streams.set(id, { window: ledger.initial, received: 0, wanted: step.body, ended: false });
      peer.handler.onComplete = (stream) => respond(stream, step.body, step.way);
      peer.send(request(id), data(id, 'q', END_STREAM));
      break;
    }
    case 'window': {
      if (step.stream === 0) ledger.connection += step.increment;
      const id = 2 * step.stream - 1;
      const stream = ledger.streams.get(id);
      if (step.stream > 0 && stream === undefined) return;
      if (stream !== undefined) stream.window += step.increment;
      peer.send(windowUpdate(step.stream === 0 ? 0 : id, step.increment));
      break;
    }
    case 'initial window':
      for (const stream of ledger.streams.values()) stream.window += step.size - ledger.initial;
      ledger.initial = step.size;
      peer.send(settings([INITIAL_WINDOW_SIZE, step.size]));
      break;
    case 'reset': {
      const id = 2 * step.stream + 1;
      if (!ledger.streams.has(id)) return;
      peer.send(rst(id, 8));
      ledger.book(peer.received());
      ledger.streams.delete(id);
      ledger.streams.set(-id, { window: 0, received: 0, wanted: 0, ended: true });
      break;
    }
    default:
  }
  ledger.book(peer.received());
}

describe('the flow-control windows of the peer', () => {
  test('are never exceeded, and all data is sent once they are open', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 30 }), (steps) => {
        const peer = new H2Peer().greet();
        const ledger = new Ledger();
        for (const each of steps) take(each, peer, ledger);
        take({ kind: 'initial window', size: 1_000_000 }, peer, ledger);
        for (let stream = 1; stream <= ledger.streams.size; stream++) {
          take({ kind: 'window', stream, increment: 100_000 }, peer, ledger);
        }
        // Sent last, so that the connection's window alone must resume all waiting streams.
        take({ kind: 'window', stream: 0, increment: 1_000_000_000 }, peer, ledger);
        for (const stream of ledger.streams.values()) {
          expectSame(stream.ended, true);
          expectSame(stream.received, stream.wanted);
        }
        expectSame(peer.connection.openStreams, 0);
        expectSame(peer.connection.unconsumedBytes, 0);
        expectEqual(peer.events, ['greeted']);
      }),
      runs(400),
    );
  });
});
