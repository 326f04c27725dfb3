import { EventEmitter } from 'node:events';
import { Duplex, Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { ServiceDefinition, UntypedHandleCall } from '@grpc/grpc-js';
import { describe, expect, test } from '@jest/globals';
import { RareServices } from '../../../src/grpc/rare-service.js';

const raw = {
  requestSerialize: String,
  requestDeserialize: String,
  responseSerialize: String,
  responseDeserialize: String,
};
const definition = {
  Ask: { path: '/t.T/Ask', requestStream: false, responseStream: false, originalName: 'ask', ...raw },
  Watch: { path: '/t.T/Watch', requestStream: false, responseStream: true, ...raw },
  Talk: { path: '/t.T/Talk', requestStream: true, responseStream: true, ...raw },
} as unknown as ServiceDefinition;

function guarded(implementation: Record<string, unknown>) {
  const errors: unknown[] = [];
  const services = new RareServices((error) => errors.push(error));
  const handlers = services.guard(definition, implementation as Record<string, UntypedHandleCall>);
  const call = (name: string, ...args: unknown[]): void =>
    (handlers[name] as unknown as (...given: unknown[]) => void)(...args);
  return { services, errors, call };
}

/** A stream whose peer never reads: writes are never finished. */
function deafWritable(): { stream: Writable; ends: unknown[] } {
  const stream = new Writable({ objectMode: true, write: () => {} });
  const ends: unknown[] = [];
  stream.on('error', (error) => ends.push(error));
  return { stream, ends };
}

describe('RareServices', () => {
  test('finds handlers by their lower case name and keeps what `this` is', () => {
    const { call } = guarded({
      word: 'yes',
      ask(this: { word: string }, _call: unknown, callback: (error: null, answer: string) => void) {
        callback(null, this.word);
      },
    });
    const answers: unknown[] = [];
    call('Ask', new EventEmitter(), (...answer: unknown[]) => answers.push(answer));
    expect(answers).toEqual([[null, 'yes']]);
  });

  test('keeps what a handler throws off the wire', () => {
    const error = new Error('secret');
    const fail = () => {
      throw error;
    };
    const { call, errors } = guarded({ Ask: fail, Watch: fail });
    const answers: unknown[] = [];
    call('Ask', new EventEmitter(), (...answer: unknown[]) => answers.push(answer));
    expect(answers).toEqual([[{ code: 13, details: 'internal error' }]]);
    const { stream, ends } = deafWritable();
    call('Watch', stream);
    expect(ends).toEqual([{ code: 13, details: 'internal error' }]);
    expect(errors).toEqual([error, error]);
  });

  test('keeps what listeners of a handler throw off the wire, and inside', () => {
    const error = new Error('secret');
    const listen = (call: EventEmitter) => {
      for (const event of ['data', 'cancelled', 'error']) {
        call.on(event, () => {
          throw error;
        });
      }
    };
    const { call, errors } = guarded({ Ask: listen, Watch: listen });
    const emitter = new EventEmitter();
    const answers: unknown[] = [];
    call('Ask', emitter, (...answer: unknown[]) => answers.push(answer));
    emitter.emit('cancelled', 'cancelled');
    expect(answers).toEqual([[{ code: 13, details: 'internal error' }]]);
    const { stream, ends } = deafWritable();
    call('Watch', stream);
    stream.emit('data', 1);
    stream.emit('data', 2);
    expect(ends).toEqual([{ code: 13, details: 'internal error' }]);
    expect(errors).toEqual([error, error]);
  });

  test('ends open streams, and those that come later, but not those that are over', () => {
    const { call, services } = guarded({ Watch: () => {} });
    const [open, over, late] = [deafWritable(), deafWritable(), deafWritable()];
    call('Watch', open.stream);
    call('Watch', over.stream);
    over.stream.emit('cancelled', 'cancelled');
    services.endStreams();
    call('Watch', late.stream);
    const unavailable = [{ code: 14, details: 'the server is shutting down' }];
    expect([open.ends, over.ends, late.ends]).toEqual([unavailable, [], unavailable]);
  });

  test('ends a stream whose answers nobody reads', () => {
    const { call } = guarded({
      Watch: (stream: Writable) => {
        for (let i = 0; i < 5000; i++) stream.write(i);
      },
    });
    const { stream, ends } = deafWritable();
    stream.on('error', () => stream.end());
    call('Watch', stream);
    expect(ends).toEqual([{ code: 8, details: 'answers are not being read' }]);
    expect(stream.writableLength).toBe(1000);
  });

  test('asks for no further question while answers wait, and goes on when they are read', async () => {
    const unread: (() => void)[] = [];
    let deaf = true;
    let questions = 0;
    const stream = new Duplex({
      objectMode: true,
      read() {
        this.push(questions < 500 ? ++questions : null);
      },
      write(_message, _encoding, done) {
        if (deaf) unread.push(done);
        else done();
      },
    });
    const answered: unknown[] = [];
    const { call } = guarded({
      Talk: (talk: Duplex) => {
        talk.on('data', (question) => {
          answered.push(question);
          talk.write(question);
        });
      },
    });
    call('Talk', stream);
    for (let i = 0; i < 20; i++) await setImmediate();
    expect(answered.length).toBeLessThanOrEqual(stream.writableHighWaterMark + 1);
    expect(questions).toBeLessThan(100);
    deaf = false;
    const ended = new Promise((resolve) => stream.on('end', resolve));
    for (const done of unread) done();
    await ended;
    expect(answered).toHaveLength(500);
  });
});
