/**
 * Returns the message of an error of a connection. For a host with several addresses, the error contains one error per
 * address and no message.
 */
export function networkMessage(error: Error): string {
  if (error.message !== '') return error.message;
  const { errors = [] } = error as Partial<AggregateError>;
  return errors.map(({ message }: Error) => message).join(', ') || error.name;
}
