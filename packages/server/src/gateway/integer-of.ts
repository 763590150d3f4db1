/** An exponent may lack its digits when something follows it, as in Go's protojson. */
const numberText =
  /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE](?:([+-]?[0-9]+)|(?=[^-+._a-zA-Z0-9])))?(?![-+._a-zA-Z0-9])/;
/** An unsigned number of 64 bits has 20 digits. */
const maxDigits = 20;
/** No number with so large an exponent is an integer of 64 bits, and Number could not represent every one. */
const maxExponentDigits = 9;

/**
 * The integer that a JSON number stands for, as Go's protojson reads it: also 1e3 and 2.0. Undefined for any other
 * number, and for text that does not begin with one.
 */
export function integerOf(text: string): bigint | undefined {
  const match = numberText.exec(text);
  if (match === null) return undefined;
  const [, sign = '', whole = '', decimals = '', exponent = ''] = match;
  const intDigits = whole === '0' ? '' : whole;
  const fraction = decimals.replace(/0+$/, '');
  if (intDigits === '' && fraction === '') return 0n;
  if (exponent.replace(/^[+-]?0*/, '').length > maxExponentDigits) return undefined;
  const digits = shifted(intDigits, fraction, Number(exponent));
  if (digits === undefined) return undefined;
  const value = BigInt(digits === '' ? '0' : digits);
  return sign === '-' ? -value : value;
}

function shifted(whole: string, fraction: string, exponent: number): string | undefined {
  if (exponent >= 0) {
    if (fraction.length > exponent || whole.length + exponent > maxDigits) return undefined;
    return whole + fraction + '0'.repeat(exponent - fraction.length);
  }
  const point = whole.length + exponent;
  if (fraction !== '' || point < 0 || /[1-9]/.test(whole.slice(point))) return undefined;
  return whole.slice(0, point);
}
