// The most probable set that agrees with the evidence. Exact for spanning trees (the heaviest one, Kruskal), for
// circuits whose sums are deterministic (the largest term everywhere), and where a search comes to its end: a set is
// never more probable than what is known of it. Otherwise the best set that was found is returned, and is called so.

import { DET, IN, LEAF, OPEN, OUT, SUM } from "./evaluator.js";
import { Scaled, logarithm, shiftBy } from "./scaled.js";

const SECONDS = 2; // of search
const TOLERANCE = 1e-9; // a set is as probable as another within this

/** {row, log, exact, how}, with log the logarithm of g of the set; a step at a time. */
export function* modeSteps(evaluator, codes, about) {
  if (about.graph?.trees) return heaviestTree(evaluator, codes, about.graph);
  if (about.deterministic) {
    const row = largestTerms(evaluator, codes);
    return { row, log: logarithm(evaluator.evaluate(row)), exact: true, how: "largest terms" };
  }
  return yield* search(evaluator, codes, about);
}

/** Kruskal: edges that are in, then the others from the heaviest on, as long as they close no cycle. */
function heaviestTree(evaluator, codes, graph) {
  const parent = graph.nodes.map((_, i) => i);
  const find = (i) => {
    while (parent[i] !== i) i = parent[i] = parent[parent[i]];
    return i;
  };
  const row = codes.slice().fill(OUT);
  const rank = (edge) => (codes[graph.variable[edge]] === IN ? Infinity : graph.weight[edge]);
  const order = graph.variable.map((_, edge) => edge).filter((edge) => codes[graph.variable[edge]] !== OUT);
  for (const edge of order.sort((a, b) => rank(b) - rank(a) || a - b)) {
    const tail = find(graph.tail[edge]), head = find(graph.head[edge]);
    if (tail === head) continue;
    parent[tail] = head;
    row[graph.variable[edge]] = IN;
  }
  return { row, log: logarithm(evaluator.evaluate(row)), exact: true, how: "heaviest tree" };
}

/** The assignment of the largest term everywhere: a maximum where a sum is, then from the root down. */
export function largestTerms(evaluator, codes) {
  const { op, start, args, firstWeight, weight, weightExponent, leafVariable, leaf, leafExponent, root, length } =
    evaluator.program;
  const most = new Scaled(length), chosen = new Int32Array(length).fill(-1), { m, e } = most;
  const larger = (am, ae, bm, be) => {
    if (am <= 0 || bm <= 0) return am > bm;
    return am * shiftBy(Math.min(0, ae - be)) > bm * shiftBy(Math.min(0, be - ae));
  };
  for (let i = 0; i < length; i++) {
    const first = start[i], last = start[i + 1];
    if (op[i] === LEAF) {
      const l = args[first], variable = leafVariable[l], code = variable < 0 ? OUT : codes[variable];
      const isIn = larger(leaf[3 * l + 1], leafExponent[3 * l + 1], leaf[3 * l], leafExponent[3 * l]);
      const at = 3 * l + (code !== OPEN ? code : isIn ? IN : OUT);
      chosen[i] = code !== OPEN ? code : isIn ? IN : OUT;
      most.put(i, leaf[at], leafExponent[at], 0);
    } else if (op[i] === SUM) {
      for (let k = firstWeight[i], j = first; j < last; k++, j++) {
        const s = args[j], term = weight[k] * m[s], place = weightExponent[k] + e[s];
        if (chosen[i] >= 0 && !larger(term, place, m[i], e[i])) continue;
        chosen[i] = s;
        most.put(i, term, place, 0);
      }
    } else {
      most.put(i, 1, 0, 0);
      for (let j = first; j < last; j++) most.multiply(i, m[args[j]], e[args[j]], 0);
    }
  }
  const row = codes.slice(), open = [root];
  while (open.length) {
    const i = open.pop(), first = start[i], last = start[i + 1];
    if (op[i] === LEAF) {
      const variable = leafVariable[args[first]];
      if (variable >= 0) row[variable] = chosen[i];
    } else if (op[i] === SUM) {
      open.push(chosen[i]);
    } else {
      for (let j = first; j < last; j++) open.push(args[j]);
    }
  }
  return row.map((code) => (code === OPEN ? OUT : code));
}

/** Branch and bound on variables, the likelier value first; what is found is improved by changing single variables. */
function* search(evaluator, codes, about) {
  let spent = 0, before = performance.now();
  const pause = function* () {
    spent += performance.now() - before;
    yield Math.min(1, spent / (1000 * SECONDS));
    before = performance.now();
  };
  const log = (row) => {
    const value = evaluator.evaluate(row);
    return value.m > 2 * value.x ? logarithm(value) : -Infinity;
  };
  let best = { row: null, log: -Infinity };
  const offer = (row, found) => {
    if (found > best.log) best = { row: row.slice(), log: found };
  };
  const improve = function* () {
    let row = best.row.slice();
    for (let changed = true; changed && spent < 500 * SECONDS; ) {
      changed = false;
      for (let i = 0; i < row.length; i++) {
        if (codes[i] !== OPEN) continue;
        row[i] = 1 - row[i];
        const found = log(row);
        if (found > best.log + TOLERANCE) {
          offer(row, found);
          changed = true;
        } else row[i] = 1 - row[i];
        yield* pause();
      }
    }
  };
  if (about.positive && !evaluator.program.op.includes(DET)) {
    const row = largestTerms(evaluator, codes);
    offer(row, log(row));
  }
  const first = evaluator.evaluate(codes), open = [{ codes: codes.slice(), log: logarithm(first) }];
  let complete = true, dives = 0;
  while (open.length) {
    if (spent > 1000 * SECONDS && best.row !== null) {
      complete = false;
      break;
    }
    const part = open.pop();
    if (part.log <= best.log + TOLERANCE) continue;
    const answer = evaluator.query(part.codes), { value } = answer;
    yield* pause();
    // no set in this part is more probable than the part itself, errors included
    const most = logarithm({ m: Math.abs(value.m) + value.x, e: value.e });
    if (most <= best.log + TOLERANCE) continue;
    if (!(value.m > value.x)) {
      complete = false; // nobody knows whether it is possible
      continue;
    }
    const branch = mostCertain(answer, part.codes);
    if (branch < 0) {
      offer(part.codes, log(part.codes));
      if (dives++ === 0) yield* improve();
      continue;
    }
    const p = answer.marginal[branch], likely = p >= 0.5 ? IN : OUT;
    for (const code of [1 - likely, likely]) {
      const share = (code === IN ? p : 1 - p) + answer.error[branch];
      if (!(share > 0)) continue;
      const child = part.codes.slice();
      child[branch] = code;
      open.push({ codes: child, log: most + Math.log(share) });
    }
  }
  if (best.row === null) return null;
  return { ...best, exact: complete, how: "search" };
}

/** The open variable whose marginal is farthest from ½; −1 if none is open. */
function mostCertain({ marginal }, codes) {
  let variable = -1;
  for (let i = 0; i < codes.length; i++) {
    if (codes[i] !== OPEN) continue;
    if (variable < 0 || Math.abs(marginal[i] - 0.5) > Math.abs(marginal[variable] - 0.5)) variable = i;
  }
  return variable;
}
