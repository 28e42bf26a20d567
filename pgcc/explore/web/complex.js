// Square matrices of complex numbers: elimination, determinants, inverses. Real and imaginary parts in two arrays.

import { DOWN, HIGH, LOW, Scaled, UNIT, UP } from "./scaled.js";

export class ComplexMatrix {
  constructor(n) {
    this.n = n;
    this.re = new Float64Array(n * n);
    this.im = new Float64Array(n * n);
  }

  /** The matrix B of a determinant (determinant.js) at complex ratios: ratio(i) = [re, im]. */
  fill(det, ratio) {
    const { re, im, n } = this, { rank, m0, u, v } = det;
    re.fill(0);
    im.fill(0);
    for (let j = 0; j < rank; j++) {
      for (let p = m0.start[j]; p < m0.start[j + 1]; p++) re[m0.row[p] * n + j] = m0.entry[p];
    }
    for (let i = 0; i < det.children; i++) {
      const at = det.border[i];
      if (at >= 0) {
        for (let p = u.start[i]; p < u.start[i + 1]; p++) re[u.row[p] * n + rank + at] = u.entry[p];
        for (let p = v.start[i]; p < v.start[i + 1]; p++) re[(rank + at) * n + v.row[p]] = -v.entry[p];
        continue;
      }
      const [a, b] = ratio(i);
      if (a === 0 && b === 0) continue;
      for (let p = u.start[i]; p < u.start[i + 1]; p++) {
        const row = u.row[p] * n, ua = a * u.entry[p], ub = b * u.entry[p];
        for (let q = v.start[i]; q < v.start[i + 1]; q++) {
          re[row + v.row[q]] += ua * v.entry[q];
          im[row + v.row[q]] += ub * v.entry[q];
        }
      }
    }
  }

  /** By elimination with partial pivoting: re + i·im times 2^(64·e); `most` has how large it may be for all we know. */
  determinant() {
    const { n } = this;
    this.lr = this.re.slice();
    this.li = this.im.slice();
    this.order = Int32Array.from({ length: n }, (_, i) => i);
    const { lr, li, order } = this, { rows } = this.extents(), possible = new Scaled(1);
    let re = 1, im = 0, e = 0;
    possible.put(0, 16 * n, 0, 0);
    for (let k = 0; k < n; k++) {
      let pivot = k, most = -1;
      for (let i = k; i < n; i++) {
        const size = Math.abs(lr[i * n + k]) + Math.abs(li[i * n + k]);
        if (size > most) [pivot, most] = [i, size];
      }
      possible.multiply(0, Math.max(most, n * UNIT * rows[order[pivot]]), 0, 0);
      if (most === 0) {
        [re, im] = [0, 0];
        continue;
      }
      if (pivot !== k) {
        [re, im] = [-re, -im];
        [order[k], order[pivot]] = [order[pivot], order[k]];
        for (let j = 0; j < n; j++) {
          [lr[k * n + j], lr[pivot * n + j]] = [lr[pivot * n + j], lr[k * n + j]];
          [li[k * n + j], li[pivot * n + j]] = [li[pivot * n + j], li[k * n + j]];
        }
      }
      const pr = lr[k * n + k], pi = li[k * n + k];
      [re, im] = [re * pr - im * pi, re * pi + im * pr];
      for (let size = Math.abs(re) + Math.abs(im); size >= HIGH; size *= DOWN, e++) [re, im] = [re * DOWN, im * DOWN];
      for (let size = Math.abs(re) + Math.abs(im); size < LOW && size > 0; size *= UP, e--) [re, im] = [re * UP, im * UP];
      const norm = pr * pr + pi * pi, ir = pr / norm, ii = -pi / norm;
      for (let i = k + 1; i < n; i++) {
        const ar = lr[i * n + k], ai = li[i * n + k];
        if (ar === 0 && ai === 0) continue;
        const fr = ar * ir - ai * ii, fi = ar * ii + ai * ir;
        lr[i * n + k] = fr;
        li[i * n + k] = fi;
        for (let j = k + 1; j < n; j++) {
          const br = lr[k * n + j], bi = li[k * n + j];
          lr[i * n + j] -= fr * br - fi * bi;
          li[i * n + j] -= fr * bi + fi * br;
        }
      }
    }
    return { re, im, e: re === 0 && im === 0 ? 0 : e, most: possible.at(0) };
  }

  /** After `determinant`, if that is not 0. */
  inverse() {
    const { n, lr, li, order } = this, out = new ComplexMatrix(n), { re, im } = out;
    for (let i = 0; i < n; i++) re[i * n + order[i]] = 1;
    const subtract = (i, k) => {
      const fr = lr[i * n + k], fi = li[i * n + k];
      if (fr === 0 && fi === 0) return;
      for (let j = 0; j < n; j++) {
        const br = re[k * n + j], bi = im[k * n + j];
        re[i * n + j] -= fr * br - fi * bi;
        im[i * n + j] -= fr * bi + fi * br;
      }
    };
    for (let i = 1; i < n; i++) for (let k = 0; k < i; k++) subtract(i, k);
    for (let i = n - 1; i >= 0; i--) {
      for (let k = i + 1; k < n; k++) subtract(i, k);
      const pr = lr[i * n + i], pi = li[i * n + i], norm = pr * pr + pi * pi;
      for (let j = 0; j < n; j++) {
        const br = re[i * n + j], bi = im[i * n + j];
        re[i * n + j] = (br * pr + bi * pi) / norm;
        im[i * n + j] = (bi * pr - br * pi) / norm;
      }
    }
    return out;
  }

  /** v_iᵀ·A·u_j for the vectors of a determinant, A this matrix. */
  entry(det, i, j) {
    const { n } = this, { u, v } = det;
    let re = 0, im = 0;
    for (let p = v.start[i]; p < v.start[i + 1]; p++) {
      for (let q = u.start[j]; q < u.start[j + 1]; q++) {
        const at = v.row[p] * n + u.row[q], w = v.entry[p] * u.entry[q];
        re += w * this.re[at];
        im += w * this.im[at];
      }
    }
    return { re, im };
  }

  /** Of absolute values: the sum of every row, the largest entry of every column. */
  extents() {
    const { n } = this, rows = new Float64Array(n), columns = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        const size = Math.abs(this.re[i * n + j]) + Math.abs(this.im[i * n + j]);
        rows[i] += size;
        columns[j] = Math.max(columns[j], size);
      }
    }
    return { rows, columns, norm: rows.reduce((most, sum) => Math.max(most, sum), 0) };
  }
}
