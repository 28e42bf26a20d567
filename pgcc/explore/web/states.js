// A variable with states: what the codes of its columns say of them, and its row in the list, a stacked bar.

import { IN, OPEN, OUT } from "./evaluator.js";
import { make, marginalText } from "./text.js";

export class Stated {
  /** places: of the probability of every state in an answer; what is no column is that the only column is out. */
  constructor({ name, labels, places }, columns) {
    Object.assign(this, { name, labels, places, columns: places.map((place) => (place < columns ? place : -1)) });
  }

  /** Which states the codes leave possible. */
  possible(codes) {
    const known = this.columns.findIndex((column) => codes[column] === IN);
    return this.columns.map((column, s) => (known < 0 ? codes[column] !== OUT : s === known));
  }

  /** The codes after a state was chosen, ruled out (OUT), or all of them left open (OPEN); the same again undoes it. */
  chosen(codes, state, code) {
    const before = this.possible(codes), found = codes.slice(), isAlone = before[state] && before.filter(Boolean).length === 1;
    let left = before.map((is, s) => (code === OUT ? is !== (s === state) : s === state));
    if (code === OPEN || (code !== OUT && isAlone) || !left.includes(true)) left = before.map(() => true);
    const open = left.filter(Boolean).length > 1 ? OPEN : IN;
    this.columns.forEach((column, s) => (column < 0 ? null : (found[column] = left[s] ? open : OUT)));
    return found;
  }

  /** What codes say of variable i, as people write it and as Python does; nothing if they leave everything open. */
  told(codes, i) {
    const possible = this.possible(codes), left = this.labels.filter((_, s) => possible[s]), quoted = left.map((label) => JSON.stringify(label));
    const [text, python] = left.length === 1 ? [`${this.name}=${left[0]}`, quoted[0]] : [`${this.name} in {${left.join(", ")}}`, `{${quoted.join(", ")}}`];
    return left.length === possible.length ? [] : [{ i, name: this.name, state: "in", text, python }];
  }

  /** Its row in the view of the list. */
  row(i, view) {
    const { name } = this, click = (s) => (event) => view.change(i, event.shiftKey ? OUT : IN, s);
    const segments = this.labels.map((_, s) => make("span", { class: "segment", style: `--s: ${s}`, onclick: click(s) }));
    const buttons = this.labels.map((label, s) => make("button", { type: "button", tabindex: -1, style: `--s: ${s}`, "data-number": s, onclick: click(s), onfocus: () => view.reach(i) }, make("i"), make("span", {}, label), make("span", { class: "number" })));
    const item = make("li", { class: "row stated", "data-variable": i }, make("span", { class: "name", title: name }, name), make("span", { class: "track" }, ...segments), make("span", { class: "states", role: "group", "aria-label": name }, ...buttons));
    return { item, main: buttons[0], paint: (answer) => this.paint(answer, segments, buttons) };
  }

  paint({ marginal, error, codes }, segments, buttons) {
    const possible = this.possible(codes), isAlone = possible.filter(Boolean).length === 1;
    buttons.forEach((button, s) => {
      const p = marginal[this.places[s]] ?? 1, { text, doubt } = marginalText(p, error[this.places[s]] ?? 0);
      const known = !possible[s] ? "ruled out" : isAlone ? "observed" : `probability ${Number.isNaN(p) ? "unknown" : text}`;
      segments[s].style.width = `${Number.isNaN(p) ? 0 : 100 * Math.min(1, Math.max(0, p))}%`;
      segments[s].title = button.title = `${this.labels[s]}: ${text}`;
      button.lastChild.textContent = text;
      Object.assign(button, { className: `state ${possible[s] ? "" : "out"} ${doubt ? "doubt" : ""}`, ariaPressed: possible[s] && isAlone, ariaLabel: `${this.name}=${this.labels[s]}: ${known}` });
    });
  }
}
