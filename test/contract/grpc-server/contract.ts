import { describe } from '@jest/globals';
import { describeCalls } from './calls.js';
import { describeDrain } from './drain.js';
import type { Transport } from './fixture.js';
import { describeKeepAlive } from './keep-alive.js';
import { describeLimits } from './limits.js';
import { describeMessages } from './messages.js';
import { describeStreams } from './streams.js';
import { describeTls } from './tls.js';
import { describeUnixSockets } from './unix-socket.js';

/** Everything that src/grpc/grpc-server.ts promises, for one transport. */
export function runGrpcServerContract(transport: Transport): void {
  describe(`gRPC server: ${transport.name}`, () => {
    describeCalls(transport);
    describeMessages(transport);
    describeStreams(transport);
    describeLimits(transport);
    describeKeepAlive(transport);
    describeDrain(transport);
    describeTls(transport);
    describeUnixSockets(transport);
  });
}
