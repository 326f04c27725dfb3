import { describe, expect, test } from '@jest/globals';
import type { CallInfo } from '../../../src/grpc/grpc-server.js';
import { CallInstrumentation } from '../../../src/server/calls/call-instrumentation.js';
import { CALLER_WITHOUT_DEADLINE, type Caller, ForwardingCaller } from '../../../src/service/caller.js';

describe('onReset', () => {
  test('of a forwarding caller is that of the original caller', () => {
    const original: Caller = { ...CALLER_WITHOUT_DEADLINE };
    const forwarding = new ForwardingCaller(original, { deadlineMicros: 1, connection: undefined });
    const release = (): void => {};
    forwarding.onReset = release;
    expect(original.onReset).toBe(release);
    expect(forwarding.onReset).toBe(release);
  });

  test('reaches the transport if decisions are logged or traced', () => {
    const call: CallInfo = {
      ...{ deadlineMicros: 1, cancelled: () => false, connection: {}, onReset: undefined },
      ...{ peer: '127.0.0.1:1', requestId: undefined, header: () => undefined },
    };
    const release = (): void => {};
    void new CallInstrumentation(true, undefined).handle(call, (caller) => {
      caller.onReset = release;
      return Buffer.of(1);
    });
    expect(call.onReset).toBe(release);
  });

  test('is not kept by the object that all callers without a deadline share', () => {
    CALLER_WITHOUT_DEADLINE.onReset = () => {};
    expect(CALLER_WITHOUT_DEADLINE.onReset).toBeUndefined();
  });
});
