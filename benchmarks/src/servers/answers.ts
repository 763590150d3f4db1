import { GrpcConnection } from '../wire/grpc-connection.ts';
import { methods, rangeRequest } from '../wire/etcd-messages.ts';

/** Whether the server at `address` answers a linearizable read. */
export async function answers(address: string): Promise<boolean> {
  let connection: GrpcConnection | undefined;
  try {
    connection = await GrpcConnection.open(address);
    await connection.unary(methods.range, rangeRequest('ready'));
    return true;
  } catch {
    return false;
  } finally {
    connection?.close();
  }
}
