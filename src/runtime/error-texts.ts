/**
 * Returns the message of an error of a connection. For a host with several addresses, the error contains one error per
 * address and no message.
 */
export function networkMessage(error: Error): string {
  if (error.message !== '') return error.message;
  const { errors = [] } = error as Partial<AggregateError>;
  return errors.map(({ message }: Error) => message).join(', ') || error.name;
}

/**
 * Returns OpenSSL's reason for rejecting a certificate, without the advice about Node.js options that newer versions of
 * Node.js append to `message`.
 */
export function certificateFault(message: string): string {
  return message.replace(/; if the root CA is installed locally, [^)]*$/, '');
}
