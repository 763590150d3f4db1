import { BackendError } from '../errors/backend-error.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import { dynamoErrorOf } from './dynamo-error-of.ts';
import type { DynamoClient, DynamoItem, DynamoValue } from './dynamo-client.ts';

/** One row of a name: its queue, or one of its members. */
export interface RowKey {
  readonly name: string;
  readonly row: string;
}

export interface Change {
  readonly update: string;
  readonly condition: string;
  readonly names: Record<string, string>;
  readonly values?: Record<string, DynamoValue>;
}

interface Changed {
  readonly Attributes?: DynamoItem;
}

const tablePollMs = 500;
const maxTablePolls = 240;

/** The table. Each call changes one item, on a condition. */
export class DynamoTable {
  readonly #client: DynamoClient;
  readonly #table: string;

  constructor(client: DynamoClient, table: string) {
    this.#client = client;
    this.#table = table;
  }

  /** All rows of a name, read consistently. */
  async rows(name: string, signal: Signal): Promise<readonly DynamoItem[]> {
    const rows: DynamoItem[] = [];
    let from: DynamoItem | undefined;
    do {
      const input = {
        ConsistentRead: true,
        KeyConditionExpression: '#name = :name',
        ExpressionAttributeNames: { '#name': 'name' },
        ExpressionAttributeValues: { ':name': { S: name } },
        ...(from === undefined ? {} : { ExclusiveStartKey: from }),
      };
      const page = await this.#call(signal, (options) =>
        this.#client.query({ TableName: this.#table, ...input }, options),
      );
      const { Items = [], LastEvaluatedKey } = page as { Items?: DynamoItem[]; LastEvaluatedKey?: DynamoItem };
      rows.push(...Items);
      from = LastEvaluatedKey;
    } while (from !== undefined);
    return rows;
  }

  /** The row as it is now, or undefined if the condition is not met. */
  async update(key: RowKey, change: Change, signal: Signal): Promise<DynamoItem | undefined> {
    const input = {
      TableName: this.#table,
      Key: keyOf(key),
      UpdateExpression: change.update,
      ConditionExpression: change.condition,
      ExpressionAttributeNames: change.names,
      ...(change.values === undefined ? {} : { ExpressionAttributeValues: change.values }),
      ReturnValues: 'ALL_NEW' as const,
    };
    const answer: Changed | undefined = await this.#conditional(signal, (options) =>
      this.#client.updateItem(input, options),
    );
    return answer?.Attributes;
  }

  /** Whether the condition was met and the row deleted. */
  async delete(key: RowKey, condition: Omit<Change, 'update'>, signal: Signal): Promise<boolean> {
    const input = {
      TableName: this.#table,
      Key: keyOf(key),
      ConditionExpression: condition.condition,
      ExpressionAttributeNames: condition.names,
      ...(condition.values === undefined ? {} : { ExpressionAttributeValues: condition.values }),
    };
    return (await this.#conditional(signal, (options) => this.#client.deleteItem(input, options))) !== undefined;
  }

  /** Creates the table unless it exists, and waits until it is active. Concurrent calls are safe. */
  async create(signal: Signal): Promise<void> {
    const attribute = (name: string): { AttributeName: string; AttributeType: 'S' } => ({
      AttributeName: name,
      AttributeType: 'S',
    });
    const input = {
      TableName: this.#table,
      BillingMode: 'PAY_PER_REQUEST' as const,
      KeySchema: [
        { AttributeName: 'name', KeyType: 'HASH' as const },
        { AttributeName: 'row', KeyType: 'RANGE' as const },
      ],
      AttributeDefinitions: [attribute('name'), attribute('row')],
    };
    await this.#call(signal, (options) =>
      this.#client.createTable(input, options).catch((error: unknown) => {
        if (!isNamed(error, 'ResourceInUseException')) throw error;
        return {};
      }),
    );
    for (let poll = 0; poll < maxTablePolls; poll++) {
      const answer = await this.#call(signal, (options) =>
        this.#client.describeTable({ TableName: this.#table }, options),
      );
      if ((answer as { Table?: { TableStatus?: string } }).Table?.TableStatus === 'ACTIVE') return;
      await new Promise((resolve) => setTimeout(resolve, tablePollMs));
    }
    throw new BackendError('dynamodb', 'unavailable', `the table ${this.#table} did not become active`);
  }

  /** Undefined if the condition is not met. */
  #conditional(
    signal: Signal,
    call: (options: { readonly abortSignal: Signal }) => Promise<object>,
  ): Promise<object | undefined> {
    return this.#call(signal, (options) =>
      call(options).catch((error: unknown) => {
        if (isNamed(error, 'ConditionalCheckFailedException')) return undefined;
        throw error;
      }),
    );
  }

  async #call<Value>(
    signal: Signal,
    call: (options: { readonly abortSignal: Signal }) => Promise<Value>,
  ): Promise<Value> {
    signal.throwIfAborted();
    // The SDK adds a listener for each call, and many calls may share the caller's signal.
    const ending = new AbortController();
    const stop = onAbort(signal, () => ending.abort());
    try {
      return await call({ abortSignal: ending.signal });
    } catch (error) {
      signal.throwIfAborted();
      throw dynamoErrorOf(this.#table, error);
    } finally {
      stop();
    }
  }
}

function keyOf({ name, row }: RowKey): DynamoItem {
  return { name: { S: name }, row: { S: row } };
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}
