// Sets as text: the most probable one with what is known of it, and samples.

import { counted, make, note, scaledText } from "./text.js";

const MOST = 200; // names shown of a set

/** The most probable set: {row, exact, how}, its probability as a scaled number, and the names of what is in a row. */
export function modeParts(found, probability, namesOf, proved, use) {
  if (found === null) return [make("p", {}, "No set here has a probability that is certain to be positive.")];
  const inside = namesOf(found.row);
  const listed = make("ul", { class: "set", "aria-label": "The most probable set" }, ...inside.slice(0, MOST).map((name) => make("li", {}, name)));
  if (inside.length === 0) listed.append(make("li", {}, "nothing is in"));
  if (inside.length > MOST) listed.append(make("li", {}, `and ${inside.length - MOST} more`));
  const verdict = found.exact
    ? [make("b", {}, "Exact"), `: no set that agrees with the evidence is more probable${proved ? "" : ", if no coefficient is negative, which is not proved"}.`]
    : [make("b", {}, "Best found"), " in three seconds: a more probable one may exist."];
  return [
    make("p", { class: "verdict", id: "mode-verdict" }, ...verdict),
    listed,
    note(`Probability ${scaledText(probability)}. `),
    make("button", { type: "button", onclick: use }, "Take it as evidence"),
  ];
}

/** Samples: how often each set was drawn, the most frequent first. */
export function sampleParts(samples, namesOf) {
  const found = new Map();
  for (const row of samples) {
    const key = row.join("");
    const known = found.get(key);
    if (known) known.count++;
    else found.set(key, { row, count: 1 });
  }
  const sets = [...found.values()].sort((a, b) => b.count - a.count);
  const shown = sets.slice(0, 50).map(({ row, count }) => {
    const inside = namesOf(row), text = inside.slice(0, MOST).join(", ") || "nothing";
    return make("li", {}, make("span", { class: "count" }, `${count}×`), make("span", {}, inside.length > MOST ? `${text}, … (${inside.length} in all)` : text));
  });
  const more = sets.length > 50 ? ` The ${50} most frequent are shown.` : "";
  return [
    note(`${counted(samples.length, "sample")}, ${counted(sets.length, "different set")}.${more} Circles on the bars are their frequencies.`),
    make("ul", { class: "drawn" }, ...shown),
  ];
}
