import type { DescField, DescMessage, MessageShape } from '@bufbuild/protobuf';
import { reflect, type ReflectMessage } from '@bufbuild/protobuf/reflect';

/**
 * A message as etcdctl's `-w json` shows it: field names as in the .proto files, bytes in base64, 64-bit integers as
 * plain numbers with all their digits, enums as numbers, and no fields with a zero value.
 */
export function jsonText<T extends DescMessage>(schema: T, message: MessageShape<T>): string {
  return messageText(reflect(schema, message));
}

function messageText(message: ReflectMessage): string {
  const members = message.sortedFields
    .filter((field) => message.isSet(field))
    .map((field) => memberText(message, field));
  return `{${members.join(',')}}`;
}

// Go wraps the member of a oneof in the Go name of the oneof, and does not use the .proto names there.
function memberText(message: ReflectMessage, field: DescField): string {
  const text = fieldText(message, field);
  if (field.oneof === undefined) return `${JSON.stringify(field.name)}:${text}`;
  return `${JSON.stringify(goName(field.oneof.name))}:{${JSON.stringify(goName(field.name))}:${text}}`;
}

function goName(name: string): string {
  return name.replace(/(?:^|_)([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

function fieldText(message: ReflectMessage, field: DescField): string {
  switch (field.fieldKind) {
    case 'message':
      return messageText(message.get(field));
    case 'list':
      return `[${[...message.get(field)].map(valueText).join(',')}]`;
    case 'map': {
      const entries = [...message.get(field)];
      return `{${entries.map(([key, value]) => `${JSON.stringify(String(key))}:${valueText(value)}`).join(',')}}`;
    }
    case 'scalar':
    case 'enum':
      return valueText(message.get(field));
  }
}

function valueText(value: unknown): string {
  // JSON.stringify refuses a bigint, and a number would lose the last digits of a lease id.
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString('base64'));
  if (isMessage(value)) return messageText(value);
  return JSON.stringify(value);
}

function isMessage(value: unknown): value is ReflectMessage {
  return typeof value === 'object' && value !== null && 'sortedFields' in value;
}
