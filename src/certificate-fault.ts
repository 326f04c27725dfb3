/**
 * Why a certificate is not accepted, as OpenSSL says it: `message` without the advice about options of Node.js that
 * newer versions of it add.
 */
export function certificateFault(message: string): string {
  return message.replace(/; if the root CA is installed locally, [^)]*$/, '');
}
