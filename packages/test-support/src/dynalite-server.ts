import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import type { DynaliteServer } from 'dynalite';
import type { AddressInfo } from 'node:net';

/** An emulator of DynamoDB within this process, and a client of it. */
export async function startDynalite(): Promise<{
  readonly client: DynamoDB;
  readonly port: number;
  readonly stop: () => Promise<void>;
}> {
  // Imported here because most users of this package need neither.
  const { DynamoDB } = await import('@aws-sdk/client-dynamodb');
  const { default: dynalite } = await import('dynalite');
  const server: DynaliteServer = dynalite({ createTableMs: 0 });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const credentials = { accessKeyId: 'any', secretAccessKey: 'any' };
  const client = new DynamoDB({ endpoint: `http://127.0.0.1:${port}`, region: 'local', credentials });
  return {
    client,
    port,
    stop: async () => {
      client.destroy();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
