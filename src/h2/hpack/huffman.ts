// Decodes the Huffman code of RFC 7541 appendix B, four bits at a time. A state is an inner node of the code tree. Each
// of the 256 states has 16 transitions, 16 KiB in total, which fit the first-level cache. Every code has at least five
// bits, so a step completes at most one symbol.

/** Code length of each symbol, in bits. The code is canonical, so the lengths define it completely. */
const CODE_LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
  28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
  8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
  13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
  28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
  22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
  22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
  25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const END_OF_STRING = 256;
const LONGEST_CODE = 30;
/** Maximum number of padding bits, all ones, after the last symbol (RFC 7541 section 5.2). */
const LONGEST_PADDING = 7;

// A transition contains the next state in bits 0 to 7, the symbol in bits 8 to 15, and these flags.
const COMPLETES_SYMBOL = 0x10000;
const FAILS = 0x20000;

const transitions = new Int32Array(256 * 16);
/** 1 for the states in which a string may end: the root, and the states reached by padding only. */
const accepting = new Uint8Array(256);

/** The code tree: an inner node is a pair of children, a leaf is a symbol. */
type Node = [zero: Node | number | undefined, one: Node | number | undefined];

function buildTree(): Node {
  const root: Node = [undefined, undefined];
  let code = 0;
  for (let length = 1; length <= LONGEST_CODE; length++) {
    code *= 2;
    for (let symbol = 0; symbol <= END_OF_STRING; symbol++) {
      if (CODE_LENGTHS[symbol] !== length) continue;
      let node = root;
      for (let bit = length - 1; bit > 0; bit--) {
        const side = (code >>> bit) & 1;
        const child = node[side] ?? [undefined, undefined];
        node[side] = child;
        node = child as Node;
      }
      node[code & 1] = symbol;
      code += 1;
    }
  }
  return root;
}

function listInnerNodes(node: Node, into: Node[]): Node[] {
  into.push(node);
  for (const child of node) if (typeof child === 'object') listInnerNodes(child, into);
  return into;
}

function fillTables(): void {
  const root = buildTree();
  const nodes = listInnerNodes(root, []);
  const stateOf = new Map(nodes.map((node, state) => [node, state]));
  for (const [state, start] of nodes.entries()) {
    for (let nibble = 0; nibble < 16; nibble++) {
      let node = start;
      let transition = 0;
      for (let bit = 3; bit >= 0; bit--) {
        const child = node[(nibble >>> bit) & 1];
        if (typeof child === 'object') {
          node = child;
        } else if (child === undefined || child === END_OF_STRING) {
          transition = FAILS;
          break;
        } else {
          transition = COMPLETES_SYMBOL | (child << 8);
          node = root;
        }
      }
      transitions[state * 16 + nibble] = transition | (stateOf.get(node) as number);
    }
  }
  let padded: Node | number | undefined = root;
  for (let bits = 0; bits <= LONGEST_PADDING; bits++) {
    accepting[stateOf.get(padded as Node) as number] = 1;
    padded = (padded as Node)[1];
  }
}
fillTables();

/** Returns the maximum number of bytes that `length` bytes of Huffman code decode to. */
export function maxDecodedLength(length: number): number {
  return Math.floor((length * 8) / 5);
}

/**
 * Decodes the string bytes[start, end) to `out` at `outStart`, where {@link maxDecodedLength} bytes must be available.
 * Returns the end of the output, or -1 if the string contains EOS or has invalid padding (RFC 7541 section 5.2).
 */
export function decodeHuffman(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  outStart: number,
): number {
  let state = 0;
  let outEnd = outStart;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    let transition = transitions[state * 16 + (byte >>> 4)] as number;
    if (transition >= COMPLETES_SYMBOL) {
      if (transition >= FAILS) return -1;
      out[outEnd++] = (transition >>> 8) & 0xff;
    }
    transition = transitions[(transition & 0xff) * 16 + (byte & 0x0f)] as number;
    if (transition >= COMPLETES_SYMBOL) {
      if (transition >= FAILS) return -1;
      out[outEnd++] = (transition >>> 8) & 0xff;
    }
    state = transition & 0xff;
  }
  return accepting[state] === 1 ? outEnd : -1;
}
