// The most probable set that agrees with the evidence. Exact for spanning trees (the heaviest one, Kruskal), for
// circuits whose sums are deterministic (the largest term everywhere), and where a search comes to its end: a set is
// never more probable than what is known of it. Otherwise the best set that was found is returned, and is called so.

import { DET } from "./decode.js";
import { Evaluator, IN, OPEN, OUT, observed } from "./evaluator.js";
import { fromTheRoot } from "./sampler.js";
import { logarithm } from "./scaled.js";
import { heaviestTree } from "./trees.js";

const SECONDS = 3; // of search
const TOLERANCE = 1e-9; // a set is as probable as another within this

/** {row, log, exact}, with log the logarithm of g of the set; a step at a time. */
export function* modeSteps(evaluator, codes, about) {
  if (!about.graph?.trees && !about.deterministic) return yield* search(evaluator, codes, about);
  const row = about.graph?.trees ? heaviestTree(about.graph, codes) : largestTerms(evaluator.program, codes);
  return { row, log: logarithm(evaluator.evaluate(row)), exact: true };
}

/** Values are those of the largest terms: sums, and leaves whose variable is open, take their largest one. */
class LargestTerms extends Evaluator {
  leaf(i) {
    super.leaf(i);
    const { args, start, leafVariable, leaf, leafExponent } = this.program, l = args[start[i]], values = this.values;
    if (leafVariable[l] < 0 || this.codes[leafVariable[l]] !== OPEN) return;
    values.put(i, leaf[3 * l], leafExponent[3 * l], 0);
    this.raise(i, leaf[3 * l + 1], leafExponent[3 * l + 1]);
  }

  sum(i) {
    const { start, args, firstWeight, weight, weightExponent } = this.program, { m, e } = this.values;
    this.values.put(i, 0, 0, 0);
    for (let j = start[i], k = firstWeight[i]; j < start[i + 1]; j++, k++) this.raise(i, weight[k] * m[args[j]], weightExponent[k] + e[args[j]]);
  }

  raise(i, m, e) {
    const known = this.values.at(i);
    if (m > 0 && (known.m === 0 || logarithm({ m, e }) > logarithm(known))) this.values.put(i, m, e, 0);
  }
}

/** The assignment of the largest term everywhere. */
function largestTerms(program, codes) {
  const evaluator = new LargestTerms(program);
  evaluator.evaluate(codes);
  return fromTheRoot(evaluator, codes, (sizes) => sizes.reduce((best, size, k) => (size > sizes[best] ? k : best), 0));
}

/** Branch and bound on variables, the likelier value first; what is found is improved by changing single variables. */
function* search(evaluator, codes, about) {
  let spent = 0, before = performance.now(), best = { row: null, log: -Infinity };
  const pause = function* () {
    spent += performance.now() - before;
    yield Math.min(1, spent / (1000 * SECONDS));
    before = performance.now();
  };
  const offer = (row) => {
    const value = evaluator.evaluate(row), log = value.m > 2 * value.x ? logarithm(value) : -Infinity;
    if (log <= best.log + TOLERANCE) return false;
    best = { row: row.slice(), log };
    return true;
  };
  const improve = function* () {
    for (let isBetter = true; isBetter && spent < 500 * SECONDS; ) {
      isBetter = false;
      for (let i = 0; i < codes.length; i++) {
        if (codes[i] !== OPEN) continue;
        if (offer(observed(best.row, i, 1 - best.row[i], evaluator.program.block))) isBetter = true;
        yield* pause();
      }
    }
  };
  if (about.positive && !evaluator.program.op.includes(DET)) offer(largestTerms(evaluator.program, codes));
  const open = [{ codes: codes.slice(), log: Infinity }];
  let exact = true, hasImproved = false;
  while (open.length && (spent < 1000 * SECONDS || best.row === null)) {
    const part = open.pop();
    if (part.log <= best.log + TOLERANCE) continue;
    const answer = evaluator.query(part.codes), { value } = answer;
    yield* pause();
    // no set in this part is more probable than the part itself, errors included
    const most = logarithm({ m: Math.abs(value.m) + value.x, e: value.e });
    if (most <= best.log + TOLERANCE) continue;
    if (!(value.m > value.x)) {
      exact = false; // nobody knows whether it is possible
      continue;
    }
    const branch = mostCertain(answer, part.codes);
    if (branch < 0) {
      if (offer(part.codes) && !hasImproved) yield* improve();
      hasImproved = true;
      continue;
    }
    const p = answer.marginal[branch], likely = p >= 0.5 ? IN : OUT;
    for (const code of [1 - likely, likely]) {
      const share = (code === IN ? p : 1 - p) + answer.error[branch], child = observed(part.codes, branch, code, evaluator.program.block);
      if (share > 0) open.push({ codes: child, log: most + Math.log(share) });
    }
  }
  return best.row === null ? null : { ...best, exact: exact && open.length === 0 };
}

/** The open variable whose marginal is farthest from ½; −1 if none is open. */
function mostCertain({ marginal }, codes) {
  const distance = (i) => Math.abs(marginal[i] - 0.5);
  return codes.reduce((best, code, i) => (code === OPEN && (best < 0 || distance(i) > distance(best)) ? i : best), -1);
}
