/** Stacks of weir's gRPC port (setting GRPC_TRANSPORT): the fast stack and the plain one. */
export const STACKS = ['h2', 'grpc-js'] as const;
