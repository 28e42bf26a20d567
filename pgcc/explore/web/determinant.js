// det [[M0, U·diag(f)], [−Vᵀ, diag(y)]] of children f_i and their complements y_i, its derivatives by them, and what
// rounding can do to both.
//
// A child with y_i ≠ 0 adds (f_i / y_i)·u_i·v_iᵀ to M0, a child with y_i = 0 is a border: the column u_i, the row −v_iᵀ.
// With B the matrix that results,  det = Π y_i · Π f_i · det B,  and  ∂det/∂f_i = det · (v_iᵀ·B⁻¹·u_i) / y_i.
//
// With a size (a k-DPP) it is the coefficient of s^k where every counted f_i is s·f_i: a mean over a circle of complex s,
// Σ_j det B(s_j)·s_j^(−k) / N, and so are its derivatives. It is accurate relative to the largest term on the circle,
// whose radius is therefore chosen so that about k are in. Without a size, the circle is one point, s = 1.
//
// Errors: B is off by E, in which elimination has 3·n·u·|L|·|U|. Then det B is off by a factor of exp(Σ_ij |B⁻¹E|_ij) at
// most, and B⁻¹ by |B⁻¹|·E·|B⁻¹|. Sums of rows and largest entries of columns bound these in n² operations.

import { Matrix } from "./matrix.js";
import { Scaled, UNIT, multiplyComplex, shiftBy } from "./scaled.js";

const MOST_RATIO = 2 ** 500;
const STEPS = 20; // of bisection for the radius
const FARTHEST = 30; // the radius is between 2⁻³⁰ and 2³⁰
const UNEVEN = 1.0123456789; // so that no point of the circle makes a matrix of round numbers singular
const ONE = { m: 1, e: 0, x: 0 };

/** A determinant of the program: evaluated at children, then differentiated there. */
export class Determinant {
  constructor(spec) {
    Object.assign(this, spec); // rank, children, size, counted, m0, u, v, nonnegative
    this.isCounted = new Uint8Array(this.children).fill(spec.counted === null ? 1 : 0);
    for (const i of spec.counted ?? []) this.isCounted[i] = 1;
    this.ratio = new Float64Array(this.children); // f_i / y_i
    this.ratioIm = new Float64Array(this.children);
    this.ratioError = new Float64Array(this.children); // relative
    this.border = new Int32Array(this.children); // the place of its border, or −1
  }

  /** The value for f_i = values[slots[i]] and y_i = values[slots[k + i]], put into values[target]. */
  evaluate(values, slots, target) {
    const { re, e, relative, zeros } = this.read(slots, (slot) => {
      const { m, e, x } = values.at(slot);
      return { re: m, im: 0, e, relative: x === 0 ? 0 : x / Math.abs(m) };
    });
    const product = new Scaled(1);
    product.put(0, re, e, Math.abs(re) * relative);
    const zero = { m: 0, e: 0, x: this.isDoubtful ? Infinity : 0 };
    this.all = zeros === 0 ? product.at(0) : zero;
    this.rest = zeros === 1 ? product.at(0) : zero;
    this.circle = this.chooseCircle();
    this.found = this.circle === null ? null : this.coefficient();
    values.put(target, this.all.m, this.all.e, this.all.x);
    if (this.found === null) values.put(target, 0, 0, 0);
    else values.multiply(target, this.found.re, this.found.e, this.found.x);
  }

  /** Ratios and borders of children {re, im, e, relative}. Returns the product of the y_i and f_i that are not 0. */
  read(slots, child) {
    const product = { re: 1, im: 0, e: 0 }, k = this.children;
    let most = 1, zeros = 0;
    Object.assign(this, { slots, borders: 0, zeroBorder: -1, isDoubtful: false, isReal: true });
    for (let i = 0; i < k; i++) {
      const f = child(slots[i]), y = child(slots[k + i]), norm = y.re * y.re + y.im * y.im, isBorder = norm === 0;
      const scale = isBorder ? 0 : 2 ** Math.max(-1000, Math.min(1000, 64 * (f.e - y.e))) / norm, factor = isBorder ? f : y;
      this.border[i] = isBorder ? this.borders++ : -1;
      this.ratio[i] = (f.re * y.re + f.im * y.im) * scale;
      this.ratioIm[i] = (f.im * y.re - f.re * y.im) * scale;
      this.ratioError[i] = f.relative + y.relative + 8 * UNIT;
      const isTooLarge = !(Math.abs(this.ratio[i]) + Math.abs(this.ratioIm[i]) < MOST_RATIO);
      if (isTooLarge) this.ratio[i] = this.ratioIm[i] = 0;
      this.isDoubtful ||= isTooLarge || f.relative === Infinity || (isBorder ? y.relative > 0 : y.relative >= 1);
      this.isReal &&= this.ratioIm[i] === 0;
      most *= 1 + factor.relative + 4 * UNIT;
      if (factor.re !== 0 || factor.im !== 0) multiplyComplex(product, factor.re, factor.im, factor.e);
      else if (zeros++ === 0) this.zeroBorder = i;
    }
    return { ...product, zeros, relative: most - 1 + k * UNIT };
  }

  /** Which power of s is wanted of those up to a degree, and the radius; null if the coefficient is 0 in any case. */
  chooseCircle(rho = null) {
    if (this.borders > this.rank) return null; // more are in than the rank allows
    if (this.size === null) return { rho: 1, wanted: 0, degree: 0 };
    let inside = 0, open = 0; // of what is counted
    for (let i = 0; i < this.children; i++) if (this.isCounted[i]) this.border[i] >= 0 ? inside++ : open++;
    const degree = Math.min(open, this.rank), wanted = this.size - inside;
    if (wanted < 0 || wanted > degree) return null;
    return { rho: rho ?? this.radius(wanted, degree), wanted, degree };
  }

  /** The radius at which the mean of the number of counted children is the wanted one. */
  radius(wanted, degree) {
    if (degree === 0) return 1;
    let low = -FARTHEST, high = FARTHEST;
    for (let step = 0; step < STEPS && wanted > 0; step++) {
      const middle = (low + high) / 2, point = this.pointAt(UNEVEN * 2 ** middle, 0);
      let mean = 0;
      for (let i = 0; i < this.children && point.inverse; i++) {
        if (this.isCounted[i] && this.border[i] < 0) mean += this.slope(point, i).re * this.ratio[i];
      }
      if (mean < wanted - 0.5 * (wanted === degree ? 1 : 0)) low = middle;
      else high = middle;
    }
    return UNEVEN * 2 ** (wanted > 0 ? (low + high) / 2 : low);
  }

  /** B at s; and of each row the sum of its terms' sizes, and of their errors beside those of rounding. */
  matrixAt(sr, si) {
    const { rank, m0, u, v, ratio, ratioIm, ratioError } = this, n = rank + this.borders;
    const matrix = new Matrix(n, si === 0 && this.isReal), { rows } = matrix;
    const extent = new Float64Array(n), off = new Float64Array(n);
    const put = (row, column, entry) => {
      rows[row].re[column] = entry;
      extent[row] += Math.abs(entry);
    };
    for (let j = 0; j < rank; j++) for (let p = m0.start[j]; p < m0.start[j + 1]; p++) put(m0.row[p], j, m0.entry[p]);
    for (let i = 0; i < this.children; i++) {
      const at = rank + this.border[i];
      if (at >= rank) {
        for (let p = u.start[i]; p < u.start[i + 1]; p++) put(u.row[p], at, u.entry[p]);
        for (let p = v.start[i]; p < v.start[i + 1]; p++) put(at, v.row[p], -v.entry[p]);
        continue;
      }
      const a = ratio[i], b = ratioIm[i], [cr, ci] = this.isCounted[i] ? [sr, si] : [1, 0];
      const fr = a * cr - b * ci, fi = a * ci + b * cr;
      if (fr === 0 && fi === 0) continue;
      for (let p = u.start[i]; p < u.start[i + 1]; p++) {
        const row = rows[u.row[p]], hr = fr * u.entry[p], hi = fi * u.entry[p], size = Math.abs(hr) + Math.abs(hi);
        for (let q = v.start[i]; q < v.start[i + 1]; q++) {
          row.re[v.row[q]] += hr * v.entry[q];
          if (row.im) row.im[v.row[q]] += hi * v.entry[q];
          extent[u.row[p]] += size * Math.abs(v.entry[q]);
          off[u.row[p]] += size * Math.abs(v.entry[q]) * ratioError[i];
        }
      }
    }
    return { matrix, extent, off };
  }

  /** det B(s) = (re + i·im)·2^(64·e), its relative error, how large it may be for all we know, and B⁻¹ with errors. */
  pointAt(sr, si, isBounded = true) {
    const { matrix, extent, off } = this.matrixAt(sr, si), det = matrix.eliminate(), { n, order } = matrix;
    const point = { ...det, s: [sr, si], n, most: { m: 0, e: det.e }, relative: 0, inverse: null };
    if (!isBounded) return point;
    const sums = new Float64Array(n), ones = new Float64Array(n).fill(1), most = new Scaled(1);
    most.put(0, 16 * n, 0, 0);
    for (let k = 0; k < n; k++) {
      sums[k] = matrix.rowSum(k, ones, k); // of U; then of |L|·|U|
      const row = order[k], size = sums[k] + matrix.rowSum(k, sums, 0, k);
      off[row] += UNIT * ((this.children + 4) * extent[row] + 3 * n * size);
      most.multiply(0, Math.max(matrix.rowSum(k, ones, k, k + 1), n * UNIT * Math.max(size, extent[row])), 0, 0);
    }
    Object.assign(point, { most: most.at(0), relative: Infinity });
    if (det.re === 0 && det.im === 0) return point;
    const inverse = matrix.inverse(), rowError = new Float64Array(n), columnMost = new Float64Array(n);
    let total = 0;
    for (let i = 0; i < n; i++) {
      total += rowError[i] = inverse.rowSum(i, off);
      for (let j = 0; j < n; j++) columnMost[j] = Math.max(columnMost[j], inverse.rowSum(i, ones, j, j + 1));
    }
    return Object.assign(point, { inverse, rowError, columnMost, relative: Math.expm1(total) });
  }

  /** s·v_iᵀ·B(s)⁻¹·u_i of an open child (without s if it is not counted), of a border its entry of B(s)⁻¹. */
  slope({ s, n, inverse, rowError, columnMost }, i) {
    const { u, v } = this, at = this.rank + this.border[i];
    if (at >= this.rank) return { re: inverse.rows[at].re[at], im: inverse.rows[at].im?.[at] ?? 0, error: rowError[at] * columnMost[at] };
    const { re, im, size } = inverse.between(v, i, u, i), [a, b] = this.isCounted[i] ? s : [1, 0];
    let left = 0, right = 0;
    for (let p = v.start[i]; p < v.start[i + 1]; p++) left += Math.abs(v.entry[p]) * rowError[v.row[p]];
    for (let q = u.start[i]; q < u.start[i + 1]; q++) right += Math.abs(u.entry[q]) * columnMost[u.row[q]];
    const error = (left * right + (n + 8) * UNIT * size) * (Math.abs(a) + Math.abs(b));
    return { re: re * a - im * b, im: re * b + im * a, error };
  }

  /**
   * The coefficient re + i·im of s^wanted, off by x at most, and its derivatives by real ratios, all times 2^(64·e).
   * Without bounds, x and the derivatives are left out, which takes a quarter of the time.
   */
  coefficient(isBounded = true) {
    const { rho, wanted, degree } = this.circle, count = degree + 1, k = this.children, points = [];
    for (let j = 0; j < count && (2 * j <= count || !this.isReal); j++) {
      const angle = (2 * Math.PI * j) / count, twice = this.isReal && j > 0 && 2 * j < count ? 2 : 1; // and its conjugate
      const point = this.pointAt(rho * Math.cos(angle), j > 0 ? rho * Math.sin(angle) : 0, isBounded);
      points.push({ ...point, turn: (angle * wanted) % (2 * Math.PI), share: twice / count });
    }
    const top = points.reduce((most, point) => Math.max(most, point.e, point.most.e), -Infinity);
    const binary = Math.log2(rho) * wanted, whole = Math.floor(binary / 64), power = 2 ** (binary - 64 * whole); // ρ^wanted
    const slopes = new Float64Array(k), slopeErrors = new Float64Array(k).fill(this.isDoubtful ? Infinity : 0);
    const found = { re: 0, im: 0, e: top - whole, x: this.isDoubtful ? Infinity : 0, slopes, slopeErrors, inverse: points[0].inverse };
    for (const point of points) {
      if (!(point.relative < 0.5)) {
        found.x += (point.share / power) * point.most.m * shiftBy(point.most.e - top); // no digit is certain
        slopeErrors.fill(Infinity);
      }
      const scale = (point.share / power) * shiftBy(point.e - top), c = Math.cos(point.turn), s = Math.sin(point.turn);
      const re = scale * (point.re * c + point.im * s), im = scale * (point.im * c - point.re * s);
      const size = Math.abs(re) + Math.abs(im), off = point.relative + (64 + 4 * point.n + 8 * Math.abs(binary)) * UNIT;
      found.re += re;
      if (!this.isReal) found.im += im;
      found.x += size * (off < 0.5 ? off : 1);
      for (let i = 0; i < k && point.inverse !== null; i++) {
        const slope = this.slope(point, i);
        slopes[i] += re * slope.re - im * slope.im;
        slopeErrors[i] += size * (slope.error + off * (Math.abs(slope.re) + Math.abs(slope.im)));
      }
    }
    for (let i = 0; i < k && this.nonnegative; i++) {
      // it is affine in the ratio, and neither of its coefficients is negative
      if (this.ratio[i] > 0) slopeErrors[i] = Math.min(slopeErrors[i], Math.abs(slopes[i]) + (Math.abs(found.re) + found.x) / this.ratio[i]);
    }
    return found;
  }

  /** Add (adjoint)·∂det/∂child to the adjoint of every child that is needed. */
  differentiate(values, adjoints, adjoint, needed) {
    if (this.found === null) return;
    const { slots, found, ratio, ratioError, all, rest, children: k } = this, term = new Scaled(1);
    // adjoint · base · (m ± x)·2^(64·e) / divisor
    const give = (slot, base, divisor, m, x) => {
      const inverse = 1 / divisor.m, off = divisor.x * inverse * inverse + UNIT * Math.abs(inverse);
      term.put(0, m, found.e, x);
      term.multiply(0, base.m, base.e, base.x);
      term.multiply(0, inverse, -divisor.e, off);
      term.multiply(0, adjoint.m, adjoint.e, adjoint.x);
      adjoints.add(slot, term.m[0], term.e[0], term.x[0]);
    };
    for (let i = 0; i < k; i++) {
      const f = slots[i], y = slots[k + i], slope = found.slopes[i], off = found.slopeErrors[i];
      if (this.border[i] < 0) {
        const share = Math.abs(slope * ratio[i]) * (ratioError[i] + 2 * UNIT) + (ratio[i] === 0 ? 0 : Math.abs(ratio[i]) * off);
        if (needed[f]) give(f, all, values.at(y), slope, off);
        if (needed[y]) give(y, all, values.at(y), found.re - ratio[i] * slope, found.x + share + 2 * UNIT * Math.abs(found.re));
        continue;
      }
      const isZero = values.m[f] === 0, base = i === this.zeroBorder ? rest : all;
      if (needed[f]) give(f, base, isZero ? ONE : values.at(f), found.re, found.x);
      // with a size, that it is out after all counts one less: not computed here
      if (needed[y]) give(y, base, isZero ? ONE : values.at(f), slope, this.size === null ? off : Infinity);
    }
  }

  /** Without a size: the marginal kernel of the children that are neither borders nor impossible: [children, K]. */
  kernel() {
    const { u, v, border, ratio, found } = this, open = [...border.keys()].filter((i) => border[i] < 0 && ratio[i] !== 0);
    return [open, open.map((a) => Float64Array.from(open, (b) => found.inverse.between(v, a, u, b).re * ratio[b]))];
  }
}
