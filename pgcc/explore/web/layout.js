// Where nodes stand. Circuits in layers (Sugiyama's method: longest paths, sweeps of barycentres, places near to the
// neighbours); graphs by stress majorisation (distances in the picture like those along edges).

const SWEEPS = 10;

/** Layers for nodes of these widths and edges [parent, child], from the first nodes down: {x, y, width, height}. */
export function layered(widths, edges, { gap, step }) {
  const n = widths.length, above = widths.map(() => []), below = widths.map(() => []);
  for (const [parent, child] of edges) {
    above[child].push(parent);
    below[parent].push(child);
  }
  const depth = longestPaths(above, below);
  const layers = [];
  depth.forEach((d, i) => (layers[d] ??= []).push(i));
  const place = new Float64Array(n);
  const number = (layer) => layer.forEach((i, p) => (place[i] = p));
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0, beside = down ? above : below;
    for (const layer of down ? layers.slice(1) : layers.slice(0, -1).reverse()) {
      const mean = new Map(layer.map((i) => [i, average(place, beside[i], place[i])]));
      layer.sort((a, b) => mean.get(a) - mean.get(b) || a - b);
      number(layer);
    }
  }
  const x = new Float64Array(n);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const beside = sweep % 2 === 0 ? below : above;
    for (const layer of sweep % 2 === 0 ? layers.slice().reverse() : layers) {
      spread(layer, layer.map((i) => average(x, beside[i], x[i])), widths, gap, x);
    }
  }
  const left = Math.min(...widths.map((w, i) => x[i] - w / 2)), right = Math.max(...widths.map((w, i) => x[i] + w / 2));
  return { x: x.map((at) => at - left), y: depth.map((d) => d * step), width: right - left, height: (layers.length - 1) * step };
}

function longestPaths(above, below) {
  const depth = above.map(() => 0), waiting = above.map((parents) => parents.length);
  const ready = waiting.flatMap((count, i) => (count === 0 ? [i] : []));
  while (ready.length) {
    const i = ready.pop();
    for (const child of below[i]) {
      depth[child] = Math.max(depth[child], depth[i] + 1);
      if (--waiting[child] === 0) ready.push(child);
    }
  }
  return depth;
}

function average(of, members, otherwise) {
  if (members.length === 0) return otherwise;
  let sum = 0;
  for (const i of members) sum += of[i];
  return sum / members.length;
}

/** The places nearest to the wanted ones in this order, without overlap: isotonic regression. */
function spread(layer, wanted, widths, gap, x) {
  const offsets = [0];
  for (let p = 1; p < layer.length; p++) offsets.push(offsets[p - 1] + (widths[layer[p - 1]] + widths[layer[p]]) / 2 + gap);
  const blocks = [];
  wanted.forEach((target, p) => {
    let block = { sum: target - offsets[p], count: 1 };
    while (blocks.length && blocks.at(-1).sum * block.count >= block.sum * blocks.at(-1).count) {
      const before = blocks.pop();
      block = { sum: block.sum + before.sum, count: block.count + before.count };
    }
    blocks.push(block);
  });
  let p = 0;
  for (const { sum, count } of blocks) for (let i = 0; i < count; i++, p++) x[layer[p]] = sum / count + offsets[p];
}

/** Places of the nodes of a graph, within [0, 1] × [0, 1] and with equal scales. */
export function stressed(count, edges) {
  const distance = distances(count, edges), x = new Float64Array(count), y = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    // two coordinates by distances to far nodes (pivots), with a little noise against ties
    x[i] = distance[i] + 0.01 * Math.sin(7 * i);
    y[i] = distance[farthest(distance, 0, count) * count + i] + 0.01 * Math.cos(5 * i);
  }
  const rounds = Math.min(300, Math.ceil(3e7 / (count * count + 1)));
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < count; i++) {
      let sx = 0, sy = 0, total = 0;
      for (let j = 0; j < count; j++) {
        if (j === i) continue;
        const d = distance[i * count + j], weight = 1 / (d * d), dx = x[i] - x[j], dy = y[i] - y[j];
        const length = Math.hypot(dx, dy) || 1e-9;
        sx += weight * (x[j] + (d * dx) / length);
        sy += weight * (y[j] + (d * dy) / length);
        total += weight;
      }
      if (total > 0) [x[i], y[i]] = [sx / total, sy / total];
    }
  }
  return upright(x, y);
}

function distances(count, edges) {
  const near = Array.from({ length: count }, () => []), found = new Float64Array(count * count).fill(count);
  for (const [a, b] of edges) {
    near[a].push(b);
    near[b].push(a);
  }
  for (let source = 0; source < count; source++) {
    const queue = [source], row = source * count;
    found[row + source] = 0;
    for (let at = 0; at < queue.length; at++) {
      for (const next of near[queue[at]]) {
        if (found[row + next] < count || next === source) continue;
        found[row + next] = found[row + queue[at]] + 1;
        queue.push(next);
      }
    }
  }
  return found;
}

function farthest(distance, from, count) {
  let best = from;
  for (let i = 0; i < count; i++) if (distance[from * count + i] > distance[from * count + best]) best = i;
  return best;
}

/** Turned so that the longest extent is horizontal, moved and scaled into the unit square. */
function upright(x, y) {
  const n = x.length, mx = x.reduce((a, b) => a + b, 0) / n, my = y.reduce((a, b) => a + b, 0) / n;
  let xx = 0, yy = 0, xy = 0;
  for (let i = 0; i < n; i++) {
    xx += (x[i] - mx) ** 2;
    yy += (y[i] - my) ** 2;
    xy += (x[i] - mx) * (y[i] - my);
  }
  const turn = 0.5 * Math.atan2(2 * xy, xx - yy), c = Math.cos(turn), s = Math.sin(turn);
  const px = x.map((v, i) => c * (v - mx) + s * (y[i] - my)), py = y.map((v, i) => c * (v - my) - s * (x[i] - mx));
  const left = Math.min(...px), top = Math.min(...py), wide = Math.max(...px) - left, high = Math.max(...py) - top;
  const size = Math.max(wide, high) || 1;
  return { x: px.map((v) => (v - left) / size), y: py.map((v) => (v - top) / size), width: wide / size, height: high / size };
}
