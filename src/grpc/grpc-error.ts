/** The gRPC status codes that weir sends (https://grpc.io/docs/guides/status-codes/). */
export const STATUS = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;
export type StatusCode = (typeof STATUS)[keyof typeof STATUS];

/** A status to send. `message` is sent to the caller; `cause` is only logged. */
export class GrpcError extends Error {
  override readonly name = 'GrpcError';
  readonly code: StatusCode;

  constructor(code: StatusCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Converts an error that a handler threw to the error that is sent to the caller. `onError` gets the details that the
 * caller does not.
 */
export function toGrpcError(error: unknown, onError: (error: unknown) => void): GrpcError {
  if (error instanceof GrpcError) return error;
  onError(error);
  return new GrpcError(STATUS.INTERNAL, 'internal error');
}
