import { chosen } from '../process/chosen.js';

/** What weir's gRPC port can run on (setting GRPC_TRANSPORT). */
export const TRANSPORTS = ['h2', 'grpc-js'] as const;
export type Transport = (typeof TRANSPORTS)[number];

/**
 * The transport that tests which do not choose one run on: WEIR_TEST_TRANSPORT, else weir's default. `npm run
 * test:matrix` runs the black-box suite a second time with it.
 */
export function chosenTransport(): Transport | undefined {
  return chosen('WEIR_TEST_TRANSPORT', TRANSPORTS);
}

/**
 * The transports of this run, for tests that name the one they run on: weir's default in `npm test`, the other one in
 * `npm run test:matrix`.
 */
export const TRANSPORTS_AT_HAND: readonly Transport[] = [chosenTransport() ?? 'h2'];
