// A determinant with a size (a k-DPP): the coefficient of s^k of det(s), in which every counted f_i is s·f_i.
//
// It is a mean over complex points on a circle, Σ_j det(s_j)·s_j^(−k) / N, and so are its derivatives. Their accuracy is
// relative to the largest term on the circle, whose radius ρ is therefore chosen so that about k are in at s = ρ.

import { ComplexMatrix } from "./complex.js";
import { Determinant } from "./determinant.js";
import { NOWHERE, Scaled, UNIT } from "./scaled.js";

const STEPS = 20; // of bisection for the radius
const FARTHEST = 30; // the radius is between 2⁻³⁰ and 2³⁰
const UNEVEN = 1.0123456789; // so that no point of the circle makes a matrix of round numbers singular
const NO_DIGIT = 1e6;

/** Σ |column i|·weights */
function extent(matrix, i, weights) {
  let sum = 0;
  for (let p = matrix.start[i]; p < matrix.start[i + 1]; p++) sum += Math.abs(matrix.entry[p]) * weights[matrix.row[p]];
  return sum;
}

export class SizedDeterminant {
  constructor(spec) {
    Object.assign(this, spec);
    this.plain = new Determinant({ ...spec, size: null });
    this.isCounted = new Uint8Array(this.children).fill(spec.counted === null ? 1 : 0);
    for (const i of spec.counted ?? []) this.isCounted[i] = 1;
    this.factors = new Scaled(2); // Π y_i of the open children, Π f_i of the others; and without one of these that is 0
  }

  evaluate(values, slots, target) {
    const plain = this.plain;
    this.values = values;
    this.slots = slots;
    plain.values = values;
    plain.slots = slots;
    plain.readChildren();
    this.found = null;
    if (plain.borders > this.rank) return values.put(target, 0, 0, 0);
    let inside = 0, open = 0; // of what is counted
    for (let i = 0; i < this.children; i++) {
      if (this.isCounted[i]) plain.border[i] >= 0 ? inside++ : open++;
    }
    const degree = Math.min(open, this.rank), wanted = this.size - inside;
    if (wanted < 0 || wanted > degree) return values.put(target, 0, 0, 0);
    this.found = this.coefficient(wanted, degree);
    this.multiplyFactors();
    const { m, e, x } = this.found, { factors } = this, place = values;
    place.put(target, factors.m[0], factors.e[0], factors.x[0]);
    place.multiply(target, m, e, plain.doubtful ? NO_DIGIT * (Math.abs(m) + x) : x);
  }

  multiplyFactors() {
    const { factors, values, plain, slots } = this;
    let zeros = 0;
    this.zeroBorder = -1;
    factors.put(0, 1, 0, 0);
    for (let i = 0; i < this.children; i++) {
      const slot = plain.border[i] >= 0 ? slots[i] : slots[this.children + i];
      if (values.m[slot] !== 0) {
        factors.multiply(0, values.m[slot], values.e[slot], values.x[slot]);
        continue;
      }
      zeros++;
      this.zeroBorder = i;
    }
    factors.put(1, zeros === 1 ? factors.m[0] : 0, factors.e[0], zeros === 1 ? factors.x[0] : 0);
    if (zeros > 0) factors.put(0, 0, 0, 0);
    if (zeros > 1) this.zeroBorder = -1;
  }

  /** det B(s), and s·(v_iᵀ B(s)⁻¹ u_i) for every open child (without s if it is not counted). */
  at(re, im) {
    const { plain } = this, matrix = new ComplexMatrix(plain.n);
    matrix.fill(plain, (i) => (this.isCounted[i] ? [re * plain.ratio[i], im * plain.ratio[i]] : [plain.ratio[i], 0]));
    const det = matrix.determinant();
    if (det.re === 0 && det.im === 0) return { ...det, slopes: null, relative: Infinity };
    // B is off by a relative `off`: its inverse by |B⁻¹|·off·|B|·|B⁻¹|
    const inverse = matrix.inverse(), slopes = [], { norm } = matrix.extents(), known = inverse.extents();
    const off = 16 * (plain.n + 4) * (UNIT + Math.max(...plain.ratioError));
    for (let i = 0; i < this.children; i++) {
      if (plain.border[i] >= 0) {
        slopes.push({ re: 0, im: 0, error: 0 });
        continue;
      }
      const g = inverse.entry(plain, i, i), [a, b] = this.isCounted[i] ? [re, im] : [1, 0];
      const error = off * norm * extent(plain.v, i, known.rows) * extent(plain.u, i, known.columns);
      slopes.push({ re: g.re * a - g.im * b, im: g.re * b + g.im * a, error: error * (Math.abs(a) + Math.abs(b)) });
    }
    return { ...det, slopes, relative: off * norm * known.norm };
  }

  /** How many of the open counted children are in on average at s = ρ. */
  mean(rho) {
    const at = this.at(rho, 0), { plain } = this;
    if (at.slopes === null) return 0;
    return at.slopes.reduce((sum, slope, i) => sum + (this.isCounted[i] ? slope.re * plain.ratio[i] : 0), 0);
  }

  radius(wanted, degree) {
    if (degree === 0) return 1;
    if (wanted === 0) return UNEVEN * 2 ** -FARTHEST;
    let low = -FARTHEST, high = FARTHEST;
    for (let step = 0; step < STEPS; step++) {
      const middle = (low + high) / 2;
      if (this.mean(UNEVEN * 2 ** middle) < wanted - 0.5 * (wanted === degree ? 1 : 0)) low = middle;
      else high = middle;
    }
    return UNEVEN * 2 ** ((low + high) / 2);
  }

  /** The coefficient m ± x of s^wanted and its derivatives by the ratios, all times 2^(64·e). */
  coefficient(wanted, degree) {
    const rho = this.radius(wanted, degree), count = degree + 1, points = [];
    for (let j = 0; 2 * j <= count; j++) {
      const angle = (2 * Math.PI * j) / count, twice = j > 0 && 2 * j < count ? 2 : 1; // a point and its conjugate
      points.push({ ...this.at(rho * Math.cos(angle), rho * Math.sin(angle)), turn: (angle * wanted) % (2 * Math.PI), twice });
    }
    const top = points.reduce((most, point) => Math.max(most, point.slopes ? point.e : NOWHERE, point.most.e), NOWHERE);
    // ρ^wanted by its own exponent
    const binary = Math.log2(rho) * wanted, whole = Math.floor(binary / 64), fraction = 2 ** (binary - 64 * whole) * count;
    const slopes = new Float64Array(this.children), slopeErrors = new Float64Array(this.children);
    const ones = new Float64Array(this.rank).fill(1);
    let m = 0, x = 0;
    for (const point of points) {
      if (!(point.relative < 0.5)) {
        // singular, or nearly: no digit is certain, and derivatives may be as large as if a pivot were not lost
        const most = (point.twice * point.most.m * 2 ** (64 * Math.max(point.most.e - top, -15))) / fraction;
        x += most;
        for (let i = 0; i < this.children; i++) slopeErrors[i] += (most / UNIT) * (1 + rho) * (1 + extent(this.u, i, ones)) * (1 + extent(this.v, i, ones));
      }
      if (point.slopes === null) continue;
      const scale = (point.twice * 2 ** (64 * Math.max(point.e - top, -15))) / fraction;
      const c = Math.cos(point.turn), s = Math.sin(point.turn);
      const re = scale * (point.re * c + point.im * s), im = scale * (point.im * c - point.re * s);
      const size = Math.abs(re) + Math.abs(im), off = point.relative + (64 + 8 * Math.abs(binary)) * UNIT;
      m += re;
      x += size * off;
      for (let i = 0; i < this.children; i++) {
        const slope = point.slopes[i];
        slopes[i] += re * slope.re - im * slope.im;
        slopeErrors[i] += size * (slope.error + off * (Math.abs(slope.re) + Math.abs(slope.im)));
      }
    }
    return { m, e: top - whole, x, slopes, slopeErrors, rho, wanted, degree, whole, fraction: fraction / count };
  }

  /** Add (adjoint)·∂/∂child to the adjoint of every child that is needed. */
  differentiate(adjoints, adjoint, needed) {
    if (this.found === null) return;
    const { values, slots, plain, found, factors } = this, k = this.children, term = new Scaled(1);
    // adjoint · base · (m ± x)·2^(64·e) / divisor
    const give = (slot, base, divisor, m, x) => {
      const inverse = 1 / divisor.m, off = divisor.x / (divisor.m * divisor.m) + UNIT * Math.abs(inverse);
      term.put(0, m, found.e, x);
      term.multiply(0, base.m, base.e, base.x);
      term.multiply(0, inverse, -divisor.e, off);
      term.multiply(0, adjoint.m, adjoint.e, adjoint.x);
      adjoints.add(slot, term.m[0], term.e[0], term.x[0]);
    };
    const all = factors.at(0), rest = factors.at(1), one = { m: 1, e: 0, x: 0 };
    for (let i = 0; i < k; i++) {
      const f = slots[i], y = slots[k + i];
      if (plain.border[i] < 0) {
        const slope = found.slopes[i], off = found.slopeErrors[i], ratio = plain.ratio[i];
        const shareError = Math.abs(slope) * plain.ratioError[i] * Math.abs(ratio) + Math.abs(ratio) * off;
        if (needed[f]) give(f, all, values.at(y), slope, off);
        if (needed[y]) give(y, all, values.at(y), found.m - ratio * slope, found.x + shareError + 2 * UNIT * Math.abs(found.m));
      } else {
        if (needed[f] && values.m[f] !== 0) give(f, all, values.at(f), found.m, found.x);
        else if (needed[f] && i === this.zeroBorder) give(f, rest, one, found.m, found.x);
        // that it is out after all counts one less: not computed here
        if (needed[y]) give(y, all.m === 0 ? rest : all, one, 0, NO_DIGIT * (1 + Math.abs(found.m)));
      }
    }
  }
}
