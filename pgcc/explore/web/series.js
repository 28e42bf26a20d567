// The distribution of how many variables are in: g with z_i = t for every open variable is a polynomial in t. It is
// computed value by value, by products and sums of polynomials: where nothing is negative, no digit is lost. Only the
// polynomial of a determinant is found from its values at roots of unity, accurate relative to its largest coefficient.

import { Determinant } from "./determinant.js";
import { DET, LEAF, SUM, TIMES } from "./decode.js";
import { IN, OPEN } from "./evaluator.js";
import { UNIT, multiplyComplex, quotient, relativeError, shiftBy } from "./scaled.js";

const MOST_COEFFICIENTS = 1e8; // at a time
const NOWHERE = -(2 ** 30); // the exponent of 0

/** Of the last instruction that reads a value: when it may be forgotten. */
function lastReaders({ slots, length }) {
  const last = Int32Array.from({ length }, (_, i) => i);
  for (let i = 0; i < length; i++) for (const slot of slots(i)) last[slot] = i;
  return last;
}

/** For every value, the largest number of open variables to count that can be in, by the structure of the program. */
function formalDegrees({ program, codes, determinants }) {
  const { op, start, args, slots, leafVariable, leaf, length } = program, degree = new Float64Array(length);
  for (let i = 0; i < length; i++) {
    const of = Array.from(slots(i), (slot) => degree[slot]), l = args[start[i]];
    if (op[i] === LEAF) degree[i] = leafVariable[l] >= 0 && codes[leafVariable[l]] === OPEN && program.counted[leafVariable[l]] && leaf[3 * l + 1] !== 0 ? 1 : 0;
    else if (op[i] === TIMES) degree[i] = of.reduce((sum, d) => sum + d, 0);
    else if (op[i] === SUM) degree[i] = of.reduce((most, d) => Math.max(most, d), 0);
    else {
      const { children: k, rank } = determinants[l], gains = of.slice(0, k).map((d, c) => Math.max(0, d - of[k + c]));
      degree[i] = [...of.slice(k), ...gains.sort((a, b) => b - a).slice(0, rank)].reduce((sum, d) => sum + d, 0);
    }
  }
  return degree;
}

/** About how many multiplications the distribution takes; Infinity if it takes too much memory. */
export function sizeWork(evaluator) {
  const { program, determinants } = evaluator, { op, start, args, slots, length } = program;
  const degree = formalDegrees(evaluator), last = lastReaders(program), freed = new Float64Array(length + 1);
  let work = 0, kept = 0;
  for (let i = 0; i < length; i++) {
    const size = degree[i] + 1;
    let sum = 0; // of the degrees before
    kept += size - freed[i];
    freed[last[i] + 1] += size;
    if (kept > MOST_COEFFICIENTS) return Infinity;
    if (op[i] === DET) {
      const { rank, borders, circle } = determinants[args[start[i]]];
      work += size > 1 ? 2 * size * ((circle?.degree ?? 0) + 1) * (rank + borders) ** 3 : 0;
      continue;
    }
    for (const slot of slots(i)) {
      work += (op[i] === SUM ? 1 : sum + 1) * (degree[slot] + 1);
      sum += degree[slot];
    }
  }
  return work;
}

/** Polynomials in t, {c, e, x}: Σ c_k·t^k times 2^(64·e), with c off by x, its errors added up. */
class Series {
  constructor(evaluator) {
    Object.assign(this, { evaluator, program: evaluator.program, degree: formalDegrees(evaluator) });
    this.values = new Array(this.program.length);
  }

  /** The polynomial of the root, value by value. */
  *run() {
    const { op, slots, length, root } = this.program, last = lastReaders(this.program);
    for (let i = 0; i < length; i++) {
      if (op[i] === LEAF) this.values[i] = this.leaf(i);
      else if (op[i] === SUM) this.values[i] = this.sum(i);
      else if (op[i] === TIMES) this.values[i] = yield* this.times(i);
      else this.values[i] = yield* this.determinant(i);
      for (const slot of slots(i)) if (last[slot] === i) this.values[slot] = null;
      if (i % 64 === 0) yield i / length;
    }
    return this.values[root];
  }

  leaf(i) {
    const { args, start, leafVariable, leaf, leafExponent } = this.program, l = 3 * args[start[i]], variable = leafVariable[l / 3];
    const code = variable < 0 ? 0 : this.evaluator.codes[variable], parts = code === OPEN && this.program.counted[variable] ? [l, l + 1] : [l + code];
    const e = parts.reduce((most, at) => (leaf[at] === 0 ? most : Math.max(most, leafExponent[at])), NOWHERE);
    const c = parts.map((at) => leaf[at] * shiftBy(Math.min(0, leafExponent[at] - e)));
    return polynomial(c, e, UNIT * extent({ c }));
  }

  sum(i) {
    const { start, args, firstWeight, weight, weightExponent } = this.program, c = new Float64Array(this.degree[i] + 1);
    let e = NOWHERE, x = 0;
    for (let j = start[i], k = firstWeight[i]; j < start[i + 1]; j++, k++) e = Math.max(e, weightExponent[k] + this.values[args[j]].e);
    for (let j = start[i], k = firstWeight[i]; j < start[i + 1]; j++, k++) {
      const term = this.values[args[j]], w = weight[k] * shiftBy(weightExponent[k] + term.e - e);
      term.c.forEach((coefficient, n) => (c[n] += w * coefficient));
      x += Math.abs(w) * (term.x + (start[i + 1] - start[i] + 2) * UNIT * extent(term));
    }
    return polynomial(c, e, x);
  }

  *times(i) {
    let product = polynomial([1], 0, 0);
    for (let j = this.program.start[i]; j < this.program.start[i + 1]; j++) {
      const one = product, other = this.values[this.program.args[j]], a = extent(one), b = extent(other);
      const [short, long] = one.c.length < other.c.length ? [one.c, other.c] : [other.c, one.c];
      const c = new Float64Array(short.length + long.length - 1);
      for (let p = 0; p < short.length; p++) {
        const factor = short[p];
        if (factor !== 0) for (let q = 0; q < long.length; q++) c[p + q] += factor * long[q];
      }
      product = polynomial(c, one.e + other.e, a * other.x + b * one.x + one.x * other.x + (short.length + 1) * UNIT * a * b);
      if (c.length > 1000) yield 0;
    }
    return product;
  }

  /** From the values at roots of unity, of which half are the conjugates of the others. */
  *determinant(i) {
    const { evaluator, program } = this, { positive } = program, slots = program.slots(i), known = evaluator.values.at(i);
    const det = evaluator.determinants[program.args[program.start[i]]], there = new Determinant(det), points = [];
    const count = (this.degree[i] + 1) | 1, c = new Float64Array(this.degree[i] + 1); // odd: −1 is often a zero
    if (c.length === 1) return polynomial([known.m], known.e, known.x);
    for (let j = 0; 2 * j < count; j++) {
      const angle = (2 * Math.PI * j) / count;
      points.push({ ...this.pointOf(there, slots, det.circle?.rho, angle), angle, share: (j > 0 ? 2 : 1) / count });
      yield j / count;
    }
    const e = Math.max(known.e, ...points.map((point) => point.e));
    let x = 0;
    for (const point of points) {
      const scale = point.share * shiftBy(point.e - e), size = Math.hypot(point.re, point.im) * shiftBy(point.e - e);
      for (let n = 0; n < c.length; n++) {
        const angle = (point.angle * n) % (2 * Math.PI);
        c[n] += scale * (point.re * Math.cos(angle) + point.im * Math.sin(angle));
      }
      x = Math.max(x, 16 * count * UNIT * size, positive ? 0 : point.relative === Infinity ? Infinity : size * point.relative);
    }
    if (positive) {
      // its values are largest at t = 1, and their errors
      const children = slots.reduce((sum, slot) => sum + this.valueAt(slot, 0).relative, 0);
      x += (4 * known.x + Math.abs(known.m) * children) * shiftBy(known.e - e);
    }
    return polynomial(c, e, Math.sqrt(count) * x); // Parseval
  }

  /** The value of a determinant at a complex t of absolute value 1: {re, im, e}, with a bound on its relative error. */
  pointOf(det, slots, rho, angle) {
    const value = det.read(slots, (slot) => this.valueAt(slot, angle)), off = det.isDoubtful ? Infinity : value.relative;
    det.circle = value.zeros > 0 ? null : det.chooseCircle(rho);
    if (det.circle === null) return { re: 0, im: 0, e: 0, relative: off };
    const bare = det.coefficient(!this.program.positive), size = Math.hypot(bare.re, bare.im);
    multiplyComplex(value, bare.re, bare.im, bare.e);
    return { ...value, relative: size > 0 ? off + (1 + off) * bare.x / size : Infinity };
  }

  valueAt(slot, angle) {
    const { c, e, x } = this.values[slot], tr = Math.cos(angle), ti = Math.sin(angle);
    let re = 0, im = 0;
    for (let k = c.length - 1; k >= 0; k--) [re, im] = [re * tr - im * ti + c[k], re * ti + im * tr];
    const size = Math.hypot(re, im), off = c.length === 1 ? x : x + 4 * c.length * UNIT * extent({ c });
    return { re, im, e, relative: off === 0 ? 0 : off / size };
  }
}

/** With its largest coefficient in [2⁻³², 2³²). */
function polynomial(c, e, x) {
  const most = c.reduce((size, coefficient) => Math.max(size, Math.abs(coefficient)), x < Infinity ? x : 0);
  const shift = most === 0 ? 0 : Math.floor((Math.log2(most) + 32) / 64);
  return { c: shift === 0 ? c : c.map((coefficient) => coefficient * 2 ** (-64 * shift)), e: most === 0 ? NOWHERE : e + shift, x: x * 2 ** (-64 * shift) };
}

/** Σ |c_k| */
function extent({ c }) {
  return c.reduce((sum, coefficient) => sum + Math.abs(coefficient), 0);
}

/** Pr(k variables are in | evidence) for every k, with a bound on their errors together: yields how much is done. */
export function* sizeSteps(evaluator, codes) {
  const value = evaluator.evaluate(codes), { c, e, x } = yield* new Series(evaluator).run();
  const { counted } = evaluator.program, inside = codes.reduce((count, code, i) => count + (code === IN ? counted[i] : 0), 0), probability = new Float64Array(counted.reduce((sum, one) => sum + one, 1));
  const share = (m) => quotient({ m, e, x: 0 }, { ...value, x: 0 }).value;
  c.forEach((coefficient, k) => (probability[inside + k] = share(coefficient)));
  const most = probability.reduce((size, p) => Math.max(size, Math.abs(p)), 1), error = Math.abs(share(x)) + (relativeError(value) + 4 * UNIT) * most;
  return { probability, first: inside, last: inside + c.length - 1, error };
}

/** The mean and the standard deviation of a distribution, and how far they may be off. */
export function momentsOf({ probability, first, last, error }) {
  const mean = probability.reduce((sum, p, k) => sum + k * p, 0);
  const variance = probability.reduce((sum, p, k) => sum + (k - mean) ** 2 * p, 0);
  const off = error * Math.max(mean - first, last - mean) ** 2, deviation = Math.sqrt(Math.max(0, variance));
  const most = Math.sqrt(Math.max(0, variance) + off);
  return { mean, meanError: error * probability.length, deviation, deviationError: deviation > 0 ? Math.min(most, off / deviation) : most };
}
