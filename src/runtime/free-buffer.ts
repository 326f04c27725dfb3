/** Node.js 20 does not have `transfer`. */
interface Transferable {
  transfer?(bytes: number): unknown;
}

/**
 * Frees the memory of `bytes`, which must not be used any more: it is empty afterwards. The garbage collector would
 * free the memory too, but only after tens of megabytes more were allocated. From 16 KiB on, freeing is also cheaper
 * than leaving the memory to the collector. Does nothing if `bytes` shares its memory with other views, or on Node.js
 * 20.
 */
export function freeBuffer(bytes: Uint8Array): void {
  const { buffer } = bytes;
  if (bytes.length > 0 && bytes.length === buffer.byteLength) (buffer as Transferable).transfer?.(0);
}
