// A determinant with a size (a k-DPP): the coefficient of s^k of det(s), in which every counted f_i is s·f_i.
//
// It is a mean over complex points on a circle, Σ_j det(s_j)·s_j^(−k) / N. Its accuracy is relative to the largest term
// ρ^(d−k) of the circle's radius ρ, which is therefore chosen so that about k are in on average at s = ρ.

import { Determinant } from "./determinant.js";
import { ComplexMatrix } from "./complex.js";
import { UNIT } from "./scaled.js";

const STEPS = 40; // of bisection for the radius

export class SizedDeterminant {
  constructor(spec) {
    Object.assign(this, spec);
    this.plain = new Determinant({ ...spec, size: null });
    this.isCounted = new Uint8Array(this.children).fill(spec.counted === null ? 1 : 0);
    for (const i of spec.counted ?? []) this.isCounted[i] = 1;
  }

  evaluate(values, slots, target) {
    this.values = values;
    this.slots = slots;
    const plain = this.plain;
    plain.values = values;
    plain.slots = slots;
    plain.readChildren();
    this.found = null;
    if (plain.borders > this.rank) return values.put(target, 0, 0, 0);
    // what is in counts already
    let inside = 0, open = 0;
    for (let i = 0; i < this.children; i++) {
      if (!this.isCounted[i]) continue;
      if (plain.border[i] >= 0) inside++;
      else if (plain.ratio[i] !== 0) open++;
    }
    const degree = Math.min(open, this.rank - plain.borders), wanted = this.size - inside;
    if (wanted < 0 || wanted > degree) return values.put(target, 0, 0, 0);
    this.found = this.coefficient(wanted, degree);
    const number = plain.number;
    number.put(0, this.found.sign, 0, 0);
    for (let i = 0; i < this.children; i++) {
      const slot = plain.border[i] >= 0 ? slots[i] : slots[this.children + i];
      number.multiply(0, values.m[slot], values.e[slot], values.x[slot]);
    }
    const { m, e, relative } = this.found;
    number.multiply(0, m, e, Math.abs(m) * (plain.doubtful ? 1e6 : relative));
    values.put(target, number.m[0], number.e[0], number.x[0]);
  }

  /** How many of the open counted ones are in on average at s = ρ: Σ s·ratio·(v_iᵀ B(s)⁻¹ u_i). */
  mean(rho) {
    const at = this.at(rho, 0);
    if (at === null) return NaN;
    let sum = 0;
    for (let i = 0; i < this.children; i++) if (this.isCounted[i] && this.plain.border[i] < 0) sum += at.shares[i].re;
    return sum;
  }

  /** det B(s) as re + i·im times 2^(64·e), and s·ratio_i·(v_iᵀ B(s)⁻¹ u_i) for every child. */
  at(re, im) {
    const { plain, rank, children } = this;
    const matrix = new ComplexMatrix(plain.n);
    matrix.fill(plain, (i) => (this.isCounted[i] ? [re * plain.ratio[i], im * plain.ratio[i]] : [plain.ratio[i], 0]));
    const det = matrix.determinant();
    if (det.re === 0 && det.im === 0) return null;
    const inverse = matrix.inverse(), shares = [];
    for (let i = 0; i < children; i++) {
      const g = inverse.entry(plain, i, i), r = plain.ratio[i];
      const [a, b] = this.isCounted[i] ? [re * r, im * r] : [r, 0];
      shares.push(plain.border[i] >= 0 ? { re: 1, im: 0 } : { re: g.re * a - g.im * b, im: g.re * b + g.im * a });
    }
    return { ...det, shares, condition: inverse.size() * matrix.size(), rank };
  }

  radius(wanted, degree) {
    if (degree === 0 || wanted === 0 || wanted === degree) return wanted === 0 && degree > 0 ? 2 ** -30 : degree > 0 ? 2 ** 30 : 1;
    let low = -40, high = 40;
    for (let step = 0; step < STEPS && high - low > 1e-3; step++) {
      const middle = (low + high) / 2, mean = this.mean(2 ** middle);
      if (mean < wanted) low = middle;
      else high = middle;
    }
    return 2 ** ((low + high) / 2);
  }

  coefficient(wanted, degree) {
    const rho = this.radius(wanted, degree), count = degree + 1;
    const points = [];
    for (let j = 0; 2 * j <= count; j++) {
      const angle = (2 * Math.PI * j) / count, twice = j > 0 && 2 * j < count ? 2 : 1; // a point and its conjugate
      const at = this.at(rho * Math.cos(angle), rho * Math.sin(angle));
      if (at !== null) points.push({ ...at, turn: (angle * wanted) % (2 * Math.PI), twice });
    }
    const top = points.reduce((most, p) => Math.max(most, p.e), -(2 ** 30));
    let sum = 0, size = 0, condition = 1;
    const shares = new Float64Array(this.children);
    for (const p of points) {
      const scale = p.twice * 2 ** (64 * Math.max(p.e - top, -15)), c = Math.cos(p.turn), s = Math.sin(p.turn);
      const re = scale * (p.re * c + p.im * s), im = scale * (p.im * c - p.re * s);
      sum += re;
      size += Math.hypot(re, im);
      condition = Math.max(condition, p.condition);
      for (let i = 0; i < this.children; i++) shares[i] += re * p.shares[i].re - im * p.shares[i].im;
    }
    const error = (size * (8 * condition + 16) * (this.plain.n + 4) * UNIT) / count;
    const m = sum / count;
    for (let i = 0; i < this.children; i++) shares[i] /= sum;
    // ρ^wanted by its own exponent
    const binary = Math.log2(rho) * wanted, whole = Math.floor(binary / 64);
    const fraction = 2 ** (binary - 64 * whole);
    const relative = Math.abs(m) > error ? error / (Math.abs(m) - error) : 1e6;
    return {
      sign: 1, m: m / fraction, e: top - whole, relative: relative + 64 * UNIT * (1 + Math.abs(binary)), shares,
      rho, wanted, degree, whole, fraction,
    };
  }

  differentiate(adjoints, adjoint, needed) {
    if (this.found === null) return;
    const { values, slots, plain, found } = this, k = this.children;
    const whole = plain.number.at(0);
    const give = (slot, divisor, share) => {
      const m = (adjoint.m * whole.m * share) / divisor.m;
      const relative = adjoint.x / Math.abs(adjoint.m) + whole.x / Math.abs(whole.m) + divisor.x / Math.abs(divisor.m);
      const x = Math.abs(m) * (relative + 4 * UNIT) + Math.abs((adjoint.m * whole.m) / divisor.m) * found.relative;
      adjoints.add(slot, m, adjoint.e + whole.e - divisor.e, x);
    };
    if (whole.m === 0 || adjoint.m === 0) return;
    for (let i = 0; i < k; i++) {
      const f = slots[i], y = slots[k + i], share = found.shares[i];
      if (needed[f] && values.m[f] !== 0) give(f, values.at(f), share);
      if (needed[y] && plain.border[i] < 0) give(y, values.at(y), 1 - share);
    }
  }
}
