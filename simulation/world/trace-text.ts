import { fromBinary, type DescMessage, type DescService } from '@bufbuild/protobuf';
import { etcdserverpb, v3electionpb, v3lockpb } from '@tenure/protocol';
import { decodeCommand } from '../../packages/server/src/replica/command-codec.ts';
import { decodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import type { CallEnd } from './client-connection.ts';

/** A trace is read by eye: longer texts are cut. */
const charactersMax = 240;

export function entryText(index: number, bytes: Uint8Array): string {
  const { headers, commands } = decodeEntry(bytes);
  const texts = commands.map((command) => {
    const { kind, ...rest } = decodeCommand(command);
    return `${kind} ${objectText(rest)}`;
  });
  return `entry ${index} of epoch ${headers.epoch} at ${headers.timeMs} ms: ${texts.join(', ') || 'nothing'}`;
}

export function requestText(path: string, message: Uint8Array): string {
  return `${methodName(path)} ${messageText(typesOf(path)?.input, message)}`;
}

export function replyText(path: string, message: Uint8Array): string {
  return `${methodName(path)} ${messageText(typesOf(path)?.output, message)}`;
}

export function endText(
  path: string,
  { code, message, fromServer }: CallEnd & { readonly fromServer: boolean },
): string {
  if (code === 0) return `${methodName(path)} ends`;
  return `${methodName(path)} fails${fromServer ? '' : ' here'} with ${code}: ${message}`;
}

function methodName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

interface MethodTypes {
  readonly input: DescMessage;
  readonly output: DescMessage;
}

const methods = new Map<string, MethodTypes>();

function typesOf(path: string): MethodTypes | undefined {
  if (methods.size === 0) {
    for (const described of [etcdserverpb, v3electionpb, v3lockpb].flatMap((each) => Object.values<unknown>(each))) {
      if (!isService(described)) continue;
      for (const { name, input, output } of described.methods) {
        methods.set(`/${described.typeName}/${name}`, { input, output });
      }
    }
  }
  return methods.get(path);
}

function isService(described: unknown): described is DescService {
  return typeof described === 'object' && described !== null && 'kind' in described && described.kind === 'service';
}

function messageText(type: DescMessage | undefined, bytes: Uint8Array): string {
  if (type === undefined) return `${bytes.length} bytes`;
  // The bytes of a Buffer would be Buffers, which JSON prints as lists of numbers.
  return objectText(fromBinary(type, new Uint8Array(bytes)));
}

/** Without the header of replies, empty fields and type names. */
function objectText(value: object): string {
  const text = JSON.stringify(value, (name, field: unknown) => {
    if (name.startsWith('$') || name === 'header' || name === 'origin') return undefined;
    if (typeof field === 'bigint') return field === 0n ? undefined : `${field}`;
    if (field instanceof Uint8Array) return field.length === 0 ? undefined : Buffer.from(field).toString('latin1');
    return field === 0 || field === '' || field === false ? undefined : field;
  });
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}...` : text;
}
