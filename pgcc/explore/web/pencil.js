// det B(t) at many t, for a matrix that is linear in t: B(t) = B(1) + (t − 1)·B₁.
//
// det B(t) = det B(1) · det(I + (t − 1)·C) with C = B(1)⁻¹·B₁. C is brought to Hessenberg form once, by reflections that
// change no determinant, in n³ operations; then every point takes n², where elimination would take n³ for each.

import { LEAF, OPEN } from "./evaluator.js";
import { DOWN, HIGH, LOW, UP } from "./scaled.js";

const SMALL = 24; // rows, up to which elimination at every point is as fast

export class Pencil {
  /** That of a determinant that was evaluated, or null: its open children have to be leaves, their complements constant. */
  static *of(evaluator, det, slots, degree) {
    if (det.size !== null || det.state !== "regular" || det.n <= SMALL) return null;
    const { op, start, args, leaf, leafVariable } = evaluator.program, slope = new Float64Array(det.children);
    for (let i = 0; i < det.children; i++) {
      const f = slots[i], y = slots[det.children + i];
      if (degree[y] > 0 || (degree[f] > 0 && op[f] !== LEAF) || (degree[f] > 0 && det.border[i] >= 0)) return null;
      const l = args[start[f]];
      if (degree[f] === 0 || leafVariable[l] < 0 || evaluator.codes[leafVariable[l]] !== OPEN) continue;
      if (leaf[3 * l] !== 0) return null; // a·ȳ + b·z with both
      slope[i] = det.ratio[i];
    }
    const pencil = new Pencil();
    pencil.n = det.n;
    pencil.bare = det.bare;
    pencil.c = pencilMatrix(det, slope);
    yield* hessenberg(pencil.c, det.n);
    pencil.re = new Float64Array(det.n * det.n);
    pencil.im = new Float64Array(det.n * det.n);
    return pencil;
  }

  /** det B(t) as (re + i·im)·2^(64·e). */
  at(tr, ti) {
    const { n, c, re, im } = this, sr = tr - 1, si = ti;
    for (let i = 0; i < n; i++) {
      for (let j = Math.max(0, i - 1); j < n; j++) {
        re[i * n + j] = sr * c[i * n + j] + (i === j ? 1 : 0);
        im[i * n + j] = si * c[i * n + j];
      }
    }
    let pr = this.bare.m, pi = 0, e = this.bare.e;
    for (let k = 0; k < n; k++) {
      if (k + 1 < n && size(re, im, (k + 1) * n + k) > size(re, im, k * n + k)) {
        [pr, pi] = [-pr, -pi];
        for (let j = k; j < n; j++) {
          const a = k * n + j, b = a + n;
          [re[a], re[b]] = [re[b], re[a]];
          [im[a], im[b]] = [im[b], im[a]];
        }
      }
      const hr = re[k * n + k], hi = im[k * n + k], norm = hr * hr + hi * hi;
      [pr, pi] = [pr * hr - pi * hi, pr * hi + pi * hr];
      let most = Math.abs(pr) + Math.abs(pi);
      if (most === 0) return { re: 0, im: 0, e: 0 };
      for (; most >= HIGH; most *= DOWN, e++) [pr, pi] = [pr * DOWN, pi * DOWN];
      for (; most < LOW; most *= UP, e--) [pr, pi] = [pr * UP, pi * UP];
      if (k + 1 === n) break;
      const below = (k + 1) * n, br = re[below + k], bi = im[below + k];
      const fr = (br * hr + bi * hi) / norm, fi = (bi * hr - br * hi) / norm;
      for (let j = k + 1; j < n; j++) {
        const xr = re[k * n + j], xi = im[k * n + j];
        re[below + j] -= fr * xr - fi * xi;
        im[below + j] -= fr * xi + fi * xr;
      }
    }
    return { re: pr, im: pi, e };
  }
}

function size(re, im, at) {
  return Math.abs(re[at]) + Math.abs(im[at]);
}

/** C = B(1)⁻¹ · Σ slope_i·u_i·v_iᵀ */
function pencilMatrix(det, slope) {
  const { n, u, v, inverse } = det, found = new Float64Array(n * n), solved = new Float64Array(n);
  for (let i = 0; i < det.children; i++) {
    if (slope[i] === 0) continue;
    solved.fill(0);
    for (let q = u.start[i]; q < u.start[i + 1]; q++) {
      for (let row = 0; row < n; row++) solved[row] += inverse[row * n + u.row[q]] * u.entry[q];
    }
    for (let row = 0; row < n; row++) {
      const head = slope[i] * solved[row];
      if (head !== 0) for (let p = v.start[i]; p < v.start[i + 1]; p++) found[row * n + v.row[p]] += head * v.entry[p];
    }
  }
  return found;
}

/** A similar matrix with zeros below its first subdiagonal, in place: Householder's reflections, a column at a time. */
function* hessenberg(a, n) {
  const w = new Float64Array(n), sums = new Float64Array(n);
  for (let k = 0; k + 2 < n; k++) {
    let norm = 0;
    for (let i = k + 1; i < n; i++) norm += a[i * n + k] ** 2;
    norm = Math.sqrt(norm);
    if (norm === 0) continue;
    // the reflection along w takes the column to a multiple of the first unit vector
    let length = 0;
    for (let i = k + 1; i < n; i++) w[i] = a[i * n + k];
    w[k + 1] += w[k + 1] >= 0 ? norm : -norm;
    for (let i = k + 1; i < n; i++) length += w[i] * w[i];
    if (length === 0) continue;
    const scale = 2 / length;
    sums.fill(0);
    for (let i = k + 1; i < n; i++) for (let j = k; j < n; j++) sums[j] += w[i] * a[i * n + j];
    for (let i = k + 1; i < n; i++) {
      const head = scale * w[i];
      for (let j = k; j < n; j++) a[i * n + j] -= head * sums[j];
    }
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let j = k + 1; j < n; j++) sum += a[i * n + j] * w[j];
      sum *= scale;
      for (let j = k + 1; j < n; j++) a[i * n + j] -= sum * w[j];
    }
    yield 0;
  }
}
