// Sets from the root down: at every sum one term, at every leaf in or out, by a choice among numbers that are not
// negative: at random for samples, the largest for the most probable set. Where numbers are negative (or determinants
// have a size), samples are drawn one variable after another instead, each by its marginal given those before.

import { LEAF, SUM, TIMES } from "./decode.js";
import { IN, OPEN, OUT, observed } from "./evaluator.js";
import { shiftBy } from "./scaled.js";

/** Random numbers in [0, 1) that a seed fixes: steps of a counter, their bits mixed by multiplications and shifts. */
export function randomNumbers(seed) {
  const mixed = (x, shift, factor) => Math.imul(x ^ (x >>> shift), factor);
  return () => {
    seed = (seed + 0x9e3779b9) | 0;
    const x = mixed(mixed(seed, 16, 0x85ebca6b), 13, 0xc2b2ae35);
    return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
  };
}

/** `count` samples as arrays of IN and OUT, one at a time: yields after each, returns all. */
export function* sampleSteps(evaluator, codes, count, random) {
  const samples = [], kernels = new Map(), { positive, dets } = evaluator.program;
  const pick = (sizes) => {
    let left = random() * sizes.reduce((sum, size) => sum + size, 0), at = -1;
    for (let k = 0; k < sizes.length && (at < 0 || left >= 0); k++) {
      if (sizes[k] > 0) left -= sizes[(at = k)];
    }
    return at;
  };
  const drawSet = (i, det) => {
    if (!kernels.has(i)) kernels.set(i, det.kernel());
    return drawChildren(det, kernels.get(i), random);
  };
  const isDirect = positive && dets.every((det) => det.size === null);
  if (isDirect) evaluator.evaluate(codes);
  while (samples.length < count) {
    samples.push(isDirect ? fromTheRoot(evaluator, codes, pick, drawSet) : yield* oneByOne(evaluator, codes, random));
    yield samples.length / count;
  }
  return samples;
}

function* oneByOne(evaluator, codes, random) {
  let row = codes.slice();
  for (let i = 0; i < row.length; i++) {
    if (row[i] !== OPEN) continue;
    row = observed(row, i, random() < evaluator.query(row).marginal[i] ? IN : OUT, evaluator.program.block);
    yield 0;
  }
  return row;
}

/** A set by pick(sizes), which chooses the place of one number, and drawSet(i, det): which children are in. */
export function fromTheRoot(evaluator, codes, pick, drawSet) {
  const { program, values, determinants } = evaluator, { op, start, args, firstWeight, weight, weightExponent } = program;
  const row = codes.slice(), open = [program.root];
  while (open.length) {
    const i = open.pop(), slots = args.subarray(start[i], start[i + 1]), first = firstWeight[i];
    if (op[i] === LEAF) {
      const l = slots[0], variable = program.leafVariable[l];
      if (variable >= 0 && row[variable] === OPEN) row[variable] = pick(sizes([0, 1], (k) => program.leaf[3 * l + k], (k) => program.leafExponent[3 * l + k]));
    } else if (op[i] === TIMES) {
      open.push(...slots);
    } else if (op[i] === SUM) {
      open.push(slots[pick(sizes(slots, (k) => weight[first + k] * values.m[slots[k]], (k) => weightExponent[first + k] + values.e[slots[k]]))]);
    } else {
      const det = determinants[slots[0]], k = det.children;
      drawSet(i, det).forEach((isIn, c) => open.push(slots[1 + (isIn ? c : k + c)]));
    }
  }
  return row.map((code) => (code === OPEN ? OUT : code)); // the states that nothing names
}

/** Numbers m·2^(64·e) as doubles, relative to the largest exponent. */
function sizes(of, m, e) {
  const top = of.reduce((most, _, k) => (m(k) === 0 ? most : Math.max(most, e(k))), -Infinity);
  return Float64Array.from(of, (_, k) => (m(k) === 0 ? 0 : m(k) * shiftBy(e(k) - top)));
}

/** Which children of a determinant are in: by elimination of its marginal kernel, one coin a pivot (Poulson). */
function drawChildren(det, [open, kernel], random) {
  const k = kernel.map((row) => row.slice());
  const inside = Uint8Array.from(det.border, (place) => (place >= 0 ? 1 : 0));
  for (let j = 0; j < open.length; j++) {
    if (random() < k[j][j]) inside[open[j]] = 1;
    else k[j][j] -= 1;
    for (let a = j + 1; a < open.length; a++) {
      const factor = k[a][j] / k[j][j];
      if (factor !== 0) for (let b = j + 1; b < open.length; b++) k[a][b] -= factor * k[j][b];
    }
  }
  return inside;
}
