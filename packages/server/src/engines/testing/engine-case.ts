import { createHash } from 'node:crypto';
import type { LogEngine, LoggedEntry, Position } from '../log-engine.ts';

/** A separate log for one case: empty at first. */
export interface LogUnderTest {
  /** Opens the log; a durable one can be reopened after it was closed, and then holds the same entries. */
  open(): Promise<LogEngine>;
  /** Closes what is open and removes the log. */
  dispose(): Promise<void>;
}

/** One rule of the engine contract with its check. Throws an AssertionError if it does not hold. */
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

/** The next `count` entries after `from`. */
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

/** The first result of `engine.follow`, so that a refusal can be caught. */
export async function firstChunk(engine: LogEngine, from: Position): Promise<readonly LoggedEntry[]> {
  for await (const chunk of engine.follow(from, new AbortController().signal)) return chunk;
  throw new Error('following ended without an abort');
}

export async function* chunksOf(...chunks: readonly (Uint8Array | string)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
}

/** Each chunk as text, or as its length and digest if it is too long for a failure message. */
export async function readChunks(chunks: AsyncIterable<Uint8Array>): Promise<string[]> {
  const read: string[] = [];
  for await (const chunk of chunks) read.push(chunkText(chunk));
  return read;
}

export function chunkText(chunk: Uint8Array): string {
  if (chunk.length <= 100) return Buffer.from(chunk).toString('latin1');
  return `${chunk.length} bytes, SHA-256 ${createHash('sha256').update(chunk).digest('hex')}`;
}

/** The chunks and the position of the newest snapshot. */
export async function readSnapshot(engine: LogEngine): Promise<{ index: number; chunks: string[] } | undefined> {
  const snapshot = await engine.loadSnapshot();
  return snapshot && { index: snapshot.position.index, chunks: await readChunks(snapshot.chunks) };
}
