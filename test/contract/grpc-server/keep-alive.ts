import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { TYPE } from '../../support/h2/h2-frames.js';
import { post, prefixed } from '../../support/h2/http2-client.js';
import { callFrame, emptyMessageFrame } from '../../support/h2/raw-http2.js';
import { waitFor } from '../../support/process/wait-for.js';
import { ECHO, Fixture, HOLD } from './fixture.js';

/** Tests PINGs on idle connections. */
export function describeKeepAlive(): void {
  describe('keep-alive', () => {
    let fixture: Fixture;
    beforeEach(() => {
      fixture = new Fixture();
    });
    afterEach(() => fixture.cleanUp());

    test('a client that answers stays', async () => {
      const { port } = await fixture.listening({ keepAliveIntervalMs: 30, keepAliveTimeoutMs: 600_000 });
      const session = await fixture.session(port);
      let pings = 0;
      session.on('ping', () => pings++);
      await waitFor('several pings', () => pings >= 3);
      expect((await post(session, ECHO, prefixed(Buffer.of(1)))).grpcStatus).toBe('0');
    });

    test('a client that does not is cut, and its calls count as cancelled', async () => {
      const { port } = await fixture.listening({ keepAliveIntervalMs: 300, keepAliveTimeoutMs: 300 });
      const raw = fixture.raw(port);
      await raw.acknowledgeSettings();
      raw.send(callFrame(1, HOLD));
      raw.send(emptyMessageFrame(1));
      const { info } = await fixture.untilHeld();
      await raw.waitForFrame(TYPE.PING);
      await waitFor('the cut', () => raw.closed);
      await waitFor('the call to count as cancelled', () => info.cancelled());
      await fixture.expectToServe(port);
    });
  });
}
