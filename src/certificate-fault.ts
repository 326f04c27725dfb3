/**
 * Returns OpenSSL's reason for rejecting a certificate, without the advice about Node.js options that newer versions of
 * Node.js append to `message`.
 */
export function certificateFault(message: string): string {
  return message.replace(/; if the root CA is installed locally, [^)]*$/, '');
}
