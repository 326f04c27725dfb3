/* Exceeds every limit of GrpcServerOptions, and checks that the server then continues to serve. */
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http2';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { TYPE } from '../../support/h2/h2-frames.js';
import { openSession, openStream, post, prefixed } from '../../support/h2/http2-client.js';
import { callFrame, emptyMessageFrame, RawHttp2Client } from '../../support/h2/raw-http2.js';
import { waitFor } from '../../support/process/wait-for.js';
import { ECHO, Fixture, HOLD } from './fixture.js';

let fixture: Fixture;
beforeEach(() => {
  fixture = new Fixture();
});

const expectToServe = (port: number): Promise<void> => fixture.expectToServe(port);

describe('message size', () => {
  test('takes a message of exactly the limit and refuses one byte more', async () => {
    const { port } = await fixture.listening({ maxReceiveMessageBytes: 100_000 });
    const client = fixture.client(port);
    expect((await client.unary(ECHO, Buffer.alloc(100_000))).code).toBe(0);
    expect((await client.unary(ECHO, Buffer.alloc(100_001))).code).toBe(8);
    await expectToServe(port);
  });

  test('refuses on the announced length alone, before the message is there', async () => {
    const { port } = await fixture.listening({ maxReceiveMessageBytes: 1000 });
    const session = await openSession(port);
    const stream = openStream(session, ECHO);
    stream.write(Buffer.of(0, 0xff, 0xff, 0xff, 0xff));
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
    expect(headers['grpc-status']).toBe('8');
    // Further data is dropped, or its stream is reset. In both cases the connection stays open.
    for (let i = 0; i < 10; i++) stream.write(Buffer.alloc(100_000));
    expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
    await expectToServe(port);
  });
});

describe('concurrent streams', () => {
  test('announces the limit, and serves the next call when one is over', async () => {
    const { port } = await fixture.listening({ maxConcurrentStreams: 2 });
    const session = await openSession(port);
    expect(session.remoteSettings.maxConcurrentStreams).toBe(2);
    const ends = [1, 2, 3].map(() => post(session, HOLD, prefixed(Buffer.alloc(0))));
    (await fixture.untilHeld(2)).answer(Buffer.alloc(0));
    (await fixture.untilHeld(3)).answer(Buffer.alloc(0));
    fixture.held[0]?.answer(Buffer.alloc(0));
    expect((await Promise.all(ends)).map((end) => end.grpcStatus)).toEqual(['0', '0', '0']);
  });

  test('never serves more to a client that does not care', async () => {
    const { port } = await fixture.listening({ maxConcurrentStreams: 2 });
    const raw = new RawHttp2Client(port);
    await raw.acknowledgeSettings();
    for (const id of [1, 3, 5]) {
      raw.send(callFrame(id, HOLD));
      raw.send(emptyMessageFrame(id));
    }
    // RFC 9113 section 5.1.2 allows an error of the stream or of the connection.
    await waitFor('a refusal', () =>
      raw.frames.find(({ type }) => type === TYPE.RST_STREAM || type === TYPE.GOAWAY),
    );
    expect(fixture.held.length).toBeLessThanOrEqual(2);
    await expectToServe(port);
  });
});

describe('header list size', () => {
  test('announces the limit and serves what is below it', async () => {
    const { port } = await fixture.listening({ maxHeaderListBytes: 4096 });
    const session = await openSession(port);
    expect(session.remoteSettings.maxHeaderListSize).toBe(4096);
    const end = await post(session, ECHO, prefixed(Buffer.of(1)), { 'x-large': 'a'.repeat(3000) });
    expect(end.grpcStatus).toBe('0');
  });

  test('refuses what is above it', async () => {
    const { port } = await fixture.listening({ maxHeaderListBytes: 4096 });
    const session = await openSession(port);
    // After one call, the SETTINGS are acknowledged.
    expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
    const end = await post(session, ECHO, prefixed(Buffer.of(1)), { 'x-large': 'a'.repeat(6000) });
    expect(end.grpcStatus).toBeUndefined();
    expect(end.resetCode !== 0 || end.httpStatus === 431).toBe(true);
    expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
    await expectToServe(port);
  });
});

describe('connection age', () => {
  test('sends GOAWAY to an old connection, lets its call finish, and takes new connections', async () => {
    const { port } = await fixture.listening({ maxConnectionAgeMs: 50 });
    const session = await openSession(port);
    const goaway = once(session, 'goaway');
    const end = post(session, HOLD, prefixed(Buffer.alloc(0)));
    const call = await fixture.untilHeld();
    expect((await goaway)[0]).toBe(0);
    call.answer(Buffer.of(5));
    expect(await end).toMatchObject({ grpcStatus: '0', body: prefixed(Buffer.of(5)) });
    await waitFor('the end of the connection', () => session.destroyed || undefined);
    await expectToServe(port);
  });

  test('cuts what is still running after the grace time', async () => {
    const { port } = await fixture.listening({ maxConnectionAgeMs: 50, maxConnectionAgeGraceMs: 50 });
    const session = await openSession(port);
    const end = post(session, HOLD, prefixed(Buffer.alloc(0)));
    const { info } = await fixture.untilHeld();
    expect((await end).grpcStatus).toBeUndefined();
    await waitFor('the call to count as cancelled', () => info.cancelled() || undefined);
    await expectToServe(port);
  });

  test('an age beyond any timer means never', async () => {
    const { port } = await fixture.listening({ maxConnectionAgeMs: 1e12, maxConnectionAgeGraceMs: 1e12 });
    const session = await openSession(port);
    expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
    await new Promise<void>((resolve) => session.ping(() => resolve()));
    expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
  });
});

describe('keep-alive', () => {
  test('a client that answers stays', async () => {
    const { port } = await fixture.listening({ keepAliveIntervalMs: 30, keepAliveTimeoutMs: 600_000 });
    const session = await openSession(port);
    let pings = 0;
    session.on('ping', () => pings++);
    await waitFor('several pings', () => pings >= 3);
    expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
  });

  test('a client that does not is cut, and its calls count as cancelled', async () => {
    const { port } = await fixture.listening({ keepAliveIntervalMs: 300, keepAliveTimeoutMs: 300 });
    const { raw, call } = await fixture.rawHeldCall(port);
    await raw.waitForFrame(TYPE.PING);
    await waitFor('the cut', () => raw.closed);
    await waitFor('the call to count as cancelled', () => call.info.cancelled());
    await fixture.expectToServe(port);
  });
});
