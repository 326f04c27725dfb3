import { type handleUnaryCall, Server, ServerCredentials } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { assetPath } from '../../src/runtime/assets.js';

/**
 * The baseline of every benchmark: @grpc/grpc-js with @grpc/proto-loader and a handler that always answers OK. Prints
 * its port, and runs until it is killed.
 */
const definition = loadSync('envoy/service/ratelimit/v3/rls.proto', {
  includeDirs: [assetPath('proto')],
  keepCase: true,
});
const service = definition['envoy.service.ratelimit.v3.RateLimitService'];
if (service === undefined || 'format' in service) throw new Error('proto/ does not contain RateLimitService');

const shouldRateLimit: handleUnaryCall<unknown, unknown> = (_call, reply) => {
  reply(null, { overall_code: 'OK', statuses: [{ code: 'OK' }] });
};

const server = new Server();
server.addService(service, { ShouldRateLimit: shouldRateLimit });
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  process.stdout.write(`${port}\n`);
});
