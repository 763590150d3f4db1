import type { ServerConfig } from './config/server-config.ts';
import { unguardedUrls } from './config/unguarded-urls.ts';
import { EngineHealth } from './engines/engine-health.ts';
import { engineTroubles } from './engines/engine-trouble.ts';
import { type AuditLog, openAuditLog } from './logging/audit-log.ts';
import { createLogger, type Logger } from './logging/logger.ts';
import { openClientTls, type ClientTlsParts } from './open-client-tls.ts';
import { openEngine } from './open-engine.ts';
import { openPeerTls, type PeerTls } from './open-peer-tls.ts';
import { systemRandom } from './random/system-random.ts';
import type { RunningServer } from './server-options.ts';
import { Server } from './server.ts';
import { systemClock } from './time/system-clock.ts';
import type { ClientTls } from './transport/client-tls.ts';

const unguardedText =
  'open to other machines, and authentication is disabled: every client that reaches this server can read and change ' +
  'everything';

export interface ServeIo {
  readonly stderr: { write(line: string): unknown };
}

/**
 * Starts a server and resolves when clients can use it. Rejects with a message for the operator when it can't start.
 */
export async function serve(config: ServerConfig, io: ServeIo): Promise<RunningServer> {
  const log = createLogger(config, io.stderr);
  const engineHealth = new EngineHealth({
    onChange: (state) => {
      if (state.reachable) log.info({}, 'the database answers again');
      else log.warn({ reason: state.reason }, engineTroubles[state.trouble]);
    },
    onAppendTrouble: (trouble, reason) =>
      log.error({ reason }, `the log accepts no entries: ${engineTroubles[trouble]}`),
  });
  const audit = openAudit(config, log);
  let onLockLost: (error: Error) => void = () => {};
  const lockLost = new Promise<Error>((resolve) => (onLockLost = resolve));
  const engine = await openEngine(config, { engineHealth, log, onLockLost });
  const parts = { log, clock: systemClock, random: systemRandom };
  const tls = await openTls(config, parts).catch(async (error: unknown) => {
    await engine.close();
    throw error;
  });
  const server = await Server.open({ config, engine, engineHealth, ...tls, audit, ...parts }).catch(
    (error: unknown) => {
      closeTls(tls);
      throw error;
    },
  );
  void lockLost.then((error) => server.fail(error));
  try {
    await server.start();
  } catch (error) {
    await server.close();
    throw error;
  }
  const unguarded = server.state.auth.enabled ? [] : unguardedUrls(config);
  if (unguarded.length > 0) log.warn({ urls: unguarded }, unguardedText);
  return server;
}

interface Tls {
  readonly clientTls: ClientTls | undefined;
  readonly peerTls: PeerTls | undefined;
}

/** Only servers on a shared log connect to others. */
async function openTls(config: ServerConfig, parts: ClientTlsParts): Promise<Tls> {
  const clientTls = await openClientTls(config, parts);
  try {
    return { clientTls, peerTls: config.engine.includes('://') ? await openPeerTls(config, parts) : undefined };
  } catch (error) {
    clientTls?.credentials.close();
    throw error;
  }
}

function closeTls({ clientTls, peerTls }: Tls): void {
  clientTls?.credentials.close();
  peerTls?.close();
}

function openAudit({ auditLog: path }: ServerConfig, log: Logger): AuditLog | undefined {
  if (path === '') return undefined;
  try {
    return openAuditLog({ path, onTrouble: (problem) => log.error({ path }, problem) });
  } catch (error) {
    throw new Error(`--audit-log ${path} cannot be written`, { cause: error });
  }
}
