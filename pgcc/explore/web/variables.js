// The list of variables: a bar for each, in groups, with search and sorting, by mouse, touch and keyboard.

import { IN, OPEN, OUT } from "./evaluator.js";
import { counted, make, marginalText, note, onKey } from "./text.js";

/** What codes are called. */
export const STATES = { [IN]: "in", [OUT]: "out", [OPEN]: "open" };

const MANY = 200; // variables from which on groups are closed at first

export class VariablesView {
  /** stated: those with states, numbered after all columns; change(variable, code, state): what to do when somebody decides. */
  constructor(root, about, stated, change) {
    const names = [...about.variables, ...stated.map(({ name }) => name)];
    Object.assign(this, { root, columns: about.variables.length, names, stated, change, answer: null, wanted: "", sort: "order" });
    this.rows = new Map(); // of the variables that have been shown
    this.groups = about.groups.map(([title, members], i) => ({
      title, members, open: about.groups.length === 1 || this.names.length <= MANY || i === 0,
    }));
    this.build();
    root.addEventListener("keydown", (event) => this.key(event));
  }

  build() {
    this.root.replaceChildren();
    for (const group of this.groups) {
      group.list = make("ul", { "aria-label": group.title || "Variables" });
      if (this.groups.length > 1) {
        group.summary = make("span", { class: "quiet" });
        const toggle = () => this.arrange({ group });
        group.button = make("button", { type: "button", class: "group", onclick: toggle }, make("span", {}, group.title || "Variables"), group.summary);
        this.root.append(make("h3", { class: "hidden" }, group.title), group.button);
      }
      this.root.append(group.list);
    }
    this.arrange();
  }

  row(variable) {
    const one = this.stated[variable - this.columns];
    if (!this.rows.has(variable)) this.rows.set(variable, one ? one.row(variable, this) : this.plainRow(variable));
    return this.rows.get(variable);
  }

  plainRow(variable) {
    const name = this.names[variable];
    const fill = make("span", { class: "fill" }), tick = make("span", { class: "tick", hidden: true });
    const dot = make("span", { class: "dot", hidden: true }), number = make("span", { class: "number" });
    const main = make("button", { type: "button", class: "bar", tabindex: -1, onclick: () => this.change(variable), onfocus: () => this.reach(variable) },
      make("span", { class: "name", title: name }, name),
      make("span", { class: "track" }, make("span", { class: "clip" }, fill), tick, dot), number);
    const toggle = (code) => make("button", {
      type: "button", class: STATES[code], tabindex: -1, "aria-pressed": "false", "aria-label": `put ${name} ${STATES[code]}`,
      onclick: () => this.change(variable, this.answer.codes[variable] === code ? OPEN : code),
    }, STATES[code]);
    const out = toggle(OUT), inside = toggle(IN);
    const item = make("li", { class: "row", "data-variable": variable }, main, make("span", { class: "toggle" }, out, inside));
    return { item, main, fill, tick, dot, number, out, inside };
  }

  /** Tab reaches the row that was used last. */
  reach(variable) {
    if (this.current !== undefined) this.rows.get(this.current)?.main.setAttribute("tabindex", -1);
    this.current = variable;
    this.rows.get(variable).main.setAttribute("tabindex", 0);
  }

  key(event) {
    const item = event.target.closest?.(".row");
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const variable = Number(item.dataset.variable);
    const rows = [...this.root.querySelectorAll(".row")], at = rows.indexOf(item);
    const go = (to) => this.rows.get(Number(rows[Math.max(0, Math.min(rows.length - 1, to))].dataset.variable)).main.focus();
    const state = event.target.closest("[data-number]"), put = (code) => () => this.change(variable, code, Number(state?.dataset.number));
    onKey(event, {
      ...(variable < this.columns ? {} : { ArrowRight: () => state?.nextSibling?.focus(), ArrowLeft: () => state?.previousSibling?.focus() }),
      ArrowDown: () => go(at + 1), ArrowUp: () => go(at - 1), Home: () => go(0), End: () => go(rows.length - 1),
      PageDown: () => go(at + 10), PageUp: () => go(at - 10),
      1: put(IN), i: put(IN), 0: put(OUT), o: put(OUT), Backspace: put(OPEN), Delete: put(OPEN),
    });
  }

  /** Which rows are shown, in which order: those whose name has what is wanted; and a group is opened or closed. */
  arrange({ wanted = this.wanted, sort = this.sort, group: changed = null } = {}) {
    Object.assign(this, { wanted, sort });
    if (changed) changed.open = !changed.open;
    const { marginal, prior } = this.answer ?? {}, words = this.wanted.toLowerCase();
    const most = (v, of) => Math.max(...(this.stated[v - this.columns]?.places ?? [v]).map(of)); // over the states of a variable
    const moved = (v) => most(v, (place) => Math.abs((marginal[place] ?? 1) - (prior[place] ?? 1))), level = (v) => most(v, (place) => marginal[place] ?? 1);
    const orders = {
      order: null,
      name: (a, b) => this.names[a].localeCompare(this.names[b], "en", { numeric: true }),
      high: (a, b) => level(b) - level(a) || a - b,
      low: (a, b) => level(a) - level(b) || a - b,
      change: (a, b) => moved(b) - moved(a) || a - b,
    };
    const compare = marginal ? orders[this.sort] : null;
    let shown = 0;
    for (const group of this.groups) {
      const found = words === "" ? group.members : group.members.filter((v) => this.names[v].toLowerCase().includes(words));
      const open = words === "" ? group.open : found.length > 0;
      if (group.button) {
        group.button.hidden = words !== "" && found.length === 0;
        group.button.setAttribute("aria-expanded", open);
      }
      group.list.hidden = !open;
      group.list.replaceChildren(...(open ? (compare ? found.slice().sort(compare) : found) : []).map((v) => this.row(v).item));
      shown += open ? found.length : 0;
    }
    this.empty?.remove();
    if (shown === 0 && words !== "") this.root.append((this.empty = note(`No name contains “${this.wanted}”.`)));
    if (this.current === undefined || !this.rows.get(this.current)?.item.isConnected) {
      const first = this.root.querySelector(".row");
      if (first) this.reach(Number(first.dataset.variable));
    }
    if (this.answer) this.paint();
  }

  /** Show an answer: marginals and errors, codes, the marginals without evidence, frequencies in samples or null. */
  update(answer) {
    this.answer = answer;
    if (this.sort === "order" || this.sort === "name") this.paint();
    else this.arrange(); // a row that has the focus keeps it: it is moved, not made anew
  }

  paint() {
    for (const [variable, row] of this.rows) if (row.item.isConnected) this.paintRow(variable, row);
    for (const group of this.groups) {
      if (!group.summary) continue;
      let sum = 0;
      for (const v of group.members) sum += v < this.columns ? this.answer.marginal[v] : NaN;
      group.summary.textContent = Number.isNaN(sum) ? counted(group.members.length, "variable") : `${sum.toFixed(1)} of ${group.members.length} in`;
    }
  }

  paintRow(variable, row) {
    if (row.paint) return row.paint(this.answer);
    const { marginal, error, codes, prior, drawn } = this.answer, p = marginal[variable], code = codes[variable];
    const { text, doubt } = marginalText(p, error[variable]);
    row.fill.style.transform = `scaleX(${Number.isNaN(p) ? 0 : Math.min(1, Math.max(0, p))})`;
    row.number.textContent = text;
    row.item.dataset.state = STATES[code];
    row.item.toggleAttribute("data-doubt", doubt);
    row.inside.setAttribute("aria-pressed", code === IN);
    row.out.setAttribute("aria-pressed", code === OUT);
    const changed = Math.abs(prior[variable] - p) > 1e-3;
    row.tick.hidden = !changed;
    if (changed) row.tick.style.left = `${100 * prior[variable]}%`;
    row.dot.hidden = !drawn;
    if (drawn) row.dot.style.left = `${100 * drawn[variable]}%`;
    const state = code === OPEN ? `open, probability ${Number.isNaN(p) ? "unknown" : text}` : `observed ${STATES[code]}`;
    row.main.setAttribute("aria-label", `${this.names[variable]}: ${state}`);
  }
}
