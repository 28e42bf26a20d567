// Square matrices by rows {re, im}, with im null in real ones: elimination, and from it the determinant and the inverse.

import { multiplyComplex } from "./scaled.js";

export class Matrix {
  constructor(n, isReal) {
    this.n = n;
    this.isReal = isReal;
    this.rows = Array.from({ length: n }, () => ({ re: new Float64Array(n), im: isReal ? null : new Float64Array(n) }));
  }

  /** Into factors L and U, in place, with partial pivoting: `order` has the rows. Returns {re, im, e}, the determinant. */
  eliminate() {
    const { n, rows } = this, order = Int32Array.from({ length: n }, (_, i) => i), det = { re: 1, im: 0, e: 0 };
    this.order = order;
    for (let k = 0; k < n; k++) {
      let pivot = k;
      for (let i = k + 1; i < n; i++) if (sizeAt(rows[i], k) > sizeAt(rows[pivot], k)) pivot = i;
      if (pivot !== k) {
        [rows[k], rows[pivot]] = [rows[pivot], rows[k]];
        [order[k], order[pivot]] = [order[pivot], order[k]];
        multiplyComplex(det, -1, 0);
      }
      multiplyComplex(det, rows[k].re[k], rows[k].im?.[k] ?? 0);
      if (sizeAt(rows[k], k) === 0) continue;
      const [ir, ii] = inverseAt(rows[k], k);
      for (let i = k + 1; i < n; i++) {
        const row = rows[i];
        if (sizeAt(row, k) === 0) continue;
        const ar = row.re[k], ai = row.im?.[k] ?? 0, fr = ar * ir - ai * ii, fi = ar * ii + ai * ir;
        subtract(row, rows[k], fr, fi, k + 1);
        row.re[k] = fr;
        if (row.im) row.im[k] = fi;
      }
    }
    return det;
  }

  /** After `eliminate`, if no pivot is 0. */
  inverse() {
    const { n, rows, order } = this, out = new Matrix(n, this.isReal);
    for (let i = 0; i < n; i++) {
      out.rows[i].re[order[i]] = 1;
      for (let k = 0; k < i; k++) subtract(out.rows[i], out.rows[k], rows[i].re[k], rows[i].im?.[k] ?? 0, 0);
    }
    for (let i = n - 1; i >= 0; i--) {
      const { re, im } = out.rows[i], [ir, ii] = inverseAt(rows[i], i);
      for (let k = i + 1; k < n; k++) subtract(out.rows[i], out.rows[k], rows[i].re[k], rows[i].im?.[k] ?? 0, 0);
      for (let j = 0; j < n; j++) {
        if (im === null) re[j] *= ir;
        else [re[j], im[j]] = [re[j] * ir - im[j] * ii, re[j] * ii + im[j] * ir];
      }
    }
    return out;
  }

  /** Of absolute values: the sum of row i against weights, from one column to before another. */
  rowSum(i, weights, from = 0, to = this.n) {
    let sum = 0;
    for (let j = from; j < to; j++) sum += sizeAt(this.rows[i], j) * weights[j];
    return sum;
  }

  /** Σ_pq a_p·this_pq·b_q for columns i of a and j of b, sparse matrices by columns; and the sum of absolute values. */
  between(a, i, b, j) {
    let re = 0, im = 0, size = 0;
    for (let p = a.start[i]; p < a.start[i + 1]; p++) {
      const row = this.rows[a.row[p]];
      for (let q = b.start[j]; q < b.start[j + 1]; q++) {
        const w = a.entry[p] * b.entry[q], at = b.row[q];
        re += w * row.re[at];
        if (row.im) im += w * row.im[at];
        size += Math.abs(w) * sizeAt(row, at);
      }
    }
    return { re, im, size };
  }
}

/** The absolute value of an entry, to a factor of √2. */
function sizeAt({ re, im }, k) {
  return Math.abs(re[k]) + (im === null ? 0 : Math.abs(im[k]));
}

/** 1 / entry, by way of a scale: squares may overflow. */
function inverseAt({ re, im }, k) {
  if (im === null) return [1 / re[k], 0];
  const scale = 1 / sizeAt({ re, im }, k), a = re[k] * scale, b = im[k] * scale, norm = scale / (a * a + b * b);
  return [a * norm, -b * norm];
}

/** Row a minus (fr + i·fi) times row b, from a column on. */
function subtract(a, b, fr, fi, from) {
  const ar = a.re, ai = a.im, br = b.re, bi = b.im, n = ar.length;
  if (fr === 0 && fi === 0) return;
  if (ai === null) {
    for (let j = from; j < n; j++) ar[j] -= fr * br[j];
    return;
  }
  for (let j = from; j < n; j++) {
    ar[j] -= fr * br[j] - fi * bi[j];
    ai[j] -= fr * bi[j] + fi * br[j];
  }
}
