import { endOfString, huffmanCodeLengths, huffmanCodes } from './huffman-code.ts';
import { HpackError } from './hpack-error.ts';
import type { Latin1Buffer } from './latin1-buffer.ts';

/**
 * A step reads four bits. Eight would halve the steps, but their table has 256 KiB and leaves the nearest cache; this
 * one has 16 KiB.
 */
const stepBits = 4;
const stepsPerState = 1 << stepBits;

/** An entry of the table: the next state in the low eight bits, then the symbol, and two marks. */
const symbolShift = 8;
const hasSymbol = 1 << 16;
const isInvalid = 1 << 17;

/** Padding is shorter than an octet. */
const longestPaddingBits = 7;

/** The shortest code has five bits. */
const mostOctetsPerOctet = 8 / 5;

/** A string above this size gets memory of its own, which is free again after it. */
const keptScratchBytes = 65_536;

interface Node {
  readonly state: number;
  readonly children: [Node | number | undefined, Node | number | undefined];
}

const { steps, mayEnd } = buildTables();
let scratch = Buffer.allocUnsafeSlow(1024);

/**
 * The decoded string, with one char per octet; undefined if it has more than `maxChars`, which is then only checked.
 * Throws HpackError for an invalid code or padding.
 */
export function decodeHuffman(bytes: Buffer, start: number, end: number, maxChars: number): string | undefined {
  const out = scratchOf(Math.min(maxChars, Math.floor((end - start) * mostOctetsPerOctet)));
  const room = out.length;
  let length = 0;
  let state = 0;
  let marks = 0;
  for (let at = start; at < end; at++) {
    const octet = bytes[at] as number;
    const high = steps[state * stepsPerState + (octet >> stepBits)] as number;
    if ((high & hasSymbol) !== 0) {
      if (length < room) out[length] = high >> symbolShift;
      length++;
    }
    const low = steps[(high & 0xff) * stepsPerState + (octet & (stepsPerState - 1))] as number;
    if ((low & hasSymbol) !== 0) {
      if (length < room) out[length] = low >> symbolShift;
      length++;
    }
    marks |= high | low;
    state = low & 0xff;
  }
  if ((marks & isInvalid) !== 0 || mayEnd[state] === 0) throw new HpackError('BadHuffman');
  if (length > maxChars) return undefined;
  return (out as Latin1Buffer).latin1Slice(0, length);
}

/** Decoding never waits, so all connections share one buffer. */
function scratchOf(size: number): Buffer {
  if (size <= scratch.length) return scratch;
  const larger = Buffer.allocUnsafeSlow(size);
  if (size <= keptScratchBytes) scratch = larger;
  return larger;
}

function buildTables(): { readonly steps: Uint32Array; readonly mayEnd: Uint8Array } {
  const nodes = buildTree();
  const root = nodes[0] as Node;
  const steps = new Uint32Array(nodes.length * stepsPerState);
  for (const node of nodes) {
    for (let bits = 0; bits < stepsPerState; bits++) {
      steps[node.state * stepsPerState + bits] = stepFrom(node, bits, root);
    }
  }
  const mayEnd = new Uint8Array(nodes.length);
  let padding: Node | number | undefined = root;
  for (let bits = 0; bits <= longestPaddingBits && typeof padding === 'object'; bits++) {
    mayEnd[padding.state] = 1;
    padding = padding.children[1];
  }
  return { steps, mayEnd };
}

/** The inner nodes, the root first. A complete code with 257 symbols has 256 of them, so a state fits in an octet. */
function buildTree(): readonly Node[] {
  const root: Node = { state: 0, children: [undefined, undefined] };
  const nodes = [root];
  for (const [symbol, code] of huffmanCodes.entries()) {
    let node = root;
    for (let bit = (huffmanCodeLengths[symbol] as number) - 1; bit > 0; bit--) {
      const side = (code >>> bit) & 1;
      let child = node.children[side];
      if (typeof child !== 'object') {
        child = { state: nodes.length, children: [undefined, undefined] };
        node.children[side] = child;
        nodes.push(child);
      }
      node = child;
    }
    node.children[code & 1] = symbol;
  }
  return nodes;
}

/** Four bits complete at most one symbol. */
function stepFrom(from: Node, bits: number, root: Node): number {
  let node = from;
  let found = 0;
  for (let bit = stepBits - 1; bit >= 0; bit--) {
    const child = node.children[(bits >>> bit) & 1];
    if (child === endOfString) return isInvalid;
    if (typeof child === 'number') found = hasSymbol | (child << symbolShift);
    node = typeof child === 'object' ? child : root;
  }
  return found | node.state;
}
