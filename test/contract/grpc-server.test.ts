import { describe } from '@jest/globals';
import { describeCalls } from './grpc-server/calls.js';
import { describeDrain } from './grpc-server/drain.js';
import { describeKeepAlive } from './grpc-server/keep-alive.js';
import { describeLimits } from './grpc-server/limits.js';
import { describeMessages } from './grpc-server/messages.js';
import { describeStreams } from './grpc-server/streams.js';
import { describeTls } from './grpc-server/tls.js';
import { describeUnixSockets } from './grpc-server/unix-socket.js';

/** Tests the contract of src/grpc/grpc-server.ts on the fast stack. */
describe('gRPC server', () => {
  describeCalls();
  describeMessages();
  describeStreams();
  describeLimits();
  describeKeepAlive();
  describeDrain();
  describeTls();
  describeUnixSockets();
});
