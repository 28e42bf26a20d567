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
    this.ratioIm = null; // its imaginary part, in `series.js`
    this.ratioError = new Float64Array(this.children); // relative
    this.border = new Int32Array(this.children); // the place of its border, or −1
    this.factors = new Scaled(2); // Π y_i · Π f_i; and without the only one of these that is 0
  }

  /** The value for f_i = values[slots[i]] and y_i = values[slots[k + i]], put into values[target]. */
  evaluate(values, slots, target) {
    Object.assign(this, { values, slots });
    this.readChildren();
    this.circle = this.chooseCircle();
    this.found = this.circle === null ? null : this.coefficient();
    if (this.found === null) return values.put(target, 0, 0, 0);
    const { m, e, x } = this.factors;
    values.put(target, m[0], e[0], x[0]);
    values.multiply(target, this.found.m, this.found.e, this.found.x);
  }

  readChildren() {
    const { values, slots, factors, children: k } = this, { m, e, x } = values;
    let zeros = 0;
    this.borders = 0;
    this.zeroBorder = -1;
    this.doubtful = false;
    factors.put(0, 1, 0, 0);
    for (let i = 0; i < k; i++) {
      const f = slots[i], y = slots[k + i], isBorder = m[y] === 0, factor = isBorder ? f : y;
      this.border[i] = isBorder ? this.borders++ : -1;
      const ratio = isBorder ? 0 : (m[f] / m[y]) * 2 ** Math.max(-2000, Math.min(2000, 64 * (e[f] - e[y])));
      const isExact = m[f] === m[y] && x[f] === 0 && x[y] === 0, isTooLarge = !(Math.abs(ratio) < MOST_RATIO);
      this.doubtful ||= isTooLarge || (x[y] > 0 && x[y] >= Math.abs(m[y])) || (m[f] === 0 && x[f] > 0);
      this.ratio[i] = isTooLarge ? 0 : ratio;
      this.ratioError[i] = isBorder || isExact || m[f] === 0 ? 0 : x[f] / Math.abs(m[f]) + x[y] / Math.abs(m[y]) + 2 * UNIT;
      if (m[factor] !== 0 || x[factor] > 0) factors.multiply(0, m[factor], e[factor], x[factor]);
      else if (zeros++ === 0) this.zeroBorder = i;
    }
    if (zeros > 1) this.zeroBorder = -1;
    factors.put(1, zeros === 1 ? factors.m[0] : 0, factors.e[0], zeros === 1 ? factors.x[0] : 0);
    if (zeros > 0) factors.put(0, 0, 0, 0);
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
    const matrix = new Matrix(n, si === 0 && ratioIm === null), { rows } = matrix;
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
      const a = ratio[i], b = ratioIm?.[i] ?? 0, [cr, ci] = this.isCounted[i] ? [sr, si] : [1, 0];
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
  pointAt(sr, si) {
    const { matrix, extent, off } = this.matrixAt(sr, si), det = matrix.eliminate(), { n, order } = matrix;
    const sums = new Float64Array(n), ones = new Float64Array(n).fill(1), most = new Scaled(1);
    most.put(0, 16 * n, 0, 0);
    for (let k = 0; k < n; k++) {
      sums[k] = matrix.rowSum(k, ones, k); // of U; then of |L|·|U|
      const row = order[k], size = sums[k] + matrix.rowSum(k, sums, 0, k);
      off[row] += UNIT * ((this.children + 4) * extent[row] + 3 * n * size);
      most.multiply(0, Math.max(matrix.rowSum(k, ones, k, k + 1), n * UNIT * Math.max(size, extent[row])), 0, 0);
    }
    const point = { ...det, s: [sr, si], n, most: most.at(0), relative: Infinity, inverse: null };
    if (det.re === 0 && det.im === 0) return point;
    const inverse = matrix.inverse(), rowError = new Float64Array(n), columnMost = new Float64Array(n);
    let total = 0;
    for (let i = 0; i < n; i++) {
      total += rowError[i] = inverse.rowSum(i, off);
      for (let j = 0; j < n; j++) columnMost[j] = Math.max(columnMost[j], inverse.rowSum(i, ones, j, j + 1));
    }
    return { ...point, inverse, rowError, columnMost, relative: Math.expm1(total) };
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

  /** The coefficient m ± x of s^wanted and its derivatives by the ratios, all times 2^(64·e). */
  coefficient() {
    const { rho, wanted, degree } = this.circle, count = degree + 1, k = this.children, points = [];
    for (let j = 0; 2 * j <= count && j < count; j++) {
      const angle = (2 * Math.PI * j) / count, twice = j > 0 && 2 * j < count ? 2 : 1; // a point and its conjugate
      const point = this.pointAt(rho * Math.cos(angle), rho * (j > 0 ? Math.sin(angle) : 0));
      points.push({ ...point, turn: (angle * wanted) % (2 * Math.PI), share: twice / count });
    }
    const top = points.reduce((most, point) => Math.max(most, point.e, point.most.e), -Infinity);
    const binary = Math.log2(rho) * wanted, whole = Math.floor(binary / 64), power = 2 ** (binary - 64 * whole); // ρ^wanted
    const slopes = new Float64Array(k), slopeErrors = new Float64Array(k).fill(this.doubtful ? Infinity : 0);
    let m = 0, x = this.doubtful ? Infinity : 0;
    for (const point of points) {
      if (!(point.relative < 0.5)) {
        x += (point.share / power) * point.most.m * shiftBy(point.most.e - top); // no digit is certain
        slopeErrors.fill(Infinity);
      }
      if (point.inverse === null) continue;
      const scale = (point.share / power) * shiftBy(point.e - top), c = Math.cos(point.turn), s = Math.sin(point.turn);
      const re = scale * (point.re * c + point.im * s), im = scale * (point.im * c - point.re * s);
      const size = Math.abs(re) + Math.abs(im), off = point.relative + (64 + 4 * point.n + 8 * Math.abs(binary)) * UNIT;
      m += re;
      x += size * (off < 0.5 ? off : 1);
      for (let i = 0; i < k; i++) {
        const slope = this.slope(point, i);
        slopes[i] += re * slope.re - im * slope.im;
        slopeErrors[i] += size * (slope.error + off * (Math.abs(slope.re) + Math.abs(slope.im)));
      }
    }
    for (let i = 0; i < k && this.nonnegative; i++) {
      // it is affine in the ratio, and neither of its coefficients is negative
      if (this.ratio[i] > 0) slopeErrors[i] = Math.min(slopeErrors[i], Math.abs(slopes[i]) + (Math.abs(m) + x) / this.ratio[i]);
    }
    return { m, e: top - whole, x, slopes, slopeErrors, inverse: points[0].inverse };
  }

  /** The coefficient for complex ratios, {re, im, e}; with `relative`, a bound on its error beside its size. */
  bareCoefficient(isBounded) {
    const { rho, wanted, degree } = this.circle, count = degree + 1, points = [];
    for (let j = 0; j < count; j++) {
      const angle = (2 * Math.PI * j) / count, s = [rho * Math.cos(angle), rho * Math.sin(angle)];
      const point = isBounded ? this.pointAt(...s) : { ...this.matrixAt(...s).matrix.eliminate(), relative: 0 };
      multiplyComplex(point, Math.cos(angle * wanted) / count, -Math.sin(angle * wanted) / count);
      points.push(point);
    }
    const e = points.reduce((most, point) => Math.max(most, point.e), -Infinity);
    const sum = (part) => points.reduce((total, point) => total + part(point) * shiftBy(point.e - e), 0);
    const binary = Math.log2(rho) * wanted, whole = Math.floor(binary / 64), power = 2 ** (binary - 64 * whole);
    const re = sum((point) => point.re) / power, im = sum((point) => point.im) / power, size = Math.hypot(re, im);
    const off = sum((point) => (Math.abs(point.re) + Math.abs(point.im)) * (point.relative + 64 * UNIT)) / power;
    return { re, im, e: e - whole, relative: size > 0 ? off / size : Infinity };
  }

  /** Add (adjoint)·∂det/∂child to the adjoint of every child that is needed. */
  differentiate(adjoints, adjoint, needed) {
    if (this.found === null) return;
    const { values, slots, found, ratio, ratioError, factors, children: k } = this, term = new Scaled(1);
    // adjoint · base · (m ± x)·2^(64·e) / divisor
    const give = (slot, base, divisor, m, x) => {
      const inverse = 1 / divisor.m, off = divisor.x * inverse * inverse + UNIT * Math.abs(inverse);
      term.put(0, m, found.e, x);
      term.multiply(0, base.m, base.e, base.x);
      term.multiply(0, inverse, -divisor.e, off);
      term.multiply(0, adjoint.m, adjoint.e, adjoint.x);
      adjoints.add(slot, term.m[0], term.e[0], term.x[0]);
    };
    const all = factors.at(0), rest = factors.at(1);
    for (let i = 0; i < k; i++) {
      const f = slots[i], y = slots[k + i], slope = found.slopes[i], off = found.slopeErrors[i];
      if (this.border[i] < 0) {
        const share = Math.abs(slope * ratio[i]) * (ratioError[i] + 2 * UNIT) + (ratio[i] === 0 ? 0 : Math.abs(ratio[i]) * off);
        if (needed[f]) give(f, all, values.at(y), slope, off);
        if (needed[y]) give(y, all, values.at(y), found.m - ratio[i] * slope, found.x + share + 2 * UNIT * Math.abs(found.m));
        continue;
      }
      const isZero = values.m[f] === 0, base = isZero ? (i === this.zeroBorder ? rest : all) : all;
      if (needed[f]) give(f, base, isZero ? ONE : values.at(f), found.m, found.x);
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
