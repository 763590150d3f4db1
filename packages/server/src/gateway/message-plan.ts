import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';

/** The kinds of field that the messages of the API have, by protobuf's names. */
export type FieldKind =
  | 'bool'
  | 'bytes'
  | 'string'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'sint64'
  | 'enum'
  | 'message';

/** One field, as the gateway reads and writes it. */
export interface FieldPlan {
  /** Within its message. */
  readonly index: number;
  readonly number: number;
  /** The name in the .proto file, by which etcd writes it; it reads both. */
  readonly name: string;
  readonly jsonName: string;
  readonly kind: FieldKind;
  readonly isList: boolean;
  /** The fully qualified name of the oneof that the field is in. */
  readonly oneof: string | undefined;
  readonly message: MessagePlan | undefined;
  readonly enumNumbers: ReadonlyMap<string, number>;
  readonly enumNames: ReadonlyMap<number, string>;
}

export interface MessagePlan {
  readonly typeName: string;
  /** By both names. */
  readonly byName: ReadonlyMap<string, FieldPlan>;
  readonly byNumber: ReadonlyMap<number, FieldPlan>;
  readonly longestNameBytes: number;
}

const scalarKinds: Partial<Record<ScalarType, FieldKind>> = {
  [ScalarType.BOOL]: 'bool',
  [ScalarType.BYTES]: 'bytes',
  [ScalarType.STRING]: 'string',
  [ScalarType.INT32]: 'int32',
  [ScalarType.UINT32]: 'uint32',
  [ScalarType.INT64]: 'int64',
  [ScalarType.UINT64]: 'uint64',
  [ScalarType.SINT64]: 'sint64',
};

const plans = new Map<DescMessage, MessagePlan>();

/** Made once for each message. Throws for a kind of field that no message of the API has. */
export function messagePlan(descriptor: DescMessage): MessagePlan {
  const known = plans.get(descriptor);
  if (known !== undefined) return known;
  const byName = new Map<string, FieldPlan>();
  const byNumber = new Map<number, FieldPlan>();
  const names = descriptor.fields.flatMap(({ name, jsonName }) => [name, jsonName]);
  const longestNameBytes = Math.max(0, ...names.map((name) => Buffer.byteLength(name)));
  const plan: MessagePlan = { typeName: descriptor.typeName, byName, byNumber, longestNameBytes };
  // A message may contain itself.
  plans.set(descriptor, plan);
  for (const [index, field] of descriptor.fields.entries()) {
    const made = fieldPlan(field, index);
    byName.set(made.name, made);
    byName.set(made.jsonName, made);
    byNumber.set(made.number, made);
  }
  return plan;
}

function fieldPlan(field: DescField, index: number): FieldPlan {
  const { enum: enumeration, message } = field;
  const values = enumeration?.values ?? [];
  return {
    index,
    number: field.number,
    name: field.name,
    jsonName: field.jsonName,
    kind: kindOf(field),
    isList: field.fieldKind === 'list',
    oneof: field.oneof === undefined ? undefined : `${field.parent.typeName}.${field.oneof.name}`,
    message: message === undefined ? undefined : messagePlan(message),
    enumNumbers: new Map(values.map((value) => [value.name, value.number])),
    enumNames: new Map(values.map((value) => [value.number, value.name])),
  };
}

/** Throws for a kind that no message of the API has. */
export function kindOf(field: DescField): FieldKind {
  if (field.fieldKind !== 'map') {
    if (field.enum !== undefined) return 'enum';
    if (field.message !== undefined) return 'message';
    const kind = field.scalar === undefined ? undefined : scalarKinds[field.scalar];
    if (kind !== undefined) return kind;
  }
  throw new Error(`${field.parent.typeName}.${field.name} has a kind that the JSON gateway does not know`);
}
