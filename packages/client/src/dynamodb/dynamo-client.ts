import type { Signal } from '../time/signal.ts';

/** One value in DynamoDB's format. Only the types that are used here. */
export interface DynamoValue {
  readonly S?: string | undefined;
  readonly N?: string | undefined;
  readonly M?: Readonly<Record<string, DynamoValue>> | undefined;
}

export type DynamoItem = Readonly<Record<string, DynamoValue>>;

/**
 * The methods that are used of the AWS SDK's `DynamoDB` (version 3, `new DynamoDB({ region })` of
 * `@aws-sdk/client-dynamodb`). Only `DynamoTable` calls them, with the inputs that the SDK defines.
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
