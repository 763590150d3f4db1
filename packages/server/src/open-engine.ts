import type { ServerConfig } from './config/server-config.ts';
import type { EngineHealth } from './engines/engine-health.ts';
import { openFileEngine } from './engines/file/file-engine.ts';
import type { LogEngine } from './engines/log-engine.ts';
import { memoryEngine } from './engines/memory/memory-engine.ts';
import { openSharedEngine } from './engines/shared-engine.ts';
import type { Logger } from './logging/logger.ts';

export interface EngineListeners {
  readonly engineHealth: EngineHealth;
  readonly log: Logger;
  /** The log is released: another server may have the folder from now on. */
  readonly onLockLost: (error: Error) => void;
}

/** Opens the log that the configuration names. Rejects with EngineError. */
export async function openEngine(config: ServerConfig, listeners: EngineListeners): Promise<LogEngine> {
  const { engineHealth, log, onLockLost } = listeners;
  const { engine: url, engineSchema: schema, engineDedicated: dedicated } = config;
  if (url === 'memory') return memoryEngine();
  if (url === 'file') {
    const onNotice = (notice: string): void => log.warn({ notice }, 'the log was repaired');
    return openFileEngine({ folder: config.dataDir, onNotice, onLockLost });
  }
  const { engineUser: user, enginePassword: password, enginePasswordFile: passwordFile } = config;
  return openSharedEngine({
    url,
    schema,
    dedicated,
    tls: { cacert: config.engineCacert, cert: config.engineCert, key: config.engineKey },
    login: { user, password, passwordFile },
    onNotice: (notice) => log.warn({ notice }, 'the storage of the log needs attention'),
    onState: (state) => engineHealth.told(state),
  });
}
