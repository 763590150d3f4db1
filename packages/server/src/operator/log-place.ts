import { existsSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { EngineError } from '../engines/engine-error.ts';
import { openFileEngine } from '../engines/file/file-engine.ts';
import { listNames } from '../engines/file/file-names.ts';
import type { LogEngine } from '../engines/log-engine.ts';
import { openSharedEngine, type SharedEngineOptions } from '../engines/shared-engine.ts';

/** The location of a log, from the flags of `tenure serve`. */
export type LogPlace =
  | { readonly kind: 'folder'; readonly dataDir: string }
  /** postgres://... with the schema, or etcd://... */
  | ({ readonly kind: 'shared' } & Pick<SharedEngineOptions, 'url' | 'schema' | 'tls' | 'login'>);

/** Opens an existing log. Rejects with EngineError. */
export async function openExistingLog(place: LogPlace): Promise<LogEngine> {
  if (place.kind === 'shared') {
    return openSharedEngine({ ...place, dedicated: false, mustExist: true, onNotice: () => undefined });
  }
  const folder = resolve(place.dataDir);
  const { segments, snapshots } = listNames(existsSync(folder) ? readdirSync(folder) : []);
  if (segments.length + snapshots.length === 0) throw new EngineError('unusable', `${folder} holds no log`);
  return openFileEngine({ folder });
}

/** The location for messages to an operator: without a password. */
export function placeText(place: LogPlace): string {
  if (place.kind === 'folder') return place.dataDir;
  const url = place.url.replace(/^(\w+:\/\/[^:@/]*):[^@/]*@/, '$1:***@');
  return url.startsWith('etcd://') ? url : `${url} (schema ${place.schema})`;
}
