// Numbers m·2^(64·e) with 2⁻³² ≤ |m| < 2³², each with a bound x on its absolute error, m ± x: no product of
// probabilities underflows, and what cancels is seen. (0 ± x has x in that range instead of m. If nothing is known of a
// number, x is Infinity.)
//
// Two terms whose exponents differ by more than 3 differ by a factor of 2⁶⁴ at least: the smaller one is dropped, which
// is less than a rounding.

export const UNIT = 2 ** -53;
const HIGH = 2 ** 32, LOW = 2 ** -32, UP = 2 ** 64, DOWN = 2 ** -64;
const SHIFTS = [1, DOWN, DOWN ** 2, DOWN ** 3];

/** 2^(64·e) for e ≤ 0, and 0 where that is negligible beside 1. */
export function shiftBy(e) {
  return e < -3 ? 0 : SHIFTS[0 - e];
}

/** Arrays of scaled numbers with their errors. */
export class Scaled {
  constructor(length) {
    this.m = new Float64Array(length);
    this.e = new Int32Array(length);
    this.x = new Float64Array(length);
  }

  /** Number i becomes m ± x, times 2^(64·e). */
  put(i, m, e, x) {
    const size = Math.max(Math.abs(m), x);
    if (size === 0) e = 0;
    else if (!(size >= LOW && size < HIGH)) [m, e, x] = inRange(m, e, x);
    this.m[i] = m;
    this.e[i] = e;
    this.x[i] = x;
  }

  /** Add m ± x, times 2^(64·e), to number i. */
  add(i, m, e, x) {
    if (m === 0 && x === 0) return;
    const m0 = this.m[i], x0 = this.x[i], e0 = this.e[i];
    if (m0 === 0 && x0 === 0) return this.put(i, m, e, x);
    if (e === e0) return this.put(i, m0 + m, e, x0 + x + UNIT * Math.abs(m0 + m));
    if (e < e0) return this.put(i, m0 + m * shiftBy(e - e0), e0, x0 + x * shiftBy(e - e0) + 3 * UNIT * Math.abs(m0));
    return this.put(i, m0 * shiftBy(e0 - e) + m, e, x0 * shiftBy(e0 - e) + x + 3 * UNIT * Math.abs(m));
  }

  /** Number i times m ± x, times 2^(64·e). */
  multiply(i, m, e, x) {
    const m0 = this.m[i], x0 = this.x[i], product = m0 * m;
    if ((m === 0 && x === 0) || (m0 === 0 && x0 === 0)) return this.put(i, 0, 0, 0);
    this.put(i, product, this.e[i] + e, Math.abs(m0) * x + Math.abs(m) * x0 + x0 * x + UNIT * Math.abs(product));
  }

  /** Number i as an object. */
  at(i) {
    return { m: this.m[i], e: this.e[i], x: this.x[i] };
  }
}

/** m ± x, times 2^(64·e), with the larger of |m| and x in [2⁻³², 2³²), or 0. */
function inRange(m, e, x) {
  if (!(x < Infinity)) x = Infinity;
  let size = x < Infinity ? Math.max(Math.abs(m), x) : Math.abs(m);
  if (size === 0) return [m, 0, x]; // 0 ± Infinity
  if (!(size < Infinity)) throw new RangeError("a number left every range");
  for (; size >= HIGH; size *= DOWN, e++) [m, x] = [m * DOWN, x * DOWN];
  for (; size < LOW; size *= UP, e--) [m, x] = [m * UP, x * UP];
  return [m, e, x];
}

/** The complex number {re, im, e}, which stands for (re + i·im)·2^(64·e), times another one, in place. */
export function multiplyComplex(number, re, im, e = 0) {
  [number.re, number.im] = [number.re * re - number.im * im, number.re * im + number.im * re];
  number.e += e;
  let size = Math.max(Math.abs(number.re), Math.abs(number.im));
  if (size === 0) number.e = 0;
  for (; size >= HIGH; size *= DOWN, number.e++) [number.re, number.im] = [number.re * DOWN, number.im * DOWN];
  for (; size !== 0 && size < LOW; size *= UP, number.e--) [number.re, number.im] = [number.re * UP, number.im * UP];
}

/** A bound on the relative error of a number; Infinity for what may be 0 and may not. */
export function relativeError({ m, x }) {
  if (x === 0) return 0;
  return Math.abs(m) > x ? x / (Math.abs(m) - x) : Infinity;
}

/** a / b as a double, with a bound on its absolute error; NaN where b may be 0. */
export function quotient(a, b) {
  const d = a.e - b.e;
  const scale = d === 0 ? 1 : 2 ** Math.max(-1000, Math.min(1000, 64 * d));
  const value = (a.m / b.m) * scale;
  if (!(Math.abs(b.m) > b.x)) return { value: NaN, error: Infinity };
  const error = ((a.x + Math.abs(a.m / b.m) * b.x) / (Math.abs(b.m) - b.x)) * scale + 2 * UNIT * Math.abs(value);
  return { value, error };
}

/** The natural logarithm of a positive number. */
export function logarithm({ m, e }) {
  return Math.log(m) + 64 * e * Math.LN2;
}
