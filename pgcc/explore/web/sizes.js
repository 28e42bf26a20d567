// The distribution of the number of variables that are in, as columns.

import { momentsOf } from "./series.js";
import { draw, probabilityText, shortNumber } from "./text.js";

const TALL = 170, BASE = 146;

/** A picture of {probability, error}, so many pixels wide; and the text that says it in short. */
export function sizesPicture(found, width) {
  const { probability, error } = found;
  const most = Math.max(...probability);
  let first = 0, last = probability.length - 1;
  while (first < last && probability[first] < 1e-4 * most) first++;
  while (last > first && probability[last] < 1e-4 * most) last--;
  if (last - first < 4) [first, last] = [Math.max(0, first - 2), Math.min(probability.length - 1, last + 2)];
  const count = last - first + 1, step = (width - 20) / count, wide = Math.min(46, step * 0.78);
  const text = describe(found);
  const picture = draw("svg", { viewBox: `0 0 ${width} ${TALL}`, role: "img", "aria-label": `How many are in: ${text}` });
  picture.append(draw("line", { class: "axis", x1: 10, x2: width - 10, y1: BASE + 0.5, y2: BASE + 0.5 }));
  const every = Math.max(1, Math.ceil((count * 36) / width));
  for (let k = first; k <= last; k++) {
    const middle = 10 + step * (k - first + 0.5), p = Math.max(0, probability[k]), tall = (p / most) * (BASE - 22);
    const column = draw("rect", { class: error > 1e-6 ? "column faint" : "column", x: middle - wide / 2, y: BASE - tall, width: wide, height: tall, rx: Math.min(3, wide / 3), "data-size": k });
    column.append(draw("title", {}, `${k} in: ${probabilityText(p)}`));
    picture.append(column);
    if ((k - first) % every === 0) picture.append(draw("text", { class: "axis-text", x: middle, y: BASE + 16, "text-anchor": "middle" }, String(k)));
    if (step > 38) picture.append(draw("text", { class: "axis-text", x: middle, y: BASE - tall - 5, "text-anchor": "middle" }, p < 5e-4 ? "" : p.toFixed(3)));
  }
  return { picture, text };
}

/** What is known of it in short: three digits of a deviation, or that it is below a number. */
function describe(found) {
  const { mean, meanError, deviation, deviationError } = momentsOf(found), most = deviation + deviationError;
  const middle = `${meanError > 1e-5 * mean ? "≈? " : ""}${shortNumber(mean)}`;
  const spread = deviationError <= 1e-3 * deviation ? shortNumber(deviation, 3) : most < 5e-4 ? "0" : `below ${shortNumber(1.5 * most, 1)}`;
  const best = found.probability.reduce((k, p, at) => (p > found.probability[k] ? at : k), 0);
  const doubt = found.error > 1e-6 ? ` ≈? (errors up to ${found.error.toExponential(0)})` : "";
  return `mean ${middle}, deviation ${spread}, most often ${best}${doubt}`;
}
