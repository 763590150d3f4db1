import { describe, expect, test } from 'vitest';
import { file_rpc } from './gen/rpc.gen.ts';
import { extensionFields, firstExtensionNumber } from './extensions.ts';

describe('the table of extension fields', () => {
  test('lists exactly the fields that the messages have beyond etcd', () => {
    const declared = file_rpc.messages.flatMap((message) =>
      message.fields
        .filter((field) => field.number >= firstExtensionNumber)
        .map((field) => `${message.name}.${field.name} = ${field.number}`),
    );
    const listed = extensionFields.map(({ message, field, number }) => `${message}.${field} = ${number}`);
    expect(listed.toSorted()).toEqual(declared.toSorted());
  });

  test('gives a number one name, in every message', () => {
    const names = new Map<number, string>();
    for (const { field, number } of extensionFields) {
      expect(names.get(number) ?? field).toBe(field);
      names.set(number, field);
    }
  });
});
