import type { DescEnum, DescField, DescMessage } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { bytesField, tag, varintField, wireType } from '../../../conformance/client/raw-message.ts';
import type { SeededRandom } from '@tenure/test-support';

/** Values in messages beside random ones: names of keys and leases that exist on the server under test. */
export interface Vocabulary {
  readonly keys: readonly Buffer[];
  readonly leases: readonly bigint[];
}

const maxNesting = 4;
const maxRepeats = 3;
/** Extreme values that no real client sends, and that every decoder and check must survive. */
const extremes = [
  0n,
  1n,
  2n,
  127n,
  128n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 62n,
  2n ** 63n - 1n,
  -1n,
  -2n,
  -(2n ** 31n),
  -(2n ** 63n),
  9_000_000_000n,
  9_000_000_001n,
];

/** Messages of any kind, by their descriptors: well-formed, with values from the sensible to the absurd. */
export class MessageSoup {
  readonly #random: SeededRandom;
  readonly #vocabulary: Vocabulary;

  constructor(random: SeededRandom, vocabulary: Vocabulary) {
    this.#random = random;
    this.#vocabulary = vocabulary;
  }

  message(schema: DescMessage): Buffer {
    return Buffer.from(this.#message(schema, 0));
  }

  #message(schema: DescMessage, depth: number): Uint8Array {
    const parts: Uint8Array[] = [];
    for (const field of schema.fields) {
      const isNested = field.message !== undefined;
      if (isNested && depth >= maxNesting) continue;
      if (!this.#random.chance(field.oneof === undefined ? 0.5 : 0.3)) continue;
      const repeats = field.fieldKind === 'list' ? this.#random.integer(1, maxRepeats) : 1;
      for (let n = 0; n < repeats; n += 1) parts.push(this.#field(field, depth));
    }
    if (this.#random.chance(0.05)) parts.push(this.#unknownField());
    if (this.#random.chance(0.1)) parts.reverse();
    return Buffer.concat(parts);
  }

  #field(field: DescField, depth: number): Uint8Array {
    const { number } = field;
    if (field.message !== undefined) return bytesField(number, this.#message(field.message, depth + 1));
    if (field.enum !== undefined) return varintField(number, this.#enumValue(field.enum));
    const { scalar } = field as { readonly scalar?: ScalarType };
    switch (scalar) {
      case ScalarType.BYTES:
        return bytesField(number, this.#keyOrValue());
      case ScalarType.STRING:
        return bytesField(number, this.#text());
      case ScalarType.BOOL:
        return varintField(number, this.#random.chance(0.9) ? 1n : 2n);
      default:
        return varintField(number, this.#integer());
    }
  }

  #enumValue({ values }: DescEnum): bigint {
    if (this.#random.chance(0.15)) return this.#integer();
    return BigInt(this.#random.pick(values).number);
  }

  #integer(): bigint {
    const kind = this.#random.integer(0, 3);
    if (kind === 0) return this.#random.pick(this.#vocabulary.leases);
    if (kind === 1) return BigInt(this.#random.integer(0, 300));
    return this.#random.pick(extremes);
  }

  #keyOrValue(): Uint8Array {
    switch (this.#random.integer(0, 7)) {
      case 0:
        return Buffer.alloc(0);
      case 1:
        return Buffer.of(0);
      case 2:
        return Buffer.of(0xff, 0xff);
      case 3:
        return this.#random.bytes(this.#random.integer(1, 20));
      case 4:
        return Buffer.alloc(this.#random.integer(1, 2_000), this.#random.integer(0, 255));
      default:
        return this.#random.pick(this.#vocabulary.keys);
    }
  }

  #text(): Uint8Array {
    if (this.#random.chance(0.2)) return this.#random.bytes(this.#random.integer(1, 10));
    return Buffer.from(this.#random.pick(['', 'root', 'name', 'ä€😀', '\0', 'x'.repeat(1_000)]));
  }

  #unknownField(): Uint8Array {
    const number = this.#random.pick([19, 999, 1_007, 19_000, 2 ** 29 - 1]);
    switch (this.#random.integer(0, 3)) {
      case 0:
        return varintField(number, this.#integer());
      case 1:
        return bytesField(number, this.#random.bytes(this.#random.integer(0, 30)));
      case 2:
        return Buffer.concat([tag(number, wireType.fixed64), this.#random.bytes(8)]);
      default:
        return Buffer.concat([
          tag(number, wireType.startGroup),
          varintField(1, this.#integer()),
          tag(number, wireType.endGroup),
        ]);
    }
  }
}
