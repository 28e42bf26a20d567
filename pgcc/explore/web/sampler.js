// Samples given the evidence. Where nothing is negative, one choice at every sum from the root down; determinants by
// elimination of their marginal kernel. Otherwise one variable after another, each by its marginal given those before.

import { IN, LEAF, OPEN, OUT, SUM, TIMES } from "./evaluator.js";
import { quotient, shiftBy } from "./scaled.js";

/** Random numbers in [0, 1) that a seed fixes (sfc32). */
export function randomNumbers(seed) {
  let a = 0x9e3779b9, b = 0x243f6a88, c = seed >>> 0, d = 1;
  const next = () => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 16; i++) next();
  return () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
}

/** `count` samples as arrays of IN and OUT, one at a time: yields after each, returns all. */
export function* sampleSteps(evaluator, codes, count, random) {
  const samples = [], { positive, dets } = evaluator.program;
  if (positive && dets.every((det) => det.size === null)) {
    evaluator.evaluate(codes);
    const kernels = new Map();
    for (let k = 0; k < count; k++) {
      samples.push(fromTheRoot(evaluator, codes, kernels, random));
      yield samples.length / count;
    }
    return samples;
  }
  for (let k = 0; k < count; k++) samples.push(yield* oneByOne(evaluator, codes, random));
  return samples;
}

function* oneByOne(evaluator, codes, random) {
  const row = codes.slice();
  for (let i = 0; i < row.length; i++) {
    if (row[i] !== OPEN) continue;
    row[i] = random() < evaluator.query(row).marginal[i] ? IN : OUT;
    yield 0;
  }
  return row;
}

function fromTheRoot(evaluator, codes, kernels, random) {
  const { op, start, args, root } = evaluator.program, row = codes.slice(), open = [root];
  while (open.length) {
    const i = open.pop(), first = start[i], last = start[i + 1];
    if (op[i] === LEAF) {
      decideLeaf(evaluator.program, args[first], row, random);
    } else if (op[i] === TIMES) {
      for (let j = first; j < last; j++) open.push(args[j]);
    } else if (op[i] === SUM) {
      chooseTerm(evaluator, i, open, random);
    } else {
      const det = evaluator.determinants[args[first]], k = det.children;
      if (!kernels.has(i)) kernels.set(i, det.kernel());
      const inside = drawChildren(det, kernels.get(i), random);
      for (let c = 0; c < k; c++) open.push(args[first + 1 + (inside[c] ? c : k + c)]);
    }
  }
  return row;
}

/** a·ȳ + b·z: in with probability b / (a + b). */
function decideLeaf({ leafVariable, leaf, leafExponent }, l, row, random) {
  const variable = leafVariable[l];
  if (variable < 0 || row[variable] !== OPEN) return;
  const of = (at) => ({ m: leaf[at], e: leafExponent[at], x: 0 });
  row[variable] = random() < quotient(of(3 * l + 1), of(3 * l + 2)).value ? IN : OUT;
}

function chooseTerm(evaluator, i, open, random) {
  const { start, args, firstWeight, weight, weightExponent } = evaluator.program, { m, e } = evaluator.values;
  let left = random() * m[i], chosen = -1;
  for (let k = firstWeight[i], j = start[i]; j < start[i + 1]; k++, j++) {
    const s = args[j], term = weight[k] * m[s], place = weightExponent[k] + e[s] - e[i];
    if (!(term > 0)) continue;
    chosen = s;
    left -= term * shiftBy(place);
    if (left < 0) break;
  }
  open.push(chosen);
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
