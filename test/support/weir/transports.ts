/** What weir's gRPC port can run on (setting GRPC_TRANSPORT). */
export const TRANSPORTS = ['h2', 'grpc-js'] as const;
export type Transport = (typeof TRANSPORTS)[number];

/**
 * The transport that tests which do not choose one run on: WEIR_TEST_TRANSPORT, else weir's default. `npm test` runs
 * the black-box suite a second time with it.
 */
export function chosenTransport(): Transport | undefined {
  const name = process.env['WEIR_TEST_TRANSPORT'];
  if (name === undefined || name === '') return undefined;
  const transport = TRANSPORTS.find((one) => one === name);
  if (transport === undefined) throw new Error(`WEIR_TEST_TRANSPORT is ${name}, not one of ${TRANSPORTS}`);
  return transport;
}
