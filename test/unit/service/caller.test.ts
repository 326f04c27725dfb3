import { describe, expect, test } from '@jest/globals';
import type { ServerCall } from '../../../src/grpc/grpc-server.js';
import type { ResetListener } from '../../../src/runtime/signal.js';
import { CallInstrumentation } from '../../../src/server/calls/unary-handler.js';
import { CALLER_WITHOUT_DEADLINE, type Caller, ForwardingCaller } from '../../../src/service/caller.js';
import { NO_DOMAIN } from '../../../src/service/refusal.js';

const LISTENER: ResetListener = { onReset: () => {}, onForgotten: () => {} };

describe('the listener for resets', () => {
  test('of a forwarding caller is that of the original caller', () => {
    const original: Caller = { ...CALLER_WITHOUT_DEADLINE };
    const forwarding = new ForwardingCaller(original, { deadlineMicros: 1, connection: undefined });
    forwarding.resetListener = LISTENER;
    expect(original.resetListener).toBe(LISTENER);
    expect(forwarding.resetListener).toBe(LISTENER);
  });

  test('reaches the transport if decisions are logged or traced', () => {
    const call: ServerCall = {
      ...{
        deadlineMicros: 1,
        receivedMicros: 0,
        cancelled: () => false,
        connection: {},
        resetListener: undefined,
      },
      ...{ peer: '127.0.0.1:1', requestId: undefined, header: () => undefined },
    };
    void new CallInstrumentation(true, undefined).handle(call, (caller) => {
      caller.resetListener = LISTENER;
      return NO_DOMAIN;
    });
    expect(call.resetListener).toBe(LISTENER);
  });

  test('is not kept by the object that all callers without a deadline share', () => {
    CALLER_WITHOUT_DEADLINE.resetListener = LISTENER;
    expect(CALLER_WITHOUT_DEADLINE.resetListener).toBeUndefined();
  });
});
