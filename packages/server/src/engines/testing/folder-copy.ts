import * as fs from 'node:fs';
import { join } from 'node:path';
import { logStart } from '../chain-hash.ts';
import { openFileEngine } from '../file/file-engine.ts';
import type { FileEngineOptions } from '../file/file-engine.ts';
import { readBehind, readSnapshot, texts } from './engine-case.ts';

/**
 * The files of a data folder by name, without the lock. A copy taken while the log is open has the state after a crash.
 */
export type FolderCopy = ReadonlyMap<string, Buffer>;

export function copyFolder(folder: string): FolderCopy {
  const names = fs.readdirSync(folder).filter((name) => !name.startsWith('lock-'));
  return new Map(names.map((name) => [name, fs.readFileSync(join(folder, name))]));
}

export function writeFolder(folder: string, copy: FolderCopy): void {
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { mode: 0o700 });
  for (const [name, bytes] of copy) fs.writeFileSync(join(folder, name), bytes);
}

/** A copy with one file replaced by `change`; `undefined` removes it. */
export function changeFile(copy: FolderCopy, name: string, change: (bytes: Buffer) => Buffer | undefined): FolderCopy {
  const changed = new Map(copy);
  const bytes = change(Buffer.from(copy.get(name) ?? Buffer.alloc(0)));
  if (bytes === undefined) changed.delete(name);
  else changed.set(name, bytes);
  return changed;
}

/** A copy in which bit number `bit` of `name` is flipped. */
export function flipBit(copy: FolderCopy, name: string, bit: number): FolderCopy {
  return changeFile(copy, name, (bytes) => {
    bytes[bit >>> 3] = bytes[bit >>> 3]! ^ (1 << (bit & 7));
    return bytes;
  });
}

/** The outcome of opening a copy. */
export type Opened =
  | { readonly refused: string; readonly message: string }
  | { readonly refused: undefined; readonly entries: readonly string[]; readonly after: FolderCopy };

/** Opens a log with the files of `copy`, reads all of it, and closes it. */
export async function openCopy(
  folder: string,
  copy: FolderCopy,
  options?: Partial<FileEngineOptions>,
): Promise<Opened> {
  writeFolder(folder, copy);
  try {
    const engine = await openFileEngine({ ...options, folder });
    try {
      const snapshot = await readSnapshot(engine);
      const { index } = await engine.tail();
      const read = snapshot === undefined ? await readBehind(engine, logStart, index) : [];
      return { refused: undefined, entries: texts(read), after: copyFolder(folder) };
    } finally {
      await engine.close();
    }
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code === undefined || !['damaged', 'unusable'].includes(code)) throw error;
    return { refused: code, message };
  }
}
