// Number formats bit by bit, as in mlsys.numerics: rounding to nearest, ties to even, and codes of at most 32 bits.
// A format is what book/_interactive/numerics.py exports; a code is a whole number from 0 to 2^bits - 1.
"use strict";

window.courseFormats = (() => {
  // x 2^power without overflow on the way; exact, since no format here has numbers as small as a double's smallest.
  const scaled = (x, power) => x * 2 ** Math.trunc(power / 2) * 2 ** (power - Math.trunc(power / 2));

  function nearestInteger(x) {
    const up = Math.round(x); // rounds ties up
    return Math.abs(x % 1) === 0.5 && up % 2 !== 0 ? up - 1 : up;
  }

  // The exponent e with 2^e <= |x| < 2^(e + 1).
  function exponent(x) {
    const size = Math.abs(x);
    const near = Math.floor(Math.log2(size));
    if (2 ** near > size) return near - 1;
    return 2 ** (near + 1) <= size ? near + 1 : near;
  }

  // The exponent of the last bit that a number near x can use; below the smallest normal number it stays the same.
  function lastBit(format, x) {
    const lowest = 1 - format.bias;
    return (x === 0 ? lowest : Math.max(exponent(x), lowest)) - format.mantissaBits;
  }

  // Distance from x to the next larger number of the format.
  const spacing = (format, x) => (format.integer ? 1 : 2 ** lastBit(format, x));

  // Formats with neither infinity nor NaN hold finite numbers only.
  const holds = (format, x) => Number.isFinite(x) || format.specials === "ieee" || format.specials === "nan";

  function round(format, x) {
    if (format.integer) return Math.min(Math.max(nearestInteger(x), format.min), format.max);
    if (Number.isNaN(x)) return x;
    const beyond = format.specials === "ieee" ? Infinity : format.max;
    const last = Number.isFinite(x) ? lastBit(format, x) : 0;
    const rounded = scaled(nearestInteger(scaled(x, -last)), last);
    return Math.abs(rounded) > format.max ? Math.sign(x) * beyond : rounded;
  }

  function encode(format, x) {
    const value = round(format, x);
    if (format.integer) return value < 0 ? value + 2 ** format.bits : Math.abs(value);
    const infinity = (2 ** format.exponentBits - 1) * 2 ** format.mantissaBits;
    const half = 2 ** (format.bits - 1);
    if (Number.isNaN(value)) return format.specials === "ieee" ? infinity + 2 ** (format.mantissaBits - 1) : half - 1;
    const sign = value < 0 || Object.is(value, -0) ? half : 0;
    if (!Number.isFinite(value)) return sign + infinity;
    const size = Math.abs(value);
    const power = size < format.minNormal ? 1 - format.bias : exponent(size);
    // A normal number's hidden bit adds the missing one to the exponent field; a subnormal has none to add.
    return sign + (power + format.bias - 1) * 2 ** format.mantissaBits + scaled(size, format.mantissaBits - power);
  }

  function decode(format, code) {
    const half = 2 ** (format.bits - 1);
    if (format.integer) return code < half ? code : code - 2 * half;
    const sign = code < half ? 1 : -1;
    const unsigned = code % half;
    const field = Math.floor(unsigned / 2 ** format.mantissaBits);
    const mantissa = unsigned % 2 ** format.mantissaBits;
    const top = field === 2 ** format.exponentBits - 1;
    if (format.specials === "ieee" && top) return mantissa === 0 ? sign * Infinity : NaN;
    if (format.specials === "nan" && unsigned === half - 1) return NaN;
    const significand = field > 0 ? mantissa + 2 ** format.mantissaBits : mantissa;
    return sign * scaled(significand, Math.max(field, 1) - format.bias - format.mantissaBits);
  }

  // All running sums of the products, each rounded to the accumulator's format.
  function runningSums(format, products) {
    let total = 0;
    return products.map((product) => (total = round(format, total + product)));
  }

  return { round, encode, decode, spacing, holds, exponent, runningSums };
})();
