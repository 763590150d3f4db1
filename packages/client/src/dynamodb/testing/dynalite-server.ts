import { DynamoDB } from '@aws-sdk/client-dynamodb';
import dynalite from 'dynalite';
import type { DynaliteServer } from 'dynalite';
import type { AddressInfo } from 'node:net';

/** An emulator of DynamoDB within this process, and a client of it. */
export async function startDynalite(): Promise<{
  readonly client: DynamoDB;
  /** host:port */
  readonly address: string;
  readonly stop: () => Promise<void>;
}> {
  const server: DynaliteServer = dynalite({ createTableMs: 0 });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const credentials = { accessKeyId: 'any', secretAccessKey: 'any' };
  const address = `127.0.0.1:${port}`;
  const client = new DynamoDB({ endpoint: `http://${address}`, region: 'local', credentials });
  return {
    client,
    address,
    stop: async () => {
      client.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
