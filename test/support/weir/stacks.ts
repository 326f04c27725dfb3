/** What weir's gRPC port can run on (setting GRPC_TRANSPORT): the fast stack and the plain one. */
export const STACKS = ['h2', 'grpc-js'] as const;
