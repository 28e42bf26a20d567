// det [[M0, U·diag(f)], [−Vᵀ, diag(y)]] of numbers f_i, y_i, its derivatives by them, and what rounding can do to both.
//
// A child with y_i ≠ 0 adds (f_i / y_i)·u_i·v_iᵀ to M0, a child with y_i = 0 is a border: the column u_i, the row −v_iᵀ.
// With B the matrix that results,  det = Π y_i · Π f_i · det B,  and  ∂det/∂f_i = det · (v_iᵀ·B⁻¹·u_i) / y_i.
//
// Errors: B is off by W, elimination by n·u·|L|·|U| more. A matrix B + E has det B · det(I + B⁻¹E), which is off by a
// factor of exp(Σ_ij |B⁻¹E|_ij) at most, and B⁻¹ is off by |B⁻¹|·E·|B⁻¹|. Sums of rows and largest entries of columns
// bound these in n² operations.

import { LOW, Scaled, UNIT } from "./scaled.js";

const MOST_RATIO = 2 ** 500;
// How many times its own size a number may be off of which nothing is known.
const UNKNOWN = 1e6;
// Multiplications that differences are taken with, where a matrix is singular.
const MOST_DIFFERENCES = 2e9;

/** Elimination with partial pivoting, in place. Returns the sign of the permutation; `order` has the rows. */
function eliminate(a, n, order) {
  let sign = 1;
  for (let i = 0; i < n; i++) order[i] = i;
  for (let k = 0; k < n; k++) {
    let pivot = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(a[i * n + k]) > Math.abs(a[pivot * n + k])) pivot = i;
    if (a[pivot * n + k] === 0) continue;
    if (pivot !== k) {
      sign = -sign;
      [order[k], order[pivot]] = [order[pivot], order[k]];
      for (let j = 0; j < n; j++) [a[k * n + j], a[pivot * n + j]] = [a[pivot * n + j], a[k * n + j]];
    }
    const head = a[k * n + k];
    for (let i = k + 1; i < n; i++) {
      if (a[i * n + k] === 0) continue;
      const factor = (a[i * n + k] /= head);
      for (let j = k + 1; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return sign;
}

/** B⁻¹ from the factors of B, by rows: row i of `out` starts at i·n. */
function invert(lu, n, order, out) {
  out.fill(0, 0, n * n);
  for (let i = 0; i < n; i++) out[i * n + order[i]] = 1;
  for (let i = 1; i < n; i++) {
    for (let k = 0; k < i; k++) {
      const factor = lu[i * n + k];
      if (factor !== 0) for (let j = 0; j < n; j++) out[i * n + j] -= factor * out[k * n + j];
    }
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) {
      const factor = lu[i * n + k];
      if (factor !== 0) for (let j = 0; j < n; j++) out[i * n + j] -= factor * out[k * n + j];
    }
    const pivot = lu[i * n + i];
    for (let j = 0; j < n; j++) out[i * n + j] /= pivot;
  }
}

/** A determinant of the program: evaluated at children, then differentiated there. */
export class Determinant {
  constructor(spec) {
    Object.assign(this, spec);
    const most = this.rank + Math.min(this.rank, this.children);
    this.ratio = new Float64Array(this.children);
    this.ratioError = new Float64Array(this.children);
    this.border = new Int32Array(this.children); // the place of its border, or −1
    this.room = most;
    this.b = new Float64Array(most * most);
    this.w = new Float64Array(most * most);
    this.lu = new Float64Array(most * most);
    this.inverse = new Float64Array(most * most);
    this.order = new Int32Array(most);
    this.rowError = new Float64Array(most); // |B⁻¹|·E·1
    this.columnMost = new Float64Array(most); // the largest entry of each column of |B⁻¹|
    this.number = new Scaled(3); // det B with all factors; without that of a border that is 0; how large it may be
  }

  /** The value for f_i = values[slots[i]] and y_i = values[slots[k + i]], put into values[target]. */
  evaluate(values, slots, target) {
    this.values = values;
    this.slots = slots;
    this.compute();
    values.put(target, this.number.m[0], this.number.e[0], this.number.x[0]);
  }

  compute() {
    this.readChildren();
    if (this.borders > this.rank) {
      // more are in than the rank allows: it is 0 whatever the numbers are
      this.state = "zero";
      this.number.clear();
      return;
    }
    this.fill();
    this.factor();
  }

  readChildren() {
    const { m, e, x } = this.values, k = this.children;
    this.borders = 0;
    this.doubtful = false;
    for (let i = 0; i < k; i++) {
      const f = this.slots[i], y = this.slots[k + i];
      if (m[y] === 0) {
        this.border[i] = this.borders++;
        this.ratioError[i] = 0;
        this.doubtful ||= x[y] > 0;
        continue;
      }
      this.border[i] = -1;
      const ratio = (m[f] / m[y]) * 2 ** Math.max(-2000, Math.min(2000, 64 * (e[f] - e[y])));
      const exact = m[f] === m[y] && x[f] === 0 && x[y] === 0;
      this.doubtful ||= !(Math.abs(ratio) < MOST_RATIO) || x[y] >= Math.abs(m[y]) || (m[f] === 0 && x[f] > 0);
      this.ratio[i] = Math.abs(ratio) < MOST_RATIO ? ratio : 0;
      this.ratioError[i] = exact || m[f] === 0 ? 0 : x[f] / Math.abs(m[f]) + x[y] / Math.abs(m[y]) + 2 * UNIT;
    }
    this.n = this.rank + this.borders;
  }

  /** B, and W: how far each of its entries is off. */
  fill() {
    const { n, rank, b, w, m0, u, v } = this;
    b.fill(0, 0, n * n);
    w.fill(0, 0, n * n);
    for (let j = 0; j < rank; j++) {
      for (let p = m0.start[j]; p < m0.start[j + 1]; p++) {
        b[m0.row[p] * n + j] = m0.entry[p];
        w[m0.row[p] * n + j] = UNIT * Math.abs(m0.entry[p]);
      }
    }
    for (let i = 0; i < this.children; i++) {
      const at = this.border[i];
      if (at >= 0) {
        for (let p = u.start[i]; p < u.start[i + 1]; p++) {
          b[u.row[p] * n + rank + at] = u.entry[p];
          w[u.row[p] * n + rank + at] = UNIT * Math.abs(u.entry[p]);
        }
        for (let p = v.start[i]; p < v.start[i + 1]; p++) {
          b[(rank + at) * n + v.row[p]] = -v.entry[p];
          w[(rank + at) * n + v.row[p]] = UNIT * Math.abs(v.entry[p]);
        }
      } else if (this.ratio[i] !== 0) {
        this.addOuter(i, this.ratio[i], this.ratioError[i] + 4 * UNIT);
      }
    }
  }

  /** Add ratio·u_i·v_iᵀ, with so large a relative error. */
  addOuter(i, ratio, relative) {
    const { n, b, w, u, v } = this;
    for (let p = u.start[i]; p < u.start[i + 1]; p++) {
      const head = ratio * u.entry[p], row = u.row[p] * n;
      for (let q = v.start[i]; q < v.start[i + 1]; q++) {
        const term = head * v.entry[q], at = row + v.row[q];
        b[at] += term;
        w[at] += Math.abs(term) * relative + UNIT * Math.abs(b[at]);
      }
    }
  }

  /** Eliminate, multiply the pivots and all factors, and bound the error. */
  factor() {
    const { n, lu, order, number } = this;
    lu.set(this.b.subarray(0, n * n));
    const sign = eliminate(lu, n, order);
    number.put(0, sign, 0, 0);
    number.put(2, 16 * n, 0, 0);
    this.state = "regular";
    for (let k = 0; k < n; k++) {
      const pivot = lu[k * n + k];
      if (pivot === 0) this.state = "singular";
      number.multiply(0, pivot, 0, 0);
      number.multiply(2, Math.max(Math.abs(pivot), this.pivotError(k)), 0, 0);
    }
    const relative = this.state === "regular" ? this.boundErrors() : Infinity;
    this.bare = number.at(0);
    this.multiplyFactors();
    const size = Math.abs(number.m[0]);
    if (relative < 1) number.put(0, number.m[0], number.e[0], number.x[0] + size * (relative + 4 * (n + this.children) * UNIT));
    else number.add(0, 0, number.e[2], Math.abs(number.m[2]) + number.x[2]); // no digit is certain
    if (this.doubtful) number.add(0, 0, number.e[2], UNKNOWN * (Math.abs(number.m[2]) + number.x[2]));
  }

  /** How far a pivot may be off, so that one of 0 may be as large. */
  pivotError(k) {
    const { n, lu } = this;
    let size = Math.abs(lu[k * n + k]);
    for (let j = 0; j < k; j++) size += Math.abs(lu[k * n + j] * lu[j * n + k]);
    for (let j = 0; j < n; j++) size = Math.max(size, Math.abs(this.b[this.order[k] * n + j]));
    return n * UNIT * size;
  }

  /** Π y_i of the other children, Π f_i of the borders; of borders that are 0, what is left without one of them. */
  multiplyFactors() {
    const { number, values } = this, k = this.children;
    this.zeroBorder = -1;
    let zeros = 0;
    for (let i = 0; i < k; i++) {
      const slot = this.border[i] >= 0 ? this.slots[i] : this.slots[k + i];
      if (values.m[slot] === 0) {
        zeros++;
        this.zeroBorder = i;
        continue;
      }
      number.multiply(0, values.m[slot], values.e[slot], values.x[slot]);
      number.multiply(2, values.m[slot], values.e[slot], values.x[slot]);
    }
    number.put(1, zeros === 1 && this.state === "regular" ? number.m[0] : 0, number.e[0], number.x[0]);
    if (zeros > 0) {
      number.put(0, 0, 0, 0);
      number.put(2, 0, 0, 0);
    }
    if (zeros > 1) this.zeroBorder = -1;
  }

  /** A bound on the relative error of det B; what bounds derivatives is kept. */
  boundErrors() {
    const { n, lu, order, inverse, w } = this;
    invert(lu, n, order, inverse);
    const off = new Float64Array(n); // E·1, with E = W + 3·n·u·|L|·|U| in the rows of B
    const sums = new Float64Array(n);
    for (let i = 0; i < n; i++) for (let j = i; j < n; j++) sums[i] += Math.abs(lu[i * n + j]);
    for (let i = 0; i < n; i++) {
      let size = sums[i];
      for (let j = 0; j < i; j++) size += Math.abs(lu[i * n + j]) * sums[j];
      off[order[i]] += 3 * n * UNIT * size;
    }
    let total = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) off[i] += w[i * n + j];
    this.columnMost.fill(0);
    for (let i = 0; i < n; i++) {
      let row = 0;
      for (let j = 0; j < n; j++) {
        const size = Math.abs(inverse[i * n + j]);
        row += size * off[j];
        if (size > this.columnMost[j]) this.columnMost[j] = size;
      }
      this.rowError[i] = row;
      total += row;
    }
    return Math.expm1(total);
  }

  /** v_iᵀ·B⁻¹·u_j: the entry of the marginal kernel up to the ratio; and a bound on its error. */
  entry(i, j) {
    const { n, u, v, inverse, rowError, columnMost } = this;
    let value = 0, size = 0, left = 0, right = 0;
    for (let q = u.start[j]; q < u.start[j + 1]; q++) right += Math.abs(u.entry[q]) * columnMost[u.row[q]];
    for (let p = v.start[i]; p < v.start[i + 1]; p++) {
      const row = v.row[p] * n, head = v.entry[p];
      left += Math.abs(head) * rowError[v.row[p]];
      for (let q = u.start[j]; q < u.start[j + 1]; q++) {
        const term = head * inverse[row + u.row[q]] * u.entry[q];
        value += term;
        size += Math.abs(term);
      }
    }
    return { value, error: left * right + (this.n + 4) * UNIT * size };
  }

  /** Add (adjoint)·∂det/∂child to the adjoint of every child that is needed. */
  differentiate(adjoints, adjoint, needed) {
    if (this.state === "zero") return;
    if (this.state === "singular" && !this.positive) return this.differences(adjoints, adjoint, needed);
    const { number, values } = this, k = this.children;
    const give = (slot, base, divisor, value, error) => {
      if (value === 0 && error === 0) return;
      // adjoint · base / divisor · value
      const ratio = base.m / divisor.m;
      const relative = base.x / Math.abs(divisor.m) + (Math.abs(ratio) * divisor.x) / Math.abs(divisor.m);
      const m = adjoint.m * ratio * value;
      const x =
        Math.abs(adjoint.x * ratio * value) + Math.abs(adjoint.m * value) * relative +
        Math.abs(adjoint.m * ratio) * error + 4 * UNIT * Math.abs(m);
      adjoints.add(slot, m, adjoint.e + base.e - divisor.e, x);
    };
    const whole = number.at(0), rest = number.at(1), one = { m: 1, e: 0, x: 0 };
    for (let i = 0; i < k; i++) {
      const f = this.slots[i], y = this.slots[k + i], at = this.border[i];
      if (at >= 0) {
        if (values.m[f] !== 0) {
          if (needed[f]) give(f, whole, values.at(f), 1, 0);
          if (needed[y] && this.state === "regular") {
            const c = this.rank + at;
            give(y, whole, values.at(f), this.inverse[c * this.n + c], this.rowError[c] * this.columnMost[c]);
          }
        } else if (i === this.zeroBorder && needed[f]) {
          give(f, rest, one, 1, 0);
        }
      } else if (this.state === "regular" && (needed[f] || needed[y])) {
        const { value, error } = this.entry(i, i);
        if (needed[f]) give(f, whole, values.at(y), value, error);
        if (needed[y]) {
          const share = this.ratio[i] * value;
          give(y, whole, values.at(y), 1 - share, Math.abs(this.ratio[i]) * error + UNIT * (1 + Math.abs(share)));
        }
      }
    }
  }

  /**
   * Derivatives where B is singular and has no inverse: the value is affine in every child, so that a difference is
   * one. (Not where nothing is negative: there f_i·∂det/∂f_i is at most the value, which is 0.)
   */
  differences(adjoints, adjoint, needed) {
    const { values, slots, number } = this, here = number.at(0), k = this.children;
    const wanted = [...new Set(slots)].filter((slot) => needed[slot]);
    if (wanted.length * this.n ** 3 > MOST_DIFFERENCES) {
      for (const slot of wanted) adjoints.add(slot, 0, adjoint.e + here.e, UNKNOWN * (Math.abs(adjoint.m) + adjoint.x));
      return;
    }
    const sum = new Scaled(1);
    for (const slot of wanted) {
      const child = values.at(slot), other = values.at(slots[(slots.indexOf(slot) + k) % (2 * k)]);
      const e = child.m === 0 ? other.e : child.e;
      values.add(slot, 1, e, 0);
      this.compute();
      values.put(slot, child.m, child.e, child.x);
      const there = number.at(0);
      sum.put(0, there.m, there.e, there.x);
      sum.add(0, -here.m, here.e, here.x);
      sum.multiply(0, adjoint.m, adjoint.e, adjoint.x);
      adjoints.add(slot, sum.m[0], sum.e[0] - e, sum.x[0]);
    }
    this.compute(); // as it was
  }

  /** The marginal kernel of the children that are neither borders nor impossible, for samples: [children, K]. */
  kernel() {
    const open = [];
    for (let i = 0; i < this.children; i++) if (this.border[i] < 0 && this.ratio[i] !== 0) open.push(i);
    const size = open.length, found = new Float64Array(size * size);
    const { n, u, v, inverse } = this, solved = new Float64Array(n);
    for (let b = 0; b < size; b++) {
      solved.fill(0);
      for (let q = u.start[open[b]]; q < u.start[open[b] + 1]; q++) {
        for (let i = 0; i < n; i++) solved[i] += inverse[i * n + u.row[q]] * u.entry[q];
      }
      for (let a = 0; a < size; a++) {
        let value = 0;
        for (let p = v.start[open[a]]; p < v.start[open[a] + 1]; p++) value += v.entry[p] * solved[v.row[p]];
        found[a * size + b] = value * this.ratio[open[b]];
      }
    }
    return [open, found];
  }
}
