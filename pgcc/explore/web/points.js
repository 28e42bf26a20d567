// The distribution of how many variables are in: the coefficients of g with z_i = t for every open variable, from its
// values at roots of unity. They are accurate relative to the largest of them, which is what a picture needs.

import { ComplexMatrix } from "./complex.js";
import { DET, IN, LEAF, OPEN, SUM, TIMES } from "./evaluator.js";
import { Pencil } from "./pencil.js";
import { DOWN, HIGH, LOW, NOWHERE, SHIFTS, UNIT, UP, quotient } from "./scaled.js";

/** For every value, the largest number of open variables that can be in, by the structure of the program. */
function formalDegrees(evaluator) {
  const { op, start, args, leafVariable, leaf, length } = evaluator.program;
  const degree = new Float64Array(length);
  for (let i = 0; i < length; i++) {
    const first = start[i], last = start[i + 1];
    if (op[i] === LEAF) {
      const l = args[first];
      degree[i] = leafVariable[l] >= 0 && evaluator.codes[leafVariable[l]] === OPEN && leaf[3 * l + 1] !== 0 ? 1 : 0;
    } else if (op[i] === TIMES) {
      for (let j = first; j < last; j++) degree[i] += degree[args[j]];
    } else if (op[i] === SUM) {
      for (let j = first; j < last; j++) degree[i] = Math.max(degree[i], degree[args[j]]);
    } else {
      const det = evaluator.determinants[args[first]], k = det.children, gains = [];
      for (let j = 0; j < k; j++) {
        const f = degree[args[first + 1 + j]], y = degree[args[first + 1 + k + j]];
        degree[i] += y;
        gains.push(Math.max(0, f - y));
      }
      gains.sort((a, b) => b - a);
      for (let j = 0; j < Math.min(k, det.rank); j++) degree[i] += gains[j];
    }
  }
  return degree;
}

/** About how many multiplications the distribution takes. */
export function pointWork(evaluator) {
  const { program, determinants } = evaluator, degree = formalDegrees(evaluator);
  const points = degree[program.root] / 2 + 1;
  let work = 4 * program.args.length * points;
  for (let i = 0; i < program.length; i++) {
    if (program.op[i] !== DET) continue;
    const det = determinants[program.args[program.start[i]]], n = det.n ?? det.plain?.n ?? det.rank;
    const slots = program.args.subarray(program.start[i] + 1, program.start[i + 1]);
    const linear = det.size === null && slots.every((slot, c) => degree[slot] === 0 || (c < det.children && program.op[slot] === LEAF));
    work += linear ? 4 * n ** 3 + 4 * points * n ** 2 : 2 * points * n ** 3 * (det.size === null ? 1 : det.rank + 1);
  }
  return work;
}

/** A pass over the program at a complex t: numbers (re + i·im)·2^(64·e) ± x. */
class PointPass {
  constructor(evaluator) {
    this.evaluator = evaluator;
    const { length } = evaluator.program;
    this.re = new Float64Array(length);
    this.im = new Float64Array(length);
    this.e = new Int32Array(length);
    this.x = new Float64Array(length);
    this.pencils = new Map();
  }

  put(i, re, im, e, x) {
    let size = Math.max(Math.abs(re), Math.abs(im), x);
    if (size === 0) e = 0;
    for (; size >= HIGH; size *= DOWN, e++) [re, im, x] = [re * DOWN, im * DOWN, x * DOWN];
    for (; size !== 0 && size < LOW; size *= UP, e--) [re, im, x] = [re * UP, im * UP, x * UP];
    this.re[i] = re;
    this.im[i] = im;
    this.e[i] = e;
    this.x[i] = x;
  }

  run(tr, ti) {
    this.t = [tr, ti];
    const { op, length, root } = this.evaluator.program;
    for (let i = 0; i < length; i++) {
      if (op[i] === SUM) this.sum(i);
      else if (op[i] === TIMES) this.times(i);
      else if (op[i] === LEAF) this.leaf(i, tr, ti);
      else this.determinant(i);
    }
    return { re: this.re[root], im: this.im[root], e: this.e[root], x: this.x[root] };
  }

  leaf(i, tr, ti) {
    const { args, start, leafVariable, leaf, leafExponent } = this.evaluator.program;
    const l = args[start[i]], variable = leafVariable[l], code = variable < 0 ? 0 : this.evaluator.codes[variable];
    if (code !== OPEN) return this.put(i, leaf[3 * l + code], 0, leafExponent[3 * l + code], UNIT * Math.abs(leaf[3 * l + code]));
    // a + b·t
    const a = leaf[3 * l], b = leaf[3 * l + 1], place = Math.max(a === 0 ? NOWHERE : leafExponent[3 * l], b === 0 ? NOWHERE : leafExponent[3 * l + 1]);
    const scale = (at) => (leaf[at] === 0 || place - leafExponent[at] > 3 ? 0 : leaf[at] * SHIFTS[place - leafExponent[at]]);
    const sa = scale(3 * l), sb = scale(3 * l + 1);
    this.put(i, sa + sb * tr, sb * ti, place === NOWHERE ? 0 : place, 3 * UNIT * (Math.abs(sa) + Math.abs(sb)));
  }

  sum(i) {
    const { start, args, firstWeight, weight, weightExponent } = this.evaluator.program;
    const { re, im, e, x } = this;
    const first = start[i], lastWeight = firstWeight[i + 1];
    let k = firstWeight[i];
    let sr = 0, si = 0, exponent = NOWHERE, error = 0;
    for (let j = first; k < lastWeight; k++) {
      const s = args[j++], w = weight[k];
      let pr = w * re[s], pi = w * im[s], place = weightExponent[k] + e[s], off = Math.abs(w) * x[s];
      const size = Math.abs(pr) + Math.abs(pi);
      if (size === 0 && off === 0) continue;
      off += 4 * UNIT * size;
      if (place > exponent) {
        const shift = place - exponent > 3 ? 0 : SHIFTS[place - exponent];
        sr = sr * shift + pr;
        si = si * shift + pi;
        error = error * shift + off;
        exponent = place;
      } else {
        const shift = exponent - place > 3 ? 0 : SHIFTS[exponent - place];
        sr += pr * shift;
        si += pi * shift;
        error += off * shift;
      }
      error += UNIT * (Math.abs(sr) + Math.abs(si));
    }
    this.put(i, sr, si, exponent, error);
  }

  times(i) {
    const { start, args } = this.evaluator.program, { re, im, e, x } = this;
    this.put(i, 1, 0, 0, 0);
    for (let j = start[i]; j < start[i + 1]; j++) {
      const s = args[j], ar = re[i], ai = im[i], size = Math.abs(ar) + Math.abs(ai);
      const pr = ar * re[s] - ai * im[s], pi = ar * im[s] + ai * re[s];
      const off = x[i] * (Math.abs(re[s]) + Math.abs(im[s]) + x[s]) + size * x[s] + 4 * UNIT * (Math.abs(pr) + Math.abs(pi));
      this.put(i, pr, pi, e[i] + e[s], off);
    }
  }

  /** The factors and the matrix of a determinant (determinant.js) at complex children. */
  determinant(i) {
    const { start, args } = this.evaluator.program, det = this.evaluator.determinants[args[start[i]]];
    const slots = args.subarray(start[i] + 1, start[i + 1]), k = det.children, { re, im, e, x } = this;
    const shape = { rank: det.rank, children: k, m0: det.m0, u: det.u, v: det.v, border: new Int32Array(k) };
    const ratios = [];
    let borders = 0;
    this.put(i, 1, 0, 0, 0);
    const multiply = (s) => {
      const pr = re[i] * re[s] - im[i] * im[s], pi = re[i] * im[s] + im[i] * re[s];
      const off = x[i] * (Math.abs(re[s]) + Math.abs(im[s])) + (Math.abs(re[i]) + Math.abs(im[i])) * x[s];
      this.put(i, pr, pi, e[i] + e[s], off + 4 * UNIT * (Math.abs(pr) + Math.abs(pi)));
    };
    for (let c = 0; c < k; c++) {
      const f = slots[c], y = slots[k + c], norm = re[y] ** 2 + im[y] ** 2;
      shape.border[c] = norm === 0 ? borders++ : -1;
      const scale = norm === 0 ? 0 : 2 ** Math.max(-1000, Math.min(1000, 64 * (e[f] - e[y]))) / norm;
      ratios.push([(re[f] * re[y] + im[f] * im[y]) * scale, (im[f] * re[y] - re[f] * im[y]) * scale]);
      multiply(norm === 0 ? f : y);
    }
    if (borders > det.rank) return this.put(i, 0, 0, 0, 0);
    const found = this.bareValue(i, det, shape, ratios, det.rank + borders);
    const pr = re[i] * found.re - im[i] * found.im, pi = re[i] * found.im + im[i] * found.re;
    const size = Math.abs(found.re) + Math.abs(found.im);
    // a determinant without negative coefficients is largest at t = 1, where its error is known
    const known = this.evaluator.values.at(i), there = quotient({ ...known, m: known.x, x: 0 }, { m: 1, e: e[i] + found.e, x: 0 });
    this.put(i, pr, pi, e[i] + found.e, x[i] * size + 4 * Math.abs(there.value) + 8 * UNIT * (Math.abs(pr) + Math.abs(pi)));
  }

  /** The determinant without its factors. */
  bareValue(i, det, shape, ratios, n) {
    if (this.pencils.has(i)) return this.pencils.get(i).at(...this.t);
    return det.size === null ? plainValue(shape, ratios, n) : sizedValue(det, shape, ratios, n);
  }
}

function plainValue(shape, ratios, n) {
  const matrix = new ComplexMatrix(n);
  matrix.fill(shape, (c) => ratios[c]);
  return matrix.determinant();
}

/** The coefficient of s^k at complex children: a mean over the circle that the real ones have taken. */
function sizedValue(det, shape, ratios, n) {
  if (det.found === null) return { re: 0, im: 0, e: 0 };
  const { rho, wanted, degree } = det.found, count = degree + 1;
  const matrix = new ComplexMatrix(n), values = [];
  for (let j = 0; j < count; j++) {
    const angle = (2 * Math.PI * j) / count, sr = rho * Math.cos(angle), si = rho * Math.sin(angle);
    matrix.fill(shape, (c) => (det.isCounted[c] ? [ratios[c][0] * sr - ratios[c][1] * si, ratios[c][0] * si + ratios[c][1] * sr] : ratios[c]));
    values.push({ ...matrix.determinant(), turn: angle * wanted });
  }
  const top = values.reduce((most, v) => Math.max(most, v.e), NOWHERE);
  let re = 0, im = 0;
  for (const v of values) {
    const scale = 2 ** (64 * Math.max(v.e - top, -15)) / count, c = Math.cos(v.turn), s = Math.sin(v.turn);
    re += scale * (v.re * c + v.im * s);
    im += scale * (v.im * c - v.re * s);
  }
  return { re: re / det.found.fraction, im: im / det.found.fraction, e: top - det.found.whole };
}

/** Pr(k variables are in | evidence) for every k, a point at a time: yields how much is done, returns the numbers. */
export function* sizeSteps(evaluator, codes) {
  const value = evaluator.evaluate(codes);
  const inside = codes.reduce((count, code) => count + (code === IN ? 1 : 0), 0);
  const degree = formalDegrees(evaluator), { program } = evaluator;
  const count = degree[program.root] + 1, pass = new PointPass(evaluator), points = [];
  for (let i = 0; i < program.length; i++) {
    if (program.op[i] !== DET) continue;
    const det = evaluator.determinants[program.args[program.start[i]]];
    const pencil = yield* Pencil.of(evaluator, det, program.args.subarray(program.start[i] + 1, program.start[i + 1]), degree);
    if (pencil !== null) pass.pencils.set(i, pencil);
  }
  for (let j = 0; 2 * j <= count; j++) {
    const angle = (2 * Math.PI * j) / count;
    const { re, im, e, x } = pass.run(Math.cos(angle), Math.sin(angle));
    const scale = (m) => quotient({ m, e, x: 0 }, { ...value, x: 0 }).value;
    points.push({ re: scale(re), im: scale(im), x: scale(x), twice: j > 0 && 2 * j < count ? 2 : 1 });
    yield (2 * j) / count;
  }
  const probability = new Float64Array(codes.length + 1);
  let error = yield* pencilError(pass, value);
  for (const point of points) error += (point.twice * point.x) / count;
  for (let k = 0; k < count; k++) {
    let sum = 0;
    points.forEach((point, j) => {
      const angle = (2 * Math.PI * ((j * k) % count)) / count;
      sum += point.twice * (point.re * Math.cos(angle) + point.im * Math.sin(angle));
    });
    probability[inside + k] = sum / count;
  }
  return { probability, error: error + 16 * UNIT };
}

/** How far pencils are off, by comparison with elimination at one point where most coefficients alternate. */
function* pencilError(pass, value) {
  if (pass.pencils.size === 0) return 0;
  const angle = 0.9 * Math.PI, one = pass.run(Math.cos(angle), Math.sin(angle));
  pass.pencils.clear();
  yield 1;
  const other = pass.run(Math.cos(angle), Math.sin(angle));
  const scale = (m, e) => quotient({ m, e, x: 0 }, { ...value, x: 0 }).value;
  return 10 * Math.hypot(scale(one.re, one.e) - scale(other.re, other.e), scale(one.im, one.e) - scale(other.im, other.e));
}

/** The same at once. */
export function sizeDistribution(evaluator, codes) {
  const steps = sizeSteps(evaluator, codes);
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}
