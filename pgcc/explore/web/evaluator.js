// The program of a model, run forwards for the probability of evidence and backwards for the marginals of everything
// else. All numbers are scaled, and carry a bound on their error (scaled.js).

import { DET, LEAF, SUM, TIMES } from "./decode.js";
import { Determinant } from "./determinant.js";
import { Scaled, UNIT, quotient, relativeError } from "./scaled.js";

export const OUT = 0, IN = 1, OPEN = 2;

/** Codes with one more column known: where one of a block is in, the others are out. */
export function observed(codes, column, known, block) {
  return codes.map((code, i) => (i === column ? known : known === IN && block[i] === block[column] ? OUT : code));
}

export class Evaluator {
  constructor(program) {
    this.program = program;
    this.values = new Scaled(program.length);
    this.scratch = new Scaled(64);
    this.determinants = program.dets.map((det) => new Determinant({ ...det, nonnegative: program.positive }));
    this.outAt = new Map(Array.from(program.outs, (column, k) => [column, program.variables + k]));
    this.needed = this.findNeeded();
    this.codes = new Uint8Array(program.variables).fill(OPEN);
    this.total = this.evaluate(this.codes);
  }

  /** Which values depend on some z: only their derivatives are wanted. */
  findNeeded() {
    const { op, start, args, slots, leafVariable, leaf, length } = this.program, needed = new Uint8Array(length);
    for (let i = 0; i < length; i++) {
      const l = args[start[i]];
      if (op[i] === LEAF) needed[i] = leafVariable[l] >= 0 && (leaf[3 * l + 1] !== 0 || this.outAt.has(leafVariable[l])) ? 1 : 0;
      else needed[i] = slots(i).some((slot) => needed[slot]) ? 1 : 0;
    }
    return needed;
  }

  /** g of evidence: for every variable IN, OUT or OPEN. */
  evaluate(codes) {
    this.codes = codes;
    const { op, start, args, slots, length } = this.program;
    for (let i = 0; i < length; i++) {
      if (op[i] === SUM) this.sum(i);
      else if (op[i] === TIMES) this.times(i);
      else if (op[i] === LEAF) this.leaf(i);
      else if (op[i] === DET) this.determinants[args[start[i]]].evaluate(this.values, slots(i), i);
      else throw new Error(`nobody has said how to run operation ${op[i]}`);
    }
    return this.values.at(this.program.root);
  }

  leaf(i) {
    const { args, start, leafVariable, leaf, leafExponent } = this.program;
    const l = args[start[i]], variable = leafVariable[l];
    const at = 3 * l + (variable < 0 ? OUT : this.codes[variable]); // of a constant, a in a·ȳ + b·z
    this.values.put(i, leaf[at], leafExponent[at], UNIT * Math.abs(leaf[at]));
  }

  /** Σ w·x */
  sum(i) {
    const { start, args, firstWeight, weight, weightExponent } = this.program, values = this.values, { m, e, x } = values;
    values.put(i, 0, 0, 0);
    for (let j = start[i], k = firstWeight[i]; j < start[i + 1]; j++, k++) {
      const s = args[j], term = weight[k] * m[s];
      values.add(i, term, weightExponent[k] + e[s], Math.abs(weight[k]) * x[s] + 2 * UNIT * Math.abs(term));
    }
  }

  times(i) {
    const { start, args } = this.program, values = this.values, { m, e, x } = values;
    const first = start[i], last = start[i + 1];
    if (first === last) return values.put(i, 1, 0, 0);
    values.put(i, m[args[first]], e[args[first]], x[args[first]]);
    for (let j = first + 1; j < last; j++) values.multiply(i, m[args[j]], e[args[j]], x[args[j]]);
  }

  /** ∂g/∂z_i · z_i for every open variable, after `evaluate`: Pr(evidence, i in), up to the total. */
  differentiate() {
    const { op, start, args, length, root } = this.program;
    this.adjoints = new Scaled(length);
    this.joints = new Scaled(this.program.variables + this.outAt.size);
    this.adjoints.put(root, 1, 0, 0);
    const { m, x } = this.adjoints;
    for (let i = length - 1; i >= 0; i--) {
      if (!this.needed[i] || (m[i] === 0 && x[i] === 0)) continue;
      if (op[i] === SUM) this.sumBack(i);
      else if (op[i] === TIMES) this.timesBack(i);
      else if (op[i] === LEAF) this.leafBack(i);
      else this.determinants[args[start[i]]].differentiate(this.values, this.adjoints, this.adjoints.at(i), this.needed);
    }
    return this.joints;
  }

  leafBack(i) {
    const { args, start, leafVariable, leaf, leafExponent } = this.program;
    const l = args[start[i]], { m, e, x } = this.adjoints;
    for (let k = 1; k >= 0; k--) { // that it is in and, where that has a name, that it is out
      const place = k ? leafVariable[l] : this.outAt.get(leafVariable[l]), at = 3 * l + k, term = leaf[at] * m[i];
      if (place !== undefined) this.joints.add(place, term, leafExponent[at] + e[i], Math.abs(leaf[at]) * x[i] + 2 * UNIT * Math.abs(term));
    }
  }

  sumBack(i) {
    const { start, args, firstWeight, weight, weightExponent } = this.program, { adjoints, needed } = this;
    const m = adjoints.m[i], e = adjoints.e[i], x = adjoints.x[i];
    for (let j = start[i], k = firstWeight[i]; j < start[i + 1]; j++, k++) {
      const w = weight[k];
      if (needed[args[j]]) adjoints.add(args[j], w * m, weightExponent[k] + e, Math.abs(w) * x + 2 * UNIT * Math.abs(w * m));
    }
  }

  /** By products of what stands before and after each factor: one of them may be 0. */
  timesBack(i) {
    const { start, args } = this.program, { values, adjoints, needed } = this, { m, e, x } = values;
    const first = start[i], count = start[i + 1] - first;
    if (this.scratch.m.length < count + 2) this.scratch = new Scaled(2 * count + 2);
    const after = this.scratch, before = count + 1; // after[j]: the adjoint times the factors from j on
    after.put(count, adjoints.m[i], adjoints.e[i], adjoints.x[i]);
    for (let j = count - 1; j > 0; j--) {
      const s = args[first + j];
      after.put(j, after.m[j + 1], after.e[j + 1], after.x[j + 1]);
      after.multiply(j, m[s], e[s], x[s]);
    }
    after.put(before, 1, 0, 0); // the factors before j
    for (let j = 0; j < count; j++) {
      const s = args[first + j];
      if (needed[s]) {
        after.put(0, after.m[j + 1], after.e[j + 1], after.x[j + 1]);
        after.multiply(0, after.m[before], after.e[before], after.x[before]);
        adjoints.add(s, after.m[0], after.e[0], after.x[0]);
      }
      after.multiply(before, m[s], e[s], x[s]);
    }
  }

  /** Pr(evidence) and, for every variable, Pr(in | evidence), each with a bound on its error. */
  query(codes) {
    const value = this.evaluate(codes);
    const joints = this.differentiate();
    const n = this.program.variables + this.outAt.size, marginal = new Float64Array(n), error = new Float64Array(n);
    [...codes, ...Array.from(this.program.outs, (i) => (codes[i] === OPEN ? OPEN : 1 - codes[i]))].forEach((code, i) => {
      const share = code === OPEN ? quotient(joints.at(i), value) : { value: code, error: 0 };
      [marginal[i], error[i]] = [share.value, share.error];
    });
    const evidence = quotient(value, this.total);
    return { value, evidence, relative: relativeError(value) + relativeError(this.total), marginal, error };
  }
}
