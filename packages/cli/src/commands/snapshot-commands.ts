import { etcdserverpb } from '@tenure/protocol';
import type { Command } from 'commander';
import { resolve } from 'node:path';
import { CliError } from '../cli-error.ts';
import type { EtcdClient } from 'tenure/etcd';
import type { CommandContext } from '../command-context.ts';
import { loadServer, type ServerModule } from '../load-server.ts';
import { explained } from './explained.ts';
import { placeOf, type PlaceOptions, startFlags, withPlace } from './log-place-options.ts';
import { saveSnapshot } from './snapshot-download.ts';

type SnapshotStatus = Awaited<ReturnType<ServerModule['snapshotStatus']>>;

/** `tenure snapshot ...` */
export function addSnapshotCommands(program: Command, context: CommandContext): void {
  const snapshot = program
    .command('snapshot')
    .description('copy the state of a server or of a log to a file, and back to a new log');
  withPlace(
    snapshot
      .command('save')
      .description('save the state of a running server to a file, or that of a log that no server uses')
      .argument('<FILE>'),
    'save from this',
  ).action(async (file: string, options: PlaceOptions, command: Command) => {
    const place = placeOf(options, context.io.env);
    if (place === undefined) {
      await context.withClient(command, async ({ client }) => {
        await explained(() => saveSnapshot(blobs(client), resolve(file)));
      });
    } else {
      const { snapshotOfLog } = await loadServer();
      await explained(() => saveSnapshot(snapshotOfLog(place), resolve(file)));
    }
    await context.output(command).value({ file }, () => [`Snapshot saved at ${file}`]);
  });
  snapshot
    .command('status')
    .description('verify a snapshot file and show what it holds')
    .argument('<FILE>')
    .action(async (file: string, _options: unknown, command: Command) => {
      const output = context.output(command);
      const { snapshotStatus } = await loadServer();
      const status = await explained(() => snapshotStatus(resolve(file)), file);
      await output.value(status, () => statusLines(status));
    });
  withPlace(
    snapshot.command('restore').description('make a new log for tenure serve from a snapshot file').argument('<FILE>'),
    'restore to this',
  ).action(async (file: string, options: PlaceOptions, command: Command) => {
    const place = placeOf(options, context.io.env);
    if (place === undefined) throw new CliError('usage', 'say where to: --data-dir DIR, or --engine URL');
    const { restoreSnapshot } = await loadServer();
    const status = await explained(() => restoreSnapshot(resolve(file), place), file);
    await context
      .output(command)
      .value(status, () => [
        `restored revision ${status.revision} with ${status.keys} keys and ${status.leases} leases, ` +
          `as cluster ${BigInt(status.clusterId).toString(16)}`,
        `start it with: tenure serve ${startFlags(options)}`,
      ]);
  });
}

function statusLines(status: SnapshotStatus): string[] {
  const { revision, compactRevision, entry, savedBy, sizeBytes, clusterId, hash, keys, leases } = status;
  const cluster = BigInt(clusterId).toString(16);
  const compacted = compactRevision === 0 ? 'not compacted' : `compacted to revision ${compactRevision}`;
  return [
    `${hash}, revision ${revision}, ${keys} keys, ${leases} leases, ${sizeBytes} bytes`,
    `${compacted}, log up to entry ${entry}, cluster ${cluster}, saved by Tenure ${savedBy}`,
  ];
}

async function* blobs(client: EtcdClient): AsyncGenerator<Uint8Array> {
  const stream = await client.stream(etcdserverpb.Maintenance.method.snapshot);
  stream.send({});
  stream.end();
  for await (const reply of stream.messages) yield reply.blob;
}
