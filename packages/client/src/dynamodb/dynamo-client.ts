import type { Signal } from '../time/signal.ts';

/** One value as DynamoDB writes it. Only the kinds that are used here. */
export interface DynamoValue {
  readonly S?: string | undefined;
  readonly N?: string | undefined;
  readonly M?: Readonly<Record<string, DynamoValue>> | undefined;
}

export type DynamoItem = Readonly<Record<string, DynamoValue>>;

/**
 * What is used of the AWS SDK's `DynamoDB` (version 3, `new DynamoDB({ region })` of `@aws-sdk/client-dynamodb`).
 * `DynamoTable` alone calls it, with the inputs that the SDK's methods of these names take.
 */
export interface DynamoClient {
  query(input: object, options?: CallOptions): Promise<object>;
  updateItem(input: object, options?: CallOptions): Promise<object>;
  deleteItem(input: object, options?: CallOptions): Promise<object>;
  createTable(input: object, options?: CallOptions): Promise<object>;
  describeTable(input: object, options?: CallOptions): Promise<object>;
}

interface CallOptions {
  readonly abortSignal?: Signal;
}
