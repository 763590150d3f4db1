import { createHash } from 'node:crypto';
import type { LogEngine, LoggedEntry, Position } from '../log-engine.ts';

/** A log of its own for one case: empty at first. */
export interface LogUnderTest {
  /** Opens the log; a durable one can be opened again after it was closed, and then holds what it held. */
  open(): Promise<LogEngine>;
  /** Closes what is open and removes the log. */
  dispose(): Promise<void>;
}

/** One sentence of the engine contract and how to see that it holds. Throws an AssertionError if it does not. */
export interface EngineCase {
  readonly name: string;
  /** For engines that keep the log beyond the life of the object. */
  readonly needsDurability?: true;
  run(log: LogUnderTest): Promise<void>;
}

export function entry(text: string): Uint8Array {
  return Buffer.from(text);
}

/** `count` different entries of `bytes` bytes. */
export function entries(count: number, bytes: number): Uint8Array[] {
  return Array.from({ length: count }, (_, at) => Buffer.alloc(bytes, `entry ${at} `));
}

/** The next `count` entries behind `from`. */
export async function readBehind(engine: LogEngine, from: Position, count: number): Promise<LoggedEntry[]> {
  const read: LoggedEntry[] = [];
  const stop = new AbortController();
  if (count === 0) return read;
  for await (const chunk of engine.follow(from, stop.signal)) {
    read.push(...chunk);
    if (read.length >= count) break;
  }
  return read;
}

export function texts(read: readonly LoggedEntry[]): string[] {
  return read.map(({ bytes }) => Buffer.from(bytes).toString());
}

/** What `engine.follow` answers first, so that a refusal can be caught. */
export async function firstChunk(engine: LogEngine, from: Position): Promise<readonly LoggedEntry[]> {
  for await (const chunk of engine.follow(from, new AbortController().signal)) return chunk;
  throw new Error('following ended although nobody stopped it');
}

export async function* chunksOf(...chunks: readonly (Uint8Array | string)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
}

/** Each chunk as text, or as its length and digest if it is too long to be read in a failure. */
export async function readChunks(chunks: AsyncIterable<Uint8Array>): Promise<string[]> {
  const read: string[] = [];
  for await (const chunk of chunks) read.push(chunkText(chunk));
  return read;
}

export function chunkText(chunk: Uint8Array): string {
  if (chunk.length <= 100) return Buffer.from(chunk).toString('latin1');
  return `${chunk.length} bytes, SHA-256 ${createHash('sha256').update(chunk).digest('hex')}`;
}

/** The chunks of the newest snapshot, and where it stands. */
export async function readSnapshot(engine: LogEngine): Promise<{ index: number; chunks: string[] } | undefined> {
  const snapshot = await engine.loadSnapshot();
  return snapshot && { index: snapshot.position.index, chunks: await readChunks(snapshot.chunks) };
}
