/** Node.js 20 does not have it. */
interface Transferable {
  transfer?(bytes: number): unknown;
}

/**
 * Frees the memory of `bytes`, which nobody may use any more: it is empty from then on. The garbage collector would
 * free it too, but only later, after as much as tens of megabytes more were allocated. From 16 KiB on, freeing is also
 * cheaper than leaving it to the collector. Nothing is freed if `bytes` shares its memory with others, nor on Node.js
 * 20.
 */
export function freeBuffer(bytes: Uint8Array): void {
  const { buffer } = bytes;
  if (bytes.length > 0 && bytes.length === buffer.byteLength) (buffer as Transferable).transfer?.(0);
}
